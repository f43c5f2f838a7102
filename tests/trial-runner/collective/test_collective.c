/* Every operation, for every number of ranks, over both transports, against the plain sum. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"

static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, 4097, 100003, 1 << 20};
enum { SIZES = AS_ARRAY_LEN(sizes) };

/* The longest, which is a part of it on more than FEW ranks: there are enough pieces then. */
enum { FEW = 3, LONGEST = 1 << 20, LONG = 400009 };

static size_t size_of(int32_t ranks, size_t k)
{
    return ranks > FEW && sizes[k] > LONG ? LONG : sizes[k];
}

/* Drawn once, by the process that starts all others. */
static float *values[RANKS_MAX];

static void draw_values(void)
{
    for (size_t r = 0; r < RANKS_MAX; r++) {
        size_t n = r < FEW ? LONGEST : LONG;
        values[r] = malloc(n * sizeof *values[r]);
        for (size_t i = 0; values[r] && i < n; i++)
            values[r][i] = (float)(uint32_t)rng_mix(r + 1, i) / 4294967296.0F - 0.5F;
    }
}

static void free_values(void)
{
    for (size_t r = 0; r < RANKS_MAX; r++)
        free(values[r]);
}

static float value_of(int32_t rank, size_t i)
{
    return values[rank][i];
}

/* A copy, for who must not change it. */
static float *values_of(int32_t rank, size_t n)
{
    float *v = malloc((n + 1) * sizeof *v);
    if (v)
        memcpy(v, values[rank], n * sizeof *v);
    return v;
}

static double sum_at(int32_t ranks, size_t i)
{
    double sum = 0;
    for (int32_t r = 0; r < ranks; r++)
        sum += (double)value_of(r, i);
    return sum;
}

struct plan {
    bool tcp_only;
    coll_algorithm algorithm;
};

/* --- all-reduce --- */

static int allreduce_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct plan *p = arg;
    struct as_err err = {0};
    AS_AUTO(coll_freep)
    struct coll *c = ranks_open(r, rank, &(struct mesh_opts){.tcp_only = p->tcp_only});
    EXPECT(c);
    size_t most = size_of(r->n, SIZES - 1);
    AS_AUTO(as_freep) float *in = values_of(rank, most);
    AS_AUTO(as_freep) float *out = calloc(most + 1, sizeof *out);
    EXPECT(in && out);
    for (size_t s = 0; s < SIZES; s++) {
        size_t n = size_of(r->n, s);
        out[n] = 3.5F;
        struct coll_id id = {.step = s, .tag = 1, .what = "w"};
        EXPECT(coll_allreduce(c, id, p->algorithm, &reduce_f32_sum, in, out, n, &err) == AS_OK);
        EXPECT(out[n] == 3.5F);
        EXPECT(memcmp(in, values[rank], n * sizeof *in) == 0);
        for (size_t i = 0; i < n; i++)
            EXPECT(fabs((double)out[i] - sum_at(r->n, i)) < 1e-6 * r->n);
        /* The result is the same on every rank, to the bit. */
        memcpy(in, out, n * sizeof *out);
        EXPECT(coll_broadcast(c, id, r->n - 1, in, n * sizeof *out, &err) == AS_OK);
        EXPECT(memcmp(in, out, n * sizeof *out) == 0);
        memcpy(in, values[rank], n * sizeof *in);
    }
    EXPECT(coll_barrier(c, (struct coll_id){.step = 99}, &err) == AS_OK);
    return 0;
}

START_TEST(test_allreduce)
{
    static const coll_algorithm algorithms[] = {COLL_RING, COLL_HALVING, COLL_AUTO};
    struct plan p = {.tcp_only = _i % 2, .algorithm = algorithms[_i / 2]};
    for (int32_t n = 1; n <= 6; n++)
        ck_assert(ranks_run(n, allreduce_rank, &p));
}
END_TEST

/* Where an input stands, its result may stand. */
static int in_place_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct plan *p = arg;
    struct as_err err = {0};
    AS_AUTO(coll_freep)
    struct coll *c = ranks_open(r, rank, &(struct mesh_opts){.tcp_only = p->tcp_only});
    EXPECT(c);
    for (size_t s = 0; s < SIZES - 1; s++) {
        size_t n = sizes[s];
        AS_AUTO(as_freep) float *both = values_of(rank, n);
        struct coll_id id = {.step = s, .tag = 1, .what = "w"};
        EXPECT(coll_allreduce(c, id, p->algorithm, &reduce_f32_sum, both, both, n, &err) == AS_OK);
        for (size_t i = 0; i < n; i++)
            EXPECT(fabs((double)both[i] - sum_at(r->n, i)) < 1e-6 * r->n);
    }
    return 0;
}

