/* One suggestion. Below the size of the design it takes a design point. Otherwise it fits the
 * models, takes the acquisition from the schedule, finds its best point and writes the reason
 * (reason.c) and the new state. If a model cannot be fitted, a Sobol point replaces the suggestion
 * and the reason names the error, because a sweep must not stop for numerical reasons. */
#include "search/gp/gp_priv.h"
#include "search/gp/gp_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/gp/basin.h"
#include "search/gp/failure_penalty.h"
#include "search/gp/leading_choice.h"
#include "search/gp/crossing.h"
#include "search/gp/nearby.h"
#include "search/gp/quadratic.h"
#include "search/pareto/pareto.h"
#include "search/population/design.h"
#include "search/sampling/sampler.h"

/* UCB's number of deviations, without pending trials and with this many. Pending trials shrink the
 * deviations and so already spread the suggestions. A smaller number moves each suggestion closer
 * to the best. Sums of log10 regret with 8 pending, 4 functions, 6 seeds: 1.8 -7.3, 1.2 -9.2, 0.8
 * -8.6; without pending trials 1.4 instead of 1.8 costs 0.02, 0.02, 0.08 (bench/notes). */
#define UCB_BETA 1.8
#define UCB_BETA_PARALLEL 1.2
#define UCB_PARALLEL 4
#define LOOK 64 /* PE searches its threshold among this many best trials, predicted at once */
/* With more models than this their bases are halved (decision 4004). A design of fewer trials than
 * SMALL_DESIGN has no point of an earlier sweep: in a design of five, one such point cost an
 * unrelated sweep 1.3 to 1.5 times the regret (decision 4011). A larger one has one for each so
 * many points. */
#define FEW_MODELS 3
#define SMALL_DESIGN 10
#define POINTS_FOR_EARLIER 5
#define LEAST_RESULTS 3 /* before a model is used */
/* The best trial is repeated when so many have completed and the models hold so much of the values'
 * variance for noise (decision 4023). */
#define DOUBT_TRIALS 15
#define DOUBT_NOISE 0.0025

static struct gp_cache *gp_cache(struct search_method_cache *c)
{
    return (struct gp_cache *)c;
}

static struct search_method_cache *cache_create(void)
{
    return as_calloc(1, sizeof(struct gp_cache));
}

static void cache_free(struct search_method_cache *cache)
{
    struct gp_cache *c = gp_cache(cache);
    if (!c)
        return;
    surrogate_store_done(&c->store);
    surrogate_store_done(&c->own);
    gp_optimizer_work_done(&c->optimizer);
    training_places_done(&c->places);
    training_places_done(&c->own_places);
    free(c);
}
AS_DEFINE_FREEP(struct search_method_cache, cache_free)

static size_t cache_bytes(const struct search_method_cache *cache)
{
    const struct gp_cache *c = (const struct gp_cache *)cache;
    return sizeof *c + surrogate_store_bytes(&c->store) + surrogate_store_bytes(&c->own) +
           gp_optimizer_work_bytes(&c->optimizer) + training_places_bytes(&c->places) +
           training_places_bytes(&c->own_places);
}

static void ask_done(struct gp_ask *a)
{
    for (size_t i = 0; i < a->n_models; i++)
        surrogate_done(&a->models[i]);
    gp_ehvi_free(a->ehvi);
    training_set_free(a->set);
    relevance_done(&a->relevance);
    free(a->point);
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
}

/* ---- models ---- */

static size_t max_rows(const struct gp_ask *a)
{
    size_t n = a->set->spec->n_objectives + a->set->spec->n_outcomes;
    return n <= FEW_MODELS ? GP_MAX_ROWS : GP_MAX_ROWS_MANY;
}

static as_status add_model(struct gp_ask *a, surrogate_target target, size_t k, struct as_err *err)
{
    struct surrogate_spec spec = {target, k, max_rows(a), a->number};
    char name[16];
    surrogate_name(&spec, name);
    as_status st = surrogate_prepare(&a->cache->store, a->set, &spec,
                                     json_object_get(json_object_get(a->state, "models"), name),
                                     &a->models[a->n_models], err);
    if (st < 0)
        return st;
    a->n_models++;
    return AS_OK;
}

