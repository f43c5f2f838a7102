/* A batch of results, and the path of members that run alone.
 *
 * The body of the transaction may run several times, so it sets nothing of the members: their
 * answers are set when it has committed. */
#include "scheduler/commit/batch.h"

#include "scheduler/commit/batch_plan.h"
#include "scheduler/lifecycle/rungs.h"

/* A batch that is being run. */
struct batch {
    const struct batch_ops *ops;
    bool is_patient;
    struct commit_member *const *members;
    size_t n;
    struct arena a;
    struct batch_ask *asks;
    struct batch_decision *decisions; /* of the latest run */
    struct batch_changes changes;
};

static void batch_done(struct batch *b)
{
    arena_done(&b->a);
}

/* The body: read, decide, write. It may run again, so it sets no answer. */
static as_status run_body(void *arg, struct tx *t, struct as_err *err)
{
    struct batch *b = arg;
    struct batch_fact *facts = arena_alloc(&b->a, b->n, sizeof *facts);
    if (!facts)
        return as_fail_nomem(err);
    as_status st = b->ops->read(t, &b->a, b->asks, b->n, b->is_patient, facts, err);
    if (st == AS_OK)
        st = batch_plan(&b->a, b->members, facts, b->n, b->decisions, &b->changes, err);
    return st == AS_OK ? b->ops->write(t, &b->a, &b->changes, err) : st;
}

static void answer(const struct batch *b, size_t i, struct batch_result *ret)
{
    struct commit_member *m = b->members[i];
    const struct batch_decision *d = &b->decisions[i];
    m->fate = d->fate;
    if (d->fate != COMMIT_DONE)
        return;
    m->status = d->status;
    if (d->err)
        m->err = *d->err;
    ret->stale += d->status == AS_E_STALE;
    ret->completed += d->is_end;
    ret->late += d->is_end && d->is_late;
    if (d->status != AS_OK)
        return;
    if (m->kind == COMMIT_RECORD) {
        const struct attempt_ref ref = {m->ref.sweep, m->ref.number, d->attempt};
        m->status = rungs_directive(m->arena, &ref, &d->at, &m->directive, &m->err);
        m->out.recorded =
            d->record == SIZE_MAX ? 0 : b->changes.records[d->record].points.ret.recorded;
        ret->recorded += m->out.recorded;
    } else {
        m->out.trial = d->row == SIZE_MAX ? (struct trial_row){.state = d->state}
                                          : b->changes.rows[d->row].row;
    }
}

as_status batch_commit(const struct batch_ops *ops, void *ctx, bool is_patient,
                       struct commit_member *const *members, size_t n, struct batch_result *ret,
                       struct as_err *err)
{
    AS_AUTO(batch_done)
    struct batch b = {.ops = ops, .is_patient = is_patient, .members = members, .n = n};
    struct batch_end_of_run end = {0};
    *ret = (struct batch_result){0};
    b.asks = arena_alloc(&b.a, n, sizeof *b.asks);
    b.decisions = arena_alloc(&b.a, n, sizeof *b.decisions);
    if (!b.asks || !b.decisions)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        b.asks[i] = batch_ask_of(members[i]);
    as_status st = ops->run(ctx, run_body, &b, &end, err);
    ret->is_away = end.is_away;
    ret->sent_ns = end.sent_ns;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        answer(&b, i, ret);
    return st;
}

/* ---- alone ---- */

static as_status record_alone(struct store *db, struct commit_member *m, const struct ask_ref *ask)
{
    const struct attempt_report *r = &m->in.report;
    struct attempt_recorded got = {0};
    as_status st = m->by.client
                       ? ask_measure(db, m->arena, ask, r->points, r->n_points, &got, &m->err)
                       : attempt_record(db, m->arena, &m->ref, &m->by, r, &got, &m->err);
    m->directive = got.directive;
    if (st == AS_OK)
        m->out.recorded = got.points;
    return st;
}

static as_status end_alone(struct store *db, struct commit_member *m, const struct ask_ref *ask)
{
    return m->by.client ? ask_complete(db, m->arena, ask, &m->in.end, &m->out.trial, &m->err)
                        : attempt_complete(db, m->arena, &m->ref, &m->by, &m->in.end, &m->out.trial,
                                           &m->err);
}

void commit_alone(struct store *db, struct suggester *sg, struct commit_member *m)
{
    const struct ask_ref ask = {.sweep = m->ref.sweep,
                                .number = m->ref.number,
                                .client = m->by.client,
                                .attempt = m->ref.attempt,
                                .token = m->token};
    switch (m->kind) {
    case COMMIT_RECORD:
        m->status = record_alone(db, m, &ask);
        break;
    case COMMIT_END:
        m->status = end_alone(db, m, &ask);
        break;
    case COMMIT_CLAIM:
        m->status = claim_trials(db, sg, m->arena, m->in.claim, &m->out.claim, &m->err);
        break;
    case COMMIT_ASK:
        m->status = ask_trials(db, sg, m->arena, m->in.ask, &m->out.asked, &m->err);
        break;
    }
}
