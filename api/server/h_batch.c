/* The handler of many parts in one request. The first half hands all of them to the committer
 * together, the second half answers each as its single route does: an error of a part is a problem
 * in its place of the answer.
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
#include "api/server/dispatch_parts.h"
#include "api/server/http_metrics.h"
#include "base/json.h"

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

/* What the second half of the handler needs. */
struct batch_state {
    struct batch_request request;
    const char *secret; /* of the runner; NULL: none was shown */
    /* One for each part; that of a malformed part is unused. */
    struct commit_member *reports, *ends, *claim;
    bool is_alone; /* the claim is the only part */
};

static void fill_member(struct commit_member *m, commit_kind kind, const struct batched_part *p,
                        const char *secret)
{
    m->kind = kind;
    m->ref = p->ref;
    m->by = (struct attempt_writer){
        .secret = secret, .has_seat = p->has_seat, .seat = p->seat, .epoch = p->epoch};
}

/* The claim of a request. Beside other parts it is tried once. It comes after them, and knows all
 * results that are recorded when it is decided. */
static void fill_claim(struct call *c, struct batch_state *s)
{
    struct batched_claim *b = &s->request.claim;
    b->claim.runner = call_param(c, "runner");
    b->claim.secret = s->secret;
    claiming_begin(c, &b->claim, b->wait_ms, s->claim);
    if (!s->is_alone)
        b->claim.arrived_ns = 0;
}

/* Make the members of a request: measurements come before ends, and both before the claim. Returns
 * those of parts that are well formed. AS_E_NOMEM. */
static as_status make_members(struct call *c, struct batch_state *s, struct commit_member ***ret,
                              size_t *ret_n, struct as_err *err)
{
    const struct batch_request *r = &s->request;
    size_t n = 0, total = r->n_reports + r->n_ends + 1;
    /* a claim that waits makes its member for each try */
    struct commit_member *members =
        s->is_alone ? call_member(c, COMMIT_CLAIM) : call_members(c, total);
    struct commit_member **list = arena_alloc(c->arena, total, sizeof(struct commit_member *));
    if (!members || !list)
        return as_fail_nomem(err);
    s->reports = members;
    s->ends = members + r->n_reports;
    s->claim = s->ends + r->n_ends;
    for (size_t i = 0; i < r->n_reports; i++) {
        const struct measurement_batch *b = &r->reports[i].report;
        fill_member(&s->reports[i], COMMIT_RECORD, &r->reports[i].part, s->secret);
        s->reports[i].in.report = (struct attempt_report){.points = b->points.rows,
                                                          .n_points = b->points.n,
                                                          .notes = b->notes,
                                                          .n_notes = b->n_notes};
        if (!r->reports[i].part.fault)
            list[n++] = &s->reports[i];
    }
    for (size_t i = 0; i < r->n_ends; i++) {
        fill_member(&s->ends[i], COMMIT_END, &r->ends[i].part, s->secret);
        s->ends[i].in.end = r->ends[i].end;
        s->ends[i].is_brief = true;
        if (!r->ends[i].part.fault)
            list[n++] = &s->ends[i];
    }
    if (r->claim.is_asked && !r->claim.fault) {
        fill_claim(c, s);
        list[n++] = s->claim;
    }
    *ret = list;
    *ret_n = n;
    return AS_OK;
}

/* ---- the answer ---- */

static json_t *answer_report(const struct call *c, const struct batch_state *s, size_t i)
{
    const struct batched_part *p = &s->request.reports[i].part;
    const struct commit_member *m = &s->reports[i];
    char at[BATCH_AT_SIZE];
    if (p->fault)
        return refuse_malformed(c, p->fault);
    if (m->status == AS_OK)
        return batch_report_encode(m->out.recorded, m->directive);
    batch_part_at(BATCH_MEASUREMENTS, i, at);
    return refuse_part(c, ROUTE_REFERS, at, &m->err);
}

static json_t *answer_end(struct call *c, const struct batch_state *s, size_t i)
{
    const struct batched_part *p = &s->request.ends[i].part;
    const struct commit_member *m = &s->ends[i];
    char at[BATCH_AT_SIZE];
    if (p->fault)
        return refuse_malformed(c, p->fault);
    if (m->status == AS_OK) {
        call_wake(c);
        return batch_end_encode(m->out.trial.state);
    }
    batch_part_at(BATCH_END, i, at);
    return refuse_part(c, ROUTE_REFERS, at, &m->err);
}

/* NULL for want of memory. */
static json_t *answer_claim(struct call *c, const struct batch_state *s)
{
    const struct batched_claim *b = &s->request.claim;
    char at[BATCH_AT_SIZE];
    if (!b->is_asked)
        return json_null();
    if (b->fault)
        return refuse_malformed(c, b->fault);
    if (s->claim->status == AS_OK)
        s->claim->status = claiming_add_tokens(c, &s->claim->out.claim, &s->claim->err);
    if (s->claim->status == AS_OK) {
        claiming_wake(c, &s->claim->out.claim);
        return batch_claim_encode(&s->claim->out.claim);
    }
    batch_part_at(BATCH_CLAIM, 0, at);
    return refuse_part(c, ROUTE_EPOCH, at, &s->claim->err);
}

/* Does the claim wait? It is the only part then, and found nothing. */
static bool is_waiting(struct call *c, const struct batch_state *s)
{
    const struct batched_claim *b = &s->request.claim;
    return s->is_alone && b->is_asked && !b->fault && s->claim->status == AS_OK &&
           claiming_waits(c, &b->claim, b->wait_ms, &s->claim->out.claim);
}

/* The second half: the parts have their answers. */
static as_status answer_batch(struct call *c, struct as_err *err)
{
    struct batch_state *s = c->commit.state;
    const struct batch_request *r = &s->request;
    JSON_AUTO ends = json_array();
    JSON_AUTO reports = json_array();
    if (is_waiting(c, s))
        return AS_OK;
    for (size_t i = 0; i < r->n_reports; i++)
        if (json_array_append_new(reports, answer_report(c, s, i)) < 0)
            return as_fail_nomem(err);
    for (size_t i = 0; i < r->n_ends; i++)
        if (json_array_append_new(ends, answer_end(c, s, i)) < 0)
            return as_fail_nomem(err);
    json_t *claim = answer_claim(c, s);
    return call_ok(c, batch_encode(as_steal(ends), as_steal(reports), claim), err);
}

as_status h_batch(struct call *c, struct as_err *err)
{
    struct batch_state *s = arena_alloc(c->arena, 1, sizeof *s);
    struct commit_member **members = NULL;
    size_t n = 0;
    if (!s)
        return as_fail_nomem(err);
    as_status st = batch_decode(c->body, c->arena, &s->request, err);
    if (st < 0 || (st = call_runner_secret(c, &s->secret, err)) < 0)
        return st;
    size_t parts = s->request.n_reports + s->request.n_ends;
    c->commit.state = s;
    s->is_alone = parts == 0;
    http_metrics_count_parts(c->dispatch->metrics, parts);
    st = make_members(c, s, &members, &n, err);
    if (st < 0)
        return st;
    if (n == 0)
        return answer_batch(c, err);
    call_submit(c, members, n, answer_batch);
    return AS_OK;
}
