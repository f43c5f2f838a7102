/* The arguments of a program: flags of inactive parameters, switches, ${args}, files. */
#include "base/command_line.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

/* Inactive: momentum, off2. */
static const char *const params_text =
    "{'lr': 0.001, 'width': 64, 'opt': 'sgd x', 'on': true, 'off': false, 'layers': [64, 128], "
    "'none': null}";

static const struct {
    const char *command, *want;
} lines[] = {
    {"['run', '--lr=${lr}', 3, 0.5]", "['run','--lr=0.001','3','0.5']"},
    {"['run', ['--momentum', '${momentum}'], 'x']", "['run','x']"},
    {"['run', ['--lr', '${lr}'], 'x']", "['run','--lr','0.001','x']"},
    {"['run', ['--a', '${lr}', '--m=${momentum}']]", "['run']"},
    {"['run', ['--m', '${momentum:-0.9}']]", "['run','--m','0.9']"},
    {"['run', []]", "['run']"},
    {"['run', '${on?--nesterov}', '${off?--fast}', '${off2?--slow}', 'end']",
     "['run','--nesterov','end']"},
    {"['run', 'a${on?-b}c${off?-d}']", "['run','a-bc']"},
    {"['run', ['${off?--fast}', 'stays']]", "['run','stays']"},
    {"['run', ['${off2?--fast}', 'goes']]", "['run']"},
    {"['run', '${momentum}', '']", "['run','','']"}, /* as in documents of before */
    {"['run', '${args}']",
     "['run','--lr=0.001','--width=64','--opt=sgd x','--on=true','--off=false',"
     "'--layers=[64,128]']"},
    {"['run', '${args:hydra}']",
     "['run','lr=0.001','width=64','opt=sgd x','on=true','off=false','layers=[64,128]',"
     "'none=null']"},
    {"['run', ['--', '${args:short}']]",
     "['run','--','--lr','0.001','--width','64','--opt','sgd x','--on','true','--off','false',"
     "'--layers','[64,128]']"},
    {"['run', ['--layers', '${layers}'], ['--none', '${none}'], '--n=${none:-no}', '--m=${none}']",
     "['run','--layers','[64,128]','--n=no','--m=null']"},
    {"['run', '--config=${file:a/b.yaml}']", "['run','--config=/w/a/b.yaml']"},
    {"['run', '$${args}', '$${on?x}']", "['run','${args}','${on?x}']"},
};

static void line_is(const char *params, const char *inactive, const char *command, const char *want)
{
    JSON_AUTO p = json_of(params);
    JSON_AUTO names = json_of(params);
    JSON_AUTO i = json_of(inactive);
    JSON_AUTO c = json_of(command);
    JSON_AUTO w = json_of(want);
    JSON_AUTO out = NULL;
    struct as_err err = {0};
    ck_ok(template_name_file(names, "a/b.yaml", "/w/a/b.yaml", &err), err);
    ck_ok(command_line_expand(c, p, i, names, &out, &err), err);
    AS_AUTO(as_freep) char *text = json_format(out);
    AS_AUTO(as_freep) char *expected = json_format(w);
    ck_assert_str_eq(text, expected);
}

START_TEST(expands)
{
    line_is(params_text, "['momentum', 'off2']", lines[_i].command, lines[_i].want);
}
END_TEST

/* A parameter named args is a parameter; ${args:long} still means all of them. */
START_TEST(a_parameter_named_args)
{
    line_is("{'args': 5}", "[]", "['run', '${args}', '${args:long}']", "['run','5','--args=5']");
    line_is("{'x': 5}", "['args']", "['run', ['${args}'], '${args:long}']", "['run','--x=5']");
    line_is("{'x': 5}", "[]", "['run', '${args}']", "['run','--x=5']");
    line_is("{}", "[]", "['run', '${args}']", "['run']");
}
END_TEST

