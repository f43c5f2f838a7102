/* How `assay fit` plans single kinds of models: networks on columns of many categories, and random
 * forests within the size of a model. */
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "cli/fit/fit_first.h"
#include "cli/fit/fit_plan.h"
#include "cli/fit/fit_sweep.h"
#include "tests/support/check_main.h"

static struct as_err err;
static const struct fit_wishes usual = {.time_ms = 540000, .size_bytes = 50000000, .cores = 2};
static const struct fit_wishes patient = {
    .time_ms = 36000000, .size_bytes = 50000000, .cores = 2}; /* so that the size alone limits */

/* ---- networks on categories ---- */

static const struct fit_facts towns = {.rows = 5000,
                                       .columns = 8,
                                       .inputs = 60,
                                       .targets = 1,
                                       .categories = 3,
                                       .category_inputs = 55,
                                       .most_values = 40};

static struct fit_plan plan_with(const struct fit_facts *f, const struct fit_wishes *w)
{
    struct fit_plan p;
    ck_ok(fit_plan_make(f, w, &p, &err), err);
    return p;
}

static struct fit_plan plan_of(const struct fit_facts *f)
{
    return plan_with(f, &usual);
}

static json_t *document_of(const struct fit_plan *p, const struct fit_facts *f)
{
    AS_AUTO(str_done) struct str b = {0};
    json_t *tree = NULL;
    fit_sweep_write(p, f, "x-fit", "x", "assay fit x.csv", &b);
    ck_ok(yaml_parse(str_cstr(&b), b.len, &tree, &err), err);
    return tree;
}

/* The space of a parameter, or NULL. */
static const json_t *space_of(const json_t *document, const char *name)
{
    return json_object_get(json_object_get(document, "parameters"), name);
}

static const json_t *field_of(const json_t *document, const char *name)
{
    const json_t *train = json_object_get(json_object_get(document, "trial"), "train");
    return json_object_get(json_object_get(train, "model"), name);
}

/* How many of the first trials are networks with so many learned numbers for a category. */
static size_t count_trials(const struct fit_plan *p, const struct fit_facts *f, int width)
{
    JSON_AUTO trials = fit_first_trials(p, f);
    size_t i, n = 0;
    json_t *trial;
    json_array_foreach(trials, i, trial)
    {
        const json_t *params = json_object_get(trial, "params");
        bool is_network = as_streq(json_string_value(json_object_get(params, "kind")), "mlp");
        const json_t *own = json_object_get(params, "embedding");
        ck_assert_int_eq(own != NULL, is_network && p->embedding > 0);
        n += own && json_integer_value(own) == width;
    }
    return n;
}

/* A column of ten values or more is seen in both ways; one first trial is of the new one. */
START_TEST(networks_see_categories_in_two_ways)
{
    struct fit_facts f = towns;
    struct fit_plan p = plan_of(&f);
    JSON_AUTO document = document_of(&p, &f);
    AS_AUTO(as_freep)
    char *values = json_format(json_object_get(space_of(document, "embedding"), "values"));
    ck_assert_str_eq(values, "[0,8]");
    ck_assert_str_eq(json_string_value(field_of(document, "embedding")), "${embedding}");
    ck_assert_uint_eq(count_trials(&p, &f, 8), 1);
    ck_assert_uint_eq(count_trials(&p, &f, 0), 1);
    f.most_values = 9;
    p = plan_of(&f);
    JSON_AUTO without = document_of(&p, &f);
    ck_assert_ptr_null(space_of(without, "embedding"));
    ck_assert_ptr_null(field_of(without, "embedding"));
    ck_assert_uint_eq(count_trials(&p, &f, 8), 0);
}
END_TEST

