/* A parameter server whose slices live in the ranks, synchronous or with bounded staleness.
 *
 * The server adds (sum_service.c): slice k of the vector is on rank k mod n. For each step every
 * rank sends what it has computed of the batch, slice by slice, and gets the slice of the sum back:
 * 2N bytes for each rank, as in MXNet's push and pull (Chen et al. 2015). Every rank applies the
 * sums in the order of the steps, so all replicas have the same bits at the same step, and any
 * optimizer can be used.
 *
 *   sync          a rank waits for the sum of its step. The sum has the order of the tree over the
 *                 shards: equal bits to a serial run
 * ssp           a rank computes up to `staleness` steps ahead of the sums that it has
 *                 (staleness.h). The gradients of those steps are of older weights, with its own
 *                 updates in them (own_writes.h; Ho et al. 2013). A rank that is alone is never
 *                 ahead: all updates are its own
 *   backup b      the first n - b gradients of a step count (Chen et al. 2016). A rank that was
 *                 late asks for the sums it has missed before it computes again
 *
 * With `compress` what a rank sends is encoded, shard by shard, and the holders add up what the
 * messages decode to, in the order of the shards: equal bits for any number of ranks. Sums come
 * back as float32. What a shard's messages lose stays with the shard (residuals.h). A step that is
 * computed ahead begins with what the one before it will have lost; so each flight keeps that, and
 * a step becomes the residual when its sum is applied. A slice that came too late to count is taken
 * back (server_feedback.c). What a rank computes and sends is in server_give.c.
 *
 * With `rows: sparse` (DMTK Multiverso) zeros do not travel, in either direction
 * (sparse_values.h): of a table of embeddings the rows that no row of the batch has touched. The
 * sums are the same.
 *
 * With `significance` (Gaia: Hsieh et al. 2017) a message has only what moves a weight by at least
 * that part of it, and a sum what of it is not 0 (significant.h). What is held back is, like what a
 * codec loses, the shard's residual. Those of small moves that add up travel when they are large
 * enough; what travels is bounded by `staleness`.
 *
 * When the rank of a slice dies, nothing is lost but sums that nobody has: all ranks have the
 * weights. In the next world those that are behind get the state of one that is not, and steps
 * whose sum was not complete are computed again; without staleness from what this rank has kept. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/staleness.h"
#include "trial-runner/distributed/parameter_server_priv.h"
#include "trial-runner/distributed/shard_tree.h"

/* ---- life ---- */

static void land(struct server *s, struct flight *f)
{
    for (uint32_t k = 0; f->calls && k < s->n_slices; k++)
        free(f->calls[k].answer);
    free(f->calls);
    free(f->message);
    free(f->used);
    f->begun = false;
    f->calls = NULL;
    f->message = NULL;
    f->used = NULL;
}

/* Leaves the world: every call ends, and nothing of it is kept. */
static void leave(struct server *s)
{
    mailbox_free(s->box);
    s->box = NULL;
    sum_service_free(s->service);
    s->service = NULL;
    for (int64_t i = 0; s->flights && i <= s->bound; i++)
        land(s, &s->flights[i]);
    s->epoch = 0;
}

static void server_free(void *self)
{
    struct server *s = self;
    if (!s)
        return;
    leave(s);
    for (uint32_t i = 0; s->partials && i < s->replica->max_shards; i++)
        free(s->partials[i]);
    for (int64_t k = 0; s->flights && k <= s->bound; k++) {
        for (uint32_t i = 0; s->flights[k].after && i < s->replica->max_shards; i++)
            free(s->flights[k].after[i]);
        free(s->flights[k].after);
    }
    for (int64_t k = 0; s->flights && k <= s->bound; k++)
        free(s->flights[k].own);
    own_writes_done(&s->writes);
    push_form_done(&s->form);
    push_form_done(&s->holder);
    residuals_done(&s->kept);
    free(s->partials);
    free(s->has);
    free(s->sum);
    free(s->node);
    free(s->runs);
    free(s->flights);
    free(s);
}

