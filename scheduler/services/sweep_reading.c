/* A rewriting that fails is a fault of its field like any other: with a list, the rest of the
 * document is checked as if it had not been asked for. */
#include "scheduler/services/sweep_reading.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/template.h"
#include "model/document/train_spec.h"
#include "model/plan/plan_check.h"
#include "scheduler/services/datasets.h"
#include "scheduler/services/sweep_prior.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/sweep/buckets_rule.h"
#include "scheduler/sweep/ranks_rule.h"
#include "scheduler/sweep/split_rule.h"

/* The train document of a trial that the search may suggest. */
static as_status first_spec(const struct sweep_doc *doc, struct train_spec *ret, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *config = NULL;
    JSON_AUTO trial = NULL;
    struct search_spec search;
    sweep_doc_search_spec(doc, &search);
    as_status st = search_sample(&search, &config, err);
    if (st != AS_OK)
        return st;
    st = sweep_doc_trial(doc, config, &trial, err);
    if (st != AS_OK)
        return st;
    return train_spec_parse(json_object_get(trial, "train"), "/trial/train", ret, err);
}

static as_status check_dataset(const struct sweep_doc *doc, const struct train_spec *spec,
                               const struct dataset_row *row, struct as_err *err)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    as_status st = dataset_row_info(row, &info, err);
    if (st != AS_OK)
        return st;
    st = sweep_doc_check_metrics(doc, spec, info.task, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "the data set '%s' is for %s", row->name, row->task);
    if (!as_streq(spec->dataset, row->name))
        return AS_OK; /* it belongs to other trials; the trainer checks its split and loss */
    return train_spec_check(spec, &info, "/trial/train", err);
}

