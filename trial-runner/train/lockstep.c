#include "trial-runner/train/lockstep.h"

void cell_free(struct cell *c)
{
    if (!c)
        return;
    graph_cache_done(&c->graphs);
    losses_free(c->losses);
    step_table_free(c->step_table);
    batches_free(c->batches);
    optimizer_free(c->optimizer);
    network_free(c->network);
    net_plan_free(c->plan);
    buf_free(c->seed);
    buf_free(c->rate);
    buf_free(c->pad);
    buf_free(c->flip);
    buf_free(c->cutout);
    free(c->member);
    free(c->traits);
    free(c);
}

/* ---- making ---- */

static bool augments(const struct member *m)
{
    return net_augments(&m->spec, m->plan->input);
}

static struct optimizer_needs needs_of(const struct member *m, size_t slots)
{
    struct optimizer_needs own = optimizer_needs_of(&m->spec);
    if (slots == 1)
        return own;
    return (struct optimizer_needs){true, true, true, own.average, true};
}

static size_t steps_of(const struct cell_setup *s, const struct net_plan *plan)
{
    return (s->data->n_train + plan->max_rows - 1) / plan->max_rows;
}

static as_status create_parts(struct cell *c, const struct member *m, struct as_err *err)
{
    const struct cell_setup *s = c->setup;
    as_status st = network_create(s->be, c->plan, c->slots, c->max_rows, &c->network, err);
    if (st == AS_OK)
        st = optimizer_create(c->network, needs_of(m, c->slots), &c->optimizer, err);
    if (st == AS_OK)
        st = batches_create(s->device, c->slots, c->max_rows, augments(m), &c->batches, err);
    if (st == AS_OK)
        st = step_table_create(s->be, c->slots, steps_of(s, c->plan), &c->step_table, err);
    if (st == AS_OK)
        st = losses_create(c->network, s->data, s->loss, &c->losses, err);
    return st;
}

static as_status create_numbers(struct cell *c, struct as_err *err)
{
    struct backend *be = c->setup->be;
    as_status st = buf_create(be, BUF_I32, 2 * c->slots, &c->seed, err);
    if (st == AS_OK)
        st = buf_create(be, BUF_F32, c->slots, &c->rate, err);
    if (st == AS_OK)
        st = buf_create(be, BUF_I32, c->slots, &c->pad, err);
    if (st == AS_OK)
        st = buf_create(be, BUF_F32, c->slots, &c->flip, err);
    if (st == AS_OK)
        st = buf_create(be, BUF_I32, c->slots, &c->cutout, err);
    return st;
}

as_status cell_create(const struct cell_setup *setup, const struct member *m, size_t slots,
                      struct cell **ret, struct as_err *err)
{
    AS_AUTO(cell_freep) struct cell *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    *c = (struct cell){.setup = setup, .slots = slots};
    c->member = as_calloc(slots, sizeof(struct member *));
    c->traits = as_calloc(slots, sizeof *c->traits);
    if (!c->member || !c->traits)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = slots == 1 ? net_plan_merge(m->plan, m->plan, &c->plan, err)
                              : net_plan_widest(m->plan, &c->plan, err);
    if (st != AS_OK)
        return st;
    c->max_rows = c->plan->buffer_rows;
    st = create_parts(c, m, err);
    if (st == AS_OK)
        st = create_numbers(c, err);
    if (st == AS_OK)
        *ret = as_steal(c);
    return st;
}

static size_t slot_bytes(const struct cell_setup *s, const struct member *m, size_t slots,
                         const struct net_plan *plan)
{
    size_t rows = plan->buffer_rows;
    return network_bytes(s->be, plan, 1, rows) + optimizer_bytes(plan, needs_of(m, slots)) +
           batches_bytes(s->device, rows, augments(m)) + step_table_bytes(steps_of(s, plan)) +
           losses_bytes(plan, s->loss, rows) + (2 + 1 + 3) * sizeof(float);
}

size_t cell_slot_bytes(const struct cell_setup *setup, const struct member *m, size_t slots)
{
    AS_AUTO(net_plan_freep) struct net_plan *widest = NULL;
    if (slots > 1 && net_plan_widest(m->plan, &widest, NULL) != AS_OK)
        return SIZE_MAX;
    return slot_bytes(setup, m, slots, widest ? widest : m->plan);
}

