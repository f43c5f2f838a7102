/* Results and promotions in their order, over the rules of stopping.h. */
#include "search/stopping/rung_order.h"

#include <inttypes.h>
#include <string.h>

/* What is stored does not fit: nobody can be asked about it. */
static as_status unfit(as_status st, struct as_err *err)
{
    return st == AS_OK || st == AS_E_NOMEM
               ? st
               : as_err_prefix(err, AS_E_INTERNAL, "the rung results of a sweep do not fit");
}

as_status rung_order_apply(struct stopping *s, const struct rung_entry *e, struct as_err *err)
{
    as_status st = AS_OK;
    switch (e->event) {
    case RUNG_RESULT:
        st = unfit(stopping_add(s, &e->result, err), err);
        break;
    case RUNG_PROMOTED:
        stopping_promoted(s, e->result.number);
        break;
    case RUNG_LEFT:
        stopping_left(s, e->result.number);
        break;
    }
    return st;
}

#define ENDS ": it completed"
#define FULL ": max_trials leaves none for a fork"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

bool rung_order_is_end(const char *reason)
{
    return ends_with(reason, ENDS);
}

bool rung_order_is_full(const char *reason)
{
    return ends_with(reason, FULL);
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

/* Why, in the arena; NULL when memory is out. */
static const char *reason_of(struct arena *a, const struct rung_arrival *now,
                             const struct stop_decision *d)
{
    if (now->ends)
        return arena_printf(a, "rank %zu of %zu" ENDS, d->rank, d->of);
    if (!d->forks)
        return arena_strdup(a, d->reason);
    if (now->successor < 0)
        return arena_printf(a, "%s" FULL, d->reason);
    return arena_printf(a, "%s: trial %" PRId64 " goes on from trial %" PRIu64 " in its place",
                        d->reason, now->successor, d->parent);
}

as_status rung_order_reach(struct stopping *s, struct arena *a, const struct rung_arrival *now,
                           int64_t *seq, struct rung_step *ret, struct as_err *err)
{
    struct stop_decision d;
    struct stop_promotion p;
    struct promotions l = {0};
    struct rung_result row = now->result;
    as_status st = unfit(stopping_decide(s, &now->result, &d, err), err);
    if (st != AS_OK)
        return st;
    row.seq = (uint64_t)*seq;
    if (now->ends || (d.forks && now->successor < 0))
        d.verdict = STOP_GO_ON;
    row.decision = d.verdict;
    if ((st = unfit(stopping_add(s, &row, err), err)) != AS_OK)
        return st;
    bool is_replaced = d.forks && d.verdict == STOP_PRUNE;
    *ret = (struct rung_step){.verdict = d.verdict,
                              .rank = (int64_t)d.rank,
                              .of = (int64_t)d.of,
                              .parent = is_replaced ? (int64_t)d.parent : -1};
    const char *reason = reason_of(a, now, &d);
    while (st == AS_OK && reason && stopping_promote(s, STOP_NOT_CLOSING, &p)) {
        stopping_promoted(s, p.number);
        if (p.number == row.number) {
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

as_status rung_order_close(struct stopping *s, struct arena *a, bool in_vain, int64_t *seq,
                           struct rung_promotion **ret, size_t *ret_n, struct as_err *err)
{
    struct promotions l = {0};
    struct stop_promotion p;
    as_status st = AS_OK;
    while (st == AS_OK && stopping_promote(s, STOP_CLOSING, &p)) {
        stopping_promoted(s, p.number);
        st = add_promotion(&l, a, &p, ++*seq, err);
    }
    if (st == AS_OK && l.n == 0 && in_vain && stopping_promote(s, STOP_CLOSING_IN_VAIN, &p)) {
        stopping_promoted(s, p.number);
        st = add_promotion(&l, a, &p, ++*seq, err);
    }
    *ret = l.rows;
    *ret_n = l.n;
    return st;
}
