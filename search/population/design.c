/* The initial design: the centre, Sobol points, and then a search for any untried configuration. */
#include "search/population/design.h"

#include "base/rng.h"
#include "search/population/enumeration.h"
#include "search/prior/prior_dist.h"
#include "search/prior/trust.h"
#include "search/problem/random_stream.h"
#include "search/sampling/sampler.h"
#include "search/sampling/sobol.h"

/* Trials of the design: for each parameter of a space that is not continuous, and at least. With
 * these `additive30` ends at 0.0007 instead of 0.073 after 110 trials (decision 4004). With
 * categories, 4 trials and one for each value of the largest choice lost 0.07, 0.16, 0.01 against
 * 10 (bench/notes/gp-tuning.md). */
#define SIZE_FOR_PARAM 0.7
#define SIZE_LEAST 5
#define SIZE_OF_CHOICES 10
#define SIZE_MOST 40

#define DRAWS 512    /* of one point, before the sampler for narrow spaces tries, */
#define BELIEVED 256 /* of them from the priors, which may lie where nothing is allowed, */
#define SAMPLED 16   /* and the sampler's draws before the space is enumerated */
#define SAMPLED_STRIDE (UINT64_C(1) << 32) /* between its indices: no sweep has so many */

/* A space of numbers alone, without an order of branches? Then the model is better than a design at
 * once. */
static bool is_continuous(const struct encoding *e)
{
    return e->n_continuous == e->n_varied;
}

size_t design_size(const struct training_set *s)
{
    if (s->spec->initial_trials)
        return s->spec->initial_trials;
    size_t n = (size_t)(SIZE_FOR_PARAM * (double)s->enc->n_varied);
    size_t least = s->enc->n_category ? SIZE_OF_CHOICES : SIZE_LEAST;
    n = is_continuous(s->enc) || n < least ? least : n < SIZE_MOST ? n : SIZE_MOST;
    return n;
}

/* Earlier sweeps of which a trial fits the space. */
static size_t count_earlier(const struct training_set *s, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; s->spec->earlier && i < s->spec->earlier->n; i++)
        n += s->spec->earlier->sweeps[i].n > 0;
    return n < most ? n : most;
}

/* Move the numbers that lead to a point to those that lead to a likely one. */
static void believe(const struct encoding *e, const double *u, double *point)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->space->params[i].prior)
            point[i] = prior_dist_place(e, i, u[i]);
    encoding_snap(e, point);
}

/* from_prior: from the priors. */
static void draw_design_point(const struct training_set *s, uint64_t index, uint64_t retry,
                              bool from_prior, double *point)
{
    uint64_t seed = s->spec->seed;
    uint64_t key = retry ? rng_mix(seed, retry << 8 | SEARCH_DRAW_GP_DESIGN) : seed;
    double u[SPACE_MAX_PARAMS];
    for (size_t i = 0; i < s->enc->n; i++)
        u[i] = sobol_point(key, index, (unsigned)i);
    encoding_from_unit(s->enc, u, point);
    if (from_prior)
        believe(s->enc, u, point);
}

static bool is_new(const struct training_set *s, const double *point)
{
    return encoding_allows(s->enc, point, s->scratch) &&
           !training_set_tried(s, point, DESIGN_TOLERANCE);
}

/* The sampler searches much longer, for spaces in which constraints leave little. Sets *ret_found,
 * and *ret_drawn, the number of allowed configurations drawn. */
static as_status sample_narrow_space(const struct training_set *s, uint64_t index,
                                     double *ret_point, bool *ret_found, uint64_t *ret_drawn,
                                     struct as_err *err)
{
    *ret_found = false;
    *ret_drawn = 0;
    for (uint64_t k = 0; k < SAMPLED && space_is_constrained(s->spec->space); k++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        as_status st = sampler_draw(s->spec->space, SAMPLER_SOBOL, s->spec->seed,
                                    index + k * SAMPLED_STRIDE, &c, NULL, err);
        if (st == AS_E_UNSUPPORTED)
            break;
        if (st < 0)
            return st;
        ++*ret_drawn;
        encoding_from_config(s->enc, c, ret_point);
        if ((*ret_found = is_new(s, ret_point)))
            break;
    }
    return AS_OK;
}

/* A space too large to enumerate is exhausted when every drawn configuration was tried before. */
static as_status look_for_one(const struct training_set *s, uint64_t drawn, double *ret_point,
                              struct as_err *err)
{
    struct enumerated found = {0};
    as_status st = enumerate_untried(s, 1, ret_point, &found, err);
    if (st < 0 || found.n)
        return st;
    if (found.complete)
        return as_fail(err, AS_E_EXHAUSTED, "every configuration of the space was tried");
    if (drawn == SAMPLED)
        return as_fail(err, AS_E_EXHAUSTED,
                       "every configuration that was found in the space was tried");
    return as_fail(err, AS_E_UNSUPPORTED,
                   "no new configuration that the constraints allow was found");
}

as_status design_anywhere(const struct training_set *s, uint64_t index, double *ret_point,
                          struct as_err *err)
{
    bool from_prior = prior_dist_draws_design(index) && trust_of(s, s->n) > 0;
    for (uint64_t retry = 0; retry < DRAWS; retry++) {
        draw_design_point(s, index, retry, from_prior && retry < BELIEVED, ret_point);
        if (is_new(s, ret_point))
            return AS_OK;
    }
    bool found = false;
    uint64_t drawn = 0;
    as_status st = sample_narrow_space(s, index, ret_point, &found, &drawn, err);
    return st < 0 || found ? st : look_for_one(s, drawn, ret_point, err);
}

/* The best trial of each earlier sweep of which one fits the space comes first; k counts these. */
static bool place_earlier(const struct training_set *s, uint64_t k, double *point)
{
    const struct warm_start *w = s->spec->earlier;
    for (size_t i = 0; w && i < w->n; i++) {
        if (!w->sweeps[i].n || k-- > 0)
            continue;
        draw_design_point(s, 0, 0, false, point);
        warm_start_place(w, i, 0, point);
        encoding_snap(s->enc, point);
        return true;
    }
    return false;
}

as_status design_point(const struct training_set *s, uint64_t index, size_t most_earlier,
                       double *ret_point, struct as_err *err)
{
    size_t n_earlier = count_earlier(s, most_earlier);
    if (index < n_earlier && place_earlier(s, index, ret_point) && is_new(s, ret_point))
        return AS_OK;
    index -= index < n_earlier ? 0 : n_earlier;
    if (index == 0) {
        draw_design_point(s, 0, 0, false, ret_point);
        for (size_t i = 0; i < s->enc->n; i++) {
            if (s->enc->space->params[i].prior)
                ret_point[i] = prior_dist_mode(s->enc, i);
            else if (s->enc->params[i].kind != ENCODED_CHOICE)
                ret_point[i] = 0.5;
        }
        encoding_snap(s->enc, ret_point);
        if (is_new(s, ret_point))
            return AS_OK;
    }
    return design_anywhere(s, index, ret_point, err);
}
