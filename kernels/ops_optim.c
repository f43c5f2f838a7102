/* Checks of the arenas that optimizers and norms run over. Kinds of optimizers lie in device memory
 * and are not checked here: a member of an unknown kind, or without the moment that its kind needs,
 * is left unchanged by the kernel (decision 3001). */
#include "kernels/ops_optim.h"

#include "base/mem.h"
#include "kernels/check.h"

static as_status check_grad_stats(struct backend *be, const struct grad_stats_args *a,
                                  struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"grads", a->grads, BUF_F32, a->n, SHARED},
        {"sq_norm", a->sq_norm, BUF_F32, 1, REQUIRED},
        {"finite", a->finite, BUF_I32, 1, REQUIRED},
        {"active", a->active, BUF_I32, 1, OPTIONAL},
    };
    return check_all("gradient stats", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_grad_stats(struct backend *be, const struct grad_stats_args *a,
                             struct as_err *err)
{
    as_status st = check_grad_stats(be, a, err);
    return st < 0 ? st : be->ops->grad_stats(be, a, err);
}

static as_status check_grad_clip(struct backend *be, const struct grad_clip_args *a,
                                 struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"grads", a->grads, BUF_F32, a->n, REQUIRED},
        {"sq_norm", a->sq_norm, BUF_F32, 1, SHARED},
        {"max_norm", a->max_norm, BUF_F32, 1, SHARED},
    };
    return check_all("gradient clip", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err)
{
    as_status st = check_grad_clip(be, a, err);
    return st < 0 ? st : be->ops->grad_clip(be, a, err);
}

static as_status check_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                                       struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"grads", a->grads, BUF_F32, a->n, SHARED},
        {"sum", a->sum, BUF_F32, a->n, REQUIRED},
        {"scale", a->scale, BUF_F32, 1, SHARED},
        {"first", a->first, BUF_I32, 1, SHARED},
    };
    return check_all("gradient accumulation", be, dims, AS_ARRAY_LEN(dims), rows,
                     AS_ARRAY_LEN(rows), err);
}

as_status backend_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                                  struct as_err *err)
{
    as_status st = check_grad_accumulate(be, a, err);
    return st < 0 ? st : be->ops->grad_accumulate(be, a, err);
}

static as_status check_ema(struct backend *be, const struct ema_args *a, struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"params", a->params, BUF_F32, a->n, SHARED},
        {"average", a->average, BUF_F32, a->n, REQUIRED},
        {"decay", a->decay, BUF_F32, 1, SHARED},
        {"active", a->active, BUF_I32, 1, SHARED | OPTIONAL},
    };
    return check_all("moving average", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_ema(struct backend *be, const struct ema_args *a, struct as_err *err)
{
    as_status st = check_ema(be, a, err);
    return st < 0 ? st : be->ops->ema(be, a, err);
}

static as_status check_segments(const struct opt_args *a, struct as_err *err)
{
    if (a->segments == NULL)
        return AS_OK;
    if (a->n_segments == 0 || a->segments[0] != 0)
        return as_fail(err, AS_E_INVAL, "optimizer: the first segment is not at 0");
    for (size_t i = 1; i < a->n_segments; i++)
        if (a->segments[i] < a->segments[i - 1] || a->segments[i] > a->n)
            return as_fail(err, AS_E_INVAL,
                           "optimizer: segment %zu begins at %zu, expected %zu to %zu", i,
                           a->segments[i], a->segments[i - 1], a->n);
    return AS_OK;
}

static as_status check_optimize(struct backend *be, const struct opt_args *a, struct as_err *err)
{
    as_status st = check_segments(a, err);
    if (st < 0)
        return st;
    size_t n_segments = a->segments != NULL ? a->n_segments : 1;
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"kind", a->kind, BUF_I32, 1, SHARED},
        {"params", a->params, BUF_F32, a->n, REQUIRED},
        {"grads", a->grads, BUF_F32, a->n, SHARED},
        {"m1", a->m1, BUF_F32, a->n, REQUIRED},
        {"m2", a->m2, BUF_F32, a->n, OPTIONAL},
        {"lr", a->lr, BUF_F32, 1, SHARED},
        {"weight_decay", a->weight_decay, BUF_F32, 1, SHARED | OPTIONAL},
        {"momentum", a->momentum, BUF_F32, 1, SHARED | OPTIONAL},
        {"nesterov", a->nesterov, BUF_I32, 1, SHARED | OPTIONAL},
        {"beta1", a->beta1, BUF_F32, 1, SHARED | OPTIONAL},
        {"beta2", a->beta2, BUF_F32, 1, SHARED | OPTIONAL},
        {"eps", a->eps, BUF_F32, 1, SHARED | OPTIONAL},
        {"active", a->active, BUF_I32, 1, SHARED | OPTIONAL},
        {"step", a->step, BUF_I32, 1, REQUIRED},
        {"work", a->work, BUF_F32, 2 * n_segments, OPTIONAL},
    };
    return check_all("optimizer", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_optimize(struct backend *be, const struct opt_args *a, struct as_err *err)
{
    as_status st = check_optimize(be, a, err);
    return st < 0 ? st : be->ops->optimize(be, a, err);
}
