/* Handlers of ask and tell. What is told is committed together with what others send: such a
 * handler has two halves, and holds no worker between them (call_submit). */
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

/* A member about the trial that the client says. */
static struct commit_member *member_of(struct call *c, commit_kind kind, const struct ask_ref *ref)
{
    struct commit_member *m = call_member(c, kind);
    if (!m)
        return NULL;
    m->ref = (struct attempt_ref){ref->sweep, ref->number, ref->attempt};
    m->by.client = ref->client;
    m->token = ref->token;
    return m;
}

static as_status answer_report(struct call *c, struct as_err *err)
{
    const struct commit_member *m = c->commit.members[0];
    if (m->status < 0)
        return as_fail_at(err, m->status, m->err.pointer, "%s", m->err.msg);
    return call_ok(c, report_encode(m->out.recorded, m->directive), err);
}

as_status h_suggestion_measure(struct call *c, struct as_err *err)
{
    struct ask_ref ref;
    struct measurement_list list;
    as_status st = read_ref(c, &ref, err);
    if (st < 0)
        return st;
    st = tell_measurements_decode(c->body, c->arena, &ref, &list, err);
    if (st < 0)
        return st;
    struct commit_member *m = member_of(c, COMMIT_RECORD, &ref);
    if (!m)
        return as_fail_nomem(err);
    m->in.report = (struct attempt_report){.points = list.rows, .n_points = list.n};
    return call_submit_one(c, m, answer_report, err);
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

static as_status answer_end(struct call *c, struct as_err *err)
{
    const struct commit_member *m = c->commit.members[0];
    if (m->status < 0)
        return as_fail_at(err, m->status, m->err.pointer, "%s", m->err.msg);
    return call_ok(c, trial_encode(&m->out.trial), err);
}

as_status h_suggestion_complete(struct call *c, struct as_err *err)
{
    struct ask_ref ref;
    struct completion completion;
    as_status st = read_ref(c, &ref, err);
    if (st < 0)
        return st;
    st = tell_complete_decode(c->body, c->arena, &ref, &completion, err);
    if (st < 0)
        return st;
    struct commit_member *m = member_of(c, COMMIT_END, &ref);
    if (!m)
        return as_fail_nomem(err);
    m->in.end = completion;
    return call_submit_one(c, m, answer_end, err);
}