static void add_limit(struct gp_ask *a, double min, double max)
{
    struct acquisition *q = &a->acquisition;
    q->limits[q->n_limits++] = (struct outcome_bound){min, max};
}

double gp_ucb_beta(const struct training_set *s)
{
    double share = fmin(1, (double)s->n_pending / UCB_PARALLEL);
    return UCB_BETA + share * (UCB_BETA_PARALLEL - UCB_BETA);
}

/* Prepare the objectives' models, then the outcomes', then that of failures. The other models do
 * not see failed trials and would continue to suggest where trials fail. */
static as_status prepare_models(struct gp_ask *a, struct as_err *err)
{
    const struct search_spec *spec = a->set->spec;
    a->acquisition = (struct acquisition){.kind = a->row->kind, .beta = gp_ucb_beta(a->set)};
    if (a->row->kind != ACQUISITION_FEASIBILITY)
        a->acquisition.n_objectives = spec->n_objectives;
    for (size_t k = 0; k < a->acquisition.n_objectives; k++) {
        as_status st = add_model(a, a->row->target, k, err);
        if (st < 0)
            return st;
    }
    for (size_t k = 0; k < spec->n_outcomes; k++) {
        as_status st = add_model(a, SURROGATE_OUTCOME, k, err);
        if (st < 0)
            return st;
        const struct surrogate *m = &a->models[a->n_models - 1];
        add_limit(a, surrogate_forward(m, spec->outcomes[k].min),
                  surrogate_forward(m, spec->outcomes[k].max));
    }
    if (!a->set->n_avoided)
        return AS_OK;
    as_status st = add_model(a, SURROGATE_FAILURE, 0, err);
    if (st < 0)
        return st;
    const struct surrogate *failures = &a->models[a->n_models - 1];
    struct failure_penalty penalty = failure_penalty_of(a->set, gp_model_theta(failures->model));
    add_limit(a, -INFINITY, surrogate_forward(failures, penalty.threshold));
    a->acquisition.failure_weight = penalty.weight;
    return AS_OK;
}

/* ---- what the acquisition compares with ---- */

