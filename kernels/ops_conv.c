/* The checks of convolution, pooling and batch normalisation; then the call of the back end's
 * table.
 *
 * Sizes are checked first, because the number of output pixels follows from them: a kernel of 0 or
 * a stride of 0 would divide by 0 or wrap around. The size of the output is computed with overflow
 * checks. Only then are the tensors compared with it, so no back end needs a check of its own.
 *
 * A back end states its workspace for the sizes (conv_work), and the workspace is checked last. */
#include "kernels/ops_conv.h"

#include "base/mem.h"
#include "kernels/check.h"

/* ---- convolution ---- */

static as_status check_conv_sizes(const char *op, const struct conv_args *a, struct as_err *err)
{
    const struct dim in[] = {{"members", a->members},
                             {"batch", a->batch},
                             {"height", a->height},
                             {"width", a->width},
                             {"channels", a->channels}};
    const struct dim weight[] = {{"members", a->members},
                                 {"kernel_h", a->kernel_h},
                                 {"kernel_w", a->kernel_w},
                                 {"channels", a->channels},
                                 {"out", a->out}};
    const struct dim steps[] = {{"stride", a->stride}};
    as_status st = check_dims(op, in, AS_ARRAY_LEN(in), err);
    if (st < 0 || (st = check_dims(op, weight, AS_ARRAY_LEN(weight), err)) < 0 ||
        (st = check_dims(op, steps, AS_ARRAY_LEN(steps), err)) < 0)
        return st;
    if (a->height == 0 || a->width == 0)
        return as_fail(err, AS_E_INVAL, "%s: the image is %zu x %zu, must be 1 x 1 or more", op,
                       a->height, a->width);
    if (a->kernel_h == 0 || a->kernel_w == 0)
        return as_fail(err, AS_E_INVAL, "%s: the kernel is %zu x %zu, must be 1 x 1 or more", op,
                       a->kernel_h, a->kernel_w);
    if (a->stride == 0)
        return as_fail(err, AS_E_INVAL, "%s: stride is 0, must be 1 or more", op);
    if (a->pad >= a->kernel_h || a->pad >= a->kernel_w)
        return as_fail(err, AS_E_INVAL, "%s: pad is %zu, must be below the kernel (%zu x %zu)", op,
                       a->pad, a->kernel_h, a->kernel_w);
    if (a->groups == 0 || (a->groups != 1 && a->groups != a->channels))
        return as_fail(err, AS_E_INVAL, "%s: groups is %zu, must be 1 or the %zu channels", op,
                       a->groups, a->channels);
    if (a->groups > 1 && a->out % a->channels != 0)
        return as_fail(err, AS_E_INVAL,
                       "%s: %zu outputs are not a multiple of the %zu channels (depthwise)", op,
                       a->out, a->channels);
    return AS_OK;
}

static size_t conv_out_pixels(const struct conv_args *a)
{
    return conv_out_len(a->height, a->kernel_h, a->stride, a->pad) *
           conv_out_len(a->width, a->kernel_w, a->stride, a->pad);
}

const char *backend_conv_path(const struct backend *be)
{
    return be->ops->conv_path == NULL ? "own" : be->ops->conv_path(be);
}

static size_t conv_weight_len(const struct conv_args *a)
{
    return a->kernel_h * a->kernel_w * (a->channels / a->groups) * a->out;
}

/* Check the sizes, then the tensors that both passes use. *ret_y: number of elements of y and
 * dy. */
static as_status check_conv(const char *op, struct backend *be, const struct conv_args *a,
                            size_t *ret_y, struct as_err *err)
{
    as_status st = check_conv_sizes(op, a, err);
    if (st < 0)
        return st;
    size_t y = 0;
    if (__builtin_mul_overflow(a->batch, conv_out_pixels(a), &y) ||
        __builtin_mul_overflow(y, a->out, &y))
        return as_fail(err, AS_E_TOO_LARGE, "%s: the size of the output overflows", op);
    const struct row rows[] = {
        {"x", a->x, BUF_F32, a->batch * a->height * a->width * a->channels, SHARED},
        {"w", a->w, BUF_F32, conv_weight_len(a), SHARED},
        {"b", a->b, BUF_F32, a->out, SHARED | OPTIONAL},
    };
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    if (st < 0)
        return st;
    size_t need = be->ops->conv_work(be, a);
    const struct row work = {"work", a->work, BUF_F32, need, need == 0 ? OPTIONAL : REQUIRED};
    *ret_y = y;
    return check_rows(op, be, &work, 1, a->members, err);
}

