/* A pass through a part of the network is a pass of the lockstep (lockstep_forward,
 * lockstep_backward) whose input and whose gradient come from the caller. Shards wait for their
 * backward pass in sets of values. The rows of the batch are gathered again for it where they are
 * the input: they are cheaper to gather than to keep. */
#include "trial-runner/train/learner_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/plan/plan_blocks.h"

struct learner_blocks {
    struct replica_blocks replica;
    struct lockstep *ls;
    struct net_parts parts; /* the blocks */
    struct replica_block *blocks;
    size_t first, end; /* those that are held */
    size_t sets;
    struct buf **x;    /* [sets]: the inputs of shards; NULL where they are the batch's rows */
    float *gradient;   /* [n_params of the part], where it cannot be read in place */
    float *statistics; /* [n_state of the whole]: those of before a pass */
    int64_t busy_ns;   /* in passes */
};

static struct member *member_of(const struct learner_blocks *l)
{
    return l->ls->member[0];
}

static void free_held(struct learner_blocks *l)
{
    for (size_t i = 0; l->x && i < l->sets; i++)
        buf_free(l->x[i]);
    free(l->x);
    free(l->gradient);
    l->x = NULL;
    l->gradient = NULL;
    l->sets = l->first = l->end = 0;
}

void learner_blocks_free(struct learner_blocks *l)
{
    if (!l)
        return;
    free_held(l);
    net_parts_done(&l->parts);
    free(l->blocks);
    free(l->statistics);
    free(l);
}

/* ---- which blocks ---- */

static struct net_part join(const struct learner_blocks *l, size_t first, size_t end)
{
    struct net_part part = l->parts.of[first];
    for (size_t i = first + 1; i < end; i++)
        part = net_part_join(&part, &l->parts.of[i]);
    return part;
}

static as_status create_inputs(struct learner_blocks *l, size_t sets, struct as_err *err)
{
    size_t n = l->replica.rows * l->blocks[l->first].in;
    as_status st = AS_OK;
    l->x = as_calloc(sets, sizeof(struct buf *));
    if (!l->x)
        return as_fail_nomem(err);
    l->sets = sets;
    for (size_t i = 0; st == AS_OK && i < sets && l->first > 0; i++)
        st = buf_create(l->ls->setup->be, BUF_F32, n, &l->x[i], err);
    return st;
}

static as_status blocks_hold(void *self, size_t first, size_t end, size_t sets, struct as_err *err)
{
    struct learner_blocks *l = self;
    free_held(l);
    l->ls->has_all = false;
    if (first == end)
        return AS_OK;
    const struct net_part part = join(l, first, end);
    as_status st = lockstep_hold(l->ls, &part, sets, err);
    if (st < 0)
        return st;
    l->first = first;
    l->end = end;
    if (!buf_host(network_gradients(l->ls->network)) &&
        !(l->gradient = as_calloc(l->ls->plan->n_params, sizeof *l->gradient)))
        return as_fail_nomem(err);
    return create_inputs(l, sets, err);
}

/* Tensors of the whole plan that lie in [first, first + n), at their offsets from `first`. */
static void draw_range(const struct net_tensor *all, size_t n_all, size_t first, size_t n,
                       uint64_t seed, float *ret)
{
    for (size_t i = 0; i < n_all; i++) {
        struct net_tensor t = all[i];
        if (t.offset < first || t.offset >= first + n)
            continue;
        t.offset -= first;
        network_draw(&t, 1, seed, ret);
    }
}

static void blocks_draw(const void *self, size_t block, float *params, float *statistics)
{
    const struct learner_blocks *l = self;
    const struct member *m = member_of(l);
    const struct replica_block *b = &l->blocks[block];
    draw_range(m->plan->tensors, m->plan->n_tensors, b->first, b->n, m->seed, params);
    draw_range(m->plan->states, m->plan->n_states, b->first_state, b->n_state, m->seed, statistics);
}

