/* The list of models. */
import type * as Api from "../api/types";
import { count, NONE } from "../format";
import { useModel } from "../live/model";
import { ModelsModel } from "../live/models";
import { Empty, Loading, Since } from "../parts/small";
import { Table, type Column } from "../parts/table";
import { choose, go, href, route } from "../route";

const aliasesOf = (m: Api.Model) => Object.entries(m.aliases).map(([alias, version]) => `${alias} ${version}`).join(", ");

const columns: Column<Api.Model>[] = [
  { id: "name", label: "Model", width: 28, least: 14, key: (m) => m.name, cell: (m) => <a href={href(["models", m.name])} title={m.name}>{m.name}</a> },
  { id: "versions", label: "Versions", width: 9, numeric: true, key: (m) => m.versions, cell: (m) => count(m.versions) },
  { id: "default", label: "Default", title: "The version that the name alone means: the champion, else the newest", width: 9, numeric: true, key: (m) => m.default_version, cell: (m) => m.default_version ?? NONE },
  { id: "aliases", label: "Aliases", width: 36, least: 12, key: aliasesOf, tip: aliasesOf, cell: aliasesOf },
  { id: "changed", label: "Changed", width: 13, least: 10, key: (m) => Date.parse(m.changed_at), cell: (m) => <Since time={m.changed_at} /> },
];

export function ModelsView() {
  const model = useModel(() => new ModelsModel(), "models");
  const { query } = route.value;
  const all = model.models.value;
  const order = { column: query.get("sort") ?? "name", descending: query.get("order") === "desc" };
  return (
    <main>
      <div class="head"><h1>Models</h1>{all !== null && all.length > 0 && <span class="faint">{count(all.length)}</span>}</div>
      <Loading of={model.refresher} ready={all !== null}>
        {all?.length === 0 ? (
          <Empty title="No models yet">
            <p>A model keeps what a sweep found, after the sweep is deleted too. The page of a sweep that has ended has a button for it; from a terminal:</p>
            <pre>assay models add SWEEP MODEL</pre>
          </Empty>
        ) : (
          <section class="panel flush">
            <Table label="Models" columns={columns} rows={all ?? []} rowKey={(m) => m.name} order={order} open={(m) => go(["models", m.name])}
              setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty="" />
          </section>
        )}
      </Loading>
    </main>
  );
}
