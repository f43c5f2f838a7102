/* A small server with assayd's API and invented sweeps, for cases that a real sweep cannot produce
 * within a test: thousands of trials, hostile text, an ensemble, events at a known moment. The
 * tests check every answer against the OpenAPI document. The page under test is always the built
 * one, served from `dist`.
 *   const f = await startFixture(dist);  f.url, f.finish("live"), f.close()
 *   const held = f.hold("GET", "/v1/sweeps/live");  await held.arrived; …; held.release()
 *   node fixture.mjs DIST [PORT]         shows the page while working on it; token "fixture" */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { invented } from "./files.mjs";
import { attemptsTable, encodeRows, inventedColumns, pointsTable, tableOf } from "./columnar.mjs";
import { makeModels } from "./models.mjs";
import { late, numbers } from "./slow.mjs";

export const TOKEN = "fixture";
const RETRY_MOST = 1; // trials that one request tries again; of the server 10,000
export const CSP = "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; object-src 'none'";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const START = Date.now() - 9 * 60_000;
const iso = (ms) => new Date(ms).toISOString();
const NASTY = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>"'&\u202e`;

const DIGITS = {
  lr: { type: "float", min: 1e-4, max: 0.3, scale: "log" }, width: { type: "int", min: 16, max: 128, scale: "log" },
  depth_two: { type: "int", min: 8, max: 64, scale: "log" }, dropout: { type: "float", min: 0, max: 0.5 },
  weight_decay: { type: "float", min: 1e-6, max: 1e-2, scale: "log" }, optimizer: { type: "categorical", values: ["sgd", "adamw"] },
  momentum: { type: "float", min: 0, max: 0.98, when: { optimizer: "sgd" } },
};

function drawParams(space, random) {
  const out = {};
  for (const [name, p] of Object.entries(space)) {
    const u = random();
    if (p.when && Object.entries(p.when).some(([k, v]) => out[k] !== v)) continue;
    if (p.type === "categorical") out[name] = p.values[Math.floor(u * p.values.length)];
    else {
      const v = p.scale === "log" ? Math.exp(Math.log(p.min) + u * Math.log(p.max / p.min)) : p.min + u * (p.max - p.min);
      out[name] = p.type === "int" ? Math.round(v) : v;
    }
  }
  return out;
}

/** A validation error that depends on the parameters somewhat as a real one does. */
function errorOf(params, random) {
  const lr = Math.log10(params.lr ?? 0.01);
  const bowl = 0.028 + 0.02 * (lr + 2) ** 2 + 0.03 * (1 - (params.width ?? 64) / 128) ** 2 + 0.04 * (params.dropout ?? 0) ** 2;
  const diverged = lr > -0.75 && random() < 0.5;
  return diverged ? 0.7 + 0.2 * random() : Math.round((bowl + 0.008 * random()) * 539) / 539;
}

/** A cost that grows with the size of a network, such as milliseconds or megabytes. */
const costOf = (params) => 4 + (params.width ?? 64) * (1 + (params.depth_two ?? 8) / 64) / 10;

function seriesOf(trial, epochs, random) {
  const last = typeof trial.value === "number" ? trial.value : 0.1;
  const curve = (end, start, noise) => Array.from({ length: epochs }, (_, i) => end + (start - end) * Math.exp(-(i + 1) / 4) + noise * (random() - 0.5));
  const steps = Array.from({ length: epochs }, (_, i) => i + 1);
  const error = curve(last, 0.8, 0.01);
  if (epochs > 0) error[epochs - 1] = trial.state === "failed" ? "NaN" : last;
  if (trial.sweep === "ranks") return { val_error: { steps, values: error } };
  const metrics = { train_loss: curve(last * 1.6, 2.3, 0.03), val_loss: curve(last * 3, 2.2, 0.05), val_error: error, val_accuracy: error.map((e) => (e === "NaN" ? e : 1 - e)), lr: steps.map((s) => 0.05 * (1 + Math.cos((Math.PI * s) / 20))) };
  return Object.fromEntries(Object.entries(metrics).map(([name, values]) => [name, { steps, values }]));
}

const INITIAL = 8;

/** The suggestion of gp for the next trial of a sweep; its prediction is wrong by up to two
 * deviations. */
function reasonOf(trials, metrics, values, random) {
  const done = trials.filter((t) => t.state === "completed" && t.feasible);
  const best = done.reduce((a, t) => (a === null || t.value < a.value ? t : a), null);
  const known = { method: "gp", observed: trials.filter((t) => t.state === "completed").length, pending: trials.length % 3, failed: trials.filter((t) => t.state === "failed").length };
  const incumbent = best && metrics.length === 1 ? { incumbent: { number: best.number, value: best.value } } : {};
  if (trials.length < INITIAL) return { ...known, ...incumbent, phase: "initial", point: trials.length };
  const predicted = metrics.map(({ name }) => {
    const deviation = 0.02 * Math.abs(values[name]) * (0.5 + random());
    return { mean: values[name] + deviation * 4 * (random() - 0.5), deviation };
  });
  return {
    ...known, ...incumbent, phase: "model", acquisition: metrics.length > 1 ? "ehvi" : ["ucb", "ucb", "pe", "logei"][trials.length % 4], value: -1.25 - random(), runner_up: -3, model: "warped",
    candidates: 320, fit: { refitted: true, rows: known.observed }, predicted: metrics.length > 1 ? predicted : predicted[0], ...(trials.length % 7 === 0 ? { trust_region: 0.4 } : {}),
  };
}

/** A reason in words, as a server may give it. */
function whyOf(trial, metrics) {
  const s = trial.suggestion;
  if (trial.origin !== "suggested") return trial.origin === "known" ? "a known result, added by hand" : "enqueued by hand";
  if (s.method !== "gp") return `a point of ${s.method}`;
  const one = (p, name) => `${name}${p.mean.toPrecision(4)} ± ${p.deviation.toPrecision(2)}`;
  const predicted = s.phase !== "model" ? "" : `: predicted ${Array.isArray(s.predicted) ? s.predicted.map((p, i) => one(p, `${metrics[i].name} `)).join(", ") : one(s.predicted, "")}`;
  const how = s.phase !== "model" ? `point ${s.point} of the initial design` : s.acquisition === "ehvi" ? "chosen by expected hypervolume improvement" : "chosen by upper confidence bound";
  return `${how}${predicted}${s.incumbent ? `; the best so far was trial ${s.incumbent.number} with ${s.incumbent.value}` : ""}; ${s.observed} results seen`;
}

