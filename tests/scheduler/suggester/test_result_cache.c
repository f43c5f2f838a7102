#include "scheduler/suggester/result_cache.h"

#include "tests/support/check_main.h"

START_TEST(notes_are_computed_once)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    struct notes x = {0};
    const char *text = NULL;
    bool mine = false, stale = false;
    notes_init(&x);
    ck_ok(notes_get(&x, &a, 5, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text);
    notes_put(&x, 5, 0, 1, "one");
    ck_ok(notes_get(&x, &a, 5, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(!mine && !stale);
    ck_assert_str_eq(text, "one");
    ck_ok(notes_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine && !stale);
    ck_ok(notes_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(!mine && stale); /* somebody computes it: the older one meanwhile */
    ck_assert_str_eq(text, "one");
    ck_ok(notes_get(&x, &a, 5, 1, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text); /* another subject */
    notes_put(&x, 5, 1, 2, "other");
    ck_ok(notes_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(!mine);
    ck_assert_str_eq(text, "one");
    notes_put(&x, 5, 0, 2, NULL); /* it could not */
    ck_ok(notes_get(&x, &a, 5, 0, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine);
    for (int64_t key = 100; key < 200; key++) {
        ck_ok(notes_get(&x, &a, key, 0, 1, &text, &mine, &stale, &err), err);
        notes_put(&x, key, 0, 1, "x");
    }
    ck_ok(notes_get(&x, &a, 5, 1, 2, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text); /* it was in the way */
    ck_ok(notes_get(&x, &a, 199, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(!mine);
    notes_done(&x);
}
END_TEST

/* A put that finds no memory leaves what there was; a get says so. */
START_TEST(runs_out_of_memory_cleanly)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err = {0};
    struct notes x = {0};
    const char *text = NULL;
    bool mine = false, stale = false;
    notes_init(&x);
    as_mem_fail_nth(1);
    notes_put(&x, 1, 0, 1, "lost");
    as_mem_fail_nth(0);
    ck_ok(notes_get(&x, &a, 1, 0, 1, &text, &mine, &stale, &err), err);
    ck_assert(mine && !text);
    notes_put(&x, 1, 0, 1, "kept");
    as_mem_fail_nth(1);
    ck_fails(notes_get(&x, &a, 1, 0, 1, &text, &mine, &stale, &err), AS_E_NOMEM, err, "memory");
    as_mem_fail_nth(0);
    notes_done(&x);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("scheduler/notes");
    TCase *t = tcase_create("notes");
    tcase_add_test(t, notes_are_computed_once);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
