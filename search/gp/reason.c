/* The reason of a suggestion: what was known, which model and acquisition chose it, and what
 * they expect. */
#include <math.h>

#include "base/json.h"
#include "search/gp/gp_priv.h"

static const char *target_word(surrogate_target t)
{
    switch (t) {
    case SURROGATE_PLAIN:
        return "plain";
    case SURROGATE_SMOOTH:
        return "smooth";
    default:
        return "warped";
    }
}

static const char *model_word(const struct gp_ask *a)
{
    return a->acquisition.n_objectives ? target_word(a->row->target) : "outcomes";
}

/* The prediction in the metric's own unit and sense. */
static json_t *prediction_to_json(const struct gp_ask *a, size_t k)
{
    const struct surrogate *m = &a->models[k];
    double mean = surrogate_back(m, a->found.mean[k]);
    double deviation = surrogate_back_deviation(m, a->found.mean[k], a->found.sd[k]);
    bool turned = k < a->acquisition.n_objectives && a->set->spec->maximize[k];
    return json_pack("{s:o, s:o}", "mean", json_number_new(turned ? -mean : mean), "deviation",
                     json_number_new(deviation));
}

static int add_predictions(const struct gp_ask *a, json_t *reason)
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

static int add_incumbent(const struct gp_ask *a, json_t *reason)
{
    const struct training_set *s = a->set;
    if (s->best == TRAINING_SET_NONE || s->spec->n_objectives > 1)
        return 0;
    const struct observation *o = &s->trials[s->best];
    return json_object_set_new(reason, "incumbent",
                               json_pack("{s:I, s:o}", "number", (json_int_t)o->number, "value",
                                         json_number_new(o->values[0])));
}

/* {"parameter", "value", "trials", "optimistic"}; the last in the metric's own sense. With
 * "crossing", all else is as in the best trial; with "own_model", a model of its trials chose. */
static int add_branch(const struct gp_ask *a, json_t *reason)
{
    const struct branch *b = &a->branch;
    const struct space_param *p = &a->set->spec->space->params[b->param];
    double optimistic = a->set->spec->maximize[0] ? -b->optimistic : b->optimistic;
    return json_object_set_new(
        reason, "branch",
        json_pack("{s:s, s:o, s:I, s:o, s:o*, s:o*}", "parameter", p->name, "value",
                  param_value_to_json(p, a->config->entries[b->param].value), "trials",
                  (json_int_t)b->n_ended + (json_int_t)b->n_pending, "optimistic",
                  isfinite(optimistic) ? json_number_new(optimistic) : json_null(), "crossing",
                  a->is_crossing ? json_true() : NULL, "own_model",
                  *a->own_model ? json_true() : NULL));
}

/* The names of the numbers that could change. */
static int add_free(const struct gp_ask *a, json_t *reason)
{
    json_t *list = json_array();
    int rc = json_object_set_new(reason, "free", list);
    for (size_t i = 0; i < a->free.n && rc == 0; i++)
        rc = json_array_append_new(
            list, json_string(a->set->spec->space->params[a->free.params[i]].name));
    return rc;
}

/* [{"parameter", "where": {choice: value}, "trials"}] of each number without effect. */
static int add_no_effect(const struct gp_ask *a, json_t *reason)
{
    const struct encoding *e = a->set->enc;
    const struct space *space = e->space;
    json_t *list = json_array();
    int rc = json_object_set_new(reason, "no_effect", list);
    for (size_t k = 0; k < e->n_dead && rc == 0; k++) {
        const struct dead_pair *p = &e->dead[k];
        const struct space_param *choice = &space->params[p->choice];
        rc = json_array_append_new(
            list,
            json_pack("{s:s, s:{s:o}, s:I}", "parameter", space->params[p->param].name, "where",
                      choice->name, param_value_to_json(choice, param_level(choice, p->level)),
                      "trials", (json_int_t)relevance_trials(&a->relevance, p)));
    }
    return rc;
}

