/* Checks of shapes, strides and buffers before the back end's function, as in all ops_*.c: the host
 * checks once what a device cannot report (decision 3001). A back end relies on them and checks
 * nothing itself. */
#include "kernels/ops_dense.h"

#include "base/mem.h"
#include "kernels/check.h"

static as_status check_linear(const char *op, struct backend *be, const struct linear_args *a,
                              struct as_err *err)
{
    const struct dim dims[] = {
        {"members", a->members}, {"batch", a->batch}, {"in", a->in}, {"out", a->out}};
    const struct row rows[] = {
        {"x", a->x, BUF_F32, a->batch * a->in, SHARED},
        {"w", a->w, BUF_F32, a->in * a->out, SHARED},
    };
    return check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

static as_status check_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                                      struct tensor y, struct tensor z, struct as_err *err)
{
    static const char op[] = "linear forward";
    as_status st = check_linear(op, be, a, err);
    if (st < 0 || (st = check_act(op, act, err)) < 0)
        return st;
    const struct row rows[] = {
        {"b", a->b, BUF_F32, a->out, SHARED | OPTIONAL},
        {"y", y, BUF_F32, a->batch * a->out, REQUIRED},
        {"z", z, BUF_F32, a->batch * a->out, OPTIONAL},
    };
    return check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
}

as_status backend_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                                 struct tensor y, struct tensor z, struct as_err *err)
{
    as_status st = check_linear_forward(be, a, act, y, z, err);
    return st < 0 ? st : be->ops->linear_forward(be, a, act, y, z, err);
}

static as_status check_linear_backward(struct backend *be, const struct linear_args *a,
                                       const struct linear_grads *g, struct as_err *err)
{
    static const char op[] = "linear backward";
    as_status st = check_linear(op, be, a, err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"dy", g->dy, BUF_F32, a->batch * a->out, SHARED},
        {"dx", g->dx, BUF_F32, a->batch * a->in, OPTIONAL},
        {"dw", g->dw, BUF_F32, a->in * a->out, OPTIONAL},
        {"db", g->db, BUF_F32, a->out, OPTIONAL},
    };
    return check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
}

as_status backend_linear_backward(struct backend *be, const struct linear_args *a,
                                  const struct linear_grads *g, struct as_err *err)
{
    as_status st = check_linear_backward(be, a, g, err);
    return st < 0 ? st : be->ops->linear_backward(be, a, g, err);
}

static as_status check_act_backward(struct backend *be, const struct act_args *a,
                                    struct as_err *err)
{
    static const char op[] = "activation backward";
    as_status st = check_act(op, a->act, err);
    if (st < 0)
        return st;
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"kept", a->kept, BUF_F32, a->n, SHARED},
        {"dy", a->dy, BUF_F32, a->n, SHARED},
        {"dx", a->dx, BUF_F32, a->n, REQUIRED},
    };
    return check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_act_backward(struct backend *be, const struct act_args *a, struct as_err *err)
{
    as_status st = check_act_backward(be, a, err);
    return st < 0 ? st : be->ops->act_backward(be, a, err);
}

static as_status check_add(struct backend *be, const struct add_args *a, struct as_err *err)
{
    if (a->act != ACT_NONE && a->act != ACT_RELU)
        return as_fail(err, AS_E_INVAL, "add: activation %d is neither none (%d) nor relu (%d)",
                       (int)a->act, ACT_NONE, ACT_RELU);
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"a", a->a, BUF_F32, a->n, SHARED},
        {"b", a->b, BUF_F32, a->n, SHARED},
        {"y", a->y, BUF_F32, a->n, REQUIRED},
    };
    return check_all("add", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_add(struct backend *be, const struct add_args *a, struct as_err *err)
{
    as_status st = check_add(be, a, err);
    return st < 0 ? st : be->ops->add(be, a, err);
}

static as_status check_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err)
{
    if (a->layer >= (UINT32_C(1) << 24))
        return as_fail(err, AS_E_INVAL, "dropout: layer is %u, must be below 2^24", a->layer);
    const struct dim dims[] = {{"members", a->members}, {"rows", a->rows}, {"width", a->width}};
    size_t n = a->rows * a->width;
    const struct row rows[] = {
        {"x", a->x, BUF_F32, n, SHARED},       {"y", a->y, BUF_F32, n, REQUIRED},
        {"rate", a->rate, BUF_F32, 1, SHARED}, {"seed", a->seed, BUF_I32, 2, SHARED},
        {"step", a->step, BUF_I32, 1, SHARED},
    };
    return check_all("dropout", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err)
{
    as_status st = check_dropout(be, a, err);
    return st < 0 ? st : be->ops->dropout(be, a, err);
}
