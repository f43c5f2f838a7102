/* Checks of arguments before the back end's function: weights and scales are finite, the losses of
 * rows and their sum have room. The values of labels are not checked; a bad one becomes NaN in that
 * member's loss (decision 3001). */
#include "kernels/ops_loss.h"

#include <math.h>

#include "base/mem.h"
#include "kernels/check.h"

/* Check the outputs of a loss. */
static as_status check_loss(const char *op, struct backend *be, const struct loss_out *o,
                            float grad_scale, size_t members, size_t batch, struct as_err *err)
{
    if (!isfinite(o->weight))
        return as_fail(err, AS_E_INVAL, "%s: weight is not finite", op);
    if (!isfinite(grad_scale))
        return as_fail(err, AS_E_INVAL, "%s: grad_scale is not finite", op);
    const struct row rows[] = {
        {"row_loss", o->row_loss, BUF_F32, batch, REQUIRED},
        {"loss", o->loss, BUF_F32, 1, REQUIRED},
    };
    return check_rows(op, be, rows, AS_ARRAY_LEN(rows), members, err);
}

static as_status check_softmax_ce(struct backend *be, const struct softmax_ce_args *a,
                                  struct as_err *err)
{
    static const char op[] = "softmax cross-entropy";
    if (a->classes == 0)
        return as_fail(err, AS_E_INVAL, "%s: classes is 0, must be > 0", op);
    const struct dim dims[] = {
        {"members", a->members}, {"batch", a->batch}, {"classes", a->classes}};
    size_t n = a->batch * a->classes;
    const struct row rows[] = {
        {"logits", a->logits, BUF_F32, n, SHARED},
        {"labels", a->labels, BUF_I32, a->batch, SHARED},
        {"smoothing", a->smoothing, BUF_F32, 1, SHARED | OPTIONAL},
        {"class_weights", a->class_weights, BUF_F32, a->classes, SHARED | OPTIONAL},
        {"dlogits", a->dlogits, BUF_F32, n, OPTIONAL},
        {"row_class", a->row_class, BUF_I32, a->batch, REQUIRED},
        {"correct", a->correct, BUF_I32, 1, REQUIRED},
        {"top5", a->top5, BUF_I32, 1, OPTIONAL},
    };
    as_status st = check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
    return st < 0 ? st : check_loss(op, be, &a->out, a->grad_scale, a->members, a->batch, err);
}

as_status backend_softmax_ce(struct backend *be, const struct softmax_ce_args *a,
                             struct as_err *err)
{
    as_status st = check_softmax_ce(be, a, err);
    return st < 0 ? st : be->ops->softmax_ce(be, a, err);
}

static as_status check_mse(const char *op, struct backend *be, const struct mse_args *a,
                           struct as_err *err)
{
    const struct dim dims[] = {
        {"members", a->members}, {"batch", a->batch}, {"outputs", a->outputs}};
    size_t n = a->batch * a->outputs;
    const struct row rows[] = {
        {"pred", a->pred, BUF_F32, n, SHARED},
        {"target", a->target, BUF_F32, n, SHARED},
        {"dpred", a->dpred, BUF_F32, n, OPTIONAL},
    };
    as_status st = check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
    return st < 0 ? st : check_loss(op, be, &a->out, a->grad_scale, a->members, a->batch, err);
}

as_status backend_mse(struct backend *be, const struct mse_args *a, struct as_err *err)
{
    as_status st = check_mse("mean squared error", be, a, err);
    return st < 0 ? st : be->ops->mse(be, a, err);
}

as_status backend_huber(struct backend *be, const struct huber_args *a, struct as_err *err)
{
    static const char op[] = "huber loss";
    const struct row rows[] = {{"delta", a->delta, BUF_F32, 1, SHARED}};
    as_status st = check_mse(op, be, &a->mse, err);
    if (st != AS_OK)
        return st;
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->mse.members, err);
    if (st != AS_OK)
        return st;
    return be->ops->huber(be, a, err);
}

static as_status check_bce(struct backend *be, const struct bce_args *a, struct as_err *err)
{
    static const char op[] = "binary cross-entropy";
    const struct dim dims[] = {
        {"members", a->members}, {"batch", a->batch}, {"outputs", a->outputs}};
    size_t n = a->batch * a->outputs;
    const struct row rows[] = {
        {"logits", a->logits, BUF_F32, n, SHARED},
        {"target", a->target, BUF_F32, n, SHARED},
        {"smoothing", a->smoothing, BUF_F32, 1, SHARED | OPTIONAL},
        {"class_weights", a->class_weights, BUF_F32, 2, SHARED | OPTIONAL},
        {"dlogits", a->dlogits, BUF_F32, n, OPTIONAL},
        {"row_class", a->row_class, BUF_I32, a->batch, REQUIRED},
        {"correct", a->correct, BUF_I32, 1, REQUIRED},
    };
    as_status st = check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
    return st < 0 ? st : check_loss(op, be, &a->out, a->grad_scale, a->members, a->batch, err);
}

as_status backend_bce(struct backend *be, const struct bce_args *a, struct as_err *err)
{
    as_status st = check_bce(be, a, err);
    return st < 0 ? st : be->ops->bce(be, a, err);
}

as_status backend_weigh_rows(struct backend *be, const struct weigh_rows_args *a,
                             struct as_err *err)
{
    static const char op[] = "weights of rows";
    size_t width = a->gradient.buf ? a->width : 0, n = 0;
    const struct dim dims[] = {{"members", a->members}, {"batch", a->batch}, {"width", width}};
    n = a->batch * width;
    const struct row rows[] = {
        {"weights", a->weights, BUF_F32, a->batch, SHARED},
        {"gradient", a->gradient, BUF_F32, n, OPTIONAL},
    };
    as_status st = check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
    if (st == AS_OK)
        st = check_loss(op, be, &a->out, 1, a->members, a->batch, err);
    return st < 0 ? st : be->ops->weigh_rows(be, a, err);
}
