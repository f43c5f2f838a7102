#include "cli/files/profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/yaml_reader.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static json_t *config_of(const char *text)
{
    struct as_err err = {0};
    json_t *tree = NULL;
    ck_ok(yaml_parse(text, strlen(text), &tree, &err), err);
    return tree;
}

START_TEST(fields)
{
    struct as_err err = {0};
    JSON_AUTO c = config_of("profiles:\n"
                            "  lab: {url: 'https://lab.example/', token_file: ~/lab.token}\n"
                            "  home: {url: 'http://127.0.0.1:7', token_file: home.token}\n"
                            "  open: {url: 'http://h/prefix', }\n"
                            "  root: {url: 'http://h', token_file: /etc/t}\n");
    static const char *const want[][3] = {{"lab", "https://lab.example", "/home/me/lab.token"},
                                          {"home", "http://127.0.0.1:7", "/c/home.token"},
                                          {"open", "http://h/prefix", NULL},
                                          {"root", "http://h", "/etc/t"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(want); i++) {
        struct profile p = {0};
        ck_ok(profiles_find(c, want[i][0], "/c", "/home/me", &p, &err), err);
        ck_assert_str_eq(p.url, want[i][1]);
        ck_assert(as_streq(p.token_file, want[i][2]));
        profile_done(&p);
    }
    struct profile p = {0};
    ck_fails(profiles_find(c, "work", "/c", NULL, &p, &err), AS_E_NOT_FOUND, err, "lab, home");
}
END_TEST

/* Every profile is checked, and the error names the field. */
START_TEST(mistakes)
{
    static const char *const bad[][2] = {
        {"profiles: {a: {url: 'http://h'}, b: {token_file: t}}", "/profiles/b/url"},
        {"profiles: {a: {url: 'http://h', token: secret}}", "/profiles/a/token"},
        {"profiles: {a: {url: 'ftp://h'}}", "/profiles/a"},
        {"profiles: {a: {url: 7}}", "/profiles/a/url"},
        {"profiles: {'A b': {url: 'http://h'}}", "/profiles/A b"},
        {"profiles: [a]", "/profiles"},
        {"servers: {}", "/profiles"},
        {"profiles: {}\ndefault: a", "/default"},
    };
    struct as_err err = {0};
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        JSON_AUTO c = config_of(bad[i][0]);
        struct profile p = {0};
        ck_fails(profiles_find(c, "a", "/c", NULL, &p, &err), AS_E_INVAL, err, "");
        ck_assert_str_eq(err.pointer, bad[i][1]);
    }
}
END_TEST

START_TEST(file)
{
    struct as_err err = {0};
    struct profile p = {0};
    char dir[TEMP_FOLDER_SIZE], path[200], want[240];
    JSON_AUTO names = NULL;
    temp_folder_make(dir);
    ck_assert_int_eq(setenv("XDG_CONFIG_HOME", dir, 1), 0);
    ck_ok(profiles_names(&names, &err), err);
    ck_assert_uint_eq(json_array_size(names), 0);
    ck_fails(profiles_read("lab", &p, &err), AS_E_NOT_FOUND, err, "lab");
    (void)snprintf(path, sizeof path, "%s/assay", dir);
    ck_ok(file_mkdirs(path, 0700, &err), err);
    (void)snprintf(path, sizeof path, "%s/assay/config", dir);
    static const char good[] = "profiles:\n  lab: {url: 'http://h', token_file: t}\n";
    ck_ok(file_replace(path, good, strlen(good), 0600, &err), err);
    ck_ok(profiles_read("lab", &p, &err), err);
    (void)snprintf(want, sizeof want, "%s/assay/t", dir);
    ck_assert_str_eq(p.token_file, want);
    profile_done(&p);
    json_decref(names);
    ck_ok(profiles_names(&names, &err), err);
    ck_assert_str_eq(json_string_value(json_array_get(names, 0)), "lab");
    static const char bad[] = "profiles:\n  lab:\n    url: http://h\n    tokn: t\n";
    ck_ok(file_replace(path, bad, strlen(bad), 0600, &err), err);
    ck_fails(profiles_read("lab", &p, &err), AS_E_INVAL, err, "/assay/config:4:5: /profiles/lab");
    temp_folder_remove(dir);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("profiles");
    TCase *t = tcase_create("profiles");
    tcase_add_test(t, fields);
    tcase_add_test(t, mistakes);
    tcase_add_test(t, file);
    suite_add_tcase(s, t);
    return s;
}