/* Predict n <= LOOK trials with the first model. */
static as_status predict_trials(struct gp_ask *a, const size_t *trials, size_t n, double *mean,
                                double *var, struct as_err *err)
{
    const struct training_set *s = a->set;
    const struct surrogate *m = &a->models[0];
    size_t n_real = s->columns.n_real, n_cat = s->columns.n_cat;
    AS_AUTO(as_freep) double *x = as_calloc(LOOK, n_real * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(LOOK, n_cat * sizeof *z);
    struct gp_work **work = &a->cache->optimizer.predict;
    if (!x || !z || (!*work && !(*work = gp_work_create())))
        return out_of_memory(err);
    as_status st = surrogate_reserve(m, *work, LOOK, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++) {
        memcpy(x + i * n_real, s->x + trials[i] * n_real, n_real * sizeof *x);
        memcpy(z + i * n_cat, s->z + trials[i] * n_cat, n_cat * sizeof *z);
    }
    surrogate_predict(m, *work, &(struct gp_rows){n, x, z}, mean, var);
    return AS_OK;
}

/* Set PE's threshold: the mean of the best trial with the lowest mean - 1.8 sigma. */
static as_status set_threshold(struct gp_ask *a, struct as_err *err)
{
    size_t top[LOOK], n = gp_candidates_top(a->set, LOOK, top);
    double mean[LOOK], var[LOOK], lowest = INFINITY;
    as_status st = predict_trials(a, top, n, mean, var, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++) {
        double bound = mean[i] - UCB_BETA * sqrt(var[i]);
        if (bound < lowest) {
            lowest = bound;
            a->acquisition.threshold = mean[i];
        }
    }
    return AS_OK;
}

/* The worst feasible value of objective k as its model sees it. It is cut, so that a diverged trial
 * does not determine it. The warp's values are those of the completed trials; with rungs, of these
 * too, and the worst of all is taken. */
static double worst_of(const struct gp_ask *a, size_t k)
{
    const struct training_set *s = a->set;
    const double *v = gp_warp_values(a->models[k].warp);
    double worst = -INFINITY;
    for (size_t i = 0; s->rungs && i < a->models[k].n_values; i++)
        worst = fmax(worst, v[i]);
    for (size_t i = 0; i < s->n && !s->rungs; i++) {
        if (s->state[i] != OBSERVED_COMPLETED)
            continue;
        if (s->feasible[i])
            worst = fmax(worst, *v);
        v++;
    }
    return worst;
}

/* With rungs or noise: predict every trial that has a value, at the last step, so that trials at
 * different steps can be compared, and lucky ones with others. */
static as_status set_expected(struct gp_ask *a, struct as_err *err)
{
    struct training_set *s = a->set;
    size_t some[LOOK];
    double mean[LOOK], var[LOOK];
    if ((!s->n_rungs && s->repeats.noise != NOISE_SEEN) || s->spec->n_objectives > 1 ||
        !a->acquisition.n_objectives)
        return AS_OK;
    s->expected = as_calloc(s->n, sizeof *s->expected);
    if (!s->expected)
        return out_of_memory(err);
    for (size_t i = 0; i < s->n;) {
        size_t n = 0;
        for (; i < s->n && n < LOOK; i++) {
            s->expected[i] = NAN;
            if (s->state[i] == OBSERVED_COMPLETED || training_set_rung(s, i))
                some[n++] = i;
        }
        as_status st = n ? predict_trials(a, some, n, mean, var, err) : AS_OK;
        if (st < 0)
            return st;
        for (size_t j = 0; j < n; j++)
            s->expected[some[j]] = mean[j];
    }
    return AS_OK;
}

/* The lowest expected value at the last step of a trial at a rung; INFINITY: none. */
static double lowest_expected(const struct training_set *s)
{
    double lowest = INFINITY;
    for (size_t i = 0; s->expected && i < s->n; i++)
        if (training_set_rung(s, i))
            lowest = fmin(lowest, s->expected[i]);
    return lowest;
}

/* Set the value that logEI improves on: the lowest of the best result and the means of the pending
 * trials and of those at a rung. A pending trial counts as observed at its mean, so reaching that
 * mean is no improvement. Whether it meets the bounds is unknown and is ignored. */
static as_status set_best(struct gp_ask *a, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t some[LOOK];
    double mean[LOOK], var[LOOK];
    size_t best = a->row->point == POINT_BRANCH ? a->branch.best : s->best;
    double expected = s->spec->n_outcomes ? INFINITY : lowest_expected(s);
    if (best == TRAINING_SET_NONE && a->row->point != POINT_BRANCH && isfinite(expected)) {
        a->acquisition.best = expected; /* no trial has completed yet */
        return AS_OK;
    }
    if (best == TRAINING_SET_NONE) { /* the branch has no value yet: any will do */
        a->acquisition.best = worst_of(a, 0);
        return AS_OK;
    }
    a->acquisition.best = surrogate_forward(&a->models[0], s->costs[best]);
    if (a->row->point == POINT_BRANCH)
        return AS_OK;
    a->acquisition.best = fmin(a->acquisition.best, expected);
    for (size_t i = 0; i < s->n && !s->spec->n_outcomes;) {
        size_t n = 0;
        for (; i < s->n && n < LOOK; i++) {
            if (s->state[i] == OBSERVED_PENDING)
                some[n++] = i;
        }
        as_status st = n ? predict_trials(a, some, n, mean, var, err) : AS_OK;
        if (st < 0)
            return st;
        for (size_t j = 0; j < n; j++)
            a->acquisition.best = fmin(a->acquisition.best, mean[j]);
    }
    return AS_OK;
}

static as_status set_front(struct gp_ask *a, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t m = s->spec->n_objectives, n = 0, n_front = 0;
    double reference[SEARCH_MAX_OBJECTIVES];
    AS_AUTO(as_freep) double *costs = as_calloc(s->n, m * sizeof *costs);
    AS_AUTO(as_freep) size_t *front = as_calloc(s->n, sizeof *front);
    if (!costs || !front)
        return out_of_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < m && s->feasible[i]; k++)
            costs[n * m + k] = surrogate_forward(&a->models[k], s->costs[i * m + k]);
        n += s->feasible[i];
    }
    as_status st = gp_pareto_front(costs, n, m, NULL, front, &n_front, err);
    if (st < 0)
        return st;
    gp_pareto_reference(costs, n, m, NULL, front, n_front, reference);
    /* beyond the front's ends, because otherwise they would never improve */
    for (size_t k = 0; k < m; k++)
        reference[k] = fmax(reference[k], worst_of(a, k));
    st = gp_ehvi_create(costs, n, m, reference, &a->ehvi, err);
    a->acquisition.ehvi = a->ehvi;
    return st;
}

