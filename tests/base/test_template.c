/* `${name}` in JSON trees and in plain text: kinds of values, inactive parameters, refused texts,
 * and memory that runs out. One set of parameters serves all cases. */
#include <string.h>

#include "base/json.h"
#include "base/template.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

/* Active: lr, width, opt, on, whole. Inactive: momentum. */
static const char *const params_text =
    "{\"lr\": 0.001, \"width\": 64, \"opt\": \"sgd\", \"on\": true, \"whole\": 2.0, "
    "\"odd\": \"${lr}\", \"layers\": [128, [0.5, \"a\"]], \"none\": null, "
    "\"opt/lr\": 0.5, \"β [0]\": \"x\"}";

static bool known(const void *arg, const char *name)
{
    return json_object_get(arg, name) || strcmp(name, "momentum") == 0;
}

static const struct {
    const char *tree, *want;
} trees[] = {
    {"\"${lr}\"", "0.001"},
    {"\"${width}\"", "64"},
    {"{\"a\": \"${layers}\", \"b\": \"${none}\", \"c\": [\"${none:-7}\"]}",
     "{\"a\":[128,[0.5,\"a\"]],\"b\":null,\"c\":[7]}"},
    {"\"${on}\"", "true"},
    {"\"${opt}\"", "\"sgd\""},
    {"\"w=${width}, ${lr}\"", "\"w=64, 0.001\""},
    {"\"${whole}/${on}\"", "\"2/true\""},
    {"[\"${width}\", \"${momentum}\", 3]", "[64,3]"},
    {"{\"a\": \"${momentum}\", \"b\": {\"c\": \"${lr}\"}}", "{\"b\":{\"c\":0.001}}"},
    {"{\"a\": \"x${momentum}y\"}", "{\"a\":\"xy\"}"},
    {"\"${momentum}\"", "null"},
    {"\"${momentum:-0.9}\"", "0.9"},
    {"\"${momentum:-3}\"", "3"},
    {"\"${momentum:-true}\"", "true"},
    {"\"${momentum:-plain text}\"", "\"plain text\""},
    {"\"${momentum:-'7'}\"", "\"7\""},
    {"\"${momentum:-a: b}\"", "\"a: b\""},
    {"\"${momentum:-[1]}\"", "\"[1]\""},
    {"\"${momentum:-*x}\"", "\"*x\""},
    {"\"${momentum:-}\"", "\"\""},
    {"\"m ${momentum:-0.9}\"", "\"m 0.9\""},
    {"\"${lr:-5}\"", "0.001"},
    {"\"${momentum:-${width:-5}}\"", "64"},
    {"\"${on?a:-${lr}b\"", "\"a:-${lrb\""},
    {"\"${momentum:-${none:-${momentum:-5}}}\"", "5"},
    {"\"${lr:-${width:-5}}\"", "0.001"},
    {"[\"${momentum:-${momentum}}\", 1]", "[1]"},
    {"\"a${momentum:-${opt}}b}\"", "\"asgdb}\""},
    {"\"${momentum:-$${x}\"", "\"$${x\""},
    {"\"${momentum:-${on?yes}} ${momentum:-${none:-x y}}\"", "\"yes x y\""},
    {"\"${on?--flag}\"", "\"--flag\""},
    {"[\"${on?a}\", \"${momentum?b}\", \"${lr?c}\"]", "[\"a\"]"},
    {"\"x${on?y}${momentum?z}\"", "\"xy\""},
    {"\"$${lr}\"", "\"${lr}\""},
    {"\"$$${lr}\"", "\"$${lr}\""},
    {"\"cost: 5$ $x $\"", "\"cost: 5$ $x $\""},
    {"\"${odd}\"", "\"${lr}\""}, /* what a value holds is never looked at again */
    {"\"\"", "\"\""},
    {"{\"${lr}\": [1, 2.5, null, true]}", "{\"${lr}\":[1,2.5,null,true]}"},
};

START_TEST(applies_to_trees)
{
    JSON_AUTO params = json_plain(params_text);
    JSON_AUTO tree = json_plain(trees[_i].tree);
    JSON_AUTO out = NULL;
    struct as_err err = {0};
    ck_ok(template_check(tree, "", known, params, &err), err);
    ck_ok(template_apply(tree, params, &out, &err), err);
    AS_AUTO(as_freep) char *text = json_format(out);
    ck_assert_str_eq(text, trees[_i].want);
}
END_TEST

