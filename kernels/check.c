#include "kernels/check.h"

#include <limits.h>

as_status check_dims(const char *op, const struct dim *dims, size_t n_dims, struct as_err *err)
{
    size_t product = 1;
    for (size_t i = 0; i < n_dims; i++) {
        if (dims[i].n > INT_MAX)
            return as_fail(err, AS_E_TOO_LARGE, "%s: %s is %zu, the limit is %d", op, dims[i].name,
                           dims[i].n, INT_MAX);
        size_t n = dims[i].n == 0 ? 1 : dims[i].n;
        if (__builtin_mul_overflow(product, n, &product))
            return as_fail(err, AS_E_TOO_LARGE, "%s: the product of its dimensions overflows", op);
    }
    return AS_OK;
}

static const char *kind_name(buf_kind kind)
{
    return kind == BUF_F32 ? "F32" : "I32";
}

static as_status check_place(const char *op, const struct row *r, size_t members,
                             struct as_err *err)
{
    if (members == 0 || r->n == 0)
        return AS_OK;
    if (members > 1 && r->t.stride == 0 && (r->flags & SHARED) == 0)
        return as_fail(err, AS_E_INVAL, "%s: %s is written, so %zu members cannot share it", op,
                       r->name, members);
    if (members > 1 && r->t.stride != 0 && r->t.stride < r->n)
        return as_fail(err, AS_E_INVAL, "%s: %s has %zu elements per member, but a stride of %zu",
                       op, r->name, r->n, r->t.stride);
    size_t end = 0;
    if (__builtin_mul_overflow(members - 1, r->t.stride, &end) ||
        __builtin_add_overflow(end, r->n, &end) || __builtin_add_overflow(end, r->t.offset, &end))
        return as_fail(err, AS_E_TOO_LARGE, "%s: the place of %s overflows", op, r->name);
    if (end > r->t.buf->n)
        return as_fail(err, AS_E_INVAL,
                       "%s: %s ends at element %zu (%zu members of %zu, offset %zu, stride %zu), "
                       "but its buffer has %zu",
                       op, r->name, end, members, r->n, r->t.offset, r->t.stride, r->t.buf->n);
    return AS_OK;
}

static as_status check_row(const char *op, const struct backend *be, const struct row *r,
                           size_t members, struct as_err *err)
{
    if (r->t.buf == NULL) {
        if ((r->flags & OPTIONAL) != 0)
            return AS_OK;
        return as_fail(err, AS_E_INVAL, "%s: %s is missing", op, r->name);
    }
    if (r->t.buf->be != backend_owner(be))
        return as_fail(err, AS_E_INVAL, "%s: %s belongs to another back end than %s", op, r->name,
                       be->ops->name);
    if (r->t.buf->kind != r->kind)
        return as_fail(err, AS_E_INVAL, "%s: %s is %s, expected %s", op, r->name,
                       kind_name(r->t.buf->kind), kind_name(r->kind));
    return check_place(op, r, members, err);
}

as_status check_rows(const char *op, const struct backend *be, const struct row *rows,
                     size_t n_rows, size_t members, struct as_err *err)
{
    for (size_t i = 0; i < n_rows; i++) {
        as_status st = check_row(op, be, &rows[i], members, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* In a check function: its rows against its dimensions, then return the first fault. */
as_status check_all(const char *op, const struct backend *be, const struct dim *dims, size_t n_dims,
                    const struct row *rows, size_t n_rows, struct as_err *err)
{
    as_status st = check_dims(op, dims, n_dims, err);
    return st < 0 ? st : check_rows(op, be, rows, n_rows, dims[0].n, err);
}

as_status check_act(const char *op, act_kind act, struct as_err *err)
{
    if ((int)act < ACT_NONE || act > ACT_GELU)
        return as_fail(err, AS_E_INVAL, "%s: activation %d is not one of 0 to %d", op, (int)act,
                       ACT_GELU);
    return AS_OK;
}