static as_status set_marks(struct gp_ask *a, struct as_err *err)
{
    if (a->row->kind == ACQUISITION_EHVI)
        return set_front(a, err);
    if (a->row->kind == ACQUISITION_PE)
        return set_threshold(a, err);
    return a->row->kind == ACQUISITION_LOGEI ? set_best(a, err) : AS_OK;
}

/* ---- the point ---- */

/* The hyperparameters that the last fit of a model found; NULL: there was none. */
static const json_t *theta_of(const struct gp_ask *a, const char *model)
{
    const json_t *models = json_object_get(a->state, "models");
    return json_object_get(json_object_get(models, model), "theta");
}

/* Every second trial of a branch is a crossing, and each one of a branch that was left. */
static bool crosses(struct gp_ask *a)
{
    const struct branch *b = &a->branch;
    size_t n = b->n_ended + b->n_pending;
    if (!b->is_revisit && n % 2 == 0)
        return false;
    return crossing_point(a->set, b, a->number, b->is_revisit || n % 4 == 1, a->point);
}

/* In the box of the basin, or anywhere if nothing untried is allowed there. box: 2 enc->n. */
static as_status find_in_basin(struct gp_ask *a, struct gp_optimizer_problem *p, double *box,
                               struct as_err *err)
{
    double *upper = box + a->set->enc->n;
    basin_box(a->set, a->basin, box, upper);
    p->region = (struct gp_region){box, upper, training_set_point(a->set, a->basin), NULL};
    as_status st = gp_optimize(p, &a->cache->optimizer, a->point, &a->found, err);
    if (st < 0 || a->found.is_found)
        return st;
    a->basin = TRAINING_SET_NONE;
    p->region = (struct gp_region){0};
    return gp_optimize(p, &a->cache->optimizer, a->point, &a->found, err);
}

/* Leave few numbers free around the best trial, or around the branch's. box: 2 enc->n. */
static void free_few(struct gp_ask *a, struct gp_optimizer_problem *p, double *box)
{
    const struct training_set *s = a->set;
    bool in_branch = a->row->point == POINT_BRANCH;
    size_t centre = in_branch ? a->branch.best : s->best;
    if (centre == TRAINING_SET_NONE)
        return;
    a->free = free_numbers_draw(s, theta_of(a, "s0"), a->number, in_branch);
    if (!a->free.n)
        return;
    double *upper = box + s->enc->n;
    free_numbers_box(&a->free, s, centre, box, upper);
    p->region = (struct gp_region){box, upper, training_set_point(s, centre), p->region.branch};
}