class Sweep {
  /** grouped: this many trials of one shape train in one process. */
  constructor({ id, grouped = 0, space = DIGITS, planned, started, seed = 7, method = "sobol", metric = { name: "val_error", goal: "minimize" }, metrics = [metric], constraints = [], asked = false, command = null, ranks = 1, description }) {
    this.random = numbers(seed);
    this.trials = [];
    this.space = space;
    this.grouped = grouped;
    this.base = {
      id, name: id, state: "running", reason: null, metric, metrics, constraints, known_trials: 0, for_runners: !asked, tags: [], method, seed: String(seed), planned_trials: planned, created_at: iso(started - 400), started_at: iso(started), finished_at: null,
      document: {
        name: id, ...(description ? { description } : {}), ...(metrics.length > 1 ? { metrics } : { metric }), ...(constraints.length > 0 ? { constraints } : {}), parameters: space, search: { method, seed }, limits: { max_trials: planned, max_restarts: 3, trial_timeout: "5m" },
        ...(ranks > 1 ? { resources: { ranks } } : {}), ...(asked ? {} : command ? { trial: { command, env: {} } } : { trial: { train: { dataset: "digits", model: { kind: "mlp", layers: ["${width}", "${depth_two}"], activation: "relu", dropout: "${dropout}" }, optimizer: { kind: "${optimizer}", lr: "${lr}", weight_decay: "${weight_decay}" }, epochs: 20, batch_size: 64 } } }),
        ensemble: { method: "greedy", size: 16 },
      },
    };
    this.clock = started;
  }

  add(state, runner = `box-${1 + (this.trials.length % 2)}`) {
    const params = drawParams(this.space, this.random);
    const began = (this.clock += 900 + Math.floor(this.random() * 900));
    const value = errorOf(params, this.random);
    const { metrics, constraints, method } = this.base;
    const values = { [metrics[0].name]: value, ...Object.fromEntries([...metrics.slice(1).map((m) => m.name), ...constraints.map((c) => c.metric)].map((name) => [name, costOf(params)])) };
    const suggestion = method === "gp" ? reasonOf(this.trials, metrics, values, this.random) : { method, index: this.trials.length };
    const trial = {
      sweep: this.base.id, number: this.trials.length, state: "running", origin: "suggested", attempt: 1, restarts: 0, params, seed: String(Math.floor(this.random() * 2 ** 53)), value: null, step: null, metrics: {},
      suggestion, feasible: null, index: this.trials.length, seen: null, finish_seq: null, client: null, shape: this.grouped ? "digits; mlp up to 91 42; relu; cross_entropy; float32; micro-batch 64; split 0.25 0; standardized" : null,
      group: this.grouped ? `${this.base.id}.g${this.trials.length - (this.trials.length % this.grouped)}.1` : null, runner, reason: null, created_at: iso(began - 20), started_at: iso(began), finished_at: null,
      get ran_ms() { return this.started_at === null ? null : this[RAN] ?? (this.finished_at ? Date.parse(this.finished_at) - Date.parse(this.started_at) : 0); },
      get running_since() { return this.state === "running" ? this.started_at : null; },
      set ran_ms(_) {}, set running_since(_) {}, // of a copy that is taken back: they follow from the rest
    };
    this.trials.push(trial);
    if (state === "queued") Object.assign(trial, { state, attempt: 0, runner: null, group: null, started_at: null });
    else if (state === "running") Object.assign(trial, { value: value + 0.05, step: 7 });
    else this.end(trial, state, value, began + 2600 + Math.floor(this.random() * 1500), values);
    return trial;
  }

  end(trial, state, value, at, values = { val_error: value }) {
    const completed = state === "completed";
    const feasible = completed ? this.base.constraints.every((c) => values[c.metric] <= c.max) : null;
    Object.assign(trial, { state, finished_at: iso(at), value: completed ? value : null, step: 20, feasible, metrics: completed ? values : {} });
    if (state === "failed") trial.reason = "exit code 1: loss is not a number at step 6";
  }

  get view() {
    const counts = { queued: 0, running: 0, paused: 0, completed: 0, pruned: 0, failed: 0, cancelled: 0, total: this.trials.length };
    for (const t of this.trials) counts[t.state]++;
    const sign = this.base.metric.goal === "minimize" ? 1 : -1;
    const done = this.trials.filter((t) => t.state === "completed" && t.feasible && typeof t.value === "number");
    const best = done.reduce((a, t) => (a === null || t.value * sign < a.value * sign ? t : a), null);
    return { ...this.base, counts: this.counts ?? counts, best: best && { number: best.number, value: best.value, params: best.params, expected: null, told: { number: best.number, value: best.value } }, regret: this.bounds().at(-1) ?? null };
  }

  /** What could still be gained, invented, after the counts of trials at which the server computes it. */
  bounds() {
    const n = this.base.metrics.length > 1 ? 0 : this.trials.filter((t) => t.state === "completed").length;
    const items = [];
    for (let completed = 4; completed <= n; completed += Math.max(1, Math.floor(completed / 16))) items.push({ completed, finish_seq: completed, bound: 0.3 * 0.9 ** items.length, relative: 2 * 0.9 ** items.length, enough: completed >= 10 + Object.keys(this.space).length, made_at: iso(this.clock) });
    return items;
  }

  /** The front; the reference and the hypervolume are invented. */
  pareto() {
    const { metrics } = this.base;
    const cost = (t) => metrics.map((m) => (m.goal === "minimize" ? 1 : -1) * t.metrics[m.name]);
    const beats = (a, b) => a.every((v, i) => v <= b[i]) && a.some((v, i) => v < b[i]);
    const fit = this.trials.filter((t) => t.state === "completed" && t.feasible).map((t) => [t, cost(t)]);
    const items = fit.filter(([, c]) => !fit.some(([, d]) => beats(d, c))).map(([t]) => t);
    return { metrics, items, reference: items.length > 0 ? metrics.map(() => 1) : null, hypervolume: items.length > 0 ? 12.3456 : null, next_cursor: null };
  }

  /** Invented, too, but with the present number of trials. If `older` is set, it is returned once,
   * as if the server had computed it for an earlier request. */
  importance(metric = this.base.metric.name) {
    const { older } = this;
    if (older) {
      this.older = null;
      return { ...older, stale: true };
    }
    const trials = this.trials.filter((t) => t.state === "completed").length;
    const names = Object.keys(this.space);
    if (metric !== this.base.metric.name) names.reverse(); // what matters for another objective is another
    if (trials < 2 * names.length + 2) return { metric, trials, stale: false, r2: null, method: "gp-sobol", parameters: [], reason: `${trials} trials have a value; it takes ${2 * names.length + 2} (two for each parameter, and two)` };
    const parameters = names.map((name, i) => {
      const total = 0.8 / (i + 1);
      return { name, first: 0.7 * total, first_low: 0.6 * total, first_high: 0.8 * total, total, total_low: 0.85 * total, total_high: Math.min(1, 1.3 * total), top: 1 / names.length, conditional: this.space[name].when !== undefined };
    });
    return { metric, trials, stale: false, r2: 0.87, method: "gp-sobol", parameters, reason: null };
  }

