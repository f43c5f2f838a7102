/* Writes the columnar format of GET /v1/sweeps/{sweep}/table (web/src/data/columnar.ts describes
 * it): for the fixture, and for tables of any size without a server.
 *   encodeTable({version, whole, columns: [{name, type, values, words?}]})  -> Buffer
 *   tableOf(trials, {version, whole})                                       -> Buffer, from trials of the API
 *   inventedTable(rows, {params, metrics, seed})                            -> Buffer, of invented trials
 *   inventedColumns(rows, …), encodeRows(columns, from, to, {version, whole}) -> the same, some of its rows */
import { numbers } from "./slow.mjs";

const HEAD = 16;
const up = (n) => Math.ceil(n / 8) * 8;
const SIZE = { u8: 1, u32: 4, f32: 4, f64: 8 };
const MADE = { u8: Uint8Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };

export function encodeTable({ version, whole, columns }) {
  const rows = columns[0].values.length;
  const parts = columns.map((c) => {
    if (c.type !== "dict") return MADE[c.type].from(c.values);
    const wide = c.words.length >= 0xffff;
    const none = wide ? 0xffffffff : 0xffff;
    return (wide ? Uint32Array : Uint16Array).from(c.values, (v) => (v < 0 ? none : v));
  });
  const described = columns.map((c, i) => (c.type === "dict" ? { name: c.name, type: "dict", at: 0, width: parts[i].BYTES_PER_ELEMENT, words: c.words } : { name: c.name, type: c.type, at: 0 }));
  const header = () => JSON.stringify({ rows, version: String(version), whole, columns: described });
  // Room for the offsets, which are not known yet.
  const length = up(Buffer.byteLength(header()) + 12 * columns.length);
  let at = HEAD + length;
  parts.forEach((p, i) => {
    described[i].at = at;
    at += up(p.byteLength);
  });
  const out = Buffer.alloc(at);
  out.write("ASYCOLS1", 0, "latin1");
  out.writeUInt32LE(length, 8);
  out.fill(0x20, HEAD, HEAD + length);
  out.write(header(), HEAD, "utf8");
  parts.forEach((p, i) => Buffer.from(p.buffer, p.byteOffset, p.byteLength).copy(out, described[i].at));
  return out;
}

const number = (v) => (v === null || v === undefined ? NaN : Number(v));
const time = (v) => (v ? Date.parse(v) : NaN);
const text = (v) => (typeof v === "string" ? v : JSON.stringify(v));

function dict(name, values) {
  const index = new Map();
  const at = (v) => {
    if (v === null || v === undefined) return -1;
    if (!index.has(v)) index.set(v, index.size);
    return index.get(v);
  };
  const found = values.map(at);
  return { name, type: "dict", values: found, words: [...index.keys()] };
}

/** The columns of trials as the API has them. Metrics and parameters: those that some trial has. */
export function tableOf(trials, { version, whole, params, metrics, objectives = [] }) {
  const foretold = (t, k) => { const p = t.suggestion?.predicted; return Array.isArray(p) ? p[k] : k === 0 ? p : undefined; };
  const predicted = objectives.filter((_, k) => trials.some((t) => foretold(t, k)));
  const namesOf = (key) => [...new Set(trials.flatMap((t) => Object.keys(t[key])))];
  const param = (name) => {
    const values = trials.map((t) => (Object.hasOwn(t.params, name) ? t.params[name] : undefined));
    if (values.every((v) => v === undefined || typeof v === "number")) return { name: `param:${name}`, type: "f64", values: values.map(number) };
    return dict(`param:${name}`, values.map((v) => (v === undefined ? undefined : text(v))));
  };
  const f64 = (name, of) => ({ name, type: "f64", values: trials.map(of) });
  const columns = [
    { name: "number", type: "u32", values: trials.map((t) => t.number) },
    dict("state", trials.map((t) => t.state)),
    f64("attempt", (t) => t.attempt), f64("value", (t) => number(t.value)), { name: "infeasible", type: "u8", values: trials.map((t) => Number(t.feasible === false)) },
    f64("created_at", (t) => time(t.created_at)), f64("started_at", (t) => time(t.started_at)), f64("ended_at", (t) => time(t.finished_at)), f64("ran_ms", (t) => number(t.ran_ms)), f64("running_since", (t) => time(t.running_since)),
    dict("origin", trials.map((t) => t.origin)), { name: "restarts", type: "u32", values: trials.map((t) => t.restarts ?? 0) }, f64("step", (t) => number(t.step)), f64("rung", (t) => t.rungs?.length ?? 0),
    dict("runner", trials.map((t) => t.runner)), dict("client", trials.map((t) => t.client)), dict("group", trials.map((t) => t.group)),
    dict("reason", trials.map((t) => t.reason)),
    dict("tags", trials.map((t) => (Array.isArray(t.tags) ? t.tags.join(",") || null : t.tags))), f64("parent", (t) => number(t.parent)), f64("fork_step", (t) => number(t.fork_step)),
    ...(metrics ?? namesOf("metrics")).map((name) => f64(`metric:${name}`, (t) => number(Object.hasOwn(t.metrics, name) ? t.metrics[name] : null))),
    ...(params ?? namesOf("params")).map(param),
    ...predicted.flatMap((name, k) => [f64(`predicted:${name}`, (t) => number(foretold(t, k)?.mean)), f64(`deviation:${name}`, (t) => number(foretold(t, k)?.deviation))]),
  ];
  return encodeTable({ version, whole, columns });
}

