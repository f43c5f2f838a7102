/* Rings: rank r sends to r+1 and receives from r-1, one slice in each step.
 *
 * Slices travel in chunks, and all steps of all chunks are posted at once. A chunk's step s may
 * send as far as its step s-1 has received, so no step waits for the slowest rank of the step
 * before.
 *
 * The order of the posts decides which data are in the cache. In wave w, chunk w does its first
 * step, chunk w-1 its second, and so on: a sum is sent on soon after it was written, and a chunk is
 * through all its steps while later ones have not begun. If each step went over all chunks, every
 * step would fetch its slice from memory again. */
#include "trial-runner/collective/exchange.h"
#include "trial-runner/collective/frame.h"

#include <string.h>

/* Two whole frames. It stays in a core's second-level cache with what is received beside it: with
 * chunks of about this size 100 MiB on 2 ranks took 22.1 instead of 27.5 ms through shared memory
 * (decision 8005). */
#define CHUNK_BYTES ((size_t)2 * FRAME_PAYLOAD_MAX)

struct ring {
    struct exchange x;
    int32_t rank, size, next, before;
    size_t n, item_bytes, n_chunks, chunk_items;
    struct transfer **latest; /* by chunk: its last receive, or NULL */
    bool is_long;             /* the whole is past the caches */
};

struct slice {
    size_t offset, bytes;
};

/* Chunk `k` of slice `which`, counted round the ring. */
static struct slice chunk_of(const struct ring *r, int32_t which, size_t k)
{
    size_t first, end, items = r->chunk_items;
    coll_slice(r->n, r->size, ((which % r->size) + r->size) % r->size, &first, &end);
    size_t from = end - first < k * items ? end : first + k * items;
    size_t to = end - from < items ? end : from + items;
    return (struct slice){from * r->item_bytes, (to - from) * r->item_bytes};
}

/* `steps` of each chunk: a send and a receive in each. */
static as_status ring_init(struct ring *r, struct mesh *m, struct coll_id id, size_t n,
                           size_t item_bytes, size_t steps, struct as_err *err)
{
    int32_t rank = mesh_rank(m), size = mesh_size(m);
    size_t items = item_bytes < CHUNK_BYTES ? CHUNK_BYTES / item_bytes : 1;
    size_t longest = (n + (size_t)size - 1) / (size_t)size;
    *r = (struct ring){.rank = rank,
                       .size = size,
                       .next = (rank + 1) % size,
                       .before = (rank + size - 1) % size,
                       .n = n,
                       .item_bytes = item_bytes,
                       .chunk_items = items,
                       .n_chunks = (longest + items - 1) / items,
                       .is_long = n * item_bytes >= EXCHANGE_STREAMS_BYTES};
    struct workspace *w = mesh_workspace(m);
    struct transfer *t = workspace_get(w, WORKSPACE_TRANSFERS, 2 * steps * r->n_chunks, sizeof *t);
    r->latest = workspace_get(w, WORKSPACE_LATEST, r->n_chunks, sizeof *r->latest);
    if (!t || !r->latest)
        return as_fail_nomem(err);
    memset(r->latest, 0, r->n_chunks * sizeof(struct transfer *));
    exchange_init(&r->x, m, id, t, 2 * steps * r->n_chunks);
    return AS_OK;
}

/* What each step does with a chunk: which slice leaves and from where, which one arrives. */
struct step {
    int32_t out, in; /* slices, counted round the ring */
    const char *from;
    char *to; /* laid out as the whole */
    const struct reduction *reduce;
    const char *with; /* laid out as the whole */
};

static void post_step(struct ring *r, const struct step *s, size_t k)
{
    struct slice out = chunk_of(r, s->out, k), in = chunk_of(r, s->in, k);
    struct transfer *before = r->latest[k];
    exchange_send(&r->x, r->next, s->from + out.offset, out.bytes, before ? &before->done : NULL);
    r->latest[k] = exchange_receive(&r->x, r->before, s->to + in.offset, in.bytes, s->reduce,
                                    s->with ? s->with + in.offset : NULL);
}

typedef struct step step_fn(const struct ring *r, size_t step, const void *arg);

static as_status run_waves(struct ring *r, size_t steps, step_fn *step, const void *arg,
                           struct as_err *err)
{
    for (size_t wave = 0; r->n_chunks > 0 && wave < r->n_chunks + steps - 1; wave++)
        for (size_t i = 0; i < steps && i <= wave; i++)
            if (wave - i < r->n_chunks) {
                struct step s = step(r, i, arg);
                r->x.streams = r->is_long && i + 1 == steps; /* else it is sent on */
                post_step(r, &s, wave - i);
            }
    return exchange_wait(&r->x, err);
}

/* --- the operations --- */

struct reducing {
    const struct reduction *reduce;
    const char *in;
    char *out;    /* sums on their way, then the results; laid out as `in` */
    int32_t last; /* the slice that ends here */
};

/* P-1 steps, after which slice `last` of the sum is here. */
static struct step reduce_step(const struct ring *r, size_t step, const void *arg)
{
    const struct reducing *q = arg;
    int32_t out = q->last + r->size - 1 - (int32_t)step;
    return (struct step){.out = out,
                         .in = out - 1,
                         .from = step == 0 ? q->in : q->out,
                         .to = q->out,
                         .reduce = q->reduce,
                         .with = q->in};
}

/* P-1 steps that pass on slices, beginning with `mine`, until every rank has all. */
static struct step pass_step(int32_t mine, size_t step, char *out)
{
    int32_t leaves = mine - (int32_t)step;
    return (struct step){.out = leaves, .in = leaves - 1, .from = out, .to = out};
}

static struct step allreduce_step(const struct ring *r, size_t step, const void *arg)
{
    const struct reducing *q = arg;
    size_t steps = (size_t)r->size - 1;
    return step < steps ? reduce_step(r, step, arg) : pass_step(q->last, step - steps, q->out);
}

static struct step allgather_step(const struct ring *r, size_t step, const void *arg)
{
    return pass_step(r->rank, step, *(char *const *)arg);
}

as_status ring_allreduce(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                         const void *in, void *out, size_t n, struct as_err *err)
{
    struct ring r;
    size_t steps = 2 * ((size_t)mesh_size(m) - 1);
    as_status st = ring_init(&r, m, id, n, reduce->item_bytes, steps, err);
    if (st < 0)
        return st;
    /* The slice that ends at this rank is rank + 1, so that its first send is slice `rank`. */
    struct reducing q = {.reduce = reduce, .in = in, .out = out, .last = r.rank + 1};
    return run_waves(&r, steps, allreduce_step, &q, err);
}

as_status ring_allgather(struct mesh *m, struct coll_id id, void *out, size_t n, size_t item_bytes,
                         struct as_err *err)
{
    struct ring r;
    size_t steps = (size_t)mesh_size(m) - 1;
    as_status st = ring_init(&r, m, id, n, item_bytes, steps, err);
    return st < 0 ? st : run_waves(&r, steps, allgather_step, &out, err);
}
