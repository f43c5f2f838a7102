/* The divided memory of L-BFGS in real processes, beside the textbook's two loops on whole vectors:
 * directions to 1e-8, and the same bits for any number of ranks; ranks that join; a rank that takes
 * its pieces with it. And how shards are divided among ranks of different speed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/distributed/lbfgs_history.h"
#include "trial-runner/distributed/portions.h"

enum { N = 1003, MOST = 4, STEPS = 7 };

/* What is compared between the processes. */
struct seen {
    float to[LBFGS_PIECES * 64]; /* the weights that a direction leads to, on rank 0 */
    double slope, pairs;
    size_t touched[RANKS_MAX]; /* numbers of a row that are not 0 */
};

struct how {
    struct seen *seen;
    float damage; /* added to one number of one piece before the last direction: a control */
    bool meets;   /* two worlds: the last rank joins before step 4 */
};

static float x_of(int64_t step, size_t i)
{
    struct rng r;
    rng_init(&r, 3, (uint64_t)(step * N) + i);
    return (float)rng_normal(&r);
}

/* A gradient of a quadratic whose bends differ a thousandfold, so that pairs are curved. */
static float g_of(int64_t step, size_t i)
{
    return x_of(step, i) * (float)pow(10, 3.0 * (double)i / N - 1);
}

static void fill(int64_t step, float *x, float *g)
{
    for (size_t i = 0; i < N; i++) {
        x[i] = x_of(step, i);
        g[i] = g_of(step, i);
    }
}

static float now[2][N], then[2][N];

static void remember(struct lbfgs_history *h, const struct coll *c, int64_t step)
{
    fill(step, now[0], now[1]);
    fill(step + 1, then[0], then[1]);
    lbfgs_remember(h, c, step + 1, now[0], then[0], now[1], then[1]);
}

static int one_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct how *how = arg;
    double of_s[MOST], of_y[MOST];
    struct lbfgs_direction d = {.of_s = of_s, .of_y = of_y};
    struct lbfgs_history h;
    struct as_err err;
    static float to[LBFGS_PIECES * 64];
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c && lbfgs_history_init(&h, N, MOST, &err) == AS_OK);
    for (int64_t step = 0; step < STEPS; step++) {
        remember(&h, c, step);
        if (how->meets) { /* nothing changes where nobody has come or gone */
            EXPECT(lbfgs_meet(&h, c, step + 1, &err) == AS_OK);
            EXPECT(h.head[0] > 0);
        }
    }
    fill(STEPS, now[0], now[1]);
    if (how->damage != 0 && h.held[5])
        h.s[5 * h.stride] += how->damage;
    EXPECT(lbfgs_direct(&h, c, STEPS, now[1], &d, &err) == AS_OK);
    EXPECT(lbfgs_move(&h, c, STEPS, &d, 1, now[0], now[1], to, &err) == AS_OK);
    for (size_t i = 0; i < N; i++)
        how->seen->touched[rank] += h.s[i] != 0;
    if (rank == 0) {
        memcpy(how->seen->to, to, sizeof to);
        how->seen->slope = d.slope;
        how->seen->pairs = (double)d.pairs;
    }
    EXPECT(coll_barrier(c, (struct coll_id){.tag = 9, .what = "end"}, &err) == AS_OK);
    lbfgs_history_done(&h);
    return 0;
}

static struct seen *run(int32_t n, struct how how)
{
    how.seen = ranks_share(sizeof *how.seen);
    ck_assert(ranks_run(n, one_rank, &how));
    return how.seen;
}

