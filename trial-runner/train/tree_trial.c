/* One model of trees from its first round to its artifacts.
 *
 * Reports go by rounds: `step` is the number of rounds done. The last report is of the model that
 * is kept, computed with the predictions that are written, so that table and files agree. A boosted
 * model is a sum of trees, so one that ends with its best round costs nothing but the rounds after
 * it. Two rules find that round: `early_stopping_rounds` looks at the held-out loss after every
 * round; `patience`, if there is no such field, at the sweep's metric in each report, as for
 * networks. The mean of a forest does not get worse by more trees, and neither rule is for it.
 *
 * Inputs are made once, for XGBoost's own copy. XGBoost keeps the sums of the trees so far for each
 * row of that copy, so a report costs the trees since the last one. If the model that is kept ends
 * with an earlier round, those sums have too many trees: its predictions go through
 * tree_model_predict(), in pieces. Both add the trees in their order, so the bits are those that
 * any other program computes from the model. */
#include "trial-runner/train/tree_trial_priv.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/trees/tree_inputs.h"
#include "model/trees/tree_model.h"
#include "model/trees/tree_train.h"
#include "trial-runner/train/channel.h"
#include "trial-runner/train/tree_metrics.h"

#define TURN_NS (5 * NS_PER_MS)
#define SAVE_COST_FACTOR 20  /* saving takes at most one part in 20 of the time */
#define PIECE ((size_t)4096) /* rows that are predicted at once */

void tree_trial_free(struct tree_trial *t)
{
    if (!t)
        return;
    tree_train_free(t->train);
    free(t->sample);
    free(t->shown);
    free(t->values);
    free(t->weights[TREE_TRAINING_ROWS]);
    free(t->weights[TREE_HELD_ROWS]);
    free(t);
}

static const int32_t *rows_of(const struct tree_trial *t, tree_part part, size_t *ret_n)
{
    const struct train_data *d = t->setup->data;
    const int32_t *training = t->sample ? t->sample : d->train_rows;
    *ret_n = part == TREE_TRAINING_ROWS ? d->n_train : d->n_val;
    return part == TREE_TRAINING_ROWS ? training : d->val_rows;
}

/* The rows of a part of which a loss is reported. */
static const int32_t *judged_rows(const struct tree_trial *t, tree_part part, size_t *ret_n)
{
    if (part == TREE_HELD_ROWS || !t->shown)
        return rows_of(t, part, ret_n);
    *ret_n = t->n_shown;
    return t->shown;
}

/* ---- beginning ---- */

static as_status inputs_of(const struct tree_trial *t, const int32_t *rows, size_t n, float **ret,
                           struct as_err *err)
{
    const struct dataset_info *info = t->setup->info;
    const struct train_data *d = t->setup->data;
    float *x = as_calloc(n * model_inputs_count(&t->m->spec, info), sizeof *x);
    if (!x)
        return as_fail(err, AS_E_NOMEM, "out of memory for the inputs of %zu rows", n);
    model_inputs_of(&t->m->spec, info, d->set.x, d->codes, rows, n, x);
    *ret = x;
    return AS_OK;
}

static as_status pick_targets(const struct train_data *d, const int32_t *rows, size_t n,
                              int32_t **ret_labels, float **ret_targets, struct as_err *err)
{
    size_t k = d->n_targets;
    *ret_labels = d->set.labels ? as_calloc(n, sizeof **ret_labels) : NULL;
    *ret_targets = d->set.labels ? NULL : as_calloc(n * k, sizeof **ret_targets);
    if (!*ret_labels && !*ret_targets)
        return as_fail(err, AS_E_NOMEM, "out of memory for the targets of %zu rows", n);
    for (size_t i = 0; i < n; i++)
        if (*ret_labels)
            (*ret_labels)[i] = d->set.labels[rows[i]];
        else
            memcpy(*ret_targets + i * k, d->set.targets + (size_t)rows[i] * k,
                   k * sizeof **ret_targets);
    return AS_OK;
}

/* The rows of a part, with arrays that the caller frees. */
struct part_rows {
    float *inputs, *targets;
    int32_t *labels;
    struct tree_rows rows;
};

static void part_rows_done(struct part_rows *p)
{
    free(p->inputs);
    free(p->targets);
    free(p->labels);
}

