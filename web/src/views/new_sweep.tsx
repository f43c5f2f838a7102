/* Begin a sweep: its document as text, checked by the server as one types, with what the search would
 * try first. Or one that is like another sweep, or for a data set. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, isAbort, messageOf, send } from "../api/http";
import type * as Api from "../api/types";
import { count, inOrder, param, valueText } from "../format";
import { allOf } from "../live/models";
import { choicesAt, placeAt, type Choice, type Schema } from "../parts/complete";
import { readDocument, type Fault } from "../parts/document";
import { attempt, Toggle } from "../parts/small";
import { toYaml } from "../parts/yaml";
import { go, href, route } from "../route";

const TYPED_MS = 400; // so long the text must be unchanged
const SUGGESTIONS = 8;
const EXAMPLE = `name: my-sweep
metric: {name: loss, goal: minimize}
parameters:
  lr: {type: float, min: 0.0001, max: 1.0, scale: log}
  width: {type: int, min: 16, max: 512}
search: {method: gp}
limits: {max_trials: 50}
# Without "trial" the sweep is for ask and tell.
trial:
  command: [python3, train.py, --lr, "\${lr}", --width, "\${width}"]
`;

/** A first sweep over a data set, for the built-in trainer. */
const exampleFor = ({ name, task }: Api.Dataset) => `name: ${name}-mlp
metric: {name: ${task === "classification" ? "val_error" : "val_loss"}, goal: minimize}
parameters:
  lr: {type: float, min: 0.0001, max: 0.3, scale: log}
  width: {type: int, min: 16, max: 128, scale: log}
search: {method: gp}
limits: {max_trials: 30}
trial:
  train:
    dataset: ${name}
    model: {kind: mlp, layers: ["\${width}"]}
    optimizer: {kind: adamw, lr: "\${lr}"}
    epochs: 20
`;

export function NewSweepView() {
  const from = route.value.query.get("from");
  const data = from === null ? route.value.query.get("data") : null;
  const [first, setFirst] = useState<string | null>(from === null && data === null ? EXAMPLE : null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    if (from === null && data === null) return undefined;
    const stop = new AbortController();
    const { signal } = stop;
    const text = from !== null ? call("GET /v1/sweeps/{sweep}", { path: { sweep: from }, signal }).then((sweep) => `${toYaml(sweep.document)}\n`)
      : call("GET /v1/datasets/{dataset}", { path: { dataset: data! }, signal }).then(exampleFor);
    text.then(setFirst, (e: unknown) => { if (!isAbort(e)) setError(messageOf(e)); });
    return () => stop.abort();
  }, [from, data]);
  return (
    <main>
      <div class="head"><nav aria-label="Where this is"><a href={href(["sweeps"])}>Sweeps</a><span aria-hidden="true">/</span></nav><h1>{from === null ? "New sweep" : <>New sweep like <bdi>{from}</bdi></>}</h1></div>
      {error !== null ? <div class="empty" role="alert"><p>{error}</p></div> : first === null ? <p class="hint" role="status">Loading…</p> : <Editor first={first} like={from} />}
    </main>
  );
}

/** What is known of a text. */
interface Checked {
  faults: readonly Fault[];
  preview: Api.SweepPreview | null;
  /** The server could not be asked. */
  error: string | null;
  pending: boolean;
}

/** The server's own check of the text, a moment after the last change of it. */
function useCheck(text: string): Checked & { value: Record<string, unknown> | null } {
  const read = useMemo(() => readDocument(text), [text]);
  const [said, setSaid] = useState<{ of: string; preview: Api.SweepPreview | null; error: string | null }>({ of: "", preview: null, error: null });
  useEffect(() => {
    if (read.value === null) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const preview = await call("POST /v1/preview", { query: { suggestions: SUGGESTIONS }, body: read.value as unknown as Api.SweepDocument, signal: stop.signal });
        setSaid({ of: text, preview, error: null });
      } catch (e) {
        if (!isAbort(e)) setSaid({ of: text, preview: null, error: messageOf(e) });
      }
    }, TYPED_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  if (read.value === null) return { value: null, faults: read.faults, preview: null, error: null, pending: false };
  const isLate = said.of !== text;
  const faults = (said.preview?.errors ?? []).map((e): Fault => ({ line: read.lineOf(e.pointer), pointer: e.pointer, detail: e.detail }));
  return { value: read.value, faults: isLate ? [] : faults, preview: said.preview, error: isLate ? null : said.error, pending: isLate };
}

