#include "trial-runner/train/evaluate.h"

#include <math.h>
#include <string.h>

void evaluator_free(struct evaluator *e)
{
    if (!e)
        return;
    buf_free(e->row_loss);
    buf_free(e->row_class);
    buf_free(e->loss);
    buf_free(e->correct);
    free(e->predictions);
    free(e);
}

as_status evaluator_create(struct model *model, struct batches *batches, bool classify,
                           struct evaluator **ret, struct as_err *err)
{
    AS_AUTO(evaluator_freep) struct evaluator *e = as_calloc(1, sizeof *e);
    if (!e)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *e = (struct evaluator){.model = model,
                            .batches = batches,
                            .classify = classify,
                            .outputs = model->shape.width[model->shape.n_linear]};
    size_t rows = model->members * model->max_batch, values;
    if (__builtin_mul_overflow(batches->data->n_val, e->outputs, &values))
        return as_fail(err, AS_E_TOO_LARGE, "too many predictions");
    e->predictions = as_calloc(values, sizeof *e->predictions);
    if (!e->predictions)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu predictions", values);
    as_status st = buf_create(model->be, BUF_F32, rows, &e->row_loss, err);
    if (st == AS_OK)
        st = buf_create(model->be, BUF_I32, rows, &e->row_class, err);
    if (st == AS_OK)
        st = buf_create(model->be, BUF_F32, model->members, &e->loss, err);
    if (st == AS_OK)
        st = buf_create(model->be, BUF_I32, model->members, &e->correct, err);
    if (st == AS_OK)
        *ret = as_steal(e);
    return st;
}

/* Add a batch to the sums of loss and correct rows; the first one starts them. */
static as_status add_batch(struct evaluator *e, const struct batch *b, bool first,
                           struct as_err *err)
{
    struct model *m = e->model;
    struct softmax_ce_args a = {.members = m->members,
                                .batch = b->n,
                                .classes = e->outputs,
                                .logits = model_outputs(m),
                                .labels = b->y,
                                .row_class = tensor_at(e->row_class, 0, m->max_batch),
                                .correct = tensor_at(e->correct, 0, 1),
                                .out = {.row_loss = tensor_at(e->row_loss, 0, m->max_batch),
                                        .loss = tensor_at(e->loss, 0, 1),
                                        .weight = (float)b->n,
                                        .accumulate = !first}};
    return backend_softmax_ce(m->be, &a, err);
}

static as_status forward(struct evaluator *e, size_t first, struct batch *ret, struct as_err *err)
{
    size_t left = e->batches->data->n_val - first;
    size_t n = left < e->model->max_batch ? left : e->model->max_batch;
    as_status st = batches_validation(e->batches, first, n, ret, err);
    return st < 0 ? st : model_forward(e->model, ret->x, n, NULL, err);
}

static as_status classification(struct evaluator *e, struct evaluation *ret, struct as_err *err)
{
    size_t n = e->batches->data->n_val;
    struct batch b;
    for (size_t at = 0; at < n; at += b.n) {
        as_status st = forward(e, at, &b, err);
        if (st == AS_OK)
            st = add_batch(e, &b, at == 0, err);
        if (st < 0)
            return st;
    }
    for (size_t k = 0; k < e->model->members; k++) {
        float loss = 0;
        int32_t correct = 0;
        as_status st = buf_download(e->loss, k, &loss, 1, err);
        if (st == AS_OK)
            st = buf_download(e->correct, k, &correct, 1, err);
        if (st < 0)
            return st;
        double wrong = (double)n - (double)correct;
        ret[k] = (struct evaluation){.loss = (double)loss / (double)n,
                                     .error = wrong / (double)n,
                                     .accuracy = (double)correct / (double)n};
    }
    return AS_OK;
}

static struct evaluation number_errors(const float *pred, const float *want, size_t n)
{
    double squares = 0, absolute = 0, mean = 0, spread = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)pred[i] - (double)want[i];
        squares += d * d;
        absolute += fabs(d);
        mean += (double)want[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        spread += ((double)want[i] - mean) * ((double)want[i] - mean);
    double mse = squares / (double)n;
    double r2 = spread > 0 ? 1 - squares / spread : squares == 0 ? 1 : 0;
    return (struct evaluation){.loss = mse,
                               .rmse = sqrt(mse),
                               .mae = absolute / (double)n,
                               .r2 = isfinite(mse) ? r2 : -mse};
}

static as_status regression(struct evaluator *e, struct evaluation *ret, struct as_err *err)
{
    const struct train_data *d = e->batches->data;
    for (size_t k = 0; k < e->model->members; k++) {
        const float *pred = NULL;
        as_status st = evaluator_predict(e, k, &pred, err);
        if (st < 0)
            return st;
        ret[k] = number_errors(pred, d->val_targets, d->n_val);
    }
    return AS_OK;
}

as_status evaluator_run(struct evaluator *e, struct evaluation *ret, struct as_err *err)
{
    return e->classify ? classification(e, ret, err) : regression(e, ret, err);
}

as_status evaluator_predict(struct evaluator *e, size_t k, const float **ret, struct as_err *err)
{
    struct model *m = e->model;
    const struct train_data *d = e->batches->data;
    struct batch b;
    for (size_t at = 0; at < d->n_val; at += b.n) {
        as_status st = forward(e, at, &b, err);
        if (st == AS_OK && e->classify) {
            struct softmax_args a = {m->members, b.n, e->outputs, model_outputs(m),
                                     model_outputs(m)};
            st = backend_softmax(m->be, &a, err);
        }
        struct tensor out = model_outputs(m);
        if (st == AS_OK)
            st = buf_download(out.buf, out.offset + k * out.stride,
                              e->predictions + at * e->outputs, b.n * e->outputs, err);
        if (st < 0)
            return st;
    }
    for (size_t i = 0; !e->classify && i < d->n_val; i++)
        e->predictions[i] =
            (float)((double)e->predictions[i] * d->target_scale[0] + d->target_mean[0]);
    *ret = e->predictions;
    return AS_OK;
}
