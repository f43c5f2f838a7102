/* Following what happens. */
#include "scheduler/services/events.h"

#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_store.h"

struct after_arg {
    struct arena *a;
    const char *sweep;
    int64_t after, limit;
    struct event_list ret;
};

static as_status tx_after(struct tx *t, void *p, struct as_err *err)
{
    struct after_arg *arg = p;
    int64_t key = 0;
    as_status st = arg->sweep ? store_sweep_key(t, arg->sweep, &key, err) : AS_OK;
    return st == AS_OK ? store_event_after(t, arg->a, key, arg->after, arg->limit, &arg->ret, err)
                       : st;
}

as_status events_after(struct store *db, struct arena *a, const char *sweep, int64_t after,
                       int64_t limit, struct event_list *ret, struct as_err *err)
{
    if (limit < 1 || limit > 1000)
        return as_fail(err, AS_E_INVAL, "limit is %lld, expected 1 to 1000", (long long)limit);
    struct after_arg arg = {.a = a, .sweep = sweep, .after = after, .limit = limit};
    as_status st = store_run(db, TX_READ, tx_after, &arg, err);
    if (st == AS_OK)
        *ret = arg.ret;
    return st;
}

static as_status tx_now(struct tx *t, void *p, struct as_err *err)
{
    return store_event_horizon(t, p, err);
}

as_status events_now(struct store *db, int64_t *ret_after, struct as_err *err)
{
    return store_run(db, TX_READ, tx_now, ret_after, err);
}
