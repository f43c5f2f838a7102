/* Each operation is a list of rows: a tensor's name, place, kind, elements per member, and whether
 * it may be absent or shared. One loop checks them all. */
#include "kernels/check.h"

#include <limits.h>
#include <math.h>

#include "base/mem.h"

enum {
    REQUIRED = 0,
    OPTIONAL = 1, /* the tensor may be absent */
    SHARED = 2,   /* stride 0 is fine: an input */
};

struct row {
    const char *name;
    struct tensor t;
    buf_kind kind;
    size_t n; /* elements of one member */
    unsigned flags;
};

struct dim {
    const char *name;
    size_t n;
};

static as_status check_dims(const char *op, const struct dim *dims, size_t n_dims,
                            struct as_err *err)
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
    if (r->t.buf->be != be)
        return as_fail(err, AS_E_INVAL, "%s: %s belongs to another back end than %s", op, r->name,
                       be->ops->name);
    if (r->t.buf->kind != r->kind)
        return as_fail(err, AS_E_INVAL, "%s: %s is %s, expected %s", op, r->name,
                       kind_name(r->t.buf->kind), kind_name(r->kind));
    return check_place(op, r, members, err);
}

static as_status check_rows(const char *op, const struct backend *be, const struct row *rows,
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
static as_status check_all(const char *op, const struct backend *be, const struct dim *dims,
                           size_t n_dims, const struct row *rows, size_t n_rows, struct as_err *err)
{
    as_status st = check_dims(op, dims, n_dims, err);
    return st < 0 ? st : check_rows(op, be, rows, n_rows, dims[0].n, err);
}

as_status check_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
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

static as_status check_act(const char *op, act_kind act, struct as_err *err)
{
    if ((int)act < ACT_NONE || act > ACT_GELU)
        return as_fail(err, AS_E_INVAL, "%s: activation %d is not one of 0 to %d", op, (int)act,
                       ACT_GELU);
    return AS_OK;
}

as_status check_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
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

as_status check_linear_backward(struct backend *be, const struct linear_args *a,
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

as_status check_act_backward(struct backend *be, const struct act_args *a, struct as_err *err)
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

as_status check_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err)
{
    if (a->layer >= (UINT32_C(1) << 24))
        return as_fail(err, AS_E_INVAL, "dropout: layer is %u, must be below 2^24", a->layer);
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"x", a->x, BUF_F32, a->n, SHARED},    {"y", a->y, BUF_F32, a->n, REQUIRED},
        {"rate", a->rate, BUF_F32, 1, SHARED}, {"seed", a->seed, BUF_I32, 2, SHARED},
        {"step", a->step, BUF_I32, 1, SHARED},
    };
    return check_all("dropout", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

/* The figures of a loss. */
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

as_status check_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err)
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
        {"dlogits", a->dlogits, BUF_F32, n, OPTIONAL},
        {"row_class", a->row_class, BUF_I32, a->batch, REQUIRED},
        {"correct", a->correct, BUF_I32, 1, REQUIRED},
    };
    as_status st = check_all(op, be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
    return st < 0 ? st : check_loss(op, be, &a->out, a->grad_scale, a->members, a->batch, err);
}

as_status check_mse(struct backend *be, const struct mse_args *a, struct as_err *err)
{
    static const char op[] = "mean squared error";
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

as_status check_softmax(struct backend *be, const struct softmax_args *a, struct as_err *err)
{
    const struct dim dims[] = {
        {"members", a->members}, {"batch", a->batch}, {"classes", a->classes}};
    const struct row rows[] = {
        {"logits", a->logits, BUF_F32, a->batch * a->classes, SHARED},
        {"probs", a->probs, BUF_F32, a->batch * a->classes, REQUIRED},
    };
    return check_all("softmax", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

as_status check_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err)
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

as_status check_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err)
{
    const struct dim dims[] = {{"members", a->members}, {"n", a->n}};
    const struct row rows[] = {
        {"grads", a->grads, BUF_F32, a->n, REQUIRED},
        {"sq_norm", a->sq_norm, BUF_F32, 1, SHARED},
        {"max_norm", a->max_norm, BUF_F32, 1, SHARED},
    };
    return check_all("gradient clip", be, dims, AS_ARRAY_LEN(dims), rows, AS_ARRAY_LEN(rows), err);
}

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

as_status check_sgd(struct backend *be, const struct sgd_args *a, struct as_err *err)
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

as_status check_adamw(struct backend *be, const struct adamw_args *a, struct as_err *err)
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
