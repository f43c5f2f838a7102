/* Which names a metric may have, and what becomes of others. */
#include <string.h>

#include "base/mem.h"
#include "base/metric_name.h"
#include "tests/support/check_main.h"

START_TEST(names_of_the_field)
{
    static const char *const good[] = {
        "loss",  "_x", "val/acc", "train.loss", "val/acc/dataloader_idx_0", "recall@10",
        "a",     "A",  "x-y",     "val/",       "metrics/mAP50-95(B)",      "eval_ndcg@10",
        "a//b.."};
    static const char *const bad[] = {"",        "1st",   "/val", "@k",   ".x",   "-x",  "(B)",
                                      "val acc", "a,b",   "a=b",  "a:b",  "a\"b", "a'b", "a%b",
                                      "a\nb",    "größe", "a\\b", "a[0]", "a~b",  "a?b", "a#b"};
    char longest[METRIC_NAME_MAX + 2];
    for (size_t i = 0; i < AS_ARRAY_LEN(good); i++)
        ck_assert_msg(metric_name_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
        ck_assert_msg(!metric_name_valid(bad[i]), "%s", bad[i]);
    memset(longest, '/', sizeof longest);
    longest[0] = 'a';
    longest[METRIC_NAME_MAX] = '\0';
    ck_assert(metric_name_valid(longest));
    longest[METRIC_NAME_MAX] = '/';
    longest[METRIC_NAME_MAX + 1] = '\0';
    ck_assert(!metric_name_valid(longest));
}
END_TEST

START_TEST(other_names_become_some)
{
    static const char *const cases[][2] = {
        {"val/acc", "val/acc"}, {"Loss train", "Loss_train"}, {"", "_"},    {"1st", "_1st"},
        {"/val", "_/val"},      {"a:b=c", "a_b_c"},           {" x", "_x"}, {"größe", "gr____e"}};
    char got[METRIC_NAME_MAX + 1], many[200];
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        metric_name_from(cases[i][0], got);
        ck_assert_str_eq(got, cases[i][1]);
        ck_assert(metric_name_valid(got));
    }
    memset(many, '9', sizeof many);
    many[sizeof many - 1] = '\0';
    metric_name_from(many, got);
    ck_assert_uint_eq(strlen(got), METRIC_NAME_MAX);
    ck_assert(metric_name_valid(got));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("metric_name");
    TCase *t = tcase_create("metric_name");
    tcase_add_test(t, names_of_the_field);
    tcase_add_test(t, other_names_become_some);
    suite_add_tcase(s, t);
    return s;
}
