/* All-reduce by recursive halving and doubling (Thakur, Rabenseifner and Gropp 2005): in step s two
 * ranks at distance P/2^s exchange halves of what both still hold, until each has the sum of one
 * slice; the same steps backwards gather the slices. Fewer steps than a ring, so it is faster where
 * latency counts.
 *
 * Where latency is all that counts, two ranks exchange everything instead of halves, and each adds
 * it up by itself (recursive doubling, in the same article): half as many steps, and the same
 * additions, so the same bits.
 *
 * Three and four ranks send short vectors to each other all at once (run_direct), again with the
 * same additions: where ranks share processors, each step costs a switch from rank to rank.
 *
 * It needs a power of two. Of P ranks, the first 2^k take part; each further rank gives its values
 * to rank r - 2^k first and gets the result at the end. */
#include "trial-runner/collective/exchange.h"

#include <string.h>

/* Two ranks send equally many bytes both ways. Whole vectors save a step, and add the half that
 * would be copied; measured on loopback: 9% faster at 256 KiB, 6% at 512 KiB, equal at 1 MiB. With
 * more ranks halves are fewer bytes: at 10 Gbit/s and 25 us for a step, whole vectors are faster up
 * to about 60 KB for 16 ranks, and to 125 KB for 4. */
#define WHOLE_BYTES_OF_TWO ((size_t)512 << 10)
#define WHOLE_BYTES ((size_t)64 << 10)

/* So many ranks at most send to each other directly, vectors of so many bytes at most: beyond, what
 * the further copies cost is more than the steps that they save (measured on two processors). */
#define DIRECT_RANKS 4
#define DIRECT_BYTES ((size_t)4 << 10)

struct halving {
    struct exchange x;
    struct transfer t[2];
    const struct reduction *reduce;
    const char *source; /* what this rank has so far: its input, or `out` */
    char *out;
    size_t n;
    int32_t rank, core; /* core: the ranks that take part, a power of two */
    bool is_long;       /* the whole is past the caches */
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

static as_status run_halves(struct halving *h, struct as_err *err)
{
    as_status st;
    for (int32_t k = h->core / 2; k > 0; k /= 2)
        if ((st = halve(h, h->rank ^ k, held(h->rank, k), held(h->rank ^ k, k), err)) < 0)
            return st;
    for (int32_t k = 1; k < h->core; k *= 2) {
        h->x.streams = h->is_long && 2 * k == h->core; /* else it is sent on */
        if ((st = reunite(h, h->rank ^ k, held(h->rank, k), held(h->rank ^ k, k), err)) < 0)
            return st;
    }
    return AS_OK;
}

/* What is sent must not change before it has left: sums go to `out` and to a second buffer in
 * turn, and the last to `out`. */
static as_status run_whole(struct halving *h, struct as_err *err)
{
    size_t bytes = h->n * h->reduce->item_bytes, steps = 0;
    char *other = workspace_get(mesh_workspace(h->x.mesh), WORKSPACE_PASSING, bytes, 1);
    as_status st = AS_OK;
    if (!other)
        return as_fail_nomem(err);
    for (int32_t k = 1; k < h->core; k *= 2)
        steps++;
    if (steps % 2 == 1 && h->source == h->out)
        h->source = memcpy(other, h->out, bytes);
    for (int32_t k = h->core / 2; st == AS_OK && k > 0; k /= 2) {
        int32_t partner = h->rank ^ k;
        char *to = --steps % 2 == 0 ? h->out : other;
        exchange_send(&h->x, partner, h->source, bytes, NULL);
        exchange_receive(&h->x, partner, to, bytes, h->reduce, h->source)->received_first =
            partner < h->rank;
        h->source = to;
        st = exchange_wait(&h->x, err);
    }
    return st;
}

/* sums[i] = sums[i] (+) sums[j], at `to`. */
static void add_pair(const struct halving *h, const char **sums, int32_t i, int32_t j, char *to)
{
    h->reduce->combine(to, sums[i], sums[j], h->n);
    sums[i] = to;
}

/* Each rank gets the vectors of all, and adds them as run_whole and the fold before it do. `in`
 * stays as it is: sums on their way go to the places of others' vectors (and this rank's own, which
 * is empty), and only the last one to `out`. */
static as_status run_direct(struct halving *h, int32_t size, struct as_err *err)
{
    size_t bytes = h->n * h->reduce->item_bytes;
    const char *sums[DIRECT_RANKS];
    struct transfer t[2 * DIRECT_RANKS];
    char *others =
        workspace_get(mesh_workspace(h->x.mesh), WORKSPACE_PASSING, (size_t)size * bytes, 1);
    if (!others)
        return as_fail_nomem(err);
    exchange_init(&h->x, h->x.mesh, h->x.id, t, AS_ARRAY_LEN(t));
    for (int32_t r = 0; r < size; r++) {
        char *place = others + (size_t)r * bytes;
        sums[r] = r == h->rank ? h->source : place;
        if (r == h->rank)
            continue;
        exchange_send(&h->x, r, h->source, bytes, NULL);
        exchange_receive(&h->x, r, place, bytes, NULL, NULL);
    }
    as_status st = exchange_wait(&h->x, err);
    if (st < 0)
        return st;
    for (int32_t i = 0; i + h->core < size; i++)
        add_pair(h, sums, i, i + h->core, others + (size_t)i * bytes);
    for (int32_t k = h->core / 2; k > 0; k /= 2)
        for (int32_t i = 0; i < k; i++)
            add_pair(h, sums, i, i + k, k == 1 ? h->out : others + (size_t)i * bytes);
    return AS_OK;
}

static as_status run_core(struct halving *h, struct as_err *err)
{
    size_t bytes = h->n * h->reduce->item_bytes;
    return bytes <= (h->core == 2 ? WHOLE_BYTES_OF_TWO : WHOLE_BYTES) ? run_whole(h, err)
                                                                      : run_halves(h, err);
}

as_status halving_allreduce(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                            const void *in, void *out, size_t n, struct as_err *err)
{
    int32_t rank = mesh_rank(m), size = mesh_size(m), core = 1;
    size_t bytes = n * reduce->item_bytes;
    as_status st = AS_OK;
    while (core * 2 <= size)
        core *= 2;
    struct halving h = {.reduce = reduce,
                        .source = in,
                        .out = out,
                        .n = n,
                        .rank = rank,
                        .core = core,
                        .is_long = bytes >= EXCHANGE_STREAMS_BYTES && rank + core >= size};
    exchange_init(&h.x, m, id, h.t, AS_ARRAY_LEN(h.t));
    if (size > 2 && size <= DIRECT_RANKS && bytes <= DIRECT_BYTES)
        return run_direct(&h, size, err);
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