static as_status find_point(struct gp_ask *a, struct as_err *err)
{
    size_t d = a->set->enc->n;
    AS_AUTO(as_freep) double *box = as_calloc(2 * d, sizeof *box);
    if (!box)
        return out_of_memory(err);
    struct gp_optimizer_problem p = {
        .set = a->set, .acquisition = &a->acquisition, .models = a->models, .number = a->number};
    if (a->trust.is_on && a->row->point != POINT_BRANCH) {
        trust_region_box(&a->trust, a->set, a->models[0].model, box, box + d);
        p.region = (struct gp_region){box, box + d, training_set_point(a->set, a->set->best)};
    }
    if (a->row->point == POINT_BRANCH)
        p.region.branch = &a->branch;
    p.priors = a->priors.any ? &a->priors : NULL;
    if (a->row->point == POINT_BASIN)
        return find_in_basin(a, &p, box, err);
    if (a->row->point == POINT_REPEAT) {
        const struct training_set *s = a->set;
        memcpy(a->point, training_set_point(s, s->best), d * sizeof *a->point);
        a->is_repeat = true;
        return gp_describe(&p, &a->cache->optimizer, a->point, &a->found, err);
    }
    if (a->row->point == POINT_NEARBY && nearby_point(a->set, a->number, a->point)) {
        a->is_nearby = true;
        return gp_describe(&p, &a->cache->optimizer, a->point, &a->found, err);
    }
    if (a->row->point == POINT_BRANCH && crosses(a)) {
        a->is_crossing = true;
        return gp_describe(&p, &a->cache->optimizer, a->point, &a->found, err);
    }
    free_few(a, &p, box);
    return gp_optimize(&p, &a->cache->optimizer, a->point, &a->found, err);
}

/* If the schedule says so, use the minimum of a quadratic when it predicts best. */
static as_status try_quadratic(struct gp_ask *a, struct as_err *err)
{
    struct gp_quadratic q;
    const struct surrogate *m = &a->models[0];
    if (a->row->point != POINT_QUADRATIC || a->acquisition.n_limits)
        return AS_OK;
    as_status st = gp_quadratic_step(a->set, m, a->point, &q, err);
    if (st < 0 || !q.is_found)
        return st;
    a->is_quadratic = true;
    a->found = (struct gp_found){.is_found = true, .value = q.gain, .runner_up = NAN};
    a->found.mean[0] = surrogate_forward(m, q.mean);
    a->found.sd[0] = q.deviation;
    return AS_OK;
}

/* The good trials of the earlier sweeps have moved as the guides say. */
static void shift_priors(struct gp_ask *a)
{
    const struct guides *g = &a->models[0].guides;
    const struct encoding *e = a->set->enc;
    double shift[SPACE_MAX_PARAMS];
    for (size_t i = 0; i < g->n; i++) {
        bool moves = false;
        for (size_t j = 0; j < e->n; j++) {
            bool is_moving = e->params[j].real >= 0 && g->shifts[e->params[j].real];
            shift[j] = is_moving ? g->shift[i][e->params[j].real] : 0;
            moves |= shift[j] != 0;
        }
        if (moves)
            trust_shift(&a->priors, a->set, g->sweep[i], shift);
    }
}

static as_status ask_models(struct gp_ask *a, struct as_err *err)
{
    *a->own_model = '\0'; /* the second time, where all but repeats was tried */
    /* also if the models fail, because its state continues */
    trust_region_update(&a->trust, a->set);
    a->priors = trust_weights(a->set);
    if (a->row->point == POINT_PART)
        return gp_part_suggest(a, err);
    if (gp_value_has_turn(a))
        return gp_value_suggest(a, err);
    as_status st = prepare_models(a, err);
    if (st < 0)
        return st;
    shift_priors(a);
    st = set_expected(a, err);
    if (st == AS_OK)
        st = set_marks(a, err);
    if (st < 0)
        return st;
    st = try_quadratic(a, err);
    return st < 0 || a->is_quadratic ? st : find_point(a, err);
}

/* ---- the state: {"models": {name: …}, "trust": {…}, "relevance": {…}, "bends": {…},
 * "idle": {…}, "influence": {…}, "calibration": {…}} ---- */

