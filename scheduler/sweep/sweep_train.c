/* What the built-in trainer would refuse of a sweep document, found before a trial runs.
 *
 * The product of all values is too large to try. So each parameter is tried alone: at each of its
 * choices or at both ends, while the others have their first value. If the space forbids that
 * combination, the others are drawn at random, up to SAMPLE_ROUNDS times. An error that needs two
 * values together is not found here; such a trial fails with the trainer's message. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/template.h"
#include "model/document/train_spec.h"
#include "scheduler/sweep/sweep_resources_priv.h"
#include "scheduler/sweep/sweep_stopping_priv.h"
#include "scheduler/sweep/sweep_trial_priv.h"

#define TRAIN_AT "/trial/train"
#define RANKS_AT "/resources/ranks"
#define SAMPLE_ROUNDS 200

static as_status add_dataset(struct sweep_doc *d, const char *name, struct as_err *err)
{
    for (size_t i = 0; i < d->n_datasets; i++)
        if (strcmp(d->datasets[i], name) == 0)
            return AS_OK;
    as_status st = as_grow(&d->datasets, d->n_datasets + 1, sizeof *d->datasets, err);
    if (st < 0)
        return st;
    char *copy = as_strdup(name);
    if (!copy)
        return sweep_doc_no_memory(err);
    d->datasets[d->n_datasets++] = copy;
    return AS_OK;
}

static as_status refuse_metric(const char *name, const char *pointer, const char *field,
                               dataset_task task, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(pointer, field, at);
    if (train_spec_can_report(task, name))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: trial.train reports '%s' when its field metrics lists it", at, name);
    if (as_starts_with(name, "test_"))
        return as_fail_at(
            err, AS_E_INVAL, at,
            "%s: '%s' would choose by the test rows, and then they say nothing of what "
            "was chosen: no search sees them; expected a metric of held-out rows, "
            "val_%s",
            at, name, name + strlen("test_"));
    AS_AUTO(str_done) struct str list = {0};
    const char *const *names = train_spec_metrics(task);
    for (size_t i = 0; names[i]; i++)
        str_printf(&list, "%s%s", i ? ", " : "", names[i]);
    return as_fail_at(err, AS_E_INVAL, at, "%s: trial.train never reports '%s'; it reports %s", at,
                      name, str_cstr(&list));
}

/* The trainer reports no times, because its reports are the same on every machine. The server
 * records this one once, when a trial completes, so nothing at a rung can be judged by it. */
static as_status check_step_seconds(const struct sweep_doc *d, bool is_first, const char *at,
                                    struct as_err *err)
{
    if (!d->is_gang)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: '" SWEEP_STEP_SECONDS "' is measured in trials with ranks; expected "
                          "resources.ranks",
                          at);
    if (is_first)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: '" SWEEP_STEP_SECONDS "' is a cost beside a metric of the model; "
                          "expected that metric first",
                          at);
    if (d->stopping.method != STOP_NONE)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: '" SWEEP_STEP_SECONDS "' is known when a trial completes; expected "
                          "no early_stopping beside it",
                          at);
    return AS_OK;
}

as_status sweep_doc_check_metrics(const struct sweep_doc *d, const struct train_spec *spec,
                                  dataset_task task, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX] = "/metric", field[AS_ERR_POINTER_MAX];
    as_status st = AS_OK;
    task = train_spec_task(spec, task);
    for (size_t i = 0; i < d->n_objectives; i++) {
        if (d->n_objectives > 1)
            json_pointer_index("/metrics", i, at);
        const char *name = d->objectives[i].name;
        if (as_streq(name, SWEEP_STEP_SECONDS)) {
            json_pointer_child(at, "name", field);
            if ((st = check_step_seconds(d, i == 0, field, err)) != AS_OK)
                return st;
            continue;
        }
        bool asked = d->n_objectives == 1; /* a sweep's only metric counts as requested */
        if (!(asked ? train_spec_can_report(task, name) : train_spec_reports(spec, task, name)))
            return refuse_metric(d->objectives[i].name, at, "name", task, err);
    }
    for (size_t i = 0; i < d->n_outcomes; i++) {
        json_pointer_index("/constraints", i, at);
        if (as_streq(d->outcomes[i].metric, SWEEP_STEP_SECONDS)) {
            json_pointer_child(at, "metric", field);
            if ((st = check_step_seconds(d, false, field, err)) != AS_OK)
                return st;
            continue;
        }
        if (!train_spec_reports(spec, task, d->outcomes[i].metric))
            return refuse_metric(d->outcomes[i].metric, at, "metric", task, err);
    }
    return AS_OK;
}

