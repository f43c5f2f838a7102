/* A parameter server with `backup_copies`: the last shards of a step are computed by more than one
 * rank, and the first result counts (the backup tasks of MapReduce: Dean and Ghemawat 2004).
 *
 * A rank asks the holders (copy_service.h) for the sum of its step, and then computes the shards
 * of its run, each of which it sends by itself. When it is done and the sum has not come after a
 * quarter of the time that this took, it asks which shards are missing, and computes those that
 * are its to copy, the last one first: the shards of a run are dealt to the other ranks. A rank
 * whose shards others have computed meanwhile gets the sum before it has computed them, and leaves
 * them out. So a slow rank may be several steps behind; what it computes then comes too late, and
 * the next sum that it asks for is there already.
 *
 * Any shard has the same bits wherever it is computed, and the sum has the order of the tree: who
 * was quicker changes no bit. With `partitions: lineage` a rank reads the rows of a shard that it
 * copies for the first time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "trial-runner/distributed/copy_service.h"
#include "trial-runner/distributed/strategy.h"

/* Slices for each rank at most: a mailbox reads a rank no further that waits for too many sums. */
#define SLICES_PER_RANK (MAIL_OPEN_MAX / 4)

/* A shard on its way to the holders. */
struct given {
    struct copy_head *heads; /* [n_slices] */
    struct mail_call *calls; /* [n_slices]; NULL: it was not given in this step */
};

struct copies {
    struct replica *replica;
    size_t n; /* of a vector: the gradient's numbers and the wishes */
    int64_t slices_wanted;
    /* What has been computed for step `step`: */
    int64_t step;
    float **partials; /* [max_shards] */
    bool *has;        /* [max_shards] */
    float *sum;
    struct shard_run *runs;
    size_t n_copied, n_left; /* shards of others that it computed; of its own that it left out */

    /* For the current world: */
    uint32_t epoch; /* 0: none */
    int32_t rank, n_ranks;
    uint32_t n_slices;
    struct mailbox *box;
    struct copy_service *service;
    struct copy_head *heads; /* [n_slices] */
    struct mail_call *asks;  /* [n_slices] */
    struct given *given;     /* [max_shards] */

    pthread_mutex_t lock; /* of the following, which the mailbox's thread changes */
    pthread_cond_t changed;
    uint32_t n_here; /* asks that are done */
};

/* ---- life ---- */

static void drop_given(struct copies *k)
{
    for (uint32_t i = 0; k->given && i < k->replica->max_shards; i++) {
        for (uint32_t s = 0; k->given[i].calls && s < k->n_slices; s++)
            free(k->given[i].calls[s].answer);
        free(k->given[i].calls);
        free(k->given[i].heads);
        k->given[i] = (struct given){0};
    }
}

static void drop_answers(struct copies *k)
{
    for (uint32_t s = 0; k->asks && s < k->n_slices; s++) {
        free(k->asks[s].answer);
        k->asks[s].answer = NULL;
    }
}

/* Leaves the world: every call ends, and nothing of it is kept. */
static void leave(struct copies *k)
{
    mailbox_free(k->box);
    k->box = NULL;
    copy_service_free(k->service);
    k->service = NULL;
    drop_given(k);
    drop_answers(k);
    free(k->asks);
    free(k->heads);
    k->asks = NULL;
    k->heads = NULL;
    k->epoch = 0;
}

