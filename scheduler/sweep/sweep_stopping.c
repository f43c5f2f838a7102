/* `early_stopping` of a sweep document: what it means beside the metrics and the trial.
 *
 * Early stopping that never compares anything costs the user a sweep, so whatever can be known when
 * the sweep is created is refused there: a trial that ends before a rung, that does not report at
 * it, or whose steps are not steps of one training. */
#include "scheduler/sweep/sweep_stopping_priv.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "model/document/train_vary.h"
#include "scheduler/sweep/fork_fields.h"
#include "scheduler/sweep/sweep_resources_priv.h"

#define STOPPING_AT "/early_stopping"
#define TRAIN_AT "/trial/train"
#define TREE_REPORTS 20 /* as the trainer's default of report_every */
#define DEFAULT_TREES 100
#define LEAST_DESIGN 10

/* ---- what the train document fixes ---- */

/* The field as a number; `absent` if it is not there; 0 if it depends on parameters. */
static int64_t fixed(const json_t *section, const char *name, int64_t absent)
{
    const json_t *j = json_object_get(section, name);
    if (!j || json_is_null(j))
        return absent;
    return json_is_integer(j) && json_integer_value(j) > 0 ? json_integer_value(j) : 0;
}

static bool is_template(const json_t *j)
{
    return json_is_string(j) && strchr(json_string_value(j), '$');
}

/* The steps of a full trial and the first one that it reports, where all trials share them. */
static void fill_train_steps(const json_t *train, struct stop_context *c)
{
    const json_t *model = json_object_get(train, "model"), *kind = json_object_get(model, "kind");
    const char *name = json_string_value(kind);
    if (is_template(kind) || is_template(model))
        return;
    bool trees = as_streq(name, "boosted_trees") || as_streq(name, "random_forest") ||
                 as_streq(name, "extra_trees");
    if (as_streq(name, "knn") || as_streq(name, "naive_bayes")) { /* they have one round */
        c->all_steps = c->first_step = 1;
        return;
    }
    c->all_steps = trees ? fixed(model, "n_estimators", DEFAULT_TREES) : fixed(train, "epochs", 0);
    int64_t every = trees ? (c->all_steps + TREE_REPORTS - 1) / TREE_REPORTS : 1;
    every = fixed(train, "report_every", every);
    c->first_step = every > 0 ? every : 1;
}

static void fill_context(const struct sweep_doc *d, struct stop_context *ret)
{
    *ret = (struct stop_context){.n_objectives = d->n_objectives,
                                 .seed = d->seed,
                                 .first_step = 1,
                                 .space = d->space,
                                 .can_pause = d->trial.kind == TRIAL_TRAIN || d->trial.checkpoints};
    for (size_t i = 0; i < d->n_objectives; i++) {
        ret->metrics[i] = d->objectives[i].name;
        ret->maximize[i] = d->objectives[i].maximize;
    }
    if (d->trial.kind == TRIAL_TRAIN)
        fill_train_steps(d->trial.train, ret);
}

/* ---- parsing ---- */

static as_status check_pause(const struct sweep_doc *d, const struct stop_spec *s,
                             struct as_err *err)
{
    if (s->mode != STOP_MODE_PAUSE || d->trial.kind != TRIAL_COMMAND || d->trial.checkpoints)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, STOPPING_AT "/mode",
                      STOPPING_AT "/mode: found pause for a command without checkpoints, expected "
                                  "stop, or trial.checkpoints: true if the program goes on from "
                                  "what it left in $ASSAY_CHECKPOINTS");
}

/* ---- forks ---- */

/* A fork goes on from what a runner has kept of another trial, and that is one process's. */
static as_status check_forks(const struct sweep_doc *d, struct as_err *err)
{
    if (d->trial.kind == TRIAL_NONE)
        return as_fail_at(err, AS_E_INVAL, STOPPING_AT "/method",
                          STOPPING_AT "/method: found pbt in a sweep without trial, expected "
                                      "trial.train or trial.command: forks go on from the "
                                      "checkpoints that runners keep");
    if (d->trial.kind == TRIAL_COMMAND && !d->trial.checkpoints)
        return as_fail_at(err, AS_E_INVAL, "/trial/checkpoints",
                          "/trial/checkpoints: pbt needs it: expected true, if the program goes on "
                          "from what it finds in $ASSAY_CHECKPOINTS, with other parameters too");
    if (d->method && d->method->is_enumeration)
        return as_fail_at(err, AS_E_INVAL, STOPPING_AT "/method",
                          STOPPING_AT "/method: found pbt with search.method %s, which runs its "
                                      "cells and nothing else; expected another search",
                          d->method->name);
    return AS_OK;
}

/* A parameter that may change, and the fields of trial.train that it changes. */
static as_status check_explored(const struct sweep_doc *d, const json_t *parameters, size_t i,
                                struct as_err *err)
{
    const char *name = d->space->params[i].name;
    JSON_AUTO own = json_pack("[s]", name);
    JSON_AUTO names = NULL;
    JSON_AUTO fields = NULL;
    size_t k;
    json_t *field;
    if (!own)
        return as_fail_nomem(err);
    as_status st = fork_names(parameters, own, &names, err);
    if (st == AS_OK)
        st = fork_fields(d->trial.train, names, &fields, err);
    if (st != AS_OK)
        return st;
    json_array_foreach(fields, k, field)
    {
        if (train_may_vary(json_string_value(field)))
            continue;
        return as_fail_at(err, AS_E_INVAL, STOPPING_AT "/explore",
                          STOPPING_AT "/explore: '%.64s' changes trial.train%.80s, and no "
                                      "checkpoint goes on with another value of it; name the "
                                      "parameters that may change, of rates, regularisation and "
                                      "augmentation",
                          name, json_string_value(field));
    }
    return AS_OK;
}

