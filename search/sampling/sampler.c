/* Drawing a configuration. Every parameter draws, active or not, each from its own place in the
 * stream. So a new condition or value changes no other parameter's draws. A draw that the space
 * does not allow is repeated, because the rule stays predictable and a draw takes microseconds
 * (docs/decisions/4002); where that would hardly ever find one, a walk does (4002). */
#include "search/sampling/sampler.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/prior/prior_dist.h"
#include "search/problem/random_stream.h"
#include "search/problem/explain.h"
#include "search/sampling/feasible.h"
#include "search/sampling/grid.h"
#include "search/sampling/sobol.h"

#define BELIEVED 100 /* redraws that come from the priors, which may lie where nothing is allowed */
#define CHECK_SEED 0 /* of the draws that say whether a space is narrow: no sweep's seed counts */

_Static_assert(SPACE_MAX_PARAMS <= SOBOL_MAX_DIMS, "every parameter has a Sobol dimension");

/* Drawing the level itself is uniform over any int range, also where a double cannot distinguish
 * the levels. */
static union param_value draw_random(const struct space_param *p, uint64_t seed, uint64_t trial,
                                     size_t i, uint64_t redraw, bool from_prior)
{
    struct rng r;
    rng_init(&r, seed, trial << 8 | SEARCH_DRAW_RANDOM);
    /* room for rejected draws before the next parameter's, for all parameters before the next try
     */
    r.lo = redraw << 24 | (uint64_t)i << 16;
    uint64_t levels = param_levels(p);
    if (from_prior && p->prior)
        return prior_dist_value(p, rng_uniform(&r));
    if (levels && (param_is_choice(p) || p->scale == SCALE_LINEAR))
        return param_level(p, rng_below(&r, levels));
    return param_decode(p, rng_uniform(&r));
}

static union param_value draw_sobol(const struct space_param *p, uint64_t seed, uint64_t point,
                                    size_t i, bool from_prior)
{
    double u = sobol_point(seed, point, (unsigned)i);
    return from_prior && p->prior ? prior_dist_value(p, u) : param_decode(p, u);
}

static void draw_config(const struct space *s, sampler_kind kind, uint64_t seed, uint64_t trial,
                        uint64_t redraw, struct config *c)
{
    bool from_prior =
        redraw < BELIEVED && prior_dist_exists(s) && prior_dist_draws_random(seed, trial);
    for (size_t i = 0; i < s->n; i++) {
        const struct space_param *p = &s->params[i];
        c->entries[i].value = kind == SAMPLER_RANDOM
                                  ? draw_random(p, seed, trial, i, redraw, from_prior)
                                  : draw_sobol(p, seed, redraw << 32 | trial, i, from_prior);
    }
    config_settle(s, c);
}

/* Draw until the configuration is allowed, from draw `from` on, at most up to `most`. If none was,
 * *ret_redraws is `most` and *ret_rule is the rule that was broken most often. */
