#include "trial-runner/train/loop.h"

#include <stdio.h>
#include <math.h>

#include "base/clock.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/report.h"
#include "trial-runner/train/schedule.h"

#define VALIDATION_BATCH ((size_t)256)
/* A checkpoint inside an epoch is for epochs that last; writing takes at most one part in 20. */
#define INSIDE_EPOCH_FACTOR 15
#define SAVE_COST_FACTOR 20

void loop_free(struct loop *l)
{
    if (!l)
        return;
    evaluator_free(l->evaluator);
    batches_free(l->batches);
    optimizer_free(l->optimizer);
    model_free(l->model);
    buf_free(l->lr);
    buf_free(l->rate);
    buf_free(l->seed);
    buf_free(l->loss_sum);
    buf_free(l->correct);
    for (size_t k = 0; l->last_report && k < l->members; k++)
        str_done(&l->last_report[k]);
    free(l->last_report);
    free(l->member);
    free(l);
}

/* ---- making ---- */

static as_status set_members(struct loop *l, const struct loop_member *members, struct as_err *err)
{
    const struct train_spec *spec = members[0].spec;
    size_t n = l->data->n_train;
    l->member = as_calloc(l->members, sizeof *l->member);
    l->last_report = as_calloc(l->members, sizeof *l->last_report);
    if (!l->member || !l->last_report)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t k = 0; k < l->members; k++) {
        l->member[k] = members[k];
        l->dropout = l->dropout || members[k].spec->model.dropout > 0;
    }
    l->classify = l->data->set.labels != NULL;
    l->batch_size = (size_t)spec->batch_size < n ? (size_t)spec->batch_size : n;
    l->epochs = spec->epochs;
    l->steps_per_epoch = (int64_t)((n + l->batch_size - 1) / l->batch_size);
    return AS_OK;
}

static as_status create_parts(struct loop *l, struct as_err *err)
{
    const struct train_spec *spec = l->member[0].spec;
    struct model_shape shape;
    size_t held = l->data->n_val < VALIDATION_BATCH ? l->data->n_val : VALIDATION_BATCH;
    size_t rows = l->batch_size > held ? l->batch_size : held;
    AS_AUTO(as_freep) const struct train_spec **specs = as_calloc(l->members, sizeof *specs);
    if (!specs)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t k = 0; k < l->members; k++)
        specs[k] = l->member[k].spec;
    model_shape_of(&spec->model, l->data->set.n_features, l->data->set.n_outputs, &shape);
    as_status st = model_create(l->be, &shape, l->members, rows, l->dropout, &l->model, err);
    for (size_t k = 0; st == AS_OK && k < l->members; k++)
        st = model_init(l->model, k, l->member[k].seed, err);
    if (st == AS_OK)
        st = optimizer_create(l->be, specs, l->members, shape.n_params, &l->optimizer, err);
    if (st == AS_OK)
        st = batches_create(l->be, l->data, l->members, rows, &l->batches, err);
    if (st == AS_OK)
        st = evaluator_create(l->model, l->batches, l->classify, &l->evaluator, err);
    return st;
}

static as_status create_scalars(struct loop *l, struct as_err *err)
{
    size_t k_n = l->members;
    as_status st = buf_create(l->be, BUF_F32, (size_t)l->steps_per_epoch * k_n, &l->lr, err);
    if (st == AS_OK)
        st = buf_create(l->be, BUF_F32, k_n, &l->rate, err);
    if (st == AS_OK)
        st = buf_create(l->be, BUF_I32, 2 * k_n, &l->seed, err);
    if (st == AS_OK)
        st = buf_create(l->be, BUF_F32, k_n, &l->loss_sum, err);
    if (st == AS_OK)
        st = buf_create(l->be, BUF_I32, k_n, &l->correct, err);
    for (size_t k = 0; st == AS_OK && k < k_n; k++) {
        uint64_t seed = l->member[k].seed;
        int32_t words[2] = {(int32_t)(uint32_t)seed, (int32_t)(uint32_t)(seed >> 32)};
        st = buf_upload(l->seed, 2 * k, words, 2, err);
        if (st == AS_OK)
            st = buf_fill_f32(l->rate, k, 1, (float)l->member[k].spec->model.dropout, err);
    }
    return st;
}

as_status loop_create(struct backend *be, const struct train_data *data,
                      const struct loop_member *members, size_t n_members,
                      const struct loop_opts *opts, struct loop **ret, struct as_err *err)
{
    AS_AUTO(loop_freep) struct loop *l = as_calloc(1, sizeof *l);
    if (!l)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *l = (struct loop){.be = be, .data = data, .opts = *opts, .members = n_members};
    as_status st = set_members(l, members, err);
    if (st == AS_OK)
        st = create_parts(l, err);
    if (st == AS_OK)
        st = create_scalars(l, err);
    if (st == AS_OK)
        *ret = as_steal(l);
    return st;
}

