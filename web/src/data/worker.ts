/* The worker: loads tables and holds a copy of them, and does everything that takes longer with more trials. Taking the
 * bytes of a table of 100,000 trials alone would keep the page for a fifth of a second. */
import { free, parseTable, type Part } from "./columnar";
import { Store, type Column, type Table } from "./columns";
import { JOBS, type Held, type JobName } from "./jobs";
import { pack } from "./packed";
import { Points } from "./points";
import { Attempts } from "./timeline";
import { summaryOf } from "./summary";

/** What to load, and with which headers. */
export interface File {
  url: string;
  headers: Record<string, string>;
}

export type Loading = File & (
  | { kind: "take" }
  | { kind: "points"; metric: string }
  | { kind: "attempts" }
  | { kind: "summarise"; metric: string; goal: "minimize" | "maximize" });

export type Question = { id: number } & (
  | Loading
  | { kind: "stop"; of: number }
  | { kind: "set"; number: number; column: string; value: number }
  | { kind: "run"; job: JobName; input: unknown });

/** `ms`: the time that the worker computed. `refused`: the answer of the server; status 0: it was not reached. */
export type Answer = { id: number } & ({ part: Part; ms: number } | { output: unknown } | { error: string } | { refused: { status: number; body: string } });

const store = new Store();
const held: Held = { points: new Map(), attempts: new Attempts() };
let table: Table = store.table("0");

/** The typed arrays of a plain object, at any depth. */
function buffersOf(value: unknown, found = new Set<ArrayBufferLike>()): Set<ArrayBufferLike> {
  if (ArrayBuffer.isView(value)) found.add(value.buffer);
  else if (value instanceof Map) for (const inner of value.values()) buffersOf(inner, found);
  else if (value !== null && typeof value === "object") for (const inner of Object.values(value)) if (typeof inner === "object") buffersOf(inner, found);
  return found;
}

function send(answer: Answer): void {
  postMessage(answer, { transfer: [...buffersOf(answer)] as Transferable[] });
}

/** The part without the buffer that it was read from, which the store may keep. Of a whole table the page need not look
 * whether a column has positive numbers. */
function copyOf(part: Part): Part {
  const columns = part.columns.map((c): Column => {
    if (c.kind !== "number") return { ...c, values: c.values.slice() };
    return part.whole ? { ...c, values: c.values.slice(), isPositive: c.one === undefined ? c.values.some((v) => v > 0) : c.one > 0 } : { ...c, values: c.values.slice() };
  });
  return { ...part, number: part.number.slice(), columns };
}

const going = new Map<number, AbortController>();

/** Load a file; null: it could not be, and the page has been told, or did not want it any more. */
async function loaded({ id, url, headers }: File & { id: number }): Promise<ArrayBuffer | null> {
  const stop = new AbortController();
  going.set(id, stop);
  try {
    const response = await fetch(url, { headers, cache: "no-store", signal: stop.signal });
    if (response.ok) return await response.arrayBuffer();
    send({ id, refused: { status: response.status, body: await response.text() } });
  } catch {
    if (!stop.signal.aborted) send({ id, refused: { status: 0, body: "" } });
  } finally {
    going.delete(id);
  }
  return null;
}

function take(q: Loading & { id: number }, buffer: ArrayBuffer): void {
  if (q.kind === "take") {
    const began = performance.now();
    const part = parseTable(buffer, true);
    const copy = copyOf(part);
    store.take(part);
    if (part.whole) free(buffer); // the store has arrays with more room
    table = store.table(part.version);
    send({ id: q.id, part: copy, ms: performance.now() - began });
  } else if (q.kind === "points") {
    const points = held.points.get(q.metric) ?? new Points();
    points.take(buffer);
    held.points.set(q.metric, points);
    send({ id: q.id, output: points.version });
  } else if (q.kind === "attempts") {
    held.attempts.take(buffer);
    send({ id: q.id, output: held.attempts.version });
  } else send({ id: q.id, output: summaryOf(parseTable(buffer), q.metric, q.goal) });
}

async function answer(q: Question): Promise<void> {
  if (q.kind === "stop") going.get(q.of)?.abort();
  else if (q.kind === "set") store.set(q.number, q.column, q.value);
  else if (q.kind === "run") send({ id: q.id, output: pack(JOBS[q.job](table, q.input as never, held)) });
  else {
    const buffer = await loaded(q);
    if (buffer !== null) take(q, buffer);
  }
}

addEventListener("message", (event: MessageEvent<Question>) => {
  answer(event.data).catch((error: unknown) => send({ id: event.data.id, error: error instanceof Error ? error.message : String(error) }));
});
