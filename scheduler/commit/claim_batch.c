/* A batch of claims.
 *
 * It looks first, without locks on sweeps, to find those whose turn it is; locks them; and decides
 * again, because others may have changed them. The answers are made from the plan: nothing is read
 * back. */
#include "scheduler/commit/claim_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scheduler/assign/drawn.h"
#include "scheduler/assign/keeping.h"
#include "scheduler/commit/claim_plan.h"
#include "scheduler/suggester/prepared.h"

/* A batch that is being run. */
struct claim_batch {
    const struct batch_ops *ops;
    struct suggester *sg;
    struct claim_docs *docs;
    struct commit_member *const *members;
    size_t n;
    bool is_patient;
    struct arena a;
    struct batch_claimer *claimers;
    struct batch_turns turns; /* of the latest run, as the next */
    struct claims_plan plan;
};

static void claim_batch_done(struct claim_batch *b)
{
    arena_done(&b->a);
}

/* Have the documents of the sources. One that cannot be kept is missing later: its claims run
 * alone. */
static as_status read_documents(struct claim_batch *b, struct tx *t,
                                const struct batch_source *sources, size_t n, struct as_err *err)
{
    int64_t *keys = arena_alloc(&b->a, n + 1, sizeof *keys);
    const char **texts = arena_alloc(&b->a, n + 1, sizeof *texts);
    size_t n_keys = 0;
    if (!keys || !texts)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (sources[i].row && !claim_docs_find(b->docs, sources[i].key))
            keys[n_keys++] = sources[i].key;
    as_status st = n_keys > 0 ? b->ops->documents(t, &b->a, keys, n_keys, texts, err) : AS_OK;
    for (size_t i = 0; i < n_keys && st == AS_OK; i++)
        if (texts[i] && claim_docs_add(b->docs, keys[i], texts[i], err) == AS_E_NOMEM)
            return as_fail_nomem(err);
    return st;
}

/* Lock the sweeps that the members found busy, before anything else: while it waits it holds no
 * runner, whose heartbeats would wait, too. Nothing after this waits for a row. */
static as_status await_sweeps(struct claim_batch *b, struct tx *t, struct as_err *err)
{
    struct batch_source *busy = arena_alloc(&b->a, b->n, sizeof *busy);
    size_t n = 0;
    if (!busy)
        return as_fail_nomem(err);
    for (size_t i = 0; i < b->n; i++)
        if (b->members[i]->busy_key)
            busy[n++].key = b->members[i]->busy_key;
    qsort(busy, n, sizeof *busy, claims_source_order);
    size_t distinct = n > 0;
    for (size_t i = 1; i < n; i++)
        if (busy[i].key != busy[distinct - 1].key)
            busy[distinct++] = busy[i];
    return n > 0 ? b->ops->take(t, &b->a, busy, distinct, true, err) : AS_OK;
}

/* The body: look, decide whose turn it is, lock, decide, write. It may run again. */
static as_status run_body(void *arg, struct tx *t, struct as_err *err)
{
    struct claim_batch *b = arg;
    struct batch_runner *runners = arena_alloc(&b->a, b->n, sizeof *runners);
    struct batch_source *sources = NULL;
    struct batch_claims changes;
    size_t n_sources = 0;
    if (!runners)
        return as_fail_nomem(err);
    b->turns = (struct batch_turns){0};
    as_status st = b->is_patient ? await_sweeps(b, t, err) : AS_OK;
    if (st != AS_OK)
        return st;
    b->plan = (struct claims_plan){.a = &b->a, .sg = b->sg, .docs = b->docs};
    st = b->ops->look(t, &b->a, b->claimers, b->n, runners, &b->turns, err);
    if (st == AS_OK)
        st = claims_plan_init(&b->plan, &b->turns, b->members, b->n, err);
    if (st == AS_OK)
        st = claims_plan_sources(&b->plan, b->members, runners, b->n, &sources, &n_sources, err);
    if (st == AS_OK && n_sources > 0)
        st = b->ops->take(t, &b->a, sources, n_sources, false, err);
    if (st == AS_OK)
        st = read_documents(b, t, sources, n_sources, err);
    if (st == AS_OK)
        st = claims_plan_take(&b->plan, b->members, runners, b->n, sources, n_sources, err);
    if (st == AS_OK)
        st = claims_plan_changes(&b->plan, b->n, &changes, err);
    return st == AS_OK ? b->ops->begin(t, &b->a, &changes, err) : st;
}

/* ---- answers ---- */

