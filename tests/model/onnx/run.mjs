/* Runs an ONNX file in ONNX Runtime and compares its outputs: node run.mjs MODEL.onnx CASE.json
 *
 * CASE.json: {"inputs": [tensor], "outputs": [tensor], "tolerance": 1e-5, "refused": bool}. A tensor is {"name",
 * "type": "float32" | "uint8" | "int64" | "string", "dims", and "file" (values in the order of
 * memory, beside CASE.json) or "texts"}. The graph must have exactly these inputs and outputs.
 * Numbers may differ by `tolerance` times the largest one of their row; all are NaN if the rows are
 * refused. Prints the largest differences as JSON. ASSAY_ONNX_RUNTIME: the folder that has node_modules. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const [model, file] = process.argv.slice(2);
const ort = createRequire(join(process.env.ASSAY_ONNX_RUNTIME, "/"))("onnxruntime-node");
const test = JSON.parse(readFileSync(file, "utf8"));
const arrays = { float32: Float32Array, uint8: Uint8Array, int64: BigInt64Array };

function fail(text) {
  console.error(`${model}: ${text}`);
  process.exit(1);
}

function valuesOf(t) {
  if (t.texts) return t.texts;
  const bytes = readFileSync(join(dirname(file), t.file));
  const type = arrays[t.type];
  return new type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

function sameNames(what, found, expected) {
  const [a, b] = [JSON.stringify([...found].sort()), JSON.stringify(expected.map((t) => t.name).sort())];
  if (a !== b) fail(`${what} ${a}, expected ${b}`);
}

/* The largest difference, relative to the largest number of the row, and to the number itself. */
function compare(t, found, expected) {
  const width = t.dims.slice(1).reduce((a, b) => a * b, 1);
  let ofRow = 0, ofNumber = 0, equal = 0;
  for (let i = 0; i < expected.length; i++) {
    const [a, b] = [found[i], expected[i]];
    if (test.refused !== Number.isNaN(b)) fail(`${t.name}[${i}] was to be ${b}`);
    if (test.refused && Number.isNaN(a)) continue;
    const row = expected.subarray(i - (i % width), i - (i % width) + width);
    const most = row.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const relative = a === b ? 0 : Math.abs(a - b) / most;
    if (!(relative <= test.tolerance)) fail(`${t.name}[${i}] is ${a}, expected ${b}`);
    equal += a === b;
    ofRow = Math.max(ofRow, relative);
    ofNumber = Math.max(ofNumber, a === b ? 0 : Math.abs(a - b) / Math.abs(b));
  }
  return { ofRow, ofNumber, equal, values: expected.length, example: Array.from(expected.subarray(0, width)).slice(0, 4) };
}

const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 });
sameNames("inputs", session.inputNames, test.inputs);
sameNames("outputs", session.outputNames, test.outputs);
const feeds = Object.fromEntries(test.inputs.map((t) => [t.name, new ort.Tensor(t.type, valuesOf(t), t.dims)]));
const results = await session.run(feeds);
const differences = {};
for (const t of test.outputs) {
  const found = results[t.name], expected = valuesOf(t);
  if (JSON.stringify(found.dims) !== JSON.stringify(t.dims)) fail(`${t.name} has dims ${found.dims}, expected ${t.dims}`);
  if (found.type !== t.type) fail(`${t.name} is ${found.type}, expected ${t.type}`);
  if (t.type === "string") {
    const wrong = expected.findIndex((v, i) => v !== found.data[i]);
    if (wrong >= 0) fail(`${t.name}[${wrong}] is '${found.data[wrong]}', expected '${expected[wrong]}'`);
  } else {
    differences[t.name] = compare(t, found.data, expected);
  }
}
console.log(JSON.stringify(differences));
