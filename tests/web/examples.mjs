/* The types that are made from the API's document fit what people write: every example of
 * api/openapi.yaml and every sweep document of examples/ and docs/ compiles in TypeScript, and
 * wrong documents do not. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const source = process.env.ASSAY_SOURCE_ROOT;
const work = join(process.env.ASSAY_BUILD_ROOT, "web", "work");
const require = createRequire(join(work, "here.cjs"));
const ts = require("typescript");
const { parse } = require("yaml");

/* What the types refuse: a value that would be wrong in any place. */
const WRONG = {
  "an unknown field": { name: "a", parameters: {}, limit: { max_trials: 3 } },
  "no parameters": { name: "a" },
  "an unknown type of parameter": { name: "a", parameters: { x: { type: "double", min: 0, max: 1 } } },
  "a float without max": { name: "a", parameters: { x: { type: "float", min: 0 } } },
  "a bound as text": { name: "a", parameters: { x: { type: "int", min: "0", max: 1 } } },
  "values of a float": { name: "a", parameters: { x: { type: "float", values: [1] } } },
  "an unknown goal": { name: "a", parameters: {}, metric: { name: "l", goal: "up" } },
  "an unknown method": { name: "a", parameters: {}, search: { method: "anneal" } },
  "a misspelled limit": { name: "a", parameters: {}, limits: { max_trails: 3 } },
  "a command as text": { name: "a", parameters: {}, trial: { command: "run" } },
  "a misspelled field of the trainer": { name: "a", parameters: {}, trial: { train: { dataset: "d", epoch: 1 } } },
  "a condition of another kind": { name: "a", parameters: { x: { type: "bool", when: { y: { from: 1 } } } } },
};

const lines = ['import type * as Api from "./types";', ""];
const names = new Map(); // line of the file -> where it comes from
function add(where, type, value) {
  lines.push(`export const v${names.size}: ${type} = ${JSON.stringify(value)};`);
  names.set(lines.length, where);
}

const doc = parse(readFileSync(join(source, "api/openapi.yaml"), "utf8"));
const examplesOf = (content) => Object.values(content ?? {}).flatMap((media) => [...Object.values(media.examples ?? {}).map((e) => e.value), ...("example" in media ? [media.example] : [])]);
for (const [path, item] of Object.entries(doc.paths))
  for (const [method, operation] of Object.entries(item)) {
    const key = JSON.stringify(`${method.toUpperCase()} ${path}`);
    for (const value of examplesOf(operation.requestBody?.content)) add(`a body of ${key}`, `Api.Operations[${key}]["body"]`, value);
    for (const [status, answer] of Object.entries(operation.responses ?? {}))
      if (status.startsWith("2")) for (const value of examplesOf(answer.content)) add(`an answer of ${key}`, `Api.Operations[${key}]["result"]`, value);
  }
assert.ok(names.size >= 15, `only ${names.size} examples`);

const files = (folder, end) => readdirSync(join(source, folder), { recursive: true }).filter((f) => f.endsWith(end)).map((f) => join(folder, f)).sort();
// coming-from/ also has the documents of other tools
for (const file of files("examples", ".yaml").filter((f) => !f.includes("/coming-from/") || f.endsWith("/after.yaml"))) add(file, "Api.SweepDocument", parse(readFileSync(join(source, file), "utf8")));
for (const file of ["README.md", ...files("docs", ".md")])
  for (const [, text] of readFileSync(join(source, file), "utf8").matchAll(/^```yaml\n(.*?)^```/gms)) {
    let tree = null;
    try { tree = parse(text); } catch { /* a part of a document */ }
    if (tree?.name && tree.parameters) add(file, "Api.SweepDocument", tree);
  }
const right = names.size;
for (const [why, value] of Object.entries(WRONG)) add(why, "Api.SweepDocument", value);

const folder = mkdtempSync(join(tmpdir(), "assay-types-"));
try {
  writeFileSync(join(folder, "types.ts"), readFileSync(join(source, "web/src/api/types.ts")));
  writeFileSync(join(folder, "examples.ts"), lines.join("\n"));
  const program = ts.createProgram([join(folder, "examples.ts")], { strict: true, noEmit: true, exactOptionalPropertyTypes: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, types: [] });
  const failed = new Map();
  for (const d of ts.getPreEmitDiagnostics(program)) {
    const line = d.file ? d.file.getLineAndCharacterOfPosition(d.start).line + 1 : 0;
    failed.set(d.file && relative(folder, d.file.fileName) === "examples.ts" ? line : 0, ts.flattenDiagnosticMessageText(d.messageText, "\n"));
  }
  assert.equal(failed.get(0), undefined);
  for (const [line, where] of names) {
    const isRight = !(where in WRONG);
    assert.ok(failed.has(line) !== isRight, isRight ? `${where} does not compile: ${failed.get(line)}` : `compiles, although it has ${where}`);
  }
  console.log(`${right} examples compile, ${names.size - right} wrong documents do not`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