/* [{"parameter", "rate"}] of each number on a logarithmic scale that the document does not give. */
static int add_scales(const struct gp_ask *a, json_t *reason)
{
    json_t *list = json_array();
    int rc = json_object_set_new(reason, "scales", list);
    for (size_t k = 0; k < a->bends.n_bent && rc == 0; k++)
        rc = json_array_append_new(
            list, json_pack("{s:s, s:I}", "parameter",
                            a->set->spec->space->params[a->bends.bent[k].param].name, "rate",
                            (json_int_t)a->bends.bent[k].rate));
    return rc;
}

/* The value of a number at a place; NULL: out of memory. */
static json_t *value_at(const struct gp_ask *a, size_t param, double place)
{
    const struct training_set *s = a->set;
    const struct space_param *p = &s->spec->space->params[param];
    double kept = a->point[param];
    a->point[param] = place;
    encoding_to_config(s->enc, a->point, s->scratch);
    a->point[param] = kept;
    return param_value_to_json(p, s->scratch->entries[param].value);
}

/* "part": {"parameter", "from", "to", "trials"}, and "idle": the numbers that have no effect
 * elsewhere. */
static int add_part_of_space(const struct gp_ask *a, json_t *reason)
{
    const struct space *space = a->set->spec->space;
    const struct left_part *p = &a->part;
    json_t *list = json_array();
    int rc = json_object_set_new(reason, "idle", list);
    for (size_t i = 0; i < a->idle.n && rc == 0; i++)
        rc = json_array_append_new(list, json_string(space->params[a->idle.params[i]].name));
    return rc < 0
               ? rc
               : json_object_set_new(
                     reason, "part",
                     json_pack("{s:s, s:o, s:o, s:I}", "parameter", space->params[p->param].name,
                               "from", value_at(a, p->param, p->lower), "to",
                               value_at(a, p->param, p->upper), "trials", (json_int_t)p->n_trials));
}

/* {model: {"within", "of"}} of each model that was checked: how many of its newest predictions
 * held; with "until", it has lost its turns until there are so many results. */
static int add_reliability(const struct gp_ask *a, json_t *reason)
{
    json_t *all = json_object();
    int rc = json_object_set_new(reason, "calibration", all);
    for (surrogate_target t = 0; t < RELIABILITY_MODELS && rc == 0; t++) {
        const struct reliability_record *r = &a->reliability.of[t];
        size_t n = r->lost_n ? r->lost_n : r->n;
        size_t missed = r->lost_n ? r->lost_missed : reliability_misses(r);
        if (n)
            rc = json_object_set_new(
                all, target_word(t),
                json_pack("{s:I, s:I, s:o*}", "within", (json_int_t)(n - missed), "of",
                          (json_int_t)n, "until",
                          r->lost_n ? json_integer((json_int_t)r->lost_until) : NULL));
    }
    if (rc == 0 && !json_object_size(all))
        rc = json_object_del(reason, "calibration");
    return rc;
}

/* The weight of sweep k in the mean of the objective's model. */
static double guide_weight(const struct gp_ask *a, size_t k)
{
    const struct guides *g = &a->models[0].guides;
    for (size_t i = 0; i < g->n; i++)
        if (g->sweep[i] == k)
            return g->weights[i];
    return 0;
}

/* {"sweep", "weight", "mean"} of each earlier sweep that counts. */
static int add_priors(const struct gp_ask *a, json_t *reason)
{
    const struct warm_start *w = a->set->spec->earlier;
    int rc = a->priors.params > 0
                 ? json_object_set_new(reason, "prior", json_real(a->priors.params))
                 : 0;
    for (size_t k = 0; w && k < w->n && rc == 0; k++) {
        double mean = guide_weight(a, k);
        if (!(a->priors.earlier[k] > 0) && !(mean > 0))
            continue;
        json_t *list = json_object_get(reason, "prior_sweeps");
        if (!list && json_object_set_new(reason, "prior_sweeps", list = json_array()) < 0)
            return -1;
        rc = json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "sweep", w->sweeps[k].name,
                                                   "weight", a->priors.earlier[k], "mean", mean));
    }
    return rc;
}

