/* Runs ONNX files in ONNX Runtime and compares their outputs. Standard input: a line for each, MODEL.onnx, a tab and
 * CASE.json; the answer is a line, "" where the outputs are as the case says.
 *
 * CASE.json: {"inputs": [tensor], "outputs": [tensor], "tolerance": 1e-5, "refused": bool}. A tensor is {"name",
 * "type": "float32" | "uint8" | "int64" | "string", "dims", and "file" (values in the order of
 * memory, beside CASE.json) or "texts", and perhaps "unit" (a number for each column)}. The graph must
 * have exactly these inputs and outputs. Numbers may differ by `tolerance` times the largest one of their
 * row or, if that is more, the unit of their column; all are NaN if the rows are refused. ASSAY_ONNX_RUNTIME: the folder that has node_modules. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const ort = createRequire(join(process.env.ASSAY_ONNX_RUNTIME, "/"))("onnxruntime-node");
const arrays = { float32: Float32Array, uint8: Uint8Array, int64: BigInt64Array };

function fail(text) {
  throw new Error(text);
}

function valuesOf(t, folder) {
  if (t.texts) return t.texts;
  const bytes = readFileSync(join(folder, t.file));
  const type = arrays[t.type];
  return new type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

function sameNames(what, found, expected) {
  const [a, b] = [JSON.stringify([...found].sort()), JSON.stringify(expected.map((t) => t.name).sort())];
  if (a !== b) fail(`${what} ${a}, expected ${b}`);
}

/* The differences are relative to the largest number of the row, or to the unit. */
function compare(test, t, found, expected) {
  const width = t.dims.slice(1).reduce((a, b) => a * b, 1);
  for (let i = 0; i < expected.length; i++) {
    const [a, b] = [found[i], expected[i]];
    if (test.refused !== Number.isNaN(b)) fail(`${t.name}[${i}] was to be ${b}`);
    if (test.refused && Number.isNaN(a)) continue;
    const row = expected.subarray(i - (i % width), i - (i % width) + width);
    const most = row.reduce((m, v) => Math.max(m, Math.abs(v)), t.unit?.[i % width] ?? 0);
    const relative = a === b ? 0 : Math.abs(a - b) / most;
    if (!(relative <= test.tolerance)) fail(`${t.name}[${i}] is ${a}, expected ${b}`);
  }
}

async function run(model, file) {
  const test = JSON.parse(readFileSync(file, "utf8"));
  const folder = dirname(file);
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 });
  sameNames("inputs", session.inputNames, test.inputs);
  sameNames("outputs", session.outputNames, test.outputs);
  const feeds = Object.fromEntries(test.inputs.map((t) => [t.name, new ort.Tensor(t.type, valuesOf(t, folder), t.dims)]));
  const results = await session.run(feeds);
  for (const t of test.outputs) {
    const found = results[t.name], expected = valuesOf(t, folder);
    if (JSON.stringify(found.dims) !== JSON.stringify(t.dims)) fail(`${t.name} has dims ${found.dims}, expected ${t.dims}`);
    if (found.type !== t.type) fail(`${t.name} is ${found.type}, expected ${t.type}`);
    if (t.type === "string") {
      const wrong = expected.findIndex((v, i) => v !== found.data[i]);
      if (wrong >= 0) fail(`${t.name}[${wrong}] is '${found.data[wrong]}', expected '${expected[wrong]}'`);
    } else {
      compare(test, t, found.data, expected);
    }
  }
  await session.release();
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await run(...line.split("\t")).then(() => "", (e) => String(e.message ?? e).replaceAll("\n", " ") || "failed");
  process.stdout.write(`${answer}\n`);
}