  /** Invented, too: a bowl over the axes, 12 places of each number. */
  surfaces(metric = this.base.metric.name, x = null, y = null) {
    const done = this.trials.filter((t) => t.state === "completed");
    const shared = { metric, trials: done.length, stale: false };
    if (done.length < 10) return { ...shared, r2: null, reason: `${done.length} trials have a value; it takes 10`, surfaces: [] };
    const axis = (name) => { const p = this.space[name]; return { name, values: p.values ?? Array.from({ length: 12 }, (_, i) => (p.scale === "log" ? p.min * (p.max / p.min) ** (i / 11) : p.min + ((p.max - p.min) * i) / 11)) }; };
    const off = (i, n) => (i / Math.max(1, n - 1) - 0.4) ** 2;
    const surface = (a, b) => {
      const mean = (b?.values ?? [0]).flatMap((_, k) => a.values.map((v, i) => (i === 3 && b === null && a.name === "momentum" ? null : 0.05 + 0.2 * off(i, a.values.length) + (b ? 0.1 * off(k, b.values.length) : 0))));
      return { x: a, y: b, base: done[0].params, base_trial: done[0].number, mean, deviation: mean.map((v) => (v === null ? null : 0.01)), reason: null };
    };
    return { ...shared, r2: 0.87, reason: null, surfaces: x === null ? Object.keys(this.space).map((name) => surface(axis(name), null)) : [surface(axis(x), y === null ? null : axis(y))] };
  }

  ensemble() {
    if (this.base.state !== "completed") return { state: "pending" };
    if (this.base.document.trial?.command) return { state: "none", reason: "fewer than two completed trials left predictions.npy and targets.npy", candidates: this.predicted ?? 0 };
    const top = this.trials.filter((t) => t.state === "completed" && t.feasible).sort((a, b) => a.value - b.value).slice(0, 6);
    const counts = [5, 4, 3, 2, 1, 1];
    return {
      state: "ready", reason: null, method: "greedy", size: 16, folds: 5, metric: "error", goal: "minimize", is_sweep_metric: true, rows: 539, value: 0.01487, value_select: 0.0111, candidates: 38,
      gain: { value: 0.0037, low: -0.0021, high: 0.0095, probability: 0.9, within_noise: true }, recommended: "ensemble",
      best_single: { number: top[0].number, value: top[0].value, value_select: top[0].value + 0.002, picked: [top[0].number, top[1].number] },
      members: top.map((t, i) => ({ number: t.number, weight: counts[i] / 16, count: counts[i], value: t.value, params: t.params })),
    };
  }
}

/** Three sweeps that differ in their seeds. */
function twinSweeps() {
  return [41, 43, 47].map((seed, i) => {
    const sweep = new Sweep({ id: `twin-${i + 1}`, planned: 30, started: START - 40_000_000 + 1000 * i, seed, method: "random" });
    for (let n = 0; n < 30; n++) sweep.add("completed");
    Object.assign(sweep.base, { state: "completed", finished_at: iso(sweep.clock + 4000) });
    return sweep;
  });
}

/** `twins`: with sweeps that differ in their seeds, too. */
function makeSweeps(twins) {
  const done = new Sweep({ id: "digits-mlp", grouped: 8, planned: 40, started: START, description: "Forty small networks on handwritten digits" });
  for (let i = 0; i < 40; i++) done.add(i === 11 || i === 29 ? "failed" : "completed");
  Object.assign(done.trials[17], { attempt: 2, restarts: 1, group: null }); // after a lost attempt it runs alone
  Object.assign(done.base, { state: "completed", finished_at: iso(done.clock + 4000), reason: "at most 0.008 of val_error was left to gain after 38 completed trials (stop_when.regret is 0.01)" });
  done.base.document.limits.stop_when = { regret: 0.01, min_trials: 30 };
  const live = new Sweep({ id: "live", planned: 60, started: Date.now() - 50_000, seed: 3, method: "random" });
  for (let i = 0; i < 24; i++) live.add(i % 9 === 8 ? "failed" : "completed");
  for (let i = 0; i < 4; i++) live.add("running");
  const tuned = new Sweep({ id: "tuned", planned: 42, started: START - 3_600_000, seed: 19, method: "gp", constraints: [{ metric: "latency/p99.ms", max: 16 }], description: "Networks that answer in time" });
  for (let i = 0; i < 42; i++) tuned.add(i === 13 ? "failed" : "completed");
  Object.assign(tuned.trials[0], { origin: "known", suggestion: { method: "known" }, attempt: 0, runner: null, index: null });
  Object.assign(tuned.trials[1], { origin: "enqueued", suggestion: { method: "enqueued" }, index: null });
  // Better than all others, but infeasible.
  Object.assign(tuned.trials[30], { value: 0.001, feasible: false, metrics: { val_error: 0.001, "latency/p99.ms": 21.5 } });
  Object.assign(tuned.base, { state: "completed", known_trials: 1, finished_at: iso(tuned.clock + 4000) });
  const two = new Sweep({ id: "two", planned: 60, started: START - 7_200_000, seed: 23, method: "gp", metrics: [{ name: "val_error", goal: "minimize" }, { name: "latency/p99.ms", goal: "minimize" }] });
  for (let i = 0; i < 60; i++) two.add("completed");
  Object.assign(two.base, { state: "completed", finished_at: iso(two.clock + 4000) });
  const three = new Sweep({ id: "three", planned: 30, started: START - 7_300_000, seed: 31, method: "gp", metrics: [...two.base.metrics, { name: "depth", goal: "maximize" }], constraints: [{ metric: "latency/p99.ms", max: 16 }] });
  for (let i = 0; i < 30; i++) {
    const t = three.add("completed");
    t.metrics.depth = t.params.depth_two;
  }
  Object.assign(three.base, { state: "completed", finished_at: iso(three.clock + 4000) });
  const asked = new Sweep({ id: "asked", planned: 30, started: START - 10_800_000, seed: 29, method: "gp", asked: true });
  const big = new Sweep({ id: "big", planned: 5000, started: START - 86_400_000, seed: 11, method: "random" });
  for (let i = 0; i < 5000; i++) {
    const t = big.add(i % 97 === 96 ? "failed" : "completed");
    t.suggestion = { method: "gp", phase: "model", acquisition: "ucb", predicted: { mean: 0.05 + 0.02 * Math.sin(i), deviation: 0.01 }, observed: i, pending: 0, failed: 0 };
  }
  Object.assign(big.base, { method: "gp", state: "completed", finished_at: iso(START - 3_600_000) });
  const ranks = new Sweep({ id: "ranks", planned: 4, started: START - 90_000_000, seed: 13, method: "random", command: ["python3", "train.py"], ranks: 4 });
  for (let i = 0; i < 4; i++) ranks.add(i === 3 ? "queued" : "completed", null);
  Object.assign(ranks.base, { state: "completed", finished_at: iso(START - 3_700_000) });
  // Long figures, and no trial that the page could ask for.
  const wide = new Sweep({ id: "wide", planned: 50_000, started: START - 95_000_000, seed: 17, method: "random" });
  wide.counts = { queued: 0, running: 0, paused: 0, completed: 50_000, pruned: 0, failed: 0, cancelled: 0, total: 50_000 };
  Object.assign(wide.base, { state: "completed", finished_at: iso(START - 90_000_000) });
  const nasty = new Sweep({ id: "nasty", planned: 3, started: START + 1000, seed: 5, description: NASTY, space: { [NASTY]: { type: "categorical", values: [NASTY] }, lr: DIGITS.lr }, metric: { name: "__proto__", goal: "maximize" } }); // the API lets no metric be named NASTY
  for (let i = 0; i < 3; i++) nasty.add(i === 2 ? "failed" : "completed", NASTY);
  nasty.trials[0].value = "Infinity";
  nasty.trials[2].reason = NASTY;
  Object.assign(nasty.base, { state: "failed", reason: NASTY, finished_at: iso(START + 9000), ensemble: undefined });
  const stopped = stoppedSweep();
  const empty = new Sweep({ id: "empty", planned: 100, started: Date.now() - 3000, seed: 2 });
  Object.assign(empty.base, { state: "paused", started_at: null });
  return [empty, live, nasty, done, tuned, two, three, asked, big, stopped, ranks, wide, ...(twins ? twinSweeps() : [])];
}

