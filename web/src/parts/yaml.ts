/* A JSON tree as YAML in the style of hand-written sweep documents: short values on one line,
 * others in blocks. */
const PLAIN = /^[A-Za-z_./$-][\w./$ -]*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|~|-|\.nan|[-+]?\.inf)$/i;
const LINE = 88;

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  return PLAIN.test(value) && !RESERVED.test(value) && !value.startsWith("- ") && value.trim() === value ? value : JSON.stringify(value);
}

/** On one line. */
export function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (value === null || typeof value !== "object") return scalar(value);
  return `{${Object.entries(value).map(([k, v]) => `${scalar(k)}: ${flow(v)}`).join(", ")}}`;
}

function block(value: unknown, pad: string): string {
  const items = Array.isArray(value) ? value.map((v): [string, unknown] => ["-", v]) : Object.entries(value as object).map(([k, v]): [string, unknown] => [`${scalar(k)}:`, v]);
  return items.map(([head, v]) => {
    const line = `${pad}${head} ${flow(v)}`;
    const nested = v !== null && typeof v === "object";
    return nested && line.length > LINE ? `${pad}${head}\n${block(v, `${pad}  `)}` : line;
  }).join("\n");
}

export function toYaml(value: Record<string, unknown>): string {
  // The sections of a document always begin on a new line, as in the manual.
  return Object.entries(value).map(([k, v]) => {
    const open = k === "parameters" || (v !== null && typeof v === "object" && `${k}: ${flow(v)}`.length > LINE);
    return open ? `${scalar(k)}:\n${block(v, "  ")}` : `${scalar(k)}: ${flow(v)}`;
  }).join("\n");
}
