/* Counting and numbering the cells of a grid without listing them. Parameters that `when`, a
 * constraint or a forbidden combination connects form a block. Blocks are independent, so the
 * number of cells is the product over blocks. Inside a block, a walk visits the parameters that
 * others depend on, class by class: a value that a condition names is a class of its own, and all
 * other values between the ends of ranges are one class. The other parameters only multiply the
 * count. A branch has at least one cell, so a walk is never longer than the limit on cells. Only a
 * block with constraints examines its cells one by one, once, and keeps the list of the allowed
 * cells. */
#include "search/sampling/grid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "search/sampling/grid_axis_priv.h"

struct block {
    size_t first, n;   /* its slice of grid.members */
    uint64_t all;      /* cells, allowed or not */
    uint64_t cells;    /* cells that are allowed */
    uint32_t *allowed; /* owned: their numbers among all, ascending; NULL: all are */
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
    for (size_t i = 0; g->axes && i < g->space->n; i++)
        axis_done(&g->axes[i]);
    for (size_t i = 0; i < g->n_blocks; i++)
        free(g->blocks[i].allowed);
    free(g->axes);
    free(g->members);
    free(g->blocks);
    free(g);
}

uint64_t grid_cells(const struct grid *g)
{
    return g->cells;
}

/* ---- blocks ---- */

static size_t root_of(const size_t *up, size_t i)
{
    while (up[i] != i)
        i = up[i];
    return i;
}

static void join_blocks(size_t *up, size_t i, size_t k)
{
    size_t a = root_of(up, i), b = root_of(up, k);
    up[a > b ? a : b] = a > b ? b : a; /* the root is the first of its block */
}

/* Parameters that one rule names belong together. */
static void join_rule(const struct space *s, size_t rule, size_t *up)
{
    size_t first = s->n;
    for (size_t i = 0; i < s->n; i++) {
        if (!space_rule_names(s, rule, i))
            continue;
        if (first < s->n)
            join_blocks(up, first, i);
        else
            first = i;
    }
}