static as_status blocks_put(void *self, size_t block, const float *params, const float *statistics,
                            struct as_err *err)
{
    struct learner_blocks *l = self;
    struct network *net = l->ls->network;
    const struct replica_block *b = &l->blocks[block], *begin = &l->blocks[l->first];
    as_status st = buf_upload(network_params(net), b->first - begin->first, params, b->n, err);
    if (st < 0 || b->n_state == 0)
        return st;
    return buf_upload(network_state(net), b->first_state - begin->first_state, statistics,
                      b->n_state, err);
}

/* ---- passes ---- */

static size_t rows_of(const struct learner_blocks *l, size_t at)
{
    return epoch_layout_rows(&member_of(l)->layout, at);
}

static as_status pass_forward(struct learner_blocks *l, struct backend *lane, size_t at,
                              struct buf *x, float *out, float *statistics, float *ret_loss,
                              struct as_err *err)
{
    struct lockstep *ls = l->ls;
    struct buf *loss = ls->losses->train.loss;
    struct tensor value;
    as_status st;
    if ((st = loss_sums_clear(&ls->losses->train, 0, 1, err)) < 0 ||
        (st = lockstep_forward(ls, lane, at, x, !out, &value, err)) < 0 ||
        (st = backend_sync(lane, err)) < 0 ||
        (st = network_read_state(ls->network, 0, statistics, err)) < 0 ||
        (st = buf_download(loss, 0, ret_loss, 1, err)) < 0)
        return st;
    return out ? buf_download(value.buf, value.offset, out,
                              rows_of(l, at) * l->blocks[l->end - 1].out, err)
               : AS_OK;
}

/* Each shard begins with the statistics of before the step, and its loss is summed by itself; so
 * both are put back. */
static as_status blocks_forward(void *self, struct backend *lane, uint32_t shard, size_t set,
                                const float *in, float *out, float *statistics, float *ret_loss,
                                struct as_err *err)
{
    struct learner_blocks *l = self;
    struct lockstep *ls = l->ls;
    struct buf *loss = ls->losses->train.loss, *x = in ? l->x[set] : NULL;
    size_t at = member_of(l)->at + shard;
    int64_t begin_ns = clock_mono_ns();
    float before = 0;
    as_status st;
    network_use(ls->network, set);
    if ((st = network_read_state(ls->network, 0, l->statistics, err)) < 0 ||
        (st = buf_download(loss, 0, &before, 1, err)) < 0 ||
        (x && (st = buf_upload(x, 0, in, rows_of(l, at) * l->blocks[l->first].in, err)) < 0) ||
        (st = pass_forward(l, lane, at, x, out, statistics, ret_loss, err)) < 0 ||
        (st = network_write_state(ls->network, 0, l->statistics, err)) < 0)
        return st;
    l->busy_ns += clock_mono_ns() - begin_ns;
    return buf_upload(loss, 0, &before, 1, err);
}

static as_status blocks_backward(void *self, struct backend *lane, uint32_t shard, size_t set,
                                 const float *d_out, float *d_in, const float **ret,
                                 struct as_err *err)
{
    struct learner_blocks *l = self;
    struct lockstep *ls = l->ls;
    struct network *net = ls->network;
    size_t at = member_of(l)->at + shard, rows = rows_of(l, at);
    int64_t begin_ns = clock_mono_ns();
    network_use(net, set);
    struct tensor end = network_output_gradient(net), begin = network_input_gradient(net);
    as_status st;
    if ((d_out && (st = buf_upload(end.buf, end.offset, d_out, rows * l->blocks[l->end - 1].out,
                                   err)) < 0) ||
        (st = lockstep_backward(ls, lane, at, l->x[set], err)) < 0 ||
        (st = backend_sync(lane, err)) < 0 ||
        (d_in && (st = buf_download(begin.buf, begin.offset, d_in, rows * l->blocks[l->first].in,
                                    err)) < 0))
        return st;
    l->busy_ns += clock_mono_ns() - begin_ns;
    if (!l->gradient) {
        *ret = buf_host(network_gradients(net));
        return AS_OK;
    }
    *ret = l->gradient;
    return buf_download(network_gradients(net), 0, l->gradient, ls->plan->n_params, err);
}