static inline void server_freep(struct server **s)
{
    server_free(*s);
}

static as_status create_residuals(struct server *s, struct as_err *err)
{
    const struct replica *r = s->replica;
    for (int64_t k = 0; k <= s->bound; k++) {
        s->flights[k].step = -1;
        s->flights[k].after = as_calloc(r->max_shards, sizeof *s->flights[k].after);
        if (!s->flights[k].after)
            return as_fail_nomem(err);
    }
    return residuals_init(&s->kept, r->n_params, r->max_shards, false, err);
}

static as_status server_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    const struct distributed_spec *d = &setup->spec->distributed;
    struct replica *r = setup->replica;
    AS_AUTO(server_freep) struct server *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct server){.replica = r,
                         .n = r->n_numbers + STRATEGY_WISHES,
                         .slices_wanted = d->server_shards,
                         .backup = (uint32_t)d->backup,
                         .step = -1};
    if (d->mode == DISTRIBUTED_SSP)
        s->bound = d->staleness;
    s->partials = as_calloc(r->max_shards, sizeof *s->partials);
    s->has = as_calloc(r->max_shards, sizeof *s->has);
    s->sum = as_calloc(s->n, sizeof *s->sum);
    s->node = as_calloc(s->n, sizeof *s->node);
    s->runs = as_calloc(WORLD_MAX_RANKS, sizeof *s->runs);
    s->flights = as_calloc((size_t)s->bound + 1, sizeof *s->flights);
    if (!s->partials || !s->has || !s->sum || !s->node || !s->runs || !s->flights)
        return as_fail_nomem(err);
    as_status st = push_form_init(&s->form, d, r, s->n, err);
    if (st == AS_OK)
        st = push_form_init(&s->holder, d, r, s->n, err);
    if (st == AS_OK && d->error_feedback)
        st = create_residuals(s, err);
    if (st == AS_OK && d->significance > 0 &&
        !(s->form.limits = as_calloc(r->n_params, sizeof(float))))
        st = as_fail_nomem(err);
    if (st == AS_OK && s->bound > 0)
        st = own_writes_init(&s->writes, setup->spec, r, err);
    for (int64_t k = 0; st == AS_OK && s->writes.replica && k <= s->bound; k++)
        if (!(s->flights[k].own = as_calloc(r->n_params, sizeof *s->flights[k].own)))
            st = as_fail_nomem(err);
    if (st < 0)
        return st;
    *ret = as_steal(s);
    return AS_OK;
}

/* A request has a message for each node or, with a codec, for each shard of a run; an answer has
 * the numbers of a slice. */
static size_t message_most(const struct server *s)
{
    uint32_t shards = s->replica->max_shards, ranks = (uint32_t)s->n_ranks;
    size_t items = shards < SHARD_TREE_NODES ? shards : SHARD_TREE_NODES, first, most = 0;
    if (push_by_shard(&s->form))
        items = (shards + ranks - 1) / ranks;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        size_t n = push_slice_n(&s->form, k, s->n_slices, &first) * sizeof(float);
        if (push_is_measured(&s->form))
            n = push_bytes(&s->form, (struct push_slice){k, s->n_slices, false});
        most = n > most ? n : most;
    }
    size_t given = items * push_bytes_most(&s->form, s->n_slices);
    return sizeof(struct sum_head) + sizeof(struct sum_answer) + (given > most ? given : most);
}

