/* A range of ranks becomes a parameter of the search. */
#include "base/mem.h"
#include "scheduler/sweep/ranks_rule.h"
#include "tests/scheduler/sweep/documents.h"
#include "tests/support/check_main.h"

#define BECAME                                                                                     \
    "{\"parameters\":{\"ranks\":{\"type\":\"int\",\"min\":1,\"max\":4}},"                          \
    "\"resources\":{\"ranks\":\"${ranks}\"}}"

START_TEST(becomes_a_parameter)
{
    document_becomes(ranks_rule_apply, "{\"resources\":{\"ranks\":{\"min\":1,\"max\":4}}}", BECAME);
    document_becomes(
        ranks_rule_apply,
        "{\"parameters\":{\"lr\":1},\"resources\":{\"gpus\":1,\"ranks\":{\"min\":2,\"max\":64,"
        "\"scale\":\"log\"}}}",
        "{\"parameters\":{\"lr\":1,\"ranks\":{\"type\":\"int\",\"min\":2,\"max\":64,\"scale\":"
        "\"log\"}},\"resources\":{\"gpus\":1,\"ranks\":\"${ranks}\"}}");
    static const char *const others[] = {BECAME,
                                         "{\"resources\":{\"ranks\":3}}",
                                         "{\"resources\":{\"ranks\":[1]}}",
                                         "{\"resources\":7}",
                                         "[]",
                                         "{}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(others); i++)
        document_becomes(ranks_rule_apply, others[i], others[i]);
}
END_TEST

START_TEST(refuses)
{
    static const char *const cases[][3] = {
        {"{\"resources\":{\"ranks\":{\"max\":4}}}", "/resources/ranks/min", "missing"},
        {"{\"resources\":{\"ranks\":{\"min\":0,\"max\":4}}}", "/resources/ranks/min", "from 1"},
        {"{\"resources\":{\"ranks\":{\"min\":1,\"max\":4097}}}", "/resources/ranks/max", "to 4096"},
        {"{\"resources\":{\"ranks\":{\"min\":1,\"max\":\"4\"}}}", "/resources/ranks/max",
         "to 4096"},
        {"{\"resources\":{\"ranks\":{\"min\":3,\"max\":2}}}", "/resources/ranks",
         "found min 3 above max 2"},
        {"{\"resources\":{\"ranks\":{\"min\":1,\"max\":2,\"values\":[1]}}}",
         "/resources/ranks/values", "is not a known field"},
        {"{\"parameters\":{\"ranks\":{}},\"resources\":{\"ranks\":{\"min\":1,\"max\":2}}}",
         "/resources/ranks", "and a parameter 'ranks'"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        document_is_refused(ranks_rule_apply, cases[i][0], cases[i][1], cases[i][2]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("ranks_rule");
    TCase *t = tcase_create("ranks_rule");
    tcase_add_test(t, becomes_a_parameter);
    tcase_add_test(t, refuses);
    suite_add_tcase(s, t);
    return s;
}
