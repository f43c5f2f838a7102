/* The language of filters: that of parameter_constraints (docs/sweep.md), over the columns of a
 * table.
 *
 *   lr < 0.01 and optimizer == 'sgd'        state in ['failed', 'running'] or `val/loss` > 2
 *
 * A name is that of a column, or of a parameter, or of a metric, in this order where several fit
 * (`param:number` names a parameter `number`). A name may contain - . / and :, and the longest name that fits is used;
 * a name with other characters, such as a blank, and a name that is a word of the language stand between backquotes. Texts are compared by ==, != and
 * in; `has` finds a part of a text (`reason has 'memory'`), and of the tags of a trial a whole one
 * (`tags has 'good'`).
 *
 * A comparison with a value that a trial does not have is false, and so is one with a part that is
 * not finite, such as the logarithm of 0. */
import { DURATION, MISSING, type Column, type Table } from "./columns";

/** An error with its place in the text, from 1. */
export class FilterError extends Error {
  readonly column: number;

  constructor(column: number, message: string) {
    super(`character ${column}: ${message}`);
    this.column = column;
  }
}

/* A value is evaluated for one row. A number is NaN where the trial has none; a text is null. */
type Numeric = (row: number) => number;
type Textual = (row: number) => string | null;
type Logical = (row: number) => boolean;
type Node = { type: "number"; of: Numeric } | { type: "text"; of: Textual; column?: Column & { kind: "words" } } | { type: "logic"; of: Logical };

const WORDS = new Set(["and", "or", "not", "in", "has", "true", "false"]);
const FUNCTIONS: Record<string, { least: number; most: number; of: (...values: number[]) => number }> = {
  min: { least: 2, most: Infinity, of: Math.min }, max: { least: 2, most: Infinity, of: Math.max }, abs: { least: 1, most: 1, of: Math.abs }, log: { least: 1, most: 1, of: Math.log },
  log2: { least: 1, most: 1, of: Math.log2 }, exp: { least: 1, most: 1, of: Math.exp }, sqrt: { least: 1, most: 1, of: Math.sqrt }, floor: { least: 1, most: 1, of: Math.floor }, ceil: { least: 1, most: 1, of: Math.ceil },
};
const NAME_BEGIN = /^[A-Za-z_\u0080-\uffff][\w.\-/:\u0080-\uffff]*/;
const NAME = new RegExp(`${NAME_BEGIN.source}$`); // without backquotes
const LETTER = /[\w\u0080-\uffff]/;
const SIGNS = ["**", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ","];
const IN_WORDS: Record<string, string> = { "&": "and", "|": "or", "!": "not" }; // of other languages
const MAX_TEXT = 4000;
const MAX_DEPTH = 40;

type Token = { at: number } & ({ kind: "sign" | "word"; text: string } | { kind: "number"; value: number } | { kind: "text"; text: string } | { kind: "name"; text: string; column: Column } | { kind: "end"; text: string });

/** The column that a name of the language stands for. */
export function columnNamed(table: Table, name: string): Column | undefined {
  return table.column(name) ?? table.column(`param:${name}`) ?? table.column(`metric:${name}`);
}

/** All names that a filter may use. */
export function namesOf(table: Table): string[] {
  const all = [...new Set([...table.columns.keys(), ...(table.column(DURATION) ? [DURATION] : [])])];
  const short = all.flatMap((name) => { const bare = name.replace(/^(?:param|metric):/, ""); return bare !== name && columnNamed(table, bare)?.name === name ? [bare] : []; });
  return [...all.filter((name) => !/^(?:param|metric):/.test(name) || columnNamed(table, name.replace(/^(?:param|metric):/, ""))?.name !== name), ...short];
}

/** The name as it is written in a filter. */
export const quotedName = (name: string): string => (NAME.test(name) && !WORDS.has(name) && !Object.hasOwn(FUNCTIONS, name) ? name : `\`${name}\``);
export const quotedText = (text: string): string => (text.includes("'") ? `"${text.replaceAll('"', "")}"` : `'${text}'`);

