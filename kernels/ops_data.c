#include "kernels/ops_data.h"

#include "base/mem.h"
#include "kernels/check.h"

static as_status check_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    buf_kind kind = a->src.buf != NULL ? a->src.buf->kind : BUF_F32;
    const struct dim dims[] = {{"members", a->members}, {"batch", a->batch}, {"width", a->width}};
    const struct dim src_dims[] = {{"members", a->members}, {"rows", a->rows}, {"width", a->width}};
    as_status st = check_dims("gather", src_dims, AS_ARRAY_LEN(src_dims), err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"src", a->src, kind, a->rows * a->width, SHARED},
        {"index", a->index, BUF_I32, a->batch, SHARED},
        {"dst", a->dst, kind, a->batch * a->width, REQUIRED},
    };
    return check_all("gather", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    as_status st = check_gather(be, a, err);
    return st < 0 ? st : be->ops->gather(be, a, err);
}
