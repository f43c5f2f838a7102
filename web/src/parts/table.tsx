/* A table that is fast at any length: all rows have one height, and only the visible rows exist.
 *
 * It is a real <table>: two empty rows take the place of the rows above and below. The headings
 * choose the order, and the caller stores it (in the address). A row without a value is last in
 * either order. */
import { Component, type ComponentChildren, type VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { inFrame } from "../data/turns";
import { useRowFocus } from "./row_focus";

const ROW_PX = 28;    // the height of .rows td in style.css
const AHEAD = 12;     // rows above and below the visible ones that exist, too
const GROWTH = 16;    // rows that one frame makes: forty are as long a task as the page may have
const MANY = 3000;    // rows: a new order shows other ones, and changing texts costs less than making rows

export interface Column<T> {
  id: string;
  label: string;
  title?: string;
  /** Width in characters; the last column takes the remaining width. */
  width: number;
  numeric?: boolean;
  cell: (row: T) => ComponentChildren;
  /** The tip and the class of the cell: an element around its text would double what is laid out. */
  tip?: (row: T) => string;
  tone?: (row: T) => string | false;
  /** Where the table is narrow, the column shrinks to this, in the same unit; by default `width`. */
  least?: number;
  /** The sort key; without it the column cannot be ordered. */
  key?: (row: T) => number | string | null;
  /** It can be ordered, by the caller (`inOrder`). */
  sorts?: boolean;
}

export interface Order {
  column: string;
  descending: boolean;
}

const words = new Intl.Collator("en", { numeric: true }); // localeCompare makes one for each comparison

/** Compare two keys of any kind: below, at or above zero. The caller handles null and NaN. */
function compare(a: number | string, b: number | string): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return words.compare(String(a), String(b));
}

const isNothing = (k: number | string | null): k is null => k === null || (typeof k === "number" && Number.isNaN(k));

/** The rows in order. The sort is stable; rows without a value keep their order, too. */
export function sortRows<T>(rows: ArrayLike<T>, column: Column<T> | undefined, descending: boolean): ArrayLike<T> {
  const key = column?.key;
  if (!key) return rows;
  const keyed = Array.from(rows, (row) => ({ row, key: key(row) }));
  keyed.sort((a, b) => {
    if (isNothing(a.key) || isNothing(b.key)) return Number(isNothing(a.key)) - Number(isNothing(b.key));
    return descending ? compare(b.key, a.key) : compare(a.key, b.key);
  });
  return keyed.map((k) => k.row);
}

/* Left and right of each cell together, as style.css has it; where the columns would not fit, the
 * cells of `.rows.tight` have less. */
const PAD_PX = 20;
const TIGHT_PAD_PX = 12;

/** The widths of the columns in px. A column has its own width if all of them fit into the room;
 * else each gives up the same share of what it can. Below the least widths the table is scrolled. */
export function widthsOf(columns: readonly { width: number; least?: number }[], room: number, ch: number, pad: number): number[] {
  const sum = (list: number[]) => list.reduce((all, n) => all + n, 0);
  const least = columns.map((c) => Math.min(c.least ?? c.width, c.width) * ch + pad);
  const full = columns.map((c) => c.width * ch + pad);
  const gives = sum(full) - sum(least);
  const share = gives > 0 ? Math.min(1, Math.max(0, (room - sum(least)) / gives)) : 1;
  return least.map((w, i) => w + ((full[i] ?? w) - w) * share);
}

/** The width of the digit 0 in the element's font. */
function chOf(element: HTMLElement): number {
  const probe = document.createElement("span");
  probe.textContent = "0".repeat(50);
  probe.style.position = "absolute";
  probe.style.visibility = "hidden";
  element.append(probe);
  const ch = probe.getBoundingClientRect().width / 50;
  probe.remove();
  return ch;
}

/** How narrow a column with this label can be: a label breaks after _, ., / and -, and at blanks. */
export const leastOf = (label: string) => Math.max(...label.split(/(?<=[_./ -])/).map((part) => part.length)) + 2;

