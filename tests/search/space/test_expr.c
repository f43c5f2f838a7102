/* The language of parameter constraints.
 *
 * One table holds expressions with their value on a fixed configuration; another holds invalid
 * expressions with the exact error message and column, because users read these messages. */
#include "search/space/expr.h"

#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const char *const space_yaml =
    "x: {type: float, min: -10, max: 10}\n"
    "batch: {type: int, min: 0, max: 8192}\n"
    "accumulate: {type: int, min: 0, max: 64}\n"
    "opt: {type: categorical, values: [sgd, adamw, \"it's\", größe]}\n"
    "mixed: {type: categorical, values: [1, one, true]}\n"
    "size: {type: ordinal, values: [16, 32, 64]}\n"
    "nesterov: {type: bool, when: {opt: sgd}}\n"
    "fix: {type: constant, value: 3}\n"
    "layers: {type: categorical, values: [[64], a], when: {opt: sgd}}\n"
    "none: {type: categorical, values: [1, null], when: {opt: sgd}}\n"
    "a: {type: int, min: 0, max: 9}\n"
    "b: {type: int, min: 0, max: 9}\n"
    "a-b: {type: int, min: 0, max: 9}\n"
    "in: {type: int, min: 0, max: 9}\n"
    "min: {type: int, min: 0, max: 9}\n"
    "a/b: {type: int, min: 0, max: 9}\n"
    "learning rate: {type: int, min: 0, max: 9}\n"
    "log(x): {type: int, min: 0, max: 9}\n"
    "β: {type: int, min: 0, max: 9}\n";

static const char *const config_text =
    "{\"x\": -2.5, \"batch\": 64, \"accumulate\": 0, \"opt\": \"adamw\", \"mixed\": \"one\","
    " \"size\": 32, \"fix\": 3, \"a\": 5, \"b\": 2, \"a-b\": 7, \"in\": 1, \"min\": 4,"
    " \"a/b\": 8, \"learning rate\": 6, \"log(x)\": 9, \"β\": 3}";

static struct space *space_of(void)
{
    struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml(space_yaml, &s, &err), err);
    return s;
}

static struct config *config_of(const struct space *s, const char *text)
{
    struct config *c = NULL;
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    ck_ok(config_from_json(s, j, "", &c, &err), err);
    return c;
}

static const struct {
    const char *text;
    bool want;
} cases[] = {
    {"batch * 2 <= 128", true},
    {"a/b == 8 and a / b == 2.5", true}, /* the longest name */
    {"`a/b` == 8 and `a`/`b` == 2.5", true},
    {"`learning rate` + β == 9", true},
    {"`log(x)` == 9 and log(batch) < 5", true},
    {"batch * 2 < 128", false},
    {"1 + 2 * 3 == batch - 57", true},
    {"(1 + 2) * 3 == batch - 55", true},
    {"10 - 4 - 3 == fix", true},
    {"2 ** 3 ** 2 == 8 * batch", true},
    {"-2 ** 2 == -4 and a == 5", true},
    {"2 ** -1 == fix - 2.5", true},
    {"100 / 8 / 2 == x + 8.75", true},
    {"7 % 3 == 1 and -7 % 3 == 2 and 7 % -3 == -2 and a > 0", true},
    {"x == -2.5 and x < 0 and -x > 2.25e0", true},
    {"1 < b < a <= 5 < batch", true},
    {"1 < b < a < 5", false},
    {"not a < b", true},
    {"not not a < b", false},
    {"a < b or b < a", true},
    {"a > b and b > a or a == 5", true},
    {"a == 5 or b == 1 and b == 3", true},
    {"min(a, b, 1) == 1 and max(a, b) == 5", true},
    {"min == 4 and min(min, 9) == 4", true},
    {"abs(x) == 2.5 and floor(x) == -3 and ceil(x) == -2", true},
    {"log2(batch) == 6 and sqrt(batch) == 8", true},
    {"exp(log(batch)) > 63.999 and exp(log(batch)) < 64.001", true},
    {"opt == 'adamw'", true},
    {"opt == \"it's\"", false},
    {"'sgd' != opt", true},
    {"opt == 'größe'", false},
    {"opt in ['sgd', 'adamw']", true},
    {"opt not in ['sgd', 'adamw']", false},
    {"size in [16, 64]", false},
    {"size * 2 == batch", true},
    {"a in [1, -5, 5]", true},
    {"mixed == 'one' and mixed != 1 and mixed != true", true},
    {"mixed in [1, 'one']", true},
    {"true == (a == 5)", true},
    {"(a == 5) != (b == 5)", true},
    /* names that hold signs, and names that are words of the language */
    {"a-b == 7", true},
    {"a - b == 3", true},
    {"a -b == 3", true},
    {"`a`-`b` == 3", true},
    {"a-1 == 4", true},
    {"`in` == 1 and `in` in [1]", true},
    {"`min` == 4", true},
    /* a constraint that is not finite is not satisfied, also when it is negated */
    {"batch / accumulate < 1", false},
    {"batch / accumulate > 1", false},
    {"not batch / accumulate < 1", false},
    {"batch % accumulate >= 0", false},
    {"sqrt(x) > 0 or log(accumulate) < 0 or true", false},
    {"exp(batch * batch) > 0", false},
    {"x ** 0.5 != 1", false},
    {"0 ** -1 > a", false},
    {"batch / accumulate in [1]", false},
    {"accumulate == 0 or batch / accumulate < 1", true},
    {"accumulate != 0 and batch / accumulate < 1", false},
    /* nesterov is not active */
    {"nesterov", true},
    {"not nesterov", true},
    {"nesterov and a == 0", true},
    {"a == 0 or nesterov == true and batch / 0 > 1", true},
    {" a\t==\n5 ", true},
};

