/* One lockstep: it creates the buffers, moves members in and out, and does one micro-step.
 *
 * A step is issued from values that are equal for the whole range of members: the rows, and which
 * kinds of work some member needs (struct range). Everything that differs between members lies in
 * tables and buffers on the device, which the kernels read per slot. Therefore a step is determined
 * by a small key, and the back end can record it once and run the recording for every further step
 * with that key (graph_cache.h). A host value that changes between steps must become part of the
 * key or move into a table; otherwise a recording runs with a stale value.
 *
 * Members lie without gaps, so a range is one launch. When a member leaves, the last one is copied
 * into its slot through the host. This is slow but rare, and the member's bits do not change. */
#include "trial-runner/train/lockstep.h"

#include "model/plan/pad.h"
#include "model/plan/plan_cut.h"

void lockstep_free(struct lockstep *ls)
{
    if (!ls)
        return;
    graph_cache_done(&ls->graphs);
    private_rows_free(ls->private_rows);
    losses_free(ls->losses);
    step_table_free(ls->step_table);
    batches_free(ls->batches);
    optimizer_free(ls->optimizer);
    network_free(ls->network);
    net_plan_free(ls->plan);
    buf_free(ls->seed);
    buf_free(ls->rate);
    buf_free(ls->pad);
    buf_free(ls->flip);
    buf_free(ls->cutout);
    lockstep_drop_whole(ls);
    free(ls->member);
    free(ls->traits);
    free(ls);
}

/* ---- making ---- */

static bool member_augments(const struct member *m)
{
    return net_augments(&m->spec, m->plan->input);
}

static struct optimizer_needs member_needs(const struct member *m)
{
    struct optimizer_needs needs = optimizer_needs_of(&m->spec);
    needs.divided = m->divides_moments || m->divides_layers;
    if (m->divides_layers) /* the strategy sums and clips */
        needs.accumulate = needs.clip = false;
    return needs;
}

static struct optimizer_needs optimizer_needs_for(const struct member *m, size_t slots)
{
    struct optimizer_needs own = member_needs(m);
    if (slots == 1)
        return own;
    /* Members that come later may need any of these. An average is part of the signature. */
    return (struct optimizer_needs){true, true, true, own.average, true, false};
}

static struct epoch_layout layout_of(const struct train_data *d, const struct train_spec *spec,
                                     size_t micro_rows)
{
    return d->parts.n > 0 ? epoch_layout_of_parts(d->parts.n, micro_rows, d->n_train)
                          : epoch_layout_of(spec, micro_rows, d->n_train);
}

static size_t steps_of(const struct lockstep_setup *s, const struct member *m,
                       const struct net_plan *plan)
{
    return layout_of(s->data, &m->spec, plan->max_rows).micro_steps;
}

static as_status create_parts(struct lockstep *ls, const struct member *m, struct as_err *err)
{
    const struct lockstep_setup *s = ls->setup;
    as_status st = network_create(s->be, ls->plan, ls->slots, ls->max_rows, &ls->network, err);
    if (st != AS_OK)
        return st;
    st = optimizer_create(ls->network, optimizer_needs_for(m, ls->slots), &ls->optimizer, err);
    if (st != AS_OK)
        return st;
    st = batches_create(s->device, ls->slots, ls->max_rows, member_augments(m), &ls->batches, err);
    if (st != AS_OK)
        return st;
    st = step_table_create(s->be, ls->slots, steps_of(s, m, ls->plan), &ls->step_table, err);
    if (st != AS_OK)
        return st;
    st = losses_create(ls->network, s->data, s->loss, &ls->losses, err);
    if (st != AS_OK || !m->spec.privacy.given)
        return st;
    return private_rows_create(s->be, ls->network, ls->optimizer, &ls->private_rows, err);
}

static as_status create_numbers(struct lockstep *ls, struct as_err *err)
{
    struct backend *be = ls->setup->be;
    as_status st = buf_create(be, BUF_I32, 2 * ls->slots, &ls->seed, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, ls->slots, &ls->rate, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_I32, ls->slots, &ls->pad, err);
    if (st != AS_OK)
        return st;
    st = buf_create(be, BUF_F32, ls->slots, &ls->flip, err);
    if (st != AS_OK)
        return st;
    return buf_create(be, BUF_I32, ls->slots, &ls->cutout, err);
}

