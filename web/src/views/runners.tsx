/* The list of runners. */
import type * as Api from "../api/types";
import { useModel } from "../live/model";
import { RunnersModel } from "../live/runners";
import { count } from "../format";
import { Empty, Loading, Since, State } from "../parts/small";
import { Table, type Column } from "../parts/table";
import { choose, route } from "../route";

const STATES = ["live", "lost", "left"];

const columns: Column<Api.Runner>[] = [
  { id: "name", label: "Runner", width: 24, least: 12, key: (r) => r.name, cell: (r) => r.name },
  { id: "state", label: "State", width: 10, least: 7, key: (r) => STATES.indexOf(r.state), cell: (r) => <State state={r.state} /> },
  { id: "running", label: "Running", width: 9, numeric: true, key: (r) => r.running, cell: (r) => r.running },
  { id: "slots", label: "Slots", title: "Taken, of how many; a group of trials takes one", width: 9, numeric: true, key: (r) => r.used_slots ?? r.running, cell: (r) => `${r.used_slots ?? r.running} / ${r.slots}` },
  { id: "gpus", label: "GPUs", width: 24, least: 6, key: (r) => (r.gpus ?? []).length, cell: (r) => <span title={(r.gpus ?? []).join(", ")}>{(r.gpus ?? []).join(", ") || "–"}</span> },
  { id: "host", label: "Host", width: 24, least: 12, key: (r) => r.host ?? null, cell: (r) => r.host ?? "" },
  { id: "version", label: "Version", width: 10, key: (r) => r.version ?? null, cell: (r) => r.version ?? "" },
  { id: "epoch", label: "Epoch", title: "How often it registered", width: 7, numeric: true, key: (r) => r.epoch, cell: (r) => r.epoch },
  { id: "registered", label: "Registered", width: 13, key: (r) => Date.parse(r.registered_at), cell: (r) => <Since time={r.registered_at} /> },
  { id: "seen", label: "Seen", width: 13, key: (r) => (r.seen_at ? Date.parse(r.seen_at) : null), cell: (r) => <Since time={r.seen_at} /> },
];

export function RunnersView() {
  const model = useModel(() => new RunnersModel(), "runners");
  const { query } = route.value;
  const all = model.runners.value;
  const live = (all ?? []).filter((r) => r.state === "live");
  const slots = live.reduce((sum, r) => sum + r.slots, 0);
  const busy = live.reduce((sum, r) => sum + (r.used_slots ?? r.running), 0);
  const order = { column: query.get("sort") ?? "state", descending: query.get("order") === "desc" };
  return (
    <main>
      <div class="head"><h1>Runners</h1>{all !== null && <span class="faint">{count(live.length)} live, {count(busy)} of {count(slots)} slots busy</span>}</div>
      <Loading of={model.refresher} ready={all !== null}>
        {all?.length === 0 ? <Empty title="No runners"><p>Nothing can run until one registers. <code>assay up</code> starts some; on another machine:</p><pre>assay-runner --server {location.origin} --token-file FILE</pre></Empty> : (
          <section class="panel flush">
            <Table label="Runners" columns={columns} rows={all ?? []} rowKey={(r) => r.name} order={order} setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty="" />
          </section>
        )}
      </Loading>
    </main>
  );
}
