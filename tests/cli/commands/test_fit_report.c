/* The report of `assay fit`, of answers as the server gives them. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands/fit_report.h"
#include "tests/support/check_main.h"

static struct as_err err;

static json_t *read(const char *text)
{
    json_t *j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return j;
}

/* An ensemble of two trials, calibrated for F1, behind which a slower model was left. */
struct answers {
    json_t *ensemble, *sweep, *version, *first, *trials, *remarks;
};

static void answers_init(struct answers *a)
{
    a->ensemble =
        read("{\"method\":\"greedy\",\"metric\":\"f1\",\"is_sweep_metric\":true,\"rows\":200,"
             "\"value\":0.75,\"interval\":{\"low\":0.5,\"high\":0.875,\"probability\":0.9},"
             "\"combine\":{\"kind\":\"mean\",\"calibration\":{\"slope\":0.5,\"bias\":0.25},"
             "\"threshold\":0.125}}");
    a->sweep = read("{\"id\":\"t-fit\",\"counts\":{\"completed\":7},\"best\":{\"value\":0.5}}");
    a->version = read("{\"model\":\"t\",\"version\":2,\"size\":2000,"
                      "\"outputs\":{\"classes\":[\"no\",\"yes\"]}}");
    a->first = read("{\"model\":\"t\",\"version\":1}");
    a->trials = read("[{\"params\":{\"kind\":\"mlp\"}},{\"params\":{\"kind\":\"mlp\"}}]");
    a->remarks = read("[]");
}

static void answers_done(struct answers *a)
{
    json_t *all[] = {a->ensemble, a->sweep, a->version, a->first, a->trials, a->remarks};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        json_decref(all[i]);
}

static struct fit_result result_of(const struct answers *a, const struct fit_choice *choice,
                                   const struct fit_slower *slower)
{
    return (struct fit_result){.choice = choice,
                               .sweep = a->sweep,
                               .version = a->version,
                               .trials = a->trials,
                               .metric = "val_f1",
                               .data = "t.csv",
                               .remarks = a->remarks,
                               .row_ms = 12.5,
                               .models = 3,
                               .row_time_ms = 20,
                               .slower = slower,
                               .size_bytes = 50000000,
                               .exports = true};
}

static void says(const struct fit_result *r, const char *words, bool expected)
{
    AS_AUTO(str_done) struct str b = {0};
    fit_report_format(r, &b);
    ck_assert_msg((strstr(str_cstr(&b), words) != NULL) == expected, "'%s' in:\n%s", words,
                  str_cstr(&b));
}

START_TEST(calibrated_and_faster)
{
    AS_AUTO(answers_done) struct answers a;
    answers_init(&a);
    const struct fit_choice choice = {.ensemble = a.ensemble, .value = 0.75, .bytes = 2000};
    const struct fit_slower slower = {a.first, 0.875, 31.25};
    struct fit_result r = result_of(&a, &choice, &slower);
    says(&r, "Score        f1 0.75 (90 % interval 0.50 to 0.88), 200 rows", true);
    says(&r,
         "Made of      a greedy ensemble of 2 mlp, with 3 models of folds, calibrated; 'yes' where "
         "its probability is above 0.125\n",
         true);
    says(&r,
         "One row      12.5 ms\n"
         "             at most 20 ms: t@1 takes 31.2 ms and has f1 0.875, this one 0.75 "
         "(--row-time)\n",
         true);
    says(&r, "no faster model", false);
    says(&r, "             but ", false);
    JSON_AUTO doubts = json_pack("[s]", "`leak`: its values say what `y` is");
    r.doubts = doubts;
    says(&r, "             but `leak`: its values say what `y` is\n", true);
    JSON_AUTO j = fit_report_json(&r);
    const json_t *first = json_object_get(j, "slower");
    ck_assert_int_eq(json_integer_value(json_object_get(first, "version")), 1);
    ck_assert_double_eq(json_number_value(json_object_get(first, "row_ms")), 31.25);
}
END_TEST

/* Trials of a second layer are counted, and its sweep is named. */
START_TEST(two_layers)
{
    AS_AUTO(answers_done) struct answers a;
    answers_init(&a);
    const struct fit_choice choice = {.ensemble = a.ensemble, .value = 0.75, .bytes = 2000};
    const struct fit_slower slower = {0};
    struct fit_result r = result_of(&a, &choice, &slower);
    says(&r, "layer", false);
    r.layer = "t-fit-layer2";
    says(&r, "layer: assay show t-fit-layer2\n", true);
    says(&r, "of them in a second layer", false);
    ck_assert_int_eq(
        json_object_set_new(json_array_get(a.trials, 1), "sweep", json_string("t-fit-layer2")), 0);
    says(&r, "greedy ensemble of 2 mlp, 1 of them in a second layer, with 3 models", true);
    JSON_AUTO j = fit_report_json(&r);
    ck_assert_str_eq(json_string_value(json_object_get(j, "layer")), "t-fit-layer2");
}
END_TEST