static as_status draw_allowed(const struct space *s, sampler_kind kind, uint64_t seed,
                              uint64_t trial, uint64_t from, uint64_t most, struct config *c,
                              uint64_t *ret_redraws, size_t *ret_rule, struct as_err *err)
{
    size_t rules = s->n_constraints + s->n_forbidden, worst = 0;
    AS_AUTO(as_freep) uint64_t *broken = as_calloc(rules, sizeof *broken);
    if (!broken)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    uint64_t redraws = from;
    for (; redraws < most; redraws++) {
        draw_config(s, kind, seed, trial, redraws, c);
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

/* List a finite space's allowed configurations. *ret stays NULL if the space is not finite or is
 * too large, or if none is allowed. */
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

static as_status refuse_space(const struct space *s, size_t rule, struct as_err *err)
{
    return space_refuse_rule(s, rule, "no configuration that is allowed was found", err);
}

/* Is the space narrow? *ret_rule: the rule that was broken most often. */
static as_status find_narrow(const struct space *s, bool *ret, size_t *ret_rule, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = config_create(s);
    uint64_t redraws = 0;
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    as_status st = draw_allowed(s, SAMPLER_RANDOM, CHECK_SEED, 0, 0, SAMPLER_CHECK_DRAWS, c,
                                &redraws, ret_rule, err);
    *ret = redraws == SAMPLER_CHECK_DRAWS;
    return st;
}

/* From the list of a finite space, or else by a walk. */
static as_status draw_narrow(const struct space *s, size_t rule, uint64_t seed, uint64_t index,
                             struct config **ret, struct as_err *err)
{
    AS_AUTO(grid_freep) struct grid *list = NULL;
    AS_AUTO(feasible_freep) struct feasible_walk *w = NULL;
    as_status st = list_allowed(s, &list, err);
    if (st < 0)
        return st;
    if (list)
        return draw_listed(list, seed, index, ret, err);
    st = feasible_start(s, seed, index, &w, err);
    if (st == AS_E_NOT_FOUND)
        return refuse_space(s, rule, err);
    if (st < 0)
        return st;
    struct config *c = config_copy(feasible_config(w));
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    *ret = c;
    return AS_OK;
}

/* Draws that are repeated until one is allowed. */
static as_status draw_again(const struct space *s, sampler_kind kind, uint64_t seed, uint64_t index,
                            struct config *c, uint64_t *ret_redraws, bool *ret_found,
                            size_t *ret_rule, struct as_err *err)
{
    bool is_narrow = false;
    as_status st =
        draw_allowed(s, kind, seed, index, 0, SAMPLER_CHECK_DRAWS, c, ret_redraws, ret_rule, err);
    *ret_found = st == AS_OK && *ret_redraws < SAMPLER_CHECK_DRAWS;
    if (st < 0 || *ret_found || (st = find_narrow(s, &is_narrow, ret_rule, err)) < 0 || is_narrow)
        return st;
    st = draw_allowed(s, kind, seed, index, SAMPLER_CHECK_DRAWS, SAMPLER_MAX_DRAWS, c, ret_redraws,
                      ret_rule, err);
    *ret_found = st == AS_OK && *ret_redraws < SAMPLER_MAX_DRAWS;
    return st;
}

as_status sampler_draw(const struct space *s, sampler_kind kind, uint64_t seed, uint64_t index,
                       struct config **ret_config, uint64_t *ret_redraws, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = config_create(s);
    uint64_t redraws = 0;
    size_t rule = 0;
    bool found = false;
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    as_status st = draw_again(s, kind, seed, index, c, &redraws, &found, &rule, err);
    if (st == AS_OK && !found) {
        config_free(as_steal(c));
        st = draw_narrow(s, rule, seed, index, &c, err);
    }
    if (st < 0)
        return st;
    if (ret_redraws)
        *ret_redraws = redraws;
    *ret_config = as_steal(c);
    return AS_OK;
}

as_status sampler_check(const struct space *s, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = NULL;
    bool is_narrow = false;
    size_t rule = 0;
    if (!space_is_constrained(s))
        return AS_OK;
    as_status st = find_narrow(s, &is_narrow, &rule, err);
    return st < 0 || !is_narrow ? st : draw_narrow(s, rule, CHECK_SEED, 0, &c, err);
}

as_status sampler_is_narrow(const struct space *s, bool *ret, struct as_err *err)
{
    size_t rule = 0;
    *ret = false;
    return space_is_constrained(s) ? find_narrow(s, ret, &rule, err) : AS_OK;
}

/* ---- the methods ---- */

as_status sampler_method_check(const struct search_spec *spec, struct as_err *err)
{
    return sampler_check(spec->space, err);
}

as_status sampler_method_sample(const struct search_spec *spec, struct config **ret,
                                struct as_err *err)
{
    return sampler_draw(spec->space, SAMPLER_SOBOL, spec->seed, 0, ret, NULL, err);
}

static as_status sample_random(const struct search_spec *spec, struct config **ret,
                               struct as_err *err)
{
    return sampler_draw(spec->space, SAMPLER_RANDOM, spec->seed, 0, ret, NULL, err);
}

static json_t *drawn_reason(sampler_kind kind, uint64_t index, uint64_t redraws)
{
    const struct search_method *m = kind == SAMPLER_RANDOM ? &search_random : &search_sobol;
    JSON_AUTO j = json_pack("{s:s}", "method", m->name);
    int bad = 0;
    if (kind == SAMPLER_SOBOL)
        bad |= json_object_set_new(j, "point", json_integer((json_int_t)index));
    if (redraws)
        bad |= json_object_set_new(j, "redraws", json_integer((json_int_t)redraws));
    return bad ? NULL : as_steal(j);
}

static as_status suggest_drawn(const struct search_spec *spec, sampler_kind kind, uint64_t index,
                               struct suggestion *ret, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *c = NULL;
    uint64_t redraws = 0;
    as_status st = sampler_draw(spec->space, kind, spec->seed, index, &c, &redraws, err);
    if (st < 0)
        return st;
    json_t *reason = drawn_reason(kind, index, redraws);
    if (!reason)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
    *ret = (struct suggestion){.config = as_steal(c), .reason = reason};
    return AS_OK;
}

static as_status suggest_random(const struct search_spec *spec, const struct history *history,
                                const json_t *state, uint64_t number, uint64_t index,
                                struct search_method_cache *cache, struct suggestion *ret,
                                struct as_err *err)
{
    (void)history, (void)state, (void)number, (void)cache;
    return suggest_drawn(spec, SAMPLER_RANDOM, index, ret, err);
}

static as_status suggest_sobol(const struct search_spec *spec, const struct history *history,
                               const json_t *state, uint64_t number, uint64_t index,
                               struct search_method_cache *cache, struct suggestion *ret,
                               struct as_err *err)
{
    (void)history, (void)state, (void)number, (void)cache;
    return suggest_drawn(spec, SAMPLER_SOBOL, index, ret, err);
}

static void random_explain(const struct search_method *m, const json_t *reason,
                           const json_t *metrics, struct str *b)
{
    (void)m, (void)reason, (void)metrics;
    str_puts(b, "drawn at random");
}

static void sobol_explain(const struct search_method *m, const json_t *reason,
                          const json_t *metrics, struct str *b)
{
    (void)m, (void)metrics;
    str_printf(b, "point %" PRId64 " of a Sobol sequence, which fills the space",
               explain_count(reason, "point"));
}

const struct search_method search_random = {
    .name = "random",
    .check = sampler_method_check,
    .sample = sample_random,
    .suggest = suggest_random,
    .explain = random_explain,
};

const struct search_method search_sobol = {
    .name = "sobol",
    .check = sampler_method_check,
    .sample = sampler_method_sample,
    .suggest = suggest_sobol,
    .explain = sobol_explain,
};
