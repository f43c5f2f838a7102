/* New sweeps split by classes; documents that are stored already, or that choose, are not
 * changed. */
#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/split_rule.h"
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
    ck_ok(split_rule_choose(doc, &got, &err), err);
    ck_assert(json_equal(got, want));
    ck_assert(json_equal(doc, before));
}

START_TEST(chooses)
{
    becomes("{\"trial\":{\"train\":{\"epochs\":1}}}",
            "{\"trial\":{\"train\":{\"epochs\":1,\"validation\":{\"split\":\"stratified\"}}}}");
    becomes("{\"trial\":{\"train\":{\"validation\":{\"seed\":4}}}}",
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
        becomes(docs[i], docs[i]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("split_rule");
    TCase *t = tcase_create("split_rule");
    tcase_add_test(t, chooses);
    tcase_add_test(t, leaves_alone);
    suite_add_tcase(s, t);
    return s;
}
