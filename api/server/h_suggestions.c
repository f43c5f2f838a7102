#include "api/server/handlers.h"

#include "api/server/call.h"
#include "api/codec/wire.h"
#include "scheduler/assign/asks.h"
#include "scheduler/services/trials.h"

as_status h_suggestion_ask(struct call *c, struct as_err *err)
{
    struct ask_request req;
    struct suggestion_list list;
    int64_t wait_ms = 0;
    as_status st = ask_decode(c->body, &req, &wait_ms, err);
    if (st < 0)
        return st;
    bool may_wait = call_may_wait(c, wait_ms);
    req.sweep = call_param(c, "sweep");
    req.token = c->who.id;
    req.arrived_ns = c->x->start_ns;
    req.is_last = !may_wait;
    st = req.params ? trial_begin(c->db, c->suggester, c->arena, &req, &list, err)
                    : ask_trials(c->db, c->suggester, c->arena, &req, &list, err);
    if (st < 0)
        return st;
    /* An incomplete batch may still grow, and a sweep without a free place may get one. */
    bool may_come = list.is_preparing || (list.n == 0 && !list.done);
    if (may_come && may_wait) {
        call_wait(c, list.sweep_key);
        return AS_OK;
    }
    return call_ok(c, suggestions_encode(req.sweep, &list), err);
}

static as_status read_ref(const struct call *c, struct ask_ref *ret, struct as_err *err)
{
    *ret = (struct ask_ref){.sweep = call_param(c, "sweep"),
                            .token = c->who.role == ROLE_ADMIN ? NULL : c->who.id};
    return call_param_i64(c, "number", 0, &ret->number, err);
}

as_status h_suggestion_measure(struct call *c, struct as_err *err)
{
    struct ask_ref ref;
    struct measurement_list list;
    int64_t recorded = 0;
    as_status st = read_ref(c, &ref, err);
    if (st < 0)
        return st;
    st = tell_measurements_decode(c->body, c->arena, &ref, &list, err);
    if (st < 0)
        return st;
    st = ask_measure(c->db, &ref, list.rows, list.n, &recorded, err);
    return st < 0 ? st : call_ok(c, tell_report_encode(recorded), err);
}

as_status h_suggestion_heartbeat(struct call *c, struct as_err *err)
{
    struct ask_ref ref;
    int64_t lease_ms = 0, until_ms = 0;
    as_status st = read_ref(c, &ref, err);
    if (st < 0)
        return st;
    st = tell_heartbeat_decode(c->body, &ref, &lease_ms, err);
    if (st < 0)
        return st;
    st = ask_heartbeat(c->db, &ref, lease_ms, &until_ms, err);
    return st < 0 ? st : call_ok(c, tell_lease_encode(until_ms), err);
}

as_status h_suggestion_complete(struct call *c, struct as_err *err)
{
    struct ask_ref ref;
    struct completion completion;
    struct trial_row row;
    as_status st = read_ref(c, &ref, err);
    if (st < 0)
        return st;
    st = tell_complete_decode(c->body, c->arena, &ref, &completion, err);
    if (st < 0)
        return st;
    st = ask_complete(c->db, c->arena, &ref, &completion, &row, err);
    return st < 0 ? st : call_ok(c, trial_encode(&row), err);
}
