/* The losses of the members of a network.
 *
 * struct call holds what all kinds of loss need; one function for each kind turns it into the
 * arguments of its kernel. If a tensor is absent, the kernel omits that part, so
 * smoothing, class weights and top-5 cost nothing unless a member of the range uses them.
 *
 * For training, the kernel writes the gradient over the outputs: the backward pass starts there,
 * and no further buffer is needed. Sums stay on the device until the end of an epoch. */
#include "model/network/loss.h"

#include "model/network/network_priv.h"

static bool predicts_classes(train_loss kind)
{
    return kind == TRAIN_CROSS_ENTROPY || kind == TRAIN_BCE;
}

static size_t weights_of(const struct net_plan *plan, train_loss kind)
{
    return kind == TRAIN_BCE ? 2 : kind == TRAIN_CROSS_ENTROPY ? plan->outputs : 0;
}

static void sums_done(struct loss_sums *s)
{
    buf_free(s->loss);
    buf_free(s->correct);
    buf_free(s->top5);
}

void losses_free(struct losses *l)
{
    if (!l)
        return;
    buf_free(l->smoothing);
    buf_free(l->delta);
    buf_free(l->class_weights);
    buf_free(l->row_loss);
    buf_free(l->row_class);
    buf_free(l->unweighted);
    sums_done(&l->train);
    sums_done(&l->held);
    free(l);
}

static as_status sums_create(struct backend *be, size_t slots, struct loss_sums *ret,
                             struct as_err *err)
{
    as_status st = buf_create(be, BUF_F32, slots, &ret->loss, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, slots, &ret->correct, err);
    if (st != AS_OK)
        return st;
    return buf_create(be, BUF_I32, slots, &ret->top5, err);
}