/* Before the ranks have met none knows its layers: the least of them keeps the place. */
static as_status plan_least(const struct net_plan *plan, struct net_plan **ret, struct as_err *err)
{
    AS_AUTO(net_parts_done) struct net_parts layers = {0};
    size_t least = 0;
    as_status st = net_plan_layers(plan, &layers, err);
    for (size_t i = 1; st == AS_OK && i < layers.n; i++)
        if (layers.of[i].end_param - layers.of[i].first_param <
            layers.of[least].end_param - layers.of[least].first_param)
            least = i;
    return st < 0 ? st : net_plan_cut(plan, &layers.of[least], ret, err);
}

as_status lockstep_create(const struct lockstep_setup *setup, const struct member *m, size_t slots,
                          struct lockstep **ret, struct as_err *err)
{
    AS_AUTO(lockstep_freep) struct lockstep *ls = as_calloc(1, sizeof *ls);
    if (!ls)
        return as_fail_nomem(err);
    *ls = (struct lockstep){.setup = setup, .slots = slots};
    ls->member = as_calloc(slots, sizeof(struct member *));
    ls->traits = as_calloc(slots, sizeof *ls->traits);
    if (!ls->member || !ls->traits)
        return as_fail_nomem(err);
    as_status st = m->divides_layers ? plan_least(m->plan, &ls->plan, err)
                   : slots == 1      ? net_plan_merge(m->plan, m->plan, &ls->plan, err)
                                     : net_plan_widest(m->plan, &ls->plan, err);
    if (st != AS_OK)
        return st;
    ls->max_rows = ls->plan->buffer_rows;
    st = create_parts(ls, m, err);
    if (st != AS_OK)
        return st;
    st = create_numbers(ls, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(ls);
    return AS_OK;
}

static size_t slot_bytes(const struct lockstep_setup *s, const struct member *m, size_t slots,
                         const struct net_plan *plan)
{
    size_t rows = plan->buffer_rows;
    return network_bytes(s->be, plan, 1, rows) +
           optimizer_bytes(plan, optimizer_needs_for(m, slots)) +
           batches_bytes(s->device, rows, member_augments(m)) +
           step_table_bytes(steps_of(s, m, plan)) +
           losses_bytes(plan, s->loss, rows, s->data->weights != NULL) +
           (m->spec.privacy.given ? private_rows_bytes(plan) : 0) + (2 + 1 + 3) * sizeof(float);
}

size_t lockstep_slot_bytes(const struct lockstep_setup *setup, const struct member *m, size_t slots)
{
    AS_AUTO(net_plan_freep) struct net_plan *widest = NULL;
    if (slots > 1 && net_plan_widest(m->plan, &widest, NULL) != AS_OK)
        return SIZE_MAX;
    return slot_bytes(setup, m, slots, widest ? widest : m->plan);
}

/* ---- members ---- */

bool lockstep_takes(const struct lockstep *ls, const struct member *m)
{
    return ls->n < ls->slots && net_plan_fits(m->plan, ls->plan);
}

/* Set everything of a slot that training does not change: settings, seed, optimizer, loss. */
static as_status place_member(struct lockstep *ls, size_t slot, struct member *m,
                              struct as_err *err)
{
    const struct train_augment_spec *a = &m->spec.augment;
    int32_t words[2] = {(int32_t)(uint32_t)m->seed, (int32_t)(uint32_t)(m->seed >> 32)};
    ls->member[slot] = m;
    ls->traits[slot] = (struct lockstep_traits){.needs = member_needs(m),
                                                .use = loss_use_of(&m->spec),
                                                .dropout = m->spec.model.dropout > 0};
    as_status st = buf_upload(ls->seed, 2 * slot, words, 2, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_f32(ls->rate, slot, 1, (float)m->spec.model.dropout, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_i32(ls->pad, slot, 1, (int32_t)a->pad, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_f32(ls->flip, slot, 1, (float)a->flip, err);
    if (st != AS_OK)
        return st;
    st = buf_fill_i32(ls->cutout, slot, 1, (int32_t)a->cutout, err);
    if (st != AS_OK)
        return st;
    st = optimizer_join(ls->optimizer, slot, &m->spec, err);
    if (st != AS_OK)
        return st;
    if (ls->private_rows)
        st = private_rows_join(ls->private_rows, slot, &m->spec, err);
    if (st != AS_OK)
        return st;
    return losses_join(ls->losses, slot, &m->spec, err);
}

bool lockstep_is_open(const struct lockstep *ls)
{
    /* A member after n_main was resumed inside an epoch. Once it has begun to run, the lockstep
     * stays closed until that epoch has ended and all members are in step again. */
    for (size_t k = 0; k < ls->n; k++)
        if (k < ls->n_main ? ls->member[k]->at > 0 : ls->member[k]->started)
            return false;
    return true;
}

as_status lockstep_join(struct lockstep *ls, struct member *m, struct as_err *err)
{
    size_t slot = ls->n;
    m->layout = layout_of(ls->setup->data, &m->spec, m->plan->max_rows);
    as_status st =
        m->divides_layers ? AS_OK : network_init(ls->network, slot, m->plan, m->seed, err);
    if (st != AS_OK)
        return st;
    st = place_member(ls, slot, m, err);
    if (st != AS_OK)
        return st;
    ls->n++;
    return AS_OK;
}

struct slot lockstep_slot(const struct lockstep *ls, size_t index)
{
    return (struct slot){.network = ls->network,
                         .optimizer = ls->optimizer,
                         .losses = ls->losses,
                         .index = index,
                         .own = ls->member[index]->plan,
                         .needs = ls->traits[index].needs};
}

/* Move a member to another slot, by way of the host. The slow way suffices, because it happens at
 * most once for each member that leaves. */
static as_status transfer_member(struct lockstep *ls, size_t from, size_t to, struct as_err *err)
{
    AS_AUTO(slot_state_done) struct slot_state s = {0};
    struct member *m = ls->member[from];
    struct slot source = lockstep_slot(ls, from);
    m->tabled = -1; /* its tables are not copied: they are filled again before its next step */
    as_status st = slot_state_get(&source, &s, err);
    if (st != AS_OK)
        return st;
    st = place_member(ls, to, m, err);
    if (st != AS_OK)
        return st;
    struct slot target = lockstep_slot(ls, to);
    return slot_state_put(&target, &s, err);
}

as_status lockstep_leave(struct lockstep *ls, size_t slot, struct as_err *err)
{
    size_t last = ls->n - 1;
    as_status st = slot == last ? AS_OK : transfer_member(ls, last, slot, err);
    if (st != AS_OK)
        return st;
    ls->member[last] = NULL;
    ls->n--;
    ls->n_main = ls->n_main < ls->n ? ls->n_main : ls->n;
    return AS_OK;
}

void lockstep_settle(struct lockstep *ls)
{
    while (ls->n_main < ls->n && ls->member[ls->n_main]->at == 0)
        ls->n_main++;
}

as_status lockstep_begin_epoch(struct lockstep *ls, size_t slot, struct as_err *err)
{
    struct member *m = ls->member[slot];
    int64_t shuffled =
        train_spec_is_cocoa(&m->spec) ? 0 : m->epoch; /* its workers keep their rows */
    as_status st = batches_shuffle(ls->batches, slot, m->seed, m->spec.resample, shuffled, err);
    if (st != AS_OK)
        return st;
    st = step_table_fill(ls->step_table, slot, &m->spec, &m->layout, m->epoch, m->at, err);
    if (st != AS_OK)
        return st;
    m->tabled = m->epoch;
    return AS_OK;
}

as_status lockstep_rows_moved(struct lockstep *ls, size_t slot, struct as_err *err)
{
    const struct member *m = ls->member[slot];
    graph_cache_done(&ls->graphs); /* recordings read where the rows were */
    return batches_shuffle(ls->batches, slot, m->seed, m->spec.resample, m->epoch, err);
}

as_status lockstep_freeze(struct lockstep *ls, size_t slot, struct as_err *err)
{
    return buf_fill_i32(ls->optimizer->active, slot, 1, 0, err);
}

/* ---- a step ---- */

/* What at least one member of a range needs. */
struct range {
    struct optimizer_needs needs;
    struct loss_use use;
    bool due;     /* some member's batch is complete, so its weights are updated */
    bool dropout; /* some member has dropout */
};

static struct range range_of(const struct lockstep *ls, size_t first, size_t n, size_t at)
{
    struct range r = {0};
    for (size_t k = first; k < first + n; k++) {
        const struct lockstep_traits *t = &ls->traits[k];
        r.needs = optimizer_needs_both(r.needs, t->needs);
        r.use = loss_use_both(r.use, t->use);
        r.due = r.due || epoch_layout_due(&ls->member[k]->layout, at);
        r.dropout = r.dropout || t->dropout;
    }
    return r;
}

static as_status augment_batch(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                               const struct micro_step *now, struct batch *b, struct as_err *err)
{
    const struct net_shape *in = &ls->plan->nodes[0].out;
    struct tensor y = tensor_at(ls->batches->augmented, 0, b->x.stride);
    struct augment_args a = {.members = n,
                             .batch = b->rows,
                             .height = in->height,
                             .width = in->width,
                             .channels = in->channels,
                             .x = tensor_from(b->x, first),
                             .y = tensor_from(y, first),
                             .pad = tensor_at(ls->pad, first, 1),
                             .flip = tensor_at(ls->flip, first, 1),
                             .cutout = tensor_at(ls->cutout, first, 1),
                             .seed = tensor_at(ls->seed, 2 * first, 2),
                             .step = tensor_from(now->count, first)};
    b->x = y;
    return backend_augment(lane, &a, err);
}

/* What a step does: all of it, or one of its halves. */
enum step_part { STEP_WHOLE, STEP_GRADIENTS, STEP_UPDATE };

/* The host values of a step. All of them are in its key, except ls, which owns the cache, and
 * lane, because any lane can run a recording. */
struct step {
    struct lockstep *ls;
    struct backend *lane;
    size_t first, n, rows;
    struct range r;
    enum step_part part;
    const struct grads_watch *watch; /* not in the key: such a step is not recorded */
    size_t at;                       /* the same: for privacy, whose rows are drawn on the host */
};

/* Gathers rows [at x micro, at x micro + s->rows) of each member's order; *ret: a pass over
 * them. */
static as_status gather_rows(const struct step *s, const struct micro_step *now, size_t micro,
                             struct batch *b, struct network_pass *ret, struct as_err *err)
{
    struct lockstep *ls = s->ls;
    as_status st =
        batches_train(ls->batches, s->lane, s->first, s->n, now->at, micro, s->rows, b, err);
    if (st == AS_OK && ls->batches->augmented && !ls->plan->wants_dx)
        st = augment_batch(ls, s->lane, s->first, s->n, now, b, err);
    if (st != AS_OK)
        return st;
    *ret = (struct network_pass){.rows = b->rows,
                                 .x = b->x,
                                 .codes = b->codes,
                                 .train = true,
                                 .seed = tensor_at(ls->seed, 0, 2),
                                 .step = now->count};
    if (s->watch) {
        ret->on_grads = s->watch->on_grads;
        ret->on_factors = s->watch->on_factors;
        ret->watch_arg = s->watch->arg;
    }
    if (s->r.dropout)
        ret->rate = tensor_at(ls->rate, 0, 1);
    return AS_OK;
}

/* The gradients of these rows. */
static as_status issue_pass(const struct step *s, const struct micro_step *now, size_t micro,
                            struct as_err *err)
{
    struct lockstep *ls = s->ls;
    struct backend *lane = s->lane;
    size_t first = s->first, n = s->n;
    struct batch b;
    struct network_pass pass;
    as_status st = gather_rows(s, now, micro, &b, &pass, err);
    if (st != AS_OK)
        return st;
    st = network_forward(ls->network, lane, first, n, &pass, err);
    if (st != AS_OK)
        return st;
    st = losses_train(ls->losses, lane, first, n, b.y, b.weights, b.rows, s->r.use, err);
    if (st != AS_OK)
        return st;
    return network_backward(ls->network, lane, first, n, &pass, err);
}

static as_status issue_row(void *arg, const struct micro_step *row, struct as_err *err)
{
    return issue_pass(arg, row, 1, err);
}

/* With privacy: member by member, because each draws its own rows. The gradient is complete at the
 * end of all passes, and reported as a whole. */
static as_status issue_private(const struct step *s, const struct micro_step *now,
                               struct as_err *err)
{
    struct lockstep *ls = s->ls;
    struct step one = *s;
    as_status st = AS_OK;
    one.n = one.rows = 1;
    one.watch = NULL;
    for (size_t k = s->first; st == AS_OK && k < s->first + s->n; k++) {
        one.first = k;
        st = private_rows_gradient(ls->private_rows, s->lane, k, ls->member[k], s->at, now,
                                   issue_row, &one, err);
    }
    return st == AS_OK && s->watch && s->watch->on_grads
               ? s->watch->on_grads(s->watch->arg, 0, ls->plan->n_params, err)
               : st;
}

static as_status issue_gradients(const struct step *s, const struct micro_step *now,
                                 struct as_err *err)
{
    return s->ls->private_rows ? issue_private(s, now, err)
                               : issue_pass(s, now, s->ls->plan->max_rows, err);
}

static as_status issue_step(void *arg, struct as_err *err)
{
    const struct step *s = arg;
    struct lockstep *ls = s->ls;
    struct micro_step now = step_table_now(ls->step_table);
    as_status st = step_table_take(ls->step_table, s->lane, s->first, s->n, err);
    if (st != AS_OK)
        return st;
    if (s->part != STEP_UPDATE)
        st = issue_gradients(s, &now, err);
    if (st != AS_OK || s->part == STEP_GRADIENTS)
        return st;
    if (s->part == STEP_UPDATE)
        return optimizer_apply(ls->optimizer, s->lane, s->first, s->n, &now, s->r.needs, err);
    return optimizer_step(ls->optimizer, s->lane, s->first, s->n, &now, s->r.needs, s->r.due, err);
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

static struct step step_of(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                           size_t at, enum step_part part, const struct grads_watch *watch)
{
    size_t rows = epoch_layout_rows(&ls->member[first]->layout, at);
    return (struct step){ls, lane, first, n, rows, range_of(ls, first, n, at), part, watch, at};
}

static as_status run_part(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                          size_t at, enum step_part part, const struct grads_watch *watch,
                          struct as_err *err)
{
    struct step s = step_of(ls, lane, first, n, at, part, watch);
    if (watch || (ls->private_rows && part != STEP_UPDATE))
        return issue_step(&s, err);
    struct graph_cache_key key = {first, n, s.rows, flags_of(&s.r) | (unsigned)part << 16};
    return graph_cache_step(&ls->graphs, lane, key, issue_step, &s, err);
}

as_status lockstep_step(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                        size_t at, struct as_err *err)
{
    return run_part(ls, lane, first, n, at, STEP_WHOLE, NULL, err);
}

as_status lockstep_gradients(struct lockstep *ls, struct backend *lane, size_t slot, size_t at,
                             const struct grads_watch *watch, struct as_err *err)
{
    as_status st = step_table_seek(ls->step_table, slot, at, err);
    return st != AS_OK ? st : run_part(ls, lane, slot, 1, at, STEP_GRADIENTS, watch, err);
}

as_status lockstep_update(struct lockstep *ls, struct backend *lane, size_t slot, size_t at,
                          struct as_err *err)
{
    as_status st = step_table_seek(ls->step_table, slot, at, err);
    return st != AS_OK ? st : run_part(ls, lane, slot, 1, at, STEP_UPDATE, NULL, err);
}

/* ---- parts of a network ---- */

void lockstep_drop_whole(struct lockstep *ls)
{
    if (ls->whole)
        slot_state_done(ls->whole);
    free(ls->whole);
    ls->whole = NULL;
}

as_status lockstep_hold(struct lockstep *ls, const struct net_part *part, size_t sets,
                        struct as_err *err)
{
    const struct net_plan *all = ls->member[0]->plan;
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    AS_AUTO(network_freep) struct network *net = NULL;
    struct backend *be = ls->setup->be;
    as_status st =
        part ? net_plan_cut(all, part, &plan, err) : net_plan_merge(all, all, &plan, err);
    if (st < 0)
        return st;
    st = part ? network_create(be, plan, 1, ls->max_rows, &net, err)
              : network_create_forward(be, plan, 1, ls->max_rows, &net, err);
    if (st < 0 || (st = network_keep(net, sets, err)) < 0)
        return st;
    network_free(ls->network);
    net_plan_free(ls->plan);
    ls->network = ls->optimizer->network = ls->losses->network = as_steal(net);
    ls->plan = as_steal(plan);
    ls->optimizer->n_params = ls->plan->n_params;
    ls->has_all = !part;
    return AS_OK;
}

as_status lockstep_state_new(const struct lockstep *ls, struct slot_state *ret, struct as_err *err)
{
    struct slot place = lockstep_slot(ls, 0);
    if (!ls->member[0]->divides_layers)
        return slot_state_create(&place, ret, err);
    *ret = (struct slot_state){0};
    return AS_OK;
}

as_status lockstep_state_get(const struct lockstep *ls, struct slot_state *ret, struct as_err *err)
{
    struct slot place = lockstep_slot(ls, 0);
    as_status st = lockstep_state_new(ls, ret, err);
    if (st == AS_OK && (st = slot_state_read(&place, ret, err)) < 0)
        slot_state_done(ret);
    return st;
}

static bool alloc_values(float **ret, size_t n)
{
    return n == 0 || (*ret = as_calloc(n, sizeof **ret));
}

as_status lockstep_make_whole(struct lockstep *ls, struct as_err *err)
{
    const struct net_plan *p = ls->member[0]->plan;
    size_t second = ls->traits[0].needs.second ? p->n_params : 0;
    struct slot_state *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    lockstep_drop_whole(ls);
    ls->whole = s;
    as_status st = lockstep_state_get(ls, s, err);
    if (st == AS_OK && alloc_values(&s->params, p->n_params) &&
        alloc_values(&s->moment1, p->n_params) && alloc_values(&s->moment2, second) &&
        alloc_values(&s->statistics, p->n_state))
        return AS_OK;
    lockstep_drop_whole(ls);
    return st < 0 ? st : as_fail_nomem(err);
}

/* A pass over micro-step `at` through the layers that are here. */
static as_status begin_pass(const struct step *s, struct buf *x, struct batch *b,
                            struct network_pass *pass, struct as_err *err)
{
    struct lockstep *ls = s->ls;
    struct micro_step now = step_table_now(ls->step_table);
    as_status st;
    if ((st = step_table_seek(ls->step_table, 0, s->at, err)) < 0 ||
        (st = step_table_take(ls->step_table, s->lane, 0, 1, err)) < 0 ||
        (st = gather_rows(s, &now, ls->plan->max_rows, b, pass, err)) < 0)
        return st;
    if (x)
        pass->x = tensor_at(x, 0, b->rows * net_shape_elements(ls->plan->nodes[0].out));
    return AS_OK;
}

as_status lockstep_forward(struct lockstep *ls, struct backend *lane, size_t at, struct buf *x,
                           bool is_last, struct tensor *ret, struct as_err *err)
{
    struct step s = step_of(ls, lane, 0, 1, at, STEP_GRADIENTS, NULL);
    struct batch b;
    struct network_pass pass;
    as_status st;
    if ((st = begin_pass(&s, x, &b, &pass, err)) < 0 ||
        (st = network_forward(ls->network, lane, 0, 1, &pass, err)) < 0)
        return st;
    *ret = network_result(ls->network, &pass);
    return is_last ? losses_train(ls->losses, lane, 0, 1, b.y, b.weights, b.rows, s.r.use, err)
                   : AS_OK;
}

as_status lockstep_backward(struct lockstep *ls, struct backend *lane, size_t at, struct buf *x,
                            struct as_err *err)
{
    struct step s = step_of(ls, lane, 0, 1, at, STEP_GRADIENTS, NULL);
    struct batch b;
    struct network_pass pass;
    as_status st = begin_pass(&s, x, &b, &pass, err);
    return st < 0 ? st : network_backward(ls->network, lane, 0, 1, &pass, err);
}