/** The document with the seed of its preview, so that the sweep begins with the suggestions that were shown. */
function seeded(document: Record<string, unknown>, preview: Api.SweepPreview | null): Record<string, unknown> {
  const search = (document["search"] ?? {}) as Record<string, unknown>;
  if (!preview?.seed || search["seed"] !== undefined) return document;
  return { ...document, search: { ...search, seed: Number(preview.seed) } };
}

function Editor({ first, like }: { first: string; like: string | null }) {
  const [text, setText] = useState(first);
  const [paused, setPaused] = useState(false);
  const [busy, setBusy] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const { value, faults, preview, error, pending } = useCheck(text);
  const begin = async () => {
    setBusy(true);
    await attempt(async () => {
      const sweep = await call("POST /v1/sweeps", { query: { paused }, body: seeded(value!, preview) as unknown as Api.SweepDocument });
      go(["sweeps", sweep.id]);
    });
    setBusy(false);
  };
  const show = (line: number) => {
    const lines = text.split("\n");
    const at = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
    area.current?.focus();
    area.current?.setSelectionRange(at, at + (lines[line - 1]?.length ?? 0));
  };
  return (
    <div class="columns editing">
      <section class="panel" aria-label="Document">
        <div class="bar">
          <h2>Sweep document <small>YAML or JSON</small></h2>
          <span class="grow" />
          <Toggle label="Paused" on={paused} change={setPaused} title="No trial is handed out until the sweep is resumed" />
          <button type="button" class="primary" disabled={busy || value === null || faults.length > 0 || pending} onClick={begin}>Begin the sweep</button>
        </div>
        <Text text={text} set={setText} area={area} marked={new Set(faults.flatMap((f) => f.line ?? []))} invalid={faults.length > 0} />
        {like !== null && <p class="note">A name that is taken gets a number. With the seed of <bdi>{like}</bdi> the search begins alike; sweeps that differ in their seeds only are compared as one group.</p>}
      </section>
      <div class="stack">
        <Faults faults={faults} error={error} pending={pending} show={show} />
        {preview?.valid && <Preview preview={preview} document={value} stale={pending} />}
      </div>
    </div>
  );
}

/** What the schema of documents and the names of data sets allow; null until they are loaded. */
function useKnown(): { root: Schema; all: Record<string, Schema>; named: Record<string, readonly string[]> } | null {
  const [known, setKnown] = useState<ReturnType<typeof useKnown>>(null);
  useEffect(() => {
    const stop = new AbortController();
    const load = async () => {
      const api = (await (await send("/openapi.json", { signal: stop.signal })).json()) as { components: { schemas: Record<string, Schema> } };
      const all = api.components.schemas;
      const sets = await allOf((query) => call("GET /v1/datasets", { query, signal: stop.signal }));
      setKnown({ root: all["SweepDocument"] ?? {}, all, named: { dataset: sets.map((d) => d.name) } });
    };
    load().catch(() => undefined); // the editor works without it, and the server checks the text
    return () => stop.abort();
  }, []);
  return known;
}

/** Replace a part of the text as a key would, so that the browser's undo takes it back. */
function type(area: HTMLTextAreaElement, from: number, to: number, text: string): void {
  area.focus();
  area.setSelectionRange(from, to);
  document.execCommand(text === "" ? "delete" : "insertText", false, text);
}

const INDENT = 2;

/** What Enter writes after this line: a line with its indentation, and more where a map begins. */
const nextLine = (line: string) => `\n${" ".repeat(line.length - line.trimStart().length + (/:\s*$/.test(line) ? INDENT : 0))}`;

/** The choices at the caret, as a list below it. The text keeps the focus: arrows choose, Enter or
 * Tab takes, Escape closes, Ctrl and Space opens. Typing opens it where a value begins, and while a word begins as choices do, but is none: Enter
 * after a whole word, or in an empty line, is a new line. */