static void copies_free(void *self)
{
    struct copies *k = self;
    if (!k)
        return;
    leave(k);
    if (k->n_copied + k->n_left > 0) /* for people, and for tests */
        (void)printf(
            "backup copies: %zu shards of other ranks were computed, %zu of this rank left "
            "to others\n",
            k->n_copied, k->n_left);
    for (uint32_t i = 0; k->partials && i < k->replica->max_shards; i++)
        free(k->partials[i]);
    free(k->partials);
    free(k->has);
    free(k->sum);
    free(k->runs);
    free(k->given);
    (void)pthread_cond_destroy(&k->changed);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

static inline void copies_freep(struct copies **k)
{
    copies_free(*k);
}

static as_status copies_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    struct replica *r = setup->replica;
    pthread_condattr_t attr;
    struct copies *made = as_calloc(1, sizeof *made);
    if (!made)
        return as_fail_nomem(err);
    *made = (struct copies){.replica = r,
                            .n = r->n_numbers + STRATEGY_WISHES,
                            .slices_wanted = setup->spec->distributed.server_shards,
                            .step = -1};
    (void)pthread_mutex_init(&made->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&made->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    AS_AUTO(copies_freep) struct copies *k = made;
    k->partials = as_calloc(r->max_shards, sizeof *k->partials);
    k->has = as_calloc(r->max_shards, sizeof *k->has);
    k->sum = as_calloc(k->n, sizeof *k->sum);
    k->runs = as_calloc(WORLD_MAX_RANKS, sizeof *k->runs);
    k->given = as_calloc(r->max_shards, sizeof *k->given);
    if (!k->partials || !k->has || !k->sum || !k->runs || !k->given)
        return as_fail_nomem(err);
    *ret = as_steal(k);
    return AS_OK;
}

static size_t slice_of(const struct copies *k, uint32_t slice, size_t *ret_first)
{
    size_t end;
    coll_slice(k->n, (int32_t)k->n_slices, (int32_t)slice, ret_first, &end);
    return end - *ret_first;
}

/* Opens the mailbox of a new world. */
static as_status join(struct copies *k, struct coll *c, struct as_err *err)
{
    leave(k);
    k->rank = coll_rank(c);
    k->n_ranks = coll_size(c);
    int64_t most = (int64_t)k->n_ranks * SLICES_PER_RANK;
    int64_t wanted = k->slices_wanted ? k->slices_wanted : k->n_ranks;
    k->n_slices = (uint32_t)(wanted < most ? wanted : most);
    k->asks = as_calloc(k->n_slices, sizeof *k->asks);
    k->heads = as_calloc(k->n_slices, sizeof *k->heads);
    if (!k->asks || !k->heads)
        return as_fail_nomem(err);
    as_status st =
        copy_service_create(k->n_ranks, k->n, STRATEGY_WISHES, k->n_slices, &k->service, err);
    if (st < 0)
        return st;
    size_t first, slice = slice_of(k, 0, &first) * sizeof(float); /* the longest */
    size_t longest = slice > k->replica->max_shards ? slice : k->replica->max_shards;
    const struct mailbox_opts opts = {.max_bytes = sizeof(struct copy_head) + longest,
                                      .on_request = copy_service_request,
                                      .on_lost = copy_service_lost,
                                      .arg = k->service};
    if ((st = mailbox_create(c, &opts, &k->box, err)) < 0)
        return st;
    k->epoch = coll_world(c)->epoch;
    return AS_OK;
}

/* ---- the sum ---- */

static void on_answer(void *arg, struct mail_call *call)
{
    struct copies *k = arg;
    (void)call;
    (void)pthread_mutex_lock(&k->lock);
    k->n_here++;
    (void)pthread_cond_signal(&k->changed);
    (void)pthread_mutex_unlock(&k->lock);
}

static int32_t holder_of(const struct copies *k, uint32_t slice)
{
    return (int32_t)(slice % (uint32_t)k->n_ranks);
}

static void ask_for_sum(struct copies *k, int64_t step, uint32_t total)
{
    k->n_here = 0; /* no call is on its way */
    for (uint32_t s = 0; s < k->n_slices; s++) {
        k->heads[s] = (struct copy_head){.slice = s, .n_slices = k->n_slices, .total = total};
        k->asks[s] = (struct mail_call){.to = holder_of(k, s),
                                        .kind = COPY_ASK,
                                        .step = (uint64_t)step,
                                        .parts = {{&k->heads[s], sizeof k->heads[s]}},
                                        .on_done = on_answer,
                                        .arg = k};
        mailbox_begin(k->box, &k->asks[s]);
    }
}

/* Is the sum here, or will it never be? until_ns: the call waits so long (CLOCK_MONOTONIC). */
static bool is_here(struct copies *k, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    (void)pthread_mutex_lock(&k->lock);
    while (k->n_here < k->n_slices && clock_mono_ns() < until_ns)
        (void)pthread_cond_timedwait(&k->changed, &k->lock, &until);
    bool here = k->n_here == k->n_slices;
    (void)pthread_mutex_unlock(&k->lock);
    return here;
}

static as_status take_sum(struct copies *k, struct as_err *err)
{
    for (uint32_t s = 0; s < k->n_slices; s++) {
        const struct mail_call *call = &k->asks[s];
        size_t first, n = slice_of(k, s, &first) * sizeof(float);
        if (call->status < 0)
            return as_fail(err, call->status, "rank %d has no sum of slice %u", (int)call->to,
                           (unsigned)s);
        if (call->answer_n != n)
            return as_fail(err, AS_E_CONFLICT,
                           "rank %d answers with %zu bytes, not those of slice %u", (int)call->to,
                           call->answer_n, (unsigned)s);
        memcpy(k->sum + first, call->answer, n);
    }
    drop_answers(k);
    return AS_OK;
}

/* ---- shards ---- */

static as_status compute(struct copies *k, struct backend *lane, uint32_t shard, struct as_err *err)
{
    struct replica *r = k->replica;
    if (k->has[shard])
        return AS_OK;
    if (!k->partials[shard] && !(k->partials[shard] = as_calloc(k->n, sizeof(float))))
        return as_fail_nomem(err);
    float *to = k->partials[shard];
    as_status st = r->ops->gradient(r->self, lane, 0, shard, to, err);
    if (st < 0)
        return st;
    float share = r->ops->share(r->self, 0, shard);
    for (size_t i = 0; i < r->n_params + r->n_state; i++)
        to[i] *= share;
    k->has[shard] = true;
    return AS_OK;
}

/* Sends a shard that is computed, with this rank's wishes, to all holders. */
static as_status give(struct copies *k, uint32_t shard, uint32_t total, unsigned wishes,
                      struct as_err *err)
{
    struct given *g = &k->given[shard];
    float *values = k->partials[shard];
    g->heads = as_calloc(k->n_slices, sizeof *g->heads);
    g->calls = as_calloc(k->n_slices, sizeof *g->calls);
    if (!g->heads || !g->calls)
        return as_fail_nomem(err);
    strategy_wishes_put(wishes, values + k->replica->n_numbers);
    for (uint32_t s = 0; s < k->n_slices; s++) {
        size_t first, n = slice_of(k, s, &first);
        g->heads[s] = (struct copy_head){s, k->n_slices, shard, total};
        g->calls[s] = (struct mail_call){
            .to = holder_of(k, s),
            .kind = COPY_GIVE,
            .step = (uint64_t)k->step,
            .parts = {{&g->heads[s], sizeof g->heads[s]}, {values + first, n * sizeof(float)}}};
        mailbox_begin(k->box, &g->calls[s]);
    }
    return AS_OK;
}

/* Waits until the holders have what was sent. */
static as_status finish_given(struct copies *k, struct as_err *err)
{
    for (uint32_t i = 0; i < k->replica->max_shards; i++)
        for (uint32_t s = 0; k->given[i].calls && s < k->n_slices; s++) {
            as_status st = mailbox_finish(k->box, &k->given[i].calls[s], err);
            if (st < 0)
                return st;
        }
    drop_given(k);
    return AS_OK;
}

static as_status compute_run(struct copies *k, struct backend *lane, struct shard_run run,
                             uint32_t total, unsigned wishes, struct as_err *err)
{
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < run.count; i++) {
        if (is_here(k, 0)) {
            k->n_left += run.count - i;
            return AS_OK;
        }
        st = compute(k, lane, run.first + i, err);
        if (st == AS_OK)
            st = give(k, run.first + i, total, wishes, err);
    }
    return st;
}

