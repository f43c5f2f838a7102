/* The rung results of one sweep, and the decisions that follow from them.
 *
 * search/stopping decides. This file keeps the order: a result has its place, and promotions that
 * it allows come right after it. So whoever reads the stored events in their order can make every
 * decision again. */
#include "scheduler/sweep/rung_board.h"

#include <string.h>

#include "base/str.h"

as_status rung_board_create(const struct sweep_doc *doc, struct rung_board **ret,
                            struct as_err *err)
{
    AS_AUTO(rung_board_freep) struct rung_board *b = as_calloc(1, sizeof *b);
    bool failed = !b;
    if (!failed)
        b->spec = doc->stopping;
    for (size_t i = 0; i < doc->n_objectives && !failed; i++) {
        b->metrics[b->n_metrics++] = as_strdup(doc->objectives[i].name);
        failed = !b->metrics[i];
    }
    for (size_t i = 0; i < doc->n_outcomes && !failed; i++) {
        b->outcomes[b->n_outcomes++] = doc->outcomes[i];
        b->outcomes[i].metric = as_strdup(doc->outcomes[i].metric);
        failed = !b->outcomes[i].metric;
    }
    if (failed)
        return as_fail_nomem(err);
    as_status st = stopping_create(&b->spec, &b->index, err);
    if (st == AS_OK)
        *ret = as_steal(b);
    return st;
}

void rung_board_free(struct rung_board *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n_metrics; i++)
        free(b->metrics[i]);
    for (size_t i = 0; i < b->n_outcomes; i++)
        free(b->outcomes[i].metric);
    stopping_free(b->index);
    free(b);
}

bool rung_board_compares(const struct rung_board *b, size_t metric)
{
    return !b->spec.has_metric || b->spec.metric == metric;
}

/* What is stored does not fit: nobody can be asked about it. */
static as_status unfit(as_status st, struct as_err *err)
{
    return st == AS_OK || st == AS_E_NOMEM
               ? st
               : as_err_prefix(err, AS_E_INTERNAL, "the rung results of a sweep do not fit");
}

as_status rung_board_apply(struct rung_board *b, const struct rung_entry *e, struct as_err *err)
{
    as_status st = AS_OK;
    switch (e->event) {
    case RUNG_RESULT:
        st = unfit(stopping_add(b->index, &e->result, err), err);
        break;
    case RUNG_PROMOTED:
        stopping_promoted(b->index, e->result.number);
        break;
    case RUNG_LEFT:
        stopping_left(b->index, e->result.number);
        break;
    }
    return st;
}

/* A list of promotions that grows. */
struct promotions {
    struct rung_promotion *rows; /* in the arena */
    size_t n, cap;
};

static as_status add_promotion(struct promotions *l, struct arena *a,
                               const struct stop_promotion *p, int64_t seq, struct as_err *err)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 4;
        struct rung_promotion *rows = arena_alloc(a, cap, sizeof *rows);
        if (!rows)
            return as_fail_nomem(err);
        for (size_t i = 0; i < l->n; i++)
            rows[i] = l->rows[i];
        l->rows = rows;
        l->cap = cap;
    }
    const char *reason = arena_strdup(a, p->reason);
    if (!reason)
        return as_fail_nomem(err);
    l->rows[l->n++] = (struct rung_promotion){(int64_t)p->number, p->rung, seq, reason};
    return AS_OK;
}

as_status rung_board_reach(struct rung_board *b, struct arena *a, const struct rung_result *now,
                           bool ends, int64_t *seq, struct rung_step *ret, struct as_err *err)
{
    struct stop_decision d;
    struct stop_promotion p;
    struct promotions l = {0};
    struct rung_result row = *now;
    as_status st = unfit(stopping_decide(b->index, now, &d, err), err);
    if (st != AS_OK)
        return st;
    row.seq = (uint64_t)*seq;
    if (ends)
        d.verdict = STOP_GO_ON;
    row.decision = d.verdict;
    if ((st = unfit(stopping_add(b->index, &row, err), err)) != AS_OK)
        return st;
    *ret = (struct rung_step){.verdict = d.verdict, .rank = (int64_t)d.rank, .of = (int64_t)d.of};
    const char *reason = ends ? arena_printf(a, "rank %zu of %zu: it completed", d.rank, d.of)
                              : arena_strdup(a, d.reason);
    while (st == AS_OK && reason && stopping_promote(b->index, false, &p)) {
        stopping_promoted(b->index, p.number);
        if (p.number == now->number) {
            ret->verdict = STOP_GO_ON;
            reason = arena_strdup(a, p.reason);
        } else {
            st = add_promotion(&l, a, &p, ++*seq, err);
        }
    }
    if (st == AS_OK && !reason)
        st = as_fail_nomem(err);
    ret->reason = reason;
    ret->promotions = l.rows;
    ret->n_promotions = l.n;
    return st;
}

as_status rung_board_close(struct rung_board *b, struct arena *a, int64_t *seq,
                           struct rung_promotion **ret, size_t *ret_n, struct as_err *err)
{
    struct promotions l = {0};
    struct stop_promotion p;
    as_status st = AS_OK;
    while (st == AS_OK && stopping_promote(b->index, true, &p)) {
        stopping_promoted(b->index, p.number);
        st = add_promotion(&l, a, &p, ++*seq, err);
    }
    *ret = l.rows;
    *ret_n = l.n;
    return st;
}
