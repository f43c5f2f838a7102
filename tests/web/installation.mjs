/* A complete installation for a test: `assay up` with a private PostgreSQL, assayd and two runners,
 * in its own folder. ASSAY_URL and ASSAY_TOKEN select a running installation instead. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD, PATIENCE_MS, remove, skip, SOURCE } from "./browser.mjs";

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** The last lines of every log of the installation, for failed tests. */
function showLogs(data) {
  const folder = join(data, "logs");
  const logs = [join(data, "up.log"), ...(existsSync(folder) ? readdirSync(folder).map((n) => join(folder, n)) : [])];
  for (const log of logs.filter((l) => existsSync(l))) console.error(`--- ${log}\n${readFileSync(log, "utf8").split("\n").slice(-25).join("\n")}`);
}

async function startOwn(options) {
  const assay = join(BUILD, "cli", "assay");
  for (const program of [assay, join(BUILD, "api/server/assayd"), join(BUILD, "trial-runner/agent/assay-runner")])
    if (!existsSync(program)) skip(`${program} is not built`);
  const data = mkdtempSync("/var/tmp/assay-web-");
  chmodSync(data, 0o755); // PostgreSQL may run as another user
  const ready = join(data, "ready.json");
  const log = openSync(join(data, "up.log"), "a");
  // It ends when this process ends, for any reason.
  const up = spawn("setpriv", ["--pdeathsig", "TERM", assay, "up", "--data", data, "--runners", "2", "--port", "0", "--ready-file", ready, ...options], { cwd: SOURCE, stdio: ["ignore", log, log] });
  closeSync(log);
  const ended = new Promise((resolve) => { up.once("exit", resolve); up.once("error", resolve); });
  let running = true;
  void ended.then(() => { running = false; });
  const stop = async (failed) => {
    if (running) up.kill("SIGTERM");
    const patience = setTimeout(() => up.kill("SIGKILL"), PATIENCE_MS);
    await ended;
    clearTimeout(patience);
    if (failed) showLogs(data);
    remove(data);
  };
  for (const end = Date.now() + PATIENCE_MS; !existsSync(ready); await pause(50)) {
    if (running && Date.now() < end) continue;
    await stop(true);
    assert.fail(running ? `assay up was not ready after ${PATIENCE_MS} ms` : "assay up ended before it was ready");
  }
  const info = JSON.parse(readFileSync(ready, "utf8"));
  return { url: info.url.replace(/\/$/, ""), token: readFileSync(info.admin_token_file, "utf8").trim(), stop, data, pid: up.pid };
}

/** The URL and an admin's token; `api(method, path, body)` for requests that the page does not
 * send. `options` of `assay up`: then it is always an installation of its own, with the folder `data` and `assay up` as
 * process `pid`. */
export async function startInstallation(options = null) {
  const { ASSAY_URL: url, ASSAY_TOKEN: token } = process.env;
  const own = options === null && url && token ? { url, token, stop: async () => undefined } : await startOwn(options ?? []);
  const api = async (method, path, body) => {
    const headers = { Authorization: `Bearer ${own.token}`, "Content-Type": "application/json" };
    const response = await fetch(own.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  };
  return { ...own, api };
}