/* ---- one step ---- */

static as_status loss_and_gradient(struct loop *l, const struct batch *b, struct as_err *err)
{
    struct tensor out = model_outputs(l->model);
    size_t rows = l->model->max_batch;
    struct loss_out sums = {.row_loss = tensor_at(l->evaluator->row_loss, 0, rows),
                            .loss = tensor_at(l->loss_sum, 0, 1),
                            .weight = (float)b->n,
                            .accumulate = l->step > 0};
    if (!l->classify) {
        struct mse_args a = {.members = l->members,
                             .batch = b->n,
                             .outputs = 1,
                             .pred = out,
                             .target = b->y,
                             .dpred = out,
                             .grad_scale = 1,
                             .out = sums};
        return backend_mse(l->be, &a, err);
    }
    struct softmax_ce_args a = {.members = l->members,
                                .batch = b->n,
                                .classes = l->data->set.n_outputs,
                                .logits = out,
                                .labels = b->y,
                                .dlogits = out,
                                .grad_scale = 1,
                                .row_class = tensor_at(l->evaluator->row_class, 0, rows),
                                .correct = tensor_at(l->correct, 0, 1),
                                .out = sums};
    return backend_softmax_ce(l->be, &a, err);
}

static as_status train_step(struct loop *l, struct as_err *err)
{
    size_t first = (size_t)l->step * l->batch_size, left = l->data->n_train - first;
    struct batch b;
    struct model_dropout drop = {tensor_at(l->rate, 0, 1), tensor_at(l->seed, 0, 2),
                                 tensor_at(l->optimizer->step, 0, 1)};
    const struct model_dropout *dropout = l->dropout ? &drop : NULL;
    as_status st =
        batches_train(l->batches, first, left < l->batch_size ? left : l->batch_size, &b, err);
    if (st == AS_OK)
        st = model_forward(l->model, b.x, b.n, dropout, err);
    if (st == AS_OK)
        st = loss_and_gradient(l, &b, err);
    if (st == AS_OK)
        st = model_backward(l->model, b.x, b.n, dropout, err);
    if (st == AS_OK)
        st = optimizer_step(l->optimizer, l->model->params, l->model->grads,
                            tensor_at(l->lr, (size_t)l->step * l->members, 1), err);
    if (st == AS_OK)
        l->step++;
    return st;
}

/* ---- epochs ---- */

/* What an epoch's steps read: each member's order of rows and learning rates. */
static as_status begin_epoch(struct loop *l, struct as_err *err)
{
    size_t n = (size_t)l->steps_per_epoch * l->members;
    AS_AUTO(as_freep) float *rates = as_calloc(n, sizeof *rates);
    if (!rates)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        rates[i] = (float)schedule_lr(l->member[i % l->members].spec,
                                      l->epoch * l->steps_per_epoch + (int64_t)(i / l->members),
                                      l->steps_per_epoch);
    as_status st = buf_upload(l->lr, 0, rates, n, err);
    for (size_t k = 0; st == AS_OK && k < l->members; k++)
        st = batches_shuffle(l->batches, k, l->member[k].seed, l->epoch, err);
    return st;
}

static as_status report_member(struct loop *l, size_t k, double mean_loss,
                               const struct evaluation *e, struct as_err *err)
{
    double lr =
        schedule_lr(l->member[k].spec, (l->epoch + 1) * l->steps_per_epoch - 1, l->steps_per_epoch);
    bool bad = !isfinite(e->loss); /* figures of such predictions mean nothing */
    struct report_value classes[] = {{"train_loss", mean_loss},
                                     {"val_loss", e->loss},
                                     {"val_error", bad ? NAN : e->error},
                                     {"val_accuracy", bad ? NAN : e->accuracy},
                                     {"lr", lr}};
    struct report_value numbers[] = {{"train_loss", mean_loss}, {"val_loss", e->loss},
                                     {"val_rmse", e->rmse},     {"val_mae", e->mae},
                                     {"val_r2", e->r2},         {"lr", lr}};
    struct str *line = &l->last_report[k];
    str_clear(line);
    as_status st = l->classify
                       ? report_format(l->epoch + 1, classes, AS_ARRAY_LEN(classes), line, err)
                       : report_format(l->epoch + 1, numbers, AS_ARRAY_LEN(numbers), line, err);
    return st < 0 ? st : report_append(l->member[k].report, line, err);
}

