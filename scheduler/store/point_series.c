#include "scheduler/store/point_series_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* A point with all that names its place among others. */
struct placed {
    const struct trial_points *set;
    const struct measurement *point;
};

static int series_order(const struct placed *a, const struct placed *b)
{
    int by = as_compare_i64(a->set->sweep_key, b->set->sweep_key);
    if (by == 0)
        by = as_compare_i64(a->set->number, b->set->number);
    if (by == 0)
        by = as_compare_i64(a->set->attempt, b->set->attempt);
    return by != 0 ? by : strcmp(a->point->metric, b->point->metric);
}

/* Points of one step stand in the order of their sets, and in a set in that of its list. */
static int placed_order(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int by = series_order(a, b);
    if (by == 0)
        by = as_compare_i64(a->point->step, b->point->step);
    if (by == 0)
        by = (a->set > b->set) - (a->set < b->set);
    return by != 0 ? by : (a->point > b->point) - (a->point < b->point);
}

as_status point_series_of(struct arena *a, const struct trial_points *sets, size_t n,
                          struct point_series_list *ret, struct as_err *err)
{
    size_t n_points = 0, k = 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        n_points += sets[i].n;
    struct placed *all = arena_alloc(a, n_points + 1, sizeof *all);
    struct series_point *points = arena_alloc(a, n_points + 1, sizeof *points);
    struct point_series *rows = arena_alloc(a, n_points + 1, sizeof *rows);
    *ret = (struct point_series_list){.rows = rows};
    if (!all || !points || !rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sets[i].n; j++)
            all[k++] = (struct placed){&sets[i], &sets[i].points[j]};
    if (n_points > 1)
        qsort(all, n_points, sizeof *all, placed_order);
    for (size_t i = 0; i < n_points; i++) {
        const struct trial_points *set = all[i].set;
        const struct measurement *p = all[i].point;
        bool is_first = i == 0 || series_order(&all[i - 1], &all[i]) != 0;
        if (!is_first && all[i - 1].point->step == p->step)
            continue;
        if (is_first)
            rows[ret->n++] = (struct point_series){.sweep_key = set->sweep_key,
                                                   .number = set->number,
                                                   .attempt = set->attempt,
                                                   .metric = p->metric,
                                                   .points = points + kept};
        points[kept++] =
            (struct series_point){.step = p->step, .value = p->value, .set = (size_t)(set - sets)};
        rows[ret->n - 1].n++;
    }
    return AS_OK;
}

as_status point_series_merge(struct arena *a, struct point_series *s,
                             const struct series_point *stored, size_t n_stored, size_t *ret_added,
                             struct as_err *err)
{
    struct series_point *merged = arena_alloc(a, s->n + n_stored + 1, sizeof *merged);
    size_t n = 0, i = 0, k = 0;
    *ret_added = 0;
    if (!merged)
        return as_fail_nomem(err);
    while (i < s->n || k < n_stored) {
        if (k < n_stored && (i == s->n || stored[k].step <= s->points[i].step)) {
            if (i < s->n && stored[k].step == s->points[i].step)
                i++;
            merged[n] = stored[k++];
            merged[n++].is_stored = true;
        } else {
            merged[n++] = s->points[i++];
            (*ret_added)++;
        }
    }
    s->points = merged;
    s->n = n;
    return AS_OK;
}