/* Takes `part`: null is left out, NULL is out of memory. */
static int add_part(json_t *state, const char *name, json_t *part)
{
    if (part && !json_is_null(part))
        return json_object_set_new(state, name, part);
    int rc = part ? 0 : -1;
    json_decref(part);
    return rc;
}

static as_status write_state(const struct gp_ask *a, json_t **ret, struct as_err *err)
{
    JSON_AUTO state = json_pack("{s:{}, s:o*}", "models", "trust", trust_region_write(&a->trust));
    json_t *models = json_object_get(state, "models");
    const json_t *old = json_object_get(a->state, "models");
    int rc = state ? 0 : -1;
    if (rc == 0)
        rc = add_part(state, "relevance", relevance_write(&a->relevance));
    if (rc == 0)
        rc = add_part(state, "bends", bends_write(&a->bends));
    if (rc == 0)
        rc = add_part(state, "idle", idle_write(&a->idle));
    if (rc == 0)
        rc = add_part(state, "influence", influence_write(&a->influence));
    if (rc == 0)
        rc = add_part(state, "calibration", reliability_write(&a->reliability));
    if (rc == 0 && json_is_object(old))
        rc = json_object_update(models, (json_t *)old);
    for (size_t i = 0; i < a->n_models && rc == 0; i++) {
        size_t after = i - a->acquisition.n_objectives;
        bool is_objective = i < a->acquisition.n_objectives;
        struct surrogate_spec spec = {.target = a->models[i].target,
                                      .k = is_objective                               ? i
                                           : a->models[i].target == SURROGATE_FAILURE ? 0
                                                                                      : after};
        char name[16];
        surrogate_name(&spec, name);
        rc = json_object_set(models, *a->own_model ? a->own_model : name, a->models[i].state);
    }
    if (rc < 0)
        return out_of_memory(err);
    *ret = as_steal(state);
    return AS_OK;
}

/* ---- the whole ---- */

/* Priors that the first results confirm make the rest of the design superfluous. */
static bool is_initial(const struct training_set *s)
{
    size_t size = design_size(s), results = training_set_results(s);
    if (s->n < size && !s->spec->initial_trials && trust_is_confirmed(s))
        return false;
    return s->n < size || results < (size < LEAST_RESULTS ? size : LEAST_RESULTS);
}

/* Points of the design that may be the best trials of earlier sweeps. A small design, of a space of
 * floats, has none: each of its points matters, and the first suggestions of the models find
 * what an earlier sweep knows. */
static size_t most_earlier(const struct training_set *s)
{
    size_t size = design_size(s);
    return size < SMALL_DESIGN ? 0 : size / POINTS_FOR_EARLIER;
}

/* The noise that the last fit of a model found, as a share of the variance of its values; 0: there
 * was none. */
static double noise_of(const struct gp_ask *a, const char *model)
{
    double v;
    return json_number_get(json_array_get(theta_of(a, model), a->set->enc->n_lengths + 1), &v)
               ? exp(v)
               : 0;
}

/* Is it worth a trial to know whether the best value is luck? Once: the answer is whether values
 * are exact. Not in a finite space, in which a sweep ends when each configuration was tried. */
static bool is_in_doubt(const struct gp_ask *a)
{
    const struct training_set *s = a->set;
    if (s->in_doubt)
        return true;
    return s->repeats.noise == NOISE_UNKNOWN && !s->repeats.n && s->spec->n_objectives == 1 &&
           s->enc->n_continuous > 0 && !s->rungs && s->n_completed >= DOUBT_TRIALS &&
           s->best != TRAINING_SET_NONE && noise_of(a, "w0") >= DOUBT_NOISE;
}

/* The place in the schedule. A measurement that fails at every second trial would leave every
 * second row of the schedule without results; so where values were lost anywhere, as far as one can
 * tell, the turns are drawn (decision 4032). */
static uint64_t turn_of(const struct gp_ask *a)
{
    const struct training_set *s = a->set;
    return s->n_failed > s->n_avoided ? rng_mix(s->spec->seed, a->number) : a->index;
}