/* Where a network with an input for each category would take too long, there is one without. */
START_TEST(many_categories_are_embedded_alone)
{
    struct fit_facts f = towns;
    f.rows = 20000;
    f.inputs = f.category_inputs = 12000;
    f.columns = f.categories = 12;
    f.most_values = 1000;
    struct fit_plan p = plan_of(&f);
    ck_assert(p.network && !p.one_hot && p.embedding == 8);
    JSON_AUTO document = document_of(&p, &f);
    const json_t *space = space_of(document, "embedding");
    ck_assert_str_eq(json_string_value(json_object_get(space, "type")), "constant");
    ck_assert_int_eq(json_integer_value(json_object_get(space, "value")), 8);
    ck_assert_uint_eq(count_trials(&p, &f, 8), 1);
    f.categories = f.most_values = f.category_inputs = 0; /* numbers */
    ck_assert(!plan_of(&f).network);
}
END_TEST

/* ---- random forests ---- */

/* The bytes of a random forest that a plan allows, by the leaves that its trees have for each row
 * with leaves of two rows or more. */
static double bytes_of(const struct fit_plan *p, double rows, double pairs, double trees_of_round)
{
    double of_weight = pairs * (p->least_weight > 2 ? 2 / p->least_weight : 1);
    return 110 * rows * of_weight * trees_of_round * (double)p->forest_trees;
}

/* A leaf of a random forest weighs four times one of an extra tree, so there are fewer trees and
 * not larger leaves. Those of 26 classes separate one class each, and have few leaves. */
START_TEST(a_random_forest_has_its_own_number_of_trees)
{
    struct fit_facts f = {.rows = 12000, .columns = 16, .inputs = 16, .targets = 1, .classes = 26};
    f.rarest = 400;
    struct fit_plan letters = plan_with(&f, &patient);
    ck_assert_uint_gt(letters.trees, 3 * letters.forest_trees);
    ck_assert_double_le(letters.least_weight, 2);
    ck_assert_double_le(bytes_of(&letters, 12000, 0.35 / 26, 26), 20e6);
    f.classes = 2;
    f.rows = 20000;
    struct fit_plan two = plan_with(&f, &patient);
    ck_assert(two.forest_trees >= 70 && two.forest_trees <= 80);
    ck_assert_double_eq(two.least_weight, 2);
    f.classes = 0;
    struct fit_plan numbers = plan_with(&f, &patient);
    ck_assert_double_le(bytes_of(&numbers, 20000, 0.25, 1), 1.2 * 20e6);
    f.rows = 500;
    ck_assert_uint_eq(plan_with(&f, &patient).forest_trees, 300);
    ck_assert_double_eq(plan_with(&f, &patient).least_weight, 1);
}
END_TEST

/* Three numbers of trees in one field: rounds of boosting, a random forest's, extra trees'. */
START_TEST(the_document_has_both_numbers)
{
    struct fit_facts f = {.rows = 12000, .columns = 16, .inputs = 16, .targets = 1, .classes = 26};
    char want[64];
    f.rarest = 400;
    struct fit_plan p = plan_with(&f, &patient);
    JSON_AUTO document = document_of(&p, &f);
    (void)snprintf(want, sizeof want, "${rounds:-${trees:-%zu}}", p.trees);
    ck_assert_str_eq(json_string_value(field_of(document, "n_estimators")), want);
    ck_assert_uint_eq(json_integer_value(json_object_get(space_of(document, "trees"), "value")),
                      p.forest_trees);
    p.forest = false;
    JSON_AUTO without = document_of(&p, &f);
    (void)snprintf(want, sizeof want, "${rounds:-%zu}", p.trees);
    ck_assert_str_eq(json_string_value(field_of(without, "n_estimators")), want);
    ck_assert_ptr_null(space_of(without, "trees"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("fit_kinds");
    TCase *t = tcase_create("fit_kinds");
    tcase_add_test(t, networks_see_categories_in_two_ways);
    tcase_add_test(t, many_categories_are_embedded_alone);
    tcase_add_test(t, a_random_forest_has_its_own_number_of_trees);
    tcase_add_test(t, the_document_has_both_numbers);
    suite_add_tcase(s, t);
    return s;
}
