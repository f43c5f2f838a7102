/* Patterns of users: groups by name, faults with their place, and limits that hold. */
#include "tests/support/check_main.h"

#include <string.h>

#include "base/pattern.h"
#include "base/str.h"

/* The groups of the first match as "name=text ", or "no", or the name of a status. */
static void match(const char *pattern, const char *text, struct str *out)
{
    AS_AUTO(pattern_freep) struct pattern *p = NULL;
    struct as_err err = {0};
    bool found = false;
    as_status st = pattern_compile(pattern, &p, NULL, &err);
    if (st == AS_OK)
        st = pattern_match(p, text, strlen(text), &found, &err);
    if (st < 0 || !found) {
        str_puts(out, st < 0 ? as_status_name(st) : "no");
        return;
    }
    for (size_t i = 0; i < pattern_n_names(p); i++) {
        const char *group;
        size_t len;
        if (pattern_group(p, i, &group, &len))
            str_printf(out, "%s=%.*s ", pattern_name(p, i), (int)len, group);
    }
}

static const struct {
    const char *pattern, *text, *want;
} cases[] = {
    {"loss: (?P<loss>[0-9.]+)", "epoch 1 loss: 0.5 end", "loss=0.5 "},
    {"loss: (?<loss>[0-9.]+)", "loss: 0.5", "loss=0.5 "},
    {"a(?P<x>1)?b(?P<y>2)?", "ab2", "y=2 "},
    {"loss (?P<l>\\d)|LOSS=(?P<l>\\d)", "LOSS=7", "l=7 "},
    {"(?i)Loss=(?P<l>\\d)", "lOSS=7", "l=7 "},
    {"^\xc3\xa9.(?P<x>.)$", "\xc3\xa9\xc3\xbcz", "x=z "},
    {"l=(?P<l>\\d)", "\xff\xfe l=3 \xff", "l=3 "},
    {"l=(?P<l>\\d)", "nothing", "no"},
    /* half a million steps: PCRE2 would take them without our limit */
    {"(?P<x>(?:1|1)*)[cd]", "111111111111111111b", "too_large"},
    {"(?P<x>a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "too_large"},
    {"(?P<x>(?:a|a)*)*[cd]", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "too_large"},
};

START_TEST(matches)
{
    AS_AUTO(str_done) struct str out = {0};
    match(cases[_i].pattern, cases[_i].text, &out);
    ck_assert_str_eq(str_cstr(&out), cases[_i].want);
}
END_TEST

START_TEST(faults_have_a_place)
{
    struct pattern *p = NULL;
    size_t offset = 99;
    struct as_err err = {0};
    ck_assert_int_eq(pattern_compile("loss: (?P<loss>[0-9", &p, &offset, &err), AS_E_INVAL);
    ck_assert_uint_eq(offset, 19);
    ck_assert_ptr_nonnull(strstr(err.msg, "at offset 19"));
    ck_assert_int_eq(pattern_compile("a)", &p, &offset, &err), AS_E_INVAL);
    ck_assert_int_eq(pattern_compile("\\C", &p, &offset, &err), AS_E_INVAL);
    ck_assert_int_eq(pattern_compile("\xff", &p, &offset, &err), AS_E_INVAL);
    char long_one[PATTERN_MAX_BYTES + 2];
    memset(long_one, 'a', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    ck_assert_int_eq(pattern_compile(long_one, &p, NULL, &err), AS_E_TOO_LARGE);
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(literal_beginnings)
{
    static const struct {
        const char *pattern, *want;
    } list[] = {{"Epoch (?P<step>\\d+)", "Epoch "},
                {"^ loss: x?(?P<a>.)", "loss: "},
                {"(?P<a>.)", ""},
                {"abc+(?P<a>.)", "ab"},
                {"abc|(?P<a>.)", ""}};
    for (size_t i = 0; i < AS_ARRAY_LEN(list); i++) {
        AS_AUTO(pattern_freep) struct pattern *p = NULL;
        struct as_err err = {0};
        ck_ok(pattern_compile(list[i].pattern, &p, NULL, &err), err);
        ck_assert_str_eq(pattern_literal(p), list[i].want);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("pattern");
    TCase *t = tcase_create("pattern");
    tcase_add_loop_test(t, matches, 0, (int)AS_ARRAY_LEN(cases));
    tcase_add_test(t, faults_have_a_place);
    tcase_add_test(t, literal_beginnings);
    suite_add_tcase(s, t);
    return s;
}