/** What headings of the table of trials are called in a filter, where that differs. */
const HEADINGS: Record<string, string> = { trial: "number", rungs: "rung", started: "started_at", ended: "ended_at", feasible: "infeasible" };

function nearest(table: Table, name: string): string | null {
  const heading = HEADINGS[name.toLowerCase()];
  if (heading !== undefined && table.column(heading)) return heading;
  let [found, least]: [string | null, number] = [null, 3];
  for (const known of namesOf(table)) {
    const far = distance(known, name, least);
    if (far < least) [found, least] = [known, far];
  }
  return found;
}

/** Edits between two names; `most` if there are at least so many. */
function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) >= most) return most;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + Number(a[i - 1] !== b[j - 1]));
    row = next;
  }
  return Math.min(most, row[b.length]!);
}

function scan(text: string, table: Table): Token[] {
  if (text.length > MAX_TEXT) throw new FilterError(MAX_TEXT, `it has ${text.length} characters, at most ${MAX_TEXT} are allowed`);
  const tokens: Token[] = [];
  for (let i = 0; i < text.length;) {
    const rest = text.slice(i);
    const at = i + 1;
    const space = /^\s+/.exec(rest);
    if (space) { i += space[0].length; continue; }
    const number = /^(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/.exec(rest);
    if (number) { tokens.push({ at, kind: "number", value: Number(number[0]) }); i += number[0].length; continue; }
    const quoted = /^'([^']*)'|^"([^"]*)"/.exec(rest);
    if (quoted) { tokens.push({ at, kind: "text", text: quoted[1] ?? quoted[2] ?? "" }); i += quoted[0].length; continue; }
    if (rest[0] === "'" || rest[0] === '"') throw new FilterError(at, "the text has no end");
    const back = /^`([^`]*)`/.exec(rest);
    if (back) { tokens.push(named(table, back[1] ?? "", at)); i += back[0].length; continue; }
    const name = NAME_BEGIN.exec(rest)?.[0];
    if (name !== undefined) { const token = longest(table, name, rest, at); tokens.push(token.token); i += token.length; continue; }
    const sign = SIGNS.find((s) => rest.startsWith(s));
    if (sign === undefined) throw new FilterError(at, rest[0] === "=" ? "'=' is no comparison, write '=='" : `unexpected '${rest[0]}'${Object.hasOwn(IN_WORDS, rest[0]!) ? `, write '${IN_WORDS[rest[0]!]}'` : ""}`);
    tokens.push({ at, kind: "sign", text: sign });
    i += sign.length;
  }
  tokens.push({ at: text.length + 1, kind: "end", text: "the end" });
  return tokens;
}

/** `rest`: the filter from the name on, where the name has no backquotes. */
function named(table: Table, name: string, at: number, rest = ""): Token {
  const column = columnNamed(table, name);
  if (column !== undefined) return { at, kind: "name", text: name, column };
  const unquoted = namesOf(table).find((known) => !NAME.test(known) && rest.startsWith(known));
  if (unquoted !== undefined) throw new FilterError(at, `unknown name '${name}'; the name '${unquoted}' stands between backquotes: \`${unquoted}\``);
  for (const known of table.columns.values()) {
    if (known.kind === "words" && known.words.includes(name)) throw new FilterError(at, `unknown name '${name}'; a text stands between quotes: '${name}'`);
  }
  const meant = nearest(table, name);
  throw new FilterError(at, `unknown name '${name}'${meant === null ? "" : `; did you mean '${meant}'?`}`);
}

