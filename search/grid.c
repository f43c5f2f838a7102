/* Blocks of parameters that hang together through `when` are independent of each other: the number
 * of cells is the product over blocks. Inside a block the parameters that others depend on are
 * walked, value by value where a condition names the value and all other values as one class;
 * everything else only multiplies. A branch has at least one cell, so a walk is never longer than
 * the limit on cells. */
#include "search/grid.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* The values of one parameter on the grid. */
struct axis {
    uint64_t n;
    union param_value *points; /* owned, ascending; NULL: the parameter's levels */
    uint64_t *named;           /* owned, ascending: indices that some condition names */
    size_t n_named;
};

struct block {
    size_t first, n; /* its slice of grid.members */
    uint64_t cells;
};

struct grid {
    const struct space *space; /* borrowed */
    struct axis *axes;         /* [space->n] */
    size_t *members;           /* [space->n]: block after block, parents before children */
    struct block *blocks;      /* in the order of their first parameters */
    size_t n_blocks;
    uint64_t cells;
};

void grid_free(struct grid *g)
{
    if (!g)
        return;
    for (size_t i = 0; g->axes && i < g->space->n; i++) {
        free(g->axes[i].points);
        free(g->axes[i].named);
    }
    free(g->axes);
    free(g->members);
    free(g->blocks);
    free(g);
}

uint64_t grid_cells(const struct grid *g)
{
    return g->cells;
}

/* ---- axes ---- */

static bool is_float(const struct space_param *p)
{
    return p->kind == PARAM_FLOAT;
}

