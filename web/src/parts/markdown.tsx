/* Markdown as elements: headings, paragraphs, lists, quotes, code, emphasis and links. There is no way
 * from the text to HTML: every piece of it becomes the text of an element, and a link leads to http,
 * https, mail or a place in this page, or is text. */
import type { ComponentChildren, VNode } from "preact";

const SAFE = /^(https?:\/\/|mailto:|#)/i;
const MOST_DEEP = 8; // marks within marks

function link(to: string, content: ComponentChildren): ComponentChildren {
  if (!SAFE.test(to)) return content;
  return to.startsWith("#") ? <a href={to}>{content}</a> : <a href={to} target="_blank" rel="noreferrer noopener">{content}</a>;
}

const ADDRESS = /https?:\/\/[^\s<>()]*[^\s<>().,;:!?]/y;
const TRIES = 8; // places that may end an emphasis and do not

/** What a mark begins at a place: its element, and where the text goes on. */
interface Found {
  element: ComponentChildren;
  end: number;
}

/** The texts in which a mark has no end from some place on: no such search is made twice, so that the time
 * does not grow with the square of the text. */
type Endless = Set<string>;

function search(text: string, mark: string, from: number, endless: Endless): number {
  if (endless.has(mark)) return -1;
  const at = text.indexOf(mark, from);
  if (at < 0) endless.add(mark);
  return at;
}

/** Code ends with as many quotes as it began with. */
function codeAt(text: string, i: number, endless: Endless): Found | null {
  const quotes = /^`+/.exec(text.slice(i, i + 20))![0];
  let end = search(text, quotes, i + quotes.length, endless);
  for (let tries = 0; end >= 0 && text[end + quotes.length] === "`"; tries++) {
    if (tries === TRIES) return null;
    while (text[end] === "`") end++;
    end = search(text, quotes, end, endless);
  }
  return end < 0 ? null : { element: <code>{text.slice(i + quotes.length, end)}</code>, end: end + quotes.length };
}

function linkAt(text: string, i: number, deep: number, endless: Endless): Found | null {
  const middle = search(text, "](", i + 1, endless);
  const inner = text.slice(i + 1, middle);
  if (middle < 0 || inner.length > 1000 || /[[\]\n]/.test(inner)) return null;
  const end = search(text, ")", middle, endless);
  const to = text.slice(middle + 2, end);
  return end < 0 || to === "" || /[\s(]/.test(to) ? null : { element: link(to, inline(inner, deep + 1)), end: end + 1 };
}

/** Emphasis neither begins before a blank nor ends after one, and an underscore within a word is none. */
function emphasisAt(text: string, i: number, deep: number, endless: Endless): Found | null {
  const mark = text[i + 1] === text[i] ? text.slice(i, i + 2) : text[i]!;
  const from = i + mark.length;
  if (/\s/.test(text[from] ?? " ") || (mark[0] === "_" && /\w/.test(text[i - 1] ?? " "))) return null;
  for (let tries = 0, end = from; tries < TRIES; tries++) {
    end = search(text, mark, end + 1, endless);
    if (end < 0) return null;
    if (/\s/.test(text[end - 1]!) || /\w/.test(text[end + mark.length] ?? " ")) continue;
    const content = inline(text.slice(from, end), deep + 1);
    return { element: mark.length === 2 ? <strong>{content}</strong> : <em>{content}</em>, end: end + mark.length };
  }
  return null;
}

function addressAt(text: string, i: number): Found | null {
  ADDRESS.lastIndex = i;
  const found = ADDRESS.exec(text)?.[0];
  return found === undefined ? null : { element: link(found, found), end: i + found.length };
}

/** The marks within a line or paragraph. */
function inline(text: string, deep = 0): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  const endless: Endless = new Set();
  let plain = 0;
  for (let i = 0; deep < MOST_DEEP && i < text.length;) {
    const c = text[i]!;
    const found = c === "`" ? codeAt(text, i, endless) : c === "[" ? linkAt(text, i, deep, endless) : c === "*" || c === "_" ? emphasisAt(text, i, deep, endless) : c === "h" ? addressAt(text, i) : null;
    if (found) {
      parts.push(text.slice(plain, i), found.element);
      plain = i = found.end;
    } else if (c === "`") while (text[i] === "`") i++;
    else i++;
  }
  parts.push(text.slice(plain));
  return parts.filter((p) => p !== "");
}

const FENCE = /^\s*(```+|~~~+)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^\s*([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s*>\s?/;

/** The lines from `at` on for which `belongs` holds. */
function run(lines: readonly string[], at: number, belongs: (line: string) => boolean): string[] {
  let end = at;
  while (end < lines.length && belongs(lines[end]!)) end++;
  return lines.slice(at, end);
}

/** A document's headings stand below those of the page: the first level is an h3. */
function heading(level: number, text: string): VNode {
  return level === 1 ? <h3>{inline(text)}</h3> : level === 2 ? <h4>{inline(text)}</h4> : <h5>{inline(text)}</h5>;
}

export function Markdown({ text }: { text: string }) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks: VNode[] = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i]!;
    const fence = FENCE.exec(line)?.[1];
    const title = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (line.trim() === "") i++;
    else if (fence !== undefined) {
      const code = run(lines, i + 1, (l) => !l.trim().startsWith(fence));
      blocks.push(<pre tabIndex={0}>{code.join("\n")}</pre>);
      i += code.length + 2;
    } else if (title) {
      blocks.push(heading(title[1]!.length, title[2]!));
      i++;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      blocks.push(<hr />);
      i++;
    } else if (item) {
      const items = run(lines, i, (l) => ITEM.test(l) || /^\s+\S/.test(l));
      const texts = items.reduce<string[]>((all, l) => { const m = ITEM.exec(l); return m ? [...all, m[2]!] : [...all.slice(0, -1), `${all.at(-1)!}\n${l.trim()}`]; }, []);
      const list = texts.map((t) => <li>{inline(t)}</li>);
      blocks.push(/\d/.test(item[1]!) ? <ol start={parseInt(item[1]!, 10)}>{list}</ol> : <ul>{list}</ul>);
      i += items.length;
    } else if (QUOTE.test(line)) {
      const quote = run(lines, i, (l) => QUOTE.test(l));
      blocks.push(<blockquote>{inline(quote.map((l) => l.replace(QUOTE, "")).join("\n"))}</blockquote>);
      i += quote.length;
    } else {
      const paragraph = run(lines, i, (l) => l.trim() !== "" && !FENCE.test(l) && !HEADING.test(l) && !ITEM.test(l) && !QUOTE.test(l));
      blocks.push(<p>{inline(paragraph.join("\n"))}</p>);
      i += Math.max(1, paragraph.length);
    }
  }
  return <div class="markdown">{blocks}</div>;
}
