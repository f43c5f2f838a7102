/* Checks the built and the tracked files: size of the first load and of each part that is loaded
 * later, nothing inline, no host of a registry. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const FIRST_LOAD_MAX = 120_000; // bytes of script and style, gzipped
const LATER_MAX = 40_000; // of each part of the page that is loaded when it is shown
const source = process.env.ASSAY_SOURCE_ROOT;
const dist = join(process.env.ASSAY_BUILD_ROOT, "web", "dist");

assert.ok(existsSync(join(dist, "index.html")), `${dist} holds no index.html`);
const sizes = readdirSync(join(dist, "assets")).map((name) => [name, gzipSync(readFileSync(join(dist, "assets", name)), { level: 9 }).length]);
const html = readFileSync(join(dist, "index.html"), "utf8");
// What index.html names, and the worker, which the page of every sweep starts.
const isFirst = (name) => html.includes(`/assets/${name}`) || name.startsWith("worker-");
const sum = sizes.reduce((all, [name, size]) => all + (isFirst(name) ? size : 0), 0);
console.log(`${sum} bytes gzipped at first; ${sizes.map(([name, size]) => `${name} ${size}${isFirst(name) ? "" : " (later)"}`).join(", ")}`);
assert.ok(sizes.filter(([name]) => isFirst(name)).length >= 3, "a script, a style sheet and the worker are loaded first");
assert.ok(sum <= FIRST_LOAD_MAX, `the first load is ${sum} bytes, more than ${FIRST_LOAD_MAX}`);
for (const [name, size] of sizes) assert.ok(isFirst(name) || size <= LATER_MAX, `${name}, which is loaded later, is ${size} bytes, more than ${LATER_MAX}`);

assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/, "index.html has something inline, which the content security policy forbids");
for (const [name] of sizes) assert.doesNotMatch(readFileSync(join(dist, "assets", name), "utf8"), /\beval\(|new Function\(/, `${name} makes code from text`);

for (const folder of ["web", "tests/web"]) {
  const lock = JSON.parse(readFileSync(join(source, folder, "package-lock.json"), "utf8"));
  for (const [name, entry] of Object.entries(lock.packages)) {
    assert.equal(entry.resolved, undefined, `${folder}/package-lock.json: ${name} names where it came from`);
    assert.ok(name === "" || entry.integrity, `${folder}/package-lock.json: ${name} has no digest`);
  }
}
