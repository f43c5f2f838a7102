/* One parameter on a grid: its values and the classes that conditions distinguish.
 *
 * Values are numbered. Each condition on the parameter either names values or cuts the axis at the
 * ends of a range. Two values in the same class then satisfy the same conditions, so a walk over
 * branches needs one value for each class and multiplies by the class's size. Named and cut
 * positions are sorted arrays, so a value's class is found by binary search, and an int axis with
 * 2^62 levels costs as much as one with ten. */
#include "search/sampling/grid_axis_priv.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static union param_value point_value(const struct space_param *p, int64_t k)
{
    double last = (double)(p->points - 1);
    if (p->kind != PARAM_FLOAT) {
        int64_t min = p->integer.min, max = p->integer.max;
        double v = round(param_spread(p, (double)k / last));
        if (k == 0 || v <= (double)min)
            return (union param_value){.integer = min};
        if (k == p->points - 1 || v >= (double)max)
            return (union param_value){.integer = max};
        return (union param_value){.integer = (int64_t)v};
    }
    if (k == 0)
        return (union param_value){.real = p->real.min};
    if (k == p->points - 1)
        return (union param_value){.real = p->real.max};
    double v = param_spread(p, (double)k / last);
    double gap = param_spread(p, (double)(k + 1) / last) - v;
    return (union param_value){.real = param_round(v, 1e-6 * gap)};
}

/* Points that become equal by rounding, such as those of a short int range, count once. */
static as_status points_create(const struct space_param *p, struct axis *a, struct as_err *err)
{
    a->points = as_calloc((size_t)p->points, sizeof *a->points);
    if (!a->points)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    for (int64_t k = 0; k < p->points; k++) {
        union param_value v = point_value(p, k);
        if (a->n == 0 || param_compare(p, v, a->points[a->n - 1]) > 0)
            a->points[a->n++] = v;
    }
    return AS_OK;
}

union param_value axis_value(const struct axis *a, uint64_t k)
{
    return a->points ? a->points[k] : param_level(a->param, k);
}

/* How many values of the axis are below v (with `including`: not above it). */
static uint64_t count_below(const struct axis *a, union param_value v, bool including)
{
    uint64_t lo = 0, hi = a->n;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        int order = param_compare(a->param, axis_value(a, mid), v);
        if (order < 0 || (including && order == 0))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

uint64_t axis_find(const struct axis *a, union param_value v)
{
    const struct space_param *p = a->param;
    if (!a->points)
        return param_contains(p, v) ? param_level_of(p, v) : a->n;
    uint64_t k = count_below(a, v, false);
    return k < a->n && param_compare(p, a->points[k], v) == 0 ? k : a->n;
}

void axis_done(struct axis *a)
{
    free(a->points);
    free(a->named);
    free(a->cuts);
    free(a->classes);
    *a = (struct axis){0};
}

/* A float with equal ends has one value and no levels. */
static as_status only_value_create(const struct space_param *p, struct axis *a, struct as_err *err)
{
    a->points = as_calloc(1, sizeof *a->points);
    if (!a->points)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    a->points[a->n++].real = p->real.min;
    return AS_OK;
}

as_status axis_init(struct axis *a, const struct space_param *p, const char *pointer, bool full,
                    struct as_err *err)
{
    *a = (struct axis){.param = p};
    if (p->points && !full)
        return points_create(p, a, err);
    a->n = param_levels(p);
    if (a->n)
        return AS_OK;
    if (p->kind == PARAM_FLOAT && p->real.min == p->real.max)
        return only_value_create(p, a, err);
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, p->name, at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: grid search needs 'step' or 'points' on float parameter %s", at,
                      p->name);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static as_status add_index(uint64_t **list, size_t *n, size_t *cap, uint64_t k, struct as_err *err)
{
    as_status st = as_reserve_one(list, *n, cap, sizeof **list, err);
    if (st < 0)
        return st;
    (*list)[(*n)++] = k;
    return AS_OK;
}

as_status axis_note(struct axis *a, const struct cond *c, struct as_err *err)
{
    if (c->is_range) {
        as_status st =
            add_index(&a->cuts, &a->n_cuts, &a->cuts_cap, count_below(a, c->low, false), err);
        return st < 0 ? st
                      : add_index(&a->cuts, &a->n_cuts, &a->cuts_cap, count_below(a, c->high, true),
                                  err);
    }
    for (size_t v = 0; v < c->n_allowed; v++) {
        uint64_t k = axis_find(a, c->allowed[v]);
        if (k >= a->n)
            continue; /* never taken on this grid */
        as_status st = add_index(&a->named, &a->n_named, &a->named_cap, k, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static size_t sort_unique(uint64_t *list, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(list, n, sizeof *list, compare_u64);
    for (size_t k = 0; k < n; k++)
        if (kept == 0 || list[k] != list[kept - 1])
            list[kept++] = list[k];
    return kept;
}

uint64_t axis_unnamed(const struct axis *a, uint64_t low, uint64_t j)
{
    uint64_t k = low + j;
    for (size_t i = 0; i < a->n_named && a->named[i] <= k; i++)
        k += a->named[i] >= low;
    return k;
}

/* Add a class of the unnamed values from low up to high, if there are any. */
static void add_rest(struct axis *a, uint64_t low, uint64_t high)
{
    uint64_t named = 0;
    for (size_t i = 0; i < a->n_named; i++)
        named += a->named[i] >= low && a->named[i] < high;
    if (high - low > named)
        a->classes[a->n_classes++] = (struct axis_class){
            .low = low, .high = high, .size = high - low - named, .first = axis_unnamed(a, low, 0)};
}

static int compare_classes(const void *a, const void *b)
{
    uint64_t x = ((const struct axis_class *)a)->first, y = ((const struct axis_class *)b)->first;
    return (x > y) - (x < y);
}

as_status axis_split(struct axis *a, struct as_err *err)
{
    a->n_named = sort_unique(a->named, a->n_named);
    a->n_cuts = sort_unique(a->cuts, a->n_cuts);
    a->classes = as_calloc(a->n_named + a->n_cuts + 1, sizeof *a->classes);
    if (!a->classes)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    for (size_t i = 0; i < a->n_named; i++)
        a->classes[a->n_classes++] = (struct axis_class){.low = a->named[i],
                                                         .high = a->named[i] + 1,
                                                         .is_named = true,
                                                         .size = 1,
                                                         .first = a->named[i]};
    uint64_t low = 0;
    for (size_t i = 0; i < a->n_cuts; i++) {
        add_rest(a, low, a->cuts[i]);
        low = a->cuts[i];
    }
    add_rest(a, low, a->n);
    qsort(a->classes, a->n_classes, sizeof *a->classes, compare_classes);
    return AS_OK;
}

size_t axis_class_at(const struct axis *a, uint64_t k)
{
    bool is_named = a->n_named && bsearch(&k, a->named, a->n_named, sizeof k, compare_u64);
    size_t c = 0;
    while (a->classes[c].is_named != is_named || k < a->classes[c].low || k >= a->classes[c].high)
        c++;
    return c;
}

uint64_t axis_rank(const struct axis *a, const struct axis_class *class, uint64_t k)
{
    uint64_t named = 0;
    for (size_t i = 0; i < a->n_named; i++)
        named += a->named[i] >= class->low && a->named[i] < k;
    return k - class->low - named;
}