static const char *acquisition_words(const struct gp_ask *a)
{
    if (a->is_repeat)
        return "repeat";
    if (a->is_nearby)
        return "nearby";
    return a->is_quadratic ? "quadratic" : acquisition_name(a->acquisition.kind);
}

static int describe_model(const struct gp_ask *a, json_t *reason)
{
    const struct surrogate *m = &a->models[0];
    bool refitted = false;
    if (a->row->point == POINT_PART && add_part_of_space(a, reason) < 0)
        return -1;
    if (a->is_spread)
        return json_object_update_new(
            reason, json_pack("{s:s, s:s}", "phase", "model", "acquisition", "spread"));
    for (size_t i = 0; i < a->n_models; i++)
        refitted |= a->models[i].refitted;
    int rc = json_object_update_new(
        reason,
        json_pack("{s:s, s:s, s:o, s:s, s:I, s:o, s:{s:b, s:I}}", "phase", "model", "acquisition",
                  acquisition_words(a), "value", json_number_new(a->found.value), "model",
                  model_word(a), "candidates", (json_int_t)a->found.candidates, "runner_up",
                  isnan(a->found.runner_up) ? json_null() : json_number_new(a->found.runner_up),
                  "fit", "refitted", refitted, "rows", (json_int_t)m->fit_rows));
    if (rc == 0 && a->is_repeat)
        rc = json_object_set_new(reason, "repeat",
                                 json_integer((json_int_t)a->set->trials[a->set->best].number));
    if (rc == 0 && a->row->point == POINT_BRANCH)
        rc = add_branch(a, reason);
    else if (rc == 0 && a->row->point == POINT_BASIN && a->basin != TRAINING_SET_NONE)
        rc = json_object_set_new(reason, "basin",
                                 json_integer((json_int_t)a->set->trials[a->basin].number));
    else if (rc == 0 && a->trust.is_on && !a->free.n)
        rc = json_object_set_new(reason, "trust_region", json_real(a->trust.length));
    if (rc == 0 && a->free.n)
        rc = add_free(a, reason);
    if (rc == 0 && a->set->enc->n_dead)
        rc = add_no_effect(a, reason);
    if (rc == 0 && a->bends.n_bent)
        rc = add_scales(a, reason);
    if (rc == 0)
        rc = add_reliability(a, reason);
    if (rc == 0)
        rc = add_priors(a, reason);
    if (rc == 0 && (a->set->stagnant || a->set->crowded))
        rc = json_object_set_new(reason, "stagnant", json_true());
    return rc < 0 ? rc : add_predictions(a, reason);
}

as_status gp_reason_write(const struct gp_ask *a, const char *fallback, json_t **ret,
                          struct as_err *err)
{
    const struct training_set *s = a->set;
    JSON_AUTO reason = json_pack("{s:s, s:I, s:I, s:I}", "method", search_gp.name, "observed",
                                 (json_int_t)s->n_completed, "pending", (json_int_t)s->n_pending,
                                 "failed", (json_int_t)s->n_failed);
    int rc = reason ? add_incumbent(a, reason) : -1;
    if (rc == 0 && s->rungs)
        rc = json_object_set_new(reason, "rungs", json_integer((json_int_t)s->n_rungs));
    if (rc == 0 && a->found.is_found)
        rc = describe_model(a, reason);
    else if (rc == 0)
        rc = json_object_update_new(reason,
                                    json_pack("{s:s, s:I, s:s*}", "phase", "initial", "point",
                                              (json_int_t)a->index, "fallback", fallback));
    if (rc < 0)
        return as_fail_nomem(err);
    *ret = as_steal(reason);
    return AS_OK;
}