/* Trees and neighbours train in one process, which is no rank. */
static as_status check_trees(const struct sweep_doc *d, const struct train_spec *spec,
                             struct as_err *err)
{
    if (!d->is_gang || train_model_takes_ranks(&spec->model))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, TRAIN_AT "/model/kind",
                      TRAIN_AT
                      "/model/kind: found %s, which trains in one process; expected a kind "
                      "of network, or no resources.ranks",
                      train_model_name(&spec->model));
}

/* The trainer without ranks has no optimizer that looks at all rows several times a step. */
static as_status check_lbfgs(const struct sweep_doc *d, const struct train_spec *spec,
                             struct as_err *err)
{
    if (d->is_gang || !train_spec_is_lbfgs(spec))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, TRAIN_AT "/optimizer/kind",
                      TRAIN_AT "/optimizer/kind: found lbfgs, which is for ranks; expected "
                               "resources.ranks: 1 or more");
}

static as_status check_cocoa(const struct sweep_doc *d, const struct train_spec *spec,
                             struct as_err *err)
{
    if (d->is_gang || !train_spec_is_cocoa(spec))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, TRAIN_AT "/model/solver",
                      TRAIN_AT "/model/solver: found cocoa, which is for ranks; expected "
                               "resources.ranks: 1 or more");
}

/* Clusters of different models are not the same, so nothing combines them. */
static as_status check_kmeans(struct sweep_doc *d, const struct train_spec *spec,
                              struct as_err *err)
{
    const struct ensemble_options *o = &d->ensemble;
    bool asked = o->method != ENSEMBLE_GREEDY || o->non_negative || o->calibrate ||
                 (o->size != 0 && o->size != ENSEMBLE_DEFAULT_SIZE);
    if (!train_model_is_kmeans(&spec->model))
        return AS_OK;
    if (asked)
        return as_fail_at(err, AS_E_INVAL, "/ensemble",
                          "/ensemble: found one with the kind kmeans, expected none: clusters of "
                          "different models are not the same");
    d->ensemble.size = 0;
    return AS_OK;
}

/* What the parser of the trainer finds in `train`, a template that was applied. Faults of the
 * parser are noted in found, those of the sweep's metrics in faults. */
static as_status parse_applied(struct sweep_doc *d, const json_t *train, int64_t ranks,
                               struct faults *found, struct faults *faults, struct as_err *err)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    as_status st = train_spec_parse_noting(train, TRAIN_AT, found, &spec, err);
    if (st != AS_OK)
        return st;
    if (found->n == 0)
        st = faults_note(found, check_trees(d, &spec, err), err);
    if (st == AS_OK && found->n == 0)
        st = faults_note(found, check_lbfgs(d, &spec, err), err);
    if (st == AS_OK && found->n == 0)
        st = faults_note(found, check_cocoa(d, &spec, err), err);
    if (st == AS_OK && found->n == 0)
        st = faults_note(found, check_kmeans(d, &spec, err), err);
    if (st == AS_OK && ranks > 1 && found->n == 0)
        st =
            faults_note(found, distributed_check_ranks(&spec, ranks, RANKS_AT, TRAIN_AT, err), err);
    if (st != AS_OK || (st = add_dataset(d, spec.dataset, err)) != AS_OK)
        return st;
    st = faults_note(faults, sweep_doc_check_metrics(d, &spec, DATASET_TASK_AUTO, err), err);
    return st != AS_OK || found->n > 0
               ? st
               : faults_note(found, sweep_stopping_check_train(d, &spec, err), err);
}