function useCompletion(text: string, area: { current: HTMLTextAreaElement | null }) {
  const known = useKnown();
  const [caret, setCaret] = useState<number | null>(null); // null: closed
  const [asked, setAsked] = useState(false); // by Ctrl and Space
  const [at, setAt] = useState(0);
  const place = caret === null ? null : placeAt(text, caret);
  const begins = place !== null && (place.word.trim() !== "" || (place.kind === "value" && text[caret! - 1] === " "));
  const found = known && place && (asked || begins) ? choicesAt(place, known.root, known.all, known.named) : { choices: [], isWhole: false };
  const choices = found.isWhole && !asked ? [] : found.choices;
  const chosen = Math.min(at, choices.length - 1);
  const open = (position: number | null, byKey = false) => {
    setCaret(position);
    setAsked(byKey);
    setAt(0);
  };
  const take = (choice: Choice) => {
    if (caret === null || place === null || !area.current) return;
    type(area.current, caret - place.word.length, caret, choice.insert);
    open(null);
  };
  const enter = (box: HTMLTextAreaElement) => {
    const { selectionStart: from, selectionEnd: to } = box;
    type(box, from, to, nextLine(text.slice(text.lastIndexOf("\n", from - 1) + 1, from)));
  };
  const press = (e: KeyboardEvent) => {
    const box = e.currentTarget as HTMLTextAreaElement;
    if (e.key === " " && e.ctrlKey) {
      e.preventDefault();
      return open(box.selectionStart, true);
    }
    const before = text.slice(text.lastIndexOf("\n", box.selectionStart - 1) + 1, box.selectionStart);
    if (e.key === "Backspace" && /^ {2,}$/.test(before) && box.selectionStart === box.selectionEnd && !e.ctrlKey && !e.altKey && !e.metaKey) { // a level of the indentation
      e.preventDefault();
      return type(box, box.selectionStart - ((before.length - 1) % INDENT) - 1, box.selectionStart, "");
    }
    if (e.key === "Enter" && choices.length === 0 && !e.isComposing && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      return enter(box);
    }
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    if (choices.length === 0) return undefined;
    if (e.key === "Escape") open(null);
    else if (moves[e.key] !== undefined) setAt((chosen + moves[e.key]! + choices.length) % choices.length);
    else if (e.key === "Tab" || e.key === "Enter") take(choices[chosen]!);
    else return undefined;
    return e.preventDefault();
  };
  return { choices, chosen, caret, open, take, press };
}

const LINE_PX = 18;   // of the style of .editor
const PAD_PX = 8;
const LIST_PX = 190;  // the height of the longest list

/** Where the list stands, in px of the text's box: below the line of the caret, or above it where there is no room. */
function placeBelow(area: HTMLTextAreaElement, text: string, caret: number, choices: number): { left: string; top: string } {
  const lines = text.slice(0, caret).split("\n");
  const probe = document.createElement("canvas").getContext("2d");
  if (probe) probe.font = getComputedStyle(area).font;
  const x = area.offsetLeft + PAD_PX + (probe?.measureText(lines.at(-1)!).width ?? 0) - area.scrollLeft;
  const y = PAD_PX + LINE_PX * lines.length - area.scrollTop;
  const high = Math.min(LIST_PX, 24 * choices + 10);
  const top = y + high > area.clientHeight && y - LINE_PX > high ? y - LINE_PX - high : y;
  return { left: `${Math.max(0, Math.min(x, area.offsetLeft + area.clientWidth - 280))}px`, top: `${top}px` };
}

