/* Samples of what an attempt uses: their number is bounded, and nothing is lost of the means. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "trial-runner/collect/usage.h"

static struct usage u;

static void begin(void)
{
    memset(&u, 0, sizeof u);
}

static void add(int64_t at_ms, int64_t for_ms, double cpu, double memory)
{
    const struct usage_reading r = {{cpu, memory, -1, -1}};
    usage_add(&u, at_ms, for_ms, &r);
}

START_TEST(readings_of_one_sample)
{
    add(400, 400, 1, 100);
    add(1000, 600, 2, 50); /* its middle is in the first second */
    ck_assert_int_eq((int64_t)u.n, 1);
    ck_assert_double_eq_tol(u.samples[0].v[USAGE_CPU], 1.6, 1e-12);
    ck_assert_double_eq(u.samples[0].v[USAGE_MEMORY], 100);
    ck_assert_double_eq(u.samples[0].ms[USAGE_GPU], 0);
}
END_TEST

START_TEST(full_samples_become_half_as_many)
{
    double sum = 0;
    int64_t n = 1001;
    for (int64_t i = 0; i < n; i++) { /* a reading each second */
        add((i + 1) * 1000, 1000, i % 10, (double)i);
        sum += (double)(i % 10);
    }
    ck_assert_int_eq(u.every_ms, 8000); /* 1001 s in at most 240 samples */
    ck_assert_int_eq((int64_t)u.n, 126);
    double got = 0, ms = 0, most = 0;
    for (size_t i = 0; i < u.n; i++) {
        got += u.samples[i].v[USAGE_CPU] * u.samples[i].ms[USAGE_CPU] / 1000;
        ms += u.samples[i].ms[USAGE_CPU];
        most = fmax(most, u.samples[i].v[USAGE_MEMORY]);
        ck_assert_double_eq(u.samples[i].v[USAGE_MEMORY], i + 1 < u.n ? (double)i * 8 + 7 : 1000);
    }
    ck_assert_double_eq_tol(got, sum, 1e-6);
    ck_assert_double_eq(ms, 1000.0 * (double)n);
    ck_assert_double_eq(most, 1000);
}
END_TEST

START_TEST(a_late_reading_and_one_of_no_time)
{
    add(500, 0, 1, 1);
    add(100, 900, 1, 1); /* began before the process did */
    ck_assert_int_eq((int64_t)u.n, 0);
    add(86400000, 1000, 3, 7); /* nothing was measured for a day: most samples stay empty */
    ck_assert_int_eq(u.every_ms, 512000);
    ck_assert_int_eq((int64_t)u.n, 169);
    JSON_AUTO body = usage_json(&u);
    const json_t *cpu = json_object_get(body, "cpu");
    ck_assert_int_eq((int64_t)json_array_size(cpu), 169);
    ck_assert(json_is_null(json_array_get(cpu, 0)));
    ck_assert_double_eq(json_real_value(json_array_get(cpu, 168)), 3);
}
END_TEST

START_TEST(as_json)
{
    add(1000, 1000, 0.12345, 4096);
    add(3000, 1000, 1, -1);
    JSON_AUTO body = usage_json(&u);
    AS_AUTO(as_freep) char *text = json_format_ordered(body);
    ck_assert_str_eq(text,
                     "{\"every_ms\":1000,\"cpu\":[0.123,null,1.0],\"memory_bytes\":[4096,null,"
                     "null]}");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("usage");
    TCase *t = tcase_create("usage");
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_test(t, readings_of_one_sample);
    tcase_add_test(t, full_samples_become_half_as_many);
    tcase_add_test(t, a_late_reading_and_one_of_no_time);
    tcase_add_test(t, as_json);
    suite_add_tcase(s, t);
    return s;
}