static as_status choose_row(struct gp_ask *a, struct as_err *err)
{
    const struct training_set *s = a->set;
    bool is_found = false, has_part = false;
    size_t lead = leading_choice(s, theta_of(a, "w0"));
    as_status st =
        s->spec->n_objectives == 1 ? branch_choose(s, lead, &is_found, &a->branch, err) : AS_OK;
    if (st == AS_OK)
        st = part_choose(s, &a->idle, &a->cache->store.fit, &has_part, &a->part, err);
    bool has_basin = s->crowded && basin_choose(s, &a->basin);
    if (st == AS_OK)
        a->row = schedule_at(schedule_facts(s) | (is_found ? FACT_BRANCH : 0) |
                                 (is_found && a->branch.is_own && s->stalled ? FACT_VALUE : 0) |
                                 (has_basin ? FACT_BASIN : 0) | (has_part ? FACT_PART : 0) |
                                 (is_in_doubt(a) ? FACT_DOUBT : 0),
                             reliability_lost(&a->reliability), turn_of(a));
    return st;
}

/* Set the point, and `why` if the models failed. Never returns AS_E_NUMERIC. */
static as_status choose_point(struct gp_ask *a, char why[AS_ERR_MSG_MAX], struct as_err *err)
{
    const struct training_set *s = a->set;
    if (s->enc->n_varied && is_initial(s))
        return design_point(s, a->index, most_earlier(s), a->point, err);
    if (a->influence.is_unseen) {
        snprintf(why, AS_ERR_MSG_MAX, "no step shows that the parameters matter more than noise");
        return design_anywhere(s, a->index, a->point, err);
    }
    if (!s->enc->n_varied) {
        snprintf(why, AS_ERR_MSG_MAX, "the space has one configuration");
    } else if (!s->n_completed && !s->n_rungs) {
        snprintf(why, AS_ERR_MSG_MAX, "no trial has completed");
    } else {
        struct as_err model_err = {0};
        as_status st = choose_row(a, err);
        if (st < 0)
            return st;
        st = ask_models(a, &model_err);
        if (st == AS_OK && a->found.is_found)
            return AS_OK;
        if (st < 0 && st != AS_E_NUMERIC) {
            if (err)
                *err = model_err;
            return st;
        }
        snprintf(why, AS_ERR_MSG_MAX, "%s",
                 st < 0 ? model_err.msg : "every candidate was tried before");
    }
    return design_anywhere(s, a->index, a->point, err);
}

static as_status create_set(struct gp_ask *a, const struct search_spec *spec,
                            const struct history *history, size_t n_dead, struct as_err *err)
{
    const struct encoding_learned learned = {a->relevance.dead, n_dead, a->bends.bent,
                                             a->bends.n_bent};
    training_set_free(a->set);
    a->set = NULL;
    return training_set_create_with(spec, history, &learned, &a->cache->places, &a->set, err);
}

/* The sweep as it is seen under what was learned of its parameters. */
static as_status read_history(struct gp_ask *a, const struct search_spec *spec,
                              const struct history *history, struct as_err *err)
{
    struct relevance *r = &a->relevance;
    bool changed = false;
    as_status st = relevance_read(spec, json_object_get(a->state, "relevance"), r, err);
    if (st == AS_OK)
        st = bends_read(spec, json_object_get(a->state, "bends"), &a->bends, err);
    if (st < 0 || (st = create_set(a, spec, history, r->n_dead, err)) < 0)
        return st;
    a->idle = idle_read(json_object_get(a->state, "idle"), a->set->enc);
    if (is_initial(a->set))
        return AS_OK;
    st = bends_learn(a->set, &a->idle, &a->cache->store.fit, &a->bends, &changed, err);
    if (st < 0 || (changed && (st = create_set(a, spec, history, r->n_dead, err)) < 0))
        return st;
    st = relevance_learn(a->set, &a->cache->store.fit, r, &changed, err);
    return st < 0 || !changed ? st : create_set(a, spec, history, r->n_dead, err);
}

