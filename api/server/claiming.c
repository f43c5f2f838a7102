#include "api/server/claiming.h"

#include "base/clock.h"
#include "scheduler/services/attempt_tokens.h"

void claiming_begin(struct call *c, struct claim_request *req, int64_t wait_ms,
                    struct commit_member *m)
{
    /* Results of attempts that ended after arrived_ns need not be known to a suggestion. A claim
     * that waited for ends of attempts gets a later time, so that it knows their results too. */
    req->arrived_ns = c->since_ns == 0  ? c->x->start_ns
                      : c->since_ns < 0 ? clock_mono_ns()
                                        : c->since_ns;
    req->is_last = !call_may_wait(c, wait_ms);
    m->kind = COMMIT_CLAIM;
    m->in.claim = req;
}

void claiming_wake(struct call *c, const struct claim_list *list)
{
    if (list->has_begun || list->has_kept)
        call_wake(c);
}

bool claiming_waits(struct call *c, const struct claim_request *req, int64_t wait_ms,
                    const struct claim_list *list)
{
    if (list->awaits_ends)
        c->since_ns = -1;
    else if (c->since_ns < 0)
        c->since_ns = req->arrived_ns;
    claiming_wake(c, list);
    if (list->n > 0 || !call_may_wait(c, wait_ms))
        return false;
    call_wait(c, list->sweep_key ? list->sweep_key : WAITING_CLAIMS);
    return true;
}

as_status claiming_add_tokens(struct call *c, const struct claim_list *list, struct as_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        struct claimed_row *r = &list->rows[i];
        const struct attempt_name name = {r->sweep_key, r->number, r->attempt};
        char text[TOKEN_TEXT_SIZE];
        as_status st = attempt_token_make(c->attempts, &name, text, err);
        if (st < 0)
            return st;
        r->token = arena_strdup(c->arena, text);
        if (!r->token)
            return as_fail_nomem(err);
    }
    return AS_OK;
}