/* The batch's memory ends before the answer. */
static as_status copy_files(struct arena *a, const struct file_list *from, struct file_list *ret,
                            struct as_err *err)
{
    struct file_row *rows = arena_alloc(a, from->n + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < from->n; i++) {
        rows[i] = (struct file_row){.path = arena_strdup(a, from->rows[i].path),
                                    .size = from->rows[i].size,
                                    .sha256 = arena_strdup(a, from->rows[i].sha256)};
        if (!rows[i].path || !rows[i].sha256)
            return as_fail_nomem(err);
    }
    *ret = (struct file_list){.rows = rows, .n = from->n};
    return AS_OK;
}

/* A trial as its runner is told of it: what claimed_read() reads back (assign/claimed.c). */
static as_status fill_row(const struct claim_batch *b, size_t place, struct arena *a,
                          struct claimed_row *ret, struct as_err *err)
{
    const struct batch_begun *t = &b->plan.begun[place];
    const struct batch_queued *q = b->plan.queued[place];
    const struct claim_doc *doc = claim_docs_find(b->docs, t->sweep_key);
    const struct batch_turn *turn = NULL;
    const struct sweep_head *s = claims_plan_sweep(&b->plan, t->sweep_key, &turn);
    JSON_AUTO params = NULL;
    *ret = (struct claimed_row){.sweep_key = t->sweep_key,
                                .sweep = arena_strdup(a, s->id),
                                .number = t->made.number,
                                .attempt = t->attempt,
                                .seed = q ? q->seed : t->made.seed,
                                .params = arena_strdup(a, q ? q->params : t->made.params),
                                .trial = arena_strdup(a, doc->ref.trial),
                                .metric = arena_strdup(a, s->metric),
                                .maximize = s->maximize,
                                .gpus = s->gpus,
                                .cpus = s->cpus,
                                .timeout_ms = s->trial_timeout_ms,
                                .grace_ms = turn->grace_ms,
                                .early_stopping = s->stops,
                                .gives_ahead = turn->gives_ahead};
    if (!ret->sweep || !ret->params || !ret->trial || !ret->metric)
        return as_fail_nomem(err);
    as_status st = json_parse(ret->params, strlen(ret->params), &params, err);
    if (st == AS_OK)
        st = inactive_names(a, doc->ref.tree, params, &ret->inactive, &ret->n_inactive, err);
    if (st == AS_OK)
        st = keeping_fill(a, doc->ref.tree, ret, err);
    return st == AS_OK && q ? copy_files(a, &q->files, &ret->files, err) : st;
}

/* A claim whose answer cannot be made has its trials: its repeat reads them. */
static void answer(const struct claim_batch *b, size_t i, struct batch_result *ret)
{
    struct commit_member *m = b->members[i];
    const struct claim_decision *d = &b->plan.decisions[i];
    m->fate = d->fate;
    m->busy_key = d->busy_key;
    if (d->fate != COMMIT_DONE)
        return;
    struct claimed_row *rows = arena_alloc(m->arena, d->n + 1, sizeof *rows);
    m->status = rows ? AS_OK : as_fail_nomem(&m->err);
    for (size_t k = 0; k < d->n && m->status == AS_OK; k++)
        m->status = fill_row(b, d->first + k, m->arena, &rows[k], &m->err);
    if (m->status == AS_OK)
        m->out.claim = (struct claim_list){.rows = rows, .n = d->n, .awaits_ends = d->awaits_ends};
    ret->claimed += (int64_t)d->n;
}

as_status batch_claim(const struct batch_ops *ops, void *ctx, struct suggester *sg,
                      struct claim_docs *docs, bool is_patient,
                      struct commit_member *const *members, size_t n, struct batch_result *ret,
                      struct as_err *err)
{
    AS_AUTO(claim_batch_done)
    struct claim_batch b = {
        .ops = ops, .sg = sg, .docs = docs, .members = members, .n = n, .is_patient = is_patient};
    struct batch_end_of_run end = {0};
    *ret = (struct batch_result){0};
    b.claimers = arena_alloc(&b.a, n, sizeof *b.claimers);
    if (!b.claimers)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const struct claim_request *req = members[i]->in.claim;
        bool is_long = req->n_ending > RUNNER_HELD_MAX;
        b.claimers[i] = (struct batch_claimer){.runner = req->runner,
                                               .claim_id = req->claim_id,
                                               .ending = req->ending,
                                               .n_ending = is_long ? 0 : req->n_ending};
    }
    as_status st = ops->run(ctx, run_body, &b, &end, err);
    ret->is_away = end.is_away;
    ret->sent_ns = end.sent_ns;
    if (st != AS_OK)
        return st;
    if (sg && b.plan.n_learned > 0)
        suggester_taken(sg, b.plan.n_learned);
    for (size_t i = 0; i < n; i++)
        answer(&b, i, ret);
    return AS_OK;
}
