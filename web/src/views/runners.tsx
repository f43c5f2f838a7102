/* The list of runners: what they have, what runs there, and which are lost or have left. One that is
 * live can be told to leave. */
import { useState } from "preact/hooks";
import { call } from "../api/http";
import type * as Api from "../api/types";
import { useModel } from "../live/model";
import { RunnersModel } from "../live/runners";
import { bytes, count } from "../format";
import { attempt, Chips, Confirm, Empty, Loading, Since, State } from "../parts/small";
import { Table, type Column } from "../parts/table";
import { choose, route } from "../route";

const STATES = ["live", "lost", "left"];

/** "3 of 8", or nothing if the runner does not say what it has. */
const taken = (used: number | undefined, all: number | null | undefined, show: (v: number) => string) => (all === null || all === undefined ? "" : `${show(used ?? 0)} of ${show(all)}`);

function Gpus({ runner }: { runner: Api.Runner }) {
  const all = runner.gpus ?? [];
  const faults = runner.gpu_faults ?? [];
  return (
    <span title={[...all.filter((g) => !faults.some((f) => f.gpu === g)), ...faults.map((f) => `${f.gpu}: ${f.reason}`)].join("\n")}>
      {all.length === 0 ? "–" : count(all.length)}{faults.length > 0 && <span class="bad">, {count(faults.length)} set aside</span>}
    </span>
  );
}

const stateOf = (r: Api.Runner) => (r.state === "live" && r.draining ? "draining" : r.state);

const columnsOf = (ask: (of: Asked) => void): Column<Api.Runner>[] => [
  { id: "name", label: "Runner", width: 24, least: 12, key: (r) => r.name, cell: (r) => r.name },
  { id: "state", label: "State", width: 10, least: 8, key: (r) => STATES.indexOf(r.state), cell: (r) => <State state={stateOf(r)} /> },
  { id: "running", label: "Running", title: "Attempts that it holds", width: 9, numeric: true, key: (r) => r.running, cell: (r) => r.running },
  { id: "slots", label: "Slots", title: "Taken, of how many; a group of trials takes one", width: 9, numeric: true, key: (r) => r.used_slots ?? r.running, cell: (r) => `${r.used_slots ?? r.running} / ${r.slots}` },
  { id: "cpus", label: "Cores", title: "Taken by trials that say what they need", width: 11, least: 8, numeric: true, key: (r) => r.used_cpus ?? 0, cell: (r) => taken(r.used_cpus, r.cpus, count) },
  { id: "memory", label: "Memory", title: "Taken by trials that say what they need", width: 18, least: 10, numeric: true, key: (r) => r.used_memory_bytes ?? 0, cell: (r) => taken(r.used_memory_bytes, r.memory_bytes, bytes) },
  { id: "gpus", label: "GPUs", width: 16, least: 6, key: (r) => (r.gpus ?? []).length, cell: (r) => <Gpus runner={r} /> },
  { id: "host", label: "Host", width: 24, least: 12, key: (r) => r.host ?? null, cell: (r) => r.host ?? "" },
  { id: "version", label: "Version", width: 10, key: (r) => r.version ?? null, cell: (r) => r.version ?? "" },
  { id: "epoch", label: "Epoch", title: "How often it registered", width: 7, numeric: true, key: (r) => r.epoch, cell: (r) => r.epoch },
  { id: "registered", label: "Registered", width: 13, key: (r) => Date.parse(r.registered_at), cell: (r) => <Since time={r.registered_at} /> },
  { id: "seen", label: "Seen", width: 13, key: (r) => (r.seen_at ? Date.parse(r.seen_at) : null), cell: (r) => <Since time={r.seen_at} /> },
  { id: "drain", label: "Actions", width: 9, least: 8, cell: (r) => (r.state === "live" ? !r.draining && <button type="button" class="link" aria-label={`Drain ${r.name}`} onClick={() => ask({ runner: r, what: "drain" })}>Drain…</button>
    : <button type="button" class="link" aria-label={`Forget ${r.name}`} onClick={() => ask({ runner: r, what: "forget" })}>Forget…</button>) },
];

/** What is to be done with a runner, before it is confirmed. */
interface Asked {
  runner: Api.Runner;
  what: "drain" | "forget";
}

export function RunnersView() {
  const model = useModel(() => new RunnersModel(), "runners");
  const { query } = route.value;
  const all = model.runners.value;
  const live = (all ?? []).filter((r) => r.state === "live");
  const slots = live.reduce((sum, r) => sum + r.slots, 0);
  const busy = live.reduce((sum, r) => sum + (r.used_slots ?? r.running), 0);
  const [asked, setAsked] = useState<Asked | null>(null);
  const state = query.get("state") ?? "all";
  const chips = [{ id: "all", label: "All", count: (all ?? []).length }, ...STATES.map((s) => ({ id: s, label: s, count: (all ?? []).filter((r) => r.state === s).length })).filter((c) => c.count > 0 || c.id === state)];
  const shown = (all ?? []).filter((r) => state === "all" || r.state === state);
  const act = ({ runner, what }: Asked) => attempt(async () => {
    const path = { runner: runner.name };
    if (what === "drain") await call("POST /v1/runners/{runner}/drain", { path, body: {} });
    else await call("DELETE /v1/runners/{runner}", { path });
    model.refresher.ask();
  });
  const order = { column: query.get("sort") ?? "state", descending: query.get("order") === "desc" };
  return (
    <main>
      <div class="head"><h1>Runners</h1>{all !== null && <span class="faint">{count(live.length)} live, {count(busy)} of {count(slots)} slots busy</span>}</div>
      <Loading of={model.refresher} ready={all !== null}>
        {all?.length === 0 ? <Empty title="No runners"><p>Nothing can run until one registers. <code>assay up</code> starts some; on another machine:</p><pre>assay-runner --server {location.origin} --token-file FILE</pre></Empty> : (
          <section class="panel flush" aria-label="Runners by state">
            <div class="bar"><Chips label="Runners by state" chosen={state} options={chips} choose={(s) => choose({ state: s === "all" ? null : s })} /></div>
            <Table label="Runners" columns={columnsOf(setAsked)} rows={shown} rowKey={(r) => r.name} order={order} setOrder={(o) => choose({ sort: o.column, order: o.descending ? "desc" : "asc" })} empty="" />
          </section>
        )}
      </Loading>
      <Confirm open={asked !== null} title={`${asked?.what === "forget" ? "Forget" : "Drain"} ${asked?.runner.name ?? ""}?`} action={asked?.what === "forget" ? "Forget the runner" : "Drain the runner"} close={() => setAsked(null)} yes={() => { if (asked) void act(asked); }}>
        {asked?.what === "forget" ? "It is no longer listed. What ran there stays, and if it comes back it is listed again." : "It takes no more trials, hands those that run back to the queue, and leaves. They go on elsewhere from their checkpoints."}
      </Confirm>
    </main>
  );
}
