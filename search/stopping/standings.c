#include "search/stopping/standings.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "search/pareto/pareto.h"

void standings_done(struct standings *s)
{
    free(s->rows);
}

/* By kind, then by value: negative if a is better, 0 if they are equal. */
static int compare_values(const struct standing *a, const struct standing *b, size_t n_metrics)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == 2)
        return 0;
    if (n_metrics > 1)
        return a->dominators < b->dominators ? -1 : a->dominators > b->dominators;
    return a->costs[0] < b->costs[0] ? -1 : a->costs[0] > b->costs[0];
}

static int compare(const struct standing *a, const struct standing *b, size_t n_metrics)
{
    int c = compare_values(a, b, n_metrics);
    return c != 0 ? c : a->number < b->number ? -1 : a->number > b->number;
}

/* One metric: how many rows are before this one; with `strictly`, by value alone. */
static size_t rows_before(const struct standings *s, const struct standing *row, bool strictly)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strictly ? compare_values(&s->rows[mid], row, 1) : compare(&s->rows[mid], row, 1);
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool dominates(const struct standings *s, const struct standing *a, const struct standing *b)
{
    return a->kind == b->kind && a->kind != 2 &&
           gp_pareto_dominates(a->costs, b->costs, s->n_metrics, NULL);
}

static size_t count_dominators(const struct standings *s, const struct standing *row)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += dominates(s, &s->rows[i], row);
    return n;
}

as_status standings_add(struct standings *s, const struct standing *row, struct as_err *err)
{
    as_status st = as_reserve_one(&s->rows, s->n, &s->cap, sizeof *s->rows, err);
    if (st != AS_OK)
        return st;
    size_t at = s->n;
    struct standing added = *row;
    if (s->n_metrics == 1) {
        at = rows_before(s, row, false);
        memmove(s->rows + at + 1, s->rows + at, (s->n - at) * sizeof *s->rows);
    } else {
        added.dominators = count_dominators(s, row);
        for (size_t i = 0; i < s->n; i++)
            s->rows[i].dominators += dominates(s, row, &s->rows[i]);
    }
    s->rows[at] = added;
    s->n++;
    s->n_waiting += row->waits;
    return AS_OK;
}

static struct standing *find(const struct standings *s, const struct standing *row)
{
    if (s->n_metrics == 1)
        return &s->rows[rows_before(s, row, false)];
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].number == row->number)
            return &s->rows[i];
    return NULL;
}

void standings_leave(struct standings *s, const struct standing *row)
{
    struct standing *r = find(s, row);
    if (r && r->waits) {
        r->waits = false;
        s->n_waiting--;
    }
}

size_t standings_rank(const struct standings *s, const struct standing *row, bool is_added)
{
    if (s->n_metrics == 1)
        return rows_before(s, row, true) + 1;
    struct standing now = *row;
    now.dominators = count_dominators(s, row);
    size_t rank = 1;
    for (size_t i = 0; i < s->n; i++) {
        struct standing other = s->rows[i];
        if (!is_added)
            other.dominators += dominates(s, &now, &other);
        rank += compare_values(&other, &now, s->n_metrics) < 0;
    }
    return rank;
}

const struct standing *standings_best_waiting(const struct standings *s)
{
    const struct standing *best = NULL;
    for (size_t i = 0; s->n_waiting > 0 && i < s->n; i++) {
        const struct standing *r = &s->rows[i];
        if (!r->waits)
            continue;
        if (s->n_metrics == 1)
            return r;
        if (!best || compare(r, best, s->n_metrics) < 0)
            best = r;
    }
    return best;
}
