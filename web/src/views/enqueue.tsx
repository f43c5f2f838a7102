/* Enqueue the parameters of selected trials again, with changes that hold for all of them. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, Failure, messageOf } from "../api/http";
import type * as Api from "../api/types";
import { valueAt, type Table } from "../data/columns";
import { count } from "../format";
import { hasEnded } from "../live/sweep";

const AT_ONCE = 1000; // the server takes up to 5,000 in a request

/** The value of a parameter of the API that a value of the table stands for. */
function valueFor(space: Api.Parameter, shown: number | string): Api.Value {
  if (typeof shown === "number") return shown;
  const listed = (space as { values?: Api.Value[] }).values?.find((v) => typeof v !== "string" && JSON.stringify(v) === shown);
  if (listed !== undefined) return listed;
  return space.type === "bool" ? shown === "true" : shown;
}

/** A change as the user wrote it: "" keeps the value, "*2" and "/2" scale a number, else it is a value,
 * as JSON or as a text. */
export function changed(value: Api.Value | undefined, change: string): Api.Value | undefined {
  const text = change.trim();
  if (text === "") return value;
  const scaled = /^([*×/])\s*(.+)$/.exec(text);
  if (scaled) {
    const by = Number(scaled[2]);
    if (typeof value !== "number" || !Number.isFinite(by) || by === 0) return value;
    return scaled[1] === "/" ? value / by : value * by;
  }
  try {
    return JSON.parse(text) as Api.Value;
  } catch {
    return text;
  }
}

/** The parameters of a row, without constants, which never change. */
export function paramsOf(parameters: Record<string, Api.Parameter>, table: Table, row: number, changes: ReadonlyMap<string, string>): Api.Params {
  return Object.fromEntries(Object.entries(parameters).flatMap(([name, space]): [string, Api.Value][] => {
    if (space.type === "constant") return [];
    const shown = valueAt(table.column(`param:${name}`), row);
    const value = changed(shown === null ? undefined : valueFor(space, shown), changes.get(name) ?? "");
    return value === undefined ? [] : [[name, space.type === "int" && typeof value === "number" ? Math.round(value) : value]];
  }));
}

/** What was refused, with the number of the trial instead of its place in the request. */
function ofTrial(error: unknown, asked: readonly number[]): string {
  const text = messageOf(error);
  const found = error instanceof Failure ? /^\/(\d+)(?:\/params)?(?:\/([^: ]+))?:? (.*)$/s.exec(text) : null;
  return found === null ? text : `Trial #${asked[Number(found[1])]}: ${found[2] === undefined ? "" : `${found[2]} `}${found[3]}`;
}

export function EnqueueDialog({ sweep, table, numbers, close }: { sweep: Api.Sweep; table: Table; numbers: readonly number[]; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [changes, setChanges] = useState<ReadonlyMap<string, string>>(new Map());
  const [error, setError] = useState<string | null>(null);
  const [done, setDone] = useState<number | null>(null);
  useLayoutEffect(() => { dialog.current?.showModal(); }, []);
  const parameters = sweep.document.parameters as Record<string, Api.Parameter>;
  const names = Object.keys(parameters).filter((n) => parameters[n]!.type !== "constant");
  const over = hasEnded(sweep.state);
  const enqueue = async () => {
    setError(null);
    setDone(0);
    let i = 0;
    try {
      for (; i < numbers.length; i += AT_ONCE) {
        const body = numbers.slice(i, i + AT_ONCE).map((n) => ({ params: paramsOf(parameters, table, table.rowOf(n), changes) }));
        await call("POST /v1/sweeps/{sweep}/trials", { path: { sweep: sweep.id }, body });
        setDone(Math.min(numbers.length, i + AT_ONCE));
      }
      dialog.current?.close();
    } catch (e) {
      setDone(null);
      setError(ofTrial(e, numbers.slice(i)));
    }
  };
  return (
    <dialog ref={dialog} class="limits enqueue" aria-labelledby="enqueue-title" onClose={close}>
      <h2 id="enqueue-title">Enqueue {count(numbers.length)} {numbers.length === 1 ? "configuration" : "configurations"} again</h2>
      {over ? <p>The sweep has ended and takes no more trials. Raise its number of trials first (<b>Limits…</b> at the top): what is free then, its own search takes too.</p>
        : <p>They run next, as new trials. An empty field keeps the value of each; <code>*2</code> and <code>/2</code> scale it.</p>}
      <form onSubmit={(e) => { e.preventDefault(); void enqueue(); }}>
        <dl class="scroll tall">{names.map((name) => <div key={name}><dt><label for={`change ${name}`}>{name}</label></dt><dd><input id={`change ${name}`} type="text" autocomplete="off" spellcheck={false} placeholder="as it was" value={changes.get(name) ?? ""} onInput={(e) => setChanges(new Map([...changes, [name, e.currentTarget.value]]))} /></dd></div>)}</dl>
        {error !== null && <p class="bad" role="alert">{error}</p>}
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>Leave it</button>
          <button type="submit" class="primary" disabled={over || done !== null}>{done === null ? "Enqueue" : `${count(done)} of ${count(numbers.length)}…`}</button>
        </div>
      </form>
    </dialog>
  );
}