size_t backend_conv_work(const struct backend *be, const struct conv_args *a)
{
    return check_conv_sizes("convolution", a, NULL) < 0 ? 0 : be->ops->conv_work(be, a);
}

as_status backend_conv_forward(struct backend *be, const struct conv_args *a, act_kind act,
                               struct tensor y, struct tensor z, struct as_err *err)
{
    static const char op[] = "convolution forward";
    size_t n = 0;
    as_status st = check_conv(op, be, a, &n, err);
    if (st < 0 || (st = check_act(op, act, err)) < 0)
        return st;
    const struct row rows[] = {{"y", y, BUF_F32, n, REQUIRED}, {"z", z, BUF_F32, n, OPTIONAL}};
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    return st < 0 ? st : be->ops->conv_forward(be, a, act, y, z, err);
}

as_status backend_conv_backward(struct backend *be, const struct conv_args *a,
                                const struct conv_grads *g, struct as_err *err)
{
    static const char op[] = "convolution backward";
    size_t n = 0;
    as_status st = check_conv(op, be, a, &n, err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"dy", g->dy, BUF_F32, n, SHARED},
        {"dx", g->dx, BUF_F32, a->batch * a->height * a->width * a->channels, OPTIONAL},
        {"dw", g->dw, BUF_F32, conv_weight_len(a), OPTIONAL},
        {"db", g->db, BUF_F32, a->out, OPTIONAL},
    };
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    return st < 0 ? st : be->ops->conv_backward(be, a, g, err);
}

/* ---- pooling ---- */

static as_status check_pool_sizes(const char *op, const struct pool_args *a, struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members},
                               {"batch", a->batch},
                               {"height", a->height},
                               {"width", a->width},
                               {"channels", a->channels}};
    const struct dim window[] = {
        {"kernel_h", a->kernel_h}, {"kernel_w", a->kernel_w}, {"stride", a->stride}};
    as_status st = check_dims(op, dims, AS_ARRAY_LEN(dims), err);
    if (st < 0 || (st = check_dims(op, window, AS_ARRAY_LEN(window), err)) < 0)
        return st;
    if (a->kind != POOL_MAX && a->kind != POOL_AVG)
        return as_fail(err, AS_E_INVAL, "%s: kind %d is not one of 0 to %d", op, (int)a->kind,
                       POOL_AVG);
    if (a->height == 0 || a->width == 0 || a->height * a->width > INT32_MAX)
        return as_fail(err, AS_E_INVAL, "%s: the image is %zu x %zu, must be 1 to 2^31 - 1 pixels",
                       op, a->height, a->width);
    if (a->kernel_h == 0 || a->kernel_w == 0)
        return as_fail(err, AS_E_INVAL, "%s: the kernel is %zu x %zu, must be 1 x 1 or more", op,
                       a->kernel_h, a->kernel_w);
    if (a->stride == 0)
        return as_fail(err, AS_E_INVAL, "%s: stride is 0, must be 1 or more", op);
    if (a->pad > a->kernel_h / 2 || a->pad > a->kernel_w / 2)
        return as_fail(err, AS_E_INVAL,
                       "%s: pad is %zu, must be at most half of the kernel (%zu x %zu)", op, a->pad,
                       a->kernel_h, a->kernel_w);
    return AS_OK;
}

/* `in` is x or dx, `out` is y or dy. The tensor that is read may be shared. */
static as_status check_pool(const char *op, struct backend *be, const struct pool_args *a,
                            const struct row *in, const struct row *out, bool forward,
                            struct as_err *err)
{
    as_status st = check_pool_sizes(op, a, err);
    if (st < 0)
        return st;
    size_t n_out = 0;
    size_t pixels = conv_out_len(a->height, a->kernel_h, a->stride, a->pad) *
                    conv_out_len(a->width, a->kernel_w, a->stride, a->pad);
    if (__builtin_mul_overflow(pixels, a->batch, &n_out) ||
        __builtin_mul_overflow(n_out, a->channels, &n_out))
        return as_fail(err, AS_E_TOO_LARGE, "%s: the size of the output overflows", op);
    struct row rows[] = {
        *in,
        *out,
        {"index", a->index, BUF_I32, n_out,
         (forward ? 0u : SHARED) | (a->kind == POOL_AVG ? OPTIONAL : 0u)},
    };
    rows[0].n = a->batch * a->height * a->width * a->channels;
    rows[1].n = n_out;
    return check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
}

