/* Build the dashboard for Meson: node build.mjs SOURCE BUILD NPM DEPFILE
 *
 * It works on a copy below BUILD/work, so that the source tree does not change and several build
 * folders can build at once. Packages are installed from the lock file, only when it (or Node.js)
 * has changed. The result replaces BUILD/dist when it is complete. DEPFILE lists the inputs for
 * Ninja; it contains the folders, too, so that Ninja notices new files. */
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PARTS = ["package.json", "package-lock.json", ".npmrc", "tsconfig.json", "vite.config.mjs", "index.html", "src", "public", "tools"];
const [source, build, npm, depfile] = process.argv.slice(2);
const work = join(build, "work");

/** Run a program quietly; when it fails, print its output and stop. */
function run(program, args) {
  const done = spawnSync(program, args, { cwd: work, encoding: "utf8", maxBuffer: 64 << 20 });
  if (done.status === 0) return;
  console.error(`${program} ${args.join(" ")}: ${done.error?.message ?? `exit code ${done.status}`}\n${done.stdout ?? ""}${done.stderr ?? ""}`);
  if (program === npm) console.error("The dashboard's packages could not be installed. To build without it: meson configure -Dweb=disabled");
  process.exit(1);
}

function installPackages() {
  const hash = createHash("sha256").update(process.version);
  for (const name of ["package.json", "package-lock.json", ".npmrc"]) hash.update(readFileSync(join(work, name)));
  const stamp = join(work, "node_modules", ".assay-stamp");
  const wanted = hash.digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  run(npm, ["ci", "--prefer-offline"]);
  writeFileSync(stamp, wanted);
}

function everythingBelow(path) {
  const entries = readdirSync(path, { withFileTypes: true });
  return [path, ...entries.flatMap((e) => (e.isDirectory() ? everythingBelow(join(path, e.name)) : [join(path, e.name)]))];
}

mkdirSync(work, { recursive: true });
for (const part of PARTS) {
  rmSync(join(work, part), { recursive: true, force: true });
  cpSync(join(source, part), join(work, part), { recursive: true });
}
installPackages();
const fresh = join(build, "dist.new");
run(process.execPath, ["node_modules/typescript/bin/tsc", "--noEmit"]);
run(process.execPath, ["node_modules/vite/bin/vite.js", "build", "--outDir", fresh, "--emptyOutDir"]);

const dist = join(build, "dist");
rmSync(dist, { recursive: true, force: true });
renameSync(fresh, dist);
const made = PARTS.flatMap((p) => (existsSync(join(source, p)) && !p.includes(".") ? everythingBelow(join(source, p)) : [join(source, p)]));
writeFileSync(join(build, "dist.stamp"), "");
writeFileSync(depfile, `web/dist.stamp: ${made.map((f) => f.replace(/[ $#]/g, "\\$&")).join(" ")}\n`);