/** The parts of a label, with places between them where a line may break. */
const breakable = (label: string) => label.split(/(?<=[_./-])/).flatMap((part, i) => (i === 0 ? [part] : [<wbr key={i} />, part]));

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: ArrayLike<T>;
  /** The rows are in order already: the caller sorts them. */
  inOrder?: boolean;
  rowKey: (row: T) => string | number;
  rowClass?: (row: T) => string;
  /** What cells show changes only with `of`, with the class of the row, and with `mark`: rows for which all three are the same stay. */
  still?: { of: unknown; mark: (row: T) => string };
  order: Order;
  setOrder: (order: Order) => void;
  open?: (row: T) => void;
  empty: ComponentChildren;
}

export function Table<T>(props: Props<T>) {
  const { columns, rows, order } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800, width: 0, ch: 8 });
  const sorted = useMemo(() => (props.inOrder ? rows : sortRows(rows, columns.find((c) => c.id === order.column), order.descending)), [rows, props.inOrder, ...(props.inOrder ? [] : [columns, order.column, order.descending])]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let ch = 0;
    const look = () => {
      ch ||= chOf(element);
      setView((v) => (v.top === element.scrollTop && v.height === element.clientHeight && v.width === element.clientWidth && v.ch === ch ? v : { top: element.scrollTop, height: element.clientHeight, width: element.clientWidth, ch }));
    };
    ch = chOf(element);
    setView((v) => ({ ...v, width: element.clientWidth, ch })); // before any row is made: columns that get their widths later move
    const observer = new ResizeObserver(look); // looks at first, too, when all is laid out
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);

  const first = Math.max(0, Math.min(Math.floor(view.top / ROW_PX) - AHEAD, sorted.length - 1));
  const wanted = Math.min(sorted.length, Math.ceil((view.top + view.height) / ROW_PX) + AHEAD);
  const [most, setMost] = useState(GROWTH); // rows
  const last = view.width === 0 ? first : Math.min(wanted, first + most);
  useLayoutEffect(() => {
    if (view.width === 0) return;
    if (last < wanted) inFrame(() => setMost(most + GROWTH));
    else if (most > last - first + GROWTH) setMost(last - first + GROWTH); // few are left: more come by frames again
  }, [most, last, wanted, first, view.width === 0]);
  // A new order of many: rows that are not in sight follow in the next frame.
  const made = useRef<Made<T>>({ sorted, rows: new Map() });
  const [, setFrame] = useState(0);
  const isNews = sorted.length > MANY && made.current.sorted !== sorted;
  const isSeen = (at: number) => (at + 1) * ROW_PX > view.top && at * ROW_PX < view.top + view.height;
  made.current = rowsOf(made.current, sorted, props, first, last, (at) => isNews && !isSeen(at));
  useLayoutEffect(() => { if (isNews) inFrame(() => setFrame((n) => n + 1)); }, [sorted]);
  useRowFocus(box, (at) => (at >= first && at < last ? props.rowKey(sorted[at]!) : null), first, last);
  const total = (list: number[]) => list.reduce((all, w) => all + w, 0);
  const wide = widthsOf(columns, view.width, view.ch, PAD_PX);
  const tight = view.width > 0 && total(wide) > view.width + 0.5;
  const widths = tight ? widthsOf(columns, view.width, view.ch, TIGHT_PAD_PX) : wide;
  return (
    <div class={tight ? "rows tight" : "rows"} ref={box} tabIndex={0} role="region" aria-label={props.label}>
      <table aria-rowcount={sorted.length + 1} style={{ width: `max(100%, ${Math.floor(total(widths))}px)` }}>
        <colgroup>{columns.map((c, i) => <col key={c.id} style={{ width: i === columns.length - 1 ? "auto" : `${widths[i]}px` }} />)}</colgroup>
        <thead><tr aria-rowindex={1}>{columns.map((c) => <Heading key={c.id} column={c} order={order} setOrder={props.setOrder} />)}</tr></thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" class="gap"><td colSpan={columns.length} style={{ height: `${first * ROW_PX}px` }} /></tr>}
          {[...made.current.rows.values()]}
          {last < sorted.length && <tr aria-hidden="true" class="gap"><td colSpan={columns.length} style={{ height: `${(sorted.length - last) * ROW_PX}px` }} /></tr>}
        </tbody>
      </table>
      {sorted.length === 0 && <p class="hint">{props.empty}</p>}
    </div>
  );
}