function makeDatasets() {
  const files = [{ role: "table", sha256: "ab".repeat(32), size: 1_234_567 }];
  return [
    { name: "digits", format: "npz", task: "classification", input: "image", target: null, rows: 1797, features: 64, outputs: 10, classes: Array.from({ length: 10 }, (_, i) => String(i)), image: { height: 8, width: 8, channels: 1 }, sha256: "cd".repeat(32), files, description: null, created_at: iso(START) },
    {
      name: "people", format: "csv", task: "classification", input: "table", target: "income", rows: 1000, features: 4, outputs: 2, classes: ["<=50K", NASTY], sha256: "ef".repeat(32), files, description: NASTY, created_at: iso(START), test: { rows: 250, train_sha256: "01".repeat(32) },
      columns: [{ name: "age", kind: "numeric", missing: 0 }, { name: NASTY, kind: "categorical", missing: 250, values: ["a", NASTY], other: 3 }, { name: "since", kind: "date", missing: 0, cycles: ["week"] }, { name: "note", kind: "text", missing: 10, buckets: 64 }],
    },
  ];
}

function previewOfDataset(name) {
  const numbers = { least: 17, most: 90, mean: 38.6, deviation: 13.6, from: 16, width: 2, counts: [4, 40, 70, 66, 90, 84, 71, 60, 66, 52, 49, 48, 40, 33, 31, 30, 29, 24, 20, 18, 15, 12, 11, 9, 8, 6, 4, 3, 2, 1, 0, 1, 1, 0, 0, 0, 1, 1] };
  const income = { name: "income", kind: "categorical", target: true, missing: 0, values: { different: 2, top: [{ value: "<=50K", rows: 760 }, { value: NASTY, rows: 240 }], other: 0 } };
  if (name === "digits") return { rows_looked_at: 1797, columns_in_all: 2, columns: [{ ...income, name: "target", values: { different: 10, top: Array.from({ length: 10 }, (_, i) => ({ value: String(i), rows: 170 + i })), other: 0 } }, { name: "values", kind: "numeric", target: false, missing: 0, numbers: { ...numbers, least: 0, most: 16, from: 0, width: 1, counts: numbers.counts.slice(0, 17) } }], first_rows: [] };
  return {
    rows_looked_at: 1000, columns_in_all: 5,
    columns: [income, { name: "age", kind: "numeric", target: false, missing: 0, numbers }, { name: NASTY, kind: "categorical", target: false, missing: 250, values: { different: 5, top: [{ value: "a", rows: 500 }, { value: NASTY, rows: 247 }], other: 3 } },
      { name: "since", kind: "date", target: false, missing: 0, numbers: { ...numbers, least: 19000, most: 19070.5, mean: 19030, from: 19000 } }, { name: "note", kind: "text", target: false, missing: 10, numbers: { ...numbers, least: 3, most: 60, from: 0 } }],
    first_rows: Array.from({ length: 20 }, (_, i) => [i % 4 ? "<=50K" : NASTY, String(17 + i), i % 3 ? "a" : "", "2022-01-08", `a note of ${i}`]),
  };
}

const RUNGS = [1, 3, 9];
/** Of a trial that waits: for how long it ran before. */
const RAN = Symbol("ran");

/** A sweep with early stopping. One trial did not obey: it completed although it was pruned. */
function stoppedSweep() {
  const sweep = new Sweep({ id: "stopped", planned: 45, started: START - 82_000_000, seed: 37, method: "random" });
  const rungs = RUNGS.map((step) => ({ step, reached: 0, stopped: 0, paused: 0, obeyed: 0, disobeyed: 0 }));
  for (let i = 0; i < 45; i++) {
    const last = i % 9 === 0 ? 3 : i % 3 === 0 ? 2 : 1; // this many rungs
    const paused = i % 11 === 4;
    const ignored = i === 22;
    const t = sweep.add(last === 3 || ignored ? "completed" : "pruned");
    const decision = paused ? "pause" : "prune";
    t.rungs = RUNGS.slice(0, last).map((step, rung) => {
      const on = rung + 1 < last || last === 3;
      const of = rungs[rung].reached++ + 1;
      return { rung, step, value: i === 10 ? null : 0.1 + 0.5 / step + i / 1000, values: [], rank: on ? 1 : of, of, decision: on ? "go_on" : decision, reason: on ? `rank 1 of ${of}: one in 3 goes on` : `rank ${of} of ${of}, of which ${Math.floor(of / 3)} go on ${i === 12 ? NASTY : ""}`, seq: 10 * i + rung, promoted_seq: rung === 1 && i === 9 ? 95 : null };
    });
    if (last === 3) continue;
    const at = rungs[last - 1];
    at[ignored ? "disobeyed" : "obeyed"]++;
    if (ignored) continue;
    at[paused ? "paused" : "stopped"]++;
    t.step = RUNGS[last - 1];
    if (paused) Object.assign(t, { state: "paused", finished_at: null, [RAN]: 83_000 });
  }
  // As population based training leaves them: two trials go on from trial 9.
  Object.assign(sweep.trials[41], { origin: "forked", parent: 9, fork_step: 3 });
  Object.assign(sweep.trials[44], { origin: "forked", parent: 9, fork_step: 9 });
  const spent = sweep.trials.reduce((sum, t) => sum + t.step, 0);
  sweep.base.early_stopping = { rungs, steps_spent: spent, steps_saved: 20 * sweep.trials.length - spent, warning: null };
  sweep.base.document.early_stopping = { method: "asha", min_steps: 1, max_steps: 20, eta: 3 };
  return sweep;
}

