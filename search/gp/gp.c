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
#include "search/population/design.h"
#include "search/sampling/sampler.h"

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
    st = gp_set_expected(a, err);
    if (st == AS_OK)
        st = gp_set_marks(a, err);
    return st < 0 ? st : gp_find_point(a, err);
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
    return json_number_get(json_array_get(gp_state_theta(a, model), a->set->enc->n_lengths + 1), &v)
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
    size_t lead = leading_choice(s, gp_state_theta(a, "w0"));
    as_status st =
        s->spec->n_objectives == 1 ? branch_choose(s, lead, &is_found, &a->branch, err) : AS_OK;
    if (st == AS_OK)
        st = part_choose(s, &a->idle, &a->cache->store.fit, &has_part, &a->part, err);
    bool has_basin = s->crowded && basin_choose(s, &a->basin);
    unsigned lost = schedule_lost(reliability_lost(&a->reliability), s->repeats.noise,
                                  noise_of(a, "w0"), turn_of(a));
    if (st == AS_OK)
        a->row = schedule_at(schedule_facts(s) | (is_found ? FACT_BRANCH : 0) |
                                 (is_found && a->branch.is_own && s->stalled ? FACT_VALUE : 0) |
                                 (has_basin ? FACT_BASIN : 0) | (has_part ? FACT_PART : 0) |
                                 (is_in_doubt(a) ? FACT_DOUBT : 0),
                             lost, turn_of(a));
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
    st = relevance_learn(a->set, gp_state_theta(a, "w0"), &a->cache->store.fit, r, &changed, err);
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
        return as_fail_nomem(err);
    as_status st = read_history(&a, spec, history, err);
    if (st < 0)
        return st;
    a.point = as_calloc(a.set->enc->n, sizeof *a.point);
    s.config = config_create(spec->space);
    if (!a.point || !s.config)
        return as_fail_nomem(err);
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
    st = gp_state_write(&a, &s.state, err);
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
