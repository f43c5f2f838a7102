/* The page's data without a browser: the columnar format, the store, the language of filters, the
 * order of rows, and the selection in the address. The sources are compiled by esbuild. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { encodeTable, inventedTable, tableOf } from "./columnar.mjs";
import { numbers } from "./slow.mjs";

const source = process.env.ASSAY_SOURCE_ROOT;
const work = join(process.env.ASSAY_BUILD_ROOT, "web", "work");
const esbuild = createRequire(join(work, "here.cjs"))("esbuild");

// What the sources use of a browser when they are loaded.
globalThis.location = { hash: "" };
globalThis.window = { addEventListener() {} };
globalThis.history = { replaceState: (_state, _title, to) => { location.hash = to; } };

const folder = mkdtempSync(join(tmpdir(), "assay-web-"));
const bundle = join(folder, "data.mjs");
const names = ["columnar", "columns", "filter", "order", "jobs", "selection"];
await esbuild.build({
  stdin: { contents: [...names.map((n) => `export * from ${JSON.stringify(join(source, "web/src/data", `${n}.ts`))};`), `export { leftOf } from ${JSON.stringify(join(source, "web/src/parts/history.ts"))};`, `export { route } from ${JSON.stringify(join(source, "web/src/route.ts"))};`].join("\n"), resolveDir: work },
  nodePaths: [join(work, "node_modules")], bundle: true, format: "esm", outfile: bundle, logLevel: "error",
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
      s.take(read(table([])));
      for (let change = 0; change < 12; change++) {
        const some = [...new Set(Array.from({ length: 1 + Math.floor(9 * random()) }, () => Math.floor(150 * random())))].sort((a, b) => a - b);
        const trials = some.map((n) => trial(n, { value: random(), runner: `r${Math.floor(4 * random())}` }));
        for (const t of trials) now.set(t.number, t);
        s.take(read(table(trials, { whole: false, params: ["lr", "kind"], metrics: ["loss"] })));
      }
      const all = [...now.values()].sort((a, b) => a.number - b.number);
      const [got, expected] = [s.table("1"), storeOf(table(all)).table("1")];
      assert.equal(got.n, all.length);
      for (const name of expected.columns.keys()) for (let row = 0; row < got.n; row++) assert.equal(d.valueAt(got.column(name), row), d.valueAt(expected.column(name), row), `${name} of row ${row}`);
    }
  },
  "a measurement changes one value"() {
    const s = storeOf(table([trial(0), trial(1)]));
    s.set(1, "value", 0.75);
    s.set(9, "value", 1);
    assert.deepEqual(list(s.table("8").column("value").values), [0, 0.75]);
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
    is("loss in [1, 2, -3]", [2]);
    is("value-value == 0", [0, 2, 3]);
    const fails = (text, message) => assert.throws(() => d.filterRows(text, t), (e) => e instanceof d.FilterError && message.test(e.message), text);
    fails("lrr < 1", /^column 1: unknown name 'lrr'; did you mean 'lr'\?$/);
    fails("lr <", /^column 5: expected a value, found the end/);
    fails("lr = 3", /^column 4: '=' is no comparison, write '=='/);
    fails("lr", /expected a comparison, found a number/);
    fails("kind < 'a'", /column 6: '<' does not compare texts/);
    fails("kind == 'a", /column 9: the text has no end/);
    fails("lr < 1 1", /column 8: unexpected '1'/);
    fails("log(1, 2) > 0", /log takes one number, found 2/);
    fails("lr in ['a']", /column 8: a number is compared with a text/);
    fails("(".repeat(100) + "lr", /nested more than 40 deep/);
    fails("lr < 1 and @", /column 12: unexpected '@'/);
  },
  "names of the language, of parameters and of hostile people"() {
    const t = storeOf(table([trial(0, { params: { in: 3, "a-b": 1, a: 7, b: 2, __proto__: null, number: 5 }, metrics: { "val/loss": 2 } })])).table("1");
    for (const text of ["`in` == 3", "a-b == 1", "a - b == 5", "val/loss == 2", "number == 0", "param:number == 5", "`val/loss` > 1"]) assert.deepEqual(list(d.filterRows(text, t)), [1], text);
    assert.throws(() => d.filterRows("constructor == 1", t), /unknown name 'constructor'/);
    for (const name of d.namesOf(t)) assert.ok(d.columnNamed(t, name), name);
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
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    test();
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    console.error(`FAILED ${name}\n${error.stack}`);
  }
}
process.exit(failed === 0 ? 0 : 1);
