/* Marks anywhere and marks in one region. Seeds are fixed, so the outcome is fixed on one
 * machine. */
#include "search/regression/neighbour_test.h"

#include "base/rng.h"
#include "tests/support/check_main.h"

#define N 40
#define ROUNDS 1000

static const struct gp_columns columns = {.n_real = 3, .n_cat = 1, .n_groups = 3};

static void draw(struct rng *r, double *x, int32_t *z)
{
    for (size_t i = 0; i < 3 * N; i++)
        x[i] = rng_uniform(r);
    for (size_t i = 0; i < N; i++)
        z[i] = (int32_t)rng_below(r, 3);
}

/* 100,000 other rounds had a rate of 0.132. The bound is a fifth: with 1000 rounds that is six
 * deviations away, a false alarm in 1e9. */
START_TEST(marks_anywhere)
{
    size_t local = 0;
    struct rng r;
    rng_init(&r, 3, 1);
    for (size_t k = 0; k < ROUNDS; k++) {
        double x[3 * N];
        int32_t z[N];
        bool marked[N];
        draw(&r, x, z);
        for (size_t i = 0; i < N; i++)
            marked[i] = rng_uniform(&r) < (k % 2 ? 0.5 : 0.2);
        local += scatter_is_local(&columns, &(struct gp_rows){N, x, z}, marked);
    }
    ck_assert_msg(local < ROUNDS / 5, "%zu of %d", local, ROUNDS);
}
END_TEST

START_TEST(marks_in_a_region)
{
    size_t local = 0;
    struct rng r;
    rng_init(&r, 4, 1);
    for (size_t k = 0; k < ROUNDS; k++) {
        double x[3 * N];
        int32_t z[N];
        bool marked[N];
        draw(&r, x, z);
        for (size_t i = 0; i < N; i++)
            marked[i] = k % 2 ? x[3 * i] > 0.6 : z[i] == 2;
        local += scatter_is_local(&columns, &(struct gp_rows){N, x, z}, marked);
    }
    ck_assert_msg(local > ROUNDS * 9 / 10, "%zu of %d", local, ROUNDS);
}
END_TEST

/* Nothing marked, all marked, few rows: not local. */
/* Two clusters, one of 36 rows and one of four: marks in the second one have no other row near,
 * marks anywhere have. */
START_TEST(marks_amid_others)
{
    size_t amid[2] = {0};
    struct rng r;
    rng_init(&r, 5, 1);
    for (size_t k = 0; k < ROUNDS; k++) {
        double x[3 * N];
        int32_t z[N] = {0};
        bool marked[N] = {0};
        for (size_t i = 0; i < 3 * N; i++)
            x[i] = i / 3 < 36 ? 0.3 * rng_uniform(&r) : 0.7 + 0.3 * rng_uniform(&r);
        for (size_t i = 0; i < 4; i++)
            marked[k % 2 ? 36 + i : rng_below(&r, N)] = true;
        amid[k % 2] += scatter_is_amid(&columns, &(struct gp_rows){N, x, z}, marked);
    }
    ck_assert_uint_eq(amid[1], 0);
    ck_assert_msg(amid[0] > ROUNDS * 4 / 10, "%zu of %d", amid[0], ROUNDS / 2);
}
END_TEST

START_TEST(edges)
{
    double x[3 * N] = {0};
    int32_t z[N] = {0};
    bool marked[N] = {0};
    for (size_t n = 0; n <= N; n++) {
        ck_assert(!scatter_is_local(&columns, &(struct gp_rows){n, x, z}, marked));
        ck_assert(!scatter_is_amid(&columns, &(struct gp_rows){n, x, z}, marked));
    }
    for (size_t n = 0; n < N; n++)
        marked[n] = true;
    ck_assert(!scatter_is_local(&columns, &(struct gp_rows){N, x, z}, marked));
    ck_assert(!scatter_is_amid(&columns, &(struct gp_rows){N, x, z}, marked));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("scatter");
    TCase *t = tcase_create("marks");
    tcase_add_test(t, marks_anywhere);
    tcase_add_test(t, marks_in_a_region);
    tcase_add_test(t, marks_amid_others);
    tcase_add_test(t, edges);
    suite_add_tcase(s, t);
    return s;
}
