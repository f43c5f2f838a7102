/* The environment of a program: whose variables it gets, in which order, and what is missing. */
#include "trial-runner/process/environment.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"
#include "tests/support/temp_folder.h"

static char *const runner[] = {"PATH=/bin", "VIRTUAL_ENV=/runner", "PYTHONHOME=/p", "LEVEL=runner",
                               NULL};
static struct child_env env;
static bool foreign;
static char dir[TEMP_FOLDER_SIZE];

static as_status set(const char *trial, struct as_err *err)
{
    JSON_AUTO t = json_of(trial);
    const struct environment s = {.trial = t, .folder = dir, .host = "this"};
    child_env_done(&env);
    foreign = false;
    as_status st = child_env_init(&env, runner, err);
    return st < 0 ? st : environment_set(&s, &env, &foreign, err);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, name);
    AS_AUTO(as_freep) char *parent = as_strdup(path);
    *strrchr(parent, '/') = 0;
    ck_ok(file_mkdirs(parent, 0700, &err), err);
    ck_ok(file_replace(path, text, strlen(text), mode, &err), err);
}

static const char *get(const char *name)
{
    return child_env_get(&env, name);
}

START_TEST(shell)
{
    struct as_err err = {0};
    ck_ok(set("{'command': []}", &err), err);
    ck_assert_str_eq(get("VIRTUAL_ENV"), "/runner");
    ck_ok(set("{'environment': {'host': 'this', 'variables': {'PATH': '/v:${x}', 'AWS': 'no'}}}",
              &err),
          err);
    ck_assert_str_eq(get("PATH"), "/v:${x}");
    ck_assert_ptr_null(get("VIRTUAL_ENV")); /* the shell had none */
    ck_assert_ptr_null(get("AWS"));
    ck_assert(!foreign);
    ck_ok(set("{'environment': {'host': 'other', 'variables': {'PATH': '/v'}}}", &err), err);
    ck_assert_str_eq(get("PATH"), "/bin");
    ck_assert_str_eq(get("VIRTUAL_ENV"), "/runner");
    ck_assert(foreign);
}
END_TEST

START_TEST(file_and_venv)
{
    char want[100];
    struct as_err err = {0};
    temp_folder_make(dir);
    write_file("own/bin/python", "", 0755);
    write_file("a.env", "PATH=/file\nLEVEL=file\n", 0600);
    ck_ok(set("{'venv': 'own', 'env_file': 'a.env'}", &err), err);
    (void)snprintf(want, sizeof want, "%s/own/bin:/file", dir);
    ck_assert_str_eq(get("PATH"), want);
    want[strlen(dir) + 4] = 0;
    ck_assert_str_eq(get("VIRTUAL_ENV"), want);
    ck_assert_str_eq(get("LEVEL"), "file");
    ck_assert_ptr_null(get("PYTHONHOME"));
    ck_assert_int_eq(set("{'venv': 'missing'}", &err), AS_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.msg, "trial.venv"));
    ck_assert_ptr_nonnull(strstr(err.msg, "missing/bin/python"));
    ck_assert_int_eq(set("{'env_file': 'missing'}", &err), AS_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.msg, "trial.env_file"));
    ck_assert_int_eq(set("{'env_file': '/dev/zero'}", &err), AS_E_INVAL);
    write_file("b.env", "A=1\nASSAY_REPORT=s3cret\n", 0600);
    ck_assert_int_eq(set("{'env_file': 'b.env'}", &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "b.env: line 2"));
    ck_assert_ptr_null(strstr(err.msg, "s3cret"));
    temp_folder_remove(dir);
}
END_TEST

START_TEST(modules)
{
    static const char *const argv[] = {"python", "a b"};
    struct as_err err = {0};
    struct child_spec spec = {0};
    JSON_AUTO none = json_of("{}");
    JSON_AUTO two = json_of("{'modules': ['gcc/12', 'cuda'], 'venv': '/v'}");
    struct environment s = {.trial = none, .folder = "/f", .host = ""};
    ck_ok(child_spec_set_argv(&spec, argv, 2, &err), err);
    ck_ok(environment_load_modules(&s, &spec, &err), err);
    ck_assert_str_eq(spec.argv[0], "python");
    s.trial = two;
    ck_ok(environment_load_modules(&s, &spec, &err), err);
    static const char *const want[] = {"/v", "2", "gcc/12", "cuda", "python", "a b"};
    ck_assert_str_eq(spec.argv[0], "/bin/sh");
    for (size_t i = 0; i < AS_ARRAY_LEN(want); i++)
        ck_assert_str_eq(spec.argv[4 + i], want[i]); /* no text of the document is in the script */
    ck_assert_ptr_null(spec.argv[10]);
    child_spec_done(&spec);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("environment");
    TCase *t = tcase_create("environment");
    tcase_add_test(t, shell);
    tcase_add_test(t, file_and_venv);
    tcase_add_test(t, modules);
    suite_add_tcase(s, t);
    return s;
}
