/* The stored order as it is read from the JSON of a sweep and its trials. */
#include "search/stop_replay.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static const char sweep_text[] =
    "{\"seed\":\"7\",\"metrics\":[{\"name\":\"a\",\"goal\":\"minimize\"}],\"early_stopping\":"
    "{\"rungs\":[{\"step\":2},{\"step\":6},{\"step\":9}]},\"document\":{\"early_stopping\":"
    "{\"method\":\"asha\",\"metric\":\"a\",\"min_steps\":2,\"max_steps\":9,\"eta\":3,\"mode\":"
    "\"pause\",\"late\":false,\"strict\":false}}}";

/* Trial 0 has an infinite value, which is better than the NaN of trial 1; trial 2 is the best of
 * three and goes on. Trial 0 is cancelled, tried again, and completes where it stands. */
static const char items_text[] =
    "[{\"number\":0,\"state\":\"completed\",\"finish_seq\":7,\"retries\":[{\"state\":"
    "\"cancelled\",\"finish_seq\":4,\"retry_seq\":5}],\"rungs\":[{\"rung\":0,\"step\":2,\"values\":"
    "[\"Infinity\"],\"rank\":1,\"of\":1,\"decision\":\"pause\",\"reason\":\"rank 1 of 1 at step 2, "
    "where the best 0 go on\",\"seq\":1,\"promoted_seq\":null,\"feasible\":true},{\"rung\":2,"
    "\"step\":9,\"values\":[3],\"rank\":1,\"of\":1,\"decision\":\"go_on\",\"reason\":"
    "\"rank 1 of 1: it completed\",\"seq\":6,\"promoted_seq\":null,\"feasible\":true}]},"
    "{\"number\":1,\"state\":\"paused\",\"finish_seq\":null,\"rungs\":[{\"rung\":0,\"step\":2,"
    "\"values\":[null],\"rank\":2,\"of\":2,\"decision\":\"pause\",\"reason\":\"rank 2 of 2 at step "
    "2, where the best 0 go on\",\"seq\":2,\"promoted_seq\":null,\"feasible\":true}]},"
    "{\"number\":2,\"state\":\"running\",\"finish_seq\":null,\"rungs\":[{\"rung\":0,\"step\":2,"
    "\"values\":[5],\"rank\":1,\"of\":3,\"decision\":\"go_on\",\"reason\":\"rank 1 of 3 at step 2, "
    "where the best 1 go on\",\"seq\":3,\"promoted_seq\":null,\"feasible\":true}]}]";

static json_t *rung_of(json_t *items, size_t trial, size_t rung)
{
    return json_array_get(json_object_get(json_array_get(items, trial), "rungs"), rung);
}

static size_t count_same(const json_t *sweep, const json_t *items, size_t *ret_total)
{
    AS_AUTO(stop_replay_freep) struct stop_replay *r = NULL;
    struct as_err err = {0};
    struct decision_step step;
    size_t n = 0;
    ck_ok(stop_replay_create(sweep, items, &r, &err), err);
    *ret_total = decision_replay_total(stop_replay_decisions(r));
    while (decision_replay_next(stop_replay_decisions(r), &step, &err) == AS_OK)
        n += step.is_same;
    return n;
}

START_TEST(test_an_order_is_read)
{
    JSON_AUTO sweep = json_plain(sweep_text);
    JSON_AUTO items = json_plain(items_text);
    size_t total = 0;
    ck_assert_uint_eq(count_same(sweep, items, &total), 4);
    ck_assert_uint_eq(total, 4);
    /* not the trial's last event: it went on to wait */
    json_object_set_new(json_array_get(items, 0), "state", json_string("failed"));
    ck_assert_uint_eq(count_same(sweep, items, &total), 3);
}
END_TEST

START_TEST(test_a_sweep_without_early_stopping)
{
    JSON_AUTO sweep = json_plain("{\"document\":{}}");
    JSON_AUTO items = json_plain("[]");
    struct stop_replay *r = NULL;
    struct as_err err = {0};
    ck_ok(stop_replay_create(sweep, items, &r, &err), err);
    ck_assert_ptr_null(r);
}
END_TEST

static void expect_refused(const json_t *sweep, const json_t *items, const char *pointer)
{
    struct stop_replay *r = NULL;
    struct as_err err = {0};
    ck_assert_int_eq(stop_replay_create(sweep, items, &r, &err), AS_E_INVAL);
    ck_assert_str_eq(err.pointer, pointer);
    ck_assert_ptr_null(r);
}

START_TEST(test_refused)
{
    static const char *const fields[] = {"rung", "step", "values", "rank",
                                         "of",   "seq",  "reason", "decision"};
    JSON_AUTO sweep = json_plain(sweep_text);
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
        JSON_AUTO items = json_plain(items_text);
        json_object_del(rung_of(items, 1, 0), fields[i]);
        expect_refused(sweep, items, "/items/1/rungs/0");
    }
    JSON_AUTO items = json_plain(items_text);
    json_object_set_new(rung_of(items, 0, 1), "rung", json_integer(3));
    expect_refused(sweep, items, "/items/0/rungs/1");
    json_object_set_new(json_array_get(items, 0), "number", json_integer(3));
    expect_refused(sweep, items, "/items/0");
    json_object_del(sweep, "seed");
    expect_refused(sweep, items, "/sweep/seed");
    json_object_del(sweep, "metrics");
    expect_refused(sweep, items, "/sweep/metrics");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_stop_replay");
    TCase *t = tcase_create("reading");
    tcase_add_test(t, test_an_order_is_read);
    tcase_add_test(t, test_a_sweep_without_early_stopping);
    tcase_add_test(t, test_refused);
    suite_add_tcase(s, t);
    return s;
}
