/* The data sets; one data set with its columns, its first rows, its files, and who learns from it. */
import type * as Api from "../api/types";
import { useState } from "preact/hooks";
import { bytes, count, NONE, sig, toNumber } from "../format";
import { DatasetsModel, OneDataset, type Users } from "../live/datasets";
import { useSight } from "../live/lazy_resource";
import { useModel } from "../live/model";
import { lazy } from "../parts/lazy";
import { Empty, Loading, Since, State } from "../parts/small";
import { Table, type Column } from "../parts/table";
import { choose, go, href, route } from "../route";
import { FirstRowsPanel, ValuesPanel } from "./data_values";

const PreviewDialog = lazy(async () => (await import("./preview")).PreviewDialog);

const sizeOf = (d: Api.Dataset) => d.files.reduce((sum, f) => sum + f.size, 0);

const columns: Column<Api.Dataset>[] = [
  { id: "name", label: "Data set", width: 28, least: 14, key: (d) => d.name, cell: (d) => <a href={href(["data", d.name])} title={d.name}>{d.name}</a> },
  { id: "task", label: "Task", width: 18, least: 14, key: (d) => d.task, cell: (d) => d.task.replace("_", " ") },
  { id: "input", label: "Input", width: 8, key: (d) => d.input, cell: (d) => d.input },
  { id: "rows", label: "Rows", width: 11, numeric: true, key: (d) => d.rows, cell: (d) => count(d.rows) },
  { id: "features", label: "Features", width: 10, numeric: true, key: (d) => d.features, cell: (d) => count(d.features) },
  { id: "outputs", label: "Outputs", title: "Classes, columns of the target, or the vocabulary", width: 9, numeric: true, key: (d) => d.outputs, cell: (d) => count(d.outputs) },
  { id: "test", label: "Test rows", width: 10, numeric: true, key: (d) => d.test?.rows ?? null, cell: (d) => (d.test ? count(d.test.rows) : "") },
  { id: "format", label: "Format", width: 11, key: (d) => d.format, cell: (d) => d.format },
  { id: "size", label: "Size", width: 10, numeric: true, key: sizeOf, cell: (d) => bytes(sizeOf(d)) },
  { id: "created", label: "Added", width: 13, least: 10, key: (d) => Date.parse(d.created_at), cell: (d) => <Since time={d.created_at} /> },
];

export function DatasetsView() {
  const model = useModel(() => new DatasetsModel(), "data sets");
  const { query } = route.value;
  const all = model.datasets.value;
  const order = { column: query.get("sort") ?? "name", descending: query.get("order") === "desc" };
  return (
    <main>
      <div class="head"><h1>Data sets</h1>{all !== null && all.length > 0 && <span class="faint">{count(all.length)}</span>}</div>
      <Loading of={model.refresher} ready={all !== null}>
        {all?.length === 0 ? <Empty title="No data sets yet"><p>A data set is what the built-in trainer learns from. Add one from a terminal:</p><pre>assay data add rows rows.csv --target column</pre><p class="faint">It appears here at once.</p></Empty> : (
          <section class="panel flush">
            <Table label="Data sets" columns={columns} rows={all ?? []} rowKey={(d) => d.name} order={order} open={(d) => go(["data", d.name])}
              setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty="" />
          </section>
        )}
      </Loading>
    </main>
  );
}

export function DatasetView({ name }: { name: string }) {
  const model = useModel(() => new OneDataset(name), `data set ${name}`);
  const d = model.dataset.value;
  return (
    <main>
      <Loading of={model.refresher} ready={d !== null} missing={<><h1>There is no data set <bdi>{name}</bdi></h1><p><a href={href(["data"])}>All data sets</a></p></>}>
        {d && (
          <>
            <div class="head"><nav aria-label="Where this is"><a href={href(["data"])}>Data sets</a><span aria-hidden="true">/</span></nav><h1>{d.name}</h1><span class="grow" />{(d.task === "classification" || d.task === "regression") && <a class="button primary" href={href(["new"], { data: d.name })} title="A document for the built-in trainer, to be changed">New sweep</a>}</div>
            {d.description && <p class="reason">{d.description}</p>}
            <Facts d={d} />
            <Looked d={d} model={model} />
            {d.classes && <section class="panel" aria-label="Classes"><div class="bar"><h2>Classes <small>{count(d.classes.length)}</small></h2></div><p class="words">{d.classes.slice(0, MOST_WORDS).join(", ")}{d.classes.length > MOST_WORDS && ` and ${count(d.classes.length - MOST_WORDS)} more`}</p></section>}
            <FilesPanel d={d} />
            <UsersPanel users={model.users.value} />
          </>
        )}
      </Loading>
    </main>
  );
}