START_TEST(test_allreduce_in_place)
{
    struct plan p = {.tcp_only = _i % 2, .algorithm = _i / 2 == 0 ? COLL_RING : COLL_HALVING};
    for (int32_t n = 1; n <= 4; n++)
        ck_assert(ranks_run(n, in_place_rank, &p));
}
END_TEST

/* Where the order of two operands shows: NaNs of different ranks, zeros of both signs. */
static double odd_value(int32_t rank, size_t i)
{
    uint64_t bits = UINT64_C(0x7ff8000000000000) + (uint64_t)rank;
    double nan;
    memcpy(&nan, &bits, sizeof nan);
    switch (i % 4) {
    case 0:
        return nan;
    case 1:
        return rank % 2 == 0 ? 0.0 : -0.0;
    case 2:
        return rank == (int32_t)(i / 4) ? nan : 1.0;
    default:
        return (double)value_of(rank, i);
    }
}

static int odd_values_rank(const struct ranks *r, int32_t rank, void *arg)
{
    enum { N = 100 };
    const struct reduction *const reductions[] = {&reduce_f64_sum, &reduce_f64_max};
    const struct plan *p = arg;
    struct as_err err = {0};
    double in[N], out[N], roots[N];
    AS_AUTO(coll_freep)
    struct coll *c = ranks_open(r, rank, &(struct mesh_opts){.tcp_only = p->tcp_only});
    EXPECT(c);
    for (size_t i = 0; i < N; i++)
        in[i] = odd_value(rank, i);
    for (size_t k = 0; k < AS_ARRAY_LEN(reductions); k++) {
        struct coll_id id = {.step = k};
        EXPECT(coll_allreduce(c, id, p->algorithm, reductions[k], in, out, N, &err) == AS_OK);
        memcpy(roots, out, sizeof out);
        EXPECT(coll_broadcast(c, id, 0, roots, sizeof roots, &err) == AS_OK);
        EXPECT(memcmp(roots, out, sizeof out) == 0);
    }
    return 0;
}

START_TEST(test_all_ranks_add_in_one_order)
{
    struct plan p = {.tcp_only = _i % 2, .algorithm = _i / 2 == 0 ? COLL_RING : COLL_HALVING};
    for (int32_t n = 2; n <= 4; n++)
        ck_assert(ranks_run(n, odd_values_rank, &p));
}
END_TEST

/* A short vector travels whole: log2 P messages of all its bytes. A part of a long one that is
 * halved has the same bits. */
static int whole_rank(const struct ranks *r, int32_t rank, void *arg)
{
    enum { SHORT = 10000, MORE = 150000 };
    struct as_err err = {0};
    size_t steps = r->n == 2 ? 1 : r->n == 4 ? 2 : 3;
    (void)arg;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c);
    AS_AUTO(as_freep) float *in = values_of(rank, MORE);
    AS_AUTO(as_freep) float *whole = calloc(SHORT, sizeof *whole);
    AS_AUTO(as_freep) float *halved = calloc(MORE, sizeof *halved);
    struct coll_id id = {.step = 1};
    EXPECT(coll_allreduce(c, id, COLL_HALVING, &reduce_f32_sum, in, whole, SHORT, &err) == AS_OK);
    EXPECT(coll_bytes_sent(c) == steps * SHORT * sizeof *in);
    EXPECT(coll_allreduce(c, id, COLL_HALVING, &reduce_f32_sum, in, halved, MORE, &err) == AS_OK);
    EXPECT(memcmp(whole, halved, SHORT * sizeof *whole) == 0);
    return 0;
}

