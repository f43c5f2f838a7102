#include "cli/files/model_ref.h"

#include <string.h>

#include "base/mem.h"
#include "tests/support/check_main.h"

START_TEST(forms)
{
    static const struct {
        const char *text, *name, *version;
        bool has_version;
    } rows[] = {
        {"digits", "digits", "default", false},
        {"digits@3", "digits", "3", true},
        {"D.1_x-y@champion", "D.1_x-y", "champion", true},
        {"7@default", "7", "default", true},
    };
    struct as_err err = {0};
    struct model_ref ref;
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        ck_ok(model_ref_parse(rows[i].text, &ref, &err), err);
        ck_assert_str_eq(ref.name, rows[i].name);
        ck_assert_str_eq(ref.version, rows[i].version);
        ck_assert(ref.has_version == rows[i].has_version);
    }
}
END_TEST

START_TEST(other_forms_are_refused)
{
    static const char *const names[] = {"", ".a", "-a", "a/b", "a b", "../a", "a%2f", "@3"};
    static const char *const versions[] = {"a@", "a@b@c", "a@../b", "a@-1", "a@b/c"};
    char longest[80];
    struct as_err err = {0};
    struct model_ref ref;
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        ck_fails(model_ref_parse(names[i], &ref, &err), AS_E_USAGE, err, "name of a model");
    for (size_t i = 0; i < AS_ARRAY_LEN(versions); i++)
        ck_fails(model_ref_parse(versions[i], &ref, &err), AS_E_USAGE, err, "number of a version");
    memset(longest, 'a', sizeof longest);
    longest[64] = '\0';
    ck_ok(model_ref_parse(longest, &ref, &err), err);
    longest[64] = 'a';
    longest[65] = '\0';
    ck_fails(model_ref_parse(longest, &ref, &err), AS_E_USAGE, err, "name of a model");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("model_ref");
    TCase *t = tcase_create("model_ref");
    tcase_add_test(t, forms);
    tcase_add_test(t, other_forms_are_refused);
    suite_add_tcase(s, t);
    return s;
}