/* ---- copies ---- */

/* Is the shard another rank's, and this one's to copy? Those of a run are dealt from its end on. */
static bool is_copied_here(const struct copies *k, uint32_t shard)
{
    int32_t owner = 0;
    while (shard - k->runs[owner].first >= k->runs[owner].count)
        owner++;
    const struct shard_run *run = &k->runs[owner];
    uint32_t from_end = run->first + run->count - 1 - shard;
    int32_t next = (int32_t)(from_end % (uint32_t)(k->n_ranks - 1));
    return owner != k->rank && (owner + 1 + next) % k->n_ranks == k->rank;
}

/* The last shard that is missing and this rank's to copy; UINT32_MAX: there is none. */
static as_status find_missing(struct copies *k, uint32_t total, uint32_t *ret, struct as_err *err)
{
    struct copy_head h = {.n_slices = k->n_slices, .total = total};
    struct mail_call call = {.to = holder_of(k, 0),
                             .kind = COPY_MISSING,
                             .step = (uint64_t)k->step,
                             .parts = {{&h, sizeof h}}};
    mailbox_begin(k->box, &call);
    as_status st = mailbox_finish(k->box, &call, err);
    *ret = UINT32_MAX;
    for (uint32_t i = 0; st == AS_OK && i < total && call.answer_n == total; i++)
        if (call.answer[i] && !k->given[i].calls && is_copied_here(k, i))
            *ret = i;
    free(call.answer);
    return st;
}