/* Three and four ranks send their shortest vectors directly to all others: P - 1 messages. */
static int direct_rank(const struct ranks *r, int32_t rank, void *arg)
{
    enum { SHORT = 1024, MORE = 40000 };
    const struct plan *p = arg;
    struct as_err err = {0};
    AS_AUTO(coll_freep)
    struct coll *c = ranks_open(r, rank, &(struct mesh_opts){.tcp_only = p->tcp_only});
    EXPECT(c);
    AS_AUTO(as_freep) float *in = values_of(rank, MORE);
    AS_AUTO(as_freep) float *direct = calloc(SHORT, sizeof *direct);
    AS_AUTO(as_freep) float *halved = calloc(MORE, sizeof *halved);
    struct coll_id id = {.step = 1};
    EXPECT(coll_allreduce(c, id, COLL_HALVING, &reduce_f32_sum, in, direct, SHORT, &err) == AS_OK);
    EXPECT(coll_bytes_sent(c) == (size_t)(r->n - 1) * SHORT * sizeof *in);
    EXPECT(coll_allreduce(c, id, COLL_HALVING, &reduce_f32_sum, in, halved, MORE, &err) == AS_OK);
    EXPECT(memcmp(direct, halved, SHORT * sizeof *direct) == 0);
    return 0;
}

START_TEST(test_direct_messages_give_the_same_bits)
{
    struct plan p = {.tcp_only = _i == 1};
    for (int32_t n = 3; n <= 4; n++)
        ck_assert(ranks_run(n, direct_rank, &p));
}
END_TEST

START_TEST(test_short_vectors_travel_whole_with_the_same_bits)
{
    for (int32_t n = 2; n <= 8; n *= 2)
        ck_assert(ranks_run(n, whole_rank, NULL));
}
END_TEST

/* --- bytes --- */

static int bytes_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    size_t n = (size_t)r->n * 3000;
    (void)arg;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c);
    AS_AUTO(as_freep) float *in = values_of(rank, n);
    AS_AUTO(as_freep) float *out = calloc(n, sizeof *out);
    EXPECT(coll_allreduce(c, (struct coll_id){0}, COLL_RING, &reduce_f32_sum, in, out, n, &err) ==
           AS_OK);
    EXPECT(coll_bytes_sent(c) == 2 * (size_t)(r->n - 1) * n * sizeof *in / (size_t)r->n);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 1}, &err) == AS_OK);
    return 0;
}

START_TEST(test_ring_sends_exactly_its_bytes)
{
    for (int32_t n = 2; n <= 8; n++)
        ck_assert(ranks_run(n, bytes_rank, NULL));
}
END_TEST

/* --- all-gather, messages --- */

static int gather_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct plan *p = arg;
    struct as_err err = {0};
    AS_AUTO(coll_freep)
    struct coll *c = ranks_open(r, rank, &(struct mesh_opts){.tcp_only = p->tcp_only});
    EXPECT(c);
    AS_AUTO(as_freep) float *out = calloc(size_of(r->n, SIZES - 1) + 1, sizeof *out);
    EXPECT(out);
    for (size_t s = 0; s < SIZES; s++) {
        size_t n = size_of(r->n, s), first, end;
        struct coll_id id = {.step = s, .tag = 2};
        coll_slice(n, r->n, rank, &first, &end);
        memset(out, 0, n * sizeof *out);
        for (size_t i = first; i < end; i++)
            out[i] = (float)sum_at(r->n, i);
        EXPECT(coll_allgather(c, id, out, n, sizeof *out, &err) == AS_OK);
        for (size_t i = 0; i < n; i++)
            EXPECT(fabs((double)out[i] - sum_at(r->n, i)) < 1e-6 * r->n);
    }
    struct coll_id id = {.step = 100};
    double token = rank;
    int32_t next = (rank + 1) % r->n, before = (rank + r->n - 1) % r->n;
    if (r->n > 1 && rank == 0) {
        EXPECT(coll_send(c, id, next, &token, sizeof token, &err) == AS_OK);
        EXPECT(coll_receive(c, id, before, &token, sizeof token, &err) == AS_OK);
        EXPECT(token == r->n - 1);
    } else if (r->n > 1) {
        EXPECT(coll_receive(c, id, before, &token, sizeof token, &err) == AS_OK);
        token++;
        EXPECT(coll_send(c, id, next, &token, sizeof token, &err) == AS_OK);
    }
    EXPECT(coll_barrier(c, (struct coll_id){.step = 101}, &err) == AS_OK);
    return 0;
}

START_TEST(test_scatter_and_gather)
{
    struct plan p = {.tcp_only = _i};
    for (int32_t n = 1; n <= 5; n++)
        ck_assert(ranks_run(n, gather_rank, &p));
}
END_TEST

/* --- sums in one order --- */

