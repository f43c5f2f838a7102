/* The worker: holds a copy of the table and does everything that takes longer with more trials. */
import { parseTable, type Part } from "./columnar";
import { Store, type Column, type Table } from "./columns";
import { JOBS, type Held, type JobName } from "./jobs";
import { pack } from "./packed";
import { Points } from "./points";
import { Attempts } from "./timeline";
import { summaryOf } from "./summary";

export type Question = { id: number } & (
  | { kind: "take"; buffer: ArrayBuffer }
  | { kind: "points"; metric: string; buffer: ArrayBuffer }
  | { kind: "attempts"; buffer: ArrayBuffer }
  | { kind: "summarise"; buffer: ArrayBuffer; metric: string; goal: "minimize" | "maximize" }
  | { kind: "set"; number: number; column: string; value: number }
  | { kind: "run"; job: JobName; input: unknown });

export type Answer = { id: number } & ({ part: Part } | { output: unknown } | { error: string });

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
    return part.whole ? { ...c, values: c.values.slice(), isPositive: c.values.some((v) => v > 0) } : { ...c, values: c.values.slice() };
  });
  return { ...part, number: part.number.slice(), columns };
}

/** Give back the memory of a buffer that nothing views any more; in a browser that cannot, it stays until the worker
 * collects garbage. */
function free(buffer: ArrayBuffer & { transfer?: (length: number) => ArrayBuffer }): void {
  buffer.transfer?.(0);
}

function answer(q: Question): void {
  if (q.kind === "take") {
    const part = parseTable(q.buffer, true);
    const copy = copyOf(part);
    store.take(part);
    if (part.whole) free(q.buffer); // the store has arrays with more room
    table = store.table(part.version);
    send({ id: q.id, part: copy });
  } else if (q.kind === "set") store.set(q.number, q.column, q.value);
  else if (q.kind === "points") {
    const points = held.points.get(q.metric) ?? new Points();
    points.take(q.buffer);
    held.points.set(q.metric, points);
    send({ id: q.id, output: points.version });
  } else if (q.kind === "attempts") {
    held.attempts.take(q.buffer);
    send({ id: q.id, output: held.attempts.version });
  } else if (q.kind === "summarise") send({ id: q.id, output: summaryOf(parseTable(q.buffer), q.metric, q.goal) });
  else send({ id: q.id, output: pack(JOBS[q.job](table, q.input as never, held)) });
}

addEventListener("message", (event: MessageEvent<Question>) => {
  try {
    answer(event.data);
  } catch (error) {
    send({ id: event.data.id, error: error instanceof Error ? error.message : String(error) });
  }
});
