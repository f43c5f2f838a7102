/* Install the packages of the browser tests for Meson: node packages.mjs SOURCE FOLDER NPM STAMP
 *
 * Installs the packages of SOURCE/package-lock.json below FOLDER. The build does this, so that no
 * test needs npm or its registry. They are separate from the packages of the dashboard, which needs
 * none of them. */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [source, folder, npm, output] = process.argv.slice(2);
const lock = readFileSync(join(source, "package-lock.json"), "utf8");
const stamp = join(folder, "node_modules", ".assay-stamp");
if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lock) {
  mkdirSync(folder, { recursive: true });
  rmSync(stamp, { force: true });
  for (const name of ["package.json", "package-lock.json", ".npmrc"]) copyFileSync(join(source, name), join(folder, name));
  const done = spawnSync(npm, ["ci", "--prefer-offline", "--fetch-retries", "5"], { cwd: folder, encoding: "utf8" });
  if (done.status !== 0) {
    console.error(`npm ci in ${folder}: ${done.error?.message ?? `exit code ${done.status}`}\n${done.stdout ?? ""}${done.stderr ?? ""}\nTo build without the dashboard and its tests: meson configure -Dweb=disabled`);
    process.exit(1);
  }
  writeFileSync(stamp, lock);
}
writeFileSync(output, "");
