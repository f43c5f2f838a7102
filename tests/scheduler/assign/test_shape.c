/* Shapes of trials, from the document and their parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scheduler/assign/shape.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static struct arena arena;
static struct as_err err;

static const struct dataset_row toy = {.name = "toy",
                                       .format = "csv",
                                       .task = "classification",
                                       .input = "table",
                                       .classes = "[\"a\",\"b\",\"c\"]",
                                       .n_rows = 100,
                                       .n_features = 4,
                                       .n_outputs = 3};

static const struct dataset_row images = {.name = "toy",
                                          .format = "npz",
                                          .task = "classification",
                                          .input = "image",
                                          .classes = "[\"a\",\"b\",\"c\"]",
                                          .image = "{\"height\":8,\"width\":8,\"channels\":3}",
                                          .n_rows = 100,
                                          .n_features = 192,
                                          .n_outputs = 3};

static struct trial_shape shape_in(const struct dataset_row *data, const char *train,
                                   const char *params)
{
    struct trial_shape ret;
    AS_AUTO(shaper_freep) struct shaper *s = NULL;
    JSON_AUTO t = json_of(train);
    JSON_AUTO p = json_of(params);
    JSON_AUTO doc = json_pack("{s:{s:O}}", "trial", "train", t);
    ck_ok(shaper_create(doc, data, 1, &s, &err), err);
    ck_assert_ptr_nonnull(s);
    ck_ok(shaper_shape(s, &arena, p, &ret, &err), err);
    return ret;
}

static struct trial_shape shape_of(const char *train, const char *params)
{
    return shape_in(&toy, train, params);
}

#define MLP                                                                                        \
    "{'dataset': '${data:-toy}', 'epochs': '${epochs:-2}', 'batch_size': 32, 'micro_batch': 8, "   \
    "'model': {'layers': ['${w}'], 'activation': '${act:-relu}'}, 'optimizer': {'kind': "          \
    "'${kind:-adamw}', 'lr': '${lr:-0.1}'}}"

START_TEST(trees_have_no_shape)
{
    struct trial_shape tree =
        shape_of("{'dataset': 'toy', 'model': {'kind': '${kind}'}}", "{'kind': 'boosted_trees'}");
    ck_assert_ptr_null(tree.text);
    struct trial_shape net = shape_of(
        "{'dataset': 'toy', 'epochs': 1, 'model': {'kind': '${kind}'}}", "{'kind': 'linear'}");
    ck_assert_ptr_nonnull(net.text);
}
END_TEST

/* Folds have a process of their own: no shape, and so no bytes of a member either. */
START_TEST(folds_have_no_shape)
{
    struct trial_shape s =
        shape_of("{'dataset': 'toy', 'epochs': 2, 'validation': {'folds': 3}}", "{}");
    ck_assert(!s.text && s.bytes_per_member == 0);
}
END_TEST

START_TEST(what_may_differ_does_not_show)
{
    struct trial_shape a = shape_of(MLP, "{'w': 64}");
    ck_assert_ptr_nonnull(a.text);
    ck_assert_int_gt(a.bytes_per_member, 4 * (5 * 64 + 65 * 3));
    ck_assert(strncmp(a.text, "toy", 3) == 0);
    static const char *const same[] = {"{'w': 64, 'lr': 0.5}", "{'w': 64, 'kind': 'sgd'}",
                                       "{'w': 64, 'epochs': 9}", "{'w': 63}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(same); i++) {
        struct trial_shape b = shape_of(MLP, same[i]);
        ck_assert_str_eq(a.text, b.text);
        ck_assert_int_eq(a.bytes_per_member, b.bytes_per_member);
    }
    ck_assert_str_ne(a.text, shape_of(MLP, "{'w': 640}").text);
    ck_assert_str_ne(a.text, shape_of(MLP, "{'w': 64, 'act': 'tanh'}").text);
}
END_TEST

/* The trainer will report what is wrong. */
START_TEST(what_cannot_be_has_none)
{
    ck_assert_ptr_null(shape_of(MLP, "{'w': 64, 'data': 'none'}").text);
    ck_assert_ptr_null(shape_of(MLP, "{'w': 0}").text);
    ck_assert_ptr_null(shape_of(MLP, "{'w': 'wide'}").text);
    JSON_AUTO doc = json_of("{'trial': {'command': ['true']}}");
    struct shaper *s = NULL;
    struct trial_shape none = {.bytes_per_member = 1};
    ck_ok(shaper_create(doc, NULL, 0, &s, &err), err);
    ck_assert_ptr_null(s);
    ck_ok(shaper_shape(NULL, &arena, doc, &none, &err), err);
    ck_assert(!none.text && none.bytes_per_member == 0);
}
END_TEST

/* No text is longer than the table allows, for any model, and two models never have the same
 * text. */
START_TEST(long_ones_end_with_a_digest)
{
    char layers[6000] = "", doc[7000];
    for (int i = 0; i < 60; i++)
        snprintf(layers + strlen(layers), sizeof layers - strlen(layers), "{'dense': %d}, ", 3 + i);
    snprintf(doc, sizeof doc,
             "{'dataset': 'toy', 'epochs': 1, 'model': {'kind': 'cnn', 'layers': [%s{'dense': "
             "'${w}'}]}}",
             layers);
    struct trial_shape a = shape_in(&images, doc, "{'w': 7}");
    struct trial_shape b = shape_in(&images, doc, "{'w': 8}");
    ck_assert(a.text && b.text);
    ck_assert_uint_le(strlen(a.text), SHAPE_MAX);
    ck_assert_uint_gt(strlen(a.text), SHAPE_MAX / 2);
    ck_assert_str_ne(a.text, b.text);
    ck_assert(strncmp(a.text, b.text, SHAPE_MAX / 2) == 0);
    ck_assert_str_eq(a.text, shape_in(&images, doc, "{'w': 7, 'lr': 1}").text);
}
END_TEST

static void arena_clean(void)
{
    arena_done(&arena);
    arena = (struct arena){0};
}

TEST_SUITE()
{
    Suite *su = suite_create("shape");
    TCase *c = tcase_create("shape");
    tcase_add_checked_fixture(c, NULL, arena_clean);
    tcase_add_test(c, trees_have_no_shape);
    tcase_add_test(c, folds_have_no_shape);
    tcase_add_test(c, what_may_differ_does_not_show);
    tcase_add_test(c, what_cannot_be_has_none);
    tcase_add_test(c, long_ones_end_with_a_digest);
    suite_add_tcase(su, c);
    return su;
}
