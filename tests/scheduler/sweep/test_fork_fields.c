#include "scheduler/sweep/fork_fields.h"

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

/* A JSON value and a text in apostrophes are equal. */
static void is_json(json_t *found, const char *expected)
{
    json_t *want = json_of(expected);
    char *text = json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT);
    ck_assert_msg(json_equal(found, want), "expected %s, found %s", expected, text);
    free(text);
    json_decref(want);
    json_decref(found);
}

static json_t *names_of(const char *parameters, const char *explore)
{
    json_t *p = json_of(parameters);
    json_t *list = json_of(explore);
    json_t *names = NULL;
    struct as_err err = {0};
    ck_assert_int_eq(fork_names(p, list, &names, &err), AS_OK);
    json_decref(p);
    json_decref(list);
    return names;
}

START_TEST(conditions_are_followed_to_their_end)
{
    const char *parameters = "{'lr': {'type': 'float'}, 'optimizer': {'type': 'categorical'},"
                             " 'nesterov': {'type': 'bool', 'when': {'momentum': true}},"
                             " 'momentum': {'type': 'bool', 'when': {'optimizer': 'sgd'}},"
                             " 'layers': {'type': 'int', 'when': {'lr': 1}}}";
    is_json(names_of(parameters, "['optimizer']"), "['optimizer', 'momentum', 'nesterov']");
    is_json(names_of(parameters, "['lr', 'layers']"), "['lr', 'layers']");
    is_json(names_of(parameters, "[]"), "[]");
}
END_TEST

START_TEST(explore_is_left_as_it_was)
{
    json_t *p = json_of("{'a': {}, 'b': {'when': {'a': 1}}}");
    json_t *explore = json_of("['a']");
    json_t *names = NULL;
    struct as_err err = {0};
    ck_assert_int_eq(fork_names(p, explore, &names, &err), AS_OK);
    is_json(names, "['a', 'b']");
    is_json(explore, "['a']");
    json_decref(p);
}
END_TEST

static json_t *fields_of(const char *train, const char *names)
{
    json_t *tree = json_of(train);
    json_t *list = json_of(names);
    json_t *fields = NULL;
    struct as_err err = {0};
    ck_assert_int_eq(fork_fields(tree, list, &fields, &err), AS_OK);
    json_decref(tree);
    json_decref(list);
    return fields;
}

START_TEST(places_whose_text_names_a_parameter)
{
    const char *train =
        "{'dataset': 'd', 'epochs': 9, 'optimizer': {'kind': 'sgd', 'lr': '${lr}',"
        " 'momentum': '${m:-0.9}'}, 'note': 'rate ${lr} and again ${lr}',"
        " 'layers': [{'width': '${width}'}, {'width': 8, 'dropout': '${drop?0.5}'}],"
        " 'a/b~c': '${lr}', 'literal': '$${lr}'}";
    is_json(fields_of(train, "['lr']"), "['/optimizer/lr', '/note', '/a~1b~0c']");
    is_json(fields_of(train, "['m', 'drop', 'width']"),
            "['/optimizer/momentum', '/layers/0/width', '/layers/1/dropout']");
    is_json(fields_of(train, "['dataset']"), "[]");
}
END_TEST

START_TEST(a_text_that_is_not_well_formed)
{
    json_t *tree = json_of("{'optimizer': {'lr': '${lr'}}");
    json_t *names = json_of("['lr']");
    json_t *fields = NULL;
    struct as_err err = {0};
    ck_assert_int_eq(fork_fields(tree, names, &fields, &err), AS_E_INVAL);
    ck_assert_str_eq(err.pointer, "/optimizer/lr");
    ck_assert_ptr_null(fields);
    json_decref(tree);
    json_decref(names);
}
END_TEST

static struct fork_rule rule_of(const char *document)
{
    json_t *tree = json_of(document);
    struct fork_rule rule;
    struct as_err err = {0};
    ck_assert_int_eq(fork_rule_read(tree, &rule, &err), AS_OK);
    json_decref(tree);
    return rule;
}

START_TEST(what_a_runner_keeps)
{
    const char *sections =
        "'parameters': {'lr': {}, 'wd': {'when': {'lr': 1}}, 'width': {}},"
        "'early_stopping': {'method': 'pbt', 'period': 4, 'max_steps': 40, 'explore': ['lr']}";
    char text[512];
    snprintf(text, sizeof text,
             "{%s, 'trial': {'train': {'optimizer': {'lr': '${lr}', 'wd': '${wd}'}, "
             "'width': '${width}'}}}",
             sections);
    struct fork_rule rule = rule_of(text);
    ck_assert_int_eq(rule.every, 4);
    ck_assert_int_eq(rule.until, 40);
    is_json(json_incref(rule.may_differ), "['/optimizer/lr', '/optimizer/wd']");
    fork_rule_done(&rule);

    snprintf(text, sizeof text, "{%s, 'trial': {'command': ['train', '${lr}']}}", sections);
    rule = rule_of(text);
    ck_assert_int_eq(rule.every, 4);
    ck_assert_ptr_null(rule.may_differ);
    fork_rule_done(&rule);
}
END_TEST

START_TEST(a_sweep_without_forks_keeps_nothing)
{
    struct fork_rule rule =
        rule_of("{'early_stopping': {'method': 'asha', 'max_steps': 40}, 'trial': {'train': {}}}");
    ck_assert_int_eq(rule.every, 0);
    ck_assert_ptr_null(rule.may_differ);
    rule = rule_of("{'trial': {'command': ['true']}}");
    ck_assert_int_eq(rule.every, 0);
    fork_rule_done(&rule);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/sweep/fork_fields");
    TCase *t = tcase_create("fork_fields");
    tcase_add_test(t, conditions_are_followed_to_their_end);
    tcase_add_test(t, explore_is_left_as_it_was);
    tcase_add_test(t, places_whose_text_names_a_parameter);
    tcase_add_test(t, a_text_that_is_not_well_formed);
    tcase_add_test(t, what_a_runner_keeps);
    tcase_add_test(t, a_sweep_without_forks_keeps_nothing);
    suite_add_tcase(suite, t);
    return suite;
}