static const struct {
    const char *in, *want;
} texts[] = {
    {"--lr=${lr}", "--lr=0.001"},
    {"${momentum}", ""},
    {"${momentum:-0.90}", "0.90"},
    {"", ""},
    {"${whole}", "2"},
    {"$${x}", "${x}"},
    {"${opt}${width}", "sgd64"},
    {"l: ${layers}, n: ${none}", "l: [128,[0.5,\"a\"]], n: null"},
    {"${none:-no}${layers:-x}", "no[128,[0.5,\"a\"]]"},
    {"--lr=${opt/lr} ${learning rate:-7} ${β [0]}", "--lr=0.5 7 x"},
};

START_TEST(applies_to_text)
{
    JSON_AUTO params = json_plain(params_text);
    AS_AUTO(as_freep) char *out = NULL;
    struct as_err err = {0};
    ck_ok(template_apply_text(texts[_i].in, params, &out, &err), err);
    ck_assert_str_eq(out, texts[_i].want);
}
END_TEST

static const struct {
    const char *tree, *pointer, *part;
} refusals[] = {
    {"{\"a\": [\"x\", \"${nope}\"]}", "/t/a/1", "there is no parameter 'nope'"},
    {"\"${HOME}\"", "/t", "write $${HOME} for"},
    {"\"${lr\"", "/t", "without its }"},
    {"\"${lr:-${opt}\"", "/t", "without its }"},
    {"\"${lr:-${opt}x}\"", "/t", "expected nothing behind the reference '${opt}'"},
    {"\"${lr:-${nope}}\"", "/t", "there is no parameter 'nope'"},
    {"\"${lr:-${9}}\"", "/t", "is not a reference"},
    {"\"${lr:-${lr:-${lr:-${lr:-${lr:-${lr:-${lr:-${lr:-${lr:-${lr}}}}}}}}}}\"", "/t",
     "more than 8 in one another"},
    {"\"${}\"", "/t", "is not a reference"},
    {"\"${ lr }\"", "/t", "is not a reference"},
    {"\"${lr-5}\"", "/t", "there is no parameter 'lr-5'"},
    {"\"${lr:5}\"", "/t", "is not a reference"},
    {"\"${lr }\"", "/t", "is not a reference"},
    {"\"${a  b}\"", "/t", "is not a reference"},
    {"\"${a b}\"", "/t", "there is no parameter 'a b'"},
    {"\"${a%b}\"", "/t", "is not a reference"},
    {"\"${9}\"", "/t", "is not a reference"},
    {"\"${args:hydra}\"", "/t", "stands for the arguments of a command"},
    {"\"${file:x.yaml}\"", "/t", "trial.files has no 'x.yaml'"},
    {"\"${file:}\"", "/t", "is not a reference"},
    {"\"${aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\"", "/t",
     "is not a reference"},
};

START_TEST(refuses)
{
    JSON_AUTO params = json_plain(params_text);
    JSON_AUTO tree = json_plain(refusals[_i].tree);
    struct as_err err = {0};
    ck_fails(template_check(tree, "/t", known, params, &err), AS_E_INVAL, err, refusals[_i].part);
    ck_assert_str_eq(err.pointer, refusals[_i].pointer);
}
END_TEST

START_TEST(lists_names_once)
{
    JSON_AUTO tree = json_plain("[\"${b} ${a}\", {\"k\": \"${b:-1}\"}, \"$${c}\", "
                                "\"${a:-${b:-${d}}}\", 3]");
    JSON_AUTO names = NULL;
    struct as_err err = {0};
    ck_ok(template_names(tree, &names, &err), err);
    AS_AUTO(as_freep) char *text = json_format(names);
    ck_assert_str_eq(text, "[\"b\",\"a\",\"d\"]");
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    JSON_AUTO params = json_plain(params_text);
    JSON_AUTO tree = json_plain("{\"a\": \"x ${lr} y\", \"b\": [\"${momentum:-[a]}\"]}");
    int failed = 0;
    for (size_t nth = 1; nth < 20; nth++) {
        json_t *out = NULL;
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = template_apply(tree, params, &out, &err);
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
    Suite *s = suite_create("template");
    TCase *t = tcase_create("template");
    tcase_add_loop_test(t, applies_to_trees, 0, AS_ARRAY_LEN(trees));
    tcase_add_loop_test(t, applies_to_text, 0, AS_ARRAY_LEN(texts));
    tcase_add_loop_test(t, refuses, 0, AS_ARRAY_LEN(refusals));
    tcase_add_test(t, lists_names_once);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
