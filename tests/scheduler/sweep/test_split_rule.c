/* New sweeps split by classes; documents that are stored already, or that choose, are not
 * changed. */
#include "base/mem.h"
#include "scheduler/sweep/split_rule.h"
#include "tests/scheduler/sweep/documents.h"
#include "tests/support/check_main.h"

START_TEST(chooses)
{
    document_becomes(
        split_rule_choose, "{\"trial\":{\"train\":{\"epochs\":1}}}",
        "{\"trial\":{\"train\":{\"epochs\":1,\"validation\":{\"split\":\"stratified\"}}}}");
    document_becomes(
        split_rule_choose, "{\"trial\":{\"train\":{\"validation\":{\"seed\":4}}}}",
        "{\"trial\":{\"train\":{\"validation\":{\"seed\":4,\"split\":\"stratified\"}}}}");
}
END_TEST

START_TEST(leaves_alone)
{
    static const char *const docs[] = {
        "{\"trial\":{\"train\":{\"validation\":{\"split\":\"random\"}}}}",
        "{\"trial\":{\"train\":{\"validation\":{\"split\":\"${s}\"}}}}",
        "{\"trial\":{\"train\":{\"validation\":{\"column\":\"part\"}}}}",
        "{\"trial\":{\"train\":{\"validation\":{\"order\":\"day\"}}}}",
        "{\"trial\":{\"train\":{\"validation\":{\"groups\":\"who\"}}}}",
        "{\"trial\":{\"train\":{\"validation\":3}}}",
        "{\"trial\":{\"train\":[]}}",
        "{\"trial\":{\"command\":[\"a\"]}}",
        "{\"trial\":7}",
        "{}",
        "[]",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(docs); i++)
        document_becomes(split_rule_choose, docs[i], docs[i]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("split_rule");
    TCase *t = tcase_create("split_rule");
    tcase_add_test(t, chooses);
    tcase_add_test(t, leaves_alone);
    suite_add_tcase(s, t);
    return s;
}