/* ---- members ---- */

bool cell_takes(const struct cell *c, const struct member *m)
{
    return c->n < c->slots && net_plan_fits(m->plan, c->plan);
}

/* All but the numbers that training changes. */
static as_status place(struct cell *c, size_t slot, struct member *m, struct as_err *err)
{
    const struct train_augment_spec *a = &m->spec.augment;
    int32_t words[2] = {(int32_t)(uint32_t)m->seed, (int32_t)(uint32_t)(m->seed >> 32)};
    c->member[slot] = m;
    c->traits[slot] = (struct cell_traits){.needs = optimizer_needs_of(&m->spec),
                                           .use = loss_use_of(&m->spec),
                                           .dropout = m->spec.model.dropout > 0};
    as_status st = buf_upload(c->seed, 2 * slot, words, 2, err);
    if (st == AS_OK)
        st = buf_fill_f32(c->rate, slot, 1, (float)m->spec.model.dropout, err);
    if (st == AS_OK)
        st = buf_fill_i32(c->pad, slot, 1, (int32_t)a->pad, err);
    if (st == AS_OK)
        st = buf_fill_f32(c->flip, slot, 1, (float)a->flip, err);
    if (st == AS_OK)
        st = buf_fill_i32(c->cutout, slot, 1, (int32_t)a->cutout, err);
    if (st == AS_OK)
        st = optimizer_join(c->optimizer, slot, &m->spec, err);
    return st == AS_OK ? losses_join(c->losses, slot, &m->spec, err) : st;
}

bool cell_is_open(const struct cell *c)
{
    for (size_t k = 0; k < c->n; k++)
        if (k < c->n_main ? c->member[k]->at > 0 : c->member[k]->started)
            return false;
    return true;
}

as_status cell_join(struct cell *c, struct member *m, struct as_err *err)
{
    size_t slot = c->n;
    m->layout = epoch_layout_of(&m->spec, m->plan->max_rows, c->setup->data->n_train);
    as_status st = network_init(c->network, slot, m->plan, m->seed, err);
    if (st == AS_OK)
        st = place(c, slot, m, err);
    if (st == AS_OK)
        c->n++;
    return st;
}

struct slot cell_slot(const struct cell *c, size_t index)
{
    return (struct slot){.network = c->network,
                         .optimizer = c->optimizer,
                         .losses = c->losses,
                         .index = index,
                         .own = c->member[index]->plan,
                         .needs = c->traits[index].needs};
}

/* Through the host: it happens once in a member's life. */
static as_status transfer(struct cell *c, size_t from, size_t to, struct as_err *err)
{
    AS_AUTO(slot_state_done) struct slot_state s = {0};
    struct member *m = c->member[from];
    struct slot source = cell_slot(c, from);
    m->tabled = -1;
    as_status st = slot_state_get(&source, &s, err);
    if (st != AS_OK)
        return st;
    st = place(c, to, m, err);
    if (st != AS_OK)
        return st;
    struct slot target = cell_slot(c, to);
    return slot_state_put(&target, &s, err);
}

as_status cell_leave(struct cell *c, size_t slot, struct as_err *err)
{
    size_t last = c->n - 1;
    as_status st = slot == last ? AS_OK : transfer(c, last, slot, err);
    if (st != AS_OK)
        return st;
    c->member[last] = NULL;
    c->n--;
    c->n_main = c->n_main < c->n ? c->n_main : c->n;
    return AS_OK;
}

void cell_settle(struct cell *c)
{
    while (c->n_main < c->n && c->member[c->n_main]->at == 0)
        c->n_main++;
}

as_status cell_begin_epoch(struct cell *c, size_t slot, struct as_err *err)
{
    struct member *m = c->member[slot];
    as_status st = batches_shuffle(c->batches, slot, m->seed, m->epoch, err);
    if (st == AS_OK)
        st = step_table_fill(c->step_table, slot, &m->spec, &m->layout, m->epoch, m->at, err);
    if (st == AS_OK)
        m->tabled = m->epoch;
    return st;
}

