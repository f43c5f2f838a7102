/* Answers that arrive late or out of order: the fixture holds them until something else has
 * happened. No step depends on time. Each step fails if the page prefers the older of two
 * states. */
import assert from "node:assert/strict";
import { column, DIST, leave, matches, openBrowser, shows, step, until, untilInSight } from "./browser.mjs";
import { startFixture, TOKEN } from "./fixture.mjs";
import { viewsOf } from "./views.mjs";

const browser = await openBrowser();
const { page, errors } = browser;
const fixture = await startFixture(DIST);
const { visit, region, heading, hash, text, loaded, openList, openSweep, openTrial } = viewsOf(page, fixture);
const live = fixture.sweeps.get("live");
const oldestRunning = () => live.trials.find((t) => t.state === "running");
const button = (name) => page.getByRole("button", { name, exact: true });
const stateInList = () => column(page, "Sweeps", "Sweep").then(async (names) => (await column(page, "Sweeps", "State"))[names.indexOf("live")]);

/** Wait until the page has read this event and handled it. */
const heard = (id) => until(page, `event ${id}`, () => page.evaluate(() => window.streamed), (t) => t.includes(`id: ${id}\n`));

try {
  await browser.context.addInitScript(() => {
    const { read } = ReadableStreamDefaultReader.prototype; // only of event streams; the browser itself reads other answers
    window.streamed = "";
    ReadableStreamDefaultReader.prototype.read = async function readAndNote() {
      const piece = await read.call(this);
      if (piece.value) window.streamed += new TextDecoder().decode(piece.value);
      return piece;
    };
  });

  await step("a sweep: what happened before the stream began, and after the list was answered, is not lost", async () => {
    await visit(`#token=${TOKEN}`);
    const stream = fixture.hold("GET", "/v1/sweeps/live/events");
    const list = fixture.hold("GET", "/v1/sweeps/live/table");
    await visit("#/sweeps/live");
    await Promise.all([stream.arrived, list.arrived]);
    await matches(page, "the history, which would seem empty", text(region("History")), /Loading…/);
    await matches(page, "the trials, which nobody has counted yet", text(region("All trials")), /All\s+Loading…/);
    fixture.finish("live"); // no stream is open to announce it
    stream.release();
    await page.getByText("Live", { exact: true }).waitFor();
    list.release();
    await loaded("live");
  });

  await step("the list of sweeps: the same", async () => {
    const stream = fixture.hold("GET", "/v1/events");
    const list = fixture.hold("GET", "/v1/sweeps");
    await visit("#/sweeps");
    await Promise.all([stream.arrived, list.arrived]);
    live.base.state = "paused";
    stream.release();
    await page.getByText("Live", { exact: true }).waitFor();
    list.release();
    await shows(page, "the state", stateInList, "paused");
  });

  await step("the list of sweeps: a change whose load failed is loaded again", async () => {
    browser.expect(/status of 503/);
    fixture.fail("GET", "/v1/sweeps/live");
    live.base.state = "running";
    fixture.emit("sweep.changed", { sweep: "live", state: "running" });
    await shows(page, "the state", stateInList, "running");
  });

  await step("a measurement stands against an answer that is older", async () => {
    await openSweep("live");
    const trial = oldestRunning();
    const answer = fixture.hold("GET", "/v1/sweeps/live/table");
    fixture.emit("trial.changed", { sweep: "live", number: trial.number, state: "running", attempt: 1 });
    await answer.arrived;
    trial.value = 0.1234;
    await heard(fixture.emit("trial.measured", { sweep: "live", number: trial.number, attempt: 1, value: 0.1234 }));
    answer.release();
    await region("Trials").getByText("0.1234").waitFor();
  });

  await step("pausing stands against an answer that is older", async () => {
    const answer = fixture.hold("GET", "/v1/sweeps/live");
    fixture.emit("sweep.changed", { sweep: "live", state: "running" });
    await answer.arrived;
    await page.evaluate(() => {
      const head = document.querySelector(".head");
      window.states = ["running"];
      new MutationObserver(() => {
        const state = head.querySelector(".state").innerText;
        if (window.states.at(-1) !== state) window.states.push(state);
      }).observe(head, { subtree: true, childList: true, characterData: true, attributes: true });
    });
    await button("Pause").click();
    await button("Resume").waitFor();
    const asked = () => fixture.requests.filter((r) => r.method === "GET" && r.path === "/v1/sweeps/live").length;
    const before = asked();
    answer.release();
    await until(page, "the next load, after the old answer was taken", async () => asked(), (n) => n > before);
    assert.deepEqual(await page.evaluate(() => window.states), ["running", "paused"]);
    await button("Resume").click();
    await button("Pause").waitFor();
  });

  await step("a question that is put again at once stays open", async () => {
    await button("Cancel…").click();
    await button("Keep it").waitFor();
    await page.evaluate(async () => {
      const press = (label) => [...document.querySelectorAll("button")].find((b) => b.innerText === label).click();
      const closed = new Promise((resolve) => { document.querySelector("dialog[open]").addEventListener("close", resolve, { once: true }); });
      press("Keep it");
      for (let i = 0; i < 5; i++) await null; // the page has the answer; its event is still to come
      press("Cancel…");
      await closed;
    });
    await button("Keep it").click();
    await button("Keep it").waitFor({ state: "hidden" });
    assert.equal(live.base.state, "running");
  });

  await step("a choice in a view that is about to go does not hold it", async () => {
    await leave(page, () => page.evaluate(() => {
      location.hash = "#/runners";
      [...document.querySelectorAll("label")].find((l) => l.innerText.includes("Log scale")).querySelector("input").click();
    }));
    await heading("Runners").waitFor();
    assert.equal(await hash(), "#/runners");
  });

  await step("views that go before they were painted leave no stream behind", async () => {
    await page.evaluate(async () => {
      for (const address of ["#/sweeps/live", "#/sweeps", "#/sweeps/live", "#/sweeps"]) {
        history.pushState(null, "", address);
        dispatchEvent(new HashChangeEvent("hashchange"));
        for (let i = 0; i < 5; i++) await null; // the view exists, but no frame has been drawn
      }
    });
    await openSweep("live");
    await page.getByText("Live", { exact: true }).waitFor();
    await until(page, "open streams", async () => fixture.streams().open, (n) => n === 1);
  });

  await step("the files of a trial come, though its output could not be read when it ended", async () => {
    const trial = oldestRunning();
    const path = `/v1/sweeps/live/trials/${trial.number}`;
    await openTrial("live", trial.number);
    const before = fixture.hold("GET", `${path}/artifacts`); // a running trial is loaded repeatedly
    await before.arrived;
    fixture.finish("live");
    const after = fixture.hold("GET", path);
    before.release();
    await after.arrived;
    fixture.fail("GET", `${path}/log`);
    after.release();
    await page.locator(".head .state-completed").waitFor();
    await matches(page, "the files", text(region("Artifacts")), /model\.safetensors/);
  });

  await step("a token that was refused takes no newer one with it", async () => {
    browser.expect(/status of 401/);
    await openList();
    const held = ["", "/events", "/table"].map((part) => fixture.hold("GET", `/v1/sweeps/live${part}`)); // the first refusal ends them all
    await visit("#token=old&to=/sweeps/live");
    await Promise.all(held.map((h) => h.arrived));
    await page.goto(`${fixture.url}/#token=${TOKEN}&to=/sweeps/live`);
    await shows(page, "the address", hash, "#/sweeps/live");
    held.forEach((h) => h.release());
    await loaded("live");
  });

  await step("an importance that others wait for, too, is asked for again", async () => {
    await openList();
    live.older = live.importance();
    const all = new RegExp(`\\b${live.older.trials + 1} trials`);
    fixture.finish("live");
    await openSweep("live");
    const panel = region("Importance");
    await untilInSight(page, "the importance of all trials", panel, text(panel), (seen) => all.test(seen));
    assert.equal(live.older, null, "the older one was shown first");
  });

  await step("when a sweep ends its last trials are asked for at once, before the rest is over that drawing them costs", async () => {
    await openList();
    await openSweep("live");
    const asked = (part) => fixture.requests.filter((r) => r.method === "GET" && r.path === `/v1/sweeps/live${part}`).length;
    const change = () => fixture.emit("sweep.changed", { sweep: "live", state: live.base.state });
    await region("Trials").evaluate((table) => { // a change of the table takes so long that 4 s of rest follow
      new MutationObserver(() => { for (const end = performance.now() + 100; performance.now() < end;); }).observe(table, { subtree: true, childList: true, characterData: true });
    });
    fixture.finish("live");
    await matches(page, "the rest that has begun", text(region("Progress")), /Views follow\s+about every/);
    for (const t of live.trials.filter((x) => x.state === "running")) {
      live.end(t, "completed", 0.5, Date.now());
      fixture.emit("trial.changed", { sweep: "live", number: t.number, state: t.state, attempt: t.attempt });
    }
    live.base.state = "completed";
    const [heads, first] = [asked(""), fixture.requests.length];
    change();
    await until(page, "the end", async () => asked(""), (n) => n > heads);
    await page.locator(".head .state-completed").waitFor();
    change();
    await until(page, "the figures once more, a second later", async () => asked(""), (n) => n > heads + 1);
    const paths = fixture.requests.slice(first).map((r) => r.path);
    const table = paths.indexOf("/v1/sweeps/live/table");
    assert.ok(table >= 0 && table < paths.lastIndexOf("/v1/sweeps/live"), `asked for: ${paths.join(" ")}`);
  });

  assert.deepEqual(errors, [], "the console stayed clean, and nothing broke the content security policy");
} finally {
  fixture.close();
  await browser.close();
}
