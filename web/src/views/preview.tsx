/* A look at a file of a trial, in a dialog: an image, a table, JSON, or text. What is read is bounded,
 * and nothing of the file is run. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { content, contentBegin, download, messageOf } from "../api/http";
import type * as Api from "../api/types";
import { bytes, count } from "../format";
import { LongText } from "../parts/long_text";
import { READ_MOST, rowsOfTable, shownAs, textOf, type Shown } from "../parts/read_file";
import { attempt } from "../parts/small";

const ROWS = 200;
const COLUMNS = 60;

interface Read {
  as: Shown;
  /** Of an image. */
  image?: ImageBitmap;
  text?: string;
  /** There is more of the file than was read. */
  cut: boolean;
}

async function read(file: Api.File, signal: AbortSignal): Promise<Read> {
  const head = file.size === 0 ? new Uint8Array() : await contentBegin(file.sha256, Math.min(file.size, READ_MOST), signal);
  const as = shownAs(file.path, file.size, head);
  const cut = file.size > head.length;
  if (as.kind === "image") {
    const whole = cut ? await content(file.sha256, signal) : new Blob([head]);
    return { as, image: await createImageBitmap(new Blob([whole], { type: as.type })), cut: false };
  }
  if (as.kind === "nothing") return { as, cut };
  const text = textOf(head) ?? "";
  if (as.kind !== "json" || cut) return { as: as.kind === "json" ? { kind: "text" } : as, text, cut };
  try {
    return { as, text: `${JSON.stringify(JSON.parse(text), null, 2)}\n`, cut };
  } catch {
    return { as: { kind: "text" }, text, cut };
  }
}

export function PreviewDialog({ file, close }: { file: Api.File; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [seen, setSeen] = useState<Read | null>(null);
  const [error, setError] = useState<string | null>(null);
  useLayoutEffect(() => { if (!dialog.current?.open) dialog.current?.showModal(); }, []);
  useEffect(() => {
    const stop = new AbortController();
    read(file, stop.signal).then((r) => { if (!stop.signal.aborted) setSeen(r); }, (e: unknown) => { if (!stop.signal.aborted) setError(messageOf(e)); });
    return () => stop.abort();
  }, [file.sha256]);
  return (
    <dialog class="wide preview" ref={dialog} aria-label={`Preview of ${file.path}`} onClose={close}>
      <div class="bar">
        <h2><bdi>{file.path}</bdi></h2>
        <span class="grow" />
        <button type="button" onClick={() => attempt(() => download(file.sha256, file.path.split("/").pop() ?? file.path))}>Download ({bytes(file.size)})</button>
        <button type="button" onClick={() => dialog.current?.close()}>Close</button>
      </div>
      {error !== null ? <p class="stale" role="alert">It cannot be shown: {error}</p> : seen === null ? <p class="hint" role="status">Loading…</p> : <Content seen={seen} file={file} />}
    </dialog>
  );
}

function Content({ seen, file }: { seen: Read; file: Api.File }) {
  const cut = seen.cut && seen.as.kind !== "nothing" && <p class="hint">These are its first {bytes(READ_MOST)}.</p>;
  if (seen.as.kind === "nothing") return <p class="hint">{seen.as.why} Download it to look at it.</p>;
  if (seen.image) return <Image image={seen.image} label={file.path} />;
  if (seen.as.kind === "table") return <>{cut}<Rows rows={rowsOfTable(seen.text ?? "", seen.as.separator, ROWS + 1)} /></>;
  return <>{cut}<LongText text={seen.text ?? ""} label={`Content of ${file.path}`} /></>;
}

/** The pixels of an image. It is no `img`: the page loads images from its own server only. */
function Image({ image, label }: { image: ImageBitmap; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => { canvas.current?.getContext("2d")?.drawImage(image, 0, 0); }, [image]);
  return (
    <>
      <div class="picture" tabIndex={0} role="region" aria-label={`Image ${label}`}><canvas ref={canvas} width={image.width} height={image.height} role="img" aria-label={label} /></div>
      <p class="hint">{count(image.width)} × {count(image.height)} pixels</p>
    </>
  );
}

function Rows({ rows }: { rows: string[][] }) {
  const [head, ...body] = rows;
  const across = Math.min(COLUMNS, Math.max(0, ...rows.map((r) => r.length)));
  if (!head) return <p class="hint">It has no rows.</p>;
  const places = Array.from({ length: across }, (_, i) => i);
  return (
    <>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="First rows">
        <table>
          <thead><tr>{places.map((i) => <th key={i} scope="col">{head[i] ?? ""}</th>)}</tr></thead>
          <tbody>{body.slice(0, ROWS).map((row, r) => <tr key={r}>{places.map((i) => <td key={i}>{(row[i] ?? "").slice(0, 200)}</td>)}</tr>)}</tbody>
        </table>
      </div>
      <p class="hint">{body.length >= ROWS ? `The first ${count(ROWS)} rows` : `${count(body.length)} ${body.length === 1 ? "row" : "rows"}`}{head.length > across ? `, the first ${count(across)} columns` : ""}.</p>
    </>
  );
}