START_TEST(evaluates)
{
    AS_AUTO(space_freep) struct space *s = space_of();
    AS_AUTO(config_freep) struct config *c = config_of(s, config_text);
    AS_AUTO(expr_freep) struct expr *e = NULL;
    struct as_err err = {0};
    ck_ok(expr_parse(s, cases[_i].text, "/parameter_constraints/0", &e, &err), err);
    ck_assert_msg(expr_holds(e, s, c) == cases[_i].want, "%s", cases[_i].text);
    ck_assert_str_eq(expr_text(e), cases[_i].text);
}
END_TEST

static const struct {
    const char *text, *part;
} refusals[] = {
    {"", "column 1: expected a number, a name or (, found the end"},
    {"   ", "column 4: expected a number"},
    {"bacth * 2 < 4", "column 1: unknown name 'bacth'; did you mean 'batch'?"},
    {"a + 1 <= bacth", "column 10: unknown name 'bacth'"},
    {"__import__('os')", "column 1: unknown name '__import__'"},
    {"abs == 3", "column 1: unknown name 'abs'"},
    {"`ab` == 3", "column 1: unknown name 'ab'"},
    {"`ab", "column 1: the name has no closing `"},
    {"opt == 'sgd", "column 8: the text has no closing '"},
    {"a = 3", "column 3: found =, to compare write =="},
    {"a > .5",
     "column 5: found a character that has no meaning here: a dot stands between two digits"},
    {"a ! 3", "column 3: found a character"},
    {"a == 3;", "column 7: found a character"},
    {"größe == 1", "column 1: unknown name 'größe'"},
    {"1 < γ", "column 5: unknown name 'γ'; did you mean 'β'?"},
    {"a ≤ 3", "column 3: found a character"},
    {"learning rate < 1", "column 1: unknown name 'learning'; the name 'learning rate' stands "
                          "between backquotes: `learning rate`"},
    {"`learning` < 1", "column 1: unknown name 'learning'"},
    {"opt == 'größe' und a", "column 16: unknown name 'und'"},
    {"a == 3 b", "column 8: expected an operator or the end"},
    {"(a == 3", "column 8: expected )"},
    {"a ==", "column 5: expected a number, a name or (, found the end"},
    {"a == * 3", "column 6: expected a number"},
    {"a + 1", "column 1: it is a number, expected a comparison"},
    {"opt", "column 1: it is a text"},
    {"mixed", "column 1: it is a value of several types"},
    {"1 < 2", "column 1: it names no parameter"},
    {"opt < 'z'", "column 5: < needs a number, found a text"},
    {"mixed < 3", "column 7: < needs a number, found a value of several types"},
    {"a + (b == 2) > 0", "column 3: + needs a number, found a boolean"},
    {"-opt == 'sgd'", "column 1: - needs a number, found a text"},
    {"a and b == 2", "column 3: and needs a boolean, found a number"},
    {"b == 2 or a", "column 8: or needs a boolean, found a number"},
    {"not a", "column 1: not needs a boolean, found a number"},
    {"opt == 3", "column 5: a text is never equal to a number"},
    {"a == 'x'", "column 3: a number is never equal to a text"},
    {"nesterov == 1", "a boolean is never equal to a number"},
    {"opt == 'sdg'", "column 5: 'opt' never takes this value"},
    {"'sdg' != opt", "'opt' never takes this value"},
    {"opt in ['sgd', 'adam']", "column 16: 'opt' never takes this value"},
    {"opt in ['sgd', 3]", "column 16: a text is never equal to a number"},
    {"opt in []", "column 9: expected a number, a text, true or false"},
    {"opt in ['sgd' 'adamw']", "column 15: expected ]"},
    {"opt in 'sgd'", "column 8: expected ["},
    {"a in [b]", "column 7: expected a number, a text"},
    {"a not b", "column 7: expected in"},
    {"layers == 'a'", "column 1: values of 'layers' are lists or null, which `when`"},
    {"a > 1 and none == 1", "column 11: values of 'none' are lists or null"},
    {"a == b == 3", "column 8: only < <= > >= can follow one another"},
    {"a < b == 3", "column 7: only < <= > >= can follow one another"},
    {"a in [1] in [2]", "column 10: only"},
    {"abs(a, b) > 0", "column 1: abs() takes one number"},
    {"max(a) > 0", "column 1: max() takes two numbers or more"},
    {"max() > 0", "column 5: expected a number"},
    {"log(opt) > 0", "column 1: log() needs a number, found a text"},
    {"log(a > 0", "column 1: log() needs a number, found a boolean"},
    {"log(a", "column 6: expected )"},
    {"1e999 > a", "column 1: the number is too large"},
    {"1.5.2 > a", "column 4: found a character"},
    {"a > .5", "column 5: found a character"},
};

