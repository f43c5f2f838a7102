#include "api/server/handlers.h"

#include <string.h>

#include "api/codec/wire.h"
#include "api/server/call.h"
#include "scheduler/lifecycle/ensemble_requests.h"
#include "scheduler/lifecycle/ensembles.h"

as_status h_sweep_ensemble(struct call *c, struct as_err *err)
{
    const char *text = NULL;
    as_status st = ensemble_get(c->db, c->arena, call_param(c, "sweep"), &text, err);
    return st < 0 ? st : call_bytes(c, "application/json", text, strlen(text));
}

as_status h_ensemble_ask(struct call *c, struct as_err *err)
{
    struct ensemble_asked row;
    bool created = false;
    as_status st =
        ensemble_ask(c->db, c->arena, call_param(c, "sweep"), c->body, &row, &created, err);
    if (st < 0)
        return st;
    if (!created)
        return call_ok(c, ensemble_asked_encode(&row), err);
    return call_created(
        c, ensemble_asked_encode(&row),
        arena_printf(c->arena, "/v1/sweeps/%s/ensembles/%lld", row.sweep, (long long)row.number),
        err);
}

as_status h_ensemble_list(struct call *c, struct as_err *err)
{
    struct ensemble_asked_list list = {0};
    as_status st = ensemble_asked_list(c->db, c->arena, call_param(c, "sweep"), &list, err);
    return st < 0 ? st : call_ok(c, ensemble_asked_list_encode(&list), err);
}

as_status h_ensemble_get(struct call *c, struct as_err *err)
{
    struct ensemble_asked row;
    int64_t number = 0;
    as_status st = call_param_i64(c, "ensemble", 1, &number, err);
    if (st < 0)
        return st;
    st = ensemble_asked_get(c->db, c->arena, call_param(c, "sweep"), number, &row, err);
    return st < 0 ? st : call_ok(c, ensemble_asked_encode(&row), err);
}
