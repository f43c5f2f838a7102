#include "kernels/ops_optim.h"

#include "base/mem.h"
#include "kernels/check.h"

static as_status check_arena(const char *op, struct backend *be, const struct opt_arena *a,
                             struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"params", a->params, BUF_F32, a->n, REQUIRED},
        {"grads", a->grads, BUF_F32, a->n, SHARED},
        {"lr", a->lr, BUF_F32, 1, SHARED},
        {"weight_decay", a->weight_decay, BUF_F32, 1, SHARED | OPTIONAL},
        {"active", a->active, BUF_I32, 1, SHARED | OPTIONAL},
        {"step", a->step, BUF_I32, 1, REQUIRED},
    };
    return check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

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

static as_status check_sgd(struct backend *be, const struct sgd_args *a, struct as_err *err)
{
    as_status st = check_arena("sgd", be, &a->arena, err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"velocity", a->velocity, BUF_F32, a->arena.n, REQUIRED},
        {"momentum", a->momentum, BUF_F32, 1, SHARED | OPTIONAL},
        {"nesterov", a->nesterov, BUF_I32, 1, SHARED | OPTIONAL},
    };
    return check_rows("sgd", be, rows, AS_ARRAY_LEN(rows), a->arena.members, err);
}

as_status backend_sgd(struct backend *be, const struct sgd_args *a, struct as_err *err)
{
    as_status st = check_sgd(be, a, err);
    return st < 0 ? st : be->ops->sgd(be, a, err);
}

static as_status check_adamw(struct backend *be, const struct adamw_args *a, struct as_err *err)
{
    as_status st = check_arena("adamw", be, &a->arena, err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"m", a->m, BUF_F32, a->arena.n, REQUIRED}, {"v", a->v, BUF_F32, a->arena.n, REQUIRED},
        {"beta1", a->beta1, BUF_F32, 1, SHARED},    {"beta2", a->beta2, BUF_F32, 1, SHARED},
        {"eps", a->eps, BUF_F32, 1, SHARED},
    };
    return check_rows("adamw", be, rows, AS_ARRAY_LEN(rows), a->arena.members, err);
}

as_status backend_adamw(struct backend *be, const struct adamw_args *a, struct as_err *err)
{
    as_status st = check_adamw(be, a, err);
    return st < 0 ? st : be->ops->adamw(be, a, err);
}