/* Nocedal and Wright, algorithm 7.4, on whole vectors in double precision. */
static void textbook(double *p)
{
    static double s[MOST][N], y[MOST][N];
    double rho[MOST], a[MOST], sy = 0, yy = 0;
    for (int k = 0; k < MOST; k++) {
        double curved = 0;
        for (size_t i = 0; i < N; i++) {
            int64_t step = STEPS - MOST + k;
            s[k][i] = (double)(x_of(step + 1, i) - x_of(step, i));
            y[k][i] = (double)(g_of(step + 1, i) - g_of(step, i));
            curved += s[k][i] * y[k][i];
        }
        rho[k] = 1 / curved;
    }
    for (size_t i = 0; i < N; i++)
        p[i] = (double)g_of(STEPS, i);
    for (int k = MOST - 1; k >= 0; k--) {
        a[k] = 0;
        for (size_t i = 0; i < N; i++)
            a[k] += rho[k] * s[k][i] * p[i];
        for (size_t i = 0; i < N; i++)
            p[i] -= a[k] * y[k][i];
    }
    for (size_t i = 0; i < N; i++) {
        sy += s[MOST - 1][i] * y[MOST - 1][i];
        yy += y[MOST - 1][i] * y[MOST - 1][i];
    }
    for (size_t i = 0; i < N; i++)
        p[i] *= sy / yy;
    for (int k = 0; k < MOST; k++) {
        double b = 0;
        for (size_t i = 0; i < N; i++)
            b += rho[k] * y[k][i] * p[i];
        for (size_t i = 0; i < N; i++)
            p[i] += (a[k] - b) * s[k][i];
    }
}

/* What float32 weights can show of a direction is 6e-8 of them; the slope is not rounded. */
START_TEST(directions_are_those_of_the_textbook)
{
    static double p[N];
    double slope = 0, widest = 0, size = 0;
    textbook(p);
    struct seen *one = run(1, (struct how){0});
    for (size_t i = 0; i < N; i++) {
        slope -= p[i] * (double)g_of(STEPS, i);
        double expected = (double)x_of(STEPS, i) - p[i];
        widest = fmax(widest, fabs((double)one->to[i] - expected));
        size = fmax(size, fabs(expected));
    }
    ck_assert(one->pairs == MOST);
    ck_assert_double_le(widest, 6e-8 * size);
    ck_assert_double_le(fabs(one->slope - slope), 1e-8 * fabs(slope));
    struct seen *damaged = run(1, (struct how){.damage = 0.1F});
    ck_assert_double_gt(fabs(damaged->slope - slope), 1e-8 * fabs(slope));
}
END_TEST

START_TEST(bits_are_equal_and_memory_is_divided)
{
    struct seen *one = run(1, (struct how){0});
    ck_assert_uint_eq(one->touched[0], N);
    for (int32_t n = 2; n <= 5; n++) {
        struct seen *some = run(n, (struct how){.meets = n % 2 == 0});
        ck_assert(memcmp(some->to, one->to, N * sizeof(float)) == 0);
        ck_assert(memcmp(&some->slope, &one->slope, sizeof some->slope) == 0);
        for (int32_t r = 0; r < n; r++) /* no rank has more than its pieces */
            ck_assert_uint_le(some->touched[r], (size_t)(N / n + N / LBFGS_PIECES + 1));
    }
}
END_TEST

START_TEST(slow_ranks_get_fewer_shards)
{
    struct shard_run runs[4];
    const double slow[] = {1, 1, 5, 1}, unknown[] = {0, 0, 0}, one[] = {0, 2, 0, 2};
    portions(slow, 4, 32, runs);
    ck_assert_uint_eq(runs[2].count, 2);
    ck_assert_uint_eq(runs[0].count, 10);
    ck_assert_uint_eq(runs[3].first + runs[3].count, 32);
    portions(unknown, 3, 9, runs);
    ck_assert(runs[0].count == 3 && runs[1].count == 3 && runs[2].count == 3);
    portions(one, 4, 8, runs);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(runs[i].count, 2);
    for (uint32_t total = 0; total < 20; total++) { /* without gaps, whatever the times */
        uint32_t next = 0;
        const double odd[] = {1e-9, 1e9, 3, 1e-9};
        portions(odd, 4, total, runs);
        for (int i = 0; i < 4; i++) {
            ck_assert_uint_eq(runs[i].first, next);
            next += runs[i].count;
        }
        ck_assert_uint_eq(next, total);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("lbfgs_history");
    TCase *t = tcase_create("lbfgs_history");
    tcase_add_test(t, directions_are_those_of_the_textbook);
    tcase_add_test(t, bits_are_equal_and_memory_is_divided);
    tcase_add_test(t, slow_ranks_get_fewer_shards);
    suite_add_tcase(s, t);
    return s;
}
