/* Checks of shapes, strides and buffers before the back end's function: the host checks once what
 * the device cannot report (decision 3001). The values of indices are not checked; a bad one
 * becomes NaN in the kernel. */
#include "kernels/ops_data.h"

#include "base/mem.h"
#include "kernels/check.h"

static as_status check_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    buf_kind kind = a->src.buf != NULL ? a->src.buf->kind : BUF_F32;
    size_t index_len = tensor_is_none(a->at) ? a->batch : a->index_len;
    const struct dim dims[] = {{"members", a->members}, {"batch", a->batch}, {"width", a->width}};
    const struct dim src_dims[] = {{"members", a->members}, {"rows", a->rows}, {"width", a->width}};
    const struct dim index_dims[] = {{"index_len", index_len}, {"at_rows", a->at_rows}};
    as_status st = check_dims("gather", src_dims, AS_ARRAY_LEN(src_dims), err);
    if (st != AS_OK)
        return st;
    st = check_dims("gather", index_dims, AS_ARRAY_LEN(index_dims), err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"src", a->src, kind, a->rows * a->width, SHARED},
        {"index", a->index, BUF_I32, index_len, SHARED},
        {"at", a->at, BUF_I32, 1, SHARED | OPTIONAL},
        {"dst", a->dst, kind, a->batch * a->width, REQUIRED},
    };
    return check_all("gather", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    as_status st = check_gather(be, a, err);
    return st < 0 ? st : be->ops->gather(be, a, err);
}

static as_status check_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                                    struct as_err *err)
{
    static const char op[] = "gather of bytes";
    size_t index_len = tensor_is_none(a->at) ? a->batch : a->index_len;
    const struct dim dims[] = {{"members", a->members}, {"batch", a->batch}, {"width", a->width}};
    const struct dim src_dims[] = {{"members", a->members}, {"rows", a->rows}, {"width", a->width}};
    const struct dim index_dims[] = {{"index_len", index_len}, {"at_rows", a->at_rows}};
    as_status st = check_dims(op, src_dims, AS_ARRAY_LEN(src_dims), err);
    if (st != AS_OK)
        return st;
    st = check_dims(op, index_dims, AS_ARRAY_LEN(index_dims), err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"src", a->src, BUF_I32, gather_bytes_len(a->rows, a->width), SHARED},
        {"index", a->index, BUF_I32, index_len, SHARED},
        {"at", a->at, BUF_I32, 1, SHARED | OPTIONAL},
        {"mean", a->mean, BUF_F32, a->width, SHARED},
        {"scale", a->scale, BUF_F32, a->width, SHARED},
        {"dst", a->dst, BUF_F32, a->batch * a->width, REQUIRED},
    };
    return check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                               struct as_err *err)
{
    as_status st = check_gather_bytes(be, a, err);
    return st < 0 ? st : be->ops->gather_bytes(be, a, err);
}

as_status backend_columns(struct backend *be, const struct columns_args *a, struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members}, {"rows", a->rows}, {"width", a->width}};
    const struct dim sides[] = {{"src_width", a->src_width}, {"dst_width", a->dst_width}};
    as_status st = check_dims("columns", sides, AS_ARRAY_LEN(sides), err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"src", a->src, BUF_F32, a->rows * a->src_width, SHARED},
        {"dst", a->dst, BUF_F32, a->rows * a->dst_width, REQUIRED},
    };
    st = check_all("columns", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
    if (st < 0)
        return st;
    if (a->src_at > a->src_width || a->width > a->src_width - a->src_at ||
        a->dst_at > a->dst_width || a->width > a->dst_width - a->dst_at)
        return as_fail(err, AS_E_INVAL,
                       "columns: %zu from %zu of %zu to %zu of %zu are past the end of a row",
                       a->width, a->src_at, a->src_width, a->dst_at, a->dst_width);
    return be->ops->columns(be, a, err);
}

static as_status check_tick(struct backend *be, const struct tick_args *a, struct as_err *err)
{
    const struct dim dims[] = {
        {"members", a->members}, {"n_steps", a->n_steps}, {"columns", a->columns}};
    const struct row rows[] = {
        {"table", a->table, BUF_F32, a->n_steps * a->columns, SHARED},
        {"at", a->at, BUF_I32, 1, REQUIRED},
        {"out", a->out, BUF_F32, a->columns, REQUIRED},
    };
    return check_all("tick", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_tick(struct backend *be, const struct tick_args *a, struct as_err *err)
{
    as_status st = check_tick(be, a, err);
    return st < 0 ? st : be->ops->tick(be, a, err);
}

static as_status check_augment(struct backend *be, const struct augment_args *a, struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members},
                               {"batch", a->batch},
                               {"height", a->height},
                               {"width", a->width},
                               {"channels", a->channels}};
    as_status st = check_dims("augmentation", dims, AS_ARRAY_LEN(dims), err);
    if (st < 0)
        return st;
    size_t n = a->batch * a->height * a->width * a->channels;
    const struct row rows[] = {
        {"x", a->x, BUF_F32, n, SHARED},
        {"y", a->y, BUF_F32, n, REQUIRED},
        {"pad", a->pad, BUF_I32, 1, SHARED | OPTIONAL},
        {"flip", a->flip, BUF_F32, 1, SHARED | OPTIONAL},
        {"cutout", a->cutout, BUF_I32, 1, SHARED | OPTIONAL},
        {"seed", a->seed, BUF_I32, 2, SHARED},
        {"step", a->step, BUF_I32, 1, SHARED},
    };
    return check_rows("augmentation", be, rows, AS_ARRAY_LEN(rows), a->members, err);
}

as_status backend_augment(struct backend *be, const struct augment_args *a, struct as_err *err)
{
    as_status st = check_augment(be, a, err);
    return st < 0 ? st : be->ops->augment(be, a, err);
}
