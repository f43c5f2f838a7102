/* Begin a sweep: its document as text, checked by the server as one types, with what the search would
 * try first. Or one that is like another sweep. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
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

export function NewSweepView() {
  const from = route.value.query.get("from");
  const [first, setFirst] = useState<string | null>(from === null ? EXAMPLE : null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    if (from === null) return undefined;
    const stop = new AbortController();
    call("GET /v1/sweeps/{sweep}", { path: { sweep: from }, signal: stop.signal })
      .then((sweep) => setFirst(`${toYaml(sweep.document)}\n`), (e: unknown) => { if (!isAbort(e)) setError(messageOf(e)); });
    return () => stop.abort();
  }, [from]);
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

function Editor({ first, like }: { first: string; like: string | null }) {
  const [text, setText] = useState(first);
  const [paused, setPaused] = useState(false);
  const [busy, setBusy] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const { value, faults, preview, error, pending } = useCheck(text);
  const begin = async () => {
    setBusy(true);
    await attempt(async () => {
      const sweep = await call("POST /v1/sweeps", { query: { paused }, body: value as unknown as Api.SweepDocument });
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

/** The choices at the caret, as a list below the text. The text keeps the focus: arrows choose, Enter or
 * Tab takes, Escape closes, Ctrl and Space opens. */
function useCompletion(text: string, set: (text: string) => void, area: { current: HTMLTextAreaElement | null }) {
  const known = useKnown();
  const [caret, setCaret] = useState<number | null>(null); // null: closed
  const [at, setAt] = useState(0);
  const place = caret === null ? null : placeAt(text, caret);
  const choices = known && place ? choicesAt(place, known.root, known.all, known.named) : [];
  const chosen = Math.min(at, choices.length - 1);
  const open = (position: number | null) => {
    setCaret(position);
    setAt(0);
  };
  const take = (choice: Choice) => {
    if (caret === null || place === null) return;
    const from = caret - place.word.length;
    set(text.slice(0, from) + choice.insert + text.slice(caret));
    open(null);
    requestAnimationFrame(() => { // when the new text is there
      area.current?.focus();
      area.current?.setSelectionRange(from + choice.insert.length, from + choice.insert.length);
    });
  };
  const press = (e: KeyboardEvent) => {
    if (e.key === " " && e.ctrlKey) {
      e.preventDefault();
      return open((e.currentTarget as HTMLTextAreaElement).selectionStart);
    }
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    if (choices.length === 0) return undefined;
    if (e.key === "Escape") open(null);
    else if (moves[e.key] !== undefined) setAt((chosen + moves[e.key]! + choices.length) % choices.length);
    else if (e.key === "Tab" || e.key === "Enter") take(choices[chosen]!);
    else return undefined;
    return e.preventDefault();
  };
  return { choices, chosen, open, take, press };
}

/** A text with the numbers of its lines. */
function Text({ text, set, area, marked, invalid }: { text: string; set: (text: string) => void; area: { current: HTMLTextAreaElement | null }; marked: ReadonlySet<number>; invalid: boolean }) {
  const gutter = useRef<HTMLOListElement>(null);
  const lines = text.split("\n").length;
  const { choices, chosen, open, take, press } = useCompletion(text, set, area);
  const follow = (e: Event) => { if (gutter.current) gutter.current.scrollTop = (e.currentTarget as Element).scrollTop; };
  return (
    <>
    <div class="editor">
      <ol ref={gutter} aria-hidden="true">{Array.from({ length: lines }, (_, i) => <li key={i} class={marked.has(i + 1) ? "bad" : ""}>{i + 1}</li>)}</ol>
      <textarea ref={area} aria-label="Sweep document" aria-invalid={invalid} aria-describedby="faults" spellcheck={false} autocomplete="off" autocapitalize="off" wrap="off" value={text}
        aria-autocomplete="list" aria-controls={choices.length > 0 ? "choices" : undefined} aria-activedescendant={choices.length > 0 ? `choice-${chosen}` : undefined}
        onInput={(e) => { set(e.currentTarget.value); open(e.currentTarget.selectionStart); }} onKeyDown={press} onClick={() => open(null)} onBlur={() => open(null)} onScroll={follow} />
    </div>
    <p class="note">Ctrl and Space shows what may stand here; arrows choose, Enter takes.</p>
    {choices.length > 0 && (
      <ul id="choices" class="choices" role="listbox" tabIndex={0} aria-label="What may stand here">
        {choices.map((c, i) => <li key={c.text} id={`choice-${i}`} role="option" aria-selected={i === chosen} onMouseDown={(e) => { e.preventDefault(); take(c); }}><code>{c.text}</code> <span>{c.about}</span></li>)}
      </ul>
    )}
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