static as_status take_part(struct tree_trial *t, tree_part part, struct part_rows *ret,
                           struct as_err *err)
{
    size_t n;
    const int32_t *rows = rows_of(t, part, &n);
    as_status st = inputs_of(t, rows, n, &ret->inputs, err);
    if (st == AS_OK)
        st = pick_targets(t->setup->data, rows, n, &ret->labels, &ret->targets, err);
    if (st == AS_OK)
        st = tree_row_weights(t->setup, t->m, rows, n, &t->weights[part], err);
    ret->rows = (struct tree_rows){.inputs = ret->inputs,
                                   .n = n,
                                   .labels = ret->labels,
                                   .targets = ret->targets,
                                   .weights = t->weights[part]};
    return st;
}

static as_status draw_sample(struct tree_trial *t, struct as_err *err)
{
    const struct train_data *d = t->setup->data;
    if (t->m->spec.resample == 0)
        return AS_OK;
    if (!(t->sample = as_calloc(d->n_train, sizeof *t->sample)))
        return as_fail(err, AS_E_NOMEM, "out of memory for a sample of %zu rows", d->n_train);
    train_data_order(d, t->m->seed, t->m->spec.resample, 0, t->sample);
    return AS_OK;
}

/* A part of the training rows, and their weights, in place of all. */
static as_status show_part(struct tree_trial *t, struct as_err *err)
{
    size_t n;
    const int32_t *rows = rows_of(t, TREE_TRAINING_ROWS, &n);
    float *weights = t->weights[TREE_TRAINING_ROWS];
    t->n_shown = tree_train_shown(&t->m->spec, n);
    if (t->n_shown == n)
        return AS_OK;
    if (!(t->shown = as_calloc(t->n_shown, sizeof *t->shown)))
        return as_fail_nomem(err);
    for (size_t i = 0; i < t->n_shown; i++) {
        size_t at = tree_train_shown_row(n, t->n_shown, i);
        t->shown[i] = rows[at];
        if (weights)
            weights[i] = weights[at]; /* at is never below i */
    }
    return AS_OK;
}

static as_status begin_training(struct tree_trial *t, struct as_err *err)
{
    AS_AUTO(part_rows_done) struct part_rows training = {0}, held = {0};
    const struct tree_train_opts opts = {
        .spec = &t->m->spec, .info = t->setup->info, .seed = t->m->seed, .threads = t->threads};
    as_status st = take_part(t, TREE_TRAINING_ROWS, &training, err);
    if (st == AS_OK)
        st = take_part(t, TREE_HELD_ROWS, &held, err);
    if (st != AS_OK)
        return st;
    st = tree_train_create(&opts, &training.rows, &held.rows, &t->train, err);
    return st == AS_OK ? show_part(t, err) : st;
}

/* ---- predictions of the model that is kept ---- */

