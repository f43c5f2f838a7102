/* What the model foretold of each trial, for the history chart. The table of trials has no
 * predictions, so they are read by pages of trials, once each, while the chart shows them. */
import { call } from "../api/http";
import type * as Api from "../api/types";
import { foretold, type Foretold } from "../parts/history";
import { LazyResource } from "./lazy_resource";

const PAGE_SIZE = 500;

export class Predictions extends LazyResource<Foretold> {
  constructor(sweep: string) {
    const complete: Api.Trial[] = []; // of pages that do not change any more
    let cursor: string | null = null;
    super(async (signal) => {
      for (;;) {
        const query = cursor === null ? { page_size: PAGE_SIZE } : { page_size: PAGE_SIZE, cursor };
        const page: Api.TrialList = await call("GET /v1/sweeps/{sweep}/trials", { path: { sweep }, query, signal });
        if (page.next_cursor === null) return foretold([...complete, ...page.items]);
        complete.push(...page.items);
        cursor = page.next_cursor;
      }
    });
  }
}
