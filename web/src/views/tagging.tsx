/* Add tags to trials of a sweep, and remove others. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, messageOf } from "../api/http";
import { count } from "../format";
import { tagsOf } from "./remarks";

const AT_ONCE = 10_000; // trials in a request

export function TagDialog({ sweep, numbers, tags, close, done }: { sweep: string; numbers: readonly number[]; /** Those of a single trial. */ tags?: readonly string[]; close: () => void; done?: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [add, setAdd] = useState("");
  const [remove, setRemove] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  useLayoutEffect(() => { dialog.current?.showModal(); }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      for (let i = 0; i < numbers.length; i += AT_ONCE) {
        await call("POST /v1/sweeps/{sweep}/tags", { path: { sweep }, body: { numbers: numbers.slice(i, i + AT_ONCE), add: tagsOf(add), remove: tagsOf(remove) } });
      }
      done?.();
      dialog.current?.close();
    } catch (e) {
      setError(messageOf(e));
      setBusy(false);
    }
  };
  const field = (id: string, label: string, value: string, set: (v: string) => void) => <div><dt><label for={id}>{label}</label></dt><dd><input id={id} type="text" autocomplete="off" value={value} onInput={(e) => set(e.currentTarget.value)} /></dd></div>;
  return (
    <dialog ref={dialog} class="limits" aria-labelledby="tag-title" onClose={close}>
      <h2 id="tag-title">Tags of {numbers.length === 1 ? `trial #${numbers[0]}` : `${count(numbers.length)} trials`}</h2>
      {tags && tags.length > 0 && <ul class="tags" aria-label="Tags">{tags.map((t) => <li key={t}>{t} <button type="button" class="link" aria-label={`Remove ${t}`} onClick={() => setRemove([...tagsOf(remove), t].join(", "))}>×</button></li>)}</ul>}
      <form onSubmit={submit}>
        <dl>{field("tags-add", "Add", add, setAdd)}{field("tags-remove", "Remove", remove, setRemove)}</dl>
        <p class="hint">Short texts, with commas between them.</p>
        {error !== null && <p class="bad" role="alert">{error}</p>}
        <div class="actions"><button type="button" onClick={() => dialog.current?.close()}>Leave it</button><button type="submit" class="primary" disabled={busy || (add.trim() === "" && remove.trim() === "")}>Change tags</button></div>
      </form>
    </dialog>
  );
}