START_TEST(too_many_arguments)
{
    struct as_err err = {0};
    JSON_AUTO params = json_object();
    JSON_AUTO command = json_of("['run', '${args:short}']");
    JSON_AUTO out = NULL;
    for (int i = 0; i < COMMAND_LINE_MAX / 2; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%d", i);
        ck_assert_int_eq(json_object_set_new(params, name, json_integer(i)), 0);
    }
    ck_fails(command_line_expand(command, params, NULL, params, &out, &err), AS_E_TOO_LARGE, err,
             "trial.command[1]: more than 4096 arguments");
    ck_assert_ptr_null(out);
}
END_TEST

/* ---- checks ---- */

static bool is_known(const void *arg, const char *name)
{
    (void)arg;
    return as_streq(name, "lr") || as_streq(name, "momentum") || as_streq(name, "on") ||
           as_streq(name, "file:a.yaml");
}

static bool is_conditional(const void *arg, const char *name)
{
    (void)arg;
    return as_streq(name, "momentum");
}

static bool is_boolean(const void *arg, const char *name)
{
    (void)arg;
    return as_streq(name, "on");
}

static const struct command_rules rules = {is_known, is_conditional, is_boolean, NULL};

static const struct {
    const char *element, *part; /* NULL: fine */
    bool is_text;               /* checked as a text of trial.env */
} checks[] = {
    {"'--lr=${lr}'", NULL, false},
    {"['--momentum', '${momentum}']", NULL, false},
    {"'--momentum=${momentum:-0}'", NULL, false},
    {"'--momentum=${momentum:-}'", NULL, false},
    {"'${on?--nesterov}'", NULL, false},
    {"'${args}'", NULL, false},
    {"'${args:hydra}'", NULL, false},
    {"'${args:short}'", NULL, false},
    {"'${file:a.yaml}'", NULL, true},
    {"'--momentum=${momentum}'", "'momentum' has a `when`, and where it is inactive", false},
    {"'--momentum=${momentum}'", "[\"--momentum\", \"${momentum}\"]", false},
    {"'${momentum}'", "${momentum:-} if empty is meant", true},
    {"'--x=${args}'", "as an element of its own", false},
    {"'${args}'", "as an element of its own", true},
    {"'${args:yaml}'", "${args:yaml} has no known style", false},
    {"'${lr?--x}'", "'lr' is not of type bool", false},
    {"'${nope?--x}'", "there is no parameter 'nope'", false},
    {"'${file:b.yaml}'", "trial.files has no 'b.yaml'", false},
    {"['--x', '${nope}']", "/c/1/1: there is no parameter", false},
};

START_TEST(checks_names)
{
    JSON_AUTO element = json_of(checks[_i].element);
    struct as_err err = {0};
    as_status st = checks[_i].is_text ? command_text_check(element, "/c/1", &rules, true, &err)
                                      : command_line_check(element, "/c/1", &rules, true, &err);
    if (!checks[_i].part)
        ck_ok(st, err);
    else
        ck_fails(st, AS_E_INVAL, err, checks[_i].part);
}
END_TEST

/* A stored document stays readable, although it would be refused if it were sent now. */
START_TEST(what_is_stored_is_not_refused)
{
    JSON_AUTO element = json_of("'--momentum=${momentum}'");
    struct as_err err = {0};
    ck_ok(command_line_check(element, "/c/1", &rules, false, &err), err);
    ck_ok(command_text_check(element, "/c/1", &rules, false, &err), err);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    JSON_AUTO params = json_of(params_text);
    JSON_AUTO command = json_of("['run', ['--lr', '${lr}'], '${args:short}', '${on?x}']");
    int failed = 0;
    for (size_t nth = 1; nth < 40; nth++) {
        json_t *out = NULL;
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = command_line_expand(command, params, NULL, params, &out, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        ck_assert_int_eq(st == AS_OK, out != NULL);
        failed += st != AS_OK;
        json_decref(out);
    }
    ck_assert_int_ge(failed, 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("command_line");
    TCase *t = tcase_create("command_line");
    tcase_add_loop_test(t, expands, 0, AS_ARRAY_LEN(lines));
    tcase_add_test(t, a_parameter_named_args);
    tcase_add_test(t, too_many_arguments);
    tcase_add_loop_test(t, checks_names, 0, AS_ARRAY_LEN(checks));
    tcase_add_test(t, what_is_stored_is_not_refused);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
