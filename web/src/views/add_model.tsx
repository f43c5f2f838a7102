/* The button that keeps a trial, or what a sweep recommends, as the next version of a model. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, messageOf } from "../api/http";
import type * as Api from "../api/types";
import { Coming } from "../parts/small";
import { href } from "../route";

/** `trial`: its number; absent: what the sweep recommends. `may`: there is something to add;
 * `will`: there may be later. What is being typed stays when that changes. */
export function AddToModels({ sweep, trial, may, will }: { sweep: string; trial?: number; may: boolean; will: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Coming there={may} keeps={will} like="Add to models…"><button type="button" onClick={() => setOpen(true)}>Add to models…</button></Coming>
      {open && <AddDialog sweep={sweep} {...(trial === undefined ? {} : { trial })} close={() => setOpen(false)} />}
    </>
  );
}

function AddDialog({ sweep, trial, close }: { sweep: string; trial?: number; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [added, setAdded] = useState<Api.ModelVersion | null>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setRefusal(null);
    try {
      const use = String(data.get("use") ?? "recommended") as NonNullable<Api.ModelVersionCreate["use"]>;
      const body: Api.ModelVersionCreate = trial === undefined ? { sweep, use } : { sweep, trial };
      setAdded(await call("POST /v1/models/{model}/versions", { path: { model: String(data.get("model")).trim() }, body }));
    } catch (error) {
      setRefusal(messageOf(error));
    }
    setBusy(false);
  };
  return (
    <dialog ref={dialog} class="limits" onClose={close} aria-labelledby="add-title">
      <h2 id="add-title">Add <bdi>{sweep}</bdi>{trial === undefined ? "" : ` #${trial}`} to models</h2>
      {added ? (
        <>
          <p role="status">It is <a href={href(["models", added.model], { version: String(added.version) })}>version {added.version} of {added.model}</a>.</p>
          <div class="actions"><button type="button" onClick={close}>Close</button></div>
        </>
      ) : (
        <form onSubmit={submit}>
          <dl>
            <div><dt><label for="model-name">Model</label></dt><dd><input id="model-name" name="model" type="text" autocomplete="off" required maxLength={64} defaultValue={sweep} /></dd></div>
            {trial === undefined && <div><dt><label for="model-use">What</label></dt><dd><select id="model-use" name="use"><option value="recommended">recommended</option><option value="ensemble">ensemble</option><option value="single">best trial</option></select></dd></div>}
          </dl>
          <p class="hint">It becomes the next version of this model, and stays when the sweep is deleted.</p>
          {refusal !== null && <p class="bad" role="alert">{refusal}</p>}
          <div class="actions"><button type="button" onClick={close}>Leave it</button><button type="submit" class="primary" disabled={busy}>{busy ? "Adding…" : "Add it"}</button></div>
        </form>
      )}
    </dialog>
  );
}