/* What came of earlier predictions. */
static void read_reliability(struct gp_ask *a)
{
    if (a->set->spec->n_objectives > 1)
        return;
    reliability_read(json_object_get(a->state, "calibration"), &a->reliability);
    reliability_check(&a->reliability, a->set);
}

/* Do the parameters matter? Not asked while the design is not complete. */
static as_status learn_influence(struct gp_ask *a, struct as_err *err)
{
    a->influence = influence_read(json_object_get(a->state, "influence"));
    return is_initial(a->set) ? AS_OK
                              : influence_learn(a->set, &a->cache->store.fit, &a->influence, err);
}

/* Keep what the model predicts of the new trial: not the quadratic's prediction, nor that of a
 * part's or a value's own model, and none of a repeat, which is made where the result is known. */
static void watch_prediction(struct gp_ask *a)
{
    if (a->found.is_found && a->acquisition.n_objectives == 1 && !a->is_quadratic &&
        !a->is_repeat && !*a->own_model)
        reliability_watch(&a->reliability, a->number, &a->models[0], a->found.mean[0],
                          a->found.sd[0]);
}

/* Every configuration of a small space was tried, or differs from a tried one only in what is dead.
 * The latter are what is left. */
static as_status choose_among_repeats(struct gp_ask *a, const struct search_spec *spec,
                                      const struct history *history, char why[AS_ERR_MSG_MAX],
                                      struct as_err *err)
{
    for (size_t i = 0; i < a->n_models; i++)
        surrogate_done(&a->models[i]);
    a->n_models = 0;
    as_status st = create_set(a, spec, history, 0, err);
    return st < 0 ? st : choose_point(a, why, err);
}

static as_status gp_suggest(const struct search_spec *spec, const struct history *history,
                            const json_t *state, uint64_t number, uint64_t index,
                            struct search_method_cache *cache, struct suggestion *ret,
                            struct as_err *err)
{
    AS_AUTO(cache_freep) struct search_method_cache *own = cache ? NULL : cache_create();
    AS_AUTO(ask_done)
    struct gp_ask a = {
        .cache = gp_cache(cache ? cache : own), .state = state, .number = number, .index = index};
    AS_AUTO(suggestion_done) struct suggestion s = {0};
    char why[AS_ERR_MSG_MAX] = "";
    if (!a.cache)
        return out_of_memory(err);
    as_status st = read_history(&a, spec, history, err);
    if (st < 0)
        return st;
    a.point = as_calloc(a.set->enc->n, sizeof *a.point);
    s.config = config_create(spec->space);
    if (!a.point || !s.config)
        return out_of_memory(err);
    a.trust = trust_region_read(json_object_get(state, "trust"));
    read_reliability(&a);
    if ((st = learn_influence(&a, err)) < 0)
        return st;
    st = choose_point(&a, why, err);
    if (st == AS_E_EXHAUSTED && a.set->enc->n_dead)
        st = choose_among_repeats(&a, spec, history, why, err);
    if (st < 0)
        return st;
    watch_prediction(&a);
    encoding_to_config(a.set->enc, a.point, s.config);
    if (a.is_repeat) /* to the last bit, which the places of bent numbers do not keep */
        memcpy(s.config->entries, a.set->trials[a.set->best].config->entries,
               s.config->n * sizeof *s.config->entries);
    a.config = s.config;
    st = gp_reason_write(&a, *why ? why : NULL, &s.reason, err);
    if (st < 0)
        return st;
    st = write_state(&a, &s.state, err);
    if (st < 0)
        return st;
    *ret = s;
    s = (struct suggestion){0};
    return AS_OK;
}

const struct search_method search_gp = {
    .name = "gp",
    .is_model_based = true,
    .check = sampler_method_check,
    .sample = sampler_method_sample,
    .suggest = gp_suggest,
    .explain = gp_explain,
    .cache_create = cache_create,
    .cache_free = cache_free,
    .cache_bytes = cache_bytes,
};