/* The limit is missed: one trial, which is not calibrated. */
START_TEST(too_slow_and_alone)
{
    AS_AUTO(answers_done) struct answers a;
    answers_init(&a);
    const struct fit_choice choice = {
        .ensemble = a.ensemble, .single = true, .value = 0.5, .bytes = 2000};
    const struct fit_slower slower = {0};
    struct fit_result r = result_of(&a, &choice, &slower);
    r.row_time_ms = 5;
    says(&r, "             more than 5 ms (--row-time): no faster model was found\n", true);
    says(&r, "calibrated", false);
    says(&r, "at most", false);
    JSON_AUTO j = fit_report_json(&r);
    ck_assert(json_is_null(json_object_get(j, "slower")));
    r.row_ms = NAN;
    says(&r, "One row", false);
}
END_TEST

/* A figure has the digits that its interval leaves it. */
START_TEST(digits)
{
    static const struct {
        const char *figure, *says;
    } cases[] = {{"0.900702,\"interval\":{\"low\":0.870342,\"high\":0.931063,\"probability\":0.9}",
                  "Score        f1 0.901 (90 % interval 0.870 to 0.931), 200 rows"},
                 {"56163.4386,\"interval\":{\"low\":50124.6,\"high\":62202.2,\"probability\":0.9}",
                  "f1 56163 (90 % interval 50125 to 62202)"},
                 {"2e-9,\"interval\":{\"low\":1e-9,\"high\":3e-9,\"probability\":0.9}",
                  "f1 2e-09 (90 % interval 1e-09 to 3e-09)"},
                 {"0.98765432",
                  "f1 0.987654, 200 rows, each predicted by models that had not seen it; too "
                  "few for an interval\n"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(answers_done) struct answers a;
        AS_AUTO(str_done) struct str b = {0};
        answers_init(&a);
        str_printf(&b, "{\"metric\":\"f1\",\"rows\":200,\"value\":%s}", cases[i].figure);
        json_decref(a.ensemble);
        a.ensemble = read(str_cstr(&b));
        const struct fit_choice choice = {.ensemble = a.ensemble, .bytes = 2000};
        const struct fit_slower slower = {0};
        const struct fit_result r = result_of(&a, &choice, &slower);
        says(&r, cases[i].says, true);
    }
}
END_TEST

START_TEST(a_test_figure_without_a_value)
{
    AS_AUTO(answers_done) struct answers a;
    answers_init(&a);
    const struct fit_choice choice = {.ensemble = a.ensemble, .value = 0.75, .bytes = 2000};
    const struct fit_slower slower = {0};
    const struct fit_result r = result_of(&a, &choice, &slower);
    ck_assert_int_eq(json_object_set_new(a.ensemble, "metric", json_string("auc")), 0);
    ck_assert_int_eq(json_object_set_new(a.ensemble, "test",
                                         read("{\"rows\":10,\"ensemble\":{\"value\":\"NaN\"}}")),
                     0);
    says(&r, "Test         auc has no value on the 10 test rows: it takes rows of two classes\n",
         true);
    ck_assert_int_eq(
        json_object_set_new(a.ensemble, "test", read("{\"rows\":10,\"ensemble\":{\"value\":0.5}}")),
        0);
    says(&r, "Test         auc 0.5, on 10 test rows\n", true);
}
END_TEST

/* Nothing is as small as was asked for: the smallest is kept, and what that costs is said. */
START_TEST(larger_than_asked_for)
{
    AS_AUTO(answers_done) struct answers a;
    answers_init(&a);
    struct fit_choice choice = {.ensemble = a.ensemble, .value = 0.75, .bytes = 2000};
    const struct fit_slower slower = {0};
    struct fit_result r = result_of(&a, &choice, &slower);
    r.size_bytes = 1000;
    says(&r, "Size         more than 1.0 kB (--size): no smaller model was found\n", true);
    choice.costs = true;
    choice.larger_bytes = 324000;
    choice.larger_value = 0.875;
    says(&r,
         "more than 1.0 kB (--size): no smaller model was found; a model of 324 kB has f1 0.875, "
         "this one 0.75\n",
         true);
    r.size_bytes = 3000;
    says(&r,
         "Size         at most 3.0 kB (--size): a model of 324 kB has f1 0.875, this one 0.75\n",
         true);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("fit report");
    TCase *t = tcase_create("fit report");
    tcase_add_test(t, calibrated_and_faster);
    tcase_add_test(t, two_layers);
    tcase_add_test(t, too_slow_and_alone);
    tcase_add_test(t, digits);
    tcase_add_test(t, a_test_figure_without_a_value);
    tcase_add_test(t, larger_than_asked_for);
    suite_add_tcase(s, t);
    return s;
}
