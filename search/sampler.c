/* Choosing a configuration. Every parameter draws, active or not, each from its own place in the
 * stream: adding a condition or a value moves no other parameter's draws. */
#include "search/sampler.h"

#include "base/json.h"
#include "base/rng.h"
#include "search/grid.h"
#include "search/sobol.h"

_Static_assert(SPACE_MAX_PARAMS <= SOBOL_MAX_DIMS, "every parameter has a Sobol dimension");

static const char *const method_words[] = {"grid", "random", "sobol"};

const char *search_method_format(search_method m)
{
    return method_words[m];
}

as_status search_method_parse(const char *name, const char *pointer, search_method *ret,
                              struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(method_words); i++) {
        if (as_streq(name, method_words[i])) {
            *ret = (search_method)i;
            return AS_OK;
        }
    }
    if (as_streq(name, "gp"))
        return as_fail_at(err, AS_E_UNSUPPORTED, pointer,
                          "%s: gp is not in this version yet; use grid, random or sobol", pointer);
    return as_fail_at(err, AS_E_INVAL, pointer,
                      "%s: found '%.40s', expected one of grid, random, sobol", pointer, name);
}

/* A level drawn directly is uniform over any int range, beyond what a double can tell apart. */
static union param_value draw_random(const struct space_param *p, uint64_t seed, uint64_t trial,
                                     size_t i)
{
    struct rng r;
    rng_init(&r, seed, trial << 8 | SEARCH_DRAW_RANDOM);
    r.lo = (uint64_t)i << 16; /* room for rejected draws before the next parameter's */
    uint64_t levels = param_levels(p);
    if (levels && (param_is_choice(p) || p->scale == SCALE_LINEAR))
        return param_level(p, rng_below(&r, levels));
    return param_decode(p, rng_uniform(&r));
}

static as_status suggest_drawn(const struct space *s, search_method method, uint64_t seed,
                               uint64_t trial, struct config **ret, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = config_create(s);
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    for (size_t i = 0; i < s->n; i++) {
        const struct space_param *p = &s->params[i];
        c->entries[i].value = method == SEARCH_SOBOL
                                  ? param_decode(p, sobol_point(seed, trial, (unsigned)i))
                                  : draw_random(p, seed, trial, i);
    }
    config_settle(s, c);
    *ret = as_steal(c);
    return AS_OK;
}

static as_status suggest_cell(const struct space *s, uint64_t trial, struct config **ret,
                              uint64_t *ret_cells, struct as_err *err)
{
    AS_AUTO(grid_freep) struct grid *g = NULL;
    as_status st = grid_create(s, "/parameters", &g, err);
    if (st < 0)
        return st;
    *ret_cells = grid_cells(g);
    return grid_cell(g, trial, ret, err);
}

static json_t *reason_create(search_method method, uint64_t trial, uint64_t cells)
{
    switch (method) {
    case SEARCH_GRID:
        return json_pack("{s:s, s:I, s:I}", "method", "grid", "cell", (json_int_t)trial, "cells",
                         (json_int_t)cells);
    case SEARCH_SOBOL:
        return json_pack("{s:s, s:I}", "method", "sobol", "point", (json_int_t)trial);
    case SEARCH_RANDOM:
        break;
    }
    return json_pack("{s:s}", "method", "random");
}

as_status sampler_suggest(const struct space *s, search_method method, uint64_t seed,
                          uint64_t trial_number, const struct history *history,
                          struct config **ret_config, json_t **ret_reason, struct as_err *err)
{
    (void)history; /* these methods do not learn from results */
    AS_AUTO(config_freep) struct config *c = NULL;
    uint64_t cells = 0;
    as_status st = method == SEARCH_GRID ? suggest_cell(s, trial_number, &c, &cells, err)
                                         : suggest_drawn(s, method, seed, trial_number, &c, err);
    if (st < 0)
        return st;
    if (ret_reason) {
        json_t *reason = reason_create(method, trial_number, cells);
        if (!reason)
            return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
        *ret_reason = reason;
    }
    *ret_config = as_steal(c);
    return AS_OK;
}