static as_status check_named(struct tx *t, struct arena *a, const struct sweep_doc *doc,
                             const struct train_spec *spec, const char *name, struct as_err *err)
{
    struct dataset_row row;
    as_status st = store_dataset_get(t, a, name, true, &row, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail_at(err, AS_E_INVAL, "/trial/train/dataset",
                          "there is no data set '%s': add it first (assay data add)", name);
    return st == AS_OK ? check_dataset(doc, spec, &row, err) : st;
}

as_status sweep_check_datasets(struct tx *t, struct arena *a, const struct sweep_doc *doc,
                               struct faults *faults, struct as_err *err)
{
    AS_AUTO(train_spec_done) struct train_spec spec = {0};
    if (doc->n_datasets == 0)
        return AS_OK;
    as_status st = first_spec(doc, &spec, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < doc->n_datasets; i++) {
        st = check_named(t, a, doc, &spec, doc->datasets[i], err);
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return faults_first(faults, err);
}

static bool is_bfloat16(const json_t *j)
{
    const char *word = json_string_value(j);
    return word && strcmp(word, "bfloat16") == 0;
}

static bool offers_bfloat16(const struct space_param *p)
{
    for (size_t k = 0; k < json_array_size(p->values); k++)
        if (is_bfloat16(json_array_get(p->values, k)))
            return true;
    return false;
}

/* Refuse bfloat16, or a parameter that can be it, without a GPU: only CUDA computes it, and each
 * such trial would fail when it begins. */
static as_status check_precision(const struct sweep_doc *d, struct faults *faults,
                                 struct as_err *err)
{
    JSON_AUTO names = NULL;
    if (d->trial.kind != TRIAL_TRAIN || d->gpus > 0)
        return AS_OK;
    const json_t *precision = json_object_get(d->trial.train, "precision");
    bool found = is_bfloat16(precision);
    as_status st = precision ? template_names(precision, &names, err) : AS_OK;
    for (size_t i = 0; st == AS_OK && i < json_array_size(names); i++) {
        int at = !d->space ? -1 : space_find(d->space, json_string_value(json_array_get(names, i)));
        found = found || (at >= 0 && offers_bfloat16(&d->space->params[at]));
    }
    if (st == AS_OK && found)
        st =
            as_fail_at(err, AS_E_INVAL, "/trial/train/precision",
                       "/trial/train/precision: found bfloat16, which only CUDA computes; expected "
                       "float32, or resources.gpus: 1");
    return faults_note(faults, st, err);
}

/* Refuse more GPUs than the built-in trainer uses: they would be held and idle. Like the check
 * below, only for new sweeps. */
static as_status check_resources(const struct sweep_doc *d, struct faults *faults,
                                 struct as_err *err)
{
    if (d->trial.kind != TRIAL_TRAIN || d->gpus <= 1)
        return AS_OK;
    as_status st = as_fail_at(err, AS_E_UNSUPPORTED, "/resources/gpus",
                              "/resources/gpus: %lld: trial.train uses one GPU in this version; "
                              "expected 0 or 1",
                              (long long)d->gpus);
    return faults_note(faults, st, err);
}

/* Refuse constraints that name a parameter: no trial would report it as a metric. Sweeps that were
 * created before this check must stay readable, so the document's parser does not check it. */
static as_status check_outcomes(const struct sweep_doc *d, struct faults *faults,
                                struct as_err *err)
{
    for (size_t i = 0; i < d->n_outcomes; i++) {
        char list[AS_ERR_POINTER_MAX], at[AS_ERR_POINTER_MAX];
        json_pointer_index("/constraints", i, list);
        json_pointer_child(list, "metric", at);
        if (space_find(d->space, d->outcomes[i].metric) < 0)
            continue;
        as_status st =
            as_fail_at(err, AS_E_INVAL, at,
                       "%s: '%s' is a parameter, and constraints bound what trials report; "
                       "bound parameters by parameter_constraints",
                       at, d->outcomes[i].metric);
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return faults_first(faults, err);
}

/* Refuse a population that leaves no trial for a fork. Limits may change later, so stored documents
 * have any. */
static as_status check_population(const struct sweep_doc *d, struct faults *faults,
                                  struct as_err *err)
{
    if (d->stopping.method != STOP_PBT || d->stopping.pbt.population < d->limits.max_trials)
        return AS_OK;
    as_status st =
        as_fail_at(err, AS_E_INVAL, "/early_stopping/population",
                   "/early_stopping/population: found %" PRId64
                   ", expected less than limits.max_trials (%" PRId64 "): forks count as trials",
                   d->stopping.pbt.population, d->limits.max_trials);
    return faults_note(faults, st, err);
}

/* The document without the names of earlier sweeps. New reference; NULL when memory is out. */
static json_t *without_prior(const json_t *doc)
{
    JSON_AUTO copy = json_copy((json_t *)doc);
    JSON_AUTO search = json_copy(json_object_get(doc, "search"));
    if (!copy || !search || json_object_del(search, "prior") < 0 ||
        json_object_set(copy, "search", search) < 0)
        return NULL;
    return as_steal(copy);
}

static as_status take_prior(struct store *db, const json_t *doc, struct faults *faults,
                            json_t **ret, struct as_err *err)
{
    as_status st = faults_note(faults, sweep_prior_take(db, doc, ret, err), err);
    if (st != AS_OK || *ret)
        return st;
    *ret = without_prior(doc);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status rewrite(struct store *db, const json_t *doc, struct faults *faults, json_t **ret,
                         struct as_err *err)
{
    JSON_AUTO known = NULL;
    JSON_AUTO moved = NULL;
    JSON_AUTO ranked = NULL;
    as_status st = take_prior(db, doc, faults, &known, err);
    if (st == AS_OK)
        st = faults_note(faults, buckets_rule_apply(known, &moved, err), err);
    if (st == AS_OK && !moved)
        moved = json_incref(known);
    if (st == AS_OK)
        st = faults_note(faults, ranks_rule_apply(moved, &ranked, err), err);
    if (st == AS_OK && !ranked)
        ranked = json_incref(moved);
    return st == AS_OK ? split_rule_choose(ranked, ret, err) : st;
}

as_status sweep_read_new(struct store *db, const json_t *doc, uint64_t seed, struct faults *faults,
                         struct sweep_doc **ret, struct as_err *err)
{
    JSON_AUTO whole = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *parsed = NULL;
    as_status st = rewrite(db, doc, faults, &whole, err);
    if (st == AS_OK)
        st = sweep_doc_parse_noting(whole, seed, faults, &parsed, err);
    if (st == AS_OK)
        st = check_resources(parsed, faults, err);
    if (st == AS_OK)
        st = check_precision(parsed, faults, err);
    if (st == AS_OK)
        st = check_outcomes(parsed, faults, err);
    if (st == AS_OK)
        st = check_population(parsed, faults, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(parsed);
    return AS_OK;
}
