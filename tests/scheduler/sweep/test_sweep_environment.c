/* environment, venv, env_file, modules and container of `trial`: canonical form, names, and every
 * refusal by its pointer. */
#include "scheduler/sweep/sweep_doc.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static json_t *document(const char *trial)
{
    char text[1500];
    (void)snprintf(
        text, sizeof text,
        "{'name': 's', 'metric': {'name': 'm', 'goal': 'minimize'}, 'limits': {'max_trials': 1},"
        " 'parameters': {'x': {'type': 'categorical', 'values': ['own']}}, 'trial': %s}",
        trial);
    return json_of(text);
}

static const char all[] = "{'command': ['p'], 'venv': '/v/${x}', 'env_file': '${x}.env', "
                          "'modules': ['gcc/12.2'], 'environment': "
                          "{'host': '00112233445566778899aabbccddeeff', 'variables': {'PATH': "
                          "'/${x}:/bin', 'VIRTUAL_ENV': '/v'}}}";

START_TEST(kept_and_applied)
{
    struct as_err err = {0};
    JSON_AUTO in = document(all);
    JSON_AUTO want = json_of("{'venv': '/v/own', 'env_file': 'own.env', 'modules': ['gcc/12.2']}");
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL, *again = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    JSON_AUTO trial = NULL;
    struct search_spec spec;
    ck_ok(sweep_doc_parse(in, 1, &d, &err), err);
    sweep_doc_search_spec(d, &spec);
    ck_ok(search_sample(&spec, &c, &err), err);
    ck_ok(sweep_doc_trial(d, c, &trial, &err), err);
    const char *name;
    json_t *value;
    json_object_foreach(want, name, value)
        ck_assert(json_equal(json_object_get(trial, name), value));
    /* the shell's text is no template */
    ck_assert(json_equal(json_object_get(trial, "environment"),
                         json_object_get(json_object_get(in, "trial"), "environment")));
    ck_ok(sweep_doc_parse(d->canonical, 1, &again, &err), err);
    ck_assert(json_equal(d->canonical, again->canonical));
}
END_TEST

START_TEST(containers)
{
    struct as_err err = {0};
    JSON_AUTO in = document("{'command': ['p'], 'container': 'py:${x}'}");
    JSON_AUTO want = json_of("{'image': 'py:${x}'}");
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    ck_ok(sweep_doc_parse(in, 1, &d, &err), err);
    ck_assert(
        json_equal(json_object_get(json_object_get(d->canonical, "trial"), "container"), want));
}
END_TEST

static const struct {
    const char *trial, *pointer;
} refused[] = {
    {"{'command': ['p'], 'venv': 3}", "/trial/venv"},
    {"{'command': ['p'], 'venv': ''}", "/trial/venv"},
    {"{'command': ['p'], 'venv': '/v/${missing}'}", "/trial/venv"},
    {"{'command': ['p'], 'env_file': 'a\\nb'}", "/trial/env_file"},
    {"{'command': ['p'], 'env_file': []}", "/trial/env_file"},
    {"{'command': ['p'], 'modules': 'gcc'}", "/trial/modules"},
    {"{'command': ['p'], 'modules': []}", "/trial/modules"},
    {"{'command': ['p'], 'modules': ['gcc', '-f']}", "/trial/modules/1"},
    {"{'command': ['p'], 'modules': ['$(reboot)']}", "/trial/modules/0"},
    {"{'command': ['p'], 'container': ''}", "/trial/container"},
    {"{'command': ['p'], 'container': ['i']}", "/trial/container"},
    {"{'command': ['p'], 'container': '-v'}", "/trial/container"},
    {"{'command': ['p'], 'container': {}}", "/trial/container/image"},
    {"{'command': ['p'], 'container': {'image': 'i', 'engine': 'docker'}}",
     "/trial/container/engine"},
    {"{'command': ['p'], 'container': {'image': 'i', 'gpu': 1}}", "/trial/container/gpu"},
    {"{'command': ['p'], 'container': {'image': 'i', 'options': ['--a', 'b']}}",
     "/trial/container/options/1"},
    {"{'command': ['p'], 'container': 'i', 'modules': ['gcc']}", "/trial/modules"},
    {"{'command': ['p'], 'container': 'i', 'venv': '/v'}", "/trial/venv"},
    {"{'command': ['p'], 'environment': {'variables': {}}}", "/trial/environment/host"},
    {"{'command': ['p'], 'environment': {'host': '0', 'variables': {}}}",
     "/trial/environment/host"},
    {"{'command': ['p'], 'environment': {'host': '00112233445566778899aabbccddeeff', 'variables': "
     "{'AWS_SECRET': 's'}}}",
     "/trial/environment/variables/AWS_SECRET"},
    {"{'train': {'dataset': 'd', 'epochs': 1}, 'venv': '/v'}", "/trial/venv"},
};

START_TEST(refusals)
{
    struct as_err err = {0};
    JSON_AUTO in = document(refused[_i].trial);
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    AS_AUTO(faults_done) struct faults faults = {0};
    ck_assert_int_eq(sweep_doc_parse_noting(in, 1, &faults, &d, &err), AS_E_INVAL);
    ck_assert_str_eq(err.pointer, refused[_i].pointer);
}
END_TEST

/* Each rank has a container; a launcher would start processes outside of its own. */
START_TEST(containers_of_ranks)
{
    static const struct {
        const char *trial;
        as_status want;
    } cases[] = {{"{'command': ['p'], 'container': 'i'}", AS_OK},
                 {"{'command': ['p'], 'container': 'i', 'launch': 'all'}", AS_OK},
                 {"{'command': ['p'], 'container': 'i', 'launch': 'first'}", AS_E_INVAL}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct as_err err = {0};
        JSON_AUTO in = document(cases[i].trial);
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
        ck_assert_int_eq(json_object_set_new(in, "resources", json_pack("{s:i}", "ranks", 2)), 0);
        ck_assert_int_eq(sweep_doc_parse(in, 1, &d, &err), cases[i].want);
        ck_assert_str_eq(err.pointer, cases[i].want == AS_OK ? "" : "/trial/container");
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("sweep_environment");
    TCase *t = tcase_create("sweep_environment");
    tcase_add_test(t, kept_and_applied);
    tcase_add_test(t, containers);
    tcase_add_loop_test(t, refusals, 0, (int)AS_ARRAY_LEN(refused));
    tcase_add_test(t, containers_of_ranks);
    suite_add_tcase(s, t);
    return s;
}