/* Can a checkpoint go on with other values of all parameters that may change? */
static as_status check_all_explored(const struct sweep_doc *d, const struct stop_spec *s,
                                    const json_t *parameters, struct as_err *err)
{
    as_status st = AS_OK;
    if (d->trial.kind != TRIAL_TRAIN)
        return AS_OK;
    for (size_t i = 0; i < d->space->n && st == AS_OK; i++)
        if (pbt_explores(&s->pbt, i))
            st = check_explored(d, parameters, i, err);
    return st;
}

/* The design of a sweep that leaves its size open: STOP_DESIGN, or a quarter of a small sweep.
 * Below LEAST_DESIGN the space decides, as without early stopping. The number is written into the
 * document, because limits may change later, and suggestions must not. */
static void settle_design(struct sweep_doc *d)
{
    uint64_t quarter = (uint64_t)d->limits.max_trials / 4;
    if (d->initial_trials == 0 && d->method->is_model_based && quarter >= LEAST_DESIGN)
        d->initial_trials = quarter < STOP_DESIGN ? quarter : STOP_DESIGN;
}

as_status sweep_stopping_parse(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    struct json_fields f;
    struct stop_context c;
    struct stop_spec spec = {0};
    json_t *j = NULL;
    as_status st = json_fields_object(doc, "early_stopping", JSON_OPTIONAL, &j, err);
    if (st != AS_OK || !j)
        return st;
    if (d->n_objectives == 0 || sweep_trial_is_unclear(doc, d))
        return AS_OK; /* the document is refused for that */
    fill_context(d, &c);
    if ((st = json_fields_under(&f, doc, j, STOPPING_AT, err)) != AS_OK)
        return st;
    if ((st = stop_spec_parse(&f, &c, &spec, err)) != AS_OK)
        return st;
    if ((st = check_pause(d, &spec, err)) != AS_OK)
        return st;
    if (spec.method == STOP_PBT && (st = check_forks(d, err)) != AS_OK)
        return st;
    if (spec.method == STOP_PBT &&
        (st = check_all_explored(d, &spec, json_object_get(doc->obj, "parameters"), err)) != AS_OK)
        return st;
    d->stopping = spec;
    settle_design(d);
    return AS_OK;
}

json_t *sweep_stopping_to_json(const struct sweep_doc *d)
{
    const char *metrics[SEARCH_MAX_OBJECTIVES];
    for (size_t i = 0; i < d->n_objectives; i++)
        metrics[i] = d->objectives[i].name;
    return stop_spec_to_json(&d->stopping, metrics, d->space);
}

/* ---- a train document under sample values ---- */

static as_status check_kind(const struct train_spec *spec, struct as_err *err)
{
    if (spec->holdout == TRAIN_HOLD_FOLDS)
        return as_fail_at(err, AS_E_INVAL, STOPPING_AT,
                          STOPPING_AT ": the steps of a trial with folds are its folds, and no "
                                      "training goes on from one to the next; leave out "
                                      "early_stopping or trial.train.validation.folds");
    if (spec->boost.given)
        return as_fail_at(err, AS_E_INVAL, STOPPING_AT,
                          STOPPING_AT ": a stage of boosting reports once, at its end; leave out "
                                      "early_stopping or trial.train.boost");
    return AS_OK;
}

/* What a fork of a training cannot do. */
static as_status check_forked_train(const struct train_spec *spec, struct as_err *err)
{
    if (!train_model_is_network(&spec->model))
        return as_fail_at(err, AS_E_INVAL, TRAIN_AT "/model/kind",
                          TRAIN_AT "/model/kind: found %s with pbt, expected a kind of network: "
                                   "no other kind goes on with other parameters",
                          train_model_name(&spec->model));
    if (spec->patience > 0)
        return as_fail_at(err, AS_E_INVAL, TRAIN_AT "/patience",
                          TRAIN_AT "/patience: found with pbt, whose trials end by their ranks "
                                   "alone");
    if (train_spec_snapshots(spec) > 0)
        return as_fail_at(err, AS_E_INVAL, TRAIN_AT "/schedule/snapshots",
                          TRAIN_AT "/schedule/snapshots: found with pbt, whose trials begin in "
                                   "the middle of a schedule");
    return AS_OK;
}

as_status sweep_stopping_check_train(const struct sweep_doc *d, const struct train_spec *spec,
                                     struct as_err *err)
{
    const struct stop_spec *s = &d->stopping;
    if (s->method == STOP_NONE)
        return AS_OK;
    as_status st = check_kind(spec, err);
    if (st == AS_OK && s->method == STOP_PBT)
        st = check_forked_train(spec, err);
    if (st != AS_OK)
        return st;
    bool trees = train_model_is_trees(&spec->model);
    const char *unit = trees ? "rounds" : "epochs";
    if (spec->epochs < s->max_steps)
        return as_fail_at(err, AS_E_INVAL, STOPPING_AT "/max_steps",
                          STOPPING_AT "/max_steps: found %" PRId64 ", expected at most the %" PRId64
                                      " %s of a trial",
                          s->max_steps, spec->epochs, unit);
    for (size_t k = 0; !s->late && k < s->n_rungs; k++) {
        int64_t step = s->steps[k];
        if (step % spec->report_every != 0 && step != spec->epochs)
            return as_fail_at(err, AS_E_INVAL, TRAIN_AT "/report_every",
                              TRAIN_AT "/report_every: found %" PRId64 ", expected a divisor of "
                                       "%" PRId64 ", where early_stopping compares trials (%s)",
                              spec->report_every, step, unit);
    }
    return AS_OK;
}
