/* The order of a rung: a list with ranks for one metric, counts for several.
 *
 * With one metric the order of two rows never changes. With several a new row may dominate any
 * other: each row counts its dominators, and ranks are counted anew. */
#include "search/stopping/standings.h"

#include <stdlib.h>

#include "base/mem.h"
#include "search/pareto/pareto.h"

struct standings_row {
    struct standing own;
    size_t dominators; /* several metrics: rows of its kind that dominate it */
};

void standings_done(struct standings *s)
{
    free(s->rows);
    rank_list_done(&s->list);
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

static struct ranked ranked_of(const struct standing *row)
{
    return (struct ranked){.cost = row->kind == 2 ? 0 : row->costs[0],
                           .number = row->number,
                           .kind = row->kind,
                           .waits = row->waits};
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
    as_status st = as_reserve_one(&s->rows, s->n, &s->cap, sizeof *s->rows, err);
    return st == AS_OK && s->n_metrics == 1 ? rank_list_reserve(&s->list, err) : st;
}

static void count_dominated(struct standings *s, struct standings_row *added)
{
    const struct standing *row = &added->own;
    added->dominators = count_dominators(s, row);
    for (size_t i = 0; i < s->n; i++)
        s->rows[i].dominators += s->rows[i].own.kind == row->kind &&
                                 standing_compare(row, &s->rows[i].own, s->n_metrics) < 0;
}

void standings_add(struct standings *s, const struct standing *row)
{
    struct standings_row *added = &s->rows[s->n];
    struct ranked entry = ranked_of(row);
    *added = (struct standings_row){.own = *row};
    entry.row = (uint32_t)s->n;
    if (s->n_metrics == 1)
        rank_list_add(&s->list, &entry);
    else
        count_dominated(s, added);
    s->n++;
    s->n_waiting += row->waits;
}

void standings_leave(struct standings *s, const struct standing *row)
{
    struct ranked entry = ranked_of(row);
    if (s->n_metrics == 1)
        rank_list_leave(&s->list, &entry);
    else
        leave_among(s, row);
    s->n_waiting--;
}

size_t standings_rank(const struct standings *s, const struct standing *row, bool is_added)
{
    struct ranked entry = ranked_of(row);
    return s->n_metrics == 1 ? rank_list_better(&s->list, &entry) + 1
                             : rank_among(s, row, is_added);
}

const struct standing *standings_at(const struct standings *s, size_t k)
{
    return &s->rows[rank_list_at(&s->list, k)->row].own;
}

const struct standing *standings_best_waiting(const struct standings *s)
{
    if (s->n_metrics > 1)
        return best_waiting_among(s);
    const struct ranked *first = rank_list_first_waiting(&s->list);
    return first ? &s->rows[first->row].own : NULL;
}
