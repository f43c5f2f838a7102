/* Which names a parameter may have, and what follows from them. */
#include <string.h>

#include "base/mem.h"
#include "base/param_name.h"
#include "tests/support/check_main.h"

START_TEST(names_that_people_write)
{
    static const char *const good[] = {"a",       "_",         "lr",       "Layer-2.width_x",
                                       "a9",      "opt/lr",    "a//b..",   "learning rate",
                                       "f(x)",    "layers[0]", "recall@k", "β",
                                       "größe 1", "学习 率",   "é",        "a\xf0\x9f\x92\xa5"};
    static const char *const bad[] = {"",
                                      "9a",
                                      "-a",
                                      ".a",
                                      "/a",
                                      " a",
                                      "a ",
                                      "a  b",
                                      "(a",
                                      "[a",
                                      "@a",
                                      "a\n",
                                      "a\tb",
                                      "a=b",
                                      "a,b",
                                      "a:b",
                                      "a;b",
                                      "a?",
                                      "a!",
                                      "a{b",
                                      "a}b",
                                      "a$b",
                                      "a`b",
                                      "a'b",
                                      "a\"b",
                                      "a\\b",
                                      "a|b",
                                      "a<b",
                                      "a>b",
                                      "a&b",
                                      "a#b",
                                      "a%b",
                                      "a+b",
                                      "a*b",
                                      "a^b",
                                      "a~b",
                                      "\x80",
                                      "a\xc3",
                                      "a\x7f",
                                      "a\xc2\x80",
                                      "a\xc2\xa0",
                                      "a\xe2\x80\x8b",
                                      "\xe3\x80\x80",
                                      "a\xef\xbb\xbf",
                                      "a\xed\xa0\x80",
                                      "a\xf3\xa0\x81\x81"};
    for (size_t k = 0; k < AS_ARRAY_LEN(good); k++)
        ck_assert_msg(param_name_valid(good[k]), "%s", good[k]);
    for (size_t k = 0; k < AS_ARRAY_LEN(bad); k++)
        ck_assert_msg(!param_name_valid(bad[k]), "%s", bad[k]);
}
END_TEST

/* Characters count, not bytes. */
START_TEST(lengths)
{
    char name[PARAM_NAME_BYTES + 5] = "";
    memset(name, 'a', PARAM_NAME_MAX);
    ck_assert(param_name_valid(name));
    name[PARAM_NAME_MAX] = 'a';
    ck_assert(!param_name_valid(name));
    for (size_t i = 0; i < PARAM_NAME_BYTES; i += 4)
        memcpy(name + i, "\xf0\x9f\x92\xa5", 4);
    ck_assert(param_name_valid(name));
    memcpy(name + PARAM_NAME_BYTES, "\xf0\x9f\x92\xa5", 4);
    ck_assert(!param_name_valid(name));
}
END_TEST

START_TEST(names_without_backquotes)
{
    static const char *const bare[] = {"lr", "a-b", "opt/lr", "a.b", "β"};
    static const char *const others[] = {"a b", "f(x)", "l[0]", "a@b"};
    for (size_t k = 0; k < AS_ARRAY_LEN(bare); k++)
        ck_assert_msg(param_name_is_bare(bare[k]), "%s", bare[k]);
    for (size_t k = 0; k < AS_ARRAY_LEN(others); k++)
        ck_assert_msg(!param_name_is_bare(others[k]), "%s", others[k]);
    ck_assert_uint_eq(param_name_span("learning rate:-0.1"), strlen("learning rate"));
    ck_assert_uint_eq(param_name_span("?"), 0);
}
END_TEST

START_TEST(variables)
{
    static const char *const cases[][2] = {{"lr", "ASSAY_PARAM_lr"},
                                           {"opt/lr", "ASSAY_PARAM_opt_lr"},
                                           {"Learning rate", "ASSAY_PARAM_Learning_rate"},
                                           {"l[0].n", "ASSAY_PARAM_l_0__n"},
                                           {"größe", ""}};
    for (size_t k = 0; k < AS_ARRAY_LEN(cases); k++) {
        AS_AUTO(str_done) struct str variable = {0};
        param_name_variable(cases[k][0], &variable);
        ck_assert_str_eq(str_cstr(&variable), cases[k][1]);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("param_name");
    TCase *t = tcase_create("param_name");
    tcase_add_test(t, names_that_people_write);
    tcase_add_test(t, lengths);
    tcase_add_test(t, names_without_backquotes);
    tcase_add_test(t, variables);
    suite_add_tcase(s, t);
    return s;
}
