/* The text of a sweep document, YAML or JSON: its value, its faults with their lines, and the line of
 * a JSON pointer. */
import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node } from "yaml";

export interface Fault {
  /** From 1; null: the document as a whole. */
  line: number | null;
  pointer: string;
  detail: string;
}

export interface Read {
  /** Null: the text is no document. */
  value: Record<string, unknown> | null;
  faults: Fault[];
  lineOf(pointer: string): number | null;
}

const MOST_ALIASES = 100; // an alias of aliases may have any size

export function readDocument(text: string): Read {
  const lines = new LineCounter();
  const doc = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const faults = doc.errors.map((e): Fault => ({ line: lines.linePos(e.pos[0]).line, pointer: "", detail: e.message }));
  const lineOf = (pointer: string) => lineAt(doc, lines, pointer);
  if (faults.length > 0) return { value: null, faults, lineOf };
  const fail = (detail: string): Read => ({ value: null, faults: [{ line: null, pointer: "", detail }], lineOf });
  try {
    const value: unknown = doc.toJS({ maxAliasCount: MOST_ALIASES });
    if (value === null || value === undefined) return fail("It is empty.");
    if (typeof value !== "object" || Array.isArray(value)) return fail("A sweep document is a map: names, each with a value.");
    return { value: value as Record<string, unknown>, faults, lineOf };
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

/** The line of the deepest part of a pointer that the text has. */
function lineAt(doc: Document, lines: LineCounter, pointer: string): number | null {
  let node: unknown = doc.contents;
  let at: number | null = null;
  for (const part of pointer.split("/").slice(1).map((p) => p.replaceAll("~1", "/").replaceAll("~0", "~"))) {
    const next: unknown = isMap(node) ? node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === part) : isSeq(node) ? node.items[Number(part)] : undefined;
    if (next === undefined) break;
    const shown = isPair(next) ? next.key : next;
    if (isNode(shown) && shown.range) at = lines.linePos(shown.range[0]).line;
    node = isPair(next) ? (next.value as Node | null) : next;
  }
  return at;
}