/* Opens the mailbox of a new world. */
static as_status join(struct server *s, struct coll *c, struct as_err *err)
{
    leave(s);
    s->rank = coll_rank(c);
    s->n_ranks = coll_size(c);
    s->n_slices = (uint32_t)(s->slices_wanted ? s->slices_wanted : s->n_ranks);
    uint32_t backup = s->backup < (uint32_t)s->n_ranks ? s->backup : (uint32_t)s->n_ranks - 1;
    as_status st = sum_service_create(0, s->n_ranks, &s->holder, backup, &s->service, err);
    if (st < 0)
        return st;
    struct mailbox_opts opts = {.max_bytes = message_most(s),
                                .on_request = sum_service_request,
                                .on_lost = sum_service_lost,
                                .arg = s->service};
    st = mailbox_create(c, &opts, &s->box, err);
    s->epoch = coll_world(c)->epoch;
    s->next = s->replica->ops->step(s->replica->self);
    s->behind = false;
    return st;
}

/* ---- what it gets ---- */

static bool is_here(struct server *s, const struct flight *f)
{
    for (uint32_t k = 0; k < s->n_slices; k++)
        if (!mailbox_is_done(s->box, &f->calls[k]))
            return false;
    return true;
}

/* Has it the sum of slice k? */
static bool is_answer(const struct server *s, uint32_t k, const struct mail_call *call)
{
    size_t first, bytes = push_slice_n(&s->form, k, s->n_slices, &first) * sizeof(float);
    if (call->answer_n < sizeof(struct sum_answer))
        return false;
    size_t left = call->answer_n - sizeof(struct sum_answer);
    const struct push_slice slice = {k, s->n_slices, false};
    if (push_is_measured(&s->form) &&
        !push_measure(&s->form, slice, call->answer + sizeof(struct sum_answer), left, &bytes))
        return false;
    return left == bytes;
}

/* Puts the sum of slice k, which is_answer(), into its place. */
static void take_answer(struct server *s, uint32_t k, const struct mail_call *call)
{
    size_t first, n = server_slice(s, k, &first);
    const void *in = call->answer + sizeof(struct sum_answer);
    if (push_is_measured(&s->form))
        push_read(&s->form, (struct push_slice){k, s->n_slices, false}, in, s->sum + first);
    else
        memcpy(s->sum + first, in, n * sizeof(float));
}

/* Waits for the answers of the calls that were sent; a peeked slice that is not there is fine. */
static as_status wait_for(struct server *s, struct flight *f, bool peeked, bool *ret_all,
                          struct as_err *err)
{
    *ret_all = true;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        struct mail_call *call = &f->calls[k];
        as_status st = mailbox_finish(s->box, call, err);
        if (st == AS_E_NOT_FOUND && peeked) {
            free(call->answer);
            call->answer = NULL;
            *ret_all = false;
        } else if (st < 0) {
            return st;
        } else if (!is_answer(s, k, call)) {
            return as_fail(err, AS_E_CONFLICT,
                           "rank %d answers with %zu bytes, not those of slice %u", (int)call->to,
                           call->answer_n, (unsigned)k);
        }
    }
    return AS_OK;
}

/* Asks for the sum of a step that others have perhaps completed without this rank. */
static as_status peek(struct server *s, int64_t step, bool *ret_all, struct as_err *err)
{
    struct flight *f = server_flight(s, step);
    as_status st = server_make_calls(s, f, err);
    if (st < 0)
        return st;
    f->message = as_calloc(s->n_slices, sizeof(struct sum_head));
    if (!f->message)
        return as_fail_nomem(err);
    server_send_all(s, f, SUM_PEEK, step, (struct sum_head){.total = 1}, 0);
    st = wait_for(s, f, true, ret_all, err);
    free(f->message);
    f->message = NULL;
    if (st == AS_OK && *ret_all)
        s->next++;
    return st;
}

