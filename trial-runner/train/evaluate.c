/* Evaluates a range of members on the held-out rows.
 *
 * Sums over rows (loss, correct rows, correct among five) are computed on the device in the same
 * passes for all members. The other metrics need every row: F1 and balanced accuracy the predicted
 * class, other metrics of classes the outputs, regression errors the outputs in double precision.
 * If rows have weights, everything is computed from the rows. Downloading outputs costs time and
 * memory, so a range downloads only what at least one of its members asks for.
 *
 * No metric may depend on how the held-out rows are cut into batches, because the batch size is a
 * parameter of the search. Sums are therefore taken over all rows, and a weighted loss is computed
 * on the host from the losses of all rows (weighted_loss). */
#include "trial-runner/train/evaluate.h"

#include <math.h>
#include <string.h>

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

void evaluation_clear(struct evaluation *e)
{
    *e = (struct evaluation){NAN, NAN, NAN, NAN, NAN, NAN, {0}};
    for (size_t i = 0; i < AS_ARRAY_LEN(e->asked); i++)
        e->asked[i] = NAN;
}

double evaluation_of(const struct evaluation *e, const struct train_spec *spec, const char *name)
{
    const struct {
        const char *name;
        double value;
    } always[] = {{"val_loss", e->loss}, {"val_error", e->error}, {"val_accuracy", e->accuracy},
                  {"val_rmse", e->rmse}, {"val_mae", e->mae},     {"val_r2", e->r2}};
    for (size_t i = 0; i < AS_ARRAY_LEN(always); i++)
        if (as_streq(always[i].name, name))
            return always[i].value;
    for (size_t i = 0; i < spec->n_metrics; i++)
        if (as_streq(spec->metrics[i], name))
            return e->asked[i];
    return NAN;
}

/* Do metrics of the member need the outputs of each row, or only its class? */
static void add_needs(const struct member *m, bool weighted, struct held *h)
{
    if (weighted)
        h->classes = true; /* the device counts rows */
    for (size_t i = 0; i < m->spec.n_metrics; i++) {
        const char *name = m->spec.metrics[i];
        if (!train_spec_on_request(m->task, name) || (!weighted && as_streq(name, "val_top5")))
            continue;
        h->classes = true;
        h->values =
            h->values || !(as_streq(name, "val_f1") || as_streq(name, "val_balanced_accuracy"));
    }
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
        if (!text)
            add_needs(m, d->weights != NULL, h);
    }
    h->classes = h->classes && !numbers;
    h->values = h->values || numbers;
    if (h->classes)
        h->predicted = as_calloc(n * d->n_val, sizeof *h->predicted);
    if (h->values)
        h->outputs = as_calloc(n * d->n_val * ls->plan->outputs, sizeof *h->outputs);
    h->losses = (h->use.class_weights && d->set.labels) || d->weights;
    if (h->losses)
        h->row_loss = as_calloc(n * d->n_val, sizeof *h->row_loss);
    if ((h->classes && !h->predicted) || (h->values && !h->outputs) || (h->losses && !h->row_loss))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", n * d->n_val);
    return AS_OK;
}

static as_status gather_held(struct lockstep *ls, struct backend *lane, size_t first, size_t at,
                             bool average, struct batch *b, struct network_pass *ret,
                             struct as_err *err)
{
    size_t left = ls->setup->data->n_val - at;
    as_status st = batches_held(ls->batches, lane, first, at,
                                left < ls->max_rows ? left : ls->max_rows, b, err);
    *ret = (struct network_pass){.rows = b->rows,
                                 .x = b->x,
                                 .codes = b->codes,
                                 .params = average ? ls->optimizer->average : NULL};
    return st;
}

static as_status forward_batch(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                               size_t at, bool average, struct batch *ret, struct as_err *err)
{
    struct network_pass pass;
    as_status st = gather_held(ls, lane, first, at, average, ret, &pass, err);
    return st != AS_OK ? st : network_forward(ls->network, lane, first, n, &pass, err);
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

as_status evaluation_measure(const struct member *m, const struct metric_input *in,
                             struct evaluation *ret, struct as_err *err)
{
    const struct {
        const char *name;
        double *ret;
        bool of_classes;
    } always[] = {{"val_error", &ret->error, true},
                  {"val_accuracy", &ret->accuracy, true},
                  {"val_rmse", &ret->rmse, false},
                  {"val_mae", &ret->mae, false},
                  {"val_r2", &ret->r2, false}};
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(always); i++)
        if (always[i].of_classes == (in->labels != NULL))
            st = metric_compute(always[i].name, in, always[i].ret, err);
    for (size_t i = 0; st == AS_OK && i < m->spec.n_metrics; i++)
        if (train_spec_on_request(m->task, m->spec.metrics[i]))
            st = metric_compute(m->spec.metrics[i], in, &ret->asked[i], err);
    return st;
}