as_status losses_create(struct network *network, const struct train_data *data, train_loss kind,
                        struct losses **ret, struct as_err *err)
{
    struct backend *be = network->be;
    size_t slots = network->slots;
    AS_AUTO(losses_freep) struct losses *l = as_calloc(1, sizeof *l);
    if (!l)
        return as_fail_nomem(err);
    *l = (struct losses){.network = network,
                         .data = data,
                         .kind = kind,
                         .outputs = network->plan->outputs,
                         .weights = weights_of(network->plan, kind),
                         .places = network->max_rows * network->plan->tokens};
    as_status st = buf_create(be, BUF_F32, slots, &l->smoothing, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, slots, &l->delta, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, slots * l->weights, &l->class_weights, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, slots * l->places, &l->row_loss, err);
    if (st != AS_OK)
        return st;
    if (predicts_classes(kind))
        st = buf_create(be, BUF_I32, slots * l->places, &l->row_class, err);
    if (st != AS_OK)
        return st;
    if (data->weights)
        st = buf_create(be, BUF_F32, slots, &l->unweighted, err);
    if (st != AS_OK)
        return st;
    st = sums_create(be, slots, &l->train, err);
    if (st != AS_OK)
        return st;
    st = sums_create(be, slots, &l->held, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(l);
    return AS_OK;
}

size_t losses_bytes(const struct net_plan *plan, train_loss kind, size_t max_rows, bool weighted)
{
    size_t rows = max_rows * plan->tokens * (predicts_classes(kind) ? 2 : 1);
    return (rows + weights_of(plan, kind) + 2 + 6 + weighted) * 4;
}

/* ---- a member's settings ---- */

float losses_class_weight(const struct losses *l, const struct train_spec *spec, size_t c)
{
    const int64_t *rows = l->data->class_rows;
    if (spec->n_class_weights > c)
        return (float)spec->class_weights[c];
    if (!spec->balanced || !rows || rows[c] == 0)
        return 1;
    /* as sklearn's: rows / (classes * rows of the class) */
    return (float)((double)l->data->fit.n_train / ((double)l->weights * (double)rows[c]));
}

as_status losses_join(struct losses *l, size_t slot, const struct train_spec *spec,
                      struct as_err *err)
{
    as_status st = buf_fill_f32(l->smoothing, slot, 1, (float)spec->label_smoothing, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_f32(l->delta, slot, 1, (float)spec->huber_delta, err);
    if (st != AS_OK)
        return st;
    for (size_t c = 0; c < l->weights; c++) {
        st = buf_fill_f32(l->class_weights, slot * l->weights + c, 1,
                          losses_class_weight(l, spec, c), err);
        if (st != AS_OK)
            return st;
    }
    return loss_sums_clear(&l->train, slot, 1, err);
}

as_status loss_sums_clear(struct loss_sums *s, size_t first, size_t n, struct as_err *err)
{
    as_status st = buf_fill_f32(s->loss, first, n, 0, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_i32(s->correct, first, n, 0, err);
    if (st != AS_OK)
        return st;
    return buf_fill_i32(s->top5, first, n, 0, err);
}

struct loss_use loss_use_of(const struct train_spec *spec)
{
    return (struct loss_use){.smoothing = spec->label_smoothing > 0,
                             .class_weights = spec->n_class_weights > 0 || spec->balanced,
                             .top5 = train_spec_wants(spec, "val_top5")};
}

struct loss_use loss_use_both(struct loss_use a, struct loss_use b)
{
    return (struct loss_use){a.smoothing || b.smoothing, a.class_weights || b.class_weights,
                             a.top5 || b.top5};
}

/* ---- the loss ---- */

static struct tensor tensor_of_slots(struct buf *b, size_t n, size_t first)
{
    return b ? tensor_at(b, first * n, n) : tensor_none();
}

/* One evaluation of the loss, with the gradient (training) or without. */
struct call {
    struct losses *l;
    size_t first, n, places; /* rows * tokens of this batch */
    struct tensor y, outputs, gradient, weights;
    struct loss_use use;
    struct loss_sums *sums;
    struct loss_out out;
};

static as_status loss_of_classes(const struct call *c, struct backend *lane, struct as_err *err)
{
    const struct losses *l = c->l;
    struct softmax_ce_args a = {.members = c->n,
                                .batch = c->places,
                                .classes = l->outputs,
                                .logits = c->outputs,
                                .labels = c->y,
                                .dlogits = c->gradient,
                                .grad_scale = 1,
                                .row_class = tensor_of_slots(l->row_class, l->places, c->first),
                                .correct = tensor_of_slots(c->sums->correct, 1, c->first),
                                .out = c->out};
    if (c->use.smoothing)
        a.smoothing = tensor_of_slots(l->smoothing, 1, c->first);
    if (c->use.class_weights)
        a.class_weights = tensor_of_slots(l->class_weights, l->weights, c->first);
    if (c->use.top5)
        a.top5 = tensor_of_slots(c->sums->top5, 1, c->first);
    return backend_softmax_ce(lane, &a, err);
}

static as_status loss_of_shares(const struct call *c, struct backend *lane, struct as_err *err)
{
    const struct losses *l = c->l;
    struct bce_args a = {.members = c->n,
                         .batch = c->places,
                         .outputs = l->outputs,
                         .logits = c->outputs,
                         .target = c->y,
                         .dlogits = c->gradient,
                         .grad_scale = 1,
                         .row_class = tensor_of_slots(l->row_class, l->places, c->first),
                         .correct = tensor_of_slots(c->sums->correct, 1, c->first),
                         .out = c->out};
    if (c->use.smoothing)
        a.smoothing = tensor_of_slots(l->smoothing, 1, c->first);
    if (c->use.class_weights)
        a.class_weights = tensor_of_slots(l->class_weights, l->weights, c->first);
    return backend_bce(lane, &a, err);
}

static as_status loss_of_numbers(const struct call *c, struct backend *lane, struct as_err *err)
{
    struct huber_args a = {.mse = {.members = c->n,
                                   .batch = c->places,
                                   .outputs = c->l->outputs,
                                   .pred = c->outputs,
                                   .target = c->y,
                                   .dpred = c->gradient,
                                   .grad_scale = 1,
                                   .out = c->out},
                           .delta = tensor_of_slots(c->l->delta, 1, c->first)};
    if (c->l->kind == TRAIN_HUBER)
        return backend_huber(lane, &a, err);
    return backend_mse(lane, &a.mse, err);
}

static as_status loss_of_kind(const struct call *c, struct backend *lane, struct as_err *err)
{
    if (c->l->kind == TRAIN_CROSS_ENTROPY)
        return loss_of_classes(c, lane, err);
    return c->l->kind == TRAIN_BCE ? loss_of_shares(c, lane, err) : loss_of_numbers(c, lane, err);
}

static as_status evaluate_loss(struct call *c, struct backend *lane, size_t rows,
                               struct as_err *err)
{
    struct losses *l = c->l;
    c->places = rows * l->network->plan->tokens;
    c->outputs = network_outputs(l->network, c->first);
    c->y = tensor_from(c->y, c->first);
    c->out = (struct loss_out){.row_loss = tensor_of_slots(l->row_loss, l->places, c->first),
                               .loss = tensor_of_slots(c->sums->loss, 1, c->first),
                               .weight = (float)rows,
                               .accumulate = true};
    if (!tensor_is_none(c->gradient))
        c->gradient = c->outputs;
    if (tensor_is_none(c->weights))
        return loss_of_kind(c, lane, err);
    struct loss_out out = c->out; /* where the weighted loss goes */
    c->out.loss = tensor_at(l->unweighted, c->first, 1);
    as_status st = loss_of_kind(c, lane, err);
    if (st != AS_OK)
        return st;
    struct weigh_rows_args a = {.members = c->n,
                                .batch = rows,
                                .width = l->outputs,
                                .weights = tensor_from(c->weights, c->first),
                                .gradient = c->gradient,
                                .out = out};
    return backend_weigh_rows(lane, &a, err);
}

as_status losses_train(struct losses *l, struct backend *lane, size_t first, size_t n,
                       struct tensor y, struct tensor weights, size_t rows, struct loss_use use,
                       struct as_err *err)
{
    use.top5 = false;
    struct call c = {.l = l,
                     .first = first,
                     .n = n,
                     .y = y,
                     .gradient = network_outputs(l->network, first),
                     .weights = weights,
                     .use = use,
                     .sums = &l->train};
    return evaluate_loss(&c, lane, rows, err);
}

as_status losses_held(struct losses *l, struct backend *lane, size_t first, size_t n,
                      struct tensor y, size_t rows, struct loss_use use, struct as_err *err)
{
    use.smoothing = use.class_weights = false;
    struct call c = {.l = l, .first = first, .n = n, .y = y, .use = use, .sums = &l->held};
    return evaluate_loss(&c, lane, rows, err);
}
