/* What a sweep allows of a train document, beyond what the trainer's own parser does. */

#include <string.h>

#include "base/json.h"
#include "model/document/train_spec.h"
#include "scheduler/sweep/sweep_resources_priv.h"
#include "scheduler/sweep/sweep_stopping_priv.h"
#include "scheduler/sweep/sweep_trial_priv.h"

#define TRAIN_AT "/trial/train"
#define RANKS_AT "/resources/ranks"

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

as_status sweep_train_parse(struct sweep_doc *d, const json_t *train, int64_t ranks,
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
