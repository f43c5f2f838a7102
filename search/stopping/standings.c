/* The order of a rung: a treap for one metric, a list for several.
 *
 * With one metric the order of two rows never changes, so a balanced tree keeps it, and the sizes
 * of its subtrees give ranks. A treap needs no rebalancing rules, and its shape follows from its
 * rows. With several metrics a new row may dominate any other: each row counts its dominators, and
 * ranks are counted anew. */
#include "search/stopping/standings.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/pareto/pareto.h"

struct standings_row {
    struct standing own;
    size_t dominators; /* several metrics: rows of its kind that dominate it */
    /* One metric: the treap. Children are indices + 1. */
    uint64_t priority;
    uint32_t left, right;
    uint32_t size, n_waiting; /* of its subtree */
};

void standings_done(struct standings *s)
{
    free(s->rows);
}

int standing_compare(const struct standing *a, const struct standing *b, size_t n_metrics)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == 2)
        return 0;
    if (n_metrics == 1)
        return a->costs[0] < b->costs[0] ? -1 : a->costs[0] > b->costs[0];
    return gp_pareto_dominates(a->costs, b->costs, n_metrics, NULL)   ? -1
           : gp_pareto_dominates(b->costs, a->costs, n_metrics, NULL) ? 1
                                                                      : 0;
}

/* ---- one metric ---- */

/* The order of the treap: equal results by their number. */
static bool is_before(const struct standing *a, const struct standing *b)
{
    int c = standing_compare(a, b, 1);
    return c != 0 ? c < 0 : a->number < b->number;
}

static struct standings_row *row_at(const struct standings *s, uint32_t node)
{
    return &s->rows[node - 1];
}

static void recount(const struct standings *s, uint32_t node)
{
    struct standings_row *r = row_at(s, node);
    r->size = 1;
    r->n_waiting = r->own.waits;
    if (r->left) {
        r->size += row_at(s, r->left)->size;
        r->n_waiting += row_at(s, r->left)->n_waiting;
    }
    if (r->right) {
        r->size += row_at(s, r->right)->size;
        r->n_waiting += row_at(s, r->right)->n_waiting;
    }
}

/* Cut the subtree of `node` into what is before `row` and the rest. */
static void cut(const struct standings *s, uint32_t node, const struct standing *row,
                uint32_t *ret_before, uint32_t *ret_rest)
{
    if (!node) {
        *ret_before = *ret_rest = 0;
        return;
    }
    struct standings_row *r = row_at(s, node);
    if (is_before(&r->own, row)) {
        *ret_before = node;
        cut(s, r->right, row, &r->right, ret_rest);
    } else {
        *ret_rest = node;
        cut(s, r->left, row, ret_before, &r->left);
    }
    recount(s, node);
}

/* Put `added` into the subtree of `node`; its new root. */
static uint32_t insert(const struct standings *s, uint32_t node, uint32_t added)
{
    struct standings_row *a = row_at(s, added);
    if (!node || a->priority > row_at(s, node)->priority) {
        cut(s, node, &a->own, &a->left, &a->right);
        recount(s, added);
        return added;
    }
    struct standings_row *r = row_at(s, node);
    if (is_before(&a->own, &r->own))
        r->left = insert(s, r->left, added);
    else
        r->right = insert(s, r->right, added);
    recount(s, node);
    return node;
}

/* How many rows are better than this one? */
static size_t count_better(const struct standings *s, const struct standing *row)
{
    size_t n = 0;
    for (uint32_t node = s->root; node;) {
        const struct standings_row *r = row_at(s, node);
        if (standing_compare(&r->own, row, 1) < 0) {
            n += 1 + (r->left ? row_at(s, r->left)->size : 0);
            node = r->right;
        } else {
            node = r->left;
        }
    }
    return n;
}

/* Every row on the way down to this one has one waiting row less. */
static void leave_treap(const struct standings *s, const struct standing *row)
{
    for (uint32_t node = s->root; node;) {
        struct standings_row *r = row_at(s, node);
        r->n_waiting--;
        if (r->own.number == row->number) {
            r->own.waits = false;
            return;
        }
        node = is_before(row, &r->own) ? r->left : r->right;
    }
}

static const struct standing *first_waiting(const struct standings *s)
{
    uint32_t node = s->root;
    while (node && row_at(s, node)->n_waiting > 0) {
        const struct standings_row *r = row_at(s, node);
        if (r->left && row_at(s, r->left)->n_waiting > 0)
            node = r->left;
        else if (r->own.waits)
            return &r->own;
        else
            node = r->right;
    }
    return NULL;
}

/* ---- several metrics ---- */

static size_t count_dominators(const struct standings *s, const struct standing *row)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->rows[i].own.kind == row->kind &&
             standing_compare(&s->rows[i].own, row, s->n_metrics) < 0;
    return n;
}

static int compare_counts(const struct standing *a, size_t a_dominators, const struct standing *b,
                          size_t b_dominators)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->kind == 2 ? 0 : a_dominators < b_dominators ? -1 : a_dominators > b_dominators;
}

static size_t rank_among(const struct standings *s, const struct standing *row, bool is_added)
{
    size_t own = count_dominators(s, row), rank = 1;
    for (size_t i = 0; i < s->n; i++) {
        const struct standings_row *r = &s->rows[i];
        size_t other = r->dominators;
        if (!is_added && r->own.kind == row->kind)
            other += standing_compare(row, &r->own, s->n_metrics) < 0;
        rank += compare_counts(&r->own, other, row, own) < 0;
    }
    return rank;
}

static const struct standing *best_waiting_among(const struct standings *s)
{
    const struct standings_row *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct standings_row *r = &s->rows[i];
        if (!r->own.waits)
            continue;
        int c = best ? compare_counts(&r->own, r->dominators, &best->own, best->dominators) : -1;
        if (c < 0 || (c == 0 && r->own.number < best->own.number))
            best = r;
    }
    return best ? &best->own : NULL;
}

static void leave_among(const struct standings *s, const struct standing *row)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].own.number == row->number)
            s->rows[i].own.waits = false;
}

/* ---- both ---- */

as_status standings_reserve(struct standings *s, struct as_err *err)
{
    return as_reserve_one(&s->rows, s->n, &s->cap, sizeof *s->rows, err);
}

void standings_add(struct standings *s, const struct standing *row)
{
    struct standings_row *added = &s->rows[s->n];
    *added = (struct standings_row){.own = *row, .priority = rng_mix(row->number, 0)};
    if (s->n_metrics > 1) {
        added->dominators = count_dominators(s, row);
        for (size_t i = 0; i < s->n; i++)
            s->rows[i].dominators += s->rows[i].own.kind == row->kind &&
                                     standing_compare(row, &s->rows[i].own, s->n_metrics) < 0;
    }
    s->n++;
    s->n_waiting += row->waits;
    if (s->n_metrics == 1)
        s->root = insert(s, s->root, (uint32_t)s->n);
}

void standings_leave(struct standings *s, const struct standing *row)
{
    if (s->n_metrics == 1)
        leave_treap(s, row);
    else
        leave_among(s, row);
    s->n_waiting--;
}

size_t standings_rank(const struct standings *s, const struct standing *row, bool is_added)
{
    return s->n_metrics == 1 ? count_better(s, row) + 1 : rank_among(s, row, is_added);
}

const struct standing *standings_best_waiting(const struct standings *s)
{
    return s->n_metrics == 1 ? first_waiting(s) : best_waiting_among(s);
}
