#include "scheduler/suggester/result_cache.h"

#include "tests/support/check_main.h"

static struct result_cache x;
static struct arena a;
static struct as_err err;
static int64_t now_ns;

/* What a request at this time gets. */
struct got {
    const char *text;
    bool is_mine, is_stale;
};

static struct result_wanted about(int64_t key, size_t subject, int64_t seq)
{
    return (struct result_wanted){.key = key, .subject = subject, .finish_seq = seq};
}

static struct got get_at(const struct result_wanted *w, int64_t at_ns)
{
    struct got g = {0};
    ck_ok(result_cache_get(&x, &a, w, at_ns, &g.text, &g.is_mine, &g.is_stale, &err), err);
    return g;
}

static struct got get(int64_t key, size_t subject, int64_t seq)
{
    const struct result_wanted w = about(key, subject, seq);
    return get_at(&w, ++now_ns);
}

static void put(int64_t key, size_t subject, int64_t seq, const char *text)
{
    const struct result_wanted w = about(key, subject, seq);
    result_cache_put(&x, &w, seq, ++now_ns, text);
}

static void begin(void)
{
    result_cache_init(&x);
    now_ns = 0;
}

static void end(void)
{
    result_cache_done(&x);
    arena_done(&a);
}

START_TEST(results_are_computed_once)
{
    struct got g = get(5, 0, 1);
    ck_assert(g.is_mine && !g.text);
    put(5, 0, 1, "one");
    g = get(5, 0, 1);
    ck_assert(!g.is_mine && !g.is_stale);
    ck_assert_str_eq(g.text, "one");
    g = get(5, 0, 2);
    ck_assert(g.is_mine && !g.is_stale);
    g = get(5, 0, 2);
    ck_assert(!g.is_mine && g.is_stale); /* another request computes it: the older text meanwhile */
    ck_assert_str_eq(g.text, "one");
    g = get(5, 1, 2);
    ck_assert(g.is_mine && !g.text); /* another subject */
    put(5, 1, 2, "other");
    g = get(5, 0, 2);
    ck_assert(!g.is_mine);
    ck_assert_str_eq(g.text, "one");
    put(5, 0, 2, NULL); /* it could not */
    ck_assert(get(5, 0, 2).is_mine);
    for (int64_t key = 100; key < 200; key++) {
        (void)get(key, 0, 1);
        put(key, 0, 1, "x");
    }
    g = get(5, 1, 2);
    ck_assert(g.is_mine && !g.text); /* it was evicted */
    ck_assert(!get(199, 0, 1).is_mine);
}
END_TEST

/* Computed from 1,000 to 1,020, and put then: older results are good enough for 50 times as long,
 * if the request says so, and not longer than it says. */
START_TEST(an_older_text_will_do_for_a_while)
{
    struct result_wanted w = about(5, 0, 1);
    ck_assert(get_at(&w, 1000).is_mine);
    result_cache_put(&x, &w, 1, 1020, "one");
    w.finish_seq = 2;
    w.max_age_ns = 100000;
    for (int64_t now = 1021; now < 1020 + 20 * RESULT_CACHE_REST; now += 333) {
        struct got g = get_at(&w, now);
        ck_assert(!g.is_mine && g.is_stale);
        ck_assert_str_eq(g.text, "one");
    }
    w.max_age_ns = 500;
    ck_assert(!get_at(&w, 1519).is_mine);
    ck_assert(get_at(&w, 1520).is_mine);
    result_cache_put(&x, &w, 2, 1530, "two");
    w.finish_seq = 3;
    w.max_age_ns = 100000;
    ck_assert_str_eq(get_at(&w, 1530 + 10 * RESULT_CACHE_REST - 1).text, "two");
    ck_assert(get_at(&w, 1530 + 10 * RESULT_CACHE_REST).is_mine);
    w.max_age_ns = 0;
    result_cache_put(&x, &w, 3, 2040, "three");
    w.finish_seq = 4;
    ck_assert(get_at(&w, 2040).is_mine); /* no older one will do */
}
END_TEST

/* A put without memory leaves the old text; a get without memory reports it. */
START_TEST(runs_out_of_memory_cleanly)
{
    const struct result_wanted w = about(1, 0, 1);
    struct got g = {0};
    as_mem_fail_nth(1);
    put(1, 0, 1, "lost");
    as_mem_fail_nth(0);
    g = get(1, 0, 1);
    ck_assert(g.is_mine && !g.text);
    put(1, 0, 1, "kept");
    as_mem_fail_nth(1);
    ck_fails(result_cache_get(&x, &a, &w, 1, &g.text, &g.is_mine, &g.is_stale, &err), AS_E_NOMEM,
             err, "memory");
    as_mem_fail_nth(0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("scheduler/result_cache");
    TCase *t = tcase_create("result_cache");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, results_are_computed_once);
    tcase_add_test(t, an_older_text_will_do_for_a_while);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
