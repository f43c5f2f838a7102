/* The order of a rung against plain counting. */
#include "search/stopping/standings.h"

#include <math.h>

#include "base/rng.h"
#include "tests/support/check_main.h"

#define ROWS 300
#define ROWS_OF_ONE_METRIC 2000 /* several blocks of the list */

/* Costs with many ties, some infeasible and some NaN. */
static struct standing row_at_random(struct rng *r, uint64_t number, size_t n_metrics)
{
    struct standing row = {.number = number, .waits = rng_below(r, 2)};
    row.kind = rng_below(r, 10) == 0 ? 2 : rng_below(r, 4) == 0;
    for (size_t m = 0; m < n_metrics; m++)
        row.costs[m] = row.kind == 2 ? NAN : (double)rng_below(r, 20);
    return row;
}

/* Is a better than b, among all rows? */
static bool is_better(const struct standing *all, size_t n, const struct standing *a,
                      const struct standing *b, size_t n_metrics)
{
    size_t of_a = 0, of_b = 0;
    if (n_metrics == 1 || a->kind != b->kind)
        return standing_compare(a, b, n_metrics) < 0;
    for (size_t i = 0; i < n; i++) {
        of_a += all[i].kind == a->kind && standing_compare(&all[i], a, n_metrics) < 0;
        of_b += all[i].kind == b->kind && standing_compare(&all[i], b, n_metrics) < 0;
    }
    return of_a < of_b;
}

static size_t plain_rank(const struct standing *all, size_t n, const struct standing *row,
                         size_t n_metrics)
{
    size_t rank = 1;
    for (size_t i = 0; i < n; i++)
        rank += is_better(all, n, &all[i], row, n_metrics);
    return rank;
}

static void check_best_waiting(const struct standings *s, const struct standing *all, size_t n)
{
    const struct standing *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if (all[i].waits && (!best || is_better(all, n, &all[i], best, s->n_metrics)))
            best = &all[i]; /* the rows are in order of their numbers */
    }
    const struct standing *got = standings_best_waiting(s);
    ck_assert(!best == !got);
    ck_assert(!best || best->number == got->number);
}

START_TEST(test_against_counting)
{
    size_t n_metrics = (size_t)_i;
    size_t n_rows = n_metrics == 1 ? ROWS_OF_ONE_METRIC : ROWS;
    struct standing all[ROWS_OF_ONE_METRIC];
    struct rng r;
    struct standings s = {.n_metrics = n_metrics};
    rng_init(&r, 7, n_metrics);
    for (size_t n = 0; n < n_rows; n++) {
        all[n] = row_at_random(&r, n, n_metrics);
        size_t before = standings_rank(&s, &all[n], false);
        ck_assert_int_eq(standings_reserve(&s, NULL), AS_OK);
        standings_add(&s, &all[n]);
        ck_assert_uint_eq(before, plain_rank(all, n + 1, &all[n], n_metrics));
        size_t other = rng_below(&r, n + 1);
        ck_assert_uint_eq(standings_rank(&s, &all[other], true),
                          plain_rank(all, n + 1, &all[other], n_metrics));
        if (all[other].waits && rng_below(&r, 2)) {
            standings_leave(&s, &all[other]);
            all[other].waits = false;
        }
        check_best_waiting(&s, all, n + 1);
    }
    standings_done(&s);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_standings");
    TCase *t = tcase_create("standings");
    tcase_add_loop_test(t, test_against_counting, 1, 4);
    suite_add_tcase(s, t);
    return s;
}
