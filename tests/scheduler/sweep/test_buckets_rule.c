/* The column of `ensemble.by` becomes that of the trial's document. */
#include "base/mem.h"
#include "scheduler/sweep/buckets_rule.h"
#include "tests/scheduler/sweep/documents.h"
#include "tests/support/check_main.h"

#define MOVED                                                                                      \
    "{\"ensemble\":{\"method\":\"bucketing\"},\"trial\":{\"train\":{\"buckets\":\"region\"}}}"

START_TEST(moves)
{
    document_becomes(
        buckets_rule_apply,
        "{\"ensemble\":{\"method\":\"bucketing\",\"by\":\"region\"},\"trial\":{\"train\":{}}}",
        MOVED);
    document_becomes(
        buckets_rule_apply,
        "{\"ensemble\":{\"method\":\"bucketing\",\"by\":\"region\"},\"trial\":{\"train\":{"
        "\"buckets\":\"region\"}}}",
        MOVED);
    static const char *const others[] = {MOVED,
                                         "{\"ensemble\":true}",
                                         "{\"ensemble\":{\"size\":2}}",
                                         "{\"ensemble\":7,\"trial\":7}",
                                         "[]",
                                         "{}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(others); i++)
        document_becomes(buckets_rule_apply, others[i], others[i]);
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
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        document_is_refused(buckets_rule_apply, cases[i][0], "/ensemble/by", cases[i][1]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("buckets_rule");
    TCase *t = tcase_create("buckets_rule");
    tcase_add_test(t, moves);
    tcase_add_test(t, refuses);
    suite_add_tcase(s, t);
    return s;
}