const MOST_WORDS = 200;

function Facts({ d }: { d: Api.Dataset }) {
  const facts: [string, preact.ComponentChildren][] = [
    ["Rows", count(d.rows)], ...(d.test ? [["Test rows", count(d.test.rows)] as [string, string]] : []), ["Features", count(d.features)], ["Outputs", count(d.outputs)],
    ["Task", d.task.replace("_", " ")], ["Target", d.target === null || d.target === undefined ? NONE : String(d.target)],
    ...(d.image ? [["Image", `${d.image.height} × ${d.image.width} × ${d.image.channels}`] as [string, string]] : []), ["Format", d.format], ["Added", <Since time={d.created_at} />],
    ...Object.entries(d.options ?? {}).map(([k, v]): [string, string] => [k, String(v)]),
  ];
  return <section class="facts" aria-label="Facts"><dl>{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl></section>;
}

/** What the record says of the values of a column. */
function valuesOf(c: Api.DatasetColumn): string {
  if (c.values) return `${c.values.slice(0, 20).join(", ")}${c.values.length > 20 ? ` and ${count(c.values.length - 20)} more` : ""}`;
  if (c.kind === "date") return (c.cycles ?? []).join(", ");
  return c.buckets === undefined ? "" : `${count(c.buckets)} numbers`;
}

const [FRAME_PX, HEAD_PX, LINE_PX, BARS_PX, DOWNLOADS_PX, MOST_PX] = [58, 24, 26, 35, 18, 420]; // of panels and tables, as style.css has it
const FIRST_ROWS = 20;

/** As high as what is on its way, so that what is below does not move. */
const columnsPx = (d: Api.Dataset) => FRAME_PX + Math.min(MOST_PX, HEAD_PX + BARS_PX * (d.columns ? d.columns.length + (d.target === null || d.target === undefined ? 0 : 1) : 2)) + DOWNLOADS_PX;
const firstRowsPx = (d: Api.Dataset) => FRAME_PX + Math.min(MOST_PX, HEAD_PX + LINE_PX * Math.min(FIRST_ROWS, d.rows));

/** The columns with their distributions, and the first rows; until they are here the schema alone. */
function Looked({ d, model }: { d: Api.Dataset; model: OneDataset }) {
  const element = useSight<HTMLDivElement>(model.preview);
  const preview = model.preview.value.value;
  const failed = model.preview.refresher.error.value;
  const schema = new Map((d.columns ?? []).map((c) => [c.name, valuesOf(c)]));
  const rows = preview && <FirstRowsPanel preview={preview} />;
  return (
    <div class="stack" ref={element}>
      {failed !== null && <p class="stale" role="status">The distributions are not known: {failed}</p>}
      <div class="keeps" style={{ minHeight: `${columnsPx(d)}px` }}>{preview ? <ValuesPanel name={d.name} preview={preview} rows={d.rows} schema={schema} /> : d.columns ? <ColumnsPanel columns={d.columns} rows={d.rows} target={d.target ?? null} /> : failed === null && <p class="hint" role="status">Reading the values…</p>}</div>
      {d.format === "csv" ? <div class="keeps" style={{ minHeight: `${firstRowsPx(d)}px` }}>{rows}</div> : rows}
    </div>
  );
}

/** The schema: what each column is, and how much of it is missing. */
function ColumnsPanel({ columns: all, rows, target }: { columns: readonly Api.DatasetColumn[]; rows: number; target: string | number | null }) {
  return (
    <section class="panel" aria-label="Columns" data-columns={all.length}>
      <div class="bar"><h2>Columns <small>{count(all.length)}</small></h2></div>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Schema">
        <table class="compared">
          <thead><tr><th scope="col">Column</th><th scope="col">Kind</th><th scope="col" class="num">Missing</th><th scope="col" class="num">Values</th><th scope="col">Which</th></tr></thead>
          <tbody>
            {all.map((c, i) => (
              <tr key={i}>
                <th scope="row" title={c.name}>{c.name}{c.name === target && <small> target</small>}</th><td>{c.kind}</td>
                <td class="num" title={`${count(c.missing)} rows`}>{c.missing === 0 ? "" : `${((100 * c.missing) / Math.max(1, rows)).toFixed(1)} %`}</td>
                <td class="num">{c.values ? count(c.values.length + (c.other ?? 0)) : ""}</td><td title={valuesOf(c)}>{valuesOf(c)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The sweeps that learn from it, newest first, and the versions of models that learned from it. */
function UsersPanel({ users }: { users: Users | null }) {
  return (
    <section class="panel" aria-label="Used by" data-sweeps={users?.sweeps.length ?? -1} data-versions={users?.versions.length ?? -1}>
      <div class="bar"><h2>Used by {users && <small>{many(users.sweeps.length, "sweep", users.cut)}, {many(users.versions.length, "version")} of models</small>}</h2></div>
      {users === null ? <p class="hint">Loading…</p> : users.sweeps.length === 0 && users.versions.length === 0 ? <p class="hint">No sweep learns from it.</p> : (
        <>
          {users.sweeps.length > 0 && <SweepsTable sweeps={users.sweeps} />}
          {users.versions.length > 0 && <VersionsTable versions={users.versions} />}
        </>
      )}
      {users?.cut && <p class="note">The newest are shown.</p>}
    </section>
  );
}

const many = (n: number, word: string, more = false) => `${count(n)}${more ? " or more" : ""} ${n === 1 && !more ? word : `${word}s`}`;

function SweepsTable({ sweeps }: { sweeps: readonly Api.SweepSummary[] }) {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Sweeps that use it">
      <table class="compared">
        <thead><tr><th scope="col">Sweep</th><th scope="col">State</th><th scope="col" class="num">Best</th><th scope="col">Created</th></tr></thead>
        <tbody>
          {sweeps.map((s) => (
            <tr key={s.id}>
              <th scope="row"><a href={href(["sweeps", s.id])}>{s.id}</a></th><td><State state={s.state} /></td>
              <td class="num" title={s.metric.name}>{s.best ? sig(toNumber(s.best.value)) : ""}</td><td><Since time={s.created_at} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function VersionsTable({ versions }: { versions: readonly Api.ModelVersion[] }) {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Models that learned from it">
      <table class="compared">
        <thead><tr><th scope="col">Model</th><th scope="col" class="num">Version</th><th scope="col">Aliases</th><th scope="col">From</th><th scope="col">Added</th></tr></thead>
        <tbody>
          {versions.map((v) => (
            <tr key={`${v.model}@${v.version}`}>
              <th scope="row"><a href={href(["models", v.model], { version: String(v.version) })}>{v.model}</a></th><td class="num">{v.version}</td>
              <td>{v.aliases.join(", ")}</td><td><bdi>{v.sweep}</bdi></td><td><Since time={v.created_at} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Its files; the first rows of those that are text can be looked at. */
function FilesPanel({ d }: { d: Api.Dataset }) {
  const [seen, setSeen] = useState<Api.File | null>(null);
  const ending = d.format === "csv" ? "csv" : d.format === "text" ? "txt" : null;
  return (
    <section class="panel" aria-label="Files">
      <div class="bar"><h2>Files</h2></div>
      {seen && <PreviewDialog file={seen} close={() => setSeen(null)} />}
      <table class="compared">
        <thead><tr><th scope="col">Role</th><th scope="col" class="num">Size</th><th scope="col">SHA-256</th>{ending && <th scope="col"><span class="off">View</span></th>}</tr></thead>
        <tbody>
          {d.files.map((f) => (
            <tr key={f.role}>
              <th scope="row">{f.role.replace("_", " ")}</th><td class="num">{bytes(f.size)}</td><td title={f.sha256}><code>{f.sha256.slice(0, 16)}</code></td>
              {ending && <td><button type="button" class="link" aria-label={`First rows of ${f.role.replace("_", " ")}`} onClick={() => setSeen({ path: `${d.name}-${f.role}.${ending}`, size: f.size, sha256: f.sha256 })}>First rows</button></td>}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