as_status backend_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                               struct tensor y, struct as_err *err)
{
    const struct row in = {"x", x, BUF_F32, 0, SHARED}, out = {"y", y, BUF_F32, 0, REQUIRED};
    as_status st = check_pool("pool forward", be, a, &in, &out, true, err);
    return st < 0 ? st : be->ops->pool_forward(be, a, x, y, err);
}

as_status backend_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                                struct tensor dx, struct as_err *err)
{
    const struct row in = {"dx", dx, BUF_F32, 0, REQUIRED}, out = {"dy", dy, BUF_F32, 0, SHARED};
    as_status st = check_pool("pool backward", be, a, &in, &out, false, err);
    return st < 0 ? st : be->ops->pool_backward(be, a, dy, dx, err);
}

/* ---- batch normalisation ---- */

/* stats_flags belong to mean and inv_std, y_flags to y. */
static as_status check_batch_norm(const char *op, struct backend *be,
                                  const struct batch_norm_args *a, unsigned stats_flags,
                                  unsigned y_flags, struct as_err *err)
{
    if (a->act != ACT_NONE && a->act != ACT_RELU)
        return as_fail(err, AS_E_INVAL, "%s: activation %d, expected none (%d) or relu (%d)", op,
                       (int)a->act, ACT_NONE, ACT_RELU);
    if (!(a->eps >= 0)) /* refuses NaN too */
        return as_fail(err, AS_E_INVAL, "%s: eps is %g, must be >= 0", op, (double)a->eps);
    const struct dim dims[] = {
        {"members", a->members}, {"rows", a->rows}, {"channels", a->channels}};
    const struct row rows[] = {
        {"x", a->x, BUF_F32, a->rows * a->channels, SHARED},
        {"gamma", a->gamma, BUF_F32, a->channels, SHARED},
        {"beta", a->beta, BUF_F32, a->channels, SHARED},
        {"mean", a->mean, BUF_F32, a->channels, stats_flags},
        {"inv_std", a->inv_std, BUF_F32, a->channels, stats_flags},
        {"y", a->y, BUF_F32, a->rows * a->channels, y_flags},
    };
    return check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_batch_norm_train(struct backend *be, const struct batch_norm_args *a,
                                   float momentum, struct tensor running_mean,
                                   struct tensor running_var, struct as_err *err)
{
    static const char op[] = "batch norm train";
    as_status st = check_batch_norm(op, be, a, REQUIRED, REQUIRED, err);
    if (st < 0)
        return st;
    if (tensor_is_none(running_mean) != tensor_is_none(running_var))
        return as_fail(err, AS_E_INVAL,
                       "%s: running_mean and running_var must both be present or both be absent",
                       op);
    if (!(momentum >= 0 && momentum <= 1))
        return as_fail(err, AS_E_INVAL, "%s: momentum is %g, must be in [0, 1]", op,
                       (double)momentum);
    const struct row rows[] = {
        {"running_mean", running_mean, BUF_F32, a->channels, OPTIONAL},
        {"running_var", running_var, BUF_F32, a->channels, OPTIONAL},
    };
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    return st < 0 ? st : be->ops->batch_norm_train(be, a, momentum, running_mean, running_var, err);
}

as_status backend_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                                  struct tensor running_mean, struct tensor running_var,
                                  struct as_err *err)
{
    static const char op[] = "batch norm eval";
    struct batch_norm_args b = *a;
    b.mean = b.inv_std = tensor_none();
    as_status st = check_batch_norm(op, be, &b, OPTIONAL, REQUIRED, err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"running_mean", running_mean, BUF_F32, a->channels, SHARED},
        {"running_var", running_var, BUF_F32, a->channels, SHARED},
    };
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    return st < 0 ? st : be->ops->batch_norm_eval(be, &b, running_mean, running_var, err);
}

as_status backend_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                      struct tensor dy, struct tensor dx, struct tensor dgamma,
                                      struct tensor dbeta, struct as_err *err)
{
    static const char op[] = "batch norm backward";
    unsigned y_flags = a->act == ACT_RELU ? SHARED : SHARED | OPTIONAL;
    as_status st = check_batch_norm(op, be, a, SHARED, y_flags, err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"dy", dy, BUF_F32, a->rows * a->channels, SHARED},
        {"dx", dx, BUF_F32, a->rows * a->channels, REQUIRED},
        {"dgamma", dgamma, BUF_F32, a->channels, REQUIRED},
        {"dbeta", dbeta, BUF_F32, a->channels, REQUIRED},
    };
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    return st < 0 ? st : be->ops->batch_norm_backward(be, a, dy, dx, dgamma, dbeta, err);
}