static union param_value point(const struct space_param *p, int64_t k)
{
    double last = (double)(p->points - 1);
    if (!is_float(p)) {
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

static bool above(const struct space_param *p, union param_value a, union param_value b)
{
    return is_float(p) ? a.real > b.real : a.integer > b.integer;
}

/* Points that rounding brings together, such as those of a short int range, count once. */
static as_status points_create(const struct space_param *p, struct axis *a, struct as_err *err)
{
    a->points = as_calloc((size_t)p->points, sizeof *a->points);
    if (!a->points)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    for (int64_t k = 0; k < p->points; k++) {
        union param_value v = point(p, k);
        if (a->n == 0 || above(p, v, a->points[a->n - 1]))
            a->points[a->n++] = v;
    }
    return AS_OK;
}

static union param_value axis_value(const struct grid *g, size_t i, uint64_t k)
{
    const struct axis *a = &g->axes[i];
    return a->points ? a->points[k] : param_level(&g->space->params[i], k);
}

/* The index of a value on the axis, or axis.n when it is not there. */
static uint64_t axis_find(const struct grid *g, size_t i, union param_value v)
{
    const struct space_param *p = &g->space->params[i];
    const struct axis *a = &g->axes[i];
    if (!a->points)
        return param_contains(p, v) ? param_level_of(p, v) : a->n;
    uint64_t lo = 0, hi = a->n;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (above(p, v, a->points[mid]))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < a->n && !above(p, a->points[lo], v) ? lo : a->n;
}

static as_status axis_create(const struct space_param *p, const char *pointer, struct axis *a,
                             struct as_err *err)
{
    if (p->points)
        return points_create(p, a, err);
    a->n = param_levels(p);
    if (a->n)
        return AS_OK;
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

static as_status name_value(struct grid *g, size_t parent, int64_t allowed, size_t *cap,
                            struct as_err *err)
{
    struct axis *a = &g->axes[parent];
    union param_value v = {.integer = allowed};
    if (param_is_choice(&g->space->params[parent]))
        v = (union param_value){.choice = (size_t)allowed};
    uint64_t k = axis_find(g, parent, v);
    if (k == a->n)
        return AS_OK; /* between the points: never taken on this grid */
    as_status st = as_reserve_one(&a->named, a->n_named, cap, sizeof *a->named, err);
    if (st == AS_OK)
        a->named[a->n_named++] = k;
    return st;
}

/* Collect, for each parameter, the indices that conditions of others name. */
static as_status name_values(struct grid *g, struct as_err *err)
{
    size_t caps[SPACE_MAX_PARAMS] = {0};
    as_status st = AS_OK;
    for (size_t i = 0; i < g->space->n; i++) {
        const struct space_param *p = &g->space->params[i];
        for (size_t c = 0; c < p->n_conds; c++)
            for (size_t v = 0; v < p->conds[c].n_allowed && st == AS_OK; v++)
                st = name_value(g, p->conds[c].parent, p->conds[c].allowed[v],
                                &caps[p->conds[c].parent], err);
    }
    for (size_t i = 0; i < g->space->n && st == AS_OK; i++) {
        struct axis *a = &g->axes[i];
        size_t kept = 0;
        if (a->n_named == 0)
            continue;
        qsort(a->named, a->n_named, sizeof *a->named, compare_u64);
        for (size_t k = 0; k < a->n_named; k++)
            if (k == 0 || a->named[k] != a->named[kept - 1])
                a->named[kept++] = a->named[k];
        a->n_named = kept;
    }
    return st;
}

/* ---- blocks ---- */

static size_t root_of(const size_t *up, size_t i)
{
    while (up[i] != i)
        i = up[i];
    return i;
}

static as_status blocks_create(struct grid *g, struct as_err *err)
{
    const struct space *s = g->space;
    size_t up[SPACE_MAX_PARAMS], filled = 0;
    for (size_t i = 0; i < s->n; i++)
        up[i] = i;
    for (size_t i = 0; i < s->n; i++) {
        for (size_t c = 0; c < s->params[i].n_conds; c++) {
            size_t a = root_of(up, i), b = root_of(up, s->params[i].conds[c].parent);
            up[a > b ? a : b] = a > b ? b : a; /* the root is the first of its block */
        }
    }
    g->members = as_calloc(s->n, sizeof *g->members);
    g->blocks = as_calloc(s->n, sizeof *g->blocks);
    if (!g->members || !g->blocks)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    for (size_t root = 0; root < s->n; root++) {
        if (up[root] != root)
            continue;
        struct block *b = &g->blocks[g->n_blocks++];
        b->first = filled;
        for (size_t k = 0; k < s->n; k++)
            if (root_of(up, s->order[k]) == root)
                g->members[filled++] = s->order[k];
        b->n = filled - b->first;
    }
    return AS_OK;
}

/* ---- walking the branches of a block ---- */

/* One branch: for each member how many values it ranges over, and which class of its values. */
struct walk {
    const struct grid *g;
    const struct block *b;
    struct config *c;                  /* members set so far; a class is stood for by one value */
    uint64_t radix[SPACE_MAX_PARAMS];  /* by position in the block */
    size_t class_of[SPACE_MAX_PARAMS]; /* < n_named: that value; n_named: all others */
    bool (*at_leaf)(struct walk *w, double cells); /* true: stop */
    double limit;                                  /* stop the count past this */
    double sum;                                    /* cells of the branches before */
    uint64_t target;                               /* seek: the cell wanted */
    const struct config *wanted;                   /* match: the configuration wanted */
};

/* The j-th index of the axis that no condition names. */
static uint64_t unnamed(const struct axis *a, uint64_t j)
{
    for (size_t k = 0; k < a->n_named && a->named[k] <= j; k++)
        j++;
    return j;
}

static bool walk_from(struct walk *w, size_t pos, double cells);

static bool walk_classes(struct walk *w, size_t pos, size_t i, double cells)
{
    const struct axis *a = &w->g->axes[i];
    struct config_entry *e = &w->c->entries[i];
    e->active = true;
    size_t rest_at = 0; /* all others stand where the first of them does */
    while (rest_at < a->n_named && a->named[rest_at] == rest_at)
        rest_at++;
    for (size_t place = 0; place <= a->n_named; place++) {
        size_t k = place < rest_at ? place : place == rest_at ? a->n_named : place - 1;
        uint64_t size = k < a->n_named ? 1 : a->n - a->n_named;
        if (size == 0)
            continue;
        e->value = axis_value(w->g, i, k < a->n_named ? a->named[k] : unnamed(a, 0));
        w->class_of[pos] = k;
        w->radix[pos] = size;
        if (walk_from(w, pos + 1, cells * (double)size))
            return true;
    }
    return false;
}

static bool walk_from(struct walk *w, size_t pos, double cells)
{
    if (pos == w->b->n) {
        if (w->at_leaf(w, cells))
            return true;
        w->sum += cells;
        return w->limit > 0 && w->sum > w->limit;
    }
    size_t i = w->g->members[w->b->first + pos];
    if (config_wants(w->g->space, w->c, i))
        return walk_classes(w, pos, i, cells);
    w->c->entries[i] = (struct config_entry){0};
    w->radix[pos] = 1;
    return walk_from(w, pos + 1, cells);
}

static bool leaf_count(struct walk *w, double cells)
{
    (void)w;
    (void)cells;
    return false;
}

static bool leaf_seek(struct walk *w, double cells)
{
    return (double)w->target < w->sum + cells;
}

static bool leaf_match(struct walk *w, double cells)
{
    (void)cells;
    for (size_t pos = 0; pos < w->b->n; pos++) {
        size_t i = w->g->members[w->b->first + pos];
        const struct axis *a = &w->g->axes[i];
        const struct config_entry *want = &w->wanted->entries[i];
        if (want->active != w->c->entries[i].active)
            return false;
        if (!want->active)
            continue;
        uint64_t k = axis_find(w->g, i, want->value);
        const uint64_t *named =
            a->n_named ? bsearch(&k, a->named, a->n_named, sizeof k, compare_u64) : NULL;
        if (k == a->n || (named ? (size_t)(named - a->named) : a->n_named) != w->class_of[pos])
            return false;
    }
    return true;
}

/* The walk stopped at the branch of cell `digit`: give every member its value. The last member
 * changes fastest. */
static void branch_to_config(struct walk *w, uint64_t digit)
{
    for (size_t pos = w->b->n; pos-- > 0;) {
        size_t i = w->g->members[w->b->first + pos];
        const struct axis *a = &w->g->axes[i];
        if (!w->c->entries[i].active || w->class_of[pos] < a->n_named)
            continue;
        w->c->entries[i].value = axis_value(w->g, i, unnamed(a, digit % w->radix[pos]));
        digit /= w->radix[pos];
    }
}

static uint64_t config_to_branch(const struct walk *w)
{
    uint64_t digit = 0;
    for (size_t pos = 0; pos < w->b->n; pos++) {
        size_t i = w->g->members[w->b->first + pos];
        const struct axis *a = &w->g->axes[i];
        if (!w->wanted->entries[i].active || w->class_of[pos] < a->n_named)
            continue;
        uint64_t k = axis_find(w->g, i, w->wanted->entries[i].value), before = 0;
        while (before < a->n_named && a->named[before] < k)
            before++;
        digit = digit * w->radix[pos] + (k - before);
    }
    return digit;
}

/* ---- the whole ---- */

static as_status count_cells(struct grid *g, const char *pointer, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = config_create(g->space);
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    double total = 1;
    bool cut = false;
    for (size_t i = 0; i < g->n_blocks; i++) {
        struct walk w = {.g = g, .b = &g->blocks[i], .c = c, .at_leaf = leaf_count};
        w.limit = (double)GRID_MAX_CELLS;
        cut |= walk_from(&w, 0, 1);
        g->blocks[i].cells = w.sum <= w.limit ? (uint64_t)w.sum : 0;
        total *= w.sum;
    }
    if (total <= (double)GRID_MAX_CELLS) {
        g->cells = (uint64_t)total;
        return AS_OK;
    }
    char size[32];
    (void)snprintf(size, sizeof size, total < 1e15 ? "%.0f" : "%.3g", total);
    return as_fail_at(err, AS_E_TOO_LARGE, pointer,
                      "%s: the grid has %s%s cells, at most %" PRIu64
                      " are allowed; use fewer values, or method random or sobol",
                      pointer, cut ? "at least " : "", size, GRID_MAX_CELLS);
}

as_status grid_create(const struct space *space, const char *pointer, struct grid **ret,
                      struct as_err *err)
{
    AS_AUTO(grid_freep) struct grid *g = as_calloc(1, sizeof *g);
    if (!g)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    g->space = space;
    g->axes = as_calloc(space->n, sizeof *g->axes);
    if (!g->axes)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    as_status st = AS_OK;
    for (size_t i = 0; i < space->n && st == AS_OK; i++)
        st = axis_create(&space->params[i], pointer, &g->axes[i], err);
    if (st == AS_OK)
        st = name_values(g, err);
    if (st == AS_OK)
        st = blocks_create(g, err);
    if (st == AS_OK)
        st = count_cells(g, pointer, err);
    if (st < 0)
        return st;
    *ret = as_steal(g);
    return AS_OK;
}

as_status grid_cell(const struct grid *g, uint64_t index, struct config **ret, struct as_err *err)
{
    if (index >= g->cells)
        return as_fail(err, AS_E_EXHAUSTED, "the grid has %" PRIu64 " cells, all are handed out",
                       g->cells);
    AS_AUTO(config_freep) struct config *c = config_create(g->space);
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid cell");
    for (size_t i = g->n_blocks; i-- > 0;) {
        const struct block *b = &g->blocks[i];
        struct walk w = {.g = g, .b = b, .c = c, .at_leaf = leaf_seek, .target = index % b->cells};
        (void)walk_from(&w, 0, 1);
        branch_to_config(&w, w.target - (uint64_t)w.sum);
        index /= b->cells;
    }
    *ret = as_steal(c);
    return AS_OK;
}

as_status grid_index(const struct grid *g, const struct config *c, uint64_t *ret,
                     struct as_err *err)
{
    AS_AUTO(config_freep) struct config *scratch = config_create(g->space);
    if (!scratch)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid cell");
    uint64_t index = 0;
    for (size_t i = 0; i < g->n_blocks; i++) {
        const struct block *b = &g->blocks[i];
        struct walk w = {.g = g, .b = b, .c = scratch, .at_leaf = leaf_match, .wanted = c};
        if (!walk_from(&w, 0, 1))
            return as_fail(err, AS_E_NOT_FOUND, "these values are no cell of the grid");
        index = index * b->cells + (uint64_t)w.sum + config_to_branch(&w);
    }
    *ret = index;
    return AS_OK;
}
