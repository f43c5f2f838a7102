/* The handler of many parts in one request. Each part is done as its single route does it, and has
 * its own answer: an error of a part is a problem in its place of the answer.
 *
 * Measurements come before ends, because an end closes its attempt for them, and both before the
 * claim, which so finds the results of its own request. A claim waits only if the request has
 * nothing else: what is recorded is answered at once, and a request that waits runs its handler
 * again, which must not repeat other parts. */
#include "api/server/handlers.h"

#include "api/codec/wire.h"
#include "api/server/call.h"
#include "api/server/claiming.h"
#include "api/server/dispatch.h"
#include "api/server/http_metrics.h"
#include "base/json.h"
#include "scheduler/lifecycle/attempts.h"

/* The answer to a part that failed. An AS_E_STALE with a pointer names a code, and no field. */
static json_t *refuse_part(const struct call *c, unsigned flags, const char *at,
                           const struct as_err *failed)
{
    struct as_err err = *failed;
    int http = 0;
    if (err.pointer[0] && err.code != AS_E_STALE)
        batch_pointer_add(at, &err);
    json_t *problem = dispatch_problem(c, flags, &err, &http);
    return batch_problem_encode(http, problem);
}

/* The answer to a part that is malformed: its error has the place already. */
static json_t *refuse_malformed(const struct call *c, const struct as_err *fault)
{
    int http = 0;
    json_t *problem = dispatch_problem(c, 0, fault, &http);
    return batch_problem_encode(http, problem);
}

static struct attempt_writer writer_of(const struct batch_part *p, const char *secret)
{
    return (struct attempt_writer){
        .secret = secret, .has_seat = p->has_seat, .seat = p->seat, .epoch = p->epoch};
}

/* Add an answer to a list; takes it. AS_E_NOMEM. */
static as_status add_answer(json_t *list, json_t *answer, struct as_err *err)
{
    return json_array_append_new(list, answer) < 0 ? as_fail_nomem(err) : AS_OK;
}

static json_t *record_report(struct call *c, const char *secret, const struct batch_report *r,
                             size_t index)
{
    const struct attempt_report report = {.points = r->report.points.rows,
                                          .n_points = r->report.points.n,
                                          .notes = r->report.notes,
                                          .n_notes = r->report.n_notes};
    struct attempt_writer by = writer_of(&r->part, secret);
    struct as_err err = {0};
    char at[BATCH_AT_SIZE];
    int64_t recorded = 0;
    if (r->part.fault)
        return refuse_malformed(c, r->part.fault);
    if (attempt_record(c->db, &r->part.ref, &by, &report, &recorded, &err) == AS_OK)
        return batch_report_encode(recorded);
    batch_part_at(BATCH_MEASUREMENTS, index, at);
    return refuse_part(c, ROUTE_REFERS, at, &err);
}

static json_t *record_end(struct call *c, const char *secret, const struct batch_end *e,
                          size_t index)
{
    struct attempt_writer by = writer_of(&e->part, secret);
    struct trial_row row;
    struct as_err err = {0};
    char at[BATCH_AT_SIZE];
    if (e->part.fault)
        return refuse_malformed(c, e->part.fault);
    if (attempt_complete(c->db, c->arena, &e->part.ref, &by, &e->end, &row, &err) == AS_OK) {
        call_wake(c);
        return batch_end_encode(&row);
    }
    batch_part_at(BATCH_END, index, at);
    return refuse_part(c, ROUTE_REFERS, at, &err);
}

/* *ret_waits: the claim found nothing, may wait, and is the only part. */
static json_t *try_claim(struct call *c, const char *secret, struct batch_claim *b, bool is_alone,
                         bool *ret_waits)
{
    struct claim_list list;
    struct as_err err = {0};
    char at[BATCH_AT_SIZE];
    *ret_waits = false;
    if (b->fault)
        return refuse_malformed(c, b->fault);
    b->claim.runner = call_param(c, "runner");
    b->claim.secret = secret;
    if (!is_alone)
        claiming_arrive_anew(c);
    bool may_wait = call_may_wait(c, b->wait_ms);
    if (claiming_try(c, &b->claim, !may_wait, &list, &err) < 0) {
        batch_part_at(BATCH_CLAIM, 0, at);
        return refuse_part(c, ROUTE_EPOCH, at, &err);
    }
    *ret_waits = is_alone && may_wait && list.n == 0;
    if (!*ret_waits)
        return batch_claim_encode(&list);
    claiming_wait(c, &list);
    return NULL;
}

as_status h_batch(struct call *c, struct as_err *err)
{
    struct batch_request r;
    const char *secret = NULL;
    JSON_AUTO ends = json_array();
    JSON_AUTO reports = json_array();
    bool waits = false;
    as_status st = batch_decode(c->body, c->arena, &r, err);
    if (st < 0 || (st = call_runner_secret(c, &secret, err)) < 0)
        return st;
    http_metrics_count_parts(c->dispatch->metrics, r.n_reports + r.n_ends);
    for (size_t i = 0; i < r.n_reports; i++)
        if ((st = add_answer(reports, record_report(c, secret, &r.reports[i], i), err)) < 0)
            return st;
    for (size_t i = 0; i < r.n_ends; i++)
        if ((st = add_answer(ends, record_end(c, secret, &r.ends[i], i), err)) < 0)
            return st;
    bool is_alone = r.n_reports + r.n_ends == 0;
    json_t *claim =
        r.claim.is_asked ? try_claim(c, secret, &r.claim, is_alone, &waits) : json_null();
    if (waits)
        return AS_OK;
    return call_ok(c, batch_encode(as_steal(ends), as_steal(reports), claim), err);
}
