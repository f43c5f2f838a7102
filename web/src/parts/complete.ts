/* What may stand at a place of a sweep document: names of fields and values, by the schema of the API.
 * The text is YAML as people write it, and often not complete, so the place is found by its indentation
 * and by the braces of its line, and not by a reader of YAML. */

/** The part of JSON Schema that api/openapi.yaml uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
}

export interface Place {
  /** Names from the top; "*" for an item of a list. */
  path: string[];
  kind: "key" | "value";
  /** What was typed of the word so far; it ends at the caret. */
  word: string;
}

export interface Choice {
  text: string;
  about: string;
  /** What replaces the word. */
  insert: string;
}

const KEY = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([\p{L}\w./-](?: ?[\p{L}\w./@()[\]-])*))\s*:(?=\s|$)/u;
const MOST_CHOICES = 60;
const MOST_DEEP = 12; // of references and alternatives

interface Level {
  indent: number;
  name: string;
}

/** Take the marks of list items and the name at the begin of a line, and leave the levels that the line
 * is in. Returns the rest of the line; `named`: it begins with a name. */
function enter(line: string, levels: Level[]): { rest: string; named: boolean } {
  let at = line.length - line.trimStart().length;
  while (levels.length > 0 && levels.at(-1)!.indent >= at) levels.pop();
  for (let item; (item = /^-\s+/.exec(line.slice(at))) !== null; at += item[0].length) levels.push({ indent: at, name: "*" });
  const key = KEY.exec(line.slice(at));
  if (!key) return { rest: line.slice(at), named: false };
  levels.push({ indent: at, name: key[1] ?? key[2] ?? key[3] ?? "" });
  return { rest: line.slice(at + key[0].length), named: true };
}

/** Where the caret is within braces and brackets. Null: in none. */
function within(text: string): { path: string[]; pending: string | null; word: string } | null {
  const open: { list: boolean; key: string | null }[] = [];
  let word = "";
  for (const c of text) {
    const top = open.at(-1);
    if (c === "{" || c === "[") {
      open.push({ list: c === "[", key: null });
      word = "";
    } else if (top === undefined) continue;
    else if (c === "}" || c === "]") {
      open.pop();
      word = "";
    } else if (c === ",") {
      top.key = null;
      word = "";
    } else if (c === ":" && !top.list) {
      top.key = word.trim().replace(/^["']|["']$/g, "");
      word = "";
    } else word += c;
  }
  const last = open.at(-1);
  if (last === undefined) return null;
  const path = open.slice(0, -1).flatMap((o) => (o.list ? ["*"] : o.key === null ? [] : [o.key]));
  return { path: last.list ? [...path, "*"] : path, pending: last.list ? "*" : last.key, word: word.trimStart() };
}

/** The place of the caret. Null: in a comment or a text in quotes. */
export function placeAt(text: string, caret: number): Place | null {
  const lines = text.slice(0, caret).split("\n");
  const current = lines.pop()!;
  if (/(^|\s)#/.test(current)) return null;
  const levels: Level[] = [];
  for (const line of lines) if (line.trim() !== "" && !line.trim().startsWith("#")) enter(line, levels);
  const { rest, named } = enter(current, levels);
  const names = levels.map((l) => l.name);
  const flow = within(rest);
  if (flow) {
    const path = [...names, ...flow.path];
    if (flow.pending === "*") return { path, kind: "value", word: flow.word };
    return flow.pending === null ? { path, kind: "key", word: flow.word } : { path: [...path, flow.pending], kind: "value", word: flow.word };
  }
  if (named) return { path: names, kind: "value", word: rest.trimStart() };
  return { path: names, kind: names.at(-1) === "*" && rest !== "" && !/^[\w-]*$/.test(rest) ? "value" : "key", word: rest };
}

/** The schema, its references and its alternatives. */
function spread(schema: Schema | undefined, all: Record<string, Schema>, deep = 0): Schema[] {
  if (!schema || deep > MOST_DEEP) return [];
  const named = schema.$ref ? spread(all[schema.$ref.split("/").pop() ?? ""], all, deep + 1).map((s) => ({ ...s, ...(schema.description ? { description: schema.description } : {}) })) : [];
  return [schema, ...named, ...[...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap((s) => spread(s, all, deep + 1))];
}

function below(schemas: readonly Schema[], name: string, all: Record<string, Schema>): Schema[] {
  return schemas.flatMap((s): Schema[] => {
    if (name === "*") return spread(s.items, all);
    const own = s.properties && Object.hasOwn(s.properties, name) ? s.properties[name] : undefined;
    return own ? spread(own, all) : typeof s.additionalProperties === "object" ? spread(s.additionalProperties, all) : [];
  });
}

const textOf = (value: unknown): string => (typeof value === "string" ? (/^[A-Za-z_][\w.-]*$/.test(value) ? value : JSON.stringify(value)) : JSON.stringify(value));

function valuesOf(schemas: readonly Schema[]): Choice[] {
  return schemas.flatMap((s) => {
    const types = [s.type ?? []].flat();
    const values = [...(s.enum ?? []), ...(s.const === undefined ? [] : [s.const]), ...(types.includes("boolean") ? [true, false] : []), ...(s.default === undefined || s.default === null || typeof s.default === "object" ? [] : [s.default])];
    return values.map((v): Choice => ({ text: textOf(v), about: v === s.default ? "the default" : "", insert: textOf(v) }));
  });
}

function keysOf(schemas: readonly Schema[], all: Record<string, Schema>): Choice[] {
  return schemas.flatMap((s) => Object.entries(s.properties ?? {}).map(([name, p]): Choice => ({ text: name, about: spread(p, all).find((q) => q.description)?.description ?? "", insert: `${name}: ` })));
}

/** What may stand there and begins with the word; `isWhole`: the word is one of them already. `named`: values of fields by
 * their name, such as the data sets of the server. */
export function choicesAt(place: Place, root: Schema, all: Record<string, Schema>, named: Record<string, readonly string[]>): { choices: Choice[]; isWhole: boolean } {
  const schemas = place.path.reduce((list, name) => below(list, name, all), spread(root, all));
  const own = place.kind === "value" ? (named[place.path.at(-1) ?? ""] ?? []).map((n): Choice => ({ text: n, about: "", insert: textOf(n) })) : [];
  const found = [...own, ...(place.kind === "key" ? keysOf(schemas, all) : valuesOf(schemas))];
  const once = [...new Map(found.map((c) => [c.text, c])).values()];
  const word = place.word.trim().toLowerCase();
  const choices = once.filter((c) => c.text.toLowerCase().startsWith(word) && c.text !== place.word.trim()).slice(0, MOST_CHOICES);
  return { choices, isWhole: once.some((c) => c.text === place.word.trim()) };
}