/** The longest beginning of `text` that is a word of the language or a column. */
function longest(table: Table, text: string, rest: string, at: number): { token: Token; length: number } {
  for (let length = text.length; length > 0; length--) {
    const part = text.slice(0, length);
    const ends = length === text.length || !LETTER.test(text[length]!) || !LETTER.test(text[length - 1]!);
    if (!ends) continue;
    if (WORDS.has(part) || Object.hasOwn(FUNCTIONS, part)) return { token: { at, kind: "word", text: part }, length };
    const column = columnNamed(table, part);
    if (column !== undefined) return { token: { at, kind: "name", text: part, column }, length };
  }
  return { token: named(table, text, at, rest), length: text.length };
}

class Parser {
  readonly #tokens: Token[];
  #next = 0;
  #depth = 0;

  constructor(text: string, table: Table) {
    this.#tokens = scan(text, table);
  }

  whole(): Logical {
    const node = this.#logical(this.#or());
    const left = this.#peek();
    if (left.kind !== "end") throw new FilterError(left.at, `unexpected ${wordsOf(left)}`);
    return node;
  }

  #peek(): Token {
    return this.#tokens[this.#next]!;
  }

  #take(text: string): boolean {
    const t = this.#peek();
    if ((t.kind !== "sign" && t.kind !== "word") || t.text !== text) return false;
    this.#next++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw new FilterError(this.#peek().at, `expected '${text}', found ${wordsOf(this.#peek())}`);
  }

  #deeper<T>(work: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new FilterError(this.#peek().at, `nested more than ${MAX_DEPTH} deep`);
    const made = work();
    this.#depth--;
    return made;
  }

  #logical(node: Node, at = this.#peek().at): Logical {
    if (node.type !== "logic") throw new FilterError(at, `expected a comparison, found a ${node.type}`);
    return node.of;
  }

  #or(): Node {
    return this.#chain("or", () => this.#and(), (a, b) => (row) => a(row) || b(row));
  }

  #and(): Node {
    return this.#chain("and", () => this.#not(), (a, b) => (row) => a(row) && b(row));
  }

  #chain(word: string, part: () => Node, join: (a: Logical, b: Logical) => Logical): Node {
    let node = part();
    while (this.#take(word)) {
      const [a, b] = [this.#logical(node), this.#logical(part())];
      node = { type: "logic", of: join(a, b) };
    }
    return node;
  }

  #not(): Node {
    if (!this.#take("not")) return this.#comparison();
    const of = this.#deeper(() => this.#logical(this.#not()));
    return { type: "logic", of: (row) => !of(row) };
  }

  #comparison(): Node {
    let left = this.#sum();
    const parts: Logical[] = [];
    for (;;) {
      const t = this.#peek();
      if (t.kind === "sign" && ["<", "<=", ">", ">=", "==", "!="].includes(t.text)) {
        this.#next++;
        const right = this.#sum();
        parts.push(compared(t.text, left, right, t.at));
        left = right;
      } else if (t.kind === "word" && (t.text === "in" || t.text === "has" || t.text === "not")) {
        const not = this.#take("not");
        if (this.#take("has")) parts.push(this.#has(left, not, t.at));
        else {
          this.#expect("in");
          parts.push(this.#within(left, not, t.at));
        }
      } else break;
    }
    if (parts.length === 0) return left;
    return { type: "logic", of: parts.length === 1 ? parts[0]! : (row) => parts.every((p) => p(row)) };
  }

  #has(left: Node, not: boolean, at: number): Logical {
    const t = this.#peek();
    if (left.type !== "text" || t.kind !== "text") throw new FilterError(at, "'has' needs a text on both sides");
    this.#next++;
    const part = t.text.toLowerCase();
    const isTags = left.column?.name === "tags";
    return textTest(left, (word) => (isTags ? word.toLowerCase().split(",") : word.toLowerCase()).includes(part) !== not);
  }

  #within(left: Node, not: boolean, at: number): Logical {
    this.#expect("[");
    const list: Token[] = [];
    do {
      const t = this.#peek();
      const minus = this.#take("-");
      const value = this.#peek();
      if (value.kind !== "number" && (value.kind !== "text" || minus)) throw new FilterError(t.at, `expected a number or a text, found ${wordsOf(t)}`);
      this.#next++;
      list.push(minus && value.kind === "number" ? { ...value, value: -value.value } : value);
    } while (this.#take(","));
    this.#expect("]");
    if (left.type === "number") {
      const values = new Set(list.map((t) => { if (t.kind !== "number") throw new FilterError(t.at, "a number is compared with a text"); return t.value; }));
      const { of } = left;
      return (row) => { const v = of(row); return !Number.isNaN(v) && values.has(v) !== not; };
    }
    if (left.type !== "text") throw new FilterError(at, "'in' needs a number or a text on its left side");
    const words = new Set(list.map((t) => (t.kind === "text" ? t.text : String((t as { value: number }).value))));
    return textTest(left, (word) => words.has(word) !== not);
  }

  #sum(): Node {
    return this.#arithmetic(["+", "-"], () => this.#product());
  }

  #product(): Node {
    return this.#arithmetic(["*", "/", "%"], () => this.#unary());
  }

  #arithmetic(signs: string[], part: () => Node): Node {
    let node = part();
    for (;;) {
      const t = this.#peek();
      if (t.kind !== "sign" || !signs.includes(t.text)) return node;
      this.#next++;
      const [a, b] = [numeric(node, t.at), numeric(part(), t.at)];
      node = { type: "number", of: OPERATIONS[t.text]!(a, b) };
    }
  }

  #unary(): Node {
    const { at } = this.#peek();
    if (!this.#take("-")) return this.#power();
    const of = this.#deeper(() => numeric(this.#unary(), at));
    return { type: "number", of: (row) => -of(row) };
  }

  #power(): Node {
    const base = this.#atom();
    const { at } = this.#peek();
    if (!this.#take("**")) return base;
    const [a, b] = [numeric(base, at), this.#deeper(() => numeric(this.#unary(), at))];
    return { type: "number", of: (row) => a(row) ** b(row) };
  }

  #atom(): Node {
    const t = this.#peek();
    this.#next++;
    if (t.kind === "number") { const { value } = t; return { type: "number", of: () => value }; }
    if (t.kind === "text") { const { text } = t; return { type: "text", of: () => text }; }
    if (t.kind === "name") return columnNode(t.column);
    if (t.kind === "sign" && t.text === "(") {
      const node = this.#deeper(() => this.#or());
      this.#expect(")");
      return node;
    }
    if (t.kind === "word" && (t.text === "true" || t.text === "false")) { const is = t.text === "true"; return { type: "logic", of: () => is }; }
    if (t.kind === "word" && Object.hasOwn(FUNCTIONS, t.text)) return this.#function(t.text, t.at);
    throw new FilterError(t.at, `expected a value, found ${wordsOf(t)}`);
  }

  #function(name: string, at: number): Node {
    const f = FUNCTIONS[name]!;
    this.#expect("(");
    const given: Numeric[] = [];
    do given.push(numeric(this.#deeper(() => this.#sum()), at)); while (this.#take(","));
    this.#expect(")");
    if (given.length < f.least || given.length > f.most) throw new FilterError(at, `${name} takes ${f.most === 1 ? "one number" : "two or more numbers"}, found ${given.length}`);
    return { type: "number", of: (row) => f.of(...given.map((g) => g(row))) };
  }
}

