/* TypeScript types from the OpenAPI document: node tools/types.mjs openapi.yaml types.ts [--check]
 *
 * Every schema becomes an exported type of the same name, every operation an entry of `Operations`,
 * keyed "METHOD /path", with the types of its path, query, body and result. With --check nothing is
 * written; the exit code is 1 when the file differs from the generated text. It knows the subset of
 * JSON Schema that our document uses, and fails at any other construct. */
import { readFileSync, writeFileSync } from "node:fs";
import { parse } from "yaml";

const METHODS = ["get", "put", "post", "patch", "delete", "head"];
const KNOWN = new Set(["type", "$ref", "oneOf", "allOf", "enum", "const", "properties", "required", "items", "uniqueItems",
  "additionalProperties", "propertyNames", "description", "discriminator", "format", "pattern", "minimum", "exclusiveMinimum", "maximum", "minLength", "maxLength",
  "minProperties", "maxProperties", "minItems", "maxItems", "default"]);

const quote = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
const note = (schema, pad) => (schema?.description ? `${pad}/** ${schema.description.trim().replace(/\s+/g, " ")} */\n` : "");

/** The last word of a reference: "#/components/schemas/Sweep" is Sweep. */
const refName = (ref) => ref.split("/").pop();

function resolve(doc, node) {
  return node.$ref ? node.$ref.slice(2).split("/").reduce((at, key) => at[key], doc) : node;
}

function typeOfName(name, schema, pad) {
  switch (name) {
    case "string": return "string";
    case "number": case "integer": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": { const item = typeOf(schema.items ?? {}, pad); return /[|&]/.test(item) ? `(${item})[]` : `${item}[]`; }
    case "object": return objectType(schema, pad);
    default: throw new Error(`a type named ${name} is not known here`);
  }
}

function objectType(schema, pad) {
  const props = Object.entries(schema.properties ?? {});
  const extra = schema.additionalProperties;
  if (props.length === 0) return `Record<string, ${extra && extra !== true ? typeOf(extra, pad) : "unknown"}>`;
  const required = new Set(schema.required ?? []);
  const inner = pad + "  ";
  const lines = props.map(([name, s]) => `${note(s, inner)}${inner}${quote(name)}${required.has(name) ? "" : "?"}: ${typeOf(s, inner)};\n`);
  return `{\n${lines.join("")}${pad}}`;
}

function typeOf(schema, pad = "") {
  for (const key of Object.keys(schema)) if (!KNOWN.has(key)) throw new Error(`the schema keyword ${key} is not known here`);
  if (schema.$ref) return refName(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (schema.oneOf) return schema.oneOf.map((s) => typeOf(s, pad)).join(" | ");
  if (schema.allOf) return schema.allOf.map((s) => typeOf(s, pad)).join(" & ");
  if (schema.type === undefined) return "unknown";
  return [].concat(schema.type).map((name) => typeOfName(name, schema, pad)).join(" | ");
}

/** The parameters of an operation in one place (path, query), as an object type. */
function parameters(doc, list, place) {
  const own = list.map((p) => resolve(doc, p)).filter((p) => p.in === place);
  return own.length === 0 ? "undefined" : `{${own.map((p) => `${quote(p.name)}${p.required ? "" : "?"}: ${typeOf(p.schema)}`).join("; ")}}`;
}

function contentType(node) {
  const content = Object.values(node?.content ?? {})[0];
  if (!content) return "undefined";
  return content.schema.format === "binary" ? "Blob" : typeOf(content.schema);
}

function operation(doc, path, shared, method, op) {
  const list = [...shared, ...(op.parameters ?? [])];
  const ok = Object.entries(op.responses).find(([status]) => status.startsWith("2"))?.[1];
  return `  /** ${op.summary} */\n  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: {\n` +
    `    path: ${parameters(doc, list, "path")};\n    query: ${parameters(doc, list, "query")};\n` +
    `    body: ${contentType(op.requestBody)};\n    result: ${contentType(resolve(doc, ok))};\n  };\n`;
}

function generate(doc) {
  const out = ["/* Made from api/openapi.yaml by web/tools/types.mjs (npm run types); a test holds them equal. Do not edit. */\n"];
  for (const [name, schema] of Object.entries(doc.components.schemas))
    out.push(`\n${note(schema, "")}export type ${name} = ${typeOf(schema)};\n`);
  out.push("\nexport interface Operations {\n");
  for (const [path, item] of Object.entries(doc.paths))
    for (const method of METHODS) if (item[method]) out.push(operation(doc, path, item.parameters ?? [], method, item[method]));
  out.push("}\n");
  return out.join("");
}

const [source, target, flag] = process.argv.slice(2);
const text = generate(parse(readFileSync(source, "utf8")));
if (flag === "--check") {
  const same = readFileSync(target, "utf8") === text;
  if (!same) console.error(`${target} is not what ${source} gives: run "npm run types" in web/ and commit the result`);
  process.exit(same ? 0 : 1);
}
writeFileSync(target, text);
