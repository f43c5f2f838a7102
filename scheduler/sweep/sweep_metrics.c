/* The metrics of a sweep: objectives and outcome constraints.
 *
 * A document gives its objectives as `metric` (one) or `metrics` (two or more). Both become the
 * same list, and the canonical document uses the form that fits the number, so that a document is
 * equal to its canonical form. A constraint here bounds a result; constraints on parameters are in
 * `parameter_constraints`. Authors confuse the two, so the error for a string names the other
 * field. */
#include "scheduler/sweep/sweep_metrics_priv.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/metric_name.h"

#define METRICS_AT "/metrics"
#define CONSTRAINTS_AT "/constraints"

static const char *const goal_words[] = {"minimize", "maximize", NULL};
static const char *const noise_words[] = {"auto", "none", NULL};

void sweep_metrics_done(struct sweep_doc *d)
{
    for (size_t i = 0; i < d->n_objectives; i++)
        free(d->objectives[i].name);
    for (size_t i = 0; i < d->n_outcomes; i++)
        free(d->outcomes[i].metric);
}

static as_status check_metric_name(const char *name, const char *pointer, const char *field,
                                   struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, field, at);
    if (!metric_name_valid(name))
        return as_fail_at(err, AS_E_INVAL, at, "%s: found '%.70s', expected " METRIC_NAME_RULE, at,
                          name);
    if (strcmp(name, "step") == 0)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: 'step' numbers the measurements and is no metric", at);
    return AS_OK;
}

static as_status copy_metric_name(const char *name, char **ret, struct as_err *err)
{
    *ret = as_strdup(name);
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory for a sweep document");
}

static as_status check_objective(const struct sweep_doc *d, const char *name, const char *pointer,
                                 struct as_err *err)
{
    for (size_t i = 0; i < d->n_objectives; i++) {
        if (strcmp(d->objectives[i].name, name) == 0)
            return as_fail_at(err, AS_E_INVAL, pointer, "%s: the metric '%.64s' appears twice",
                              pointer, name);
    }
    return AS_OK;
}

/* Add {name, goal}, which is at `pointer`, as the next objective; the only one may have `noise`. */
static as_status add_objective(const json_t *j, const char *pointer, bool is_only,
                               struct faults *faults, struct sweep_doc *d, struct as_err *err)
{
    struct json_fields f;
    struct sweep_objective *o = &d->objectives[d->n_objectives];
    const char *name = NULL;
    int goal = 0, noise = 0;
    as_status st = json_fields_init(&f, j, pointer, err);
    f.faults = faults;
    if (st != AS_OK)
        return st;
    if ((st = json_fields_str(&f, "name", JSON_REQUIRED, &name, err)) != AS_OK)
        return st;
    if ((st = json_fields_word(&f, "goal", JSON_REQUIRED, goal_words, &goal, err)) != AS_OK)
        return st;
    if (is_only &&
        (st = json_fields_word(&f, "noise", JSON_OPTIONAL, noise_words, &noise, err)) != AS_OK)
        return st;
    if (name &&
        (st = json_fields_note(&f, check_metric_name(name, pointer, "name", err), err)) != AS_OK)
        return st;
    if ((st = json_fields_end(&f, err)) != AS_OK)
        return st;
    assert(name); /* json_fields_end() refuses a document without it */
    if ((st = check_objective(d, name, pointer, err)) != AS_OK)
        return st;
    o->maximize = goal == 1;
    o->is_exact = noise == 1;
    st = copy_metric_name(name, &o->name, err);
    if (st != AS_OK)
        return st;
    d->n_objectives++;
    return AS_OK;
}

static as_status parse_metrics(const json_t *list, struct faults *faults, struct sweep_doc *d,
                               struct as_err *err)
{
    size_t n = json_array_size(list);
    if (n < 2 || n > SEARCH_MAX_OBJECTIVES)
        return as_fail_at(err, AS_E_INVAL, METRICS_AT,
                          METRICS_AT ": %zu metrics, expected 2 to %d; for one use metric", n,
                          SEARCH_MAX_OBJECTIVES);
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(METRICS_AT, i, at);
        as_status st = add_objective(json_array_get(list, i), at, false, faults, d, err);
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status parse_objectives(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    json_t *one = NULL, *list = NULL;
    as_status st = json_fields_object(doc, "metric", JSON_OPTIONAL, &one, err);
    if (st != AS_OK)
        return st;
    if ((st = json_fields_array(doc, "metrics", JSON_OPTIONAL, &list, err)) != AS_OK)
        return st;
    if (one && list)
        return as_fail_at(err, AS_E_INVAL, METRICS_AT,
                          METRICS_AT ": give either metric or metrics, not both");
    if (json_fields_lack(doc, "metric") && json_fields_lack(doc, "metrics"))
        return as_fail_at(err, AS_E_INVAL, "/metric",
                          "/metric is missing; expected {name: …, goal: minimize or maximize}");
    if (one)
        return add_objective(one, "/metric", true, doc->faults, d, err);
    return list ? parse_metrics(list, doc->faults, d, err) : AS_OK;
}

static as_status check_outcome(const struct sweep_doc *d, const struct sweep_outcome *o,
                               const char *name, const char *pointer, struct as_err *err)
{
    if (isinf(o->min) && isinf(o->max))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected min, max or both", pointer);
    if (o->min > o->max)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: min is above max", pointer);
    for (size_t i = 0; i < d->n_outcomes; i++) {
        if (strcmp(d->outcomes[i].metric, name) == 0)
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: the metric '%.64s' appears twice; give min and max together",
                              pointer, name);
    }
    return AS_OK;
}

