/* How the values of a data set are distributed, column by column, and its first rows. Of each column
 * a small picture: bars over the bins of numbers, or one bar for each of the most frequent values. */
import type * as Api from "../api/types";
import { count, sig } from "../format";
import { csvOf } from "../parts/csv";
import { Downloads } from "../parts/downloads";
import type { Surface } from "../parts/surface";
import { colour } from "../theme";

type Column = Api.DatasetPreview["columns"][number];

const [WIDTH, HEIGHT] = [160, 28];
const WORDS_SHOWN = 5;
const DAY_MS = 86_400_000;

/** The heights of the bars, and what each stands for. */
function barsOf(c: Column): { counts: readonly number[]; nameOf: (i: number) => string } {
  const { numbers, values } = c;
  if (values) return { counts: values.top.map((v) => v.rows), nameOf: (i) => values.top[i]!.value };
  if (!numbers) return { counts: [], nameOf: () => "" };
  const at = (i: number) => figure(c, numbers.from + i * numbers.width);
  return { counts: numbers.counts, nameOf: (i) => (c.kind === "numeric" && numbers.width === 1 && Number.isInteger(numbers.least) ? at(i) : `${at(i)} to ${at(i + 1)}`) };
}

/** A number of the column: of dates the day. */
function figure(c: Column, v: number): string {
  if (c.kind !== "date") return sig(v);
  const date = new Date(v * DAY_MS);
  return Number.isNaN(date.getTime()) ? sig(v) : date.toISOString().slice(0, 10);
}

/** The column in words. */
function wordsOf(c: Column, rows: number): string {
  const { numbers, values } = c;
  if (values) {
    const shown = values.top.slice(0, WORDS_SHOWN).map((v) => `${v.value} ${((100 * v.rows) / Math.max(1, rows)).toFixed(1)} %`).join(", ");
    return values.different > WORDS_SHOWN ? `${shown} and ${count(values.different - WORDS_SHOWN)} more` : shown;
  }
  if (!numbers) return "all missing";
  const range = numbers.least === numbers.most ? figure(c, numbers.least) : `${figure(c, numbers.least)} to ${figure(c, numbers.most)}`;
  if (c.kind === "date") return range;
  return `${range}${c.kind === "text" ? " bytes" : ""}, mean ${sig(numbers.mean)}, deviation ${sig(numbers.deviation)}`;
}

function Bars({ column, words }: { column: Column; words: string }) {
  const { counts, nameOf } = barsOf(column);
  const most = Math.max(1, ...counts);
  const step = WIDTH / Math.max(column.values ? 8 : 16, counts.length);
  return (
    <svg class="bars" role="img" aria-label={`Distribution of ${column.name}: ${words}`} width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`}>
      {counts.map((n, i) => n > 0 && (
        <rect key={i} x={i * step} width={Math.max(1, step - 1)} y={HEIGHT - Math.max(1, (n / most) * HEIGHT)} height={Math.max(1, (n / most) * HEIGHT)}><title>{`${nameOf(i)}: ${count(n)}`}</title></rect>
      ))}
    </svg>
  );
}

const [ROW, LABEL, PICTURE_MOST] = [36, 220, 60];

/** The pictures of the columns below each other, for files. */
function draw(columns: readonly Column[], rows: number) {
  return (s: Surface) => {
    columns.forEach((c, k) => {
      const { counts } = barsOf(c);
      const most = Math.max(1, ...counts);
      const step = WIDTH / Math.max(c.values ? 8 : 16, counts.length);
      s.clip({ left: 0, top: k * ROW, right: LABEL - 8, bottom: (k + 1) * ROW });
      s.text(0, k * ROW + ROW / 2, c.name, colour("--text"), "start");
      s.clip(null);
      counts.forEach((n, i) => { if (n > 0) s.box(LABEL + i * step, k * ROW + 4 + HEIGHT - (n / most) * HEIGHT, Math.max(1, step - 1), Math.max(1, (n / most) * HEIGHT), colour("--accent"), 1); });
      s.text(LABEL + WIDTH + 12, k * ROW + ROW / 2, wordsOf(c, rows), colour("--text-2"), "start");
    });
  };
}

function csvOfColumns(columns: readonly Column[]): string {
  const rows = columns.flatMap((c) => {
    const { counts, nameOf } = barsOf(c);
    return [...counts.map((n, i): [string, string, string, number] => [c.name, c.kind, nameOf(i), n]), ...(c.values && c.values.other > 0 ? [[c.name, c.kind, "(other)", c.values.other] as [string, string, string, number]] : []),
      ...(c.missing > 0 ? [[c.name, c.kind, "(missing)", c.missing] as [string, string, string, number]] : [])];
  });
  return csvOf(["column", "kind", "value", "rows"], rows);
}

/** The distribution of each column. `schema`: what the record says of columns of the same name. */
export function ValuesPanel({ name, preview, rows, schema }: { name: string; preview: Api.DatasetPreview; rows: number; schema: ReadonlyMap<string, string> }) {
  const { columns } = preview;
  const looked = preview.rows_looked_at;
  return (
    <section class="panel" aria-label="Columns" data-columns={columns.length}>
      <div class="bar"><h2>Columns <small>{count(preview.columns_in_all)}</small></h2></div>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Values of the columns">
        <table class="compared values">
          <thead><tr><th scope="col">Column</th><th scope="col">Kind</th><th scope="col" class="num">Missing</th><th scope="col">Distribution</th><th scope="col">Values</th></tr></thead>
          <tbody>
            {columns.map((c, i) => {
              const words = wordsOf(c, looked);
              const more = c.target ? undefined : schema.get(c.name);
              return (
                <tr key={i}>
                  <th scope="row" title={c.name}><bdi>{c.name}</bdi>{c.target && <small> target</small>}</th><td>{c.kind}</td>
                  <td class="num" title={`${count(c.missing)} rows`}>{c.missing === 0 ? "" : `${((100 * c.missing) / Math.max(1, looked)).toFixed(1)} %`}</td>
                  <td><Bars column={c} words={words} /></td><td title={more ? `${words}; ${more}` : words}><bdi>{words}</bdi></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {looked < rows && <p class="note">The first {count(looked)} rows were looked at.</p>}
      {columns.length < preview.columns_in_all && <p class="note">The first {count(columns.length)} columns are shown.</p>}
      <Downloads label={`Distributions of ${name}`} file={`${name}-values`} csv={() => csvOfColumns(columns)}
        picture={() => { const drawn = columns.slice(0, PICTURE_MOST); return { draw: draw(drawn, looked), width: LABEL + WIDTH + 460, height: ROW * drawn.length }; }} />
    </section>
  );
}

/** The first rows, cell by cell as they are in the file. */
export function FirstRowsPanel({ preview }: { preview: Api.DatasetPreview }) {
  if (preview.first_rows.length === 0) return null;
  return (
    <section class="panel" aria-label="First rows" data-rows={preview.first_rows.length}>
      <div class="bar"><h2>First rows</h2></div>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Cells of the first rows">
        <table class="compared">
          <thead><tr><th scope="col" class="num">Row</th>{preview.columns.map((c, i) => <th key={i} scope="col" class={c.kind === "numeric" ? "num" : ""} title={c.name}><bdi>{c.name}</bdi></th>)}</tr></thead>
          <tbody>
            {preview.first_rows.map((row, r) => (
              <tr key={r}><th scope="row" class="num">{r + 1}</th>{row.map((cell, i) => <td key={i} class={preview.columns[i]?.kind === "numeric" ? "num" : ""} title={cell}><bdi>{cell}</bdi></td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
