/* All-reduce by recursive halving and doubling (Thakur, Rabenseifner and Gropp 2005): in step s two
 * ranks at distance 2^s exchange halves of what both still hold, until each has the sum of one
 * slice; the same steps backwards gather the slices. Fewer steps than a ring, so it is faster where
 * latency counts.
 *
 * It needs a power of two. Of P ranks, the first 2^k take part; each further rank gives its values
 * to rank r - 2^k first and gets the result at the end. */
#include "trial-runner/collective/exchange.h"

struct halving {
    struct exchange x;
    struct transfer t[2];
    const struct reduction *reduce;
    const char *source; /* what this rank has so far: its input, or `out` */
    char *out;
    size_t n;
    int32_t rank, core; /* core: the ranks that take part, a power of two */
};

struct range {
    int32_t first, end; /* slices, of `core` */
};

static size_t offset_of(const struct halving *h, int32_t slice)
{
    size_t first = h->n, end;
    if (slice < h->core)
        coll_slice(h->n, h->core, slice, &first, &end);
    return first * h->reduce->item_bytes;
}

static size_t bytes_of(const struct halving *h, struct range r)
{
    return offset_of(h, r.end) - offset_of(h, r.first);
}

static as_status halve(struct halving *h, int32_t partner, struct range keep, struct range give,
                       struct as_err *err)
{
    size_t at = offset_of(h, keep.first);
    exchange_send(&h->x, partner, h->source + offset_of(h, give.first), bytes_of(h, give), NULL);
    exchange_receive(&h->x, partner, h->out + at, bytes_of(h, keep), h->reduce, h->source + at);
    h->source = h->out;
    return exchange_wait(&h->x, err);
}

static as_status reunite(struct halving *h, int32_t partner, struct range mine, struct range theirs,
                         struct as_err *err)
{
    exchange_send(&h->x, partner, h->out + offset_of(h, mine.first), bytes_of(h, mine), NULL);
    exchange_receive(&h->x, partner, h->out + offset_of(h, theirs.first), bytes_of(h, theirs), NULL,
                     NULL);
    return exchange_wait(&h->x, err);
}

/* The slices that `rank` holds when groups of `width` ranks hold all of them together. */
static struct range held(int32_t rank, int32_t width)
{
    int32_t first = rank / width * width;
    return (struct range){first, first + width};
}

static as_status run_core(struct halving *h, struct as_err *err)
{
    as_status st;
    for (int32_t k = h->core / 2; k > 0; k /= 2)
        if ((st = halve(h, h->rank ^ k, held(h->rank, k), held(h->rank ^ k, k), err)) < 0)
            return st;
    for (int32_t k = 1; k < h->core; k *= 2)
        if ((st = reunite(h, h->rank ^ k, held(h->rank, k), held(h->rank ^ k, k), err)) < 0)
            return st;
    return AS_OK;
}

as_status halving_allreduce(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                            const void *in, void *out, size_t n, struct as_err *err)
{
    int32_t rank = mesh_rank(m), size = mesh_size(m), core = 1;
    size_t bytes = n * reduce->item_bytes;
    as_status st = AS_OK;
    while (core * 2 <= size)
        core *= 2;
    struct halving h = {
        .reduce = reduce, .source = in, .out = out, .n = n, .rank = rank, .core = core};
    exchange_init(&h.x, m, id, h.t, AS_ARRAY_LEN(h.t));
    if (rank >= core) { /* waits for the result while the others work */
        exchange_send(&h.x, rank - core, in, bytes, NULL);
        exchange_receive(&h.x, rank - core, out, bytes, NULL, NULL);
        return exchange_wait(&h.x, err);
    }
    bool folds = rank + core < size;
    if (folds) {
        exchange_receive(&h.x, rank + core, out, bytes, reduce, in);
        h.source = out;
        st = exchange_wait(&h.x, err);
    }
    if (st == AS_OK)
        st = run_core(&h, err);
    if (st == AS_OK && folds) {
        exchange_send(&h.x, rank + core, out, bytes, NULL);
        st = exchange_wait(&h.x, err);
    }
    return st;
}
