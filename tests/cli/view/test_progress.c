#include "cli/view/progress.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/support/check_main.h"

static json_t *sweep(const char *state, int completed, int failed, int running)
{
    json_t *j = json_pack(
        "{s:s, s:s, s:i, s:{s:s, s:s}, s:{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}, s:n, s:s, s:s}", "id",
        "digits", "state", state, "planned_trials", 40, "metric", "name", "val_error", "goal",
        "minimize", "counts", "queued", 1, "running", running, "paused", 0, "completed", completed,
        "pruned", 0, "failed", failed, "cancelled", 0, "total", completed + failed + running + 1,
        "best", "created_at", "1970-01-01T00:00:00Z", "started_at", "1970-01-01T00:00:10Z");
    ck_assert_ptr_nonnull(j);
    return j;
}

static void check_render(const struct progress *p, const struct terminal *terminal,
                         const char *want)
{
    struct str b = {0};
    progress_render(p, terminal, &b);
    ck_assert_str_eq(str_cstr(&b), want);
    str_done(&b);
}

START_TEST(render)
{
    struct progress p = {0};
    const struct terminal terminal = {.tty = true, .width = 80};
    progress_update(&p, sweep("running", 0, 0, 2), 0, 10000);
    check_render(&p, &terminal,
                 "digits  running  --------------------------------------------------  0/40  0 %\n"
                 "  queued 38   running 2   completed 0   failed 0\n"
                 "  best: none yet\n"
                 "  elapsed 0.0 s   left unknown\n");
    json_t *j = sweep("running", 19, 1, 2);
    json_object_set_new(j, "best",
                        json_pack("{s:i, s:f, s:{s:f, s:s}}", "number", 7, "value", 0.0148148,
                                  "params", "lr", 0.0123, "opt", "a\x1b[31m"));
    progress_update(&p, j, 20 * NS_PER_S, 30000);
    check_render(
        &p, &terminal,
        "digits  running  #########################-------------------------  20/40  50 %\n"
        "  queued 18   running 2   completed 19   failed 1\n"
        "  best val_error 0.0148148 (trial 7)  lr=0.0123 opt=a\\x1b[31m\n"
        "  elapsed 20 s   left about 20 s   1 trials/s\n");
    progress_done(&p);
}
END_TEST

START_TEST(narrow)
{
    struct progress p = {0};
    const struct terminal terminal = {.tty = true, .width = 30};
    progress_update(&p, sweep("running", 4, 0, 2), 0, 20000);
    (void)memcpy(p.note, "The server does not answer (for 3.0 s)", 39);
    struct str b = {0};
    progress_render(&p, &terminal, &b);
    const char *line = str_cstr(&b);
    int lines = 0;
    for (const char *end; (end = strchr(line, '\n')); line = end + 1, lines++)
        ck_assert_uint_le((size_t)(end - line), 30);
    ck_assert_int_eq(lines, 5);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "The server does not"));
    str_done(&b);
    progress_done(&p);
}
END_TEST

START_TEST(rate)
{
    struct progress p = {0};
    ck_assert_int_eq(progress_left_ms(&p), 0);
    /* Slow at first, then four trials a second: only the newest samples count. */
    for (int i = 0; i < 10; i++)
        progress_update(&p, sweep("running", i, 0, 2), i * 10 * NS_PER_S, 10000 + i * 10000);
    ck_assert_double_eq_tol(progress_rate(&p), 0.1, 1e-9);
    for (int i = 10; i < 60; i++)
        progress_update(&p, sweep("running", i, 0, 2), 90 * NS_PER_S + (i - 9) * NS_PER_S / 4,
                        100000);
    ck_assert_double_eq_tol(progress_rate(&p), 4, 1e-9);
    ck_assert_int_eq(progress_left_ms(&p), 0); /* more ended than planned: nothing left */
    progress_update(&p, sweep("running", 30, 0, 2), 200 * NS_PER_S, 100000);
    ck_assert_int_ge(progress_left_ms(&p), -1);
    progress_update(&p, sweep("paused", 30, 0, 0), 201 * NS_PER_S, 100000);
    ck_assert_int_eq(progress_left_ms(&p), -1);
    progress_update(&p, sweep("cancelled", 30, 0, 0), 202 * NS_PER_S, 100000);
    ck_assert(progress_ended(&p));
    progress_done(&p);
}
END_TEST

START_TEST(line_and_json)
{
    struct progress p = {0};
    struct str b = {0};
    progress_update(&p, sweep("running", 10, 0, 2), 0, 20000);
    progress_line(&p, &b);
    ck_assert_str_eq(str_cstr(&b),
                     "digits running 10/40  queued 28 running 2 completed 10 failed 0  "
                     "elapsed 10 s, left about 30 s, 1 trials/s  best: none yet\n");
    JSON_AUTO j = progress_json(&p);
    ck_assert_ptr_nonnull(j);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "left_ms")), 30000);
    ck_assert(json_is_null(json_object_get(j, "best")));
    str_done(&b);
    progress_done(&p);
}
END_TEST

TEST_SUITE()
{
    terminal_setup();
    Suite *s = suite_create("progress");
    TCase *t = tcase_create("progress");
    tcase_add_test(t, render);
    tcase_add_test(t, narrow);
    tcase_add_test(t, rate);
    tcase_add_test(t, line_and_json);
    suite_add_tcase(s, t);
    return s;
}
