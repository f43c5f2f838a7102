#include "trial-runner/train/model_mlp.h"

#include <math.h>

#include "trial-runner/train/draw.h"

void model_shape_of(const struct train_model_spec *spec, size_t features, size_t outputs,
                    struct model_shape *ret)
{
    static const act_kind acts[] = {
        [TRAIN_RELU] = ACT_RELU, [TRAIN_TANH] = ACT_TANH, [TRAIN_GELU] = ACT_GELU};
    struct model_shape s = {.n_linear = spec->n_layers + 1, .act = acts[spec->activation]};
    s.width[0] = features;
    for (size_t i = 0; i < s.n_linear; i++) {
        s.width[i + 1] = i < spec->n_layers ? (size_t)spec->layers[i] : outputs;
        s.weight_at[i] = s.n_params;
        s.bias_at[i] = s.n_params + s.width[i] * s.width[i + 1];
        s.n_params = s.bias_at[i] + s.width[i + 1];
    }
    *ret = s;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    buf_free(m->params);
    buf_free(m->grads);
    buf_free(m->delta[0]);
    buf_free(m->delta[1]);
    for (size_t i = 0; i < m->shape.n_linear; i++) {
        buf_free(m->y[i]);
        buf_free(m->z[i]);
        buf_free(m->d[i]);
    }
    free(m);
}

static as_status create_f32(struct model *m, size_t per_member, struct buf **ret,
                            struct as_err *err)
{
    size_t n;
    if (__builtin_mul_overflow(m->members, per_member, &n))
        return as_fail(err, AS_E_TOO_LARGE, "the model is too large");
    return buf_create(m->be, BUF_F32, n, ret, err);
}

static as_status create_layers(struct model *m, bool dropout, struct as_err *err)
{
    const struct model_shape *s = &m->shape;
    size_t widest = 0;
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < s->n_linear; i++) {
        bool hidden = i + 1 < s->n_linear;
        size_t n = m->max_batch * s->width[i + 1]; /* 2^20 rows of 2^16 at most */
        if (hidden && n > widest)
            widest = n;
        st = create_f32(m, n, &m->y[i], err);
        if (st == AS_OK && hidden && act_keeps_input(s->act))
            st = create_f32(m, n, &m->z[i], err);
        if (st == AS_OK && hidden && dropout)
            st = create_f32(m, n, &m->d[i], err);
    }
    for (int i = 0; st == AS_OK && i < 2; i++)
        st = create_f32(m, widest, &m->delta[i], err);
    return st;
}

as_status model_create(struct backend *be, const struct model_shape *shape, size_t members,
                       size_t max_batch, bool dropout, struct model **ret, struct as_err *err)
{
    AS_AUTO(model_freep) struct model *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    m->be = be;
    m->shape = *shape;
    m->members = members;
    m->max_batch = max_batch;
    as_status st = create_f32(m, shape->n_params, &m->params, err);
    if (st == AS_OK)
        st = create_f32(m, shape->n_params, &m->grads, err);
    if (st == AS_OK)
        st = create_layers(m, dropout, err);
    if (st == AS_OK)
        *ret = as_steal(m);
    return st;
}

as_status model_init(struct model *m, size_t k, uint64_t seed, struct as_err *err)
{
    const struct model_shape *s = &m->shape;
    AS_AUTO(as_freep) float *p = as_calloc(s->n_params, sizeof *p);
    if (!p)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu parameters", s->n_params);
    for (size_t i = 0; i < s->n_linear; i++) {
        bool rectified = i + 1 < s->n_linear && s->act != ACT_TANH;
        double deviation = sqrt((rectified ? 2.0 : 1.0) / (double)s->width[i]);
        struct rng r = draw_stream(seed, DRAW_INIT, i);
        for (size_t j = s->weight_at[i]; j < s->bias_at[i]; j++)
            p[j] = (float)(deviation * rng_normal(&r));
    }
    return buf_upload(m->params, k * s->n_params, p, s->n_params, err);
}

