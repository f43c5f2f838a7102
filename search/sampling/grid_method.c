/* The method `grid`.
 *
 * A suggestion needs the numbering of the cells alone, which follows from the space. It is prepared
 * once for a sweep; without that it is made for each suggestion, with the same result. Results are
 * not read, so a grid has no pending trials and refuses priors, which could change nothing. */
#include "search/sampling/grid_method.h"

#include <inttypes.h>

#include "base/json.h"
#include "search/prior/prior_dist.h"
#include "search/problem/explain.h"
#include "search/sampling/grid.h"

static const struct grid *grid_of(const struct search_prepared *p)
{
    return (const struct grid *)p;
}

/* A grid tries every cell whatever is likely. */
static as_status refuse_priors(const struct space *space, const char *pointer, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    for (size_t i = 0; i < space->n; i++) {
        if (!space->params[i].prior)
            continue;
        json_pointer_child(pointer, space->params[i].name, at);
        json_pointer_child(at, "prior", at);
        return as_fail_at(
            err, AS_E_INVAL, at,
            "%s: the method grid tries every cell; leave prior out, or choose another "
            "method",
            at);
    }
    return AS_OK;
}

static as_status prepare_grid(const struct space *space, const char *pointer,
                              struct search_prepared **ret, uint64_t *ret_total, struct as_err *err)
{
    struct grid *g = NULL;
    as_status st = refuse_priors(space, pointer, err);
    if (st == AS_OK)
        st = grid_create(space, pointer, &g, err);
    if (st != AS_OK)
        return st;
    *ret = (struct search_prepared *)g;
    *ret_total = grid_cells(g);
    return AS_OK;
}

static void prepared_free(struct search_prepared *p)
{
    grid_free((struct grid *)p);
}

/* Return the prepared grid, or create one, which *own then owns. */
static as_status find_grid(const struct search_spec *spec, struct grid **own,
                           const struct grid **ret, struct as_err *err)
{
    *ret = grid_of(spec->prepared);
    if (*ret)
        return AS_OK;
    as_status st = grid_create(spec->space, "/parameters", own, err);
    *ret = *own;
    return st;
}

static as_status sample_grid(const struct search_spec *spec, struct config **ret,
                             struct as_err *err)
{
    AS_AUTO(grid_freep) struct grid *own = NULL;
    const struct grid *g;
    as_status st = find_grid(spec, &own, &g, err);
    return st < 0 ? st : grid_cell(g, 0, ret, err);
}

static as_status suggest_cell(const struct search_spec *spec, const struct history *history,
                              const json_t *state, uint64_t number, uint64_t index,
                              struct search_method_cache *cache, struct suggestion *ret,
                              struct as_err *err)
{
    (void)history, (void)state, (void)number, (void)cache;
    AS_AUTO(grid_freep) struct grid *own = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    const struct grid *g;
    as_status st = find_grid(spec, &own, &g, err);
    if (st != AS_OK)
        return st;
    st = grid_cell(g, index, &c, err);
    if (st != AS_OK)
        return st;
    json_t *reason = json_pack("{s:s, s:I, s:I}", "method", search_grid.name, "cell",
                               (json_int_t)index, "cells", (json_int_t)grid_cells(g));
    if (!reason)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
    *ret = (struct suggestion){.config = as_steal(c), .reason = reason};
    return AS_OK;
}

static void grid_explain(const struct search_method *m, const json_t *reason, const json_t *metrics,
                         struct str *b)
{
    (void)m, (void)metrics;
    str_printf(b, "cell %" PRId64 " of the grid's %" PRId64, explain_count(reason, "cell"),
               explain_count(reason, "cells"));
}

const struct search_method search_grid = {
    .name = "grid",
    .is_enumeration = true,
    .prepare = prepare_grid,
    .prepared_free = prepared_free,
    .sample = sample_grid,
    .suggest = suggest_cell,
    .explain = grid_explain,
};
