/* A tab of Chromium that nobody inspects while it is measured. A debugger that watches the network, as playwright does, keeps copies
 * of what pages load, so that three tables of 15 MB are 63 MB more of the tab's memory, and it hears of each event of a stream.
 *
 *   const tab = await openPlainTab(browser, `${url}/#token=${token}`, "#/sweeps/digits");   of playwright's browser
 *   await tab.run((n) => document.title + n, 3); await tab.collect(); tab.pid */
import { readdirSync, readFileSync } from "node:fs";

/** A process of the system: seconds of processor time, its parent, and how it was started. */
export function processOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { pid, parent: fields[1], line: readFileSync(`/proc/${pid}/cmdline`, "utf8"), seconds: (Number(fields[11]) + Number(fields[12])) / 100 };
}

/** Memory of a process, MB: its share of what it shares with others (PSS), as the libraries of Chromium; and all that
 * is resident. */
export function memoryOf(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const of = (name) => Math.round((Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)[1]) * 1024) / 1e6);
  return { share: of("Pss"), resident: of("Rss") };
}

/** The processes below this one that draw pages, the one that used most first. */
export function renderers() {
  const all = readdirSync("/proc").filter((n) => /^\d+$/.test(n)).flatMap((pid) => {
    try {
      return [processOf(pid)];
    } catch {
      return []; // it has just ended
    }
  });
  const ours = new Set([String(process.pid)]);
  for (let more = true; more;) {
    more = false;
    for (const p of all) if (ours.has(p.parent) && !ours.has(p.pid)) more = Boolean(ours.add(p.pid));
  }
  return all.filter((p) => ours.has(p.pid) && p.line.includes("--type=renderer")).sort((a, b) => b.seconds - a.seconds);
}

const SIGNED_IN_MS = 3000;
const BUSY_MS = 700;

/** For a page: keep its process busy. */
function beBusy(ms) {
  for (const end = performance.now() + ms; performance.now() < end;);
}

/** Open the address, and a view of it. playwright leaves tabs alone that are in none of its contexts. */
export async function openPlainTab(browser, address, view) {
  const root = await browser.newBrowserCDPSession();
  const { browserContextId } = await root.send("Target.createBrowserContext");
  const { targetId } = await root.send("Target.createTarget", { url: address, browserContextId });
  /** Attach, send one command, and let the tab alone again. */
  const send = async (method, params) => {
    const { sessionId } = await root.send("Target.attachToTarget", { targetId, flatten: false });
    const answer = new Promise((resolve) => {
      const take = (event) => {
        if (event.sessionId !== sessionId) return;
        const message = JSON.parse(event.message);
        if (message.id !== 1) return;
        root.off("Target.receivedMessageFromTarget", take);
        resolve(message);
      };
      root.on("Target.receivedMessageFromTarget", take);
    });
    await root.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id: 1, method, params }) });
    const { result, error } = await answer;
    await root.send("Target.detachFromTarget", { sessionId });
    if (error !== undefined || result.exceptionDetails !== undefined) throw new Error(`${method}: ${JSON.stringify(error ?? result.exceptionDetails)}`);
    return result;
  };
  const run = async (work, ...values) => (await send("Runtime.evaluate", { expression: `(${work})(${values.map((v) => JSON.stringify(v)).join(", ")})`, returnByValue: true, awaitPromise: true })).result.value;
  await new Promise((resolve) => { setTimeout(resolve, SIGNED_IN_MS); });
  const before = new Map(renderers().map((p) => [p.pid, p.seconds])); // Chromium keeps one for the next tab, and says of none whose it is
  await run(beBusy, BUSY_MS);
  const spent = (p) => p.seconds - (before.get(p.pid) ?? 0);
  const [{ pid }] = renderers().sort((a, b) => spent(b) - spent(a));
  await run((hash) => { location.hash = hash; }, view);
  return { pid, run, collect: () => send("HeapProfiler.collectGarbage", {}) };
}
