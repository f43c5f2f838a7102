/* The documents of sweeps that train the best trial of another one again. */
#include "cli/commands/follow_up.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static struct as_err err;

static void document_is(const char *sweep, size_t samples, const char *expected)
{
    JSON_AUTO s = json_of(sweep);
    JSON_AUTO want = json_of(expected);
    JSON_AUTO doc = NULL;
    ck_ok(follow_up_document(follow_up_find("bagging"), s, samples, &doc, &err), err);
    AS_AUTO(as_freep) char *text = json_format(doc);
    ck_assert_msg(json_equal(doc, want), "%s", text);
}

START_TEST(fixes_the_best_configuration)
{
    document_is(
        "{'id': 'mlp-2', 'best': {'number': 7, 'params': {'lr': 0.1, 'opt': 'adamw', 'layers': [8, "
        "4]}},"
        " 'document': {'name': 'mlp', 'metric': {'name': 'val_auc', 'goal': 'maximize'},"
        " 'parameters': {'lr': {'type': 'float', 'min': 0, 'max': 1}, 'opt': {'type': "
        "'categorical',"
        " 'values': ['sgd', 'adamw']}, 'momentum': {'type': 'float', 'min': 0, 'max': 1, 'when': "
        "{'opt':"
        " 'sgd'}}, 'layers': {'type': 'categorical', 'values': [[8, 4], [16]]}},"
        " 'parameter_constraints': ['lr < 1'], 'forbidden': [{'lr': 0}], 'search': {'method': "
        "'gp', 'seed':"
        " 3, 'initial_trials': 5}, 'limits': {'max_trials': 99, 'target': 1, 'trial_timeout': "
        "'5m'},"
        " 'trial': {'train': {'dataset': 'd', 'epochs': 3, 'optimizer': {'lr': '${lr}'}}}, 'tags': "
        "['x']}}",
        12,
        "{'name': 'mlp-bagging', 'description': 'The configuration of mlp-2/7, on 12 bootstrap "
        "samples',"
        " 'metric': {'name': 'val_auc', 'goal': 'maximize'},"
        " 'parameters': {'lr': {'type': 'constant', 'value': 0.1}, 'opt': {'type': 'constant', "
        "'value':"
        " 'adamw'}, 'layers': {'type': 'categorical',"
        " 'values': [[8, 4]]}, 'resample': {'type': 'int', 'min': 1, 'max': 12}},"
        " 'search': {'method': 'grid', 'seed': 3}, 'limits': {'trial_timeout': '5m'}, 'resources': "
        "{'group': "
        "12},"
        " 'trial': {'train': {'dataset': 'd', 'epochs': 3, 'optimizer': {'lr': '${lr}'}, "
        "'resample':"
        " '${resample}'}}, 'ensemble': {'method': 'average', 'size': 12}, 'tags': ['x']}");
}
END_TEST

/* A name that is taken, a name that is too long, and trials of several ranks, which share no
 * process. */
START_TEST(names_and_ranks)
{
    document_is(
        "{'id': 'a', 'best': {'number': 0, 'params': {'resample': 2}}, 'document': {'name':"
        " 'a23456789012345678901234567890123456789012345678901234567890123', 'parameters':"
        " {'resample': {'type': 'int', 'min': 1, 'max': 3}}, 'resources': {'ranks': 2, 'group':"
        " 1}, 'trial': {'train': {'resample': '${resample}'}}}}",
        2,
        "{'name': 'a234567890123456789012345678901234567890123456789012345-bagging',"
        " 'description': 'The configuration of a/0, on 2 bootstrap samples', 'parameters':"
        " {'resample': {'type': 'constant', 'value': 2}, 'resample_of_bagging': {'type': 'int',"
        " 'min': 1, 'max': 2}}, 'search': {'method': 'grid'}, 'resources': {'ranks': 2, 'group':"
        " 1}, 'trial': {'train': {'resample': '${resample_of_bagging}'}}, 'ensemble': {'method':"
        " 'average', 'size': 2}}");
}
END_TEST

/* Fields of a kind that did not win: their parameters are not active in the best trial, so they are
 * left out, as its own document left them out. */
START_TEST(leaves_out_what_the_best_trial_lacks)
{
    document_is(
        "{'id': 'k', 'best': {'number': 1, 'params': {'kind': 'boosted_trees', 'rate': 0.1}},"
        " 'document': {'name': 'k', 'parameters': {'kind': {'type': 'categorical', 'values': "
        "['mlp',"
        " 'boosted_trees']}, 'rate': {'type': 'float', 'min': 0.1, 'max': 1, 'when': {'kind':"
        " 'boosted_trees'}}, 'width': {'type': 'int', 'min': 1, 'max': 9, 'when': {'kind': "
        "'mlp'}}},"
        " 'trial': {'train': {'dataset': 'd', 'epochs': 9, 'model': {'kind': '${kind}',"
        " 'learning_rate': '${rate}', 'layers': ['${width}', 8, '${width}'], 'dropout':"
        " '${width:-0.5}', 'norm': 'batch'}}}}}",
        1,
        "{'name': 'k-bagging', 'description': 'The configuration of k/1, on 1 bootstrap samples',"
        " 'parameters': {'kind': {'type': 'constant', 'value': 'boosted_trees'}, 'rate': {'type':"
        " 'constant', 'value': 0.1}, 'resample': {'type': 'int', 'min': 1, 'max': 1}}, 'search':"
        " {'method': 'grid'}, 'trial': {'train': {'dataset': 'd', 'epochs': 9, 'model': {'kind':"
        " '${kind}', 'learning_rate': '${rate}', 'layers': [8], 'dropout': 0.5, 'norm': 'batch'},"
        " 'resample': '${resample}'}}, 'ensemble': {'method': 'average', 'size': 1}}");
}
END_TEST

