/* The dashboard with real programs: `assay up`, sweeps of a shell command, Chromium. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD, column, leave, matches, openBrowser, orderBy, remove, rowsOf, shows, slowNetwork, step, until, untilInSight } from "./browser.mjs";
import { startInstallation } from "./installation.mjs";
import { checker } from "./schema.mjs";

const HOSTILE = `<img src=x onerror="window.pwned=1">`;
const TRIALS = 30;
const stamp = Date.now().toString(36); // unique names, also in a shared installation
const NAME = `web-${stamp}`;
const SLOW = `slow-${stamp}`;

const folder = mkdtempSync("/var/tmp/assay-gate-");
chmodSync(folder, 0o755);
const gate = join(folder, "open");

/* Waits for the gate; then reports five measurements with a line of output each, writes a file, and
 * fails when fate is "bad". */
const SCRIPT = `
while [ ! -e ${gate} ]; do sleep 0.05; done
echo 'starts with ${HOSTILE}'
for step in 1 2 3 4 5; do
  awk -v x="$1" -v s="$step" 'BEGIN { printf "{\\"step\\": %d, \\"loss\\": %.9f, \\"train_loss\\": %.9f}\\n", s, (x - 0.3) ^ 2 + 0.2 / s, (x - 0.3) ^ 2 + 0.1 / s }' >> "$ASSAY_REPORT"
  echo "step $step"
done
if [ "$2" = bad ]; then echo 'it was bound to fail' >&2; exit 3; fi
echo kept > "$ASSAY_ARTIFACTS/note.txt"`;

const sweep = {
  name: NAME, description: `thirty little trials ${HOSTILE}`, metric: { name: "loss", goal: "minimize" },
  parameters: { x: { type: "float", min: 0, max: 1 }, fate: { type: "categorical", values: ["good", HOSTILE, "fine", "bad"] } },
  search: { method: "random", seed: 11 }, limits: { max_trials: TRIALS, max_restarts: 3, max_failed_trials: TRIALS },
  trial: { command: ["sh", "-c", SCRIPT, "trial", "${x}", "${fate}"] },
};
const slow = {
  name: SLOW, metric: { name: "loss", goal: "minimize" }, parameters: { x: { type: "float", min: 0, max: 1 } }, search: { method: "random", seed: 1 }, limits: { max_trials: 6 },
  trial: { command: ["sh", "-c", `echo '{"step": 1, "loss": 0.5}' >> "$ASSAY_REPORT"; echo 'waits'; exec sleep 600`] },
};

/* An ask and tell sweep; this test itself tells the results. */
const asked = {
  name: `asked-${stamp}`, metric: { name: "loss", goal: "minimize" }, constraints: [{ metric: "cost", max: 1.2 }], parameters: { x: { type: "float", min: 0, max: 1 }, kind: { type: "categorical", values: ["plain", "wide"] } },
  search: { method: "gp", seed: 3 }, limits: { max_trials: 26 },
};
const two = { ...asked, name: `two-${stamp}`, metric: undefined, constraints: undefined, metrics: [{ name: "loss", goal: "minimize" }, { name: "speed", goal: "maximize" }] };
const outcomeOf = ({ x, kind }) => ({ loss: (x - 0.7) ** 2 + (kind === "wide" ? 0.05 : 0.2), cost: x + (kind === "wide" ? 0.6 : 0.1), speed: 2 - x });

const assay = await startInstallation();
const browser = await openBrowser().catch(async (error) => { await assay.stop(false); throw error; });
const { page, errors } = browser;
await slowNetwork(browser.context);
const answers = [];
page.on("response", (response) => {
  const type = response.headers()["content-type"] ?? "";
  if (response.status() === 200 && type.startsWith("application/json")) answers.push(response.json().then((body) => [response.request().method(), new URL(response.url()).pathname, body], () => null));
});
const get = (path) => assay.api("GET", path);
const visit = (hash) => leave(page, () => page.goto(`${assay.url}/${hash}`));
const heading = (name) => page.getByRole("heading", { name, exact: true });
const text = (locator) => () => locator.first().innerText();
const attribute = (locator, name) => () => locator.first().getAttribute(name);
const region = (name) => page.getByRole("region", { name, exact: true });
/** Ask for all remaining trials of a sweep, and tell their results. */
async function tellAll(sweep) {
  const at = `/v1/sweeps/${sweep}/suggestions`;
  for (;;) {
    const { items, done } = await assay.api("POST", at, { client: "test" });
    if (done) return;
    for (const s of items) await assay.api("POST", `${at}/${s.number}/complete`, { client: "test", metrics: outcomeOf(s.params) });
  }
}

