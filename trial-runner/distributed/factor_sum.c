/* Sums of powersgd's two factors over all shards.
 *
 * As float32 they are sums in the order of a tree. What travels exactly (statistics, loss, wishes)
 * goes with the first factor.
 *
 * As halves they are messages. Slice j of a factor, of as many slices as the step has shards,
 * belongs to the rank that computes shard j: all ranks send it their shards' slice j, it adds these
 * up in float32 in the order of the shards, and sends the sum to all, as halves again. So nothing
 * overflows (each block of halves has a power of two of its own), all ranks have the same bits, and
 * these do not depend on how many ranks there are.
 *
 * No loss is forgotten. A shard's residual is what its matrix has beyond the product of the basis
 * with what its message decodes to. What halving the sum of slice j has lost goes into the residual
 * of shard j, whose holder has made that sum: a residual of the sum itself is not needed. The first
 * factor is only a basis: that of a matrix may be rounded, and nothing is lost by it. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/coded_sum.h"

enum { TAG_LEFT = 32, TAG_RIGHT, TAG_SUMS_OF = 2 /* behind the other */ };

/* One factor of this rank's shards, and its sum. */
struct factor {
    struct codec *halves; /* NULL: float32 */
    uint64_t tag;
    size_t n, exact; /* numbers of the factor; behind them, those that travel as float32 */
    float *own;      /* [run.count, n + exact] */
    float *sum;      /* [n + exact] */
};

/* What the functions below need of a sum. */
struct summing {
    struct coded_sum *s;
    struct coll *c;
    const struct coded_terms *t;
    struct shard_run run; /* this rank's */
};

static float *own_of(const struct factor *f, uint32_t i)
{
    return f->own + i * (f->n + f->exact);
}

static struct codec_extent slice_of(const struct summing *m, const struct factor *f, uint32_t j)
{
    return codec_extent(f->halves, (struct codec_slice){j, m->t->shards});
}

/* Bytes of one message about each slice of a run. */
static size_t run_bytes(const struct summing *m, const struct factor *f, struct shard_run run)
{
    size_t n = 0;
    for (uint32_t j = run.first; j < run.first + run.count; j++)
        n += slice_of(m, f, j).bytes;
    return n;
}

/* The rank of shard 0 adds up what travels exactly. */
static size_t exact_bytes(const struct factor *f, struct shard_run run)
{
    return run.first == 0 && run.count > 0 ? f->exact * sizeof(float) : 0;
}

/* ---- shards to the holders of slices ---- */

/* Encodes slice j of this rank's shards, and puts what the messages decode to in place of the
 * values. */
static char *encode_slice(const struct summing *m, const struct factor *f, uint32_t j, char *to)
{
    struct codec_extent e = slice_of(m, f, j);
    float *lost = (float *)(void *)m->s->slice.bytes;
    for (uint32_t i = 0; i < m->run.count; i++, to += e.bytes) {
        float *x = own_of(f, i) + e.first_value;
        codec_encode(f->halves, (struct codec_slice){j, m->t->shards}, x, NULL, lost, to);
        for (size_t k = 0; k < e.n_values; k++)
            x[k] -= lost[k];
    }
    return to;
}

/* For each rank its slices, one after another, each of all shards of this rank; then what is
 * exact. */
static void encode_shards(const struct summing *m, const struct factor *f)
{
    char *to = m->s->out.bytes;
    for (int32_t r = 0; r < coll_size(m->c); r++) {
        struct shard_run theirs = m->t->runs[r];
        size_t exact = exact_bytes(f, theirs);
        for (uint32_t j = theirs.first; j < theirs.first + theirs.count; j++)
            to = encode_slice(m, f, j, to);
        for (uint32_t i = 0; i < m->run.count && exact > 0; i++, to += exact)
            memcpy(to, own_of(f, i) + f->n, exact);
    }
}

/* Messages of two lists: from `out`, and to `in`, rank by rank. */
struct post {
    struct coll_message *sent, *received;
    size_t n_sent, n_received;
};

