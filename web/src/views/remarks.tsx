/* What people note about a sweep: its tags and its remarks, which are Markdown. Both can be changed in
 * every state. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, messageOf } from "../api/http";
import type * as Api from "../api/types";
import { Markdown } from "../parts/markdown";

const MOST_CHARACTERS = 65_536;

/** Texts with commas between them. */
export const tagsOf = (text: string): string[] => [...new Set(text.split(",").map((t) => t.trim()).filter((t) => t !== ""))];

export function RemarksPanel({ sweep, take }: { sweep: Api.Sweep; take: (sweep: Api.Sweep) => void }) {
  const [editing, setEditing] = useState(false);
  const edit = useRef<HTMLButtonElement>(null);
  const remarks = sweep.remarks ?? "";
  const close = () => {
    setEditing(false);
    setTimeout(() => edit.current?.focus(), 0); // it is there again in the next frame
  };
  return (
    <section class="panel remarks" aria-label="Remarks">
      <div class="bar">
        <h2>Remarks</h2>
        <span class="grow" />
        {!editing && <button type="button" class="quiet" ref={edit} onClick={() => setEditing(true)}>Edit tags and remarks</button>}
      </div>
      {editing ? <Editing sweep={sweep} take={take} close={close} /> : remarks === "" ? <p class="hint">None yet.</p> : <Markdown text={remarks} />}
    </section>
  );
}

function Editing({ sweep, take, close }: { sweep: Api.Sweep; take: (sweep: Api.Sweep) => void; close: () => void }) {
  const first = useRef<HTMLInputElement>(null);
  const [tags, setTags] = useState(sweep.tags.join(", "));
  const [remarks, setRemarks] = useState(sweep.remarks ?? "");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  useLayoutEffect(() => first.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      take(await call("PATCH /v1/sweeps/{sweep}", { path: { sweep: sweep.id }, body: { tags: tagsOf(tags), remarks: remarks === "" ? null : remarks } }));
      close();
    } catch (e) {
      setError(messageOf(e));
      setBusy(false);
    }
  };
  return (
    <form class="note-form" onSubmit={submit} onKeyDown={(e) => { if (e.key === "Escape") close(); }}>
      <label for="sweep-tags">Tags, with commas between them</label>
      <input id="sweep-tags" ref={first} type="text" autocomplete="off" value={tags} onInput={(e) => setTags(e.currentTarget.value)} />
      <label for="sweep-remarks">Remarks <small>Markdown</small></label>
      <textarea id="sweep-remarks" rows={8} maxLength={MOST_CHARACTERS} value={remarks} onInput={(e) => setRemarks(e.currentTarget.value)} />
      {remarks !== "" && <div aria-label="How it looks" role="region"><Markdown text={remarks} /></div>}
      {error !== null && <p class="bad" role="alert">{error}</p>}
      <div class="actions"><button type="button" onClick={close}>Leave it</button><button type="submit" class="primary" disabled={busy}>Save</button></div>
    </form>
  );
}