struct shards {
    uint32_t total;
    size_t n;
    float *expected;
    bool uneven;
};

/* The tree's order, written down once more in the plainest way. */
static float tree_value(uint32_t first, uint32_t level, uint32_t total, size_t i)
{
    if (level == 0)
        return value_of((int32_t)first, i);
    uint32_t middle = first + (1U << (level - 1));
    float left = tree_value(first, level - 1, total, i);
    return middle < total ? left + tree_value(middle, level - 1, total, i) : left;
}

static void share_out(const struct shards *s, int32_t n, struct shard_run *ret)
{
    uint32_t next = 0;
    for (int32_t r = 0; r < n; r++) {
        size_t first, end;
        coll_slice(s->total, n, r, &first, &end);
        uint32_t count = s->uneven ? (r == n - 1 ? s->total - next : (s->total - next) / 3)
                                   : (uint32_t)(end - first);
        ret[r] = (struct shard_run){next, count};
        next += count;
    }
}

/* A part of the long ones, which still has several segments on few ranks. */
static size_t merged_n(const struct shards *s)
{
    return s->n < 70001 ? s->n : 70001;
}

/* The same sum, from nodes that this rank has added up itself. */
static bool sum_merged(struct coll *c, const struct shards *s, const struct shard_run *runs,
                       float *out)
{
    size_t n_sum = merged_n(s);
    struct shard_run run = runs[coll_rank(c)];
    float *merged[64] = {0};
    uint32_t n = 0, end = run.first + run.count;
    for (uint32_t first = run.first; first < end; n++) {
        uint32_t level = shard_tree_largest(s->total, first, end);
        merged[n] = calloc(n_sum + 1, sizeof *merged[n]);
        for (size_t i = 0; i < n_sum; i++)
            merged[n][i] = tree_value(first, level, s->total, i);
        first = shard_tree_end(s->total, first, level);
    }
    memset(out, 0, n_sum * sizeof *out);
    as_status st = coll_tree_sum_merged(c, (struct coll_id){.step = 7}, &reduce_f32_sum, runs,
                                        s->total, (const void *const *)merged, out, n_sum, NULL);
    for (uint32_t i = 0; i < n; i++)
        free(merged[i]);
    return st == AS_OK;
}

static int tree_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct shards *s = arg;
    struct as_err err = {0};
    struct shard_run runs[RANKS_MAX];
    const void *partials[RANKS_MAX] = {0};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    AS_AUTO(as_freep) float *out = calloc(s->n + 1, sizeof *out);
    EXPECT(c);
    share_out(s, r->n, runs);
    for (uint32_t i = 0; i < runs[rank].count; i++)
        partials[i] = values[runs[rank].first + i];
    EXPECT(coll_tree_sum(c, (struct coll_id){.step = 5}, &reduce_f32_sum, runs, s->total, partials,
                         out, s->n, &err) == AS_OK);
    EXPECT(memcmp(out, s->expected, s->n * sizeof *out) == 0);
    EXPECT(sum_merged(c, s, runs, out));
    EXPECT(memcmp(out, s->expected, merged_n(s) * sizeof *out) == 0);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 8}, &err) == AS_OK);
    return 0;
}

START_TEST(test_tree_sum_has_equal_bits_for_any_number_of_ranks)
{
    static const uint32_t totals[] = {1, 2, 5, 8, 11, 16};
    /* The long ones have several segments, whatever the number of ranks. */
    struct shards s = {.total = totals[_i], .n = _i % 3 == 2 ? LONG : 10007};
    uint32_t level = 0;
    while ((1U << level) < s.total)
        level++;
    s.expected = calloc(s.n, sizeof *s.expected);
    for (size_t i = 0; i < s.n; i++)
        s.expected[i] = tree_value(0, level, s.total, i);
    for (int32_t n = 1; n <= 6; n++)
        for (int uneven = 0; uneven < 2; uneven++) {
            s.uneven = uneven;
            ck_assert(ranks_run(n, tree_rank, &s));
        }
    free(s.expected);
}
END_TEST

/* --- memory --- */

#define LONG_N 300007

