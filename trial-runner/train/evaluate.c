/* Evaluates a range of members on the held-out rows.
 *
 * Sums over rows (loss, correct rows, correct among five) are computed on the device in the same
 * passes for all members. The other metrics need every row: F1 the predicted class, AUC and log
 * loss the outputs, regression errors the outputs in double precision. Downloading outputs costs
 * time and memory, so a range downloads only what at least one of its members asks for.
 *
 * No metric may depend on how the held-out rows are cut into batches, because the batch size is a
 * parameter of the search. Sums are therefore taken over all rows, and a weighted loss is computed
 * on the host from the losses of all rows (weighted_loss). */
#include "trial-runner/train/evaluate.h"

#include <math.h>

#include "model/network/metrics.h"
#include "model/network/outputs.h"

double loss_unit(const struct lockstep_setup *s)
{
    if (s->loss != TRAIN_MSE || s->data->n_targets != 1)
        return 1;
    return s->data->fit.target_scale[0] * s->data->fit.target_scale[0];
}

/* What is downloaded from the device for the metrics of a range of n members. */
struct held {
    bool classes, values, losses; /* which of the three arrays below are wanted */
    int32_t *predicted;           /* [n, n_val] */
    float *outputs;               /* [n, n_val, outputs] */
    float *row_loss;              /* [n, n_val] */
    struct loss_use use;
    bool average;
};

static void held_done(struct held *h)
{
    free(h->predicted);
    free(h->outputs);
    free(h->row_loss);
}

static bool asks_for_outputs(const struct member *m)
{
    return train_spec_wants(&m->spec, "val_auc") || train_spec_wants(&m->spec, "val_log_loss");
}

static as_status held_create(const struct lockstep *ls, size_t first, size_t n, struct held *h,
                             struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    bool text = d->context > 0, numbers = d->n_targets > 0 && !d->set.labels;
    for (size_t k = first; k < first + n; k++) {
        const struct member *m = ls->member[k];
        h->use = loss_use_both(h->use, loss_use_of(&m->spec));
        h->average = h->average || m->spec.optimizer.ema > 0;
        h->classes = h->classes || (!text && train_spec_wants(&m->spec, "val_f1"));
        h->values = h->values || numbers || (!text && asks_for_outputs(m));
    }
    h->classes = h->classes && !numbers;
    if (h->classes)
        h->predicted = as_calloc(n * d->n_val, sizeof *h->predicted);
    if (h->values)
        h->outputs = as_calloc(n * d->n_val * ls->plan->outputs, sizeof *h->outputs);
    h->losses = h->use.class_weights && d->set.labels;
    if (h->losses)
        h->row_loss = as_calloc(n * d->n_val, sizeof *h->row_loss);
    if ((h->classes && !h->predicted) || (h->values && !h->outputs) || (h->losses && !h->row_loss))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", n * d->n_val);
    return AS_OK;
}

static as_status forward_batch(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                               size_t at, bool average, struct batch *ret, struct as_err *err)
{
    size_t left = ls->setup->data->n_val - at;
    as_status st = batches_held(ls->batches, lane, first, at,
                                left < ls->max_rows ? left : ls->max_rows, ret, err);
    if (st != AS_OK)
        return st;
    struct network_pass pass = {.rows = ret->rows,
                                .x = ret->x,
                                .codes = ret->codes,
                                .params = average ? ls->optimizer->average : NULL};
    return network_forward(ls->network, lane, first, n, &pass, err);
}

