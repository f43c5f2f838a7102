/* Checks JSON values against the schemas of api/openapi.yaml: checker()(method, path, value) returns
 * the errors. It reads the document as the build wrote it, in JSON. It knows the keywords that the document uses; unknown properties of
 * answers are allowed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./browser.mjs";

const isType = {
  string: (v) => typeof v === "string", number: (v) => typeof v === "number", integer: (v) => Number.isInteger(v), boolean: (v) => typeof v === "boolean",
  null: (v) => v === null, array: (v) => Array.isArray(v), object: (v) => v !== null && typeof v === "object" && !Array.isArray(v),
};

export function checker() {
  const doc = JSON.parse(readFileSync(join(BUILD, "api/openapi.json"), "utf8"));
  const resolve = (node) => (node.$ref ? node.$ref.slice(2).split("/").reduce((at, key) => at[key], doc) : node);

  function check(schema, value, at) {
    if (schema.$ref) return check(resolve(schema), value, at);
    if (schema.allOf) return schema.allOf.flatMap((s) => check(s, value, at));
    if (schema.oneOf) return schema.oneOf.some((s) => check(s, value, at).length === 0) ? [] : [`${at}: ${JSON.stringify(value)} is none of the kinds allowed`];
    if (schema.enum) return schema.enum.includes(value) ? [] : [`${at}: ${JSON.stringify(value)} is not one of ${schema.enum}`];
    if (schema.const !== undefined && value !== schema.const) return [`${at}: ${JSON.stringify(value)} is not ${schema.const}`];
    if (schema.type && ![].concat(schema.type).some((t) => isType[t](value))) return [`${at}: ${JSON.stringify(value)?.slice(0, 80)} is not ${schema.type}`];
    if (schema.pattern && typeof value === "string" && !new RegExp(schema.pattern).test(value)) return [`${at}: '${value}' does not match ${schema.pattern}`];
    if (schema.minimum !== undefined && value < schema.minimum) return [`${at}: ${value} is below ${schema.minimum}`];
    if (schema.format === "date-time" && Number.isNaN(Date.parse(value))) return [`${at}: '${value}' is not a time`];
    if (isType.array(value)) return value.flatMap((v, i) => check(schema.items ?? {}, v, `${at}/${i}`));
    return isType.object(value) ? checkObject(schema, value, at) : [];
  }

  function checkObject(schema, value, at) {
    const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at}: ${name} is missing`);
    const extra = isType.object(schema.additionalProperties) ? schema.additionalProperties : {};
    if (schema.additionalProperties === false) missing.push(...Object.keys(value).filter((k) => !(k in (schema.properties ?? {}))).map((k) => `${at}: ${k} is not described`));
    return [...missing, ...Object.entries(value).flatMap(([k, v]) => check(schema.properties?.[k] ?? extra, v, `${at}/${k}`))];
  }

  /** The path template of the document that matches a path. */
  const templates = Object.keys(doc.paths).map((t) => [t, new RegExp(`^${t.replace(/\{\w+\}/g, "[^/]+")}$`)]);
  return (method, path, value) => {
    const template = templates.find(([t, pattern]) => t === path || pattern.test(path))?.[0];
    const operation = template && doc.paths[template][method.toLowerCase()];
    if (!operation) return [`${method} ${path} is not in the document`];
    const schema = resolve(operation.responses["200"] ?? operation.responses["201"] ?? {}).content?.["application/json"]?.schema;
    return schema ? check(schema, value, `${method} ${path}`) : [];
  };
}