static void post_add(struct post *p, int32_t peer, const char *from, size_t out, char *to,
                     size_t in)
{
    if (out > 0)
        p->sent[p->n_sent++] = (struct coll_message){.peer = peer, .from = from, .bytes = out};
    if (in > 0)
        p->received[p->n_received++] = (struct coll_message){.peer = peer, .to = to, .bytes = in};
}

static as_status exchange_shards(const struct summing *m, const struct factor *f,
                                 struct as_err *err)
{
    struct coll_id id = {.step = m->t->step, .tag = f->tag, .what = "halves of factors"};
    int32_t n = coll_size(m->c), own = coll_rank(m->c);
    size_t mine = run_bytes(m, f, m->run) + exact_bytes(f, m->run);
    const char *from = m->s->out.bytes;
    char *to = m->s->in.bytes;
    AS_AUTO(as_freep) struct coll_message *room = as_calloc(2 * (size_t)n, sizeof *room);
    if (!room)
        return as_fail_nomem(err);
    struct post p = {room, room + n, 0, 0};
    for (int32_t r = 0; r < n; r++) {
        struct shard_run theirs = m->t->runs[r];
        size_t out = m->run.count * (run_bytes(m, f, theirs) + exact_bytes(f, theirs));
        size_t in = theirs.count * mine;
        if (r == own)
            memcpy(to, from, in);
        else
            post_add(&p, r, from, out, to, in);
        from += out;
        to += in;
    }
    return coll_exchange(m->c, id, p.sent, p.n_sent, p.received, p.n_received, err);
}

/* ---- sums to all ---- */

/* Adds up slice j of all shards, encodes the sum, and lets shard j make up for what that loses.
 * `at`: bytes before slice j in a message about one shard. */
static as_status sum_slice(const struct summing *m, const struct factor *f, uint32_t j, size_t at,
                           char *out, struct as_err *err)
{
    struct codec_slice slice = {j, m->t->shards};
    struct codec_extent e = slice_of(m, f, j);
    size_t mine = run_bytes(m, f, m->run) + exact_bytes(f, m->run);
    float *sum = f->sum + e.first_value, *lost = (float *)(void *)m->s->slice.bytes;
    const char *in = m->s->in.bytes;
    memset(sum, 0, e.n_values * sizeof *sum);
    for (int32_t r = 0; r < coll_size(m->c); r++) {
        struct shard_run theirs = m->t->runs[r];
        const char *from = in + theirs.count * at;
        for (uint32_t i = 0; i < theirs.count; i++, from += e.bytes) {
            as_status st = codec_decode_add(f->halves, slice, from, e.bytes, sum, err);
            if (st < 0)
                return as_err_prefix(err, st, "a factor of shard %u of step %llu",
                                     (unsigned)(theirs.first + i), (unsigned long long)m->t->step);
        }
        in += theirs.count * mine;
    }
    codec_encode(f->halves, slice, sum, NULL, lost, out);
    float *own = own_of(f, j - m->run.first) + e.first_value;
    for (size_t k = 0; k < e.n_values; k++)
        own[k] -= lost[k];
    return AS_OK;
}

static void sum_exact(const struct summing *m, const struct factor *f, char *out)
{
    size_t slices = run_bytes(m, f, m->run), bytes = f->exact * sizeof(float);
    const char *in = m->s->in.bytes;
    float *sum = f->sum + f->n;
    memset(sum, 0, bytes);
    for (int32_t r = 0; r < coll_size(m->c); r++) {
        in += m->t->runs[r].count * slices;
        for (uint32_t i = 0; i < m->t->runs[r].count; i++, in += bytes)
            for (size_t k = 0; k < f->exact; k++) {
                float x;
                memcpy(&x, in + k * sizeof x, sizeof x);
                sum[k] += x;
            }
    }
    memcpy(out, sum, bytes);
}