const problem = (status, code, detail) => ({ status, type: "application/problem+json", body: { type: "about:blank", title: code, status, code, detail } });

export async function startFixture(dist, port = 0, { twins = false } = {}) {
  const sweeps = new Map(makeSweeps(twins).map((s) => [s.base.id, s]));
  const artifact = Buffer.from("not really a model\n");
  const files = invented(NASTY);
  const sha256 = createHash("sha256").update(artifact).digest("hex");
  const clients = new Set();
  const events = [];
  const seen = [];                            // [method, template, answer] of every JSON answer, for the schema check
  const requests = [];                        // every request of the API as it came: {method, path, body, from, to}, times in ms
  const changed = new Map();                  // the last event of each trial that had one
  const holds = [];
  const failures = [];
  let nextEvent = 1;
  let streams = 0;

  const registry = makeModels({ iso, problem, emit, sweeps, sha256, nasty: NASTY });

  function emit(type, fields) {
    const event = { id: String(nextEvent++), type, time: iso(Date.now()), ...fields };
    events.push(event);
    const trial = fields.number === undefined ? undefined : sweeps.get(fields.sweep)?.trials[fields.number];
    if (trial) changed.set(trial, nextEvent - 1);
    for (const c of clients) if (c.sweep === null || c.sweep === event.sweep) sendEvent(c, event);
    return event.id;
  }

  /** Events may be delayed, but stay in order. */
  function sendEvent(client, event) {
    client.sent = Promise.all([client.sent, late()]).then(() => {
      if (clients.has(client)) client.response.write(`id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    });
  }

  function stream(request, response, sweep) {
    if (response.destroyed) return; // the page was left before the stream began
    streams++;
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store", "Content-Security-Policy": CSP });
    response.write(": hello\n\n");
    const client = { response, sweep, sent: Promise.resolve() };
    clients.add(client);
    response.on("close", () => clients.delete(client));
    const after = request.headers["last-event-id"];
    if (after !== undefined) for (const e of events) if (Number(e.id) > Number(after) && (sweep === null || e.sweep === sweep)) sendEvent(client, e);
  }

  function page(items, query, fallback) {
    const from = Number(query.get("cursor") ?? 0);
    const size = Number(query.get("page_size") ?? fallback);
    return { items: items.slice(from, from + size), next_cursor: from + size < items.length ? String(from + size) : null };
  }

  /* One trial has four ranks; two were lost, and one of them has not been replaced yet. */
  const hasGang = (t) => t.sweep === "ranks" || (t.sweep === "digits-mlp" && t.number === 38);

  function gangOf(t) {
    const seat = (n, rank, state, more) => ({ seat: n, rank, runner: `gpu-${n % 4}`, host: `node${n % 4}.cluster`, state, joined_epoch: 1 + n, step: 1200, sent_bytes: 350_000_000, since: t.started_at, ended_at: null, reason: null, ...more });
    const seats = [seat(0, 0, "running"), seat(1, null, "lost", { step: 640, ended_at: t.started_at, reason: `signal 9 ${NASTY}` }), seat(2, 1, "running"), seat(3, null, "lost", { ended_at: t.started_at, reason: "the lease of runner gpu-3 ended" }), seat(4, 2, "running"), seat(5, null, "listening", { joined_epoch: null, step: null, sent_bytes: 0 })];
    return { ranks: 4, min_ranks: 1, elastic: true, state: "running", epoch: 7, step: 1200, deaths: 2, sent_bytes: 1_750_000_000, started_at: t.started_at, seats };
  }

  function attemptsOf(t) {
    const last = { attempt: t.attempt, runner: t.runner, group: t.group, started_at: t.started_at, ended_at: t.finished_at, outcome: t.state === "running" ? null : t.state, reason: t.reason, exit_code: t.state === "failed" ? 1 : t.state === "completed" ? 0 : null };
    if (t.attempt === 0) return [];
    if (hasGang(t)) return [{ ...last, runner: null, group: null, gang: { ranks: 4, state: "running", epoch: 7, deaths: 2, live: 3 } }];
    return t.attempt === 1 ? [last] : [{ ...last, attempt: 1, group: `${t.sweep}.g16.1`, outcome: "lost", reason: "the lease ended", exit_code: null }, last];
  }

  /** A minute of a machine with a GPU; one sample is not known. */
function usageOf(t) {
  const random = numbers(t.number + 900);
  const list = (of) => Array.from({ length: 60 }, (_, i) => (i === 20 ? null : of(i)));
  return { attempt: Math.max(1, t.attempt), seat: null, every_ms: 1000, cpu: list((i) => 1 + 2 * random() + (i > 30 ? 1 : 0)), memory_bytes: list((i) => 2 ** 30 + i * 2 ** 24), gpu: list(() => 0.5 + random() / 2), gpu_memory_bytes: list(() => 6 * 2 ** 30) };
}

function logOf(t) {
    const nasty = t.sweep === "nasty" ? `${NASTY}\n` : "";
    const lines = Array.from({ length: t.step ?? 0 }, (_, i) => `epoch ${i + 1}/20  train_loss ${(2.2 * Math.exp(-i / 4) + 0.05).toFixed(4)}  val_error ${(0.7 * Math.exp(-i / 4) + 0.03).toFixed(4)}`);
    return { attempt: t.attempt, truncated: hasFiles(t), text: `${nasty}assay-train: digits, 1797 rows, 64 features, 10 classes\n${lines.join("\n")}\n` };
  }

  /** One trial has files of all kinds. */
  const hasFiles = (t) => t.sweep === "digits-mlp" && t.number === 17;

  function filesOf(t, kind) {
    if (kind === "log") return hasFiles(t) ? files.log : [];
    return [...(t.state === "completed" ? [{ path: "model.safetensors", size: artifact.length, sha256 }, { path: "predictions.npy", size: 21_688, sha256 }] : []), ...(hasFiles(t) ? files.artifact : [])];
  }

  function trialAnswer(sweep, number, below, method, query) {
    const t = sweep.trials[Number(number)];
    const at = `/v1/sweeps/{sweep}/trials/{number}${below ? `/${below}` : ""}`;
    if (!t) return problem(404, "not_found", `sweep ${sweep.base.id} has no trial ${number}`);
    if (method === "POST" && below === "cancel") {
      if (t.finished_at) return problem(409, "conflict", `trial ${number} is ${t.state}`);
      Object.assign(t, { state: "cancelled", reason: "cancelled by a person", finished_at: iso(Date.now()) });
      emit("trial.changed", { sweep: t.sweep, number: t.number, state: t.state, attempt: t.attempt });
      return { at, body: t };
    }
    if (method === "POST" && below === "retry") {
      if (t.state !== "failed" && t.state !== "cancelled") return problem(409, "conflict", `trial ${number} is ${t.state}`);
      retry(t);
      return { at, body: t };
    }
    if (below === `attempts/${t.attempt}/gang` && hasGang(t)) return { at: "/v1/sweeps/{sweep}/trials/{number}/attempts/{attempt}/gang", body: gangOf(t) };
    if (below === "measurements") return { at, body: { series: t.step ? seriesOf(t, t.step, numbers(t.number)) : {}, next_cursor: null } };
    if (below === "log") return { at, body: logOf(t) };
    if (below === "usage") return { at, body: { items: t.state === "queued" ? [] : [usageOf(t)] } };
    if (below === "artifacts") return { at, body: { items: filesOf(t, query.get("kind") ?? "artifact") } };
    return { at, body: { ...t, why: whyOf(t, sweep.base.metrics), notes: t.number === 17 ? { optimizer: "AdamW(lr=0.01)", "<b>host</b>": "<i>node-7</i>" } : {}, attempts: attemptsOf(t), forks: sweep.trials.filter((f) => f.parent === t.number).map((f) => ({ number: f.number, step: f.fork_step })) } };
  }

  function retry(t) {
    Object.assign(t, { state: "queued", reason: null, finished_at: null });
    emit("trial.changed", { sweep: t.sweep, number: t.number, state: t.state, attempt: t.attempt });
    return t.number;
  }

  /** As the server: null removes a limit; a sweep that has ended runs on if it has work. */
  function changeLimits(sweep, limits) {
    const bad = Object.entries(limits).find(([, v]) => typeof v === "string" && !/^\d+(\.\d*)?(ms|s|m|h|d)?$/.test(v));
    if (bad) return problem(400, "invalid", `/limits/${bad[0]}: found '${bad[1]}', expected a duration such as 90s, 5m or 4h`);
    for (const [name, value] of Object.entries(limits)) {
      if (value === null) delete sweep.base.document.limits[name];
      else sweep.base.document.limits[name] = value;
    }
    sweep.base.planned_trials = sweep.base.document.limits.max_trials;
    const notes = sweep.base.planned_trials < sweep.trials.length ? [`${sweep.trials.length} trials exist: no more are made`] : [];
    emit("sweep.changed", { sweep: sweep.base.id, state: sweep.base.state });
    return { at: "/v1/sweeps/{sweep}", body: { ...sweep.view, notes } };
  }

  /** All trials, or those that changed after the event `since`. */
  function tableFor(sweep, since) {
    const whole = since === null;
    if (sweep.invented) {
      const { columns, shown, before } = sweep.invented;
      const from = whole ? 0 : before.find(([version]) => version >= Number(since))?.[1] ?? shown;
      return encodeRows(columns, from, shown, { version: nextEvent - 1, whole });
    }
    const trials = whole ? sweep.trials : sweep.trials.filter((t) => (changed.get(t) ?? 0) > Number(since));
    const judged = [...sweep.base.metrics.map((m) => m.name), ...sweep.base.constraints.map((c) => c.metric)];
    return tableOf(trials, { version: nextEvent - 1, whole, params: Object.keys(sweep.space), metrics: [...new Set(judged)], objectives: sweep.base.metrics.map((m) => m.name) });
  }

  const datasets = new Map(makeDatasets().map((d) => [d.name, d]));

  /** A few rules of the server, for a document that is being written. */
  function faultsOf(document) {
    const known = ["name", "description", "tags", "metric", "metrics", "constraints", "parameters", "search", "limits", "trial", "ensemble", "resources", "early_stopping"];
    const errors = Object.keys(document).filter((k) => !known.includes(k)).map((k) => ({ pointer: `/${k}`, detail: `/${k} is unknown` }));
    for (const [name, p] of Object.entries(document.parameters ?? {})) if (p?.min > p?.max) errors.push({ pointer: `/parameters/${name}/max`, detail: `/parameters/${name}/max is ${p.max}, must be above min, ${p.min}` });
    if (!document.parameters) errors.push({ pointer: "/parameters", detail: "/parameters is missing" });
    return errors;
  }

  function previewOf(document) {
    const errors = faultsOf(document);
    if (errors.length > 0) return { valid: false, errors, name: null, method: null, seed: null, planned_trials: null, cells: null, suggestions: [] };
    const { method = "gp", seed = 7 } = document.search ?? {};
    const random = numbers(3);
    const suggestions = Array.from({ length: 4 }, (_, i) => ({ params: drawParams(document.parameters, random), why: `point ${i} of ${method} ${NASTY}` }));
    return { valid: true, errors, name: document.name, method, seed: String(seed), planned_trials: document.limits?.max_trials ?? null, cells: method === "grid" ? 1234 : null, suggestions };
  }

  function create(document) {
    const [error] = faultsOf(document);
    if (error) return problem(400, "invalid", error.detail);
    const sweep = new Sweep({ id: document.name, space: document.parameters, planned: document.limits.max_trials, started: Date.now(), metric: document.metric });
    sweeps.set(document.name, sweep);
    return { at: "/v1/sweeps", status: 201, body: sweep.view };
  }

  function enqueue(sweep, rows) {
    const bad = rows.findIndex((r) => Object.entries(r.params).some(([name, v]) => v > sweep.space[name]?.max));
    if (bad >= 0) return problem(400, "invalid", `/${bad}/params/${Object.keys(rows[bad].params).find((name) => rows[bad].params[name] > sweep.space[name]?.max)} is out of range`);
    const made = rows.map(({ params }) => Object.assign(sweep.add("queued"), { params, origin: "enqueued", suggestion: { method: "enqueued" } }));
    for (const t of made) emit("trial.changed", { sweep: t.sweep, number: t.number, state: t.state, attempt: 0 });
    return { at: "/v1/sweeps/{sweep}/trials", status: 201, body: { sweep: sweep.base.id, numbers: made.map((t) => t.number), added: made.length } };
  }

  /** Lines of a metric, or attempts: of all trials, or of those that changed after the event `since`. */
  function filesFor(sweep, file, query) {
    const since = query.get("since");
    const trials = since === null ? sweep.trials : sweep.trials.filter((t) => (changed.get(t) ?? 0) > Number(since));
    const more = { version: nextEvent - 1, whole: since === null };
    if (file === "attempts") return attemptsTable(trials.flatMap((t) => attemptsOf(t).map((a) => ({ ...a, trial: t.number, client: t.client, seats: a.gang ? gangOf(t).seats : [] }))), more);
    const metric = query.get("metric") ?? sweep.base.metric.name;
    return pointsTable(trials.flatMap((t) => { const own = t.step ? seriesOf(t, t.step, numbers(t.number)) : {}; return Object.hasOwn(own, metric) ? [{ trial: t.number, ...own[metric] }] : []; }), more);
  }

  const drained = new Set();

  /** Tags and remarks of a sweep. */
  function changeNotes(sweep, { tags, remarks }) {
    if (tags !== undefined) sweep.base.tags = tags;
    if (remarks !== undefined) sweep.base.remarks = remarks;
    return { at: "/v1/sweeps/{sweep}", body: sweep.view };
  }

  function tagTrials(sweep, { numbers, add = [], remove = [] }) {
    for (const t of sweep.trials.filter((x) => numbers.includes(x.number))) t.tags = [...(t.tags ?? []).filter((tag) => !remove.includes(tag)), ...add];
    return { at: "/v1/sweeps/{sweep}/tags", body: { changed: numbers.length } };
  }

  function answer(method, parts, query, body) {
    const [kind, id, below, number, ...rest] = parts;
    if (kind === "runners" && below === "drain") {
      drained.add(id);
      return { at: "/v1/runners/{runner}/drain", status: 204, body: null };
    }
    if (kind === "runners") return { at: "/v1/runners", body: { items: [1, 2].map((n) => ({ name: `box-${n}`, state: n === 1 ? "live" : "lost", host: "node7", version: "0.1.0", slots: 4, gpus: n === 1 ? ["NVIDIA H200"] : [], cpus: 16, used_cpus: 8 * (2 - n), memory_bytes: 64e9, used_memory_bytes: 0, draining: drained.has(`box-${n}`), running: n === 1 ? 9 : 0, used_slots: n === 1 ? 2 : 0, epoch: n, registered_at: iso(START), seen_at: iso(Date.now() - (n === 1 ? 800 : 95_000)) })), next_cursor: null } };
    if (kind === "models") return registry.answer(method, parts, body);
    if (kind === "datasets" && below === "preview") return { at: "/v1/datasets/{dataset}/preview", body: previewOfDataset(id) };
    if (kind === "datasets" && below === "models") return { at: "/v1/datasets/{dataset}/models", body: page(registry.learned(id), query, 100) };
    if (kind === "datasets") return id ? (datasets.has(id) ? { at: "/v1/datasets/{dataset}", body: datasets.get(id) } : problem(404, "not_found", `there is no data set ${id}`)) : { at: "/v1/datasets", body: page([...datasets.values()].map(({ columns, ...d }) => d), query, 100) };
    if (kind === "preview") return { at: "/v1/preview", body: previewOf(body) };
    if (kind !== "sweeps") return problem(404, "not_found", "there is no such path");
    if (!id && method === "POST") return create(body);
    if (!id) return { at: "/v1/sweeps", body: page([...sweeps.values()].filter((s) => query.get("dataset") === null || s.base.document.trial?.train?.dataset === query.get("dataset")).map((s) => s.view), query, 100) };
    const sweep = sweeps.get(id);
    if (!sweep) return problem(404, "not_found", `there is no sweep ${id}`);
    if (below === "table") return { at: "/v1/sweeps/{sweep}/table", table: tableFor(sweep, query.get("since")) };
    if (below === "points" || below === "attempts") return { at: `/v1/sweeps/{sweep}/${below}`, table: filesFor(sweep, below, query) };
    if (below === "trials" && number !== undefined) return trialAnswer(sweep, number, rest.join("/"), method, query);
    if (below === "trials" && method === "POST") return enqueue(sweep, body);
    if (below === "trials") return { at: "/v1/sweeps/{sweep}/trials", body: page(sweep.trials, query, 100) };
    if (below === "importance") return { at: "/v1/sweeps/{sweep}/importance", body: sweep.importance(query.get("metric") ?? undefined) };
    if (below === "regret" && number === "checks") return { at: "/v1/sweeps/{sweep}/regret/checks", body: { items: sweep.bounds() } };
    if (below === "surface") return { at: "/v1/sweeps/{sweep}/surface", body: sweep.surfaces(query.get("metric") ?? undefined, query.get("x"), query.get("y")) };
    if (below === "pareto") return { at: "/v1/sweeps/{sweep}/pareto", body: sweep.pareto() };
    if (below === "ensemble") return { at: "/v1/sweeps/{sweep}/ensemble", body: id === "nasty" ? { state: "none", reason: NASTY } : sweep.ensemble() };
    if (below === "retry") {
      const numbers = sweep.trials.filter((t) => t.state === body.state).slice(0, RETRY_MOST).map((t) => retry(t));
      return { at: "/v1/sweeps/{sweep}/retry", body: { numbers, sweep: sweep.view } };
    }
    if (method === "DELETE") {
      sweeps.delete(id);
      return { at: "/v1/sweeps/{sweep}", status: 204, body: null };
    }
    if (below === "tags") return tagTrials(sweep, body);
    if (method === "PATCH" && (body.tags || body.remarks !== undefined)) return changeNotes(sweep, body);
    if (method === "PATCH" && body.limits) return changeLimits(sweep, body.limits);
    if (method === "PATCH") {
      sweep.base.state = body.state;
      if (body.state === "cancelled") for (const t of sweep.trials) if (!t.finished_at) Object.assign(t, { state: "cancelled", finished_at: iso(Date.now()) });
      emit("sweep.changed", { sweep: id, state: body.state });
    }
    return { at: "/v1/sweeps/{sweep}", body: sweep.view };
  }

  async function file(path, response) {
    const name = path === "/" ? "/index.html" : normalize(path);
    try {
      const data = await readFile(join(dist, name));
      response.writeHead(200, { "Content-Type": TYPES[extname(name)] ?? "application/octet-stream", "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff" });
      response.end(data);
    } catch {
      response.writeHead(404).end();
    }
  }

  /** Remove and return the first entry of a list that matches this request. */
  function takeFor(list, method, path) {
    const at = list.findIndex((x) => x.method === method && x.path === path);
    return at < 0 ? undefined : list.splice(at, 1)[0];
  }

  /** The body; null: the page was left before it had sent all of it. */
  async function bodyOf(request) {
    try {
      let text = "";
      for await (const piece of request) text += piece;
      return text;
    } catch {
      return null;
    }
  }

  /** The answer is made when the request arrives; it may be sent much later. */
  async function api(request, response, url) {
    const { method } = request;
    const held = takeFor(holds, method, url.pathname);
    const log = { method, path: url.pathname, query: url.searchParams.toString(), body: null, from: performance.now(), to: Infinity };
    requests.push(log);
    const text = await bodyOf(request);
    if (text === null) return undefined;
    log.body = text ? JSON.parse(text) : null;
    await late(0.5);
    const parts = url.pathname.split("/").slice(2).map(decodeURIComponent);
    const allowed = request.headers.authorization === `Bearer ${TOKEN}`;
    const isStream = allowed && parts.at(-1) === "events" && (parts[0] !== "sweeps" || sweeps.has(parts[1]));
    const isBlob = allowed && parts[0] === "blobs";
    const blob = isBlob ? (files.blobs.get(parts[1]) ?? artifact) : null;
    const range = /^bytes=0-(\d+)$/.exec(request.headers.range ?? "");
    let a = null;
    if (!allowed) a = problem(401, "denied", "the token is not known here");
    else if (takeFor(failures, method, url.pathname)) a = problem(503, "unavailable", "made to fail");
    else if (!isStream && !isBlob) {
      a = answer(method, parts, url.searchParams, log.body);
      if (!a.table) a = JSON.parse(JSON.stringify(a)); // a copy of the present state
    }
    held?.came();
    await held?.released;
    await late(0.5);
    log.to = performance.now();
    if (isStream && a === null) return stream(request, response, parts[0] === "sweeps" ? parts[1] : null);
    if (blob && a === null && range) return response.writeHead(206, { "Content-Type": "application/octet-stream", "Content-Range": `bytes 0-${Math.min(Number(range[1]), blob.length - 1)}/${blob.length}` }).end(blob.subarray(0, Number(range[1]) + 1));
    if (blob && a === null) return response.writeHead(200, { "Content-Type": "application/octet-stream" }).end(blob);
    if (a.table) return response.writeHead(200, { "Content-Type": "application/octet-stream", "Content-Encoding": "gzip" }).end(gzipSync(a.table, { level: 1 }));
    if (a.at) seen.push([method, a.at, a.body]);
    if (a.status === 204) return response.writeHead(204).end();
    response.writeHead(a.status ?? 200, { "Content-Type": a.type ?? "application/json" });
    return response.end(JSON.stringify(a.body));
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://host");
    if (url.pathname === "/openapi.json") return response.writeHead(200, { "Content-Type": "application/json" }).end(await readFile(join(process.env.ASSAY_BUILD_ROOT, "api/openapi.json")));
    if (url.pathname.startsWith("/v1/")) return api(request, response, url);
    await late();
    return file(url.pathname, response);
  });
  server.keepAliveTimeout = 0; // never close a connection while the page begins to use it again
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${server.address().port}`, sweeps, datasets, models: registry.models, seen, requests, emit,
    /** The number of open streams, and of all streams so far. */
    streams: () => ({ open: clients.size, ever: streams }),
    /** Hold the answer to the next such request. `arrived`: the answer is made. */
    hold(method, path) {
      const held = { method, path };
      held.arrived = new Promise((resolve) => { held.came = resolve; });
      held.released = new Promise((resolve) => { held.release = resolve; });
      holds.push(held);
      return held;
    },
    /** The next such request fails with a 503. */
    fail: (method, path) => { failures.push({ method, path }); },
    /** The oldest running trial of a sweep completes with this value, and a new trial starts. */
    finish(id, value) {
      const sweep = sweeps.get(id);
      const t = sweep.trials.find((x) => x.state === "running");
      sweep.end(t, "completed", value ?? errorOf(t.params, sweep.random), Date.now());
      emit("trial.changed", { sweep: id, number: t.number, state: "completed", attempt: t.attempt, value: t.value });
      if (sweep.trials.length < sweep.base.planned_trials) {
        const n = sweep.add("running");
        n.started_at = iso(Date.now());
        emit("trial.changed", { sweep: id, number: n.number, state: "running", attempt: 1 });
      }
      return t;
    },
    /** A sweep of `n` invented trials, and room for more (`grow`). Only its table has them. `alter` changes its space and
     * its columns by name. */
    invent(id, n, more = 0, alter = () => undefined) {
      const names = Array.from({ length: 8 }, (_, i) => `p${i}`);
      const space = Object.fromEntries(names.map((name, i) => [name, i === 7 ? { type: "categorical", values: ["sgd", "adamw", "lion"] } : i === 0 ? { type: "float", min: 1e-4, max: 1, scale: "log" } : { type: "float", min: 0, max: 1 }]));
      const columns = inventedColumns(n + more);
      alter(space, columns);
      const sweep = new Sweep({ id, space, planned: n + more, started: START, method: "random" });
      sweep.invented = { columns, shown: n, before: [] };
      sweep.counts = { queued: 0, running: 8, paused: 0, completed: n - 8, pruned: 0, failed: 0, cancelled: 0, total: n };
      sweeps.set(id, sweep);
      return sweep;
    },
    /** `n` more of its trials appear, each with its event. */
    grow(id, n) {
      const sweep = sweeps.get(id);
      const { invented } = sweep;
      invented.before.push([nextEvent - 1, invented.shown]);
      for (let i = 0; i < n; i++) emit("trial.changed", { sweep: id, number: invented.shown + i, state: "completed", attempt: 1 });
      invented.shown += n;
      sweep.counts = { ...sweep.counts, total: invented.shown, completed: invented.shown - 8 };
    },
    /** Cut every stream, as a restart of the server does. */
    cut() {
      for (const c of clients) c.response.destroy();
      clients.clear();
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const f = await startFixture(process.argv[2], Number(process.argv[3] ?? 8601));
  console.log(`${f.url}/#token=${TOKEN}`);
  setInterval(() => { if (f.sweeps.get("live").trials.some((t) => t.state === "running")) f.finish("live"); }, 1500);
}
