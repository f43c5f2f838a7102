#include "cli/files/trial_folder.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

START_TEST(folders)
{
    static const struct {
        const char *trial, *here, *directory; /* NULL: not set */
    } cases[] = {
        {"{'command': ['sh', 'x.sh']}", "/home/ada", "/home/ada"},
        {"{'command': ['sh', 'x.sh'], 'directory': 'sub/${x}'}", "/home/ada", "/home/ada/sub/${x}"},
        {"{'command': ['sh', 'x.sh'], 'directory': '/srv'}", "/home/ada", "/srv"},
        {"{'command': ['sh', 'x.sh'], 'directory': ''}", "/home/ada", ""},
        {"{'command': ['sh', 'x.sh']}", "/odd/${x}$", "/odd/$${x}$"},
        {"{'train': {}}", "/home/ada", NULL},
        {"[]", "/home/ada", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct as_err err = {0};
        char text[200];
        (void)snprintf(text, sizeof text, "{\"trial\": %s}", cases[i].trial);
        JSON_AUTO doc = json_of(text);
        ck_ok(trial_folder_set(doc, cases[i].here, &err), err);
        const json_t *found = json_object_get(json_object_get(doc, "trial"), "directory");
        ck_assert_pstr_eq(json_string_value(found), cases[i].directory);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("trial_folder");
    TCase *t = tcase_create("trial_folder");
    tcase_add_test(t, folders);
    suite_add_tcase(s, t);
    return s;
}
