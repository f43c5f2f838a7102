#include "scheduler/suggester/result_cache.h"

#include "tests/support/check_main.h"

START_TEST(results_are_computed_once)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    struct result_cache x = {0};
    const char *text = NULL;
    bool mine = false, stale = false;
    result_cache_init(&x);
    ck_ok(result_cache_get(&x, &a, 5, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text);
    result_cache_put(&x, 5, 0, 1, "one");
    ck_ok(result_cache_get(&x, &a, 5, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(!mine && !stale);
    ck_assert_str_eq(text, "one");
    ck_ok(result_cache_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine && !stale);
    ck_ok(result_cache_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(!mine && stale); /* another request computes it: the older text meanwhile */
    ck_assert_str_eq(text, "one");
    ck_ok(result_cache_get(&x, &a, 5, 1, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text); /* another subject */
    result_cache_put(&x, 5, 1, 2, "other");
    ck_ok(result_cache_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(!mine);
    ck_assert_str_eq(text, "one");
    result_cache_put(&x, 5, 0, 2, NULL); /* it could not */
    ck_ok(result_cache_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine);
    for (int64_t key = 100; key < 200; key++) {
        ck_ok(result_cache_get(&x, &a, key, 0, 1, &text, &mine, &stale, &err), err);
        result_cache_put(&x, key, 0, 1, "x");
    }
    ck_ok(result_cache_get(&x, &a, 5, 1, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text); /* it was evicted */
    ck_ok(result_cache_get(&x, &a, 199, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(!mine);
    result_cache_done(&x);
}
END_TEST

/* A put without memory leaves the old text; a get without memory reports it. */
START_TEST(runs_out_of_memory_cleanly)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    struct result_cache x = {0};
    const char *text = NULL;
    bool mine = false, stale = false;
    result_cache_init(&x);
    as_mem_fail_nth(1);
    result_cache_put(&x, 1, 0, 1, "lost");
    as_mem_fail_nth(0);
    ck_ok(result_cache_get(&x, &a, 1, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text);
    result_cache_put(&x, 1, 0, 1, "kept");
    as_mem_fail_nth(1);
    ck_fails(result_cache_get(&x, &a, 1, 0, 1, &text, &mine, &stale, &err), AS_E_NOMEM, err,
             "memory");
    as_mem_fail_nth(0);
    result_cache_done(&x);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("scheduler/result_cache");
    TCase *t = tcase_create("result_cache");
    tcase_add_test(t, results_are_computed_once);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
