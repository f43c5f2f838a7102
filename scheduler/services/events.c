/* Follow the events. */
#include "scheduler/services/events.h"

#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_store.h"

static as_status list_after(struct tx *t, struct arena *a, const char *sweep, int64_t after,
                            int64_t limit, struct event_list *ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = sweep ? store_sweep_key(t, sweep, &key, err) : AS_OK;
    if (st != AS_OK)
        return st;
    return store_event_after(t, a, key, after, limit, ret, err);
}

as_status events_after(struct store *db, struct arena *a, const char *sweep, int64_t after,
                       int64_t limit, struct event_list *ret, struct as_err *err)
{
    if (limit < 1 || limit > 1000)
        return as_fail(err, AS_E_INVAL, "limit is %lld, expected 1 to 1000", (long long)limit);
    struct event_list list = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = list_after(run.tx, a, sweep, after, limit, &list, err);
    if (run.status == AS_OK)
        *ret = list;
    return run.status;
}

as_status events_now(struct store *db, int64_t *ret_after, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_event_horizon(run.tx, ret_after, err);
    return run.status;
}