static as_status copy_missing(struct copies *k, struct backend *lane, struct shard_run run,
                              uint32_t total, unsigned wishes, struct as_err *err)
{
    const struct replica *r = k->replica;
    uint32_t shard = UINT32_MAX;
    as_status st = AS_OK;
    while (!is_here(k, 0)) {
        if ((st = find_missing(k, total, &shard, err)) < 0 || shard == UINT32_MAX)
            return st;
        if (r->ops->hold)
            st = r->ops->hold(r->self, run.first, run.count, shard, err);
        if (st < 0 || (st = compute(k, lane, shard, err)) < 0 ||
            (st = give(k, shard, total, wishes, err)) < 0)
            return st;
        k->n_copied++;
    }
    return AS_OK;
}

/* ---- a step ---- */

static as_status sum_step(struct copies *k, struct backend *lane, unsigned wishes,
                          struct as_err *err)
{
    const struct replica *r = k->replica;
    uint32_t total = r->ops->shards(r->self, 0);
    int64_t step = r->ops->step(r->self), start = clock_mono_ns();
    coll_spread(total, k->n_ranks, k->runs);
    struct shard_run run = k->runs[k->rank];
    as_status st = replica_hold_shards(r, run, err);
    if (st < 0)
        return st;
    if (k->step != step)
        memset(k->has, 0, r->max_shards * sizeof *k->has);
    k->step = step;
    ask_for_sum(k, step, total);
    if ((st = compute_run(k, lane, run, total, wishes, err)) < 0)
        return st;
    int64_t now = clock_mono_ns();
    if (!is_here(k, now + (now - start) / 4) && k->n_ranks > 1)
        st = copy_missing(k, lane, run, total, wishes, err);
    if (st < 0)
        return st;
    (void)is_here(k, INT64_MAX);
    if ((st = take_sum(k, err)) < 0)
        return st;
    return finish_given(k, err);
}

static as_status copies_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                            unsigned *ret, struct as_err *err)
{
    struct copies *k = self;
    struct replica *r = k->replica;
    as_status st = k->epoch == coll_world(c)->epoch ? AS_OK : join(k, c, err);
    if (st == AS_OK)
        st = sum_step(k, lane, wishes, err);
    if (st < 0) {
        leave(k);
        return st;
    }
    *ret = strategy_wishes_read(k->sum + r->n_numbers);
    return r->ops->update(r->self, lane, k->sum, err);
}

const struct strategy_ops strategy_server_copies = {
    .name = "server",
    .create = copies_create,
    .free = copies_free,
    .run = copies_run,
};