/* Compute one of spec.metrics. `z` holds the logits, or NULL. */
static as_status ask_of_classes(const struct lockstep *ls, const char *name,
                                const struct metric_input *in, const float *z, double *ret,
                                struct as_err *err)
{
    if (!train_spec_on_request(ls->setup->info->task, name))
        return AS_OK; /* it is always reported, or never */
    if (as_streq(name, "val_log_loss")) {
        *ret = metric_log_loss(z, in->labels, in->weights, in->n, ls->plan->outputs);
        return AS_OK;
    }
    if (as_streq(name, "val_top5") && !in->weights)
        return AS_OK; /* the device has counted it */
    return metric_compute(name, in, ret, err);
}

/* Probabilities [n_val, classes] from logits [n_val, outputs]. Owned by the caller. */
static as_status probabilities_of(const struct lockstep *ls, const float *z, float **ret,
                                  struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    size_t n = d->n_val, outputs = ls->plan->outputs, classes = d->set.n_outputs;
    float *p = as_calloc(n * classes, sizeof *p);
    if (!p)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu probabilities", n * classes);
    memcpy(p, z, n * outputs * sizeof *p);
    outputs_to_probabilities(p, n, outputs, ls->setup->loss);
    if (outputs < classes) /* one output for two classes */
        outputs_to_both_classes(p, n);
    *ret = p;
    return AS_OK;
}

static as_status class_metrics(const struct lockstep *ls, const struct member *m, size_t k,
                               const struct held *h, struct evaluation *e, struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    const float *z = h->values ? h->outputs + k * d->n_val * ls->plan->outputs : NULL;
    AS_AUTO(as_freep) float *probabilities = NULL;
    if (!h->classes)
        return AS_OK;
    as_status st = z ? probabilities_of(ls, z, &probabilities, err) : AS_OK;
    if (st != AS_OK)
        return st;
    const struct metric_input in = {.n = d->n_val,
                                    .outputs = d->set.n_outputs,
                                    .labels = d->val_labels,
                                    .predicted = probabilities,
                                    .predicted_class = h->predicted + k * d->n_val,
                                    .weights = d->val_weights};
    if (d->val_weights) {
        st = metric_compute("val_accuracy", &in, &e->accuracy, err);
        if (st == AS_OK)
            st = metric_compute("val_error", &in, &e->error, err);
    }
    for (size_t i = 0; st == AS_OK && i < m->spec.n_metrics; i++)
        st = ask_of_classes(ls, m->spec.metrics[i], &in, z, &e->asked[i], err);
    return st;
}

static as_status regression_metrics(const struct lockstep *ls, const struct member *m, size_t k,
                                    const struct held *h, struct evaluation *e, struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    float *z = h->outputs + k * d->n_val * ls->plan->outputs;
    outputs_to_probabilities(z, d->n_val, ls->plan->outputs, ls->setup->loss);
    outputs_to_own_unit(z, d->n_val, &d->fit);
    const struct metric_input in = {.n = d->n_val,
                                    .outputs = d->n_targets,
                                    .targets = d->val_targets,
                                    .predicted = z,
                                    .weights = d->val_weights};
    as_status st = evaluation_measure(m, &in, e, err);
    if (ls->setup->loss == TRAIN_MSE && d->n_targets == 1 &&
        d->fit.target_transform == TARGET_AS_IS)
        e->loss = metric_mse(&in); /* the same sum in double precision, which is more exact */
    return st;
}

/* The mean of the rows' losses, weighted by class weights and by the weights of the rows, over all
 * held-out rows at once. A mean of batch means would depend on how the rows are cut into batches.
 * The loss is 0 if all weights are 0, as in training. */