static as_status predict_rows(const struct tree_trial *t, const struct tree_model *model,
                              tree_part part, struct as_err *err)
{
    const struct train_data *d = t->setup->data;
    const struct dataset_info *info = t->setup->info;
    size_t n, inputs = tree_model_inputs(model), outputs = tree_model_outputs(model);
    const int32_t *rows = judged_rows(t, part, &n);
    AS_AUTO(as_freep) float *x = as_calloc((n < PIECE ? n : PIECE) * inputs, sizeof *x);
    if (!x)
        return as_fail_nomem(err);
    for (size_t at = 0; at < n; at += PIECE) {
        size_t piece = n - at < PIECE ? n - at : PIECE;
        model_inputs_of(&t->m->spec, info, d->set.x, d->codes, rows + at, piece, x);
        as_status st = tree_model_predict(model, x, piece, t->values + at * outputs, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* is_whole: the model has all rounds that were done. */
static as_status predict_kept(const struct tree_trial *t, const struct tree_model *model,
                              bool is_whole, tree_part part, struct as_err *err)
{
    return is_whole ? tree_train_predict(t->train, part, t->values, err)
                    : predict_rows(t, model, part, err);
}

/* ---- reports ---- */

static double part_loss(const struct tree_trial *t, tree_part part)
{
    size_t n;
    const int32_t *rows = judged_rows(t, part, &n);
    return tree_loss(t->setup, t->m, t->values, rows, n, t->weights[part]);
}

/* The learning rate that is reported: forests have none. */
static double rate_of(const struct member *m)
{
    return m->spec.model.kind == TRAIN_BOOSTED_TREES ? m->spec.model.trees.learning_rate : 1;
}

/* t->values are the predictions of the held-out rows. A loss that is not finite ends the member. */
static as_status report(struct tree_trial *t, size_t step, double mean_loss, size_t best_step,
                        struct evaluation *ret, struct as_err *err)
{
    as_status st = tree_evaluate(t->setup, t->m, t->values, t->weights[TREE_HELD_ROWS], ret, err);
    if (st != AS_OK)
        return st;
    bool diverged = !isfinite(mean_loss) || !isfinite(ret->loss);
    if (diverged) /* metrics are undefined if any prediction is not finite */
        evaluation_clear(ret);
    st = run_report(t->m, (int64_t)step, isfinite(mean_loss) ? mean_loss : NAN, rate_of(t->m), ret,
                    (int64_t)best_step, err);
    if (st != AS_OK || !diverged)
        return st;
    return as_fail(err, AS_E_NUMERIC, "diverged: the loss is not finite after round %zu", step);
}

/* ---- the best round ---- */

/* How many rounds other folds have chosen; 0: they have not. */
static size_t given_rounds(const struct tree_trial *t)
{
    return t->setup->job->rounds;
}

static bool may_stop(const struct tree_trial *t)
{
    return t->m->spec.model.kind == TRAIN_BOOSTED_TREES && given_rounds(t) == 0;
}

static bool stops_by_rounds(const struct tree_trial *t)
{
    return may_stop(t) && t->m->spec.model.trees.early_stopping_rounds > 0;
}

static bool stops_by_reports(const struct tree_trial *t)
{
    return may_stop(t) && t->m->spec.patience > 0 && !stops_by_rounds(t);
}

static void note(struct tree_trial *t, double value, bool maximizes)
{
    bool better = maximizes ? value > t->now.best : value < t->now.best;
    if (isnan(value) || (t->now.best_rounds > 0 && !better))
        return;
    t->now.best = value;
    t->now.best_rounds = t->now.rounds;
}

static as_status report_round(struct tree_trial *t, struct as_err *err)
{
    struct evaluation e;
    as_status st = tree_train_predict(t->train, TREE_TRAINING_ROWS, t->values, err);
    double loss = st == AS_OK ? part_loss(t, TREE_TRAINING_ROWS) : NAN;
    if (st == AS_OK)
        st = tree_train_predict(t->train, TREE_HELD_ROWS, t->values, err);
    if (st == AS_OK)
        st = report(t, t->now.rounds, loss, 0, &e, err);
    if (st == AS_OK && stops_by_reports(t))
        note(t, run_judged(t->m, loss, &e), t->m->maximizes);
    return st;
}

/* ---- the end ---- */

/* The last report, of the model that is kept, and the artifacts. */
static as_status finish(struct tree_trial *t, struct as_err *err)
{
    AS_AUTO(as_freep) char *trees = NULL;
    AS_AUTO(tree_model_freep) struct tree_model *model = NULL;
    size_t len = 0, given = given_rounds(t);
    struct evaluation e;
    bool stops = (stops_by_rounds(t) || stops_by_reports(t)) && t->now.best_rounds > 0;
    size_t kept = stops ? t->now.best_rounds : given ? given : t->now.rounds;
    bool is_whole = kept == t->now.rounds;
    if (stops && t->m->spec.holdout == TRAIN_HOLD_FOLDS)
        tree_trial_save(t); /* for the rounds that other folds choose */
    as_status st = tree_train_save(t->train, kept, &trees, &len, err);
    if (st == AS_OK)
        st = tree_model_load(trees, len, &t->m->spec, t->setup->info, t->threads, &model, err);
    if (st == AS_OK)
        st = predict_kept(t, model, is_whole, TREE_TRAINING_ROWS, err);
    double loss = st == AS_OK ? part_loss(t, TREE_TRAINING_ROWS) : NAN;
    if (st == AS_OK)
        st = predict_kept(t, model, is_whole, TREE_HELD_ROWS, err);
    if (st == AS_OK) /* with `patience` the last round has its own report */
        st = report(t, given ? given : t->now.rounds + stops_by_reports(t), loss,
                    stops || given ? kept : 0, &e, err);
    return st == AS_OK ? tree_trial_write_artifacts(t, model, trees, len, err) : st;
}

/* ---- rounds ---- */

static bool save_is_due(const struct tree_trial *t, const struct watch *w)
{
    const struct member *m = t->m;
    int64_t wait = SAVE_COST_FACTOR * m->save_cost_ns;
    wait = wait > w->checkpoint_ns ? wait : w->checkpoint_ns;
    return t->boundary.rounds == t->now.rounds && clock_mono_ns() - m->saved_ns >= wait;
}

/* The held-out loss after a round; it decides when early stopping is asked for. */
static as_status note_round(struct tree_trial *t, struct as_err *err)
{
    if (!stops_by_rounds(t))
        return AS_OK;
    as_status st = tree_train_predict(t->train, TREE_HELD_ROWS, t->values, err);
    if (st == AS_OK)
        note(t, part_loss(t, TREE_HELD_ROWS), false);
    return st;
}

static bool is_last(const struct tree_trial *t)
{
    size_t given = given_rounds(t);
    return t->now.rounds >= (given ? given : (size_t)t->m->spec.model.trees.n_estimators);
}

static bool is_over(const struct tree_trial *t)
{
    const struct train_spec *spec = &t->m->spec;
    size_t since = t->now.rounds - t->now.best_rounds;
    if (stops_by_reports(t) && since >= (size_t)(spec->patience * spec->report_every))
        return true;
    return is_last(t) || (stops_by_rounds(t) && t->now.best_rounds > 0 &&
                          since >= (size_t)spec->model.trees.early_stopping_rounds);
}

/* The last report is written with the model; with `patience` it is one more, because each report,
 * also that of the last round, is judged first. */
static bool reports_now(const struct tree_trial *t)
{
    bool due = t->now.rounds % (size_t)t->m->spec.report_every == 0;
    return stops_by_reports(t) ? due || is_last(t) : due && !is_over(t);
}

static as_status do_round(struct tree_trial *t, struct watch *w, struct as_err *err)
{
    struct member *m = t->m;
    as_status st = tree_train_round(t->train, err);
    if (st != AS_OK)
        return st;
    t->now.rounds = tree_train_rounds(t->train);
    m->epoch = (int64_t)t->now.rounds;
    atomic_fetch_add(&w->rows, t->setup->data->n_train);
    if (!m->started) {
        struct control_event e = {
            .kind = CONTROL_STARTED, .id = m->id, .step = (int64_t)t->now.rounds - 1};
        m->started = true;
        channel_send(m->channel, &e);
    }
    st = note_round(t, err);
    if (st == AS_OK && reports_now(t))
        st = report_round(t, err);
    if (tree_train_is_boundary(t->train, t->now.rounds))
        t->boundary = t->now;
    return st;
}

/* A failed write (a full disk) is the machine's fault: another attempt may succeed. */
static void end_with(struct tree_trial *t, as_status st, const struct as_err *why)
{
    member_end(t->m,
               st == AS_OK     ? EXIT_DONE
               : st == AS_E_IO ? EXIT_TRY_AGAIN
                               : EXIT_FAILED,
               st == AS_OK ? NULL : why);
}

void tree_trial_slice(struct tree_trial *t, struct watch *w)
{
    struct member *m = t->m;
    struct as_err why;
    int64_t until = clock_mono_ns() + TURN_NS;
    as_status st = AS_OK;
    do {
        if (m->ask == ASK_CANCEL) {
            member_end(m, EXIT_TRY_AGAIN, NULL);
            return;
        }
        if (is_over(t)) {
            st = finish(t, &why);
            end_with(t, st, &why);
            return;
        }
        if (m->ask == ASK_STOP || atomic_load(w->stop)) {
            tree_trial_save(t);
            m->epoch = (int64_t)t->boundary.rounds;
            member_end(m, EXIT_TRY_AGAIN, NULL);
            return;
        }
        st = do_round(t, w, &why);
        if (st != AS_OK) {
            end_with(t, st, &why);
            return;
        }
        if (!is_over(t) && save_is_due(t, w))
            tree_trial_save(t);
    } while (clock_mono_ns() < until);
}

/* The histograms of a deep tree are large, and freed with it. Memory that the process keeps needs
 * no new pages from the kernel for each tree: a forest of full trees takes a quarter less time. */
static void keep_freed_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

as_status tree_trial_create(const struct lockstep_setup *setup, struct member *m, size_t threads,
                            struct tree_trial **ret, struct as_err *err)
{
    AS_AUTO(tree_trial_freep) struct tree_trial *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    keep_freed_memory();
    t->setup = setup;
    t->m = m;
    t->threads = threads;
    size_t n =
        setup->data->n_train > setup->data->n_val ? setup->data->n_train : setup->data->n_val;
    t->values = as_calloc(n * evaluate_columns(setup), sizeof *t->values);
    if (!t->values)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", n);
    as_status st = draw_sample(t, err);
    if (st == AS_OK)
        st = begin_training(t, err);
    if (st == AS_OK)
        st = tree_trial_resume(t, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(t);
    return AS_OK;
}
