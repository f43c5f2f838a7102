/* The column of `ensemble.by` becomes that of the trial's document. */
#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/buckets_rule.h"
#include "tests/support/check_main.h"

static struct as_err err;

static json_t *parse(const char *text)
{
    json_t *j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return j;
}

/* What becomes of a document; the document itself must stay as it is. */
static void becomes(const char *from, const char *expected)
{
    JSON_AUTO doc = parse(from);
    JSON_AUTO before = json_deep_copy(doc);
    JSON_AUTO want = parse(expected);
    JSON_AUTO got = NULL;
    ck_ok(buckets_rule_apply(doc, &got, &err), err);
    ck_assert(json_equal(got, want));
    ck_assert(json_equal(doc, before));
}

#define MOVED                                                                                      \
    "{\"ensemble\":{\"method\":\"bucketing\"},\"trial\":{\"train\":{\"buckets\":\"region\"}}}"

START_TEST(moves)
{
    becomes("{\"ensemble\":{\"method\":\"bucketing\",\"by\":\"region\"},\"trial\":{\"train\":{}}}",
            MOVED);
    becomes("{\"ensemble\":{\"method\":\"bucketing\",\"by\":\"region\"},\"trial\":{\"train\":{"
            "\"buckets\":\"region\"}}}",
            MOVED);
    static const char *const others[] = {MOVED,
                                         "{\"ensemble\":true}",
                                         "{\"ensemble\":{\"size\":2}}",
                                         "{\"ensemble\":7,\"trial\":7}",
                                         "[]",
                                         "{}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(others); i++)
        becomes(others[i], others[i]);
}
END_TEST

START_TEST(refuses)
{
    static const char *const cases[][2] = {
        {"{\"ensemble\":{\"method\":\"bucketing\",\"by\":3},\"trial\":{\"train\":{}}}",
         "expected the name of a column"},
        {"{\"ensemble\":{\"by\":\"c\"},\"trial\":{\"train\":{}}}",
         "found with method greedy, expected bucketing"},
        {"{\"ensemble\":{\"method\":\"stacking\",\"by\":\"c\"},\"trial\":{\"train\":{}}}",
         "found with method stacking"},
        {"{\"ensemble\":{\"method\":\"bucketing\",\"by\":\"c\"},\"trial\":{\"command\":[\"a\"]}}",
         "a program leaves buckets.json"},
        {"{\"ensemble\":{\"method\":\"bucketing\",\"by\":\"c\"},\"trial\":{\"train\":{\"buckets\":"
         "\"d\"}}}",
         "found 'c', expected the column of /trial/train/buckets"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO doc = parse(cases[i][0]);
        JSON_AUTO got = NULL;
        ck_fails(buckets_rule_apply(doc, &got, &err), AS_E_INVAL, err, cases[i][1]);
        ck_assert_str_eq(err.pointer, "/ensemble/by");
        ck_assert_ptr_null(got);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("buckets_rule");
    TCase *t = tcase_create("buckets_rule");
    tcase_add_test(t, moves);
    tcase_add_test(t, refuses);
    suite_add_tcase(s, t);
    return s;
}
