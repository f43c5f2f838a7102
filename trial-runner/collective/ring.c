/* Rings: rank r sends to r+1 and receives from r-1, one slice in each step.
 *
 * All steps are posted at once. A send of step s may go as far as the receive of step s-1 has come,
 * so bytes travel on while the rest of their slice is still arriving, and no step waits for the
 * slowest rank of the step before. */
#include "trial-runner/collective/exchange.h"

#include <string.h>

struct ring {
    struct exchange x;
    int32_t rank, size, next, before;
    size_t n, item_bytes;
};

static as_status ring_init(struct ring *r, struct mesh *m, struct coll_id id, size_t n,
                           size_t item_bytes, size_t transfers, struct as_err *err)
{
    int32_t rank = mesh_rank(m), size = mesh_size(m);
    struct transfer *t = as_calloc(transfers, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    *r = (struct ring){.rank = rank,
                       .size = size,
                       .next = (rank + 1) % size,
                       .before = (rank + size - 1) % size,
                       .n = n,
                       .item_bytes = item_bytes};
    exchange_init(&r->x, m, id, t, transfers);
    return AS_OK;
}

static as_status ring_end(struct ring *r, struct as_err *err)
{
    as_status st = exchange_wait(&r->x, err);
    free(r->x.t);
    return st;
}

struct slice {
    size_t offset, bytes;
};

/* Slice `which`, counted round the ring. */
static struct slice slice_of(const struct ring *r, int32_t which)
{
    size_t first, end;
    coll_slice(r->n, r->size, ((which % r->size) + r->size) % r->size, &first, &end);
    return (struct slice){first * r->item_bytes, (end - first) * r->item_bytes};
}

static struct transfer *send_slice(struct ring *r, int32_t which, const void *from,
                                   const size_t *ready)
{
    struct slice s = slice_of(r, which);
    return exchange_send(&r->x, r->next, (const char *)from + s.offset, s.bytes, ready);
}

/* Slices that begin at `mine` are passed on until every rank has all. `ready`: how much of slice
 * `mine` is there. */
static void post_gather(struct ring *r, int32_t mine, void *out, const size_t *ready)
{
    for (int32_t s = 0; s < r->size - 1; s++) {
        struct slice in = slice_of(r, mine - s - 1);
        send_slice(r, mine - s, out, ready);
        struct transfer *t =
            exchange_receive(&r->x, r->before, (char *)out + in.offset, in.bytes, NULL, NULL);
        ready = &t->done;
    }
}

/* Slice `last` of the result ends here; the sums of the others go through `via`, laid out as `in`.
 * Returns the transfer that completes the slice. */
static struct transfer *post_reduce(struct ring *r, int32_t last, const struct reduction *reduce,
                                    const void *in, void *via, void *ret_slice)
{
    struct transfer *t = NULL;
    int32_t first = last + r->size - 1;
    for (int32_t s = 0; s < r->size - 1; s++) {
        struct slice sum = slice_of(r, first - s - 1);
        send_slice(r, first - s, s == 0 ? in : via, t ? &t->done : NULL);
        void *to = s == r->size - 2 ? ret_slice : (char *)via + sum.offset;
        t = exchange_receive(&r->x, r->before, to, sum.bytes, reduce,
                             (const char *)in + sum.offset);
    }
    return t;
}

as_status ring_allreduce(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                         const void *in, void *out, size_t n, struct as_err *err)
{
    struct ring r;
    size_t steps = (size_t)mesh_size(m) - 1;
    as_status st = ring_init(&r, m, id, n, reduce->item_bytes, 4 * steps, err);
    if (st < 0)
        return st;
    /* The slice that ends at this rank is rank + 1, so that its first send is slice `rank`. */
    int32_t mine = r.rank + 1;
    struct transfer *sum =
        post_reduce(&r, mine, reduce, in, out, (char *)out + slice_of(&r, mine).offset);
    post_gather(&r, mine, out, &sum->done);
    return ring_end(&r, err);
}

as_status ring_reduce_scatter(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                              const void *in, void *out, size_t n, struct as_err *err)
{
    struct ring r;
    size_t steps = (size_t)mesh_size(m) - 1;
    AS_AUTO(as_freep) void *via = as_calloc(n, reduce->item_bytes);
    if (!via)
        return as_fail_nomem(err);
    as_status st = ring_init(&r, m, id, n, reduce->item_bytes, 2 * steps, err);
    if (st < 0)
        return st;
    post_reduce(&r, r.rank, reduce, in, via, out);
    return ring_end(&r, err);
}

as_status ring_allgather(struct mesh *m, struct coll_id id, void *out, size_t n, size_t item_bytes,
                         struct as_err *err)
{
    struct ring r;
    size_t steps = (size_t)mesh_size(m) - 1;
    as_status st = ring_init(&r, m, id, n, item_bytes, 2 * steps, err);
    if (st < 0)
        return st;
    post_gather(&r, r.rank, out, NULL);
    return ring_end(&r, err);
}
