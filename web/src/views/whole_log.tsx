/* All that an attempt printed, in a dialog; of a gang what each rank did. The bytes are loaded when
 * it is opened. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { content, download, messageOf } from "../api/http";
import type * as Api from "../api/types";
import { bytes } from "../format";
import { LongText } from "../parts/long_text";
import { attempt } from "../parts/small";

/** attempt-2/output.log, of a gang attempt-2/seat-0/output.log. */
export function seatOf(path: string): number | null {
  const seat = /^attempt-\d+\/seat-(\d+)\//.exec(path);
  return seat ? Number(seat[1]) : null;
}

export function WholeLogDialog({ outputs, title, close }: { outputs: Api.File[]; title: string; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [at, setAt] = useState(0);
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const file = outputs[Math.min(at, outputs.length - 1)];
  useLayoutEffect(() => { if (!dialog.current?.open) dialog.current?.showModal(); }, []);
  useEffect(() => {
    let here = true;
    setText(null);
    setError(null);
    if (file) void content(file.sha256).then((blob) => blob.text()).then((t) => { if (here) setText(t); }, (e: unknown) => { if (here) setError(messageOf(e)); });
    return () => { here = false; };
  }, [file?.sha256]);
  if (!file) return null;
  const seat = seatOf(file.path);
  const name = `${title.replace(/[^\w.-]+/g, "-")}${seat === null ? "" : `-seat-${seat}`}.log`;
  return (
    <dialog class="wide" ref={dialog} aria-label={title} onClose={close}>
      <div class="bar">
        <h2>{title}</h2>
        <span class="grow" />
        {outputs.length > 1 && <label class="toggle">Rank <select value={String(at)} onChange={(e) => setAt(Number(e.currentTarget.value))}>{outputs.map((o, i) => <option key={o.path} value={String(i)}>{seatOf(o.path) ?? i}</option>)}</select></label>}
        <button type="button" onClick={() => attempt(() => download(file.sha256, name))}>Download ({bytes(file.size)})</button>
        <button type="button" onClick={() => dialog.current?.close()}>Close</button>
      </div>
      {error !== null ? <p class="stale" role="alert">It could not be loaded: {error}</p> : text === null ? <p class="hint" role="status">Loading…</p> : <LongText text={text} label="All output" atEnd />}
    </dialog>
  );
}
