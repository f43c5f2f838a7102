/* The frame of every view: chooses the view for the address; shows the head of the page and the
 * state of the stream. */
import { useLayoutEffect } from "preact/hooks";
import { connection } from "./live/stream";
import { Empty, Notice, notice } from "./parts/small";
import { href, noteDrawn, route } from "./route";
import { signOut, token } from "./session";
import { nextTheme, theme } from "./theme";
import { lazyView } from "./parts/lazy";
import { LoginView } from "./views/login";
import { SweepView } from "./views/sweep";
import { SweepsView } from "./views/sweeps";

const CompareSweepsView = lazyView(async () => (await import("./views/compare_sweeps")).CompareSweepsView);
const DatasetsView = lazyView(async () => (await import("./views/datasets")).DatasetsView);
const DatasetView = lazyView(async () => (await import("./views/datasets")).DatasetView);
const RunnersView = lazyView(async () => (await import("./views/runners")).RunnersView);
const NewSweepView = lazyView(async () => (await import("./views/new_sweep")).NewSweepView);
const ModelsView = lazyView(async () => (await import("./views/models")).ModelsView);
const ModelView = lazyView(async () => (await import("./views/one_model")).ModelView);
const TrialView = lazyView(async () => (await import("./views/trial")).TrialView);
const CompareTrialsView = lazyView(async () => (await import("./views/compare_trials")).CompareTrialsView);

const LIGHT: Record<string, string> = {
  off: "", connecting: "Connecting…", live: "Live", lost: "Connection lost, trying again…",
};

function View({ path }: { path: string[] }) {
  const [top = "", id = "", below = "", number = ""] = path;
  if (top === "sweeps" && path.length === 1) return <SweepsView />;
  if (top === "sweeps" && path.length === 2) return <SweepView key={id} id={id} />;
  if (top === "sweeps" && path.length === 4 && below === "trials" && /^\d{1,10}$/.test(number)) return <TrialView key={`${id}/${number}`} sweep={id} number={Number(number)} />;
  if (top === "new" && path.length === 1) return <NewSweepView key={route.value.query.get("from") ?? ""} />;
  if (top === "data" && path.length === 1) return <DatasetsView />;
  if (top === "data" && path.length === 2) return <DatasetView key={id} name={id} />;
  if (top === "compare" && path.length === 1) return <CompareSweepsView />;
  if (top === "compare" && id === "trials" && path.length === 2) return <CompareTrialsView />;
  if (top === "models" && path.length === 1) return <ModelsView />;
  if (top === "models" && path.length === 2) return <ModelView key={id} name={id} />;
  if (top === "runners" && path.length === 1) return <RunnersView />;
  return <main><Empty title="There is no such page"><p><a href={href(["sweeps"])}>All sweeps</a></p></Empty></main>;
}

function titleOf([top = "", id, , number]: string[]): string {
  if (top === "new") return "New sweep · Assay";
  if (top === "data") return `${id ?? "Data sets"} · Assay`;
  if (top === "compare") return `Compare ${id ?? "sweeps"} · Assay`;
  const name = number !== undefined ? `${id} #${number}` : id ?? top.charAt(0).toUpperCase() + top.slice(1);
  return `${name} · Assay`;
}

function Link({ to, label }: { to: string; label: string }) {
  return <a href={href([to])} aria-current={route.value.path[0] === to ? "page" : undefined}>{label}</a>;
}

function Top() {
  const state = connection.value;
  return (
    <header>
      <a class="brand" href={href(["sweeps"])}><img src="/favicon.svg" alt="" width={20} height={20} />Assay</a>
      {token.value !== null && <nav aria-label="Main"><Link to="sweeps" label="Sweeps" /><Link to="data" label="Data" /><Link to="models" label="Models" /><Link to="runners" label="Runners" /></nav>}
      <span class="grow" />
      <span class={`light light-${state}`} role="status">{LIGHT[state]}</span>
      <button type="button" class="quiet" onClick={nextTheme} title="Colours: as the system, light, dark"><span class="wordy">Theme: </span>{theme.value}</button>
      {token.value !== null && <button type="button" class="quiet" onClick={() => signOut()}>Sign out</button>}
    </header>
  );
}

/** Says in sight, wherever the page is scrolled to, that nothing follows any more. */
function Lost() {
  return connection.value === "lost" && token.value !== null ? <p class="lost" aria-hidden="true">The connection is lost: what is shown may be old.</p> : null;
}

export function App() {
  const { path } = route.value;
  const address = path.join("/");
  useLayoutEffect(() => { // with the new view, not a frame later: the user may have scrolled by then
    noteDrawn(path);
    document.title = token.value === null ? "Sign in · Assay" : titleOf(path);
    notice.value = null;
    scrollTo(0, 0);
  }, [address, token.value === null]);
  return <><Top />{token.value === null ? <LoginView /> : <View key={token.value} path={path} />}<Lost /><Notice /></>;
}