static as_status blocks_create(struct grid *g, struct as_err *err)
{
    const struct space *s = g->space;
    size_t up[SPACE_MAX_PARAMS], filled = 0;
    for (size_t i = 0; i < s->n; i++)
        up[i] = i;
    for (size_t i = 0; i < s->n; i++)
        for (size_t c = 0; c < s->params[i].n_conds; c++)
            join_blocks(up, i, s->params[i].conds[c].parent);
    for (size_t k = 0; k < s->n_constraints + s->n_forbidden; k++)
        join_rule(s, k, up);
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

/* One branch: for each member, the number of values it takes and the class of its values. */
struct walk {
    const struct grid *g;
    const struct block *b;
    struct config *c;                  /* the members set so far; one value represents its class */
    uint64_t radix[SPACE_MAX_PARAMS];  /* by position in the block */
    size_t class_of[SPACE_MAX_PARAMS]; /* of the member's axis */
    bool (*at_leaf)(struct walk *w, double cells); /* true: stop */
    double limit;                                  /* stop the count past this */
    double sum;                                    /* cells of the branches before */
    uint64_t target;                               /* seek: the cell wanted */
    const struct config *wanted;                   /* match: the configuration wanted */
    uint32_t *allowed;                             /* filter: [block->all], filled */
    uint64_t n_allowed;
    uint64_t *broken; /* filter: how often each rule was broken first */
};

static bool walk_from(struct walk *w, size_t pos, double cells);

static bool walk_classes(struct walk *w, size_t pos, size_t i, double cells)
{
    const struct axis *a = &w->g->axes[i];
    struct config_entry *e = &w->c->entries[i];
    for (size_t k = 0; k < a->n_classes; k++) {
        e->active = true;
        e->value = axis_value(a, a->classes[k].first);
        w->class_of[pos] = k;
        w->radix[pos] = a->classes[k].size;
        if (walk_from(w, pos + 1, cells * (double)a->classes[k].size))
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
        uint64_t k = axis_find(a, want->value);
        if (k == a->n || axis_class_at(a, k) != w->class_of[pos])
            return false;
    }
    return true;
}

/* Does the member at `pos` have more than one value in this branch? */
static bool is_varied(const struct walk *w, size_t pos, const struct axis_class **ret)
{
    size_t i = w->g->members[w->b->first + pos];
    *ret = &w->g->axes[i].classes[w->class_of[pos]];
    return w->c->entries[i].active && !(*ret)->is_named;
}

/* The walk stopped at the branch of cell `digit`: give every member its value. The last member
 * changes fastest. */
static void branch_to_config(struct walk *w, uint64_t digit)
{
    const struct axis_class *class;
    for (size_t pos = w->b->n; pos-- > 0;) {
        size_t i = w->g->members[w->b->first + pos];
        const struct axis *a = &w->g->axes[i];
        if (!is_varied(w, pos, &class))
            continue;
        uint64_t k = axis_unnamed(a, class->low, digit % class->size);
        w->c->entries[i].value = axis_value(a, k);
        digit /= class->size;
    }
}

static uint64_t config_to_branch(const struct walk *w)
{
    const struct axis_class *class;
    uint64_t digit = 0;
    for (size_t pos = 0; pos < w->b->n; pos++) {
        size_t i = w->g->members[w->b->first + pos];
        const struct axis *a = &w->g->axes[i];
        if (!is_varied(w, pos, &class))
            continue;
        uint64_t k = axis_find(a, w->wanted->entries[i].value);
        digit = digit * class->size + axis_rank(a, class, k);
    }
    return digit;
}

/* Record the allowed cells of a branch. The parameters outside the block are inactive, so only the
 * block's own rules apply. */
static bool leaf_filter(struct walk *w, double cells)
{
    for (uint64_t k = 0; k < (uint64_t)cells; k++) {
        branch_to_config(w, k);
        int rule = space_violation(w->g->space, w->c);
        if (rule < 0)
            w->allowed[w->n_allowed++] = (uint32_t)((uint64_t)w->sum + k);
        else
            w->broken[rule]++;
    }
    return false;
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
        g->blocks[i].all = g->blocks[i].cells = w.sum <= w.limit ? (uint64_t)w.sum : 0;
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

static bool is_ruled(const struct grid *g, const struct block *b)
{
    const struct space *s = g->space;
    for (size_t k = 0; k < s->n_constraints + s->n_forbidden; k++)
        for (size_t pos = 0; pos < b->n; pos++)
            if (space_rule_names(s, k, g->members[b->first + pos]))
                return true;
    return false;
}

/* Reset the block's entries to the state after config_create. */
static void forget_block(struct walk *w)
{
    for (size_t pos = 0; pos < w->b->n; pos++)
        w->c->entries[w->g->members[w->b->first + pos]] = (struct config_entry){0};
}

static as_status filter_block(struct grid *g, struct block *b, struct config *scratch,
                              struct as_err *err)
{
    size_t rules = g->space->n_constraints + g->space->n_forbidden, worst = 0;
    AS_AUTO(as_freep) uint64_t *broken = as_calloc(rules, sizeof *broken);
    b->allowed = as_calloc((size_t)b->all, sizeof *b->allowed);
    if (!broken || !b->allowed)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    struct walk w = {.g = g, .b = b, .c = scratch, .at_leaf = leaf_filter, .allowed = b->allowed};
    w.broken = broken;
    (void)walk_from(&w, 0, 1);
    forget_block(&w);
    b->cells = w.n_allowed;
    if (b->cells > 0)
        return AS_OK;
    for (size_t k = 0; k < rules; k++)
        if (broken[k] > broken[worst])
            worst = k;
    return space_refuse_rule(g->space, worst, "no cell of the grid is allowed", err);
}

/* Drop the cells that the space does not allow. */
static as_status filter_cells(struct grid *g, struct as_err *err)
{
    if (!space_is_constrained(g->space))
        return AS_OK;
    AS_AUTO(config_freep) struct config *c = config_create(g->space);
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    g->cells = 1;
    for (size_t i = 0; i < g->n_blocks; i++) {
        if (is_ruled(g, &g->blocks[i])) {
            as_status st = filter_block(g, &g->blocks[i], c, err);
            if (st < 0)
                return st;
        }
        g->cells *= g->blocks[i].cells;
    }
    return AS_OK;
}

/* Split every axis into the classes that conditions on it distinguish. */
static as_status split_axes(struct grid *g, struct as_err *err)
{
    for (size_t i = 0; i < g->space->n; i++) {
        const struct space_param *p = &g->space->params[i];
        for (size_t c = 0; c < p->n_conds; c++) {
            as_status st = axis_note(&g->axes[p->conds[c].parent], &p->conds[c], err);
            if (st < 0)
                return st;
        }
    }
    for (size_t i = 0; i < g->space->n; i++) {
        as_status st = axis_split(&g->axes[i], err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status create_grid(const struct space *space, const char *pointer, bool full,
                             struct grid **ret, struct as_err *err)
{
    AS_AUTO(grid_freep) struct grid *g = as_calloc(1, sizeof *g);
    if (!g)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    g->space = space;
    g->axes = as_calloc(space->n, sizeof *g->axes);
    if (!g->axes)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid");
    for (size_t i = 0; i < space->n; i++) {
        as_status st = axis_init(&g->axes[i], &space->params[i], pointer, full, err);
        if (st < 0)
            return st;
    }
    as_status st = split_axes(g, err);
    if (st < 0)
        return st;
    st = blocks_create(g, err);
    if (st < 0)
        return st;
    st = count_cells(g, pointer, err);
    if (st < 0)
        return st;
    st = filter_cells(g, err);
    if (st < 0)
        return st;
    *ret = as_steal(g);
    return AS_OK;
}

as_status grid_create(const struct space *space, const char *pointer, struct grid **ret,
                      struct as_err *err)
{
    return create_grid(space, pointer, false, ret, err);
}

as_status grid_create_full(const struct space *space, const char *pointer, struct grid **ret,
                           struct as_err *err)
{
    return create_grid(space, pointer, true, ret, err);
}

as_status grid_cell(const struct grid *g, uint64_t index, struct config **ret, struct as_err *err)
{
    if (index >= g->cells)
        return as_fail(err, AS_E_EXHAUSTED, "the grid has %" PRIu64 " cells, all were suggested",
                       g->cells);
    AS_AUTO(config_freep) struct config *c = config_create(g->space);
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a grid cell");
    for (size_t i = g->n_blocks; i-- > 0;) {
        const struct block *b = &g->blocks[i];
        uint64_t k = index % b->cells;
        struct walk w = {.g = g, .b = b, .c = c, .at_leaf = leaf_seek};
        w.target = b->allowed ? b->allowed[k] : k;
        (void)walk_from(&w, 0, 1);
        branch_to_config(&w, w.target - (uint64_t)w.sum);
        index /= b->cells;
    }
    *ret = as_steal(c);
    return AS_OK;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The number of cell k among the allowed ones. */
static bool rank_of(const struct block *b, uint64_t k, uint64_t *ret)
{
    uint32_t key = (uint32_t)k;
    const uint32_t *found = &key;
    if (b->allowed) {
        found = bsearch(&key, b->allowed, (size_t)b->cells, sizeof key, compare_u32);
        k = found ? (uint64_t)(found - b->allowed) : 0;
    }
    *ret = k;
    return found != NULL;
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
        uint64_t k = (uint64_t)w.sum + config_to_branch(&w);
        if (!rank_of(b, k, &k))
            return as_fail(err, AS_E_NOT_FOUND, "these values are not allowed on the grid");
        index = index * b->cells + k;
    }
    *ret = index;
    return AS_OK;
}