START_TEST(refuses)
{
    JSON_AUTO command =
        json_of("{'id': 'c', 'best': {'params': {}}, 'document': {'trial': {'command': []}}}");
    JSON_AUTO young = json_of("{'id': 'y', 'best': null, 'document': {'trial': {'train': {}}}}");
    json_t *doc = NULL;
    ck_fails(follow_up_document(follow_up_find("bagging"), command, 3, &doc, &err), AS_E_INVAL, err,
             "'c' does not use the built-in");
    ck_fails(follow_up_document(follow_up_find("bagging"), young, 3, &doc, &err), AS_E_INVAL, err,
             "'y' has no best trial");
    ck_assert_ptr_null(doc);
}
END_TEST

START_TEST(snapshots)
{
    JSON_AUTO sweep = json_of(
        "{'id': 'm', 'best': {'number': 3, 'params': {'lr': 0.1, 'kind': 'mlp'}}, "
        "'document': {'name': 'm', 'parameters': {'lr': {'type': 'float', 'min': 0, 'max': "
        "1}, 'kind': {'type': 'categorical', 'values': ['mlp', 'random_forest']}}, 'limits': "
        "{'max_trials': 4}, 'ensemble': {'method': 'average'}, 'trial': {'train': {'epochs': "
        "9, 'patience': 2, 'model': {'kind': '${kind}'}, 'schedule': {'kind': 'step', "
        "'min_lr': 0.01}}}}}");
    JSON_AUTO want = json_of(
        "{'name': 'm-snapshot', 'description': 'The configuration of m/3, with 4 snapshots', "
        "'parameters': {'lr': {'type': 'constant', 'value': 0.1}, 'kind': {'type': 'constant', "
        "'value': 'mlp'}}, 'limits': {}, 'search': {'method': 'grid'}, 'trial': {'train': "
        "{'epochs': "
        "9, 'model': {'kind': '${kind}'}, 'schedule': {'kind': 'cosine', 'min_lr': 0.01, 'cycles': "
        "4, 'snapshots': 4}}}}");
    JSON_AUTO doc = NULL;
    json_t *none = NULL;
    ck_ok(follow_up_document(follow_up_find("snapshot"), sweep, 4, &doc, &err), err);
    AS_AUTO(as_freep) char *text = json_format(doc);
    ck_assert_msg(json_equal(doc, want), "%s", text);
    json_t *params = json_object_get(json_object_get(sweep, "best"), "params");
    (void)json_object_set_new(params, "kind", json_string("random_forest"));
    ck_fails(follow_up_document(follow_up_find("snapshot"), sweep, 4, &none, &err), AS_E_INVAL, err,
             "of random_forest");
}
END_TEST

START_TEST(boosting)
{
    JSON_AUTO sweep =
        json_of("{'id': 'm', 'best': {'number': 3, 'params': {'stage': 0.1}}, 'document': {'name': "
                "'m', 'parameters': {'stage': {'type': 'float', 'min': 0, 'max': 1}}, 'limits': "
                "{'max_trials': 4, 'trial_timeout': '5m'}, 'resources': {'group': 8}, 'trial': "
                "{'train': {'epochs': 9, 'buckets': 'b'}}}}");
    JSON_AUTO want = json_of(
        "{'name': 'm-boosting', 'description': 'The configuration of m/3, in 5 stages of "
        "boosting', "
        "'parameters': {'stage': {'type': 'constant', 'value': 0.1}, 'stage_of_boosting': {'type': "
        "'int', 'min': 0, 'max': 4}}, 'limits': {'trial_timeout': '5m', 'max_concurrent_trials': "
        "1, "
        "'max_failed_trials': 1}, 'resources': {}, 'search': {'method': 'grid'}, 'ensemble': "
        "{'method': 'bucketing'}, 'trial': {'train': {'epochs': 9, 'boost': {'stage': "
        "'${stage_of_boosting}'}}}}");
    JSON_AUTO doc = NULL;
    ck_ok(follow_up_document(follow_up_find("boosting"), sweep, 5, &doc, &err), err);
    AS_AUTO(as_freep) char *text = json_format(doc);
    ck_assert_msg(json_equal(doc, want), "%s", text);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("follow_up");
    TCase *t = tcase_create("follow_up");
    tcase_add_test(t, fixes_the_best_configuration);
    tcase_add_test(t, names_and_ranks);
    tcase_add_test(t, leaves_out_what_the_best_trial_lacks);
    tcase_add_test(t, refuses);
    tcase_add_test(t, snapshots);
    tcase_add_test(t, boosting);
    suite_add_tcase(s, t);
    return s;
}