/* This rank's slices of the sum, encoded, to `out`; own: what the shards were sent as, exactly. */
static as_status sum_slices(const struct summing *m, const struct factor *f, struct as_err *err)
{
    size_t at = 0;
    for (uint32_t j = m->run.first; j < m->run.first + m->run.count; j++) {
        as_status st = sum_slice(m, f, j, at, m->s->out.bytes + at, err);
        if (st < 0)
            return st;
        at += slice_of(m, f, j).bytes;
    }
    if (exact_bytes(f, m->run) > 0)
        sum_exact(m, f, m->s->out.bytes + at);
    return AS_OK;
}

static as_status decode_sums(const struct summing *m, const struct factor *f, struct as_err *err)
{
    const char *from = m->s->in.bytes;
    memset(f->sum, 0, f->n * sizeof *f->sum);
    for (int32_t r = 0; r < coll_size(m->c); r++) {
        struct shard_run theirs = m->t->runs[r];
        size_t exact = exact_bytes(f, theirs);
        for (uint32_t j = theirs.first; j < theirs.first + theirs.count; j++) {
            struct codec_extent e = slice_of(m, f, j);
            as_status st = codec_decode_add(f->halves, (struct codec_slice){j, m->t->shards}, from,
                                            e.bytes, f->sum + e.first_value, err);
            if (st < 0)
                return as_err_prefix(err, st, "the sum of a factor, of rank %d", (int)r);
            from += e.bytes;
        }
        if (exact > 0)
            memcpy(f->sum + f->n, from, exact);
        from += exact;
    }
    return AS_OK;
}

static as_status exchange_sums(const struct summing *m, const struct factor *f, struct as_err *err)
{
    struct coll_id id = {
        .step = m->t->step, .tag = f->tag + TAG_SUMS_OF, .what = "sums of factors"};
    int32_t n = coll_size(m->c), own = coll_rank(m->c);
    size_t mine = run_bytes(m, f, m->run) + exact_bytes(f, m->run);
    char *to = m->s->in.bytes;
    AS_AUTO(as_freep) struct coll_message *room = as_calloc(2 * (size_t)n, sizeof *room);
    if (!room)
        return as_fail_nomem(err);
    struct post p = {room, room + n, 0, 0};
    for (int32_t r = 0; r < n; r++) {
        struct shard_run theirs = m->t->runs[r];
        size_t in = run_bytes(m, f, theirs) + exact_bytes(f, theirs);
        if (r == own)
            memcpy(to, m->s->out.bytes, mine);
        else
            post_add(&p, r, m->s->out.bytes, mine, to, in);
        to += in;
    }
    as_status st = coll_exchange(m->c, id, p.sent, p.n_sent, p.received, p.n_received, err);
    return st < 0 ? st : decode_sums(m, f, err);
}

/* ---- a sum in two halves: `own` is final between them ---- */

static as_status make_rooms(const struct summing *m, const struct factor *f, struct as_err *err)
{
    const struct shard_run all = {0, m->t->shards};
    size_t whole = run_bytes(m, f, all) + exact_bytes(f, all);
    size_t mine = run_bytes(m, f, m->run) + exact_bytes(f, m->run);
    size_t out = whole * m->run.count, in = mine * m->t->shards;
    as_status st;
    if ((st = coded_buffer_make(&m->s->out, out > mine ? out : mine, err)) < 0 ||
        (st = coded_buffer_make(&m->s->in, in > whole ? in : whole, err)) < 0)
        return st;
    return coded_buffer_make(&m->s->slice, f->n * sizeof(float), err);
}

static as_status begin_sum(const struct summing *m, const struct factor *f, struct as_err *err)
{
    as_status st;
    if (!f->halves)
        return AS_OK;
    if ((st = make_rooms(m, f, err)) < 0)
        return st;
    encode_shards(m, f);
    st = exchange_shards(m, f, err);
    return st < 0 ? st : sum_slices(m, f, err);
}