static bool run_all(struct coll *c, const float *in, float *out, struct as_err *err)
{
    struct shard_run runs[RANKS_MAX];
    struct coll_id id = {.step = 1};
    const void *partials[3] = {in, in + 1, in + 2};
    int32_t size = coll_size(c), rank = coll_rank(c), next = (rank + 1) % size,
            before = (rank + size - 1) % size;
    struct coll_message sent = {.peer = next, .from = in, .bytes = LONG_N},
                        received = {.peer = before, .to = out, .bytes = LONG_N};
    coll_spread(3 * (uint32_t)size - 1, size, runs);
    return coll_allreduce(c, id, COLL_RING, &reduce_f32_sum, in, out, LONG_N, err) == AS_OK &&
           coll_allreduce(c, id, COLL_HALVING, &reduce_f32_sum, in, out, LONG_N, err) == AS_OK &&
           coll_allgather(c, id, out, LONG_N, sizeof *out, err) == AS_OK &&
           coll_tree_sum(c, id, &reduce_f32_sum, runs, 3 * (uint32_t)size - 1, partials, out,
                         LONG_N, err) == AS_OK &&
           coll_exchange(c, id, &sent, 1, &received, 1, err) == AS_OK &&
           coll_broadcast(c, id, 0, out, LONG_N, err) == AS_OK;
}

static int memory_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    (void)arg;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    AS_AUTO(as_freep) float *in = values_of(rank, LONG_N + 2);
    AS_AUTO(as_freep) float *out = calloc(LONG_N + 1, sizeof *out);
    EXPECT(c && in && out);
    EXPECT(run_all(c, in, out, &err));
    as_mem_fail_nth(1); /* the next allocation fails */
    bool well = run_all(c, in, out, &err);
    as_mem_fail_nth(0);
    EXPECT(well);
    return 0;
}

START_TEST(test_operations_allocate_nothing_the_second_time)
{
    for (int32_t n = 2; n <= 4; n++)
        ck_assert(ranks_run(n, memory_rank, NULL));
}
END_TEST

/* --- operations that run while the rank computes --- */

#define BUCKETS 20

struct bucket {
    struct coll_job job; /* first */
    struct coll_id id;
    float in[1000], out[1000];
};

static as_status reduce_bucket(struct coll *c, struct coll_job *job, struct as_err *err)
{
    struct bucket *b = (struct bucket *)job;
    return coll_allreduce(c, b->id, COLL_RING, &reduce_f32_sum, b->in, b->out, 1000, err);
}

static int buckets_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    (void)arg;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    AS_AUTO(as_freep) struct bucket *b = calloc(BUCKETS, sizeof *b);
    EXPECT(c);
    for (size_t k = 0; k < BUCKETS; k++) {
        b[k].job.run = reduce_bucket;
        b[k].id = (struct coll_id){.step = 1, .tag = k};
        for (size_t i = 0; i < 1000; i++)
            b[k].in[i] = value_of(rank, k * 1000 + i);
        coll_begin(c, &b[k].job);
    }
    /* One that the caller waits for comes after them. */
    EXPECT(coll_barrier(c, (struct coll_id){.step = 2}, &err) == AS_OK);
    for (size_t k = 0; k < BUCKETS; k++) {
        EXPECT(coll_finish(c, &b[k].job, &err) == AS_OK);
        for (size_t i = 0; i < 1000; i++)
            EXPECT(fabs((double)b[k].out[i] - sum_at(r->n, k * 1000 + i)) < 1e-5);
    }
    return 0;
}

START_TEST(test_operations_beside_the_computation)
{
    for (int32_t n = 1; n <= 4; n++)
        ck_assert(ranks_run(n, buckets_rank, NULL));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("collective");
    TCase *t = tcase_create("operations");
    tcase_add_unchecked_fixture(t, draw_values, free_values);
    tcase_add_loop_test(t, test_allreduce, 0, 6);
    tcase_add_loop_test(t, test_allreduce_in_place, 0, 4);
    tcase_add_loop_test(t, test_all_ranks_add_in_one_order, 0, 4);
    tcase_add_loop_test(t, test_direct_messages_give_the_same_bits, 0, 2);
    tcase_add_test(t, test_short_vectors_travel_whole_with_the_same_bits);
    tcase_add_test(t, test_ring_sends_exactly_its_bytes);
    tcase_add_loop_test(t, test_scatter_and_gather, 0, 2);
    tcase_add_loop_test(t, test_tree_sum_has_equal_bits_for_any_number_of_ranks, 0, 6);
    tcase_add_test(t, test_operations_allocate_nothing_the_second_time);
    tcase_add_test(t, test_operations_beside_the_computation);
    suite_add_tcase(s, t);
    return s;
}
