/* Handlers of what running attempts send. Measurements and ends are committed together with those
 * of other requests: such a handler has two halves, and holds no worker between them (call_submit).
 * */
#include "api/server/handlers.h"

#include "api/server/call.h"
#include "api/codec/wire.h"
#include "scheduler/lifecycle/attempts.h"

/* The attempt that the path names, and who writes. */
static as_status read_ref(const struct call *c, struct attempt_ref *ret,
                          struct attempt_writer *ret_by, struct as_err *err)
{
    *ret_by = (struct attempt_writer){.is_trial = c->who.role == ROLE_TRIAL};
    struct attempt_ref ref = {.sweep = call_param(c, "sweep")};
    as_status st = call_param_i64(c, "number", 0, &ref.number, err);
    if (st < 0)
        return st;
    st = call_param_i64(c, "attempt", 1, &ref.attempt, err);
    if (st < 0)
        return st;
    *ret = ref;
    st = call_seat(c, &ret_by->has_seat, &ret_by->seat, &ret_by->epoch, err);
    return st < 0 ? st : call_runner_secret(c, &ret_by->secret, err);
}

/* Answer a report that was committed. */
static as_status answer_report(struct call *c, struct as_err *err)
{
    const struct commit_member *m = c->commit.members[0];
    if (m->status < 0)
        return as_fail_at(err, m->status, m->err.pointer, "%s", m->err.msg);
    return call_ok(c, report_encode(m->out.recorded, m->directive), err);
}

as_status h_attempt_measure(struct call *c, struct as_err *err)
{
    struct measurement_batch batch;
    struct commit_member *m = call_member(c, COMMIT_RECORD);
    if (!m)
        return as_fail_nomem(err);
    as_status st = read_ref(c, &m->ref, &m->by, err);
    if (st < 0)
        return st;
    st = measurements_decode(c->body, c->arena, &batch, err);
    if (st < 0)
        return st;
    m->in.report = (struct attempt_report){.points = batch.points.rows,
                                           .n_points = batch.points.n,
                                           .notes = batch.notes,
                                           .n_notes = batch.n_notes};
    return call_submit_one(c, m, answer_report, err);
}

as_status h_attempt_log(struct call *c, struct as_err *err)
{
    struct attempt_ref ref;
    struct attempt_writer by;
    struct log_request log;
    as_status st = read_ref(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = log_decode(c->body, &log, err);
    if (st < 0)
        return st;
    st = attempt_log(c->db, &ref, &by, log.text, log.truncated, err);
    return st < 0 ? st : call_done(c);
}

as_status h_attempt_usage(struct call *c, struct as_err *err)
{
    struct attempt_ref ref;
    struct attempt_writer by;
    const char *usage = NULL;
    as_status st = read_ref(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = usage_decode(c->body, c->arena, &usage, err);
    if (st < 0)
        return st;
    st = attempt_usage(c->db, &ref, &by, usage, err);
    return st < 0 ? st : call_done(c);
}

as_status h_attempt_files(struct call *c, struct as_err *err)
{
    struct attempt_ref ref;
    struct attempt_writer by;
    struct files_request set;
    as_status st = read_ref(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = files_decode(c->body, c->arena, &set, err);
    if (st < 0)
        return st;
    if (set.lost)
        st = attempt_lost_checkpoint(c->db, &ref, &by, set.lost, err);
    else if (set.kind == FILE_KEPT)
        st = attempt_keep(c->db, &ref, &by, set.step, set.files.rows, set.files.n, err);
    else
        st = attempt_files(c->db, &ref, &by, set.kind, set.files.rows, set.files.n, err);
    return st < 0 ? st : call_done(c);
}

/* Answer an end that was committed. */
static as_status answer_end(struct call *c, struct as_err *err)
{
    const struct commit_member *m = c->commit.members[0];
    if (m->status < 0)
        return as_fail_at(err, m->status, m->err.pointer, "%s", m->err.msg);
    return call_ok(c, trial_encode(&m->out.trial), err);
}

as_status h_attempt_complete(struct call *c, struct as_err *err)
{
    struct commit_member *m = call_member(c, COMMIT_END);
    if (!m)
        return as_fail_nomem(err);
    as_status st = read_ref(c, &m->ref, &m->by, err);
    if (st < 0)
        return st;
    st = completion_decode(c->body, c->arena, &m->in.end, err);
    return st < 0 ? st : call_submit_one(c, m, answer_end, err);
}