const OPERATIONS: Record<string, (a: Numeric, b: Numeric) => Numeric> = {
  "+": (a, b) => (row) => a(row) + b(row), "-": (a, b) => (row) => a(row) - b(row), "*": (a, b) => (row) => a(row) * b(row), "/": (a, b) => (row) => a(row) / b(row),
  "%": (a, b) => (row) => { const [x, y] = [a(row), b(row)]; return x - y * Math.floor(x / y); },
};

const ORDERED: Record<string, (a: number, b: number) => boolean> = {
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "==": (a, b) => a === b, "!=": (a, b) => a !== b,
};

function wordsOf(t: Token): string {
  if (t.kind === "end") return "the end";
  return `'${t.kind === "number" ? String(t.value) : t.text}'`;
}

function numeric(node: Node, at: number): Numeric {
  if (node.type !== "number") throw new FilterError(at, `expected a number, found a ${node.type === "text" ? "text" : "comparison"}`);
  return node.of;
}

/** A column of booleans (true and false as words) is a condition; `== 'true'` compares it as a text. */
function columnNode(c: Column): Node {
  if (c.kind === "number") { const { values } = c; return { type: "number", of: (row) => values[row]! }; }
  if (c.words.length > 0 && c.words.every((w) => w === "true" || w === "false")) {
    const yes = c.words.indexOf("true");
    const { values } = c;
    return { type: "logic", of: (row) => values[row] === yes };
  }
  const { values, words } = c;
  return { type: "text", of: (row) => words[values[row]!] ?? null, column: c };
}