/** The rows that a render made, by their place in `sorted`. */
interface Made<T> {
  sorted: ArrayLike<T>;
  rows: Map<number, VNode>;
}

/** Make the rows from `first` to `last`; those that `keeps` names stay as they were `before`. A function of its own: a row has what
 * was in scope where it was made, so within the table each render would keep the rows of all renders before it. */
function rowsOf<T>(before: Made<T>, sorted: ArrayLike<T>, props: Props<T>, first: number, last: number, keeps: (at: number) => boolean): Made<T> {
  const made: Made<T> = { sorted, rows: new Map() };
  for (let at = first; at < last; at++) made.rows.set(at, (keeps(at) && before.rows.get(at)) || nodeOf(props, sorted[at]!, at, sorted.length > MANY));
  return made;
}

function nodeOf<T>(props: Props<T>, row: T, at: number, isMany: boolean): VNode {
  if (props.still === undefined) return rowOf(props, row, at, isMany);
  const { of, mark } = props.still;
  return <StillRow key={isMany ? at : props.rowKey(row)} node={() => rowOf(props, row, at, isMany)} of={of} mark={`${at}\n${props.rowClass?.(row)}\n${mark(row)}`} />;
}

/** A row that is made again only when it shows something else. */
class StillRow extends Component<{ node: () => VNode; of: unknown; mark: string }> {
  override shouldComponentUpdate(next: { of: unknown; mark: string }): boolean {
    return next.of !== this.props.of || next.mark !== this.props.mark;
  }

  override render() {
    return this.props.node();
  }
}

/** A row of the table. Of many rows it belongs to its place, so that a new order changes its texts alone. */
function rowOf<T>({ columns, rowKey, rowClass, open }: Props<T>, row: T, at: number, isMany: boolean): VNode {
  return (
    <tr key={isMany ? at : rowKey(row)} aria-rowindex={at + 2} class={`${open ? "opens" : ""} ${rowClass?.(row) ?? ""}`} onClick={(e) => openRow(e, row, open)}>
      {columns.map((c) => <td key={c.id} class={`${c.numeric ? "num " : ""}${c.tone?.(row) || ""}`} title={c.tip?.(row)}>{c.cell(row)}</td>)}
    </tr>
  );
}

/** A click on a row opens it, unless the click was on a link or selected text. */
function openRow<T>(event: MouseEvent, row: T, open: ((row: T) => void) | undefined): void {
  if (!open || (event.target as Element).closest("a,button,input") || getSelection()?.isCollapsed === false) return;
  open(row);
}

function Heading<T>({ column, order, setOrder }: { column: Column<T>; order: Order; setOrder: (order: Order) => void }) {
  const chosen = order.column === column.id;
  const cls = column.numeric ? "num" : "";
  if (!column.key && !column.sorts) return <th scope="col" class={`${cls} plain`} title={column.title}>{column.label}</th>;
  return (
    <th scope="col" class={cls} aria-sort={chosen ? (order.descending ? "descending" : "ascending") : "none"} title={column.title ?? column.label}>
      <button type="button" onClick={() => setOrder({ column: column.id, descending: chosen && !order.descending })}>
        <span>{breakable(column.label)}</span><i aria-hidden="true">{chosen ? (order.descending ? "▼" : "▲") : ""}</i>
      </button>
    </th>
  );
}
