/* One model: its versions and aliases; of one version what it takes and gives, how good it is, and
 * where it comes from. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, download } from "../api/http";
import type * as Api from "../api/types";
import { bytes, clock, count, NONE, sig, toNumber } from "../format";
import { useModel } from "../live/model";
import { OneModel } from "../live/models";
import { attempt, Confirm, copy, Empty, Loading, Since } from "../parts/small";
import { choose, go, href, route } from "../route";

const VALUES_SHOWN = 24;
const TRIALS_SHOWN = 8;
const METRICS_SHOWN = 3;

export function ModelView({ name }: { name: string }) {
  const wanted = route.value.query.get("version") ?? "default";
  const model = useModel(() => new OneModel(name, wanted), `model ${name}`);
  useLayoutEffect(() => model.show(wanted), [wanted]);
  const of = model.model.value;
  const shown = model.shown.value;
  return (
    <main>
      <Loading of={model.refresher} ready={of !== null} missing={<NoModel name={name} />}>
        {of && (
          <>
            <Head model={model} of={of} />
            {model.versions.value.length === 0 ? <Empty title="It has no versions"><pre>assay models add SWEEP {name}</pre></Empty> : (
              <>
                <VersionsPanel of={of} versions={model.versions.value} shown={shown?.version ?? null} />
                {shown && <Version model={model} of={of} version={shown} />}
              </>
            )}
          </>
        )}
      </Loading>
    </main>
  );
}

function NoModel({ name }: { name: string }) {
  return (
    <>
      <h1>There is no model <bdi>{name}</bdi></h1>
      <p>It may have been deleted, or its name is another.</p>
      <p><a href={href(["models"])}>All models</a></p>
    </>
  );
}

function Head({ model, of }: { model: OneModel; of: Api.Model }) {
  const [asking, setAsking] = useState(false);
  const [aliasing, setAliasing] = useState(false);
  const remove = () => attempt(async () => {
    await call("DELETE /v1/models/{model}", { path: { model: of.name } });
    go(["models"]);
  });
  return (
    <>
      <div class="head">
        <nav aria-label="Where this is"><a href={href(["models"])}>Models</a><span aria-hidden="true">/</span></nav>
        <h1>{of.name}</h1>
        <span class="grow" />
        {of.versions > 0 && <button type="button" onClick={() => setAliasing(true)}>Set an alias…</button>}
        <button type="button" class="danger" onClick={() => setAsking(true)}>Delete…</button>
      </div>
      <AliasDialog open={aliasing} model={model} of={of} close={() => setAliasing(false)} />
      <Confirm open={asking} title={`Delete ${of.name}?`} action="Delete the model" close={() => setAsking(false)} yes={remove}>
        Its {count(of.versions)} {of.versions === 1 ? "version is" : "versions are"} removed, with the files. What serves them cannot fetch them again.
      </Confirm>
    </>
  );
}

/** Names an alias, new or not, and the version that it is to mean. */
function AliasDialog({ open, model, of, close }: { open: boolean; model: OneModel; of: Api.Model; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  useLayoutEffect(() => {
    if (!open) return dialog.current?.close();
    setRefusal(null);
    form.current?.reset();
    dialog.current?.showModal();
  }, [open]);
  const submit = async (event: Event) => {
    event.preventDefault();
    const data = new FormData(form.current as HTMLFormElement);
    try {
      model.take(await call("PUT /v1/models/{model}/aliases/{alias}", { path: { model: of.name, alias: String(data.get("alias")).trim() }, body: { version: Number(data.get("version")) } }));
      close();
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <dialog ref={dialog} class="limits" onClose={() => { if (dialog.current?.open === false) close(); }} aria-labelledby="alias-title">
      <h2 id="alias-title">An alias of <bdi>{of.name}</bdi></h2>
      <form ref={form} onSubmit={submit}>
        <dl>
          <div><dt><label for="alias-name">Alias</label></dt><dd><input id="alias-name" name="alias" type="text" autocomplete="off" required maxLength={64} defaultValue="champion" /></dd></div>
          <div><dt><label for="alias-version">Version</label></dt><dd><select id="alias-version" name="version">{model.versions.value.map((v) => <option key={v.version} value={String(v.version)}>{v.version}</option>)}</select></dd></div>
        </dl>
        <p class="hint">The name of the model alone means its champion, or the newest version while there is none.</p>
        {refusal !== null && <p class="bad" role="alert">{refusal}</p>}
        <div class="actions"><button type="button" onClick={close}>Leave it</button><button type="submit" class="primary">Set it</button></div>
      </form>
    </dialog>
  );
}

const metricsOf = (v: Api.ModelVersion) => Object.entries(v.metrics);

function Origin({ version }: { version: Api.ModelVersion }) {
  const rest = version.trials.length - TRIALS_SHOWN;
  return (
    <>
      <a href={href(["sweeps", version.sweep_id])}>{version.sweep_id}</a>{" "}
      {version.trials.slice(0, TRIALS_SHOWN).map((n) => <span key={n}> <a href={href(["sweeps", version.sweep_id, "trials", n])}>#{n}</a></span>)}
      {rest > 0 && <span class="faint"> and {count(rest)} more</span>}
    </>
  );
}

function VersionsPanel({ of, versions, shown }: { of: Api.Model; versions: readonly Api.ModelVersion[]; shown: number | null }) {
  return (
    <section class="panel flush" aria-label="Versions">
      <div class="bar"><h2>Versions</h2><span class="faint">{of.name} alone is version {of.default_version}</span></div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of versions">
        <table class="versions">
          <thead><tr><th scope="col" class="num">Version</th><th scope="col">Aliases</th><th scope="col">Kind</th><th scope="col">Metrics</th><th scope="col">From</th><th scope="col">Created</th></tr></thead>
          <tbody>
            {versions.map((v) => (
              <tr key={v.version} aria-current={v.version === shown ? "true" : undefined}>
                <td class="num"><button type="button" class="link" aria-label={`Show version ${v.version}`} onClick={() => choose({ version: String(v.version) })}>{v.version}</button></td>
                <td>{v.aliases.join(", ")}</td>
                <td>{v.kind}</td>
                <td>{metricsOf(v).slice(0, METRICS_SHOWN).map(([name, value]) => <span key={name} class="metric"><small>{name}</small> {sig(toNumber(value))} </span>)}</td>
                <td><Origin version={v} /></td>
                <td title={clock(v.created_at)}><Since time={v.created_at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Version({ model, of, version }: { model: OneModel; of: Api.Model; version: Api.ModelVersion }) {
  const [asking, setAsking] = useState(false);
  const file = `${version.model}-${version.version}.safetensors`;
  const removeAlias = (alias: string) => attempt(async () => {
    await call("DELETE /v1/models/{model}/aliases/{alias}", { path: { model: of.name, alias } });
    model.refresher.ask();
  });
  const remove = () => attempt(async () => {
    await call("DELETE /v1/models/{model}/versions/{version}", { path: { model: of.name, version: String(version.version) } });
    choose({ version: null });
    model.refresher.ask();
  });
  return (
    <>
      <div class="head"><h2>Version {version.version}</h2><span class="faint">{version.kind}, {bytes(version.size)}</span><span class="grow" />
        {version.aliases.map((alias) => <button key={alias} type="button" onClick={() => removeAlias(alias)} title="The version stays">Remove {alias}</button>)}
        <button type="button" class="primary" onClick={() => attempt(() => download(version.sha256, file))}>Download</button>
        {version.aliases.length === 0 && <button type="button" class="danger" onClick={() => setAsking(true)}>Delete version…</button>}
      </div>
      <div class="columns version">
        <div class="stack"><UsePanel of={of} version={version} /><InputsPanel version={version} /></div>
        <div class="stack"><FiguresPanel version={version} /><LineagePanel version={version} /></div>
      </div>
      <Confirm open={asking} title={`Delete version ${version.version}?`} action="Delete the version" close={() => setAsking(false)} yes={remove}>
        Its file is removed. Its number is not given again.
      </Confirm>
    </>
  );
}

/** What a terminal needs to predict with it. */
function UsePanel({ of, version }: { of: Api.Model; version: Api.ModelVersion }) {
  const name = version.version === of.default_version ? of.name : `${of.name}@${version.version}`;
  const uses: [string, string][] = [
    ["Predict the rows of a file", `assay predict ${name} --data FILE`],
    ["Answer predictions over HTTP", `assay serve ${name}`],
    ["Fetch it as ONNX", `assay models get ${name} --format onnx`],
  ];
  return (
    <section class="panel" aria-label="Use it">
      <div class="bar"><h2>Use it</h2><span class="faint">from a terminal</span></div>
      <dl class="uses">{uses.map(([what, line]) => <div key={what}><dt>{what}</dt><dd><code>{line}</code> <button type="button" class="link" aria-label={`Copy: ${line}`} onClick={() => attempt(() => copy(line))}>Copy</button></dd></div>)}</dl>
    </section>
  );
}

function detailOf(input: Api.ModelInput): string {
  if (input.shape) return input.shape.join(" × ");
  if (input.size !== undefined) return count(input.size);
  const values = input.values ?? [];
  return values.slice(0, VALUES_SHOWN).join(", ") + (values.length > VALUES_SHOWN ? `, … (${count(values.length)} in all)` : "");
}

function InputsPanel({ version }: { version: Api.ModelVersion }) {
  const inputs = version.inputs ?? [];
  const outputs = version.outputs ?? {};
  return (
    <section class="panel flush" aria-label="Schema">
      <div class="bar"><h2>Takes and gives</h2><span class="faint">{version.task}</span></div>
      <dl class="pairs">
        {outputs.target && <div><dt>Target</dt><dd>{outputs.target}</dd></div>}
        {outputs.classes && <div><dt>Classes</dt><dd>{outputs.classes.join(", ")}</dd></div>}
        {outputs.targets && <div><dt>Targets</dt><dd>{outputs.targets.join(", ")}</dd></div>}
      </dl>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Inputs">
        <table>
          <thead><tr><th scope="col">Input</th><th scope="col">Kind</th><th scope="col">May be missing</th><th scope="col">Values</th></tr></thead>
          <tbody>{inputs.map((i) => <tr key={i.name}><td>{i.name}</td><td>{i.kind}</td><td>{i.missing ? "yes" : "no"}</td><td title={(i.values ?? []).join(", ")}>{detailOf(i)}</td></tr>)}</tbody>
        </table>
      </div>
    </section>
  );
}

function FiguresPanel({ version }: { version: Api.ModelVersion }) {
  return (
    <section class="panel" aria-label="Metrics">
      <div class="bar"><h2>Metrics</h2><span class="faint">{version.measured_on}</span></div>
      <dl class="pairs">{metricsOf(version).map(([name, value]) => <div key={name}><dt>{name}</dt><dd title={String(value)}>{sig(toNumber(value))}</dd></div>)}</dl>
    </section>
  );
}

/** How the members of an ensemble make one prediction. */
function combinationOf(combine: Api.EnsembleCombine): string {
  if (combine.kind === "mean") return "weighted mean";
  if (combine.kind === "by") return `each row by the trial of its value of ${combine.column}`;
  return combine.inputs === "log" ? "linear, of logarithms of probabilities" : "linear, of numbers";
}

/** The trial of each value of a column. */
function ValuesTable({ version, combine }: { version: Api.ModelVersion; combine: Api.EnsembleCombine }) {
  const rows = [...(combine.buckets ?? []), ...(combine.other ? [{ ...combine.other, value: "any other" }] : [])];
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Values"><table>
      <thead><tr><th scope="col">{combine.column}</th><th scope="col" class="num">Trial</th></tr></thead>
      <tbody>{rows.map((r, i) => <tr key={i}><td>{r.value}</td><td class="num"><a href={href(["sweeps", r.sweep ?? version.sweep_id, "trials", r.number])}>{r.sweep}#{r.number}</a></td></tr>)}</tbody>
    </table></div>
  );
}

function LineagePanel({ version }: { version: Api.ModelVersion }) {
  const data = version.lineage?.dataset;
  const ensemble = version.lineage?.ensemble;
  return (
    <section class="panel" aria-label="Lineage">
      <div class="bar"><h2>Where it comes from</h2></div>
      <dl class="pairs">
        <div><dt>Sweep</dt><dd><a href={href(["sweeps", version.sweep_id])}>{version.sweep}</a></dd></div>
        {ensemble && <div><dt>Method</dt><dd>{ensemble.method ?? NONE}{ensemble.number !== undefined && `, ensemble ${ensemble.number}`}</dd></div>}
        {ensemble?.combine && <div><dt>Combination</dt><dd>{combinationOf(ensemble.combine)}</dd></div>}
        <div><dt>Data set</dt><dd>{data?.name ? <a href={href(["data", data.name])}>{data.name}</a> : NONE}</dd></div>
        <div><dt>Its digest</dt><dd title={data?.sha256 ?? ""}>{data?.sha256?.slice(0, 16) ?? NONE}</dd></div>
        <div><dt>Digest of the file</dt><dd title={version.sha256}>{version.sha256.slice(0, 16)}</dd></div>
        <div><dt>Created</dt><dd>{clock(version.created_at)}</dd></div>
      </dl>
      {ensemble?.combine?.kind === "by" && <ValuesTable version={version} combine={ensemble.combine} />}
      <div class="scroll" tabIndex={0} role="region" aria-label="Members"><table>
        <thead><tr><th scope="col" class="num">Trial</th><th scope="col">Kind</th><th scope="col" class="num">Weight</th><th scope="col" class="num">Attempt</th><th scope="col" class="num">Seed</th></tr></thead>
        <tbody>{(version.members ?? []).map((m) => <tr key={`${m.sweep ?? ""}/${m.trial}`}><td class="num"><a href={href(["sweeps", m.sweep ?? version.sweep_id, "trials", m.trial])}>{m.sweep}#{m.trial}</a></td><td>{m.kind ?? ""}</td><td class="num">{sig(m.weight, 3)}</td><td class="num">{m.attempt}</td><td class="num">{m.seed}</td></tr>)}</tbody>
      </table></div>
    </section>
  );
}