/** A test of a text; for a column each word is tested once. */
function textTest(node: Node & { type: "text" }, test: (word: string) => boolean): Logical {
  if (node.column) {
    const passes = Uint8Array.from(node.column.words, (w) => Number(test(w)));
    const { values } = node.column;
    return (row) => values[row] !== MISSING && passes[values[row]!] === 1;
  }
  const { of } = node;
  return (row) => { const word = of(row); return word !== null && test(word); };
}

function compared(sign: string, left: Node, right: Node, at: number): Logical {
  if (left.type === "text" || right.type === "text") return textual(sign, left, right, at);
  if (left.type === "logic" || right.type === "logic") {
    if (left.type !== right.type || (sign !== "==" && sign !== "!=")) throw new FilterError(at, `'${sign}' cannot compare a condition with that`);
    const [a, b] = [left.of as Logical, right.of as Logical];
    return (row) => (a(row) === b(row)) === (sign === "==");
  }
  const [a, b, test] = [left.of, right.of, ORDERED[sign]!];
  return (row) => {
    const [x, y] = [a(row), b(row)];
    return !Number.isNaN(x) && !Number.isNaN(y) && test(x, y);
  };
}

function textual(sign: string, left: Node, right: Node, at: number): Logical {
  if (sign !== "==" && sign !== "!=") throw new FilterError(at, `'${sign}' does not compare texts`);
  const [a, b] = left.type === "text" && left.column ? [left, right] : [right, left];
  // A number beside a column of words is one of its words: categories of numbers.
  if (a.type !== "text" || (b.type !== "text" && !(b.type === "number" && a.column))) throw new FilterError(at, "a text is compared with something else");
  const is = sign === "==";
  if (b.type === "text" && !b.column) {
    const wanted = b.of(0);
    return textTest(a, (word) => (word === wanted) === is);
  }
  const other: Textual = b.type === "text" ? b.of : (row) => String(b.of(row));
  return (row) => {
    const [x, y] = [a.of(row), other(row)];
    return x !== null && y !== null && (x === y) === is;
  };
}

/** The rows that pass: 1 for each that does. An empty text, or no rows: null, all pass. FilterError if the text
 * is no filter. O(rows), a few million comparisons a second. */
export function filterRows(text: string, table: Table): Uint8Array | null {
  if (text.trim() === "" || table.n === 0) return null;
  const passes = new Parser(text, table).whole();
  const rows = new Uint8Array(table.n);
  for (let i = 0; i < table.n; i++) rows[i] = passes(i) ? 1 : 0;
  return rows;
}

/** The same, where a text that is no filter is none: its error is shown elsewhere. */
export function shownOf(text: string, table: Table): Uint8Array | null {
  try {
    return filterRows(text, table);
  } catch (error) {
    if (error instanceof FilterError) return null;
    throw error;
  }
}