static double weighted_loss(const struct lockstep *ls, const struct member *m,
                            const float *row_loss)
{
    const struct train_data *d = ls->setup->data;
    double sum = 0, weights = 0;
    bool by_class = d->set.labels && loss_use_of(&m->spec).class_weights;
    for (size_t i = 0; i < d->n_val; i++) {
        size_t label = by_class ? (size_t)d->set.labels[d->val_rows[i]] : 0;
        double w = by_class ? (double)losses_class_weight(ls->losses, &m->spec, label) : 1;
        w *= d->val_weights ? (double)d->val_weights[i] : 1;
        sum += w > 0 ? w * (double)row_loss[i] : 0;
        weights += w;
    }
    return weights > 0 ? sum / weights : 0;
}

/* The sums of a slot over the held-out rows, which the device has made. */
static as_status sums_of(const struct lockstep *ls, size_t slot, struct evaluation *e,
                         double *ret_top5, struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    double rows = (double)d->n_val, places = rows * (double)ls->plan->tokens;
    float loss = 0;
    int32_t correct = 0, top5 = 0;
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
    e->accuracy = (double)correct / places;
    e->error = (places - (double)correct) / places;
    *ret_top5 = ls->setup->loss == TRAIN_BCE ? 1 : (double)top5 / places; /* bce: two classes */
    return AS_OK;
}