as_status cell_freeze(struct cell *c, size_t slot, struct as_err *err)
{
    return buf_fill_i32(c->optimizer->active, slot, 1, 0, err);
}

/* ---- a step ---- */

/* What the members of a range need between them. */
struct range {
    struct optimizer_needs needs;
    struct loss_use use;
    bool due;     /* some member's batch is complete */
    bool dropout; /* some member has it */
};

static struct range range_of(const struct cell *c, size_t first, size_t n, size_t at)
{
    struct range r = {0};
    for (size_t k = first; k < first + n; k++) {
        const struct cell_traits *t = &c->traits[k];
        r.needs = optimizer_needs_both(r.needs, t->needs);
        r.use = loss_use_both(r.use, t->use);
        r.due = r.due || epoch_layout_due(&c->member[k]->layout, at);
        r.dropout = r.dropout || t->dropout;
    }
    return r;
}

static as_status augment(struct cell *c, struct backend *lane, size_t first, size_t n,
                         const struct micro_step *now, struct batch *b, struct as_err *err)
{
    const struct net_shape *in = &c->plan->nodes[0].out;
    struct tensor y = tensor_at(c->batches->augmented, 0, b->x.stride);
    struct augment_args a = {.members = n,
                             .batch = b->rows,
                             .height = in->height,
                             .width = in->width,
                             .channels = in->channels,
                             .x = tensor_from(b->x, first),
                             .y = tensor_from(y, first),
                             .pad = tensor_at(c->pad, first, 1),
                             .flip = tensor_at(c->flip, first, 1),
                             .cutout = tensor_at(c->cutout, first, 1),
                             .seed = tensor_at(c->seed, 2 * first, 2),
                             .step = tensor_from(now->count, first)};
    b->x = y;
    return backend_augment(lane, &a, err);
}

/* A step's host values: all of them are in its key. */
struct step {
    struct cell *c;
    struct backend *lane;
    size_t first, n, rows;
    struct range r;
};

static as_status make_calls(void *arg, struct as_err *err)
{
    const struct step *s = arg;
    struct cell *c = s->c;
    struct backend *lane = s->lane;
    size_t first = s->first, n = s->n;
    struct range r = s->r;
    struct micro_step now = step_table_now(c->step_table);
    struct batch b;
    as_status st = step_table_take(c->step_table, lane, first, n, err);
    if (st == AS_OK)
        st = batches_train(c->batches, lane, first, n, now.at, c->plan->max_rows, s->rows, &b, err);
    if (st == AS_OK && c->batches->augmented)
        st = augment(c, lane, first, n, &now, &b, err);
    if (st != AS_OK)
        return st;
    struct network_pass pass = {.rows = b.rows,
                                .x = b.x,
                                .codes = b.codes,
                                .train = true,
                                .seed = tensor_at(c->seed, 0, 2),
                                .step = now.count};
    if (r.dropout)
        pass.rate = tensor_at(c->rate, 0, 1);
    st = network_forward(c->network, lane, first, n, &pass, err);
    if (st == AS_OK)
        st = losses_train(c->losses, lane, first, n, b.y, b.rows, r.use, err);
    if (st == AS_OK)
        st = network_backward(c->network, lane, first, n, &pass, err);
    if (st == AS_OK)
        st = optimizer_step(c->optimizer, lane, first, n, &now, r.needs, r.due, err);
    return st;
}

static unsigned flags_of(const struct range *r)
{
    const bool flags[] = {r->needs.second, r->needs.norms,   r->needs.accumulate,  r->needs.average,
                          r->needs.clip,   r->use.smoothing, r->use.class_weights, r->use.top5,
                          r->due,          r->dropout};
    unsigned bits = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(flags); i++)
        bits |= (unsigned)flags[i] << i;
    return bits;
}

as_status cell_step(struct cell *c, struct backend *lane, size_t first, size_t n, size_t at,
                    struct as_err *err)
{
    size_t micro = c->plan->max_rows, left = c->setup->data->n_train - at * micro;
    struct step s = {c, lane, first, n, left < micro ? left : micro, range_of(c, first, n, at)};
    struct graph_cache_key key = {first, n, s.rows, flags_of(&s.r)};
    return graph_cache_step(&c->graphs, lane, key, make_calls, &s, err);
}