/** A text with the numbers of its lines. */
function Text({ text, set, area, marked, invalid }: { text: string; set: (text: string) => void; area: { current: HTMLTextAreaElement | null }; marked: ReadonlySet<number>; invalid: boolean }) {
  const gutter = useRef<HTMLOListElement>(null);
  const lines = text.split("\n").length;
  const { choices, chosen, caret, open, take, press } = useCompletion(text, area);
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    if (list.current && area.current && caret !== null) Object.assign(list.current.style, placeBelow(area.current, text, caret, choices.length));
  }, [text, caret, choices.length]);
  useLayoutEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const follow = (e: Event) => { if (gutter.current) gutter.current.scrollTop = (e.currentTarget as Element).scrollTop; };
  return (
    <>
    <div class="editor">
      <ol ref={gutter} aria-hidden="true">{Array.from({ length: lines }, (_, i) => <li key={i} class={marked.has(i + 1) ? "bad" : ""}>{i + 1}</li>)}</ol>
      <textarea ref={area} aria-label="Sweep document" aria-invalid={invalid} aria-describedby="faults" spellcheck={false} autocomplete="off" autocapitalize="off" wrap="off" value={text}
        aria-autocomplete="list" aria-controls={choices.length > 0 ? "choices" : undefined} aria-activedescendant={choices.length > 0 ? `choice-${chosen}` : undefined}
        onInput={(e) => { set(e.currentTarget.value); open(e.currentTarget.selectionStart); }} onKeyDown={press} onClick={() => open(null)} onBlur={() => open(null)} onScroll={follow} />
      {choices.length > 0 && (
        <ul ref={list} id="choices" class="choices" role="listbox" tabIndex={0} aria-label="What may stand here">
          {choices.map((c, i) => <li key={c.text} id={`choice-${i}`} role="option" aria-selected={i === chosen} onMouseDown={(e) => { e.preventDefault(); take(c); }}><code>{c.text}</code> <span>{c.about}</span></li>)}
        </ul>
      )}
    </div>
    <p class="note">Ctrl and Space shows what may stand at the caret; arrows choose, Enter takes.</p>
    </>
  );
}

function Faults({ faults, error, pending, show }: { faults: readonly Fault[]; error: string | null; pending: boolean; show: (line: number) => void }) {
  const said = error !== null ? `It could not be checked: ${error}` : pending ? "Checking…" : faults.length === 0 ? "No faults." : `${count(faults.length)} ${faults.length === 1 ? "fault" : "faults"}:`;
  return (
    <section class="panel" aria-label="Faults" data-faults={pending ? "" : faults.length}>
      <div class="bar"><h2>Faults</h2></div>
      <p id="faults" role="status" class={faults.length > 0 || error !== null ? "bad" : ""}>{said}</p>
      {faults.length > 0 && <ul class="faults">{faults.map((f, i) => <li key={i}>{f.line !== null && <button type="button" class="link" onClick={() => show(f.line!)}>line {f.line}</button>} {f.pointer !== "" && !f.detail.startsWith(f.pointer) && <code>{f.pointer}</code>} <span>{f.detail}</span></li>)}</ul>}
    </section>
  );
}

function Preview({ preview, document, stale }: { preview: Api.SweepPreview; document: Record<string, unknown> | null; stale: boolean }) {
  const names = Object.keys((document?.parameters ?? {}) as object);
  const facts: [string, string][] = [
    ["Name", preview.name ?? ""], ["Method", preview.method ?? ""], ["Trials", preview.planned_trials === null ? "no limit" : count(preview.planned_trials)],
    ["Run by", document?.["trial"] === undefined ? "whoever asks: there is no trial" : "runners"],
    ...(preview.cells === null ? [] : [["Cells of the grid", count(preview.cells)] as [string, string]]), ["Seed", preview.seed ?? ""],
  ];
  return (
    <section class="panel" aria-label="Preview" data-suggestions={preview.suggestions.length} aria-busy={stale}>
      <div class="bar"><h2>Preview</h2></div>
      <dl class="pairs">{facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd title={v}>{v}</dd></div>)}</dl>
      {preview.suggestions.length > 0 && (
        <>
          <h3>What it would try first</h3>
          <div class="scroll" tabIndex={0} role="region" aria-label="First suggestions">
            <table class="compared">
              <thead><tr>{names.map((n) => <th key={n} scope="col" class="num">{n}</th>)}<th scope="col">Why</th></tr></thead>
              <tbody>{preview.suggestions.map((s, i) => { const values = new Map(inOrder(s.params, null)); return <tr key={i}>{names.map((n) => { const v = values.get(n); return <td key={n} class="num" title={v === undefined ? "not active" : valueText(v)}>{param(v)}</td>; })}<td title={s.why}>{s.why}</td></tr>; })}</tbody>
            </table>
          </div>
        </>
      )}
    </section>
  );
}