START_TEST(refuses)
{
    AS_AUTO(space_freep) struct space *s = space_of();
    struct expr *e = NULL;
    struct as_err err = {0};
    as_status st = expr_parse(s, refusals[_i].text, "/parameter_constraints/7", &e, &err);
    ck_assert_msg(st == AS_E_INVAL, "%s: %s", refusals[_i].text, as_status_name(st));
    ck_assert_msg(strstr(err.msg, refusals[_i].part), "%s: '%s' is not in: %s", refusals[_i].text,
                  refusals[_i].part, err.msg);
    ck_assert_str_eq(err.pointer, "/parameter_constraints/7");
    ck_assert_ptr_null(e);
}
END_TEST

static as_status parse_repeated(const struct space *s, const char *head, const char *part, int n,
                                const char *tail, struct as_err *err)
{
    AS_AUTO(str_done) struct str text = {0};
    AS_AUTO(expr_freep) struct expr *e = NULL;
    str_puts(&text, head);
    for (int i = 0; i < n; i++)
        str_puts(&text, part);
    str_puts(&text, tail);
    return expr_parse(s, str_cstr(&text), "/c", &e, err);
}

START_TEST(is_bounded)
{
    AS_AUTO(space_freep) struct space *s = space_of();
    struct as_err err = {0};
    ck_ok(parse_repeated(s, "a == 1", "+1", 120, "", &err), err);
    ck_fails(parse_repeated(s, "a == 1", "+1", 200, "", &err), AS_E_TOO_LARGE, err, "256 parts");
    ck_fails(parse_repeated(s, "a == 1", " ", 1000, "", &err), AS_E_TOO_LARGE, err, "1006 bytes");
    ck_ok(parse_repeated(s, "a == ", "-", EXPR_MAX_DEPTH, "1", &err), err);
    ck_fails(parse_repeated(s, "a == ", "-", EXPR_MAX_DEPTH + 1, "1", &err), AS_E_TOO_LARGE, err,
             "nested deeper than 32");
    ck_fails(parse_repeated(s, "", "(", 900, "", &err), AS_E_TOO_LARGE, err, "nested deeper");
    ck_fails(parse_repeated(s, "", "not ", 200, "a == 1", &err), AS_E_TOO_LARGE, err, "deeper");
    ck_fails(parse_repeated(s, "a == 2", "**2", 100, "", &err), AS_E_TOO_LARGE, err, "deeper");
    ck_fails(parse_repeated(s, "", "abs(", 100, "", &err), AS_E_TOO_LARGE, err, "deeper");
    ck_ok(parse_repeated(s, "a in [1", ",1", EXPR_MAX_CONSTS - 1, "]", &err), err);
    ck_fails(parse_repeated(s, "a in [1", ",1", EXPR_MAX_CONSTS, "]", &err), AS_E_TOO_LARGE, err,
             "256 values");
}
END_TEST

START_TEST(names_what_it_names)
{
    AS_AUTO(space_freep) struct space *s = space_of();
    AS_AUTO(expr_freep) struct expr *e = NULL;
    struct as_err err = {0};
    ck_ok(expr_parse(s, "a-b < batch or opt == 'sgd' or batch > 3", "/c", &e, &err), err);
    for (size_t i = 0; i < s->n; i++) {
        const char *name = s->params[i].name;
        bool want = as_streq(name, "a-b") || as_streq(name, "batch") || as_streq(name, "opt");
        ck_assert_int_eq(expr_names(e, i), want);
    }
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    AS_AUTO(space_freep) struct space *s = space_of();
    for (size_t nth = 1;; nth++) {
        AS_AUTO(expr_freep) struct expr *e = NULL;
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = expr_parse(s, "opt in ['sgd'] or min(a, b, batch) * 2 < x + 1 and size > 16",
                                  "/c", &e, &err);
        as_mem_fail_nth(0);
        if (st == AS_OK) {
            ck_assert_uint_gt(nth, 5);
            break;
        }
        ck_assert_int_eq(st, AS_E_NOMEM);
        ck_assert_ptr_null(e);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/expr");
    TCase *t = tcase_create("expr");
    tcase_add_loop_test(t, evaluates, 0, AS_ARRAY_LEN(cases));
    tcase_add_loop_test(t, refuses, 0, AS_ARRAY_LEN(refusals));
    tcase_add_test(t, is_bounded);
    tcase_add_test(t, names_what_it_names);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