/* Download what a pass over rows [at, at + rows) left on the device, as far as it is wanted. */
static as_status download_batch(struct lockstep *ls, size_t first, size_t n, size_t at, size_t rows,
                                struct held *h, struct as_err *err)
{
    size_t n_val = ls->setup->data->n_val, outputs = ls->plan->outputs;
    struct tensor out = network_outputs(ls->network, first);
    for (size_t k = 0; k < n; k++) {
        as_status st = AS_OK;
        if (h->values)
            st = buf_download(out.buf, out.offset + k * out.stride,
                              h->outputs + (k * n_val + at) * outputs, rows * outputs, err);
        if (st != AS_OK)
            return st;
        if (h->classes)
            st = buf_download(ls->losses->row_class, (first + k) * ls->losses->places,
                              h->predicted + k * n_val + at, rows, err);
        if (st != AS_OK)
            return st;
        if (h->losses)
            st = buf_download(ls->losses->row_loss, (first + k) * ls->losses->places,
                              h->row_loss + k * n_val + at, rows, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status evaluate_held_rows(struct lockstep *ls, struct backend *lane, size_t first,
                                    size_t n, struct held *h, struct as_err *err)
{
    size_t n_val = ls->setup->data->n_val;
    struct batch b = {0};
    as_status st = loss_sums_clear(&ls->losses->held, first, n, err);
    if (st != AS_OK)
        return st;
    for (size_t at = 0; at < n_val; at += b.rows) {
        st = forward_batch(ls, lane, first, n, at, h->average, &b, err);
        if (st != AS_OK)
            return st;
        st = losses_held(ls->losses, lane, first, n, b.y, b.rows, h->use, err);
        if (st != AS_OK)
            return st;
        st = download_batch(ls, first, n, at, b.rows, h, err);
        if (st != AS_OK)
            return st;
        st = backend_step_end(lane, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- metrics ---- */

static as_status held_labels(const struct train_data *d, int32_t **ret, struct as_err *err)
{
    int32_t *labels = as_calloc(d->n_val, sizeof *labels);
    if (!labels)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu labels", d->n_val);
    for (size_t i = 0; i < d->n_val; i++)
        labels[i] = d->set.labels[d->val_rows[i]];
    *ret = labels;
    return AS_OK;
}

static as_status class_metrics(const struct lockstep *ls, const struct member *m, size_t k,
                               const struct held *h, struct evaluation *e, struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    size_t n = d->n_val, outputs = ls->plan->outputs, classes = d->set.n_outputs;
    AS_AUTO(as_freep) int32_t *labels = NULL;
    as_status st = held_labels(d, &labels, err);
    if (st != AS_OK)
        return st;
    if (train_spec_wants(&m->spec, "val_f1"))
        st = metric_f1(h->predicted + k * n, labels, n, classes, &e->f1, err);
    if (st != AS_OK || !h->values)
        return st;
    float *z = h->outputs + k * n * outputs;
    if (train_spec_wants(&m->spec, "val_log_loss"))
        e->log_loss = metric_log_loss(z, labels, n, outputs);
    if (!train_spec_wants(&m->spec, "val_auc"))
        return AS_OK;
    outputs_to_probabilities(z, n, outputs, ls->setup->loss);
    if (outputs == 1)
        return metric_auc(z, 1, labels, 1, n, &e->auc, err);
    return metric_auc_classes(z, outputs, labels, n, &e->auc, err);
}

static void regression_metrics(const struct lockstep *ls, size_t k, const struct held *h,
                               struct evaluation *e)
{
    const struct train_data *d = ls->setup->data;
    float *z = h->outputs + k * d->n_val * ls->plan->outputs;
    outputs_to_probabilities(z, d->n_val, ls->plan->outputs, ls->setup->loss);
    outputs_to_own_unit(z, d->n_val, &d->fit);
    struct metric_errors x = metric_errors(z, d->val_targets, d->n_val, d->n_targets);
    e->rmse = x.rmse;
    e->mae = x.mae;
    e->r2 = x.r2;
    if (ls->setup->loss == TRAIN_MSE && d->n_targets == 1 &&
        d->fit.target_transform == TARGET_AS_IS)
        e->loss = x.mse; /* the same sum in double precision, which is more exact */
}

/* The mean of the rows' losses, weighted by class weights, over all held-out rows at once. A mean
 * of batch means would depend on how the rows are cut into batches. The loss is 0 if all weights
 * are 0, as in training. */
static double weighted_loss(const struct lockstep *ls, const struct member *m,
                            const float *row_loss)
{
    const struct train_data *d = ls->setup->data;
    double sum = 0, weights = 0;
    for (size_t i = 0; i < d->n_val; i++) {
        size_t label = (size_t)d->set.labels[d->val_rows[i]];
        double w = (double)losses_class_weight(ls->losses, &m->spec, label);
        sum += w > 0 ? w * (double)row_loss[i] : 0;
        weights += w;
    }
    return weights > 0 ? sum / weights : 0;
}

static as_status member_metrics(const struct lockstep *ls, size_t slot, size_t k,
                                const struct held *h, struct evaluation *e, struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    double rows = (double)d->n_val, places = rows * (double)ls->plan->tokens;
    float loss = 0;
    int32_t correct = 0, top5 = 0;
    *e = (struct evaluation){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    as_status st = buf_download(ls->losses->held.loss, slot, &loss, 1, err);
    if (st != AS_OK)
        return st;
    st = buf_download(ls->losses->held.correct, slot, &correct, 1, err);
    if (st != AS_OK)
        return st;
    st = buf_download(ls->losses->held.top5, slot, &top5, 1, err);
    if (st != AS_OK)
        return st;
    e->loss = (double)loss / rows * loss_unit(ls->setup);
    if (d->n_targets > 0 && !d->set.labels) {
        regression_metrics(ls, k, h, e);
        return AS_OK;
    }
    if (loss_use_of(&ls->member[slot]->spec).class_weights)
        e->loss = weighted_loss(ls, ls->member[slot], h->row_loss + k * d->n_val);
    e->accuracy = (double)correct / places;
    e->error = (places - (double)correct) / places;
    if (train_spec_wants(&ls->member[slot]->spec, "val_top5")) /* bce: two classes, always right */
        e->top5 = ls->setup->loss == TRAIN_BCE ? 1 : (double)top5 / places;
    if (d->context) {
        e->log_loss = e->loss; /* text has no class weights */
        return AS_OK;
    }
    return class_metrics(ls, ls->member[slot], k, h, e, err);
}

as_status evaluate_members(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                           struct evaluation *ret, struct as_err *err)
{
    AS_AUTO(held_done) struct held h = {0};
    as_status st = held_create(ls, first, n, &h, err);
    if (st != AS_OK)
        return st;
    st = evaluate_held_rows(ls, lane, first, n, &h, err);
    if (st != AS_OK)
        return st;
    for (size_t k = 0; k < n; k++) {
        st = member_metrics(ls, first + k, k, &h, &ret[k], err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- held-out rows without a class ---- */

static as_status count_held(const struct train_data *d, size_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *rows = as_calloc(d->set.n_outputs, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < d->n_val; i++)
        rows[d->set.labels[d->val_rows[i]]]++;
    *ret = as_steal(rows);
    return AS_OK;
}

/* AUC compares a class with the others: with two classes both must be there, with more any two. */
as_status evaluate_check(const struct lockstep_setup *s, const struct member *m, struct as_err *err)
{
    const struct train_data *d = s->data;
    AS_AUTO(as_freep) size_t *held = NULL;
    size_t classes = d->set.n_outputs, there = 0, absent = classes;
    if (!d->set.labels || !train_spec_wants(&m->spec, "val_auc"))
        return AS_OK;
    as_status st = count_held(d, &held, err);
    if (st != AS_OK)
        return st;
    for (size_t c = classes; c > 0; c--) {
        there += held[c - 1] > 0;
        absent = held[c - 1] == 0 ? c - 1 : absent;
    }
    if (there >= 2)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "val_auc has no value: none of the %zu held-out rows is of class '%.60s', which "
                   "has %lld rows; hold out other rows (validation.fraction, .seed, .split)",
                   d->n_val, s->job->info.classes[absent], (long long)d->class_rows[absent]);
}

/* ---- predictions ---- */

size_t evaluate_columns(const struct lockstep_setup *s)
{
    return s->data->set.labels ? s->data->set.n_outputs : s->data->n_targets;
}

as_status evaluate_predict(struct lockstep *ls, struct backend *lane, size_t slot, float **ret,
                           struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    size_t outputs = ls->plan->outputs, columns = evaluate_columns(ls->setup);
    struct held h = {.values = true, .average = ls->member[slot]->spec.optimizer.ema > 0};
    AS_AUTO(as_freep) float *values = as_calloc(d->n_val * columns, sizeof *values);
    if (!values)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", d->n_val);
    h.outputs = values; /* large enough: outputs <= columns */
    as_status st = evaluate_held_rows(ls, lane, slot, 1, &h, err);
    if (st != AS_OK)
        return st;
    outputs_to_probabilities(values, d->n_val, outputs, ls->setup->loss);
    if (!d->set.labels)
        outputs_to_own_unit(values, d->n_val, &d->fit);
    if (outputs < columns) /* one output for two classes: add the other column */
        outputs_to_both_classes(values, d->n_val);
    *ret = as_steal(values);
    return AS_OK;
}
