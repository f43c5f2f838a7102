/* The sweep document: from JSON to a checked struct, and back to canonical JSON.
 *
 * Each section has one parse function. With a list of faults (base/faults.h) every section is
 * parsed, whatever is wrong with the others, and what needs several of them is checked if they are
 * right. The sections are parsed in an order in which each one finds
 * what it depends on: the method's preparation needs the space, max_trials needs the number of
 * cells of a grid, and a train document is tried with values of the space.
 *
 * The canonical document is built from the struct, not from the input. Every default is written out
 * in it, so that a later version with other defaults reads the same sweep. It is the text that is
 * stored, so it keeps the order of keys (see sweep_doc_format()). */
#include "scheduler/sweep/sweep_doc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/sweep_limits_priv.h"
#include "scheduler/sweep/sweep_metrics_priv.h"
#include "scheduler/sweep/sweep_resources_priv.h"
#include "scheduler/sweep/sweep_stopping_priv.h"
#include "scheduler/sweep/sweep_trial_priv.h"
#include "search/prior/warm_start.h"
#include "search/suggest.h"

#define MAX_DESCRIPTION 10000
#define MAX_TAGS 64
#define MAX_TAG 128

void sweep_doc_free(struct sweep_doc *d)
{
    if (!d)
        return;
    free(d->name);
    free(d->description);
    json_decref(d->tags);
    sweep_metrics_done(d);
    search_prepared_free(d->method, d->prepared); /* it borrows the space */
    warm_start_free(d->earlier);
    space_free(d->space);
    sweep_trial_done(d);
    json_decref(d->canonical);
    free(d);
}

as_status sweep_doc_no_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a sweep document");
}

static as_status copy_text(char **ret, const char *s, struct as_err *err)
{
    *ret = as_strdup(s);
    return *ret ? AS_OK : sweep_doc_no_memory(err);
}

/* ---- the parts ---- */

static as_status add_tag(const json_t *tag, size_t i, struct sweep_doc *d, struct as_err *err)
{
    size_t len = json_string_length(tag);
    char at[AS_ERR_POINTER_MAX];
    json_pointer_index("/tags", i, at);
    if (!json_is_string(tag) || len == 0 || len > MAX_TAG)
        return as_fail_at(err, AS_E_INVAL, at, "%s: expected a string of 1 to %d bytes", at,
                          MAX_TAG);
    if (json_array_append_new(d->tags, json_string(json_string_value(tag))) < 0)
        return sweep_doc_no_memory(err);
    return AS_OK;
}

