/* One suggestion. Below the size of the design it takes a design point. Otherwise it fits the
 * models, takes the acquisition from the schedule, finds its best point and writes the reason and
 * the new state. If a model cannot be fitted, a Sobol point replaces the suggestion and the reason
 * names the error, because a sweep must not stop for numerical reasons. */
#include "search/gp/gp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "search/gp/caution.h"
#include "search/gp/crossing.h"
#include "search/population/design.h"
#include "search/gp/optimize.h"
#include "search/pareto/pareto.h"
#include "search/prior/trust.h"
#include "search/gp/quadratic.h"
#include "search/gp/schedule.h"
#include "search/gp/surrogate.h"
#include "search/gp/trust_region.h"
#include "search/sampling/sampler.h"

/* UCB's number of deviations, without pending trials and with this many. Pending trials shrink the
 * deviations and so already spread the suggestions. A smaller number moves each suggestion closer
 * to the best. */
#define UCB_BETA 1.8
#define UCB_BETA_PARALLEL 1.2
#define UCB_PARALLEL 4
#define LOOK 64 /* PE searches its threshold among this many best trials, predicted at once */
#define FEW_MODELS 3
#define LEAST_RESULTS 3 /* before a model is used */

struct gp_cache {
    struct surrogate_store store;
    struct gp_optimizer_work optimizer;
    struct training_places places;
};

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
    gp_optimizer_work_done(&c->optimizer);
    training_places_done(&c->places);
    free(c);
}
AS_DEFINE_FREEP(struct search_method_cache, cache_free)

static size_t cache_bytes(const struct search_method_cache *cache)
{
    const struct gp_cache *c = (const struct gp_cache *)cache;
    return sizeof *c + surrogate_store_bytes(&c->store) + gp_optimizer_work_bytes(&c->optimizer) +
           training_places_bytes(&c->places);
}

/* What one suggestion works on. */
struct ask {
    struct training_set *set;
    struct gp_cache *cache;
    const json_t *state; /* borrowed; left by the previous suggestion */
    uint64_t number, index;
    const struct schedule_row *row; /* NULL: no model is used */
    size_t n_models;
    struct surrogate models[ACQUISITION_MAX_MODELS];
    struct acquisition acquisition;
    struct gp_ehvi *ehvi;
    struct trust_region trust;
    struct branch branch; /* of a row for branches */
    bool is_quadratic;    /* the point is the quadratic's */
    bool is_crossing;     /* the best trial, moved into the branch */
    struct prior_weights priors;
    struct gp_found found;
    double *point;               /* [enc->n] */
    const struct config *config; /* that of the point; borrowed */
};

static void ask_done(struct ask *a)
{
    for (size_t i = 0; i < a->n_models; i++)
        surrogate_done(&a->models[i]);
    gp_ehvi_free(a->ehvi);
    training_set_free(a->set);
    free(a->point);
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
}

/* ---- models ---- */

static size_t max_rows(const struct ask *a)
{
    size_t n = a->set->spec->n_objectives + a->set->spec->n_outcomes;
    return n <= FEW_MODELS ? GP_MAX_ROWS : GP_MAX_ROWS_MANY;
}

static as_status add_model(struct ask *a, surrogate_target target, size_t k, struct as_err *err)
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

static void add_limit(struct ask *a, double min, double max)
{
    struct acquisition *q = &a->acquisition;
    q->limits[q->n_limits++] = (struct outcome_bound){min, max};
}

static double beta_of(const struct training_set *s)
{
    double share = fmin(1, (double)s->n_pending / UCB_PARALLEL);
    return UCB_BETA + share * (UCB_BETA_PARALLEL - UCB_BETA);
}

/* Prepare the objectives' models, then the outcomes', then that of failures. The other models do
 * not see failed trials and would continue to suggest where trials fail. */
