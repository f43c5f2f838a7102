/* Handlers of the runner protocol that concern the runner itself: register, claim, heartbeat,
 * leave. And what runners are asked for. */
#include "api/server/handlers.h"

#include <string.h>

#include "api/server/call.h"
#include "api/server/claiming.h"
#include "api/codec/wire.h"
#include "base/hash.h"
#include "scheduler/commit/beats.h"
#include "scheduler/services/demand.h"
#include "scheduler/services/runners.h"

as_status h_runner_list(struct call *c, struct as_err *err)
{
    struct page_req page;
    struct runner_page rows;
    as_status st = call_page(c, &page, err);
    if (st < 0)
        return st;
    st = runner_list(c->db, c->arena, &page, &rows, err);
    return st < 0 ? st : call_ok(c, runner_page_encode(&rows), err);
}

as_status h_demand(struct call *c, struct as_err *err)
{
    struct demand d;
    as_status st = demand_now(c->db, c->arena, &d, err);
    return st < 0 ? st : call_ok(c, demand_encode(&d), err);
}

as_status h_runner_register(struct call *c, struct as_err *err)
{
    struct runner_register req;
    struct registration reg;
    char made[RUNNER_SECRET_SIZE], digest[SHA256_HEX_SIZE];
    as_status st = runner_register_decode(c->body, c->arena, &req, err);
    if (st < 0)
        return st;
    st = call_runner_secret(c, &req.secret, err);
    if (st < 0)
        return st;
    bool is_first = !req.secret;
    if (is_first) {
        runner_secret_make(made);
        st = sha256_of(made, strlen(made), digest, err);
        req.secret = digest;
    }
    if (st < 0)
        return st;
    st = runner_register(c->db, c->arena, &req, &reg, err);
    return st < 0 ? st
                  : call_ok(c, registration_encode(req.name, is_first ? made : NULL, &reg), err);
}

/* What a claim keeps until it is committed. */
struct claim_call {
    struct claim_request req;
    int64_t wait_ms;
};

/* Answer a claim that was committed, or wait for something to claim. */
static as_status answer_claim(struct call *c, struct as_err *err)
{
    const struct claim_call *x = c->commit.state;
    const struct commit_member *m = c->commit.members[0];
    if (m->status < 0)
        return as_fail_at(err, m->status, m->err.pointer, "%s", m->err.msg);
    if (claiming_waits(c, &x->req, x->wait_ms, &m->out.claim))
        return AS_OK;
    as_status st = claiming_add_tokens(c, &m->out.claim, err);
    return st < 0 ? st : call_ok(c, claims_encode(&m->out.claim), err);
}

as_status h_runner_claim(struct call *c, struct as_err *err)
{
    struct claim_call *x = arena_alloc(c->arena, 1, sizeof *x);
    struct commit_member *m = call_member(c, COMMIT_CLAIM);
    if (!x || !m)
        return as_fail_nomem(err);
    as_status st = claim_decode(c->body, c->arena, &x->req, &x->wait_ms, err);
    if (st < 0)
        return st;
    st = call_runner_secret(c, &x->req.secret, err);
    if (st < 0)
        return st;
    x->req.runner = call_param(c, "runner");
    claiming_begin(c, &x->req, x->wait_ms, m);
    c->commit.state = x;
    return call_submit_one(c, m, answer_claim, err);
}

/* What a heartbeat keeps until it is written. */
struct beat_call {
    struct heartbeat req;
    struct runner_id id;
    struct beat_member member;
};

static as_status answer_beat(struct call *c, const struct directive_list *list, struct as_err *err)
{
    return call_ok(c, heartbeat_encode(store_config(c->db)->lease_ms, list), err);
}

/* In transactions of its own. */
static as_status beat_alone(struct call *c, const struct beat_call *x, struct as_err *err)
{
    struct directive_list list;
    as_status st = runner_heartbeat(c->db, c->arena, &x->id, &x->req, &list, err);
    if (st == AS_OK && x->req.gpu_faults)
        st = runner_gpu_faults(c->db, &x->id, x->req.gpu_faults, err);
    return st < 0 ? st : answer_beat(c, &list, err);
}

static as_status end_beat(struct call *c, struct as_err *err)
{
    const struct beat_call *x = c->commit.state;
    const struct beat_member *m = &x->member;
    if (m->status < 0)
        return as_fail_at(err, m->status, m->err.pointer, "%s", m->err.msg);
    if (!m->fact.is_plain)
        return beat_alone(c, x, err);
    const struct directive_list none = {.drain = m->fact.is_draining};
    return answer_beat(c, &none, err);
}

as_status h_runner_heartbeat(struct call *c, struct as_err *err)
{
    struct beat_call *x = arena_alloc(c->arena, 1, sizeof *x);
    if (!x)
        return as_fail_nomem(err);
    as_status st = heartbeat_decode(c->body, c->arena, &x->req, err);
    if (st < 0)
        return st;
    x->id = (struct runner_id){.name = call_param(c, "runner"), .epoch = x->req.epoch};
    st = call_runner_secret(c, &x->id.secret, err);
    if (st < 0)
        return st;
    x->member.ask = (struct beat_ask){.id = x->id,
                                      .attempts = x->req.attempts,
                                      .n = x->req.n,
                                      .said = x->req.said,
                                      .n_said = x->req.n_said};
    if (x->req.gpu_faults || x->req.n_seats > 0 || !beats_takes(&x->member.ask))
        return beat_alone(c, x, err);
    c->commit.state = x;
    call_submit_beat(c, &x->member, end_beat);
    return AS_OK;
}

as_status h_runner_leave(struct call *c, struct as_err *err)
{
    struct runner_id id = {.name = call_param(c, "runner")};
    as_status st = leave_decode(c->body, &id.epoch, err);
    if (st < 0)
        return st;
    st = call_runner_secret(c, &id.secret, err);
    if (st < 0)
        return st;
    st = runner_leave(c->db, &id, err);
    return st < 0 ? st : call_done(c);
}

as_status h_runner_remove(struct call *c, struct as_err *err)
{
    as_status st = runner_remove(c->db, call_param(c, "runner"), err);
    return st < 0 ? st : call_done(c);
}

as_status h_runner_drain(struct call *c, struct as_err *err)
{
    bool is_draining = true;
    as_status st = drain_decode(c->body, &is_draining, err);
    if (st < 0)
        return st;
    st = runner_drain(c->db, call_param(c, "runner"), is_draining, err);
    return st < 0 ? st : call_done(c);
}