/* Evaluate and report the members that are still in; those whose loss is not finite drop out. */
static as_status report_members(struct loop *l, const float *sums, int32_t *active,
                                struct as_err *err)
{
    AS_AUTO(as_freep) struct evaluation *e = as_calloc(l->members, sizeof *e);
    if (!e)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    /* losses of regression are reported in the target's own unit */
    double unit = l->classify ? 1 : l->data->target_scale[0] * l->data->target_scale[0];
    as_status st = evaluator_run(l->evaluator, e, err);
    for (size_t k = 0; st == AS_OK && k < l->members; k++) {
        if (!active[k])
            continue;
        double mean_loss = (double)sums[k] / (double)l->data->n_train * unit;
        st = report_member(l, k, mean_loss, &e[k], err);
        active[k] = isfinite(mean_loss) && isfinite(e[k].loss);
    }
    return st < 0 ? st : buf_upload(l->optimizer->active, 0, active, l->members, err);
}

/* Close the epoch: report when it is due, or when a member diverged, and move on. *ret_active is
 * the number of members that still train. */
static as_status end_epoch(struct loop *l, size_t *ret_active, struct as_err *err)
{
    AS_AUTO(as_freep) float *sums = as_calloc(l->members, sizeof *sums);
    AS_AUTO(as_freep) int32_t *active = as_calloc(l->members, sizeof *active);
    if (!sums || !active)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = buf_download(l->loss_sum, 0, sums, l->members, err);
    if (st == AS_OK)
        st = buf_download(l->optimizer->active, 0, active, l->members, err);
    if (st < 0)
        return st;
    int64_t done = l->epoch + 1;
    bool due = done == l->epochs || done % l->member[0].spec->report_every == 0;
    for (size_t k = 0; k < l->members; k++)
        due = due || (active[k] && !isfinite(sums[k]));
    if (due)
        st = report_members(l, sums, active, err);
    if (st < 0)
        return st;
    for (size_t k = 0; k < l->members; k++)
        *ret_active += active[k] != 0;
    l->epoch = done;
    l->step = 0;
    return AS_OK;
}

/* ---- running ---- */

static as_status save(struct loop *l, struct as_err *err)
{
    if (!l->opts.checkpoint)
        return AS_OK;
    int64_t start = clock_mono_ns();
    as_status st = checkpoint_write(l, l->opts.checkpoint, err);
    l->saved_ns = clock_mono_ns();
    l->save_cost_ns = l->saved_ns - start;
    return st;
}

/* A full disk costs a checkpoint, not the training: the one before is still there, and the next may
 * find room. */
static as_status save_if_possible(struct loop *l, struct as_err *err)
{
    as_status st = save(l, err);
    if (st != AS_E_IO)
        return st;
    (void)fprintf(stderr, "assay-train: warning: going on without a checkpoint: %s\n", err->msg);
    return AS_OK;
}

static as_status save_when_due(struct loop *l, struct as_err *err)
{
    int64_t wait = l->opts.checkpoint_ns * (l->step ? INSIDE_EPOCH_FACTOR : 1);
    if (wait < SAVE_COST_FACTOR * l->save_cost_ns)
        wait = SAVE_COST_FACTOR * l->save_cost_ns;
    return clock_mono_ns() - l->saved_ns >= wait ? save_if_possible(l, err) : AS_OK;
}

/* The steps of this epoch that are left; ends early when *stop is set. */
static as_status run_epoch(struct loop *l, const volatile sig_atomic_t *stop, struct as_err *err)
{
    as_status st = begin_epoch(l, err);
    while (st == AS_OK && l->step < l->steps_per_epoch && !*stop) {
        st = train_step(l, err);
        if (st == AS_OK && l->step < l->steps_per_epoch)
            st = save_when_due(l, err);
    }
    return st;
}

as_status loop_run(struct loop *l, const volatile sig_atomic_t *stop, loop_end *ret,
                   struct as_err *err)
{
    l->saved_ns = clock_mono_ns();
    while (l->epoch < l->epochs) {
        size_t active = 0;
        as_status st = run_epoch(l, stop, err);
        if (st < 0)
            return st;
        if (l->step < l->steps_per_epoch) {
            *ret = LOOP_STOPPED;
            return save_if_possible(l, err);
        }
        st = end_epoch(l, &active, err);
        if (st < 0)
            return st;
        if (active == 0) {
            *ret = LOOP_DIVERGED;
            return AS_OK;
        }
        st = save_when_due(l, err);
        if (st < 0)
            return st;
    }
    *ret = LOOP_DONE;
    return AS_OK;
}