static int64_t blocks_busy_ns(const void *self)
{
    return ((const struct learner_blocks *)self)->busy_ns;
}

/* ---- steps ---- */

static as_status blocks_numbers(const void *self, struct replica_numbers *ret, struct as_err *err)
{
    const struct learner_blocks *l = self;
    struct slot_state s;
    as_status st = lockstep_state_get(l->ls, &s, err);
    if (st == AS_OK)
        *ret = (struct replica_numbers){s.steps, s.active};
    return st;
}

static as_status blocks_done(void *self, float loss, bool active, struct as_err *err)
{
    struct learner_blocks *l = self;
    struct member *m = member_of(l);
    struct slot place = lockstep_slot(l->ls, 0);
    struct slot_state s;
    as_status st = lockstep_state_get(l->ls, &s, err);
    if (st < 0)
        return st;
    s.loss_sum += loss;
    s.steps += active;
    s.active = active;
    if ((st = slot_state_put(&place, &s, err)) < 0)
        return st;
    size_t left = m->layout.micro_steps - m->at, most = m->layout.per_batch;
    m->at += left < most ? left : most;
    return AS_OK;
}

/* ---- the whole state ---- */

static as_status blocks_whole(void *self, bool make, struct slot_state **ret, struct as_err *err)
{
    struct lockstep *ls = ((struct learner_blocks *)self)->ls;
    as_status st = make ? lockstep_make_whole(ls, err) : AS_OK;
    *ret = ls->whole;
    return st;
}

static void blocks_whole_drop(void *self)
{
    lockstep_drop_whole(((struct learner_blocks *)self)->ls);
}

as_status learner_blocks_predict(struct lockstep *ls, struct as_err *err)
{
    const struct slot_state *s = ls->whole;
    as_status st = lockstep_hold(ls, NULL, 1, err);
    if (st < 0 ||
        (st = buf_upload(network_params(ls->network), 0, s->params, ls->plan->n_params, err)) < 0)
        return st;
    return network_write_state(ls->network, 0, s->statistics, err);
}

static const struct replica_block_ops ops = {
    .hold = blocks_hold,
    .draw = blocks_draw,
    .put = blocks_put,
    .forward = blocks_forward,
    .backward = blocks_backward,
    .busy_ns = blocks_busy_ns,
    .numbers = blocks_numbers,
    .done = blocks_done,
    .whole = blocks_whole,
    .whole_drop = blocks_whole_drop,
};

/* ---- life ---- */

static struct replica_block block_of(const struct net_parts *parts, size_t i)
{
    const struct net_part *p = &parts->of[i];
    return (struct replica_block){.first = p->first_param,
                                  .n = p->end_param - p->first_param,
                                  .first_state = p->first_state,
                                  .n_state = p->end_state - p->first_state,
                                  .in = i > 0 ? net_shape_elements(parts->of[i - 1].out) : 0,
                                  .out = net_shape_elements(p->out),
                                  .flops = p->flops};
}

as_status learner_blocks_create(struct lockstep *ls, struct learner_blocks **ret,
                                struct as_err *err)
{
    const struct member *m = ls->member[0];
    AS_AUTO(learner_blocks_freep) struct learner_blocks *l = as_calloc(1, sizeof *l);
    if (!l)
        return as_fail_nomem(err);
    l->ls = ls;
    as_status st = net_plan_blocks(&m->spec, m->plan, "/train", &l->parts, err);
    if (st < 0)
        return st;
    l->blocks = as_calloc(l->parts.n, sizeof *l->blocks);
    l->statistics = as_calloc(m->plan->n_state, sizeof *l->statistics);
    if (!l->blocks || !l->statistics)
        return as_fail_nomem(err);
    for (size_t i = 0; i < l->parts.n; i++)
        l->blocks[i] = block_of(&l->parts, i);
    l->replica = (struct replica_blocks){
        .ops = &ops, .self = l, .n = l->parts.n, .of = l->blocks, .rows = m->plan->max_rows};
    *ret = as_steal(l);
    return AS_OK;
}

const struct replica_blocks *learner_blocks_replica(const struct learner_blocks *l)
{
    return &l->replica;
}