static as_status member_metrics(const struct lockstep *ls, size_t slot, size_t k,
                                const struct held *h, struct evaluation *e, struct as_err *err)
{
    const struct train_data *d = ls->setup->data;
    const struct member *m = ls->member[slot];
    double top5 = NAN;
    evaluation_clear(e);
    as_status st = sums_of(ls, slot, e, &top5, err);
    if (st != AS_OK)
        return st;
    if (h->losses && (d->weights || loss_use_of(&m->spec).class_weights))
        e->loss = weighted_loss(ls, m, h->row_loss + k * d->n_val) * loss_unit(ls->setup);
    if (d->n_targets > 0 && !d->set.labels) {
        e->error = e->accuracy = NAN;
        return regression_metrics(ls, m, k, h, e, err);
    }
    for (size_t i = 0; i < m->spec.n_metrics; i++) {
        if (as_streq(m->spec.metrics[i], "val_top5"))
            e->asked[i] = top5;
        if (d->context && as_streq(m->spec.metrics[i], "val_log_loss"))
            e->asked[i] = e->loss; /* text has no class weights */
    }
    return d->context ? AS_OK : class_metrics(ls, m, k, h, e, err);
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

/* ---- held-out rows through parts of a network, each at another rank ---- */

struct together {
    struct lockstep *ls;
    struct held *held;
    struct buf *x; /* [max_rows, …]: what comes from the part before; NULL: the rows themselves */
};

static size_t rows_of_batch(const void *arg, size_t batch)
{
    const struct lockstep *ls = ((const struct together *)arg)->ls;
    size_t left = ls->setup->data->n_val - batch * ls->max_rows;
    return left < ls->max_rows ? left : ls->max_rows;
}

/* The last part has the outputs: their loss and what metrics need stay here. */
static as_status finish_batch(const struct together *t, struct backend *lane, const struct batch *b,
                              size_t at, struct as_err *err)
{
    struct lockstep *ls = t->ls;
    as_status st = losses_held(ls->losses, lane, 0, 1, b->y, b->rows, t->held->use, err);
    return st != AS_OK ? st : download_batch(ls, 0, 1, at, b->rows, t->held, err);
}

static as_status forward_part(void *arg, struct backend *lane, size_t batch, const float *in,
                              float *out, struct as_err *err)
{
    const struct together *t = arg;
    struct lockstep *ls = t->ls;
    struct network_pass pass;
    struct batch b;
    size_t at = batch * ls->max_rows;
    as_status st = gather_held(ls, lane, 0, at, false, &b, &pass, err);
    size_t n = b.rows * net_shape_elements(ls->plan->nodes[0].out);
    if (st == AS_OK && in)
        st = buf_upload(t->x, 0, in, n, err);
    if (in)
        pass.x = tensor_at(t->x, 0, n);
    if (st != AS_OK || (st = network_forward(ls->network, lane, 0, 1, &pass, err)) != AS_OK ||
        (st = backend_sync(lane, err)) != AS_OK)
        return st;
    if (!out)
        return finish_batch(t, lane, &b, at, err);
    struct tensor y = network_result(ls->network, &pass);
    const struct net_node *last = &ls->plan->nodes[ls->plan->n_nodes - 1];
    return buf_download(y.buf, y.offset, out, b.rows * net_shape_elements(last->out), err);
}

/* The sums that the last part has made, on their way to all ranks. */
struct held_sums {
    float loss;
    int32_t correct, top5;
};

static as_status read_sums(const struct lockstep *ls, struct held_sums *ret, struct as_err *err)
{
    const struct loss_sums *s = &ls->losses->held;
    as_status st = buf_download(s->loss, 0, &ret->loss, 1, err);
    if (st == AS_OK)
        st = buf_download(s->correct, 0, &ret->correct, 1, err);
    return st != AS_OK ? st : buf_download(s->top5, 0, &ret->top5, 1, err);
}

static as_status write_sums(const struct lockstep *ls, const struct held_sums *sums,
                            struct as_err *err)
{
    const struct loss_sums *s = &ls->losses->held;
    as_status st = buf_upload(s->loss, 0, &sums->loss, 1, err);
    if (st == AS_OK)
        st = buf_upload(s->correct, 0, &sums->correct, 1, err);
    return st != AS_OK ? st : buf_upload(s->top5, 0, &sums->top5, 1, err);
}

/* Reads the sums of the last part behind its last batch, before they are sent. */
struct last_part {
    struct together together; /* first */
    struct held_sums sums;
    size_t n;
};

static as_status forward_and_read(void *arg, struct backend *lane, size_t batch, const float *in,
                                  float *out, struct as_err *err)
{
    struct last_part *p = arg;
    as_status st = forward_part(&p->together, lane, batch, in, out, err);
    if (st != AS_OK || out || batch + 1 < p->n)
        return st;
    st = backend_sync(lane, err);
    return st != AS_OK ? st : read_sums(p->together.ls, &p->sums, err);
}

/* Lists what the last part has for the metrics. ret: [4]. */
static size_t list_results(const struct lockstep *ls, const struct held *h, struct held_sums *sums,
                           struct held_result *ret)
{
    size_t n_val = ls->setup->data->n_val, n = 0;
    ret[n++] = (struct held_result){sums, sizeof *sums};
    if (h->predicted)
        ret[n++] = (struct held_result){h->predicted, n_val * sizeof *h->predicted};
    if (h->outputs)
        ret[n++] = (struct held_result){h->outputs, n_val * ls->plan->outputs * sizeof *h->outputs};
    if (h->row_loss)
        ret[n++] = (struct held_result){h->row_loss, n_val * sizeof *h->row_loss};
    return n;
}

as_status evaluate_together(struct lockstep *ls, struct backend *lane, struct coll *c,
                            struct evaluation *ret, struct as_err *err)
{
    AS_AUTO(held_done) struct held h = {0};
    AS_AUTO(buf_freep) struct buf *x = NULL;
    size_t n_val = ls->setup->data->n_val;
    struct last_part p = {.n = (n_val + ls->max_rows - 1) / ls->max_rows};
    struct held_result results[4];
    as_status st = held_create(ls, 0, 1, &h, err);
    if (st == AS_OK && ls->plan->wants_dx)
        st = buf_create(ls->setup->be, BUF_F32,
                        ls->max_rows * net_shape_elements(ls->plan->nodes[0].out), &x, err);
    if (st != AS_OK || (st = loss_sums_clear(&ls->losses->held, 0, 1, err)) != AS_OK)
        return st;
    p.together = (struct together){ls, &h, x};
    struct held_pass pass = {.n = p.n,
                             .rows = rows_of_batch,
                             .forward = forward_and_read,
                             .arg = &p,
                             .results = results};
    pass.n_results = list_results(ls, &h, &p.sums, results);
    network_use(ls->network, 0);
    st = ls->strategy->ops->evaluate(ls->strategy->self, c, lane, &pass, err);
    if (st != AS_OK || (st = write_sums(ls, &p.sums, err)) != AS_OK)
        return st;
    return member_metrics(ls, 0, 0, &h, ret, err);
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
                   d->n_val, s->info->classes[absent], (long long)d->class_rows[absent]);
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
    outputs_to_predictions(values, d->n_val, outputs, columns, ls->setup->loss, &d->fit);
    *ret = as_steal(values);
    return AS_OK;
}