static as_status prepare_models(struct ask *a, struct as_err *err)
{
    const struct search_spec *spec = a->set->spec;
    surrogate_target objective = a->row->plain ? SURROGATE_PLAIN : SURROGATE_WARPED;
    a->acquisition = (struct acquisition){.kind = a->row->kind, .beta = beta_of(a->set)};
    if (a->row->kind != ACQUISITION_FEASIBILITY)
        a->acquisition.n_objectives = spec->n_objectives;
    for (size_t k = 0; k < a->acquisition.n_objectives; k++) {
        as_status st = add_model(a, objective, k, err);
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
    if (!a->set->n_failed)
        return AS_OK;
    as_status st = add_model(a, SURROGATE_FAILURE, 0, err);
    if (st < 0)
        return st;
    const struct surrogate *failures = &a->models[a->n_models - 1];
    struct caution caution = caution_of(a->set, gp_model_theta(failures->model));
    add_limit(a, -INFINITY, surrogate_forward(failures, caution.threshold));
    a->acquisition.failure_weight = caution.weight;
    return AS_OK;
}

/* ---- what the acquisition compares with ---- */

/* Predict n <= LOOK trials with the first model. */
static as_status predict_trials(struct ask *a, const size_t *trials, size_t n, double *mean,
                                double *var, struct as_err *err)
{
    const struct training_set *s = a->set;
    const struct gp_model *m = a->models[0].model;
    size_t n_real = s->columns.n_real, n_cat = s->columns.n_cat;
    AS_AUTO(as_freep) double *x = as_calloc(LOOK, n_real * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(LOOK, n_cat * sizeof *z);
    struct gp_work **work = &a->cache->optimizer.predict;
    if (!x || !z || (!*work && !(*work = gp_work_create())))
        return out_of_memory(err);
    as_status st = gp_work_reserve(*work, m, LOOK, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++) {
        memcpy(x + i * n_real, s->x + trials[i] * n_real, n_real * sizeof *x);
        memcpy(z + i * n_cat, s->z + trials[i] * n_cat, n_cat * sizeof *z);
    }
    gp_predict(m, *work, &(struct gp_rows){n, x, z}, mean, var);
    return AS_OK;
}

/* Set PE's threshold: the mean of the best trial with the lowest mean - 1.8 sigma. */
static as_status set_threshold(struct ask *a, struct as_err *err)
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
 * does not determine it. The warp's values are those of the completed trials. */
static double worst_of(const struct ask *a, size_t k)
{
    const struct training_set *s = a->set;
    const double *v = gp_warp_values(a->models[k].warp);
    double worst = -INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        if (s->state[i] != OBSERVED_COMPLETED)
            continue;
        if (s->feasible[i])
            worst = fmax(worst, *v);
        v++;
    }
    return worst;
}

/* Set the value that logEI improves on: the lowest of the best result and the pending trials'
 * means. A pending trial counts as observed at its mean, so reaching that mean is no improvement.
 * Whether it meets the bounds is unknown and is ignored. */
static as_status set_best(struct ask *a, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t some[LOOK];
    double mean[LOOK], var[LOOK];
    size_t best = a->row->is_branch ? a->branch.best : s->best;
    if (best == TRAINING_SET_NONE) { /* the branch has no value yet: any will do */
        a->acquisition.best = worst_of(a, 0);
        return AS_OK;
    }
    a->acquisition.best = surrogate_forward(&a->models[0], s->costs[best]);
    if (a->row->is_branch)
        return AS_OK;
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

static as_status set_front(struct ask *a, struct as_err *err)
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

static as_status set_marks(struct ask *a, struct as_err *err)
{
    if (a->row->kind == ACQUISITION_EHVI)
        return set_front(a, err);
    if (a->row->kind == ACQUISITION_PE)
        return set_threshold(a, err);
    return a->row->kind == ACQUISITION_LOGEI ? set_best(a, err) : AS_OK;
}

/* ---- the point ---- */

/* Every second trial of a branch is a crossing, and each one of a branch that was left. */
static bool crosses(struct ask *a)
{
    const struct branch *b = &a->branch;
    size_t n = b->n_ended + b->n_pending;
    if (!b->is_revisit && n % 2 == 0)
        return false;
    return crossing_point(a->set, b, a->number, b->is_revisit || n % 4 == 1, a->point);
}

static as_status find_point(struct ask *a, struct as_err *err)
{
    size_t d = a->set->enc->n;
    AS_AUTO(as_freep) double *box = as_calloc(2 * d, sizeof *box);
    if (!box)
        return out_of_memory(err);
    struct gp_optimizer_problem p = {
        .set = a->set, .acquisition = &a->acquisition, .models = a->models, .number = a->number};
    if (a->trust.is_on && !a->row->is_branch) {
        trust_region_box(&a->trust, a->set, a->models[0].model, box, box + d);
        p.region = (struct gp_region){box, box + d, training_set_point(a->set, a->set->best)};
    }
    if (a->row->is_branch)
        p.region.branch = &a->branch;
    p.priors = a->priors.any ? &a->priors : NULL;
    if (a->row->is_branch && crosses(a)) {
        a->is_crossing = true;
        return gp_describe(&p, &a->cache->optimizer, a->point, &a->found, err);
    }
    return gp_optimize(&p, &a->cache->optimizer, a->point, &a->found, err);
}

/* If the schedule says so, use the minimum of a quadratic when it predicts best. */
static as_status try_quadratic(struct ask *a, struct as_err *err)
{
    struct gp_quadratic q;
    const struct surrogate *m = &a->models[0];
    if (!a->row->is_quadratic || a->acquisition.n_limits)
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

static as_status ask_models(struct ask *a, struct as_err *err)
{
    /* also if the models fail, because its state continues */
    trust_region_update(&a->trust, a->set);
    a->priors = trust_weights(a->set);
    as_status st = prepare_models(a, err);
    if (st < 0)
        return st;
    st = set_marks(a, err);
    if (st < 0)
        return st;
    st = try_quadratic(a, err);
    return st < 0 || a->is_quadratic ? st : find_point(a, err);
}

/* ---- the state: {"models": {name: …}, "trust": {…}} ---- */

static as_status write_state(const struct ask *a, json_t **ret, struct as_err *err)
{
    static const surrogate_target objective[] = {SURROGATE_WARPED, SURROGATE_PLAIN};
    JSON_AUTO state = json_pack("{s:{}, s:o*}", "models", "trust", trust_region_write(&a->trust));
    json_t *models = json_object_get(state, "models");
    const json_t *old = json_object_get(a->state, "models");
    int rc = state ? 0 : -1;
    if (rc == 0 && json_is_object(old))
        rc = json_object_update(models, (json_t *)old);
    for (size_t i = 0; i < a->n_models && rc == 0; i++) {
        size_t after = i - a->acquisition.n_objectives;
        bool is_objective = i < a->acquisition.n_objectives;
        struct surrogate_spec spec = {.target = is_objective ? objective[a->row->plain]
                                                             : a->models[i].target,
                                      .k = is_objective                               ? i
                                           : a->models[i].target == SURROGATE_FAILURE ? 0
                                                                                      : after};
        char name[16];
        surrogate_name(&spec, name);
        rc = json_object_set(models, name, a->models[i].state);
    }
    if (rc < 0)
        return out_of_memory(err);
    *ret = as_steal(state);
    return AS_OK;
}

/* ---- the reason ---- */

static const char *model_word(const struct ask *a)
{
    if (!a->acquisition.n_objectives)
        return "outcomes";
    return a->row->plain ? "plain" : "warped";
}

/* The prediction in the metric's own unit and sense. */
static json_t *prediction_to_json(const struct ask *a, size_t k)
{
    const struct surrogate *m = &a->models[k];
    double mean = surrogate_back(m, a->found.mean[k]);
    double deviation = surrogate_back_deviation(m, a->found.mean[k], a->found.sd[k]);
    bool turned = k < a->acquisition.n_objectives && a->set->spec->maximize[k];
    return json_pack("{s:o, s:o}", "mean", json_number_new(turned ? -mean : mean), "deviation",
                     json_number_new(deviation));
}

static int add_predictions(const struct ask *a, json_t *reason)
{
    size_t n = a->acquisition.n_objectives;
    if (n == 1)
        return json_object_set_new(reason, "predicted", prediction_to_json(a, 0));
    json_t *list = json_array();
    int rc = json_object_set_new(reason, "predicted", list);
    for (size_t k = 0; k < n && rc == 0; k++)
        rc = json_array_append_new(list, prediction_to_json(a, k));
    return rc;
}

static int add_incumbent(const struct ask *a, json_t *reason)
{
    const struct training_set *s = a->set;
    if (s->best == TRAINING_SET_NONE || s->spec->n_objectives > 1)
        return 0;
    const struct observation *o = &s->trials[s->best];
    return json_object_set_new(reason, "incumbent",
                               json_pack("{s:I, s:o}", "number", (json_int_t)o->number, "value",
                                         json_number_new(o->values[0])));
}

/* {"parameter", "value", "trials", "optimistic"}; the last in the metric's own sense. */
static int add_branch(const struct ask *a, json_t *reason)
{
    const struct branch *b = &a->branch;
    const struct space_param *p = &a->set->spec->space->params[b->param];
    double optimistic = a->set->spec->maximize[0] ? -b->optimistic : b->optimistic;
    return json_object_set_new(
        reason, "branch",
        json_pack("{s:s, s:o, s:I, s:o, s:o*}", "parameter", p->name, "value",
                  param_value_to_json(p, a->config->entries[b->param].value), "trials",
                  (json_int_t)(b->n_ended + b->n_pending), "optimistic",
                  isfinite(optimistic) ? json_number_new(optimistic) : json_null(), "crossing",
                  a->is_crossing ? json_true() : NULL));
}

static int add_priors(const struct ask *a, json_t *reason)
{
    const struct earlier *w = a->set->spec->earlier;
    int rc = a->priors.belief > 0
                 ? json_object_set_new(reason, "prior", json_real(a->priors.belief))
                 : 0;
    for (size_t k = 0; w && k < w->n && rc == 0; k++) {
        if (!(a->priors.earlier[k] > 0))
            continue;
        json_t *list = json_object_get(reason, "prior_sweeps");
        if (!list && json_object_set_new(reason, "prior_sweeps", list = json_array()) < 0)
            return -1;
        rc = json_array_append_new(list, json_pack("{s:s, s:f}", "sweep", w->sweeps[k].name,
                                                   "weight", a->priors.earlier[k]));
    }
    return rc;
}

static int describe_model(const struct ask *a, json_t *reason)
{
    const struct surrogate *m = &a->models[0];
    bool refitted = false;
    for (size_t i = 0; i < a->n_models; i++)
        refitted |= a->models[i].refitted;
    int rc = json_object_update_new(
        reason,
        json_pack("{s:s, s:s, s:o, s:s, s:I, s:o, s:{s:b, s:I}}", "phase", "model", "acquisition",
                  a->is_quadratic ? "quadratic" : acquisition_name(a->row->kind), "value",
                  json_number_new(a->found.value), "model", model_word(a), "candidates",
                  (json_int_t)a->found.candidates, "runner_up",
                  isnan(a->found.runner_up) ? json_null() : json_number_new(a->found.runner_up),
                  "fit", "refitted", refitted, "rows", (json_int_t)m->fit_rows));
    if (rc == 0 && a->row->is_branch)
        rc = add_branch(a, reason);
    else if (rc == 0 && a->trust.is_on)
        rc = json_object_set_new(reason, "trust_region", json_real(a->trust.length));
    if (rc == 0 && a->priors.any)
        rc = add_priors(a, reason);
    if (rc == 0 && (a->set->stagnant || a->set->crowded))
        rc = json_object_set_new(reason, "stagnant", json_true());
    return rc < 0 ? rc : add_predictions(a, reason);
}

/* fallback: why the models were not used, or NULL. */
static as_status write_reason(const struct ask *a, const char *fallback, json_t **ret,
                              struct as_err *err)
{
    const struct training_set *s = a->set;
    JSON_AUTO reason = json_pack("{s:s, s:I, s:I, s:I}", "method", search_gp.name, "observed",
                                 (json_int_t)s->n_completed, "pending", (json_int_t)s->n_pending,
                                 "failed", (json_int_t)s->n_failed);
    int rc = reason ? add_incumbent(a, reason) : -1;
    if (rc == 0 && a->found.is_found)
        rc = describe_model(a, reason);
    else if (rc == 0)
        rc = json_object_update_new(reason,
                                    json_pack("{s:s, s:I, s:s*}", "phase", "initial", "point",
                                              (json_int_t)a->index, "fallback", fallback));
    if (rc < 0)
        return out_of_memory(err);
    *ret = as_steal(reason);
    return AS_OK;
}

/* ---- the whole ---- */

/* Priors that the first results confirm make the rest of the design superfluous. */
static bool is_initial(const struct training_set *s)
{
    size_t size = design_size(s), results = s->n_completed + s->n_failed;
    if (s->n < size && !s->spec->initial_trials && trust_is_confirmed(s))
        return false;
    return s->n < size || results < (size < LEAST_RESULTS ? size : LEAST_RESULTS);
}

static as_status choose_row(struct ask *a, struct as_err *err)
{
    const struct training_set *s = a->set;
    bool is_found = false;
    as_status st =
        s->spec->n_objectives == 1 ? branch_choose(s, &is_found, &a->branch, err) : AS_OK;
    if (st == AS_OK)
        a->row = schedule_at(schedule_facts(s) | (is_found ? FACT_BRANCH : 0), a->index);
    return st;
}

/* Set the point, and `why` if the models failed. Never returns AS_E_NUMERIC. */
static as_status choose_point(struct ask *a, char why[AS_ERR_MSG_MAX], struct as_err *err)
{
    const struct training_set *s = a->set;
    if (s->enc->n_lengths && is_initial(s))
        return design_point(s, a->index, a->point, err);
    if (!s->enc->n_lengths) {
        snprintf(why, AS_ERR_MSG_MAX, "the space has one configuration");
    } else if (!s->n_completed) {
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

static as_status gp_suggest(const struct search_spec *spec, const struct history *history,
                            const json_t *state, uint64_t number, uint64_t index,
                            struct search_method_cache *cache, struct suggestion *ret,
                            struct as_err *err)
{
    AS_AUTO(cache_freep) struct search_method_cache *own = cache ? NULL : cache_create();
    AS_AUTO(ask_done)
    struct ask a = {
        .cache = gp_cache(cache ? cache : own), .state = state, .number = number, .index = index};
    AS_AUTO(suggestion_done) struct suggestion s = {0};
    char why[AS_ERR_MSG_MAX] = "";
    if (!a.cache)
        return out_of_memory(err);
    as_status st = training_set_create(spec, history, &a.cache->places, &a.set, err);
    if (st < 0)
        return st;
    a.point = as_calloc(a.set->enc->n, sizeof *a.point);
    s.config = config_create(spec->space);
    if (!a.point || !s.config)
        return out_of_memory(err);
    a.trust = trust_region_read(json_object_get(state, "trust"));
    st = choose_point(&a, why, err);
    if (st < 0)
        return st;
    encoding_to_config(a.set->enc, a.point, s.config);
    a.config = s.config;
    st = write_reason(&a, *why ? why : NULL, &s.reason, err);
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
    .cache_create = cache_create,
    .cache_free = cache_free,
    .cache_bytes = cache_bytes,
};