/* Note the faults of a sample with the value that was tried. */
static as_status note_sample(const struct faults *found, const char *name, const char *value,
                             struct faults *faults, struct as_err *err)
{
    for (size_t i = 0; i < found->n; i++) {
        *err = found->list[i];
        as_status st = err->code;
        if (name)
            st = as_err_prefix(err, st, "when %s is %.60s", name, value ? value : "so");
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

/* `varied` is the parameter whose value is tried; the message names it. -1: none. */
static as_status check_sample(struct sweep_doc *d, const struct config *c, int varied,
                              struct faults *faults, struct as_err *err)
{
    JSON_AUTO params = config_to_json(d->space, c);
    JSON_AUTO train = NULL;
    AS_AUTO(faults_done) struct faults found = {0};
    if (!params)
        return sweep_doc_no_memory(err);
    as_status st = template_apply(d->trial.train, params, &train, err);
    if (st < 0)
        return st;
    st = parse_applied(d, train, sweep_resources_ranks(d, c), &found, faults, err);
    if (found.n == 0)
        return st;
    const char *name = varied < 0 ? NULL : d->space->params[varied].name;
    AS_AUTO(as_freep) char *value = name ? json_format(json_object_get(params, name)) : NULL;
    return note_sample(&found, name, value, faults, err);
}

static union param_value value_at(const struct space_param *p, uint64_t k)
{
    if (param_is_choice(p))
        return (union param_value){.choice = (size_t)k};
    return param_decode(p, k ? 1 : 0);
}

/* Set parameter i to its k-th sample and activate it. The others get their first value, or, if
 * round > 0, a random one. */
static void set_sample(const struct space *s, size_t i, uint64_t k, uint64_t round,
                       struct config *c)
{
    struct rng r;
    rng_init(&r, 0, round);
    for (size_t j = 0; j < s->n; j++)
        c->entries[j].value =
            round ? param_decode(&s->params[j], rng_uniform(&r)) : value_at(&s->params[j], 0);
    c->entries[i].value = value_at(&s->params[i], k);
    space_activate(s, i, c);
    config_settle(s, c);
}

/* Check parameter i at each of its choices, or at both ends, in combinations that the space allows.
 * A sample is skipped if no draw finds an allowed combination: it may never run. */
static as_status check_parameter(struct sweep_doc *d, size_t i, struct faults *faults,
                                 struct as_err *err)
{
    const struct space_param *p = &d->space->params[i];
    uint64_t n = param_is_choice(p) ? p->n_values : 2;
    AS_AUTO(config_freep) struct config *c = config_create(d->space);
    if (!c)
        return sweep_doc_no_memory(err);
    for (uint64_t k = 0; k < n; k++) {
        uint64_t round = 0;
        do
            set_sample(d->space, i, k, round, c);
        while (!space_allows(d->space, c) && ++round < SAMPLE_ROUNDS);
        if (round == SAMPLE_ROUNDS)
            continue;
        as_status st = check_sample(d, c, (int)i, faults, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* Can the value of parameter i change the document, by its name or through a condition, or the
 * ranks? */
static bool reaches_document(const struct sweep_doc *d, const json_t *names, size_t i)
{
    const struct space *s = d->space;
    if (s->params[i].is_parent || (d->searches_ranks && d->ranks_param == i))
        return true;
    for (size_t k = 0; k < json_array_size(names); k++)
        if (strcmp(json_string_value(json_array_get(names, k)), s->params[i].name) == 0)
            return true;
    return false;
}

/* Does a string of the tree name a parameter that the space lacks? */
static bool names_lacking(const struct sweep_doc *d, const json_t *tree)
{
    JSON_AUTO names = NULL;
    if (template_names(tree, &names, NULL) != AS_OK)
        return true; /* a wrong reference, which was noted */
    for (size_t i = 0; i < json_array_size(names); i++)
        if (!d->space || space_find(d->space, json_string_value(json_array_get(names, i))) < 0)
            return true;
    return false;
}

/* Remove the fields, and the fields of sections, whose value needs a parameter that the space
 * lacks. *ret: were there any? */
static as_status remove_lacking(const struct sweep_doc *d, json_t *tree, int depth, bool *ret,
                                struct as_err *err)
{
    JSON_AUTO keys = json_array();
    for (void *it = json_object_iter(tree); it; it = json_object_iter_next(tree, it))
        if (json_array_append_new(keys, json_string(json_object_iter_key(it))) < 0)
            return sweep_doc_no_memory(err);
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        json_t *value = json_object_get(tree, key);
        if (!names_lacking(d, value))
            continue;
        *ret = true;
        as_status st = AS_OK;
        if (depth == 0 && json_is_object(value))
            st = remove_lacking(d, value, 1, ret, err);
        else
            (void)json_object_del(tree, key);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* The first value of every parameter of the space, as if all were active. */
static json_t *first_values(const struct space *s)
{
    JSON_AUTO params = json_object();
    int bad = 0;
    for (size_t i = 0; s && i < s->n; i++)
        bad |= json_object_set_new(params, s->params[i].name,
                                   param_value_to_json(&s->params[i], value_at(&s->params[i], 0)));
    return bad ? NULL : as_steal(params);
}

/* Was `pointer` removed from the template, or can the fault there follow from what was removed? The
 * bounds of `schedule` are those of other sections. */
static bool is_doubtful(const json_t *whole, const json_t *left, const char *pointer)
{
    static const char schedule[] = TRAIN_AT "/schedule/";
    if (as_starts_with(pointer, schedule))
        return true;
    const char *part = pointer + strlen(TRAIN_AT);
    while (*part == '/' && json_is_object(whole)) {
        char key[AS_ERR_POINTER_MAX];
        size_t n = strcspn(++part, "/");
        (void)snprintf(key, sizeof key, "%.*s", (int)n, part);
        whole = json_object_get(whole, key);
        left = json_object_get(left, key);
        if (whole && !left)
            return true;
        part += n;
    }
    return false;
}

/* Check the fields that no parameter at fault touches, with one value of the other parameters. */
static as_status check_partly(struct sweep_doc *d, struct faults *faults, struct as_err *err)
{
    JSON_AUTO left = json_clone(d->trial.train);
    JSON_AUTO params = first_values(d->space);
    JSON_AUTO train = NULL;
    AS_AUTO(faults_done) struct faults found = {0};
    bool removed = false;
    if (!left || !params)
        return sweep_doc_no_memory(err);
    as_status st = remove_lacking(d, left, 0, &removed, err);
    if (st != AS_OK)
        return st;
    if ((st = template_apply(left, params, &train, err)) != AS_OK)
        return st;
    st = parse_applied(d, train, d->least_ranks, &found, faults, err);
    if (found.n == 0)
        return st;
    for (size_t i = 0; i < found.n; i++) {
        if (removed && is_doubtful(d->trial.train, left, found.list[i].pointer))
            continue;
        *err = found.list[i];
        if ((st = faults_note(faults, err->code, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status check_samples(struct sweep_doc *d, struct faults *faults, struct as_err *err)
{
    JSON_AUTO names = NULL;
    as_status st = template_names(d->trial.train, &names, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < d->space->n; i++) {
        if (reaches_document(d, names, i) && (st = check_parameter(d, i, faults, err)) != AS_OK)
            return st;
    }
    if (d->n_datasets)
        return AS_OK;
    AS_AUTO(config_freep) struct config *c = NULL;
    struct search_spec search;
    sweep_doc_search_spec(d, &search);
    st = search_sample(&search, &c, err);
    return st < 0 ? st : check_sample(d, c, -1, faults, err);
}

as_status sweep_trial_check_train(struct sweep_doc *d, const struct json_fields *doc,
                                  struct as_err *err)
{
    if (d->trial.kind != TRIAL_TRAIN)
        return AS_OK;
    if (d->is_searchable && !names_lacking(d, d->trial.train))
        return check_samples(d, doc->faults, err);
    return check_partly(d, doc->faults, err);
}