/** The answer of GET …/points: lines with `trial`, `steps` and `values`; a step takes two seconds. */
export function pointsTable(lines, more) {
  const each = (of) => lines.flatMap((l) => l.steps.map((step, i) => of(l, step, i)));
  return encodeTable({ ...more, columns: [{ name: "trial", type: "u32", values: each((l) => l.trial) }, { name: "step", type: "f64", values: each((_, step) => step) }, { name: "time", type: "f32", values: each((_, step) => 2 * step) }, { name: "value", type: "f64", values: each((l, _, i) => number(l.values[i])) }] });
}

/** The answer of GET …/attempts: attempts of the API with `trial`, and their `seats`. */
export function attemptsTable(attempts, more) {
  const rows = attempts.flatMap((a) => [{ ...a, seat: NaN }, ...a.seats.map((s) => ({ trial: a.trial, attempt: a.attempt, seat: s.seat, runner: s.runner, client: null, group: null, started_at: s.since, ended_at: s.ended_at, outcome: s.state === "lost" ? "lost" : null }))]);
  const column = (name, type, of) => ({ name, type, values: rows.map(of) });
  return encodeTable({ ...more, columns: [column("trial", "u32", (r) => r.trial), column("attempt", "u32", (r) => r.attempt), column("seat", "f32", (r) => r.seat), ...["runner", "client", "group"].map((name) => dict(name, rows.map((r) => r[name]))), column("began_at", "f64", (r) => time(r.started_at)), column("ended_at", "f64", (r) => time(r.ended_at)), dict("outcome", rows.map((r) => r.outcome))] });
}

/** The columns of invented trials: some failed, some infeasible, the last few running. */
export function inventedColumns(rows, { params = 8, metrics = 3, seed = 1, start = 1_700_000_000_000 } = {}) {
  const random = numbers(seed);
  const make = (of) => Float64Array.from({ length: rows }, (_, i) => of(i));
  const states = ["completed", "failed", "running", "pruned"];
  const open = Math.max(0, rows - 8);
  const state = Uint8Array.from({ length: rows }, (_, i) => (i >= open ? 2 : i % 97 === 96 ? 1 : i % 13 === 12 ? 3 : 0));
  const columns = [{ name: "number", type: "u32", values: Uint32Array.from({ length: rows }, (_, i) => i) }, { name: "state", type: "dict", values: state, words: states }];
  const drawn = Array.from({ length: params }, () => make(() => random()));
  const cost = make((i) => drawn.reduce((all, p, at) => all + (p[i] - 0.3) ** 2 / (at + 1), 0.02) + 0.02 * random());
  const ended = (i) => state[i] === 0 || state[i] === 3;
  columns.push({ name: "attempt", type: "f64", values: make(() => 1) }, { name: "value", type: "f64", values: make((i) => (ended(i) ? cost[i] : NaN)) }, { name: "infeasible", type: "u8", values: make((i) => Number(ended(i) && i % 31 === 30)) });
  columns.push({ name: "created_at", type: "f64", values: make((i) => start + 900 * i) }, { name: "started_at", type: "f64", values: make((i) => start + 900 * i + 20) }, { name: "ended_at", type: "f64", values: make((i) => (state[i] === 2 ? NaN : start + 900 * i + 3000 + Math.floor(2000 * random()))) });
  columns.push({ name: "runner", type: "dict", values: Uint8Array.from({ length: rows }, (_, i) => i % 16), words: Array.from({ length: 16 }, (_, i) => `box-${i}`) });
  for (let m = 0; m < metrics; m++) columns.push({ name: `metric:${m === 0 ? "val_error" : `m${m}`}`, type: "f64", values: make((i) => (ended(i) ? (m === 0 ? cost[i] : cost[i] * (m + 1) + random()) : NaN)) });
  drawn.forEach((p, at) => columns.push(at === params - 1 ? { name: `param:p${at}`, type: "dict", values: Uint8Array.from(p, (v) => Math.floor(3 * v)), words: ["sgd", "adamw", "lion"] } : { name: `param:p${at}`, type: "f64", values: at === 0 ? p.map((v) => 10 ** (-4 + 4 * v)) : p }));
  return columns;
}

/** Some of the rows of columns, as the answer of the server. */
export const encodeRows = (columns, from, to, more) => encodeTable({ ...more, columns: columns.map((c) => ({ ...c, values: c.values.slice(from, to) })) });

export const inventedTable = (rows, { version = "1", ...options } = {}) => encodeTable({ version, whole: true, columns: inventedColumns(rows, options) });
