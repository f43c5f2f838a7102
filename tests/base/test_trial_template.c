/* A trial as it runs: every field, the files, the folder, and what only a runner knows. */
#include "base/trial_template.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static const char *const params_text = "{'lr': 0.5, 'n': 3, 'none': null, 'image': 'box'}";

static void becomes(const char *trial, const struct trial_values *more, const char *want)
{
    JSON_AUTO t = json_of(trial);
    JSON_AUTO params = json_of(params_text);
    JSON_AUTO w = json_of(want);
    JSON_AUTO out = NULL;
    struct trial_values values = *more;
    struct as_err err = {0};
    if (!values.params)
        values.params = params;
    ck_ok(trial_template_apply(t, &values, &out, &err), err);
    AS_AUTO(as_freep) char *text = json_format(out);
    AS_AUTO(as_freep) char *expected = json_format(w);
    ck_assert_str_eq(text, expected);
}

static const struct trial_values on_runner = {.files = "/a/files", .trial_dir = "/a/artifacts"};
static const struct trial_values anywhere = {0};

START_TEST(every_field)
{
    becomes("{'train': {'dataset': 'd', 'epochs': '${n}', 'loss': '${gone}'}}", &on_runner,
            "{'train': {'dataset': 'd', 'epochs': 3}}");
    becomes(
        "{'command': ['run', '${args}', ['--none', '${none}'], '${trial_dir}/x'], 'env': {'A': "
        "'${lr}', 'B': 2, 'C': '${none}'}, 'directory': '/d/${n}', 'venv': 'v${n}', 'env_file': "
        "'${n}.env', 'modules': ['gcc/12'], 'launch': 'first', 'container': {'image': "
        "'${image}', 'options': ['--x=${n}']}, 'environment': {'host': 'h', 'variables': "
        "{'PATH': '/b:${lr}'}}, 'report': [{'stdout': ['(?P<a>${n})']}, {'csv': "
        "'out/${n}.csv', 'step': '${n}'}, {'json': '${trial_dir}/m'}, {'tensorboard': "
        "'${lr}', 'tags': {'${n}': 'x'}}]}",
        &on_runner,
        "{'command': ['run', '--lr=0.5', '--n=3', '--image=box', '/a/artifacts/x'], 'env': "
        "{'A': '0.5', 'B': '2', 'C': 'null'}, 'directory': '/d/3', 'venv': 'v3', 'env_file': "
        "'3.env', 'modules': ['gcc/12'], 'launch': 'first', 'container': {'image': 'box', "
        "'options': ['--x=3']}, 'environment': {'host': 'h', 'variables': {'PATH': "
        "'/b:${lr}'}}, 'report': [{'stdout': ['(?P<a>${n})']}, {'csv': 'out/3.csv', 'step': "
        "'${n}'}, {'json': '/a/artifacts/m'}, {'tensorboard': '0.5', 'tags': {'${n}': 'x'}}]}");
    becomes("{}", &on_runner, "{}");
}
END_TEST

/* A file may name other files, and itself. */
START_TEST(files)
{
    becomes("{'command': ['run', '${file:a/b}'], 'files': {'a/b': '${file:c} ${lr}', 'c': ''}}",
            &on_runner,
            "{'command': ['run', '/a/files/a/b'], 'files': {'a/b': '/a/files/c 0.5', 'c': ''}}");
    becomes("{'command': ['run', '${file:c}'], 'files': {'c': '${trial_dir}'}}", &anywhere,
            "{'command': ['run', '${file:c}'], 'files': {'c': '${trial_dir}'}}");
}
END_TEST

/* ${args} are the parameters, and neither the files nor the folder. A parameter of the folder's
 * name hides it, also where the parameter is inactive. */
START_TEST(names)
{
    JSON_AUTO own = json_of("{'trial_dir': 'mine'}");
    JSON_AUTO none = json_object();
    JSON_AUTO inactive = json_of("['trial_dir']");
    const struct trial_values given = {.params = own, .trial_dir = "/a"};
    const struct trial_values hidden = {.params = none, .inactive = inactive, .trial_dir = "/a"};
    becomes("{'command': ['run', '${args:hydra}'], 'files': {'f': ''}}", &on_runner,
            "{'command': ['run', 'lr=0.5', 'n=3', 'none=null', 'image=box'], 'files': {'f': ''}}");
    becomes("{'command': ['run', '${trial_dir}', '${args}']}", &given,
            "{'command': ['run', 'mine', '--trial_dir=mine']}");
    becomes("{'command': ['run', ['--out', '${trial_dir}'], '${trial_dir:-x}']}", &hidden,
            "{'command': ['run', 'x']}");
}
END_TEST

START_TEST(errors_name_the_field)
{
    static const struct {
        const char *trial, *says;
    } wrong[] = {
        {"{'env': {'A': []}}", "trial.env: 'A': found a list"},
        {"{'env': {'A': '${'}}", "trial.env"},
        {"{'files': {'f': null}}", "trial.files: 'f'"},
        {"{'directory': 3, 'venv': {}}", "trial.venv"},
        {"{'report': [{'csv': '${'}]}", "trial.report: the path of csv"},
        {"{'command': ['a', '${']}", "trial.command[1]"},
    };
    JSON_AUTO params = json_of(params_text);
    const struct trial_values values = {.params = params};
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        JSON_AUTO t = json_of(wrong[i].trial);
        JSON_AUTO out = NULL;
        struct as_err err = {0};
        ck_fails(trial_template_apply(t, &values, &out, &err), AS_E_INVAL, err, wrong[i].says);
        ck_assert_ptr_null(out);
    }
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    JSON_AUTO params = json_of(params_text);
    JSON_AUTO trial = json_of("{'command': ['run', '${args}', '${file:f}'], 'env': {'A': '${lr}', "
                              "'B': 1}, 'files': {'f': '${n}'}, 'directory': '${n}', 'report': "
                              "[{'csv': '${n}'}]}");
    const struct trial_values values = {.params = params, .files = "/f", .trial_dir = "/a"};
    int failed = 0;
    for (size_t nth = 1; nth < 60; nth++) {
        json_t *out = NULL;
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = trial_template_apply(trial, &values, &out, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        ck_assert_int_eq(st == AS_OK, out != NULL);
        failed += st != AS_OK;
        json_decref(out);
    }
    ck_assert_int_ge(failed, 5);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("trial_template");
    TCase *t = tcase_create("trial_template");
    tcase_add_test(t, every_field);
    tcase_add_test(t, files);
    tcase_add_test(t, names);
    tcase_add_test(t, errors_name_the_field);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