/* Applies the sum that has come. */
static as_status apply(struct server *s, struct backend *lane, struct flight *f, unsigned *ret,
                       struct as_err *err)
{
    struct replica *r = s->replica;
    bool late = false;
    *ret = 0;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        struct sum_answer a;
        size_t first, n = server_slice(s, k, &first);
        memcpy(&a, f->calls[k].answer, sizeof a);
        take_answer(s, k, &f->calls[k]);
        late = late || a.late;
        if (a.late && f->begun && server_has_feedback(s) && first < s->kept.n)
            server_take_back(s, f, first, n);
    }
    s->behind = late || (s->behind && !f->begun);
    land(s, f);
    *ret |= strategy_wishes_read(s->sum + r->n_numbers);
    as_status st = r->ops->update(r->self, lane, s->sum, err);
    if (st == AS_OK && server_has_feedback(s))
        residuals_commit(&s->kept);
    return st;
}

/* ---- a step ---- */

/* How far it may be ahead in this world. */
static int64_t bound_of(const struct server *s)
{
    return s->n_ranks > 1 ? s->bound : 0;
}

static as_status step(struct server *s, struct backend *lane, unsigned wishes, unsigned *ret,
                      struct as_err *err)
{
    const struct replica *r = s->replica;
    int64_t at = r->ops->step(r->self);
    struct flight *f = server_flight(s, at);
    bool all = false;
    as_status st = AS_OK;
    if (s->next < at)
        s->next = at;
    if (s->behind && s->next == at && (st = peek(s, at, &all, err)) < 0)
        return st;
    s->behind = s->behind && all;
    while (!all && clock_may_begin(bound_of(s), at, s->next) &&
           r->ops->shards(r->self, s->next - at) > 0 && !(f->begun && is_here(s, f)))
        if ((st = server_give(s, lane, s->next - at, wishes, err)) < 0)
            return st;
    if ((st = server_stage(s, at, err)) < 0)
        return st;
    if (!all && (st = wait_for(s, f, false, &all, err)) < 0)
        return st;
    return apply(s, lane, f, ret, err);
}

static as_status server_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                            unsigned *ret, struct as_err *err)
{
    struct server *s = self;
    as_status st = s->epoch == coll_world(c)->epoch ? AS_OK : join(s, c, err);
    if (st == AS_OK)
        st = step(s, lane, wishes, ret, err);
    if (st < 0)
        leave(s);
    return st;
}

/* ---- what is kept ---- */

static size_t server_parts(void *self, struct strategy_part *ret)
{
    return residuals_parts(&((struct server *)self)->kept, ret);
}

static as_status server_restored(void *self, bool from_checkpoint, struct as_err *err)
{
    struct server *s = self;
    (void)err;
    if (server_has_feedback(s) && from_checkpoint)
        residuals_hold_all(&s->kept, s->replica->ops->step(s->replica->self));
    return AS_OK;
}

static bool server_gathers(const void *self)
{
    return server_has_feedback(self);
}

static as_status server_gather(void *self, struct coll *c, struct backend *lane, struct as_err *err)
{
    struct server *s = self;
    (void)lane;
    if (!server_has_feedback(s))
        return AS_OK;
    residuals_spread(&s->kept, s->kept.shards, coll_size(c), s->runs);
    return residuals_gather(&s->kept, c, s->runs, err);
}

static as_status server_meet(void *self, struct meeting *m, struct as_err *err)
{
    struct server *s = self;
    as_status st = meeting_catch_up(m, err);
    int64_t at = s->replica->ops->step(s->replica->self);
    if (st < 0 || !server_has_feedback(s))
        return st;
    if ((st = server_stage_missed(s, at, err)) < 0)
        return st;
    residuals_spread(&s->kept, s->kept.shards, coll_size(m->coll), s->runs);
    st = residuals_meet(&s->kept, m->coll, at, s->runs, 0, 0, err);
    for (int64_t k = 0; k <= s->bound; k++)
        s->flights[k].step = -1;
    return st;
}

const struct strategy_ops strategy_server = {
    .name = "server",
    .create = server_create,
    .free = server_free,
    .run = server_run,
    .parts = server_parts,
    .restored = server_restored,
    .gather = server_gather,
    .gathers = server_gathers,
    .meet = server_meet,
};
