/* Choosing a configuration. Every parameter draws, active or not, each from its own place in the
 * stream: adding a condition or a value moves no other parameter's draws. */
#include "search/sampling/sampler.h"

#include "base/json.h"
#include "base/rng.h"
#include "search/sampling/grid.h"
#include "search/sampling/sobol.h"

_Static_assert(SPACE_MAX_PARAMS <= SOBOL_MAX_DIMS, "every parameter has a Sobol dimension");

static const char *const method_words[] = {"grid", "random", "sobol", "gp"};

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
    return as_fail_at(err, AS_E_INVAL, pointer,
                      "%s: found '%.40s', expected one of grid, random, sobol, gp", pointer, name);
}

/* A level drawn directly is uniform over any int range, beyond what a double can tell apart. */
static union param_value draw_random(const struct space_param *p, uint64_t seed, uint64_t trial,
                                     size_t i, uint64_t redraw)
{
    struct rng r;
    rng_init(&r, seed, trial << 8 | SEARCH_DRAW_RANDOM);
    /* room for rejected draws before the next parameter's, for all parameters before the next try
     */
    r.lo = redraw << 24 | (uint64_t)i << 16;
    uint64_t levels = param_levels(p);
    if (levels && (param_is_choice(p) || p->scale == SCALE_LINEAR))
        return param_level(p, rng_below(&r, levels));
    return param_decode(p, rng_uniform(&r));
}

static void draw(const struct space *s, search_method method, uint64_t seed, uint64_t trial,
                 uint64_t redraw, struct config *c)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct space_param *p = &s->params[i];
        c->entries[i].value =
            method == SEARCH_RANDOM
                ? draw_random(p, seed, trial, i, redraw)
                : param_decode(p, sobol_point(seed, redraw << 32 | trial, (unsigned)i));
    }
    config_settle(s, c);
}

/* Draw until it is allowed, `most` times at most. *ret_redraws is most when nothing was; then
 * *ret_rule is the rule that was broken most often. */
static as_status draw_allowed(const struct space *s, search_method method, uint64_t seed,
                              uint64_t trial, uint64_t most, struct config *c,
                              uint64_t *ret_redraws, size_t *ret_rule, struct as_err *err)
{
    size_t rules = s->n_constraints + s->n_forbidden, worst = 0;
    AS_AUTO(as_freep) uint64_t *broken = as_calloc(rules, sizeof *broken);
    if (!broken)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    uint64_t redraws = 0;
    for (; redraws < most; redraws++) {
        draw(s, method, seed, trial, redraws, c);
        int rule = space_violation(s, c);
        if (rule < 0)
            break;
        if (++broken[rule] > broken[worst])
            worst = (size_t)rule;
    }
    *ret_redraws = redraws;
    *ret_rule = worst;
    return AS_OK;
}

/* The list of a finite space's allowed configurations; *ret stays NULL when it is not finite, or
 * too large, or there are none. */
static as_status list_allowed(const struct space *s, struct grid **ret, struct as_err *err)
{
    struct as_err why;
    as_status st = grid_create_full(s, "/parameters", ret, &why);
    if (st == AS_E_NOMEM)
        return as_fail(err, st, "%s", why.msg);
    return AS_OK;
}

static as_status draw_listed(const struct grid *g, uint64_t seed, uint64_t trial,
                             struct config **ret, struct as_err *err)
{
    struct rng r;
    rng_init(&r, seed, trial << 8 | SEARCH_DRAW_LISTED);
    return grid_cell(g, rng_below(&r, grid_cells(g)), ret, err);
}

static as_status suggest_drawn(const struct space *s, search_method method, uint64_t seed,
                               uint64_t trial, struct config **ret, uint64_t *ret_redraws,
                               struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = config_create(s);
    AS_AUTO(grid_freep) struct grid *list = NULL;
    size_t rule;
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    as_status st =
        draw_allowed(s, method, seed, trial, SAMPLER_MAX_DRAWS, c, ret_redraws, &rule, err);
    if (st == AS_OK && *ret_redraws < SAMPLER_MAX_DRAWS) {
        *ret = as_steal(c);
        return AS_OK;
    }
    if (st == AS_OK)
        st = list_allowed(s, &list, err);
    if (st == AS_OK && !list)
        st = space_refuse_rule(s, rule, "no configuration that is allowed was found", err);
    return st < 0 ? st : draw_listed(list, seed, trial, ret, err);
}

static json_t *drawn_reason(search_method method, uint64_t trial, uint64_t redraws)
{
    JSON_AUTO j = json_pack("{s:s}", "method", search_method_format(method));
    int bad = 0;
    if (method != SEARCH_RANDOM)
        bad |= json_object_set_new(j, "point", json_integer((json_int_t)trial));
    if (redraws)
        bad |= json_object_set_new(j, "redraws", json_integer((json_int_t)redraws));
    return bad ? NULL : as_steal(j);
}

as_status sampler_suggest_cell(const struct grid *g, uint64_t index, struct config **ret_config,
                               json_t **ret_reason, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = NULL;
    as_status st = grid_cell(g, index, &c, err);
    if (st < 0)
        return st;
    if (ret_reason) {
        json_t *reason = json_pack("{s:s, s:I, s:I}", "method", "grid", "cell", (json_int_t)index,
                                   "cells", (json_int_t)grid_cells(g));
        if (!reason)
            return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
        *ret_reason = reason;
    }
    *ret_config = as_steal(c);
    return AS_OK;
}

as_status sampler_suggest(const struct space *s, search_method method, uint64_t seed,
                          uint64_t index, struct config **ret_config, json_t **ret_reason,
                          struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = NULL;
    AS_AUTO(grid_freep) struct grid *g = NULL;
    uint64_t redraws = 0;
    if (method == SEARCH_GRID) {
        as_status st = grid_create(s, "/parameters", &g, err);
        return st < 0 ? st : sampler_suggest_cell(g, index, ret_config, ret_reason, err);
    }
    as_status st = suggest_drawn(s, method, seed, index, &c, &redraws, err);
    if (st < 0)
        return st;
    if (ret_reason) {
        json_t *reason = drawn_reason(method, index, redraws);
        if (!reason)
            return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
        *ret_reason = reason;
    }
    *ret_config = as_steal(c);
    return AS_OK;
}

as_status sampler_check(const struct space *s, uint64_t seed, struct as_err *err)
{
    if (!space_is_constrained(s))
        return AS_OK;
    AS_AUTO(config_freep) struct config *c = config_create(s);
    AS_AUTO(grid_freep) struct grid *list = NULL;
    uint64_t redraws = 0;
    size_t rule = 0;
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    as_status st =
        draw_allowed(s, SEARCH_RANDOM, seed, 0, SAMPLER_CHECK_DRAWS, c, &redraws, &rule, err);
    if (st < 0 || redraws < SAMPLER_CHECK_DRAWS)
        return st;
    st = list_allowed(s, &list, err);
    if (st < 0 || list)
        return st;
    return space_refuse_rule(s, rule, "no configuration that is allowed was found", err);
}