const inShell = (program, args) => {
  const run = spawnSync(program, args, { encoding: "utf8", env: { ...process.env, ASSAY_SERVER: assay.url, ASSAY_TOKEN: assay.token } });
  assert.equal(run.status, 0, `${program} ${args.join(" ")}: ${run.stderr}`);
  return run.stdout;
};
const chartPoints = () => region("History").getAttribute("data-points").then(Number);
let failed = true;

try {
  await step("the page is served with a policy that allows nothing from elsewhere", async () => {
    const response = await visit(`#token=${assay.token}`);
    assert.match(response.headers()["content-security-policy"] ?? "", /default-src 'self'/);
    await heading("Sweeps").waitFor();
    assert.equal(await page.evaluate(() => location.hash), "#/sweeps");
    await page.getByText("Live", { exact: true }).waitFor();
    await page.evaluate(() => { window.sameDocument = true; });
  });

  await step("a sweep that somebody starts appears in the list", async () => {
    await assay.api("POST", "/v1/sweeps", sweep);
    await leave(page, () => page.getByRole("link", { name: NAME, exact: true }).click());
    await heading(NAME).waitFor();
  });

  await step("it runs to its end before our eyes", async () => {
    await until(page, "running trials", () => column(page, "Trials", "State"), (s) => s.includes("running"));
    assert.equal(await page.getByTestId("ended").innerText(), "0"); // none can end before the gate opens
    writeFileSync(gate, "");
    await until(page, "ended trials", async () => Number(await page.getByTestId("ended").innerText()), (n) => n === TRIALS);
    await page.locator(".head .state-completed").waitFor();
    const now = await get(`/v1/sweeps/${NAME}`);
    assert.ok(now.counts.failed > 0 && now.counts.completed > 0, "the seed gives both kinds");
    await shows(page, "points", chartPoints, now.counts.completed);
    await until(page, "the best value", attribute(page.getByTestId("best"), "title"), (t) => Number(t) === now.best.value);
    await until(page, "ended trials in the table", () => column(page, "Trials", "State"), (s) => s.length === TRIALS && s.every((x) => x === "completed" || x === "failed"));
    assert.equal(await page.evaluate(() => window.sameDocument), true, "without a reload");
  });

  await step("the table orders by value both ways, as the server does", async () => {
    for (const [order, direction] of [["asc", "ascending"], ["desc", "descending"]]) {
      const { items } = await get(`/v1/sweeps/${NAME}/trials?sort=value&order=${order}&page_size=100`);
      await orderBy(page, "Trials", "loss", direction);
      const shown = (await column(page, "Trials", "loss")).map(Number);
      const values = items.map((t) => t.value).filter((v) => typeof v === "number");
      assert.equal(shown.length, TRIALS);
      values.forEach((v, i) => assert.ok(Math.abs(shown[i] - v) <= 1e-3 * Math.abs(v), `row ${i} by value ${order}: ${shown[i]}, the server has ${v}`));
    }
    await page.getByRole("button", { name: /^failed \d/ }).click();
    await shows(page, "those that failed", async () => [...new Set(await column(page, "Trials", "State"))], ["failed"]);
    assert.deepEqual([...new Set(await column(page, "Trials", "fate"))], ["bad"]);
    mkdirSync(join(BUILD, "tests/web/shots"), { recursive: true });
    await page.screenshot({ path: join(BUILD, "tests/web/shots/live.png"), fullPage: true });
  });

  await step("a trial's page: curves, output, file", async () => {
    const { items } = await get(`/v1/sweeps/${NAME}/trials?page_size=100`);
    const odd = items.find((t) => t.state === "completed" && t.params.fate === HOSTILE);
    assert.ok(odd, "the seed gives a completed trial with the hostile value");
    await visit(`#/sweeps/${NAME}/trials/${odd.number}`);
    await shows(page, "metrics", attribute(region("Curves"), "data-metrics"), "2");
    await shows(page, "loss and train_loss share a chart", () => region("Curves").locator("canvas").count(), 1);
    await matches(page, "the output", text(page.locator(".log")), /starts with <img src=x[^]*step 5/);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "note.txt", exact: true }).click()]);
    assert.equal(readFileSync(await download.path(), "utf8"), "kept\n");
    const bad = items.find((t) => t.state === "failed");
    await visit(`#/sweeps/${NAME}/trials/${bad.number}`);
    await page.locator(".log").getByText("it was bound to fail").waitFor();
    await region("Attempts").getByText("exit 3", { exact: true }).waitFor();
    await matches(page, "the files, which are loaded last", text(region("Artifacts")), /None\./);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("main img").count(), 0);
  });

  await step("a running trial is cancelled from its page", async () => {
    await assay.api("POST", "/v1/sweeps", slow);
    await until(page, "its first trial", () => get(`/v1/sweeps/${SLOW}/trials?page_size=1`), ({ items }) => items[0]?.state === "running");
    await visit(`#/sweeps/${SLOW}/trials/0`);
    await page.locator(".head .state-running").waitFor();
    await page.locator(".log").getByText("waits").waitFor();
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the trial" }).click();
    await page.locator(".head .state-cancelled").waitFor();
    assert.equal((await get(`/v1/sweeps/${SLOW}/trials/0`)).state, "cancelled");
  });

  await step("a sweep is paused, resumed and cancelled from its page", async () => {
    await visit(`#/sweeps/${SLOW}`);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator(".head .state-paused").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.locator(".head .state-running").waitFor();
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the sweep" }).click();
    await page.locator(".head .state-cancelled").waitFor();
    await until(page, "running trials", async () => (await get(`/v1/sweeps/${SLOW}`)).counts.running, (n) => n === 0);
  });

  await step("a sweep for those who ask shows how, in lines that a shell runs", async () => {
    await assay.api("POST", "/v1/sweeps", asked);
    await visit(`#/sweeps/${asked.name}`);
    await shows(page, "no trials", () => rowsOf(page, "Trials"), 0);
    const example = await region("Ask and tell").locator("pre").innerText();
    assert.equal(example.split("\n").length, 3);
    const answers = inShell("sh", ["-ec", example.replaceAll("curl ", "curl -sS --fail-with-body ")]);
    assert.match(answers, /"number": ?0/);
    const { state, metrics, client } = await get(`/v1/sweeps/${asked.name}/trials/0`);
    assert.deepEqual([state, metrics, client], ["completed", { loss: 0.5, cost: 0.5 }, "me"]);
    await shows(page, "the trial", () => column(page, "Trials", "Client"), ["me"]);
  });

  await step("its trials come while we look, none that is infeasible is the best, and importance as the server has it", async () => {
    await tellAll(asked.name);
    await page.locator(".head .state-completed").waitFor();
    const { counts, best } = await get(`/v1/sweeps/${asked.name}`);
    await shows(page, "points", chartPoints, counts.completed);
    const { items } = await get(`/v1/sweeps/${asked.name}/trials?page_size=100`);
    assert.ok(items.some((t) => t.feasible === false), "the search looks beyond the bound, too");
    await shows(page, "infeasible trials", async () => (await column(page, "Trials", "Feasible")).filter((c) => c === "no").length, items.filter((t) => t.feasible === false).length);
    await until(page, "the best value", attribute(page.getByTestId("best"), "title"), (t) => Number(t) === best.value);
    // The page requests first: a request during a computation gets the previous result.
    await untilInSight(page, "importance", region("Importance"), text(region("Importance")), (t) => t.includes(` ${counts.completed} trials`));
    const importance = await get(`/v1/sweeps/${asked.name}/importance`);
    assert.equal(importance.trials, counts.completed);
    assert.deepEqual(await region("Importance").locator("tbody th").allInnerTexts(), importance.parameters.map((p) => p.name));
  });

  await step("ask and tell by hand: what was typed and the focus stay when the first trial comes, and what was typed when the view is left; a value, a failure, a chart", async () => {
    const name = `hand-${stamp}`;
    await assay.api("POST", "/v1/sweeps", { name, metric: asked.metric, parameters: asked.parameters, search: { method: "random", seed: 3 }, limits: { max_trials: 2, max_failed_trials: 2 } });
    await visit(`#/sweeps/${name}`);
    const form = (number) => page.getByRole("form", { name: `Trial #${number}`, exact: true });
    await region("History").getByText("No trials yet: they appear as clients ask for them.").waitFor();
    await page.getByRole("button", { name: "Ask for a trial" }).click();
    await form(0).getByLabel("loss").fill("0.25");
    await shows(page, "the trial in the table", () => rowsOf(page, "Trials"), 1);
    assert.ok(await form(0).getByLabel("loss").evaluate((input) => input === document.activeElement), "the focus");
    await region("History").getByText("No trial has a value yet.").waitFor(); // and no chart of nothing
    await leave(page, () => page.getByRole("link", { name: "Runners" }).click());
    await leave(page, () => page.goBack());
    assert.equal(await form(0).getByLabel("loss").inputValue(), "0.25");
    await form(0).getByRole("button", { name: "Tell" }).click();
    await page.getByText("Trial #0 is told.").waitFor();
    await shows(page, "the best", text(page.getByTestId("best")), "0.25");
    await page.getByRole("button", { name: "Ask for a trial" }).click();
    await form(1).getByRole("button", { name: "It failed" }).click();
    await shows(page, "the state of both", () => column(page, "Trials", "State"), ["completed", "failed"]);
    assert.equal((await get(`/v1/sweeps/${name}/trials/0`)).value, 0.25);
  });

  await step("why a trial was chosen is said as the command line says it", async () => {
    const phases = new Set();
    for (const number of [1, 8, 14, 19, 20, 21, 22, 25]) {
      await visit(`#/sweeps/${asked.name}/trials/${number}`);
      await heading(`#${number}`).waitFor();
      const told = /^why\s+(.*)$/m.exec(inShell(join(BUILD, "cli/assay"), ["trial", `${asked.name}/${number}`]))?.[1];
      await shows(page, "the reason", text(page.getByTestId("why")), `${told.charAt(0).toUpperCase()}${told.slice(1)}.`);
      const { suggestion } = await get(`/v1/sweeps/${asked.name}/trials/${number}`);
      phases.add(suggestion.phase);
      if (suggestion.phase === "model") await region("Why these parameters").getByText("deviation", { exact: false }).or(region("Why these parameters").getByText("as predicted")).first().waitFor();
    }
    assert.deepEqual([...phases], ["initial", "model"]);
  });

  await step("the front of two objectives as the server has it", async () => {
    await assay.api("POST", "/v1/sweeps", two);
    await visit(`#/sweeps/${two.name}`);
    await tellAll(two.name);
    const { items, hypervolume } = await get(`/v1/sweeps/${two.name}/pareto`);
    await page.locator(".head .state-completed").waitFor();
    const listed = () => region("Pareto").locator("tbody a").allInnerTexts().then((all) => all.map((t) => Number(t.slice(1))).sort((a, b) => a - b).join());
    await untilInSight(page, "the front", region("Pareto"), listed, (numbers) => numbers === items.map((t) => t.number).join());
    await until(page, "the volume", text(page.getByTestId("hypervolume")), (t) => Math.abs(Number(t) / hypervolume - 1) < 1e-3);
    await page.screenshot({ path: join(BUILD, "tests/web/shots/front.png"), fullPage: true });
  });

  await step("runners, and a token that the server does not know", async () => {
    await leave(page, () => page.getByRole("link", { name: "Runners" }).click());
    await until(page, "live runners", () => column(page, "Runners", "State"), (s) => s.filter((x) => x === "live").length >= 2);
    browser.expect(/status of 401/);
    await visit("#token=wrong");
    await heading("Sign in").waitFor();
  });

  await step("every answer to the page was as the OpenAPI document says", async () => {
    const check = checker();
    const all = (await Promise.all(answers)).filter((a) => a !== null);
    assert.ok(all.length > 20, `${all.length} answers`);
    assert.deepEqual(all.flatMap(([method, path, body]) => check(method, path, body)).slice(0, 10), []);
  });

  assert.deepEqual(errors, [], "the console stayed clean, and nothing broke the content security policy");
  failed = false;
} finally {
  await browser.close().finally(() => assay.stop(failed));
  remove(folder);
}
