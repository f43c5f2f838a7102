/* Which trials a further layer sees, and the document of its sweep. */
#include "cli/commands/layer_sweep.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static struct as_err err;

static void chosen_are(const char *own, const char *best, size_t n, const char *expected)
{
    JSON_AUTO a = json_of(own);
    JSON_AUTO b = best ? json_of(best) : NULL;
    JSON_AUTO want = json_of(expected);
    JSON_AUTO list = NULL;
    JSON_AUTO numbers = json_array();
    size_t i;
    const json_t *t;
    ck_ok(layer_choose(a, b, n, &list, &err), err);
    json_array_foreach(list, i, t)
        ck_assert_int_eq(json_array_append(numbers, json_object_get(t, "number")), 0);
    AS_AUTO(as_freep) char *text = json_format(numbers);
    ck_assert_msg(json_equal(numbers, want), "%s", text);
}

START_TEST(members_come_before_the_best)
{
    static const char own[] = "{'members': [{'number': 4, 'weight': 0.2}, {'number': 9, 'weight': "
                              "0.5}, {'number': 2, 'weight': 0.3}]}";
    static const char best[] = "{'members': [{'number': 9, 'weight': 0.25}, {'number': 7, "
                               "'weight': 0.25}, {'number': 1, 'weight': 0.25}]}";
    chosen_are(own, best, 2, "[9, 2]");
    chosen_are(own, best, 4, "[9, 2, 4, 7]");
    chosen_are(own, best, 9, "[9, 2, 4, 7, 1]");
    chosen_are("{'state': 'none'}", NULL, 3, "[]");
    /* of two sweeps: a number alone is no trial */
    chosen_are("{'members': [{'sweep': 'a', 'number': 1, 'weight': 0.5}, {'sweep': 'b', 'number': "
               "1, 'weight': 0.4}, {'sweep': 'b', 'number': 2, 'weight': 0.1}]}",
               "{'members': [{'sweep': 'b', 'number': 1, 'weight': 0.5}, {'sweep': 'a', 'number': "
               "2, 'weight': 0.5}]}",
               9, "[1, 1, 2, 2]");
}
END_TEST

#define SWEEP(name, stack, validation)                                                             \
    "{'id': 'x-1', 'document': {'name': '" name "', 'metric': {'name': 'val_auc', 'goal': "        \
    "'maximize'}, 'parameters': {'lr': {'type': 'float', 'min': 0, 'max': 1}}, 'early_stopping': " \
    "{'method': 'asha'}, 'ensemble': {'method': 'stacking'}, 'search': {'method': 'gp', 'seed': "  \
    "3, 'prior': []}, 'limits': {'max_trials': 99, 'wall_time': '5m', 'trial_timeout': '1m'}, "    \
    "'trial': {'train': {'dataset': 'd', 'lr': '${lr}', " stack "'validation': " validation "}}}}"

static void document_is(const char *sweep, int64_t time_ms, const char *expected)
{
    JSON_AUTO s = json_of(sweep);
    JSON_AUTO trials = json_of("[{'number': 4, 'params': {'lr': 0.5}}, {'number': 2, 'params': "
                               "{'lr': 0.25}}]");
    JSON_AUTO want = json_of(expected);
    JSON_AUTO doc = NULL;
    ck_ok(layer_document(s, trials, time_ms, &doc, &err), err);
    AS_AUTO(as_freep) char *text = json_format(doc);
    ck_assert_msg(json_equal(doc, want), "%s", text);
}

#define DOCUMENT(name, limits)                                                                     \
    "{'name': '" name "', 'description': '2 configurations of x-1, which see what these trials "   \
    "predicted', 'metric': {'name': 'val_auc', 'goal': 'maximize'}, 'parameters': {'lr': "         \
    "{'type': "                                                                                    \
    "'float', 'min': 0, 'max': 1}}, 'search': {'method': 'random', 'seed': 3}, 'limits': {" limits \
    "'trial_timeout': '1m'}, 'trial': {'train': {'dataset': 'd', 'lr': '${lr}', 'validation': "    \
    "{'folds': 5}, 'stack': ['x-1/4', 'x-1/2']}}}"

START_TEST(the_same_configurations_see_predictions)
{
    document_is(SWEEP("x", "", "{'folds': 5}"), 0, DOCUMENT("x-layer2", "'max_trials': 2, "));
    document_is(SWEEP("x-layer2", "'stack': ['y/1'], ", "{'folds': 5}"), 7000,
                DOCUMENT("x-layer3", "'max_trials': 2, 'wall_time': '7000ms', "));
    document_is(SWEEP("x-layer2", "", "{'folds': 5}"), 0, /* only its name is like that */
                DOCUMENT("x-layer2-layer2", "'max_trials': 2, "));
    JSON_AUTO trials = json_of("[{'number': 4, 'params': {'lr': 0.5}}]");
    JSON_AUTO want = json_of("[{'params': {'lr': 0.5}}]");
    JSON_AUTO first = layer_first_trials(trials);
    ck_assert(json_equal(first, want));
}
END_TEST

/* Trials of a narrower sweep are named by their own. */
START_TEST(trials_of_two_sweeps)
{
    JSON_AUTO s = json_of(SWEEP("x-wider", "", "{'folds': 5}"));
    JSON_AUTO trials = json_of("[{'number': 4, 'params': {}}, {'sweep': 'x-0', 'number': 4, "
                               "'params': {}}]");
    JSON_AUTO doc = NULL;
    JSON_AUTO want = json_of("['x-1/4', 'x-0/4']");
    ck_ok(layer_document(s, trials, 0, &doc, &err), err);
    const json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    ck_assert(json_equal(json_object_get(train, "stack"), want));
}
END_TEST

START_TEST(what_has_no_folds_is_refused)
{
    JSON_AUTO s = json_of(SWEEP("x", "", "{'fraction': 0.2}"));
    JSON_AUTO program = json_of("{'id': 'p', 'document': {'trial': {'command': ['a']}}}");
    JSON_AUTO folds = json_of(SWEEP("x", "", "{'folds': 5}"));
    JSON_AUTO none = json_array();
    json_t *doc = NULL;
    ck_fails(layer_document(s, none, 0, &doc, &err), AS_E_INVAL, err,
             "hold out a part of the rows");
    ck_fails(layer_document(program, none, 0, &doc, &err), AS_E_INVAL, err, "built-in trainer");
    ck_fails(layer_document(folds, none, 0, &doc, &err), AS_E_INVAL, err, "no ensemble");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("layer_sweep");
    TCase *t = tcase_create("layer_sweep");
    tcase_add_test(t, members_come_before_the_best);
    tcase_add_test(t, the_same_configurations_see_predictions);
    tcase_add_test(t, trials_of_two_sweeps);
    tcase_add_test(t, what_has_no_folds_is_refused);
    suite_add_tcase(s, t);
    return s;
}
