#include "scheduler/services/demand.h"

#include "scheduler/store/demand_store.h"

as_status demand_read(struct tx *t, struct arena *a, struct demand *ret, struct as_err *err)
{
    struct demand_sweep *sweeps = NULL;
    struct demand_runner *runners = NULL;
    struct demand d;
    size_t n_sweeps = 0, n_runners = 0;
    int64_t now_ms = 0;
    as_status st = store_demand_sweeps(t, a, &sweeps, &n_sweeps, &now_ms, err);
    if (st == AS_OK)
        st = store_demand_runners(t, a, &runners, &n_runners, err);
    if (st == AS_OK)
        st = demand_plan(sweeps, n_sweeps, runners, n_runners, a, &d, err);
    if (st != AS_OK)
        return st;
    d.now_ms = now_ms;
    *ret = d;
    return AS_OK;
}

as_status demand_now(struct store *db, struct arena *a, struct demand *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = demand_read(run.tx, a, ret, err);
    return run.status;
}
