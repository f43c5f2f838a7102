#include "api/server/claiming.h"

#include "base/clock.h"

as_status claiming_try(struct call *c, struct claim_request *req, bool is_last,
                       struct claim_list *ret, struct as_err *err)
{
    /* Results of attempts that ended after arrived_ns need not be known to a suggestion. A claim
     * that waited for ends of attempts gets a later time, so that it knows their results too. */
    req->arrived_ns = c->since_ns == 0  ? c->x->start_ns
                      : c->since_ns < 0 ? clock_mono_ns()
                                        : c->since_ns;
    req->is_last = is_last;
    as_status st = claim_trials(c->db, c->suggester, c->arena, req, ret, err);
    if (st < 0)
        return st;
    if (ret->awaits_ends)
        c->since_ns = -1;
    else if (c->since_ns < 0)
        c->since_ns = req->arrived_ns;
    if (ret->has_begun || ret->has_kept)
        call_wake(c);
    return AS_OK;
}

void claiming_arrive_anew(struct call *c)
{
    c->since_ns = -1;
}

void claiming_wait(struct call *c, const struct claim_list *list)
{
    call_wait(c, list->sweep_key ? list->sweep_key : WAITING_CLAIMS);
}