static as_status parse_tags(const json_t *list, struct faults *faults, struct sweep_doc *d,
                            struct as_err *err)
{
    size_t n = json_array_size(list);
    d->tags = json_array();
    if (!d->tags)
        return sweep_doc_no_memory(err);
    if (n > MAX_TAGS)
        return as_fail_at(err, AS_E_TOO_LARGE, "/tags", "/tags: %zu tags, at most %d are allowed",
                          n, MAX_TAGS);
    for (size_t i = 0; i < n; i++) {
        as_status st = faults_note(faults, add_tag(json_array_get(list, i), i, d, err), err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status set_name(const char *name, struct sweep_doc *d, struct as_err *err)
{
    if (!name)
        return AS_OK; /* noted */
    if (!as_slug_valid(name))
        return as_fail_at(err, AS_E_INVAL, "/name",
                          "/name: found '%.70s', expected up to 63 of a-z 0-9 . _ - that begin "
                          "with a letter or a digit",
                          name);
    return copy_text(&d->name, name, err);
}

static as_status set_description(const char *description, struct sweep_doc *d, struct as_err *err)
{
    if (strlen(description) > MAX_DESCRIPTION)
        return as_fail_at(err, AS_E_TOO_LARGE, "/description",
                          "/description: %zu bytes, at most %d are allowed", strlen(description),
                          MAX_DESCRIPTION);
    return copy_text(&d->description, description, err);
}

static as_status parse_names(struct json_fields *f, struct sweep_doc *d, struct as_err *err)
{
    const char *name = NULL, *description = "";
    json_t *tags = NULL;
    as_status st = json_fields_str(f, "name", JSON_REQUIRED, &name, err);
    if (st != AS_OK)
        return st;
    if ((st = json_fields_str(f, "description", JSON_OPTIONAL, &description, err)) != AS_OK)
        return st;
    if ((st = json_fields_array(f, "tags", JSON_OPTIONAL, &tags, err)) != AS_OK)
        return st;
    if ((st = faults_note(f->faults, set_name(name, d, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(f->faults, set_description(description, d, err), err)) != AS_OK)
        return st;
    return parse_tags(tags, f->faults, d, err);
}

static as_status parse_space(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    json_t *j = NULL, *constraints = NULL, *forbidden = NULL;
    as_status st = json_fields_object(doc, "parameters", JSON_REQUIRED, &j, err);
    if (st != AS_OK)
        return st;
    if ((st = json_fields_array(doc, "parameter_constraints", JSON_OPTIONAL, &constraints, err)) !=
        AS_OK)
        return st;
    if ((st = json_fields_array(doc, "forbidden", JSON_OPTIONAL, &forbidden, err)) != AS_OK)
        return st;
    if (!j)
        return AS_OK; /* noted: there is no space */
    if ((st = space_parse_noting(j, "/parameters", doc->faults, &d->space, err)) != AS_OK)
        return st;
    return space_parse_rules(d->space, j, constraints, forbidden, doc->faults, err);
}

/* Is any configuration possible? A constraint that excludes all of them is an error of the
 * document, so AS_E_UNSUPPORTED of the search becomes AS_E_INVAL. */
static as_status check_possible(struct sweep_doc *d, struct as_err *err)
{
    struct search_spec spec;
    as_status st =
        search_prepare(d->method, d->space, "/parameters", &d->prepared, &d->n_listed, err);
    if (st == AS_OK) {
        sweep_doc_search_spec(d, &spec);
        st = search_check(&spec, err);
    }
    if (st != AS_E_UNSUPPORTED)
        return st;
    if (err)
        err->code = AS_E_INVAL;
    return AS_E_INVAL;
}

/* Earlier sweeps have one order of trials, and a method that learns uses it. */
static as_status read_earlier(struct json_fields *f, struct sweep_doc *d, struct as_err *err)
{
    as_status st = warm_start_parse(f, d->space, &d->earlier, err);
    if (st != AS_OK || !d->earlier)
        return st;
    if (!d->method->is_model_based)
        return as_fail_at(
            err, AS_E_INVAL, "/search/prior",
            "/search/prior: the method %s learns from no results; leave prior out, or "
            "choose another method",
            d->method->name);
    if (d->n_objectives > 1)
        return as_fail_at(err, AS_E_INVAL, "/search/prior",
                          "/search/prior: it serves sweeps of one metric; this one has %zu",
                          d->n_objectives);
    return AS_OK;
}

static as_status read_search(struct json_fields *f, struct sweep_doc *d, struct as_err *err)
{
    const char *method = NULL;
    int64_t initial = 0, seed = (int64_t)d->seed;
    as_status st = json_fields_str(f, "method", JSON_OPTIONAL, &method, err);
    if (st != AS_OK)
        return st;
    if ((st = json_fields_i64(f, "seed", JSON_OPTIONAL, 0, SWEEP_MAX_SEED, &seed, err)) != AS_OK)
        return st;
    if ((st = json_fields_i64(f, "initial_trials", JSON_OPTIONAL, 1, SWEEP_MAX_TRIALS, &initial,
                              err)) != AS_OK)
        return st;
    d->seed = (uint64_t)seed;
    d->initial_trials = (uint64_t)initial;
    if (method &&
        (st = json_fields_note(f, search_method_parse(method, "/search/method", &d->method, err),
                               err)) != AS_OK)
        return st;
    st = json_fields_note(f, read_earlier(f, d, err), err);
    return st != AS_OK ? st : json_fields_end(f, err);
}

/* `parameters` and `search`. What they mean together is checked if nothing is wrong with them. */
static as_status parse_search(struct json_fields *doc, uint64_t default_seed, struct sweep_doc *d,
                              struct as_err *err)
{
    struct json_fields f;
    json_t *j = NULL;
    size_t before = doc->faults ? doc->faults->n : 0;
    d->seed = default_seed & (uint64_t)SWEEP_MAX_SEED;
    as_status st = faults_note(doc->faults, parse_space(doc, d, err), err);
    if (st != AS_OK)
        return st;
    if ((st = search_method_parse(NULL, "", &d->method, err)) != AS_OK) /* the default */
        return st;
    if ((st = json_fields_object(doc, "search", JSON_OPTIONAL, &j, err)) != AS_OK)
        return st;
    if (j) {
        st = json_fields_under(&f, doc, j, "/search", err);
        if (st == AS_OK)
            st = read_search(&f, d, err);
        if ((st = faults_note(doc->faults, st, err)) != AS_OK)
            return st;
    }
    if (doc->faults && doc->faults->n > before)
        return AS_OK;
    st = check_possible(d, err);
    d->is_searchable = st == AS_OK;
    return st;
}

static as_status settle_max_trials(struct sweep_doc *d, struct as_err *err)
{
    struct sweep_limits *l = &d->limits;
    if (l->max_trials == 0 && !d->method->is_enumeration)
        return as_fail_at(err, AS_E_INVAL, "/limits/max_trials",
                          "/limits/max_trials is missing; only grid search knows its own end");
    if (d->method->is_enumeration && (l->max_trials == 0 || (uint64_t)l->max_trials > d->n_listed))
        l->max_trials = (int64_t)d->n_listed;
    return AS_OK;
}

static as_status parse_limits(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    struct json_fields f;
    json_t *j = NULL;
    d->limits = sweep_limits_default;
    as_status st = json_fields_object(doc, "limits", JSON_OPTIONAL, &j, err);
    if (st < 0)
        return st;
    if (!j && !json_fields_lack(doc, "limits"))
        return AS_OK; /* noted */
    if (j) {
        st = json_fields_under(&f, doc, j, "/limits", err);
        if (st == AS_OK)
            st = faults_note(doc->faults, sweep_limits_read(&f, &d->limits, err), err);
        if (st != AS_OK)
            return st;
    }
    if ((st = faults_note(doc->faults, sweep_limits_check(d, err), err)) != AS_OK)
        return st;
    if (doc->faults && faults_find(doc->faults, "/search/method") < doc->faults->n)
        return AS_OK;                 /* it may have been meant to be grid */
    return settle_max_trials(d, err); /* adds nothing to a fault of the field itself */
}

bool sweep_trial_is_unclear(const struct json_fields *doc, const struct sweep_doc *d)
{
    return d->trial.kind == TRIAL_NONE && !json_fields_lack(doc, "trial");
}

static as_status parse_ensemble(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    struct json_fields f;
    json_t *j = NULL;
    struct ensemble_options o = {.size = ENSEMBLE_DEFAULT_SIZE};
    as_status st = json_fields_any(doc, "ensemble", JSON_OPTIONAL, &j, err);
    if (st < 0)
        return st;
    if (d->trial.kind == TRIAL_NONE &&
        !sweep_trial_is_unclear(doc, d)) /* nobody uploads predictions: no ensemble */
        return !j || json_is_false(j)
                   ? AS_OK
                   : as_fail_at(err, AS_E_INVAL, "/ensemble",
                                "/ensemble: it needs the predictions of trials that runners run; "
                                "a sweep without trial has none");
    if (j && !json_is_boolean(j)) {
        st = json_fields_under(&f, doc, j, "/ensemble", err);
        if (st != AS_OK)
            return st;
        if ((st = ensemble_options_parse(&f, &o, err)) != AS_OK)
            return st;
        if ((st = json_fields_end(&f, err)) != AS_OK)
            return st;
    }
    o.size = json_is_false(j) ? 0 : o.size;
    d->ensemble = o;
    return AS_OK;
}

static as_status parse_trial(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    json_t *j = NULL;
    d->trial.kind = TRIAL_NONE;
    as_status st = json_fields_object(doc, "trial", JSON_OPTIONAL, &j, err);
    return st < 0 || !j ? st : sweep_trial_parse(doc, j, d, err);
}

/* ---- the canonical document ---- */

static json_t *search_to_json(const struct sweep_doc *d)
{
    JSON_AUTO j = json_pack("{s:s, s:I}", "method", d->method->name, "seed", (json_int_t)d->seed);
    int bad = 0;
    if (d->initial_trials)
        bad = json_object_set_new(j, "initial_trials", json_integer((json_int_t)d->initial_trials));
    if (d->earlier)
        bad |= json_object_set(j, "prior", d->earlier->canonical);
    return bad ? NULL : as_steal(j);
}

static json_t *doc_to_json(const struct sweep_doc *d)
{
    JSON_AUTO j = json_object();
    int bad = json_object_set_new(j, "name", json_string(d->name));
    bad |= json_object_set_new(j, "description", json_string(d->description));
    bad |= json_object_set(j, "tags", d->tags);
    bad |= sweep_metrics_to_json(d, j);
    bad |= json_object_set_new(j, "parameters", space_to_json(d->space));
    if (d->space->n_constraints)
        bad |= json_object_set_new(j, "parameter_constraints", space_constraints_to_json(d->space));
    if (d->space->n_forbidden)
        bad |= json_object_set_new(j, "forbidden", space_forbidden_to_json(d->space));
    bad |= json_object_set_new(j, "search", search_to_json(d));
    bad |= json_object_set_new(j, "limits", sweep_limits_to_json(&d->limits));
    if (d->stopping.method != STOP_NONE)
        bad |= json_object_set_new(j, "early_stopping", sweep_stopping_to_json(d));
    if (d->trial.kind != TRIAL_NONE)
        bad |= json_object_set_new(j, "trial", sweep_trial_to_json(&d->trial));
    bad |= sweep_resources_to_json(d, j);
    bad |= json_object_set_new(j, "ensemble", ensemble_options_to_json(&d->ensemble));
    return bad ? NULL : as_steal(j);
}

void sweep_doc_search_spec(const struct sweep_doc *d, struct search_spec *ret)
{
    *ret = (struct search_spec){
        .space = d->space,
        .method = d->method,
        .seed = d->seed,
        .n_objectives = d->n_objectives,
        .n_outcomes = d->n_outcomes,
        .initial_trials = d->initial_trials,
        .max_step = d->stopping.method == STOP_NONE ? 0 : (double)d->stopping.max_steps,
        .earlier = d->earlier,
        .prepared = d->prepared};
    for (size_t i = 0; i < d->n_objectives; i++)
        ret->maximize[i] = d->objectives[i].maximize;
    ret->is_exact = d->objectives[0].is_exact;
    for (size_t i = 0; i < d->n_outcomes; i++)
        ret->outcomes[i] =
            (struct outcome_bound){.min = d->outcomes[i].min, .max = d->outcomes[i].max};
}

char *sweep_doc_format(const struct sweep_doc *d)
{
    return json_format_pretty(d->canonical);
}

static as_status parse_sections(struct json_fields *f, uint64_t default_seed, struct sweep_doc *d,
                                struct as_err *err)
{
    struct faults *faults = f->faults;
    as_status st = faults_note(faults, parse_names(f, d, err), err);
    if (st != AS_OK)
        return st;
    if ((st = sweep_metrics_parse(f, d, err)) != AS_OK)
        return st;
    if ((st = faults_note(faults, parse_search(f, default_seed, d, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(faults, parse_limits(f, d, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(faults, parse_trial(f, d, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(faults, sweep_stopping_parse(f, d, err), err)) != AS_OK)
        return st;
    bool stops = json_object_get(f->obj, "early_stopping") != NULL;
    if ((st = faults_note(faults, sweep_limits_check_steps(d, stops, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(faults, sweep_resources_parse(f, d, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(faults, parse_ensemble(f, d, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(faults, json_fields_end(f, err), err)) != AS_OK)
        return st;
    return faults_note(faults, sweep_trial_check_train(d, f, err), err);
}

as_status sweep_doc_parse_noting(const json_t *doc, uint64_t default_seed, struct faults *faults,
                                 struct sweep_doc **ret, struct as_err *err)
{
    struct json_fields f;
    struct as_err own;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = as_calloc(1, sizeof *d);
    if (!d)
        return sweep_doc_no_memory(err);
    err = err ? err : &own; /* a fault travels through it to the list */
    as_status st = json_fields_init(&f, doc, "", err);
    f.faults = faults;
    if (st == AS_OK)
        st = parse_sections(&f, default_seed, d, err);
    st = faults_note(faults, st, err);
    if (faults && faults->n > 0)
        return faults_first(faults, err);
    if (st != AS_OK)
        return st;
    d->canonical = doc_to_json(d);
    if (!d->canonical)
        return sweep_doc_no_memory(err);
    *ret = as_steal(d);
    return AS_OK;
}

as_status sweep_doc_parse(const json_t *doc, uint64_t default_seed, struct sweep_doc **ret,
                          struct as_err *err)
{
    return sweep_doc_parse_noting(doc, default_seed, NULL, ret, err);
}