static as_status end_sum(const struct summing *m, const struct factor *f, struct as_err *err)
{
    struct coll_id id = {.step = m->t->step, .tag = f->tag, .what = "factors"};
    if (f->halves)
        return exchange_sums(m, f, err);
    AS_AUTO(as_freep) const void **own = as_calloc(m->run.count, sizeof *own);
    if (!own)
        return as_fail_nomem(err);
    for (uint32_t i = 0; i < m->run.count; i++)
        own[i] = own_of(f, i);
    return coll_tree_sum(m->c, id, &reduce_f32_sum, m->t->runs, m->t->shards, own, f->sum,
                         f->n + f->exact, err);
}

/* ---- both factors ---- */

static as_status make_factor(const struct summing *m, struct coded_buffer *room, struct factor *f,
                             struct as_err *err)
{
    size_t n = f->n + f->exact;
    as_status st = coded_buffer_make(room, (m->run.count + (size_t)1) * n * sizeof(float), err);
    if (st < 0)
        return st;
    f->own = (float *)(void *)room->bytes;
    f->sum = f->own + m->run.count * n;
    return AS_OK;
}

/* v: what shard i's factors are of. Without feedback the partial itself. */
static as_status left_factors(const struct summing *m, struct factor *f, float **v,
                              struct as_err *err)
{
    struct residuals *kept = m->s->residuals;
    struct codec *codec = m->s->codec;
    as_status st = AS_OK;
    for (uint32_t i = 0; i < m->run.count; i++) {
        uint32_t shard = m->run.first + i;
        const float *x = m->t->partials[i];
        if (kept && (st = residuals_after(kept, shard, &v[i], err)) < 0)
            return st;
        codec_left(codec, x, kept ? residuals_before(kept, shard) : NULL, v[i], own_of(f, i));
        memcpy(own_of(f, i) + f->n, x + codec_values(codec), f->exact * sizeof *x);
    }
    if ((st = begin_sum(m, f, err)) < 0 || (st = end_sum(m, f, err)) < 0)
        return st;
    codec_left_summed(codec, f->sum);
    return AS_OK;
}

/* The residuals are complete before the last exchange: another rank may have its end, and this one
 * not. */
static as_status right_factors(const struct summing *m, const struct factor *left, struct factor *f,
                               float *const *v, struct as_err *err)
{
    struct codec *codec = m->s->codec;
    for (uint32_t i = 0; i < m->run.count; i++)
        codec_right(codec, v[i] ? v[i] : m->t->partials[i], own_of(f, i));
    as_status st = begin_sum(m, f, err);
    if (st < 0)
        return st;
    for (uint32_t i = 0; i < m->run.count && m->s->residuals; i++)
        codec_factors_lost(codec, own_of(left, i), own_of(f, i), v[i]);
    return end_sum(m, f, err);
}

as_status coded_sum_factors(struct coded_sum *s, struct coll *c, const struct coded_terms *t,
                            float *ret, struct as_err *err)
{
    const struct summing m = {s, c, t, t->runs[coll_rank(c)]};
    struct factor left = {.halves = codec_left_halves(s->codec),
                          .tag = TAG_LEFT,
                          .n = codec_left_n(s->codec),
                          .exact = t->exact};
    struct factor right = {
        .halves = codec_right_halves(s->codec), .tag = TAG_RIGHT, .n = codec_right_n(s->codec)};
    AS_AUTO(as_freep) float **v = as_calloc(m.run.count, sizeof *v);
    as_status st;
    if (!v)
        return as_fail_nomem(err);
    if ((st = make_factor(&m, &s->left, &left, err)) < 0 ||
        (st = make_factor(&m, &s->right, &right, err)) < 0 ||
        (st = left_factors(&m, &left, v, err)) < 0 ||
        (st = right_factors(&m, &left, &right, v, err)) < 0)
        return st;
    codec_right_summed(s->codec, right.sum, ret);
    memcpy(ret + codec_values(s->codec), left.sum + left.n, left.exact * sizeof *ret);
    return AS_OK;
}
