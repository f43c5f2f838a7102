/* Rows as CSV (RFC 4180). */
export function csvOf(head: readonly string[], rows: Iterable<readonly (string | number | null)[]>): string {
  const cell = (v: string | number | null) => { const text = v === null ? "" : String(v); return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  let text = `${head.map(cell).join(",")}\r\n`;
  for (const row of rows) text += `${row.map(cell).join(",")}\r\n`;
  return text;
}
