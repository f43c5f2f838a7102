/* The checks of layer normalisation, embedding and attention; then the call of the back end's
 * table.
 *
 * Each operation lists its sizes and its tensors in one place that its forward and backward pass
 * share. The passes differ only in the tensors that they write. */
#include "kernels/ops_seq.h"

#include <math.h>

#include "base/mem.h"
#include "kernels/check.h"

/* ---- layer normalisation ---- */

static as_status check_layer_norm(const char *op, struct backend *be,
                                  const struct layer_norm_args *a, struct as_err *err)
{
    if (!isfinite(a->eps) || a->eps < 0)
        return as_fail(err, AS_E_INVAL, "%s: eps is %g, must be finite and >= 0", op,
                       (double)a->eps);
    const struct dim dims[] = {{"members", a->members}, {"rows", a->rows}, {"width", a->width}};
    const struct row rows[] = {
        {"x", a->x, BUF_F32, a->rows * a->width, SHARED},
        {"gamma", a->gamma, BUF_F32, a->width, SHARED},
        {"beta", a->beta, BUF_F32, a->width, SHARED},
        {"mean", a->mean, BUF_F32, a->rows, REQUIRED},
        {"inv_std", a->inv_std, BUF_F32, a->rows, REQUIRED},
    };
    return check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                     struct tensor y, struct as_err *err)
{
    static const char op[] = "layer norm forward";
    const struct row rows[] = {{"y", y, BUF_F32, a->rows * a->width, REQUIRED}};
    as_status st = check_layer_norm(op, be, a, err);
    if (st != AS_OK)
        return st;
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    if (st != AS_OK)
        return st;
    return be->ops->layer_norm_forward(be, a, y, err);
}

as_status backend_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                      struct tensor dy, struct tensor dx, struct tensor dgamma,
                                      struct tensor dbeta, struct as_err *err)
{
    static const char op[] = "layer norm backward";
    const struct row rows[] = {
        {"dy", dy, BUF_F32, a->rows * a->width, SHARED},
        {"dx", dx, BUF_F32, a->rows * a->width, REQUIRED},
        {"dgamma", dgamma, BUF_F32, a->width, REQUIRED},
        {"dbeta", dbeta, BUF_F32, a->width, REQUIRED},
    };
    as_status st = check_layer_norm(op, be, a, err);
    if (st != AS_OK)
        return st;
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    if (st != AS_OK)
        return st;
    return be->ops->layer_norm_backward(be, a, dy, dx, dgamma, dbeta, err);
}

/* ---- embedding ---- */

static as_status check_embedding(const char *op, struct backend *be, const struct embedding_args *a,
                                 struct as_err *err)
{
    const struct dim out_dims[] = {
        {"members", a->members}, {"batch", a->batch}, {"seq", a->seq}, {"width", a->width}};
    const struct dim dims[] = {{"members", a->members}, {"vocab", a->vocab}, {"width", a->width}};
    as_status st = check_dims(op, out_dims, AS_ARRAY_LEN(out_dims), err);
    if (st < 0)
        return st;
    const struct row rows[] = {
        {"tokens", a->tokens, BUF_I32, a->batch * a->seq, SHARED},
        {"table", a->table, BUF_F32, a->vocab * a->width, SHARED},
        {"positions", a->positions, BUF_F32, a->seq * a->width, SHARED | OPTIONAL},
    };
    return check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status backend_embedding_forward(struct backend *be, const struct embedding_args *a,
                                    struct tensor y, struct as_err *err)
{
    static const char op[] = "embedding forward";
    const struct row rows[] = {{"y", y, BUF_F32, a->batch * a->seq * a->width, REQUIRED}};
    as_status st = check_embedding(op, be, a, err);
    if (st != AS_OK)
        return st;
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    if (st != AS_OK)
        return st;
    return be->ops->embedding_forward(be, a, y, err);
}

as_status backend_embedding_backward(struct backend *be, const struct embedding_args *a,
                                     struct tensor dy, struct tensor dtable,
                                     struct tensor dpositions, struct as_err *err)
{
    static const char op[] = "embedding backward";
    if (tensor_is_none(a->positions) != tensor_is_none(dpositions))
        return as_fail(err, AS_E_INVAL,
                       "%s: positions and dpositions must be there both or neither", op);
    const struct row rows[] = {
        {"dy", dy, BUF_F32, a->batch * a->seq * a->width, SHARED},
        {"dtable", dtable, BUF_F32, a->vocab * a->width, REQUIRED},
        {"dpositions", dpositions, BUF_F32, a->seq * a->width, OPTIONAL},
    };
    as_status st = check_embedding(op, be, a, err);
    if (st != AS_OK)
        return st;
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    if (st != AS_OK)
        return st;
    return be->ops->embedding_backward(be, a, dy, dtable, dpositions, err);
}

/* ---- attention ---- */

size_t backend_attention_work(const struct backend *be, const struct attention_args *a)
{
    return be->ops->attention_work(be, a);
}

static as_status check_attention(const char *op, struct backend *be, const struct attention_args *a,
                                 struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members},   {"batch", a->batch},
                               {"heads", a->heads},       {"seq", a->seq},
                               {"head_dim", a->head_dim}, {"queries, keys and values", 3}};
    as_status st = check_dims(op, dims, AS_ARRAY_LEN(dims), err);
    if (st < 0)
        return st;
    size_t n = a->batch * a->seq * a->heads * a->head_dim, work = backend_attention_work(be, a);
    const struct row rows[] = {
        {"qkv", a->qkv, BUF_F32, 3 * n, SHARED},
        {"out", a->out, BUF_F32, n, REQUIRED},
        {"lse", a->lse, BUF_F32, a->batch * a->heads * a->seq, REQUIRED},
        {"work", a->work, BUF_F32, work, work > 0 ? REQUIRED : OPTIONAL},
    };
    return check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
}

as_status backend_attention_forward(struct backend *be, const struct attention_args *a,
                                    struct as_err *err)
{
    as_status st = check_attention("attention forward", be, a, err);
    return st < 0 ? st : be->ops->attention_forward(be, a, err);
}

as_status backend_attention_backward(struct backend *be, const struct attention_args *a,
                                     struct tensor dout, struct tensor dqkv, struct as_err *err)
{
    static const char op[] = "attention backward";
    as_status st = check_attention(op, be, a, err);
    if (st < 0)
        return st;
    size_t n = a->batch * a->seq * a->heads * a->head_dim;
    const struct row rows[] = {
        {"dout", dout, BUF_F32, n, SHARED},
        {"dqkv", dqkv, BUF_F32, 3 * n, REQUIRED},
    };
    st = check_rows(op, be, rows, AS_ARRAY_LEN(rows), a->members, err);
    return st < 0 ? st : be->ops->attention_backward(be, a, dout, dqkv, err);
}