static struct tensor layer_tensor(const struct model *m, struct buf *b, size_t layer)
{
    return b ? tensor_at(b, 0, m->max_batch * m->shape.width[layer + 1]) : tensor_none();
}

struct tensor model_outputs(const struct model *m)
{
    size_t last = m->shape.n_linear - 1;
    return layer_tensor(m, m->y[last], last);
}

/* What layer i read: the batch, or what the layer below let through. */
static struct tensor layer_input(const struct model *m, size_t i, struct tensor x, bool dropped)
{
    if (i == 0)
        return x;
    return layer_tensor(m, dropped ? m->d[i - 1] : m->y[i - 1], i - 1);
}

static struct linear_args layer_args(const struct model *m, size_t i, struct tensor x, size_t batch,
                                     bool dropped)
{
    const struct model_shape *s = &m->shape;
    return (struct linear_args){.members = m->members,
                                .batch = batch,
                                .in = s->width[i],
                                .out = s->width[i + 1],
                                .x = layer_input(m, i, x, dropped),
                                .w = tensor_at(m->params, s->weight_at[i], s->n_params),
                                .b = tensor_at(m->params, s->bias_at[i], s->n_params)};
}

static as_status drop(struct model *m, size_t layer, size_t batch, struct tensor from,
                      struct tensor to, const struct model_dropout *dropout, struct as_err *err)
{
    struct dropout_args a = {.members = m->members,
                             .rows = batch,
                             .width = m->shape.width[layer + 1],
                             .x = from,
                             .y = to,
                             .rate = dropout->rate,
                             .seed = dropout->seed,
                             .step = dropout->step,
                             .layer = (uint32_t)layer};
    return backend_dropout(m->be, &a, err);
}

as_status model_forward(struct model *m, struct tensor x, size_t batch,
                        const struct model_dropout *dropout, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < m->shape.n_linear; i++) {
        bool hidden = i + 1 < m->shape.n_linear;
        struct linear_args a = layer_args(m, i, x, batch, dropout != NULL);
        struct tensor y = layer_tensor(m, m->y[i], i);
        st = backend_linear_forward(m->be, &a, hidden ? m->shape.act : ACT_NONE, y,
                                    layer_tensor(m, m->z[i], i), err);
        if (st == AS_OK && hidden && dropout)
            st = drop(m, i, batch, y, layer_tensor(m, m->d[i], i), dropout, err);
    }
    return st;
}

/* From the gradient by what layer i let through to the gradient by its sum, in place. */
static as_status through_activation(struct model *m, size_t i, size_t batch, struct tensor delta,
                                    const struct model_dropout *dropout, struct as_err *err)
{
    as_status st = dropout ? drop(m, i, batch, delta, delta, dropout, err) : AS_OK;
    if (st < 0)
        return st;
    struct act_args a = {.members = m->members,
                         .n = batch * m->shape.width[i + 1],
                         .act = m->shape.act,
                         .kept = layer_tensor(m, m->z[i] ? m->z[i] : m->y[i], i),
                         .dy = delta,
                         .dx = delta};
    return backend_act_backward(m->be, &a, err);
}

as_status model_backward(struct model *m, struct tensor x, size_t batch,
                         const struct model_dropout *dropout, struct as_err *err)
{
    const struct model_shape *s = &m->shape;
    struct tensor dy = model_outputs(m);
    as_status st = AS_OK;
    for (size_t i = s->n_linear; st == AS_OK && i-- > 0;) {
        struct linear_args a = layer_args(m, i, x, batch, dropout != NULL);
        struct linear_grads g = {.dy = dy,
                                 .dw = tensor_at(m->grads, s->weight_at[i], s->n_params),
                                 .db = tensor_at(m->grads, s->bias_at[i], s->n_params)};
        if (i > 0)
            g.dx = layer_tensor(m, m->delta[i % 2], i - 1);
        st = backend_linear_backward(m->be, &a, &g, err);
        if (st == AS_OK && i > 0)
            st = through_activation(m, i - 1, batch, g.dx, dropout, err);
        dy = g.dx;
    }
    return st;
}
