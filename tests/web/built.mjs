/* Checks the built and the tracked files: size of the first load, nothing inline, no host of a
 * registry. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const FIRST_LOAD_MAX = 120_000; // bytes of script and style, gzipped
const source = process.env.ASSAY_SOURCE_ROOT;
const dist = join(process.env.ASSAY_BUILD_ROOT, "web", "dist");

assert.ok(existsSync(join(dist, "index.html")), `${dist} holds no index.html`);
const sizes = readdirSync(join(dist, "assets")).map((name) => [name, gzipSync(readFileSync(join(dist, "assets", name)), { level: 9 }).length]);
const sum = sizes.reduce((all, [, size]) => all + size, 0);
console.log(`${sum} bytes gzipped: ${sizes.map(([name, size]) => `${name} ${size}`).join(", ")}`);
assert.ok(sum <= FIRST_LOAD_MAX, `the first load is ${sum} bytes, more than ${FIRST_LOAD_MAX}`);

const html = readFileSync(join(dist, "index.html"), "utf8");
assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/, "index.html has something inline, which the content security policy forbids");
for (const [name] of sizes) assert.doesNotMatch(readFileSync(join(dist, "assets", name), "utf8"), /\beval\(|new Function\(/, `${name} makes code from text`);

for (const folder of ["web", "tests/web"]) {
  const lock = JSON.parse(readFileSync(join(source, folder, "package-lock.json"), "utf8"));
  for (const [name, entry] of Object.entries(lock.packages)) {
    assert.equal(entry.resolved, undefined, `${folder}/package-lock.json: ${name} names where it came from`);
    assert.ok(name === "" || entry.integrity, `${folder}/package-lock.json: ${name} has no digest`);
  }
}
