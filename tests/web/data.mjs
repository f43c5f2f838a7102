/* The page's data without a browser: the columnar format, the store, the language of filters, the
 * order of rows, and the selection in the address. The sources are compiled by esbuild. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { attemptsTable, encodeTable, inventedTable, pointsTable, tableOf } from "./columnar.mjs";
import { numbers } from "./slow.mjs";

const source = process.env.ASSAY_SOURCE_ROOT;
const work = join(process.env.ASSAY_BUILD_ROOT, "web", "work");
const esbuild = createRequire(join(work, "here.cjs"))("esbuild");

// What the sources use of a browser when they are loaded.
globalThis.location = { hash: "" };
globalThis.window = { addEventListener() {} };
globalThis.document = { hidden: false, addEventListener() {} };
globalThis.history = { replaceState: (_state, _title, to) => { location.hash = to; } };

const folder = mkdtempSync(join(tmpdir(), "assay-web-"));
const bundle = join(folder, "data.mjs");
const names = ["columnar", "columns", "density", "explore", "filter", "order", "packed", "plane", "jobs", "points", "selection", "summary", "timeline", "turns"];
await esbuild.build({
  stdin: { contents: [...names.map((n) => `export * from ${JSON.stringify(join(source, "web/src/data", `${n}.ts`))};`), ...["route.ts", "format.ts", "parts/scale_of.ts", "parts/labels.ts", "parts/document.ts", "parts/complete.ts", "parts/markdown.tsx", "parts/long_text.tsx", "parts/read_file.ts", "parts/surface.ts", "live/compared.ts", "live/compared_sweeps.ts"].map((f) => `export * from ${JSON.stringify(join(source, "web/src", f))};`), `export { foretoldOf, historyCsv, historyOf, leftOf, openLabel } from ${JSON.stringify(join(source, "web/src/parts/history.ts"))};`].join("\n"), resolveDir: work },
  nodePaths: [join(work, "node_modules")], bundle: true, format: "esm", jsx: "automatic", jsxImportSource: "preact", outfile: bundle, logLevel: "error",
});
const d = await import(pathToFileURL(bundle));
rmSync(folder, { recursive: true });

const bytesOf = (b) => b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength);
const read = (b) => d.parseTable(bytesOf(b));
const storeOf = (...parts) => { const s = new d.Store(); for (const p of parts) s.take(read(p)); return s; };
const list = (values) => Array.from(values);

const trial = (number, more = {}) => ({ number, state: "completed", attempt: 1, value: number / 10, feasible: true, created_at: null, started_at: "2026-11-25T05:00:00Z", finished_at: null, runner: "a", client: null, metrics: { loss: number }, params: { lr: 10 ** -number, kind: number % 2 ? "sgd" : "adamw" }, ...more });
const table = (trials, more = {}) => tableOf(trials, { version: 7, whole: true, ...more });

const tests = {
  "a table is read as it was written"() {
    const part = read(table([trial(0), trial(1, { value: null, runner: null, params: { kind: "é\"x" } }), trial(2, { value: "Infinity", state: "failed" })]));
    const t = storeOf(table([trial(0), trial(1, { value: null, runner: null, params: { kind: "é\"x" } }), trial(2, { value: "Infinity", state: "failed" })])).table("7");
    assert.equal(part.version, "7");
    const roomy = new d.Store();
    const whole = d.parseTable(bytesOf(table([trial(0), trial(1, { value: null, runner: null, params: { kind: "é\"x" } }), trial(2, { value: "Infinity", state: "failed" })])), true);
    assert.deepEqual([whole.number.length, ...whole.columns.map((c) => c.values.length)], [3, ...whole.columns.map((c) => (c.one === undefined ? d.roomOf(3) : 0))]);
    assert.ok(whole.columns.filter((c) => c.one !== undefined).length > 5, "columns whose rows are all alike come without an array");
    roomy.take(whole);
    const its = roomy.table("7");
    const rowsOfTable = (of) => [...of.columns.values()].map((c) => [c.name, [0, 1, 2].map((r) => d.valueAt(c, r))]);
    assert.deepEqual(rowsOfTable(its), rowsOfTable(t));
    assert.equal(t.n, 3);
    assert.deepEqual(list(t.column("value").values), [0, NaN, Infinity]);
    assert.deepEqual([0, 1, 2].map((row) => d.wordAt(t.column("param:kind"), row)), ["adamw", "é\"x", "adamw"]);
    assert.deepEqual([0, 1, 2].map((row) => d.wordAt(t.column("runner"), row)), ["a", null, "a"]);
    assert.deepEqual([0, 1, 2].map((row) => d.numberAt(t.column("param:lr"), row)), [1, null, 0.01]);
    assert.equal(t.column("started_at").values[0], Date.parse("2026-11-25T05:00:00Z"));
    assert.deepEqual([t.rowOf(2), t.rowOf(3)], [2, -1]);
  },
  "all types and both widths of a dictionary are read"() {
    const many = Array.from({ length: 70_000 }, (_, i) => `w${i}`);
    const made = encodeTable({ version: 1, whole: true, columns: [{ name: "number", type: "u32", values: [0, 1] }, { name: "a", type: "u8", values: [1, 0] }, { name: "b", type: "f32", values: [0.5, NaN] }, { name: "c", type: "dict", words: many, values: [69_999, -1] }] });
    const t = storeOf(made).table("1");
    assert.deepEqual(list(t.column("a").values), [1, 0]);
    assert.deepEqual(list(t.column("b").values), [0.5, NaN]);
    assert.deepEqual([d.wordAt(t.column("c"), 0), d.wordAt(t.column("c"), 1)], ["w69999", null]);
  },
  "columns in planes are as those in values"() {
    const values = [1.5, -0, NaN, 1e300, -2];
    const bytes = new Uint8Array(Float64Array.from(values).buffer);
    const planes = new Uint8Array(40);
    for (let i = 0; i < 5; i++) for (let k = 0; k < 8; k++) planes[k * 5 + i] = bytes[i * 8 + k];
    const described = (at, more) => JSON.stringify({ rows: 5, version: "1", whole: true, columns: [{ name: "number", type: "u8", at }, { name: "a", type: "f64", at: at + 8, ...more }, { name: "b", type: "f64", at: at + 8, ...more }] }).padEnd(240);
    const file = (more, body) => { const head = Buffer.alloc(16); head.write("ASYCOLS1"); head.writeUInt32LE(240, 8); return Buffer.concat([head, Buffer.from(described(256, more)), Buffer.from([0, 1, 2, 3, 4, 0, 0, 0]), body]); };
    const read = (more, body) => d.parseTable(bytesOf(file(more, Buffer.from(body)))).columns.map((c) => list(c.values));
    assert.deepEqual(read({ planes: true }, planes), [values, values]);
    assert.deepEqual(read({}, bytes), [values, values]);
  },
  "a file that is no table is refused"() {
    const good = table([trial(0), trial(1)]);
    assert.throws(() => read(Buffer.from("ASY")), /3 bytes/);
    assert.throws(() => read(Buffer.concat([Buffer.from("WRONGONE"), good.subarray(8)])), /begins with 'WRONGONE'/);
    assert.throws(() => read(good.subarray(0, good.length - 8)), /outside of the file/);
    const bad = Buffer.from(good);
    bad.write("x64", bad.indexOf("f64"));
    assert.throws(() => read(bad), /has the type 'x64'/);
    const index = encodeTable({ version: 1, whole: true, columns: [{ name: "number", type: "u32", values: [0] }, { name: "state", type: "dict", words: ["a"], values: [5] }] });
    assert.throws(() => read(index), /the word 5 of 1/);
  },
  "rows that changed are merged, whatever their order"() {
    const s = storeOf(table([trial(0), trial(2)]), table([trial(1, { state: "failed", runner: "b" }), trial(2, { value: 9 }), trial(3)], { whole: false }));
    const t = s.table("8");
    assert.deepEqual(list(t.number), [0, 1, 2, 3]);
    assert.deepEqual(list(t.column("value").values), [0, 0.1, 9, 0.3]);
    assert.deepEqual([0, 1, 2, 3].map((row) => d.wordAt(t.state, row)), ["completed", "failed", "completed", "completed"]);
    assert.deepEqual([0, 1, 2, 3].map((row) => d.wordAt(t.column("runner"), row)), ["a", "b", "a", "a"]);
  },
  "any sequence of changes gives the table that one load gives"() {
    const random = numbers(5);
    for (let round = 0; round < 40; round++) {
      const now = new Map();
      const s = new d.Store();
      const begun = Array.from({ length: 12 * (round % 2) }, (_, i) => trial(7 * i, { value: 0.5, metrics: {} })); // alike, as far as trials can be
      for (const t of begun) now.set(t.number, t);
      s.take(d.parseTable(bytesOf(table(begun, { params: ["lr", "kind"], metrics: ["loss"] })), true));
      if (begun.length > 0) assert.ok(new Set([...s.table("1").columns.values()].map((c) => c.values.buffer)).size < s.table("1").columns.size - 4, "columns of one value share their array");
      for (let change = 0; change < 12; change++) {
        const some = [...new Set(Array.from({ length: 1 + Math.floor(9 * random()) }, () => Math.floor(150 * random())))].sort((a, b) => a - b);
        const trials = some.map((n) => trial(n, { value: random(), runner: `r${Math.floor(4 * random())}`, attempt: random() < 0.05 ? 2 : 1, restarts: Number(random() < 0.05), state: random() < 0.05 ? "failed" : "completed", client: random() < 0.02 ? "me" : null }));
        for (const t of trials) now.set(t.number, t);
        s.take(read(table(trials, { whole: false, params: ["lr", "kind"], metrics: ["loss"] })));
      }
      const all = [...now.values()].sort((a, b) => a.number - b.number);
      const [got, expected] = [s.table("1"), storeOf(table(all)).table("1")];
      assert.equal(got.n, all.length);
      for (const name of expected.columns.keys()) for (let row = 0; row < got.n; row++) assert.equal(d.valueAt(got.column(name), row), d.valueAt(expected.column(name), row), `${name} of row ${row}`);
    }
  },
  "changed rows without a value of a parameter leave its words to the others"() {
    const s = storeOf(table([trial(0), trial(1)]), table([trial(1, { params: { lr: 2 } })], { whole: false, params: ["lr", "kind"] }), table([], { whole: false, params: ["lr", "kind"] }));
    assert.deepEqual([0, 1].map((row) => d.wordAt(s.table("9").column("param:kind"), row)), ["adamw", null]);
  },
  "a measurement changes one value"() {
    const s = storeOf(table([trial(0), trial(1)]));
    s.set(1, "value", 0.75);
    s.set(9, "value", 1);
    assert.deepEqual(list(s.table("8").column("value").values), [0, 0.75]);
    const alike = new d.Store();
    alike.take(d.parseTable(bytesOf(table([trial(0, { value: 2 }), trial(1, { value: 2 })].map((t) => ({ ...t, fork_step: 2 })))), true));
    alike.set(0, "value", 3);
    assert.deepEqual([alike.table("8").column("value"), alike.table("8").column("fork_step")].map((c) => list(c.values)), [[3, 2], [2, 2]]);
  },
  "filters"() {
    const t = storeOf(table([trial(0), trial(1, { state: "failed", value: null, metrics: {} }), trial(2, { params: { kind: "lion" } }), trial(3, { runner: "box-7" })])).table("7");
    const rows = (text) => list(d.filterRows(text, t) ?? [1, 1, 1, 1]).flatMap((on, row) => (on ? [row] : []));
    const is = (text, expected) => assert.deepEqual(rows(text), expected, text);
    is("", [0, 1, 2, 3]);
    is("lr < 0.5", [1, 3]);
    is("lr < 0.5 and kind == 'sgd'", [1, 3]);
    is("not lr < 0.5", [0, 2]);
    is("kind in ['lion', \"sgd\"]", [1, 2, 3]);
    is("kind not in ['lion']", [0, 1, 3]);
    is("kind != 'sgd'", [0, 2]);
    is("0 < value <= 0.2", [2]);
    is("number % 2 == 1 or loss ** 2 > 3", [1, 2, 3]);
    is("-number + 2 * number - number == 0", [0, 1, 2, 3]);
    is("log(number) >= 0", [1, 2, 3]);
    is("max(number, 2, 1) == 3 or (min(loss, 7) == 0)", [0, 3]);
    is("state == 'failed' or `runner` has 'BOX'", [1, 3]);
    is("param:lr == 1", [0]);
    const tagged = storeOf(table([trial(0, { tags: "good,later" }), trial(1, { tags: "goods" }), trial(2, { tags: null })])).table("7");
    assert.deepEqual(list(d.filterRows("tags has 'Good'", tagged)), [1, 0, 0]);
    assert.deepEqual(list(d.filterRows("tags has 'later' or tags has 'goods'", tagged)), [1, 1, 0]);
    is("loss in [1, 2, -3]", [2]);
    is("value-value == 0", [0, 2, 3]);
    const fails = (text, message) => assert.throws(() => d.filterRows(text, t), (e) => e instanceof d.FilterError && message.test(e.message), text);
    fails("lrr < 1", /^character 1: unknown name 'lrr'; did you mean 'lr'\?$/);
    fails("lr <", /^character 5: expected a value, found the end/);
    fails("lr = 3", /^character 4: '=' is no comparison, write '=='/);
    fails("lr", /expected a comparison, found a number/);
    fails("kind < 'a'", /character 6: '<' does not compare texts/);
    fails("kind == 'a", /character 9: the text has no end/);
    fails("lr < 1 1", /character 8: unexpected '1'/);
    fails("log(1, 2) > 0", /log takes one number, found 2/);
    fails("lr in ['a']", /character 8: a number is compared with a text/);
    fails("(".repeat(100) + "lr", /nested more than 40 deep/);
    fails("lr < 1 and @", /character 12: unexpected '@'/);
    fails("lr < 1 && lr > 0", /character 8: unexpected '&', write 'and'/);
    fails("kind == sgd", /unknown name 'sgd'; a text stands between quotes: 'sgd'/);
    fails("Trial == 3", /unknown name 'Trial'; did you mean 'number'/);
  },
  "names of the language, of parameters and of hostile people"() {
    const t = storeOf(table([trial(0, { params: { in: 3, "a-b": 1, a: 7, b: 2, __proto__: null, number: 5 }, metrics: { "val/loss": 2 } })])).table("1");
    for (const text of ["`in` == 3", "a-b == 1", "a - b == 5", "val/loss == 2", "number == 0", "param:number == 5", "`val/loss` > 1"]) assert.deepEqual(list(d.filterRows(text, t)), [1], text);
    assert.throws(() => d.filterRows("constructor == 1", t), /unknown name 'constructor'/);
    for (const name of d.namesOf(t)) assert.ok(d.columnNamed(t, name), name);
    const spelled = storeOf(table([trial(0, { params: { opt: 8, lr: 2, "opt/lr": 5, "learning rate": 3, "f(x)": 1, "größe": 4, gr: 9 }, metrics: {} })])).table("1");
    for (const text of ["opt/lr == 5", "opt / lr == 4", "`learning rate` + `f(x)` == 4", "größe == 4", "param:opt/lr == 5"]) assert.deepEqual(list(d.filterRows(text, spelled)), [1], text);
    assert.throws(() => d.filterRows("2 < learning rate", spelled), /character 5: unknown name 'learning'; the name 'learning rate' stands between backquotes: `learning rate`/);
    for (const name of ["opt/lr", "größe", "learning rate", "f(x)", "param:f(x)"]) assert.deepEqual(list(d.filterRows(`${d.quotedName(name)} > 0`, spelled)), [1], name);
    assert.equal(d.quotedName("in"), "`in`");
    assert.equal(d.quotedName("val/loss"), "val/loss");
  },
  "rows in order"() {
    const random = numbers(9);
    const values = Float64Array.from({ length: 3000 }, (_, i) => (i % 11 === 0 ? NaN : i % 13 === 0 ? [Infinity, -Infinity, 0, -0, 1e300, -1e-300][i % 6] : Math.round(40 * (random() - 0.5)) / 8));
    const column = { name: "x", kind: "number", values };
    for (const descending of [false, true]) {
      const expected = [...values.keys()].filter((r) => r % 3 !== 0).sort((a, b) => (Number.isNaN(values[a]) || Number.isNaN(values[b]) ? Number(Number.isNaN(values[a])) - Number(Number.isNaN(values[b])) : (values[a] === values[b] ? 0 : (values[a] < values[b] ? -1 : 1) * (descending ? -1 : 1))) || a - b);
      const shown = Uint8Array.from(values, (_, r) => Number(r % 3 !== 0));
      assert.deepEqual(list(d.orderRows(values.length, shown, column, descending)), expected);
    }
    const words = { name: "w", kind: "words", words: ["b10", "a", "b9"], values: Uint32Array.of(0, 1, 2, d.MISSING, 1) };
    assert.deepEqual(list(d.orderRows(5, null, words, false)), [1, 4, 2, 0, 3]);
    assert.deepEqual(list(d.orderRows(5, null, words, true)), [0, 2, 1, 4, 3]);
    assert.deepEqual(list(d.orderRows(3, null, undefined, false)), [0, 1, 2]);
    assert.deepEqual(list(d.orderRows(3, null, undefined, true)), [2, 1, 0]);
  },
  "the selection is in the address"() {
    assert.deepEqual(d.parseNumbers("0,3,7-9,x,5-4"), [0, 3, 7, 8, 9]);
    assert.equal(d.formatNumbers([9, 8, 7, 3, 0, 3]), "0,3,7-9");
    assert.equal(d.formatNumbers([]), null);
    const brushes = new Map([["param:lr", { min: 0.01, max: null }], ["state", { words: ["failed"] }], ["__proto__", { min: 1, max: 2 }]]);
    assert.deepEqual(d.parseBrushes(d.formatBrushes(brushes)), brushes);
    for (const text of ["", "{", "[1]", "null", "{\"a\":7}"]) assert.equal(d.parseBrushes(text).size, 0, text);
    const t = storeOf(table([trial(0), trial(1), trial(2), trial(3)])).table("1");
    const mark = (ranges, chosen, shown = null) => d.highlightedNumbers(t, d.highlightOf(t, new Map(ranges), new Set(chosen), shown));
    assert.deepEqual(mark([["param:lr", { min: 0.005, max: 0.5 }]], []), [1, 2]);
    assert.deepEqual(mark([["param:lr", { min: 0.005, max: 0.5 }], ["param:kind", { words: ["sgd"] }]], [3, 77]), [1, 3]);
    assert.deepEqual(mark([["param:lr", { min: null, max: null }]], [], Uint8Array.of(1, 0, 1, 0)), [0, 2]);
    assert.deepEqual(mark([["no such column", { min: 0, max: 1 }]], []), []);
    assert.deepEqual(mark([], [2]), [2]);
  },
  "what may still be gained stands at the trials with which it was known"() {
    const trials = [5, 4, null, 3, 6, 1, 2].map((value, number) => trial(number, value === null ? { state: "failed", value } : { value, feasible: number !== 5 }));
    const t = storeOf(table(trials)).table("1");
    const check = (completed, bound, enough = true) => ({ completed, finish_seq: completed, bound, relative: null, enough, made_at: "" });
    const checks = [check(1, 9, false), check(2, 3), check(3, null), check(4, 1), check(6, 0.5), check(7, 0.25)];
    assert.deepEqual(d.leftOf(checks, t, "minimize"), { x: [1, 4, 6], best: [4, 3, 2], reach: [1, 2, 1.5] });
    assert.deepEqual(d.leftOf(checks, t, "maximize"), { x: [1, 4, 6], best: [5, 6, 6], reach: [8, 7, 6.5] });
    assert.deepEqual(d.leftOf([], t, "minimize"), { x: [], best: [], reach: [] });
  },
  "the history: only what passes the filter, what is highlighted, and a part of it in full"() {
    const all = { goal: "minimize", y: "auto", far: false, filter: "", brush: "", picked: "", from: null, to: null };
    const t = storeOf(table(Array.from({ length: 12 }, (_, i) => trial(i, { value: 20 - i, ...(i === 5 ? { state: "failed", value: null } : {}) })))).table("7");
    const whole = d.historyOf(t, all);
    assert.deepEqual([whole.completed, whole.first, whole.last, whole.marked, whole.bestNumber], [11, 0, 11, null, 11]);
    const some = d.historyOf(t, { ...all, filter: "number < 8 and kind == 'sgd'", picked: "3-9" });
    assert.deepEqual([some.x, some.completed, some.first, some.last, some.bestNumber], [[1, 3, 5, 7], 3, 1, 7, 7]);
    assert.deepEqual([some.marked.map((at) => some.x[at]), some.highlighted, some.failed], [[3, 5, 7], 3, [2]]);
    const part = d.historyOf(t, { ...all, from: 3, to: 6, brush: '{"value":[14.5,16.5]}' });
    assert.deepEqual([part.x, part.best, part.completed, part.first, part.last, part.bestNumber], [[3, 4, 5, 6], [17, 16, 16, 14], 11, 0, 11, 11]);
    assert.deepEqual([part.marked.map((at) => part.x[at]), part.highlighted], [[4], 1]);
    assert.deepEqual([d.historyOf(t, { ...all, filter: "number > 90" }).x, d.historyOf(t, { ...all, from: 90, to: 99 }).x], [[], []]);
    const many = storeOf(inventedTable(60_000)).table("1");
    const [far, near] = [d.historyOf(many, all), d.historyOf(many, { ...all, from: 100, to: 599 })];
    assert.ok(far.x.length < 22_000, `${far.x.length} are drawn`);
    assert.equal(near.x.length, 500); // every one
    const marked = d.historyOf(many, { ...all, picked: "100-139" });
    assert.deepEqual([marked.highlighted, marked.completed], [40, far.completed]);
    assert.ok(marked.marked.length > 8 && marked.marked.every((at) => marked.x[at] >= 100 && marked.x[at] < 140));
  },
  "the history as a file has every trial with its state and value, and what the marks stand for is said"() {
    const all = { goal: "minimize", metric: "loss", y: "auto", far: false, filter: "", brush: "", picked: "", from: null, to: null };
    const states = ["completed", "pruned", "running", "paused", "failed", "completed"];
    const t = storeOf(table(states.map((state, i) => trial(i, { state, value: state === "failed" ? null : i === 5 ? 1e30 : 5 - i })))).table("7");
    assert.deepEqual(d.historyCsv(t, all).trim().split("\r\n"), ["number,state,loss,best so far,highlighted", "0,completed,5,5,0", "1,pruned,4,5,0", "2,running,3,5,0", "3,paused,2,5,0", "4,failed,,5,0", "5,completed,1e+30,5,0"]);
    assert.deepEqual(d.historyCsv(t, { ...all, from: 1, to: 3, filter: "number != 2", picked: "3" }).trim().split("\r\n").slice(1), ["1,pruned,4,5,0", "3,paused,2,5,1"]);
    const label = (filter) => d.openLabel(d.historyOf(t, { ...all, filter }));
    assert.deepEqual([label(""), label("state == 'paused'"), label("state == 'running'"), label("state == 'completed'")], ["running or paused", "paused", "running", null]);
    const many = storeOf(inventedTable(60_000)).table("1");
    assert.equal(d.historyCsv(many, all).trim().split("\r\n").length, 60_001, "the chart draws fewer");
  },
  "an outlier flattens no axis, also a logarithmic one; and it is counted"() {
    const values = Float64Array.from({ length: 60 }, (_, i) => (i === 7 ? 1e30 : 10 ** (-2 + (i % 20) / 8)));
    const t = storeOf(encodeTable({ version: 1, whole: true, columns: [{ name: "number", type: "u32", values: values.map((_, i) => i) }, { name: "state", type: "dict", words: ["completed"], values: values.map(() => 0) }, { name: "value", type: "f64", values }] })).table("1");
    const all = { goal: "minimize", y: "log", far: false, filter: "", brush: "", picked: "", from: null, to: null };
    const h = d.historyOf(t, all);
    assert.deepEqual([h.log, h.clip, h.far, h.beyond, h.done[7]], [true, true, 1, [7], null]);
    assert.equal(d.historyOf(t, { ...all, far: true }).done[7], 1e30);
    assert.deepEqual(d.historyOf(t, { ...all, goal: "maximize" }).beyond, [], "the best one is no outlier");
    const axis = d.axisOf(t.column("value"), "loss", Uint32Array.from(values.keys()), undefined, "minimize");
    assert.deepEqual([axis.log, axis.beyond, axis.max], [true, true, 10 ** (-2 + 19 / 8)]);
    assert.equal(d.placesOf(axis, t.column("value"), Uint32Array.of(7))[0], 1, "it lies at the edge");
  },
  "long names that begin alike differ when they are cut; a text of which nothing would be seen is JSON; one is no plural"() {
    assert.deepEqual(["short", "category 12", "category 13"].map((w) => d.cut(w, 10)), ["short", "cate…ry 12", "cate…ry 13"]);
    assert.deepEqual(["", " \t", "a b"].map(d.valueText), ['""', '" \\t"', "a b"]);
    assert.deepEqual([d.some(1, "curve"), d.some(0, "curve"), d.some(1200, "curve")], ["1 curve", "0 curves", "1,200 curves"]);
  },
  "labels of an axis tell its words apart, though all begin and end alike"() {
    const words = (of) => [3, 12, 250].map((n) => of(n));
    assert.deepEqual(d.shortened(words((n) => `category-${n}-of-many`), 10), ["…3…", "…12…", "…250…"]);
    assert.deepEqual(d.shortened(words((n) => `number ${n}`), 10), ["number 3", "number 12", "number 250"]);
    assert.deepEqual(d.shortened(["one category alone", "one category alone"], 10), [d.cut("one category alone", 10), d.cut("one category alone", 10)]);
    assert.deepEqual(d.shortened(["configuration-a-x", "configuration-a"].map((w) => `${w}-of-the-network`), 8).length, 2);
    assert.deepEqual(d.shortened([], 10), []);
  },
  "many squares, crosses and boxes are one shape of a file, around their places"() {
    const svgOf = (draw) => d.svgOf(draw, 40, 30, "t<", "#ffffff");
    assert.match(svgOf((s) => { s.stamps([10, NaN, 20.5], [5, 5, 6], 3, "#abcdef", false); }), /<title>t&lt;<[^]*<path d="M8\.5 3\.5h3v3h-3zM19 4\.5h3v3h-3z" fill="#abcdef"\/>/);
    assert.match(svgOf((s) => { s.stamps([10], [5], 4, "#abcdef", true); }), /<path d="M8 3l4 4m0 -4l-4 4" fill="none" stroke="#abcdef"\/>/);
    const place = (i, box) => Object.assign(box, { x: 2 * i, y: 1, width: 2, height: 1.5, fill: i === 1 ? "#111111" : "#222222", alpha: 0.5 });
    assert.match(svgOf((s) => { s.boxes(3, place); }), /<path d="M0 1h2v1\.5h-2zM4 1h2v1\.5h-2z" fill="#222222" opacity="0\.5"\/>\n<path d="M2 1h2v1\.5h-2z" fill="#111111" opacity="0\.5"\/>/);
  },
  "predictions of a part, of many as the mean of neighbours"() {
    const values = (n, of) => Float64Array.from({ length: n }, (_, i) => of(i));
    const made = (n) => storeOf(encodeTable({ version: 1, whole: true, columns: [{ name: "number", type: "u32", values: values(n, (i) => i) }, { name: "state", type: "dict", words: ["completed"], values: values(n, () => 0) }, { name: "predicted:a/b", type: "f64", values: values(n, (i) => (i === 2 ? NaN : i)) }, { name: "deviation:a/b", type: "f64", values: values(n, () => 0.5) }] })).table("1");
    const input = { metric: "a/b", filter: "", from: null, to: null };
    assert.deepEqual(d.foretoldOf(made(5), input), { x: [0, 1, 3, 4], low: [-0.5, 0.5, 2.5, 3.5], mean: [0, 1, 3, 4], high: [0.5, 1.5, 3.5, 4.5] });
    assert.deepEqual(d.foretoldOf(made(5), { ...input, from: 1, to: 3, filter: "predicted:a/b < 3" }).x, [1]);
    assert.deepEqual(d.foretoldOf(made(5), { ...input, metric: "a" }).x, []);
    const many = d.foretoldOf(made(9001), input);
    assert.deepEqual([many.x.length, many.mean.at(-1), many.high.at(-1)], [3000, 8999, 8999.5]);
  },
  "the plane of two objectives: counts of all, the front and what is highlighted, one of what covers each other"() {
    const t = storeOf(inventedTable(50_000)).table("1");
    const axis = (column) => ({ column, goal: "minimize" });
    const input = { x: axis("value"), y: axis("metric:m1"), front: "3,40-45", clip: false, filter: "", brush: "", picked: "" };
    const completed = Array.from({ length: t.n }, (_, i) => i).filter((i) => d.wordAt(t.state, i) === "completed");
    const all = d.planeOf(t, input);
    assert.deepEqual([all.count, all.off, all.onFront, all.highlighted, all.isInfeasible], [completed.length, 0, 7, null, true]);
    assert.ok(all.row.length < 12_000 && all.row.length > 500, `${all.row.length} are drawn`);
    const front = [...all.row].filter((_, i) => all.kind[i] === d.FRONT).map((row) => t.number[row]);
    assert.deepEqual(front.sort((a, b) => a - b), [3, 40, 41, 42, 43, 44, 45]);
    for (let i = 1; i < all.x.length; i++) assert.ok(all.x[i] >= all.x[i - 1]);
    const some = d.planeOf(t, { ...input, filter: "number < 100", picked: "3,50-59", brush: '{"number":[90,200]}' });
    const within = completed.filter((i) => i < 100);
    assert.deepEqual([some.count, some.row.length, some.highlighted], [within.length, within.length, within.filter((i) => i === 3 || (i >= 50 && i < 60) || i >= 90).length]);
    const rows = [trial(0), trial(1), trial(2), ...Array.from({ length: 8 }, (_, i) => trial(3 + i))].map((r, i) => ({ ...r, value: i === 1 ? 1e6 : i, metrics: { loss: i } }));
    const clipped = d.planeOf(storeOf(table(rows)).table("7"), { ...input, y: axis("metric:loss"), clip: true, front: "" });
    assert.deepEqual([clipped.count, clipped.off, clipped.row.length], [11, 1, 10]);
    assert.equal(d.planeOf(storeOf(table(rows)).table("7"), { ...input, y: axis("metric:loss"), clip: true, front: "1" }).off, 0);
    const csv = d.planeCsv(t, { ...input, filter: "number < 5", picked: "3", heads: ["a", "b,c"] }).trim().split("\r\n");
    assert.equal(csv[0], 'number,a,"b,c",kind,highlighted');
    assert.equal(csv.length, 6);
    assert.match(csv[4], /^3,[\d.]+,[\d.]+,front,1$/);
    const none = d.planeOf(storeOf(table([])).table("7"), input);
    assert.deepEqual([none.count, none.row.length, none.highlighted], [0, 0, null]);
  },
  "all trials by their parameters: what is drawn, counted and highlighted": () => {
    const t = storeOf(inventedTable(3000)).table("1");
    const input = { names: ["p0", "p1", "p7"], parameters: { p0: { type: "float", min: 1e-4, max: 1, scale: "log" } }, metric: { column: "value", name: "val_error", goal: "minimize" }, filter: "p1 < 0.5", brush: "", picked: "", most: 100, lines: ["param:p0", "param:p1", "value"] };
    const e = d.explore(t, input);
    const passing = [...Array(3000).keys()].filter((r) => d.wordAt(t.state, r) === "completed" && t.column("param:p1").values[r] < 0.5);
    const bad = passing.filter((r) => t.column("infeasible").values[r] === 1);
    assert.deepEqual([e.count, e.infeasible, e.marked, e.faint, e.drawn.length], [passing.length, bad.length, null, 0, 100]);
    const value = (n) => t.column("value").values[n];
    const fit = list(e.drawn).filter((n) => t.column("infeasible").values[n] !== 1);
    assert.deepEqual(fit, [...fit].sort((a, b) => value(b) - value(a)), "the best above");
    assert.ok(list(e.fifth).every((f, i) => (f === 0) === (t.column("infeasible").values[e.drawn[i]] === 1)));
    const feasible = passing.filter((r) => t.column("infeasible").values[r] !== 1);
    assert.equal(e.drawn.at(-1), feasible.reduce((a, b) => (value(b) < value(a) ? b : a)), "of many, the best one is always drawn");
    const few = d.explore(t, { ...input, filter: "number < 2" });
    assert.deepEqual([few.count, list(few.fifth)], [2, [3, d.SHADES]], "the best of few has the colour of the best fifth");
    assert.equal(e.axes[0].log, true);
    e.drawn.forEach((n, i) => assert.ok(Math.abs(e.axes[0].places[i] - Math.log(t.column("param:p0").values[n] / 1e-4) / Math.log(1e4)) < 1e-6));
    assert.ok(e.density.x.length > 100 && list(e.density.level).every((l) => l >= 1 && l <= d.LEVELS));
    const some = d.explore(t, { ...input, most: 5000, brush: JSON.stringify({ "param:p0": [0.01, 0.1] }), picked: "0" });
    const inside = passing.filter((r) => (t.column("param:p0").values[r] >= 0.01 && t.column("param:p0").values[r] <= 0.1) || r === 0);
    assert.deepEqual([some.marked, some.drawn.length - some.faint, some.density, some.drawn.length], [inside.length, inside.length, null, passing.length]);
    assert.equal(some.best[0].value, Math.min(...inside.filter((r) => t.column("infeasible").values[r] !== 1).map(value)));
    // More lines than bundles: what is seen stays the same, and every trial is counted.
    const manyTrials = Array.from({ length: 8000 }, (_, i) => trial(i, { params: { p1: (i % 100) / 100, p2: (i % 40) / 40 } }));
    const crowd = d.explore(storeOf(table(manyTrials)).table("1"), { ...input, names: ["p1", "p2"], lines: ["param:p1", "param:p2"], parameters: {} });
    assert.equal(crowd.count, crowd.axes[0].active);
    assert.ok(crowd.density.x.length > 100 && list(crowd.density.level).every((l) => l >= 1 && l <= d.LEVELS));
    const none = d.explore(t, { ...input, filter: "p1 < 0" });
    assert.deepEqual([none.count, none.drawn.length], [0, 0]);
  },
  "long lists travel as arrays, and arrive as they were": () => {
    const long = Array.from({ length: 300 }, (_, i) => (i % 3 ? i / 7 : null));
    const output = { long, short: [1, null], text: "a", none: null, words: Array(300).fill("x"), nan: Array(300).fill(NaN), typed: new Uint8Array(300), infinite: [...long, Infinity, -0] };
    const packed = d.pack(output);
    assert.ok(packed.long.packed instanceof Float64Array && packed.infinite.packed instanceof Float64Array);
    assert.deepEqual([packed.short, packed.words, packed.nan, packed.typed], [output.short, output.words, output.nan, output.typed]);
    assert.deepEqual(d.unpack(structuredClone(packed)), output);
    assert.deepEqual([d.pack("text"), d.unpack(null)], ["text", null]);
  },
  "how long a trial ran is without what it waited"() {
    const at = "2026-11-25T05:00:00Z";
    const now = Date.parse("2026-11-25T05:10:00Z");
    const t = storeOf(table([trial(0, { finished_at: "2026-11-25T05:00:30Z" }), trial(1, { state: "paused", ran_ms: 20_000 }), trial(2, { state: "running", ran_ms: 20_000, running_since: "2026-11-25T05:09:00Z" }), trial(3, { state: "running", running_since: at }), trial(4, { finished_at: "2026-11-25T05:08:00Z", ran_ms: 50_000 }), trial(5, { state: "queued", started_at: null })])).table("7");
    const ran = [30, 20, 80, 600, 50];
    assert.deepEqual([0, 1, 2, 3, 4, 5].map((row) => d.ranOf(t, row, () => now)), [...ran.map((s) => 1000 * s), null]);
    assert.deepEqual([0, 1, 4, 5].map((row) => d.numberAt(t.column("duration"), row)), [30, 20, 50, null]);
  },
  async "what only news cause rests by its cost, in turns"() {
    const turns = new d.Turns();
    const [table, job, gone] = [{}, {}, {}];
    const began = [];
    await new Promise((resolve) => {
      const work = (name, cost, then = () => undefined) => async () => { began.push([name, performance.now()]); then(); return cost; };
      turns.ask(table, work("not wanted any more", 1));
      turns.ask(job, work("job", 4));
      turns.ask(gone, work("gone", 1));
      turns.drop(gone);
      turns.ask(table, work("table", 8, () => turns.ask(table, work("table again", 190, resolve))));
    });
    assert.deepEqual(began.map(([name]) => name), ["table", "job", "table again"], "in the order of asking, each owner once");
    const rest = (i) => (began[i + 1][1] - began[i][1]) / [8, 4][i];
    assert.ok(rest(0) > 63.5 && rest(1) > 63.5, `rests of ${rest(0)} and ${rest(1)} times the cost`); // clocks differ by less
    await new Promise((resolve) => { setTimeout(resolve, 1); });
    assert.equal(turns.every.value, 4); // 4 s of rest at most, and the work
    turns.stop();
  },
  async "at the end of a sweep nothing rests, for a while"() {
    const turns = new d.Turns();
    const done = (cost, then = () => undefined) => async () => { then(); return cost; };
    await new Promise((resolve) => { turns.ask({}, done(1e9, resolve)); }); // so it rests for 4 s
    let isOver = false;
    const chart = new Promise((resolve) => { turns.ask({}, done(1e9, () => { turns.ask({}, done(1, resolve)); })); });
    const rest = setTimeout(() => { isOver = true; }, 3500);
    await new Promise((resolve) => { setTimeout(resolve, 1); });
    turns.hurry();
    await chart;
    clearTimeout(rest);
    assert.ok(!isOver, "both came before a rest was over");
    turns.stop();
  },
  "how many lines pass each cell": () => {
    const density = new d.Density(4, 10);
    density.line(0, 0.5, 4, 0.5, 2);
    density.line(0, 0.5, 4, 0.5, 4);
    density.line(2, 0, 3, 9.99, 0);
    density.line(NaN, 1, 2, NaN, 0);
    const b = density.boxes();
    const at = list(b.x).map((x, i) => [x, b.y[i], b.height[i], b.level[i], b.tone[i]]);
    assert.deepEqual(at, [[0, 0, 1, 5, 3], [1, 0, 1, 5, 3], [2, 0, 1, 8, 2], [2, 1, 9, 1, 0], [3, 0, 1, 5, 3]]);
    const bundled = new d.Density(4, 10);
    bundled.bundle(0, 0, 4, 8, 2, 100, 300);
    const cells = bundled.boxes();
    assert.deepEqual(list(cells.x).map((x, i) => [x, cells.y[i], cells.height[i], cells.level[i], cells.tone[i]]), [[0, 0, 4, 8, 3], [1, 2, 4, 8, 3], [2, 4, 4, 8, 3], [3, 6, 4, 8, 3]]);
  },
  "curves: parts replace whole lines; smoothing; axes; what stops and what counts as best": () => {
    const trials = [0, 1, 2, 3].map((n) => trial(n, { state: n === 1 ? "pruned" : "completed", started_at: `2026-11-25T0${5 + n}:00:00Z` }));
    const t = storeOf(table(trials)).table("7");
    const points = new d.Points();
    const line = (n, values) => ({ trial: n, steps: values.map((_, i) => i + 1), values });
    points.take(bytesOf(pointsTable([line(0, [3, 2, 1]), line(1, [4]), line(2, [5, "NaN", 0.5])], { version: 3, whole: true })));
    points.take(bytesOf(pointsTable([line(1, [4, 3.5]), line(9, [1])], { version: 4, whole: false })));
    assert.equal(points.version, "4");
    const input = { metric: "loss", version: "4", across: "step", logX: false, logY: false, smooth: 0, goal: "minimize", filter: "", brush: "", picked: "" };
    const c = d.curvesOf(points, t, input);
    assert.deepEqual([c.count, c.stopped, c.hidden, c.marked, c.density], [3, 1, 1, null, null], "trial 9 is not known, and NaN is counted");
    assert.deepEqual(c.curves.map((x) => x.number), [1, 0, 2], "stopped ones below, the best above");
    assert.equal(c.strong, 1);
    assert.deepEqual([c.x.min, c.x.max, c.y.min, c.y.max], [1, 3, 0.5, 5]);
    assert.deepEqual(c.curves[2].last, { at: 3, value: 0.5 });
    const clock = d.curvesOf(points, t, { ...input, across: "clock" });
    assert.ok(Math.abs(clock.x.max - (2 + 6 / 3600)) < 1e-6, String(clock.x.max));
    assert.deepEqual(d.curvesOf(points, t, { ...input, filter: "number > 0", picked: "2" }).curves.map((x) => x.number), [1, 2]);
    assert.equal(d.curvesOf(new d.Points(), t, input).count, 0);
    const s = d.smoothed(Float64Array.of(1, NaN, 3), 0.5);
    assert.deepEqual([s[0], Number.isNaN(s[1]), s[2]], [1, true, (0.25 + 1.5) / 0.75]);
    const many = new d.Points();
    many.take(bytesOf(pointsTable(Array.from({ length: 500 }, (_, n) => line(n, [n, n + 1])), { version: 1, whole: true })));
    const crowd = d.curvesOf(many, storeOf(table(Array.from({ length: 500 }, (_, n) => trial(n)))).table("1"), input);
    assert.deepEqual([crowd.curves.length, crowd.curves[0].number, crowd.density !== null], [1, 0, true]);
  },
  "a timeline: lanes of what ran together, groups in one lane, seats for a gang; narrow boxes are joined": () => {
    const t = storeOf(table([0, 1, 2, 3, 4].map((n) => trial(n)))).table("7");
    const at = (s) => new Date(1_700_000_000_000 + 1000 * s).toISOString();
    const run = (n, runner, from, to, more = {}) => ({ trial: n, attempt: 1, runner, client: null, group: null, started_at: at(from), ended_at: to === null ? null : at(to), outcome: to === null ? null : "completed", seats: [], ...more });
    const a = new d.Attempts();
    a.take(bytesOf(attemptsTable([run(0, "b", 0, 10), run(1, "b", 5, 15), run(2, "b", 10, 20), run(3, "a", 0, 4, { group: "g" }), run(4, "a", 1, 5, { group: "g" })], { version: 1, whole: true })));
    const input = { version: "1", from: null, to: null, filter: "", brush: "", picked: "" };
    const of = (more = {}) => d.timelineOf(a, t, { ...input, ...more }, 1_700_000_100_000);
    const all = of();
    assert.deepEqual(all.places.map((p) => [p.name, p.lane, p.lanes, p.runs]), [["a", 0, 1, 2], ["b", 1, 2, 3]]);
    assert.deepEqual(all.boxes.map((b) => [b.run.trial, b.lane, b.part, b.parts]), [[3, 0, 0, 2], [4, 0, 1, 2], [0, 1, 0, 1], [1, 2, 0, 1], [2, 1, 0, 1]]);
    assert.ok(Math.abs(all.places[1].busy - 30 / 40) < 1e-9);
    assert.deepEqual(of({ filter: "number < 2", picked: "1" }).boxes.map((b) => [b.run.trial, b.marked]), [[0, false], [1, true]]);
    assert.deepEqual(of({ from: 1_700_000_016_000, to: 1_700_000_030_000 }).boxes.map((b) => b.run.trial), [2]);
    a.take(bytesOf(attemptsTable([run(0, null, 0, null, { seats: [{ seat: 0, runner: "x", since: at(0), ended_at: null, state: "running" }, { seat: 1, runner: "y", since: at(0), ended_at: at(3), state: "lost" }] })], { version: 2, whole: false })));
    assert.deepEqual(of().places.map((p) => p.name), ["a", "b", "x", "y"]);
    assert.deepEqual([of().runs, of().attempts, of().seats], [6, 5, 2], "a gang of two seats is one attempt");
    assert.deepEqual(of().outcomes, ["completed", "lost", "running"]);
    assert.equal(of().last, 1_700_000_100_000);
    const many = new d.Attempts();
    many.take(bytesOf(attemptsTable(Array.from({ length: 20_000 }, (_, n) => run(n % 5, "b", n, n + 1)), { version: 1, whole: true })));
    const crowd = d.timelineOf(many, t, input, 0);
    assert.deepEqual([crowd.runs, crowd.lanes], [20_000, 1]);
    assert.ok(crowd.boxes.length < 2000, String(crowd.boxes.length));
    assert.equal(crowd.boxes.reduce((n, b) => n + b.count, 0), 20_000);
  },
  "a summary of a sweep, and the interval over seeds": () => {
    const end = (s) => `2026-11-25T05:00:${String(s).padStart(2, "0")}Z`;
    const of = (values, more = {}) => d.summaryOf(read(table(values.map((v, n) => trial(n, { value: v, finished_at: end(n + 1), step: 10, ...(v === null ? { state: "failed" } : {}), ...(n === more.bad ? { feasible: false } : {}) })))), "value", more.goal ?? "minimize");
    const s = of([5, null, 3, 4, 1], { bad: 4 });
    assert.deepEqual([s.ended, s.completed, s.best, s.hasSteps], [5, 3, 3, true]);
    assert.deepEqual([list(s.trials), list(s.seconds), list(s.steps), list(s.value)], [[1, 3, 5], [1, 3, 5], [10, 30, 50], [5, 3, 3]]);
    assert.deepEqual(list(s.values), [3, 4, 5]);
    assert.deepEqual(list(of([5, 7], { goal: "maximize" }).value), [5, 7, 7]);
    assert.equal(of([null]).best, null);
    const band = d.bandOf([of([5, 3]), of([7, 1]), of([null, 4])], "trials", [0, 1, 2, 3]);
    assert.deepEqual(band.x, [1, 2]);
    assert.deepEqual(band.mid, [6, 3]);
    assert.ok(Math.abs(band.low[1] - 1.4) < 1e-12 && Math.abs(band.high[1] - 3.8) < 1e-12);
    assert.equal(d.groupKey({ name: "a", search: { method: "gp", seed: 1 }, parameters: { x: { min: 0, max: 1 } } }), d.groupKey({ name: "b", tags: ["t"], parameters: { x: { max: 1, min: 0 } }, search: { seed: 2, method: "gp" } }));
    assert.notEqual(d.groupKey({ search: { method: "gp", seed: 1 } }), d.groupKey({ search: { method: "tpe", seed: 1 } }));
  },
  "trials of several sweeps in an address": () => {
    const ids = [{ sweep: "a", number: 3 }, { sweep: "b.c", number: 0 }, { sweep: "a", number: 4 }, { sweep: "a", number: 5 }];
    assert.equal(d.formatTrials(ids), "a:3-5;b.c:0");
    assert.deepEqual(d.parseTrials("a:3-5;b.c:0;;x:").map(d.keyOf), ["a/3", "a/4", "a/5", "b.c/0"]);
    assert.equal(d.parseTrials("a:0-99").length, d.MOST_COMPARED);
  },
  "a document: its value, faults with lines, and the line of a pointer": () => {
    const text = "name: x\nparameters:\n  lr: {type: float,\n    min: 1e-4}\n  a/b:\n    - 1\n    - two # a comment\n";
    const doc = d.readDocument(text);
    assert.deepEqual(doc.value, { name: "x", parameters: { lr: { type: "float", min: 1e-4 }, "a/b": [1, "two"] } });
    assert.deepEqual(["/name", "/parameters/lr/min", "/parameters/lr/max", "/parameters/a~1b/1", "/nothing", ""].map(doc.lineOf), [1, 4, 3, 7, null, null]);
    assert.deepEqual(d.readDocument('{"a": [1, {"b": null}]}').value, { a: [1, { b: null }] });
    assert.deepEqual(d.readDocument("a: 1\na: 2").faults.map((f) => f.line), [2]);
    for (const bad of ["", "- 1", "just words", "a: [1"]) assert.equal(d.readDocument(bad).value, null, bad);
    const bomb = `a: &a [x, x, x, x, x, x, x, x, x]\n${[..."bcdefgh"].map((c, i) => `${c}: &${c} [${Array(9).fill(`*${"abcdefg"[i]}`).join(", ")}]`).join("\n")}\n`;
    assert.match(d.readDocument(bomb).faults[0].detail, /alias/i);
    assert.equal(Object.hasOwn(d.readDocument("__proto__: {x: 1}").value, "__proto__"), true);
  },
  "the rows job answers order, counts and the filter's error"() {
    const t = storeOf(inventedTable(500)).table("1");
    const all = d.JOBS.rows(t, { filter: "", sort: "value", descending: false, state: "", group: "" });
    assert.equal(all.order.length, 500);
    assert.equal(all.shown, null);
    assert.equal(Object.values(all.counts).reduce((a, b) => a + b), 500);
    const some = d.JOBS.rows(t, { filter: "value < 0.2", sort: "number", descending: true, state: "pruned", group: "" });
    assert.ok(some.order.length > 0 && some.order.length === some.counts.pruned);
    assert.ok(list(some.order).every((row, i, o) => d.wordAt(t.state, row) === "pruned" && t.column("value").values[row] < 0.2 && (i === 0 || o[i - 1] > row)));
    const bad = d.JOBS.rows(t, { filter: "valu < 1", sort: "", descending: false, state: "", group: "" });
    assert.match(bad.error, /did you mean 'value'/);
    assert.equal(bad.order.length, 500);
  },
  "what may stand at a place of a document"() {
    const all = {
      Method: { type: "string", enum: ["gp", "random"], description: "How it searches" },
      Float: { type: "object", properties: { type: { const: "float" }, min: { type: "number" }, scale: { type: "string", enum: ["linear", "log"], default: "linear" } } },
      Choice: { type: "object", properties: { type: { const: "categorical" }, values: { type: "array" } } },
      Metric: { type: "object", properties: { name: { type: "string" }, goal: { enum: ["minimize", "maximize"] } } },
    };
    const root = { properties: { name: { type: "string" }, metrics: { type: "array", items: { $ref: "#/components/schemas/Metric" } }, parameters: { additionalProperties: { oneOf: [{ $ref: "#/components/schemas/Float" }, { $ref: "#/components/schemas/Choice" }] } }, search: { properties: { method: { $ref: "#/components/schemas/Method" }, warm: { type: "boolean" } } }, trial: { properties: { train: { properties: { dataset: { type: "string" } } } } } } };
    const at = (text) => { const caret = text.indexOf("|"); const place = d.placeAt(text.replace("|", ""), caret); return place && d.choicesAt(place, root, all, { dataset: ["digits", "12 rows"] }).choices.map((c) => c.insert); };
    assert.deepEqual(at("|"), ["name: ", "metrics: ", "parameters: ", "search: ", "trial: "]);
    assert.deepEqual(at("name: a\npar|"), ["parameters: "]);
    assert.deepEqual(at("search: {method: |}"), ["gp", "random"]);
    assert.deepEqual(at("search: {method: r|"), ["random"]);
    const isWhole = (text) => d.choicesAt(d.placeAt(text, text.length), root, all, {}).isWhole;
    assert.deepEqual(["name", "na", "search: {method: gp", "search: {method: g", ""].map(isWhole), [true, false, true, false, false], "Enter after a whole word is a new line");
    assert.deepEqual(at("search:\n  method: gp\n  |"), ["method: ", "warm: "]);
    assert.deepEqual(at("search:\n  warm: |"), ["true", "false"]);
    assert.deepEqual(at("parameters:\n  lr: {type: float, sc|"), ["scale: "]);
    assert.deepEqual(at("parameters:\n  lr: {type: |"), ["float", "categorical"]);
    assert.deepEqual(at("parameters:\n  lr:\n    scale: l|"), ["linear", "log"]);
    assert.deepEqual(at("parameters:\n  optimizer/lr [β]:\n    scale: l|"), ["linear", "log"]);
    assert.deepEqual(at("parameters:\n  lr: {type: float}\n|"), ["name: ", "metrics: ", "parameters: ", "search: ", "trial: "]);
    assert.deepEqual(at("metrics:\n  - name: a\n    goal: max|"), ["maximize"]);
    assert.deepEqual(at("metrics: [{name: a, |"), ["name: ", "goal: "]);
    assert.deepEqual(at("trial:\n  train:\n    dataset: |"), ["digits", '"12 rows"']);
    assert.deepEqual(at("trial: {train: {dataset: d|}}"), ["digits"]);
    assert.equal(at("# sea|"), null);
    assert.deepEqual(at("unknown:\n  |"), []);
  },
  "markdown has no way to HTML"() {
    const walk = (node, seen = []) => {
      if (Array.isArray(node)) node.forEach((n) => walk(n, seen));
      else if (node && typeof node === "object") {
        assert.equal(node.props.dangerouslySetInnerHTML, undefined);
        if (typeof node.type === "string") seen.push(node.props.href === undefined ? node.type : `a ${node.props.href}`);
        walk(node.props.children, seen);
      } else if (node !== null && node !== undefined && typeof node !== "boolean") seen.push(`'${node}`);
      return seen;
    };
    const made = (text) => walk(d.Markdown({ text })).slice(1);
    assert.deepEqual(made("# One\ntext **bold _both_** `a*b*`"), ["h3", "'One", "p", "'text ", "strong", "'bold ", "em", "'both", "' ", "code", "'a*b*"]);
    assert.deepEqual(made("- a\n- b\n  more\n\n3. c"), ["ul", "li", "'a", "li", "'b\nmore", "ol", "li", "'c"]);
    assert.deepEqual(made("[x](javascript:alert(1)) [y](https://a.example/b) [z](data:text/html,q)"), ["p", "'[x](javascript:alert(1)) ", "a https://a.example/b", "'y", "' ", "'z"]);
    assert.deepEqual(made("<img src=x onerror=alert(1)>"), ["p", "'<img src=x onerror=alert(1)>"]);
    assert.deepEqual(made("```\n<b>\n```\n> q"), ["pre", "'<b>", "blockquote", "'q"]);
    assert.deepEqual(made("```\nopen"), ["pre", "'open"]);
    assert.deepEqual(made("snake_case_name and 2*3*4"), ["p", "'snake_case_name and 2*3*4"]);
    const began = performance.now();
    made(`${"*a ".repeat(20_000)}${"[".repeat(20_000)}${"`".repeat(20_001)}`);
    assert.ok(performance.now() - began < 5000, "the time grows with the square of the text");
  },
  "rows of a long text"() {
    assert.deepEqual(list(d.rowsOf("")), [0]);
    assert.deepEqual(list(d.rowsOf("a\n\nb")), [0, 2, 3, 4]);
    assert.deepEqual(list(d.rowsOf(`${"x".repeat(1000)}\ny`)), [0, 400, 800, 1001, 1002]);
    assert.deepEqual(list(d.rowsOf(`${"x".repeat(400)}\n`)), [0, 401]);
    const starts = d.rowsOf("a\n\nb");
    assert.deepEqual([0, 1, 2, 3, 4].map((at) => d.rowOf(starts, at)), [0, 0, 1, 2, 2]);
    assert.equal(d.rowsOf("\n".repeat(100_000)).length, 100_001);
  },
  "what a file is shown as"() {
    const as = (path, bytes, size = bytes.length) => d.shownAs(path, size, Uint8Array.from(bytes)).kind;
    const bytesOfText = (t) => list(new TextEncoder().encode(t));
    const png = (w, h) => [0x89, ...bytesOfText("PNG\r\n\x1a\n"), 0, 0, 0, 13, ...bytesOfText("IHDR"), ...[w, h].flatMap((v) => [v >>> 24, (v >> 16) & 255, (v >> 8) & 255, v & 255]), 8, 0, 0, 0, 0];
    assert.equal(as("a.txt", png(4, 4)), "image"); // by its bytes, not by its name
    assert.equal(as("a.png", png(60_000, 60_000)), "nothing");
    assert.equal(as("a.png", png(4, 4), 17 << 20), "nothing");
    assert.equal(as("a.png", png(4, 4).slice(0, 20)), "nothing"); // it does not say how many pixels
    assert.equal(as("a.jpg", [0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0, 10, 0, 20]), "image");
    assert.equal(as("a.jpg", [0xff, 0xd8, 0xff, 0xe0, 0, 0]), "nothing");
    assert.equal(as("a.png", bytesOfText("<svg onload=alert(1)>")), "text");
    assert.equal(as("a.svg", bytesOfText("<svg/>")), "text");
    assert.equal(as("a.html", bytesOfText("<script>")), "text");
    assert.equal(as("A.CSV", bytesOfText("a,b")), "table");
    assert.equal(as("a.json", bytesOfText("{}")), "json");
    assert.equal(as("a.txt", []), "text");
    assert.equal(as("a.txt", [0xc3, 0x28]), "nothing");
    assert.equal(as("a.txt", [0x61, 0xc3]), "text"); // a character that was cut
    assert.equal(as("a.txt", [0x61, 0]), "nothing");
  },
  "rows of a table in a file"() {
    const rows = (text, most = 10) => d.rowsOfTable(text, ",", most);
    assert.deepEqual(rows('a,"b ""c"""\r\n\n1,"x\ny"'), [["a", 'b "c"'], ["1", "x\ny"]]);
    assert.deepEqual(rows("a,\n,b\n"), [["a", ""], ["", "b"]]);
    assert.deepEqual(rows('a,"never closed\n1,2'), [["a", "never closed\n1,2"]]);
    assert.deepEqual(rows("1\n2\n3\n4", 2), [["1"], ["2"]]);
    assert.deepEqual(rows(""), []);
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    console.error(`FAILED ${name}\n${error.stack}`);
  }
}
process.exit(failed === 0 ? 0 : 1);
