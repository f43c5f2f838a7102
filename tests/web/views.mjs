/* The dashboard's views with the fixture: how to open each, what it shows, and when it is fully
 * loaded. */
import { column, leave, matches, rowsOf, shows, until } from "./browser.mjs";

export function viewsOf(page, fixture) {
  const region = (name) => page.getByRole("region", { name, exact: true });
  const heading = (name) => page.getByRole("heading", { name, exact: true });
  const text = (locator) => () => locator.first().innerText();
  const visit = (hash) => leave(page, () => page.goto(`${fixture.url}/${hash}`));
  /** By way of the page that is none, as another address of a view is the same view.
   * The document stays: a new one loads and compiles the application again. */
  const visitAnew = async (hash) => {
    await visit("#/none");
    await visit(hash);
  };
  const chartPoints = () => region("History").getAttribute("data-points").then(Number);
  const pointsIn = (id) => fixture.sweeps.get(id).trials.filter((t) => t.state === "completed" && typeof t.value === "number").length;
  const allPoints = (id) => until(page, "points", chartPoints, (n) => n === pointsIn(id));

  /** Wait until the page of a sweep shows all trials and has loaded everything that needs no
   * scrolling. */
  async function loaded(id) {
    const { base, trials } = fixture.sweeps.get(id);
    await until(page, "rows", () => rowsOf(page, "Trials"), (n) => n === trials.length);
    await allPoints(id);
    // programs that leave no predictions have no ensemble, and no panel that says so
    if (["completed", "failed", "cancelled"].includes(base.state) && !base.document.trial?.command) await region("Ensemble").waitFor();
  }

  return {
    region, heading, text, visit, visitAnew, chartPoints, pointsIn, allPoints, loaded,
    hash: () => page.evaluate(() => location.hash),
    attribute: (locator, name) => () => locator.first().getAttribute(name),
    columnOf: (table, name) => () => column(page, table, name),
    titleOf: (id) => () => page.getByTestId(id).getAttribute("title").then(Number),
    async openSweep(id, query = "") {
      await visit(`#/sweeps/${id}${query}`);
      await loaded(id);
    },
    async openSweepAnew(id, query = "") {
      await visitAnew(`#/sweeps/${id}${query}`);
      await loaded(id);
    },
    async openTrial(id, number) {
      await visit(`#/sweeps/${id}/trials/${number}`);
      await heading(`#${number}`).waitFor();
      await matches(page, "the files, which are loaded last", text(region("Artifacts")), /model\.safetensors|None\./);
    },
    openList: async () => {
      await visit("#/sweeps");
      await shows(page, "rows", () => rowsOf(page, "Sweeps"), fixture.sweeps.size);
    },
  };
}