/* Add {metric, min, max}, which is at `pointer`, as the next outcome constraint. */
static as_status add_outcome(const json_t *j, const char *pointer, struct faults *faults,
                             struct sweep_doc *d, struct as_err *err)
{
    const double any = 1e300;
    struct json_fields f;
    struct sweep_outcome *o = &d->outcomes[d->n_outcomes];
    const char *name = NULL;
    *o = (struct sweep_outcome){.min = -INFINITY, .max = INFINITY};
    if (json_is_string(j))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found a string, expected {metric: …, max: …}; rules for "
                          "parameters go to parameter_constraints",
                          pointer);
    as_status st = json_fields_init(&f, j, pointer, err);
    f.faults = faults;
    if (st != AS_OK)
        return st;
    if ((st = json_fields_str(&f, "metric", JSON_REQUIRED, &name, err)) != AS_OK)
        return st;
    if ((st = json_fields_double(&f, "min", JSON_OPTIONAL, -any, any, &o->min, err)) != AS_OK)
        return st;
    if ((st = json_fields_double(&f, "max", JSON_OPTIONAL, -any, any, &o->max, err)) != AS_OK)
        return st;
    if (name &&
        (st = json_fields_note(&f, check_metric_name(name, pointer, "metric", err), err)) != AS_OK)
        return st;
    if ((st = json_fields_end(&f, err)) != AS_OK)
        return st;
    assert(name); /* as above */
    if ((st = check_outcome(d, o, name, pointer, err)) != AS_OK)
        return st;
    st = copy_metric_name(name, &o->metric, err);
    if (st != AS_OK)
        return st;
    d->n_outcomes++;
    return AS_OK;
}

static as_status parse_outcomes(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(doc, "constraints", JSON_OPTIONAL, &list, err);
    if (st != AS_OK)
        return st;
    if (json_array_size(list) > SEARCH_MAX_OUTCOMES)
        return as_fail_at(err, AS_E_TOO_LARGE, CONSTRAINTS_AT,
                          CONSTRAINTS_AT ": %zu constraints, at most %d are allowed",
                          json_array_size(list), SEARCH_MAX_OUTCOMES);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(CONSTRAINTS_AT, i, at);
        st = add_outcome(json_array_get(list, i), at, doc->faults, d, err);
        if ((st = faults_note(doc->faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status sweep_metrics_parse(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    as_status st = faults_note(doc->faults, parse_objectives(doc, d, err), err);
    if (st != AS_OK)
        return st;
    if ((st = faults_note(doc->faults, parse_outcomes(doc, d, err), err)) != AS_OK)
        return st;
    d->metric = d->objectives[0].name;
    d->maximize = d->objectives[0].maximize;
    return AS_OK;
}

/* ---- the canonical fields ---- */

static json_t *objective_to_json(const struct sweep_objective *o)
{
    return json_pack("{s:s, s:s, s:s*}", "name", o->name, "goal", goal_words[o->maximize], "noise",
                     o->is_exact ? noise_words[1] : NULL);
}

static json_t *outcome_to_json(const struct sweep_outcome *o)
{
    JSON_AUTO j = json_object();
    int bad = json_object_set_new(j, "metric", json_string(o->metric));
    if (isfinite(o->min))
        bad |= json_object_set_new(j, "min", json_real(o->min));
    if (isfinite(o->max))
        bad |= json_object_set_new(j, "max", json_real(o->max));
    return bad ? NULL : as_steal(j);
}

int sweep_metrics_to_json(const struct sweep_doc *d, json_t *j)
{
    if (d->n_objectives == 1) {
        if (json_object_set_new(j, "metric", objective_to_json(&d->objectives[0])) < 0)
            return -1;
    } else {
        JSON_AUTO list = json_array();
        int bad = 0;
        for (size_t i = 0; i < d->n_objectives; i++)
            bad |= json_array_append_new(list, objective_to_json(&d->objectives[i]));
        if (bad | json_object_set(j, "metrics", list))
            return -1;
    }
    if (d->n_outcomes == 0)
        return 0;
    JSON_AUTO list = json_array();
    int bad = 0;
    for (size_t i = 0; i < d->n_outcomes; i++)
        bad |= json_array_append_new(list, outcome_to_json(&d->outcomes[i]));
    return bad | json_object_set(j, "constraints", list);
}
