/* Which fields a checkpoint's document may differ in, and what two documents have in common without
 * them. */
#include <string.h>

#include "base/json.h"
#include "model/document/train_vary.h"
#include "tests/support/check_main.h"

static struct as_err err;

static json_t *json_of(const char *text)
{
    json_t *j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return j;
}

static as_status without(const char *train, const char *pointers, json_t **ret)
{
    JSON_AUTO t = json_of(train);
    JSON_AUTO p = json_of(pointers);
    return train_without(t, p, ret, &err);
}

START_TEST(rates_vary_and_shapes_do_not)
{
    ck_assert(train_may_vary("/optimizer/lr"));
    ck_assert(train_may_vary("/label_smoothing"));
    static const char *const fixed[] = {"/optimizer",
                                        "/optimizer/kind",
                                        "/model/layers",
                                        "/epochs",
                                        "/batch_size",
                                        "/dataset",
                                        "/seed",
                                        "",
                                        "optimizer/lr",
                                        "/optimizer/lr/x",
                                        NULL};
    for (const char *const *f = fixed; *f; f++)
        ck_assert_msg(!train_may_vary(*f), "%s", *f);
}
END_TEST

/* Documents that differ in the fields alone have the same rest; the document itself stays. */
START_TEST(what_is_left)
{
    static const char low[] = "{\"epochs\":5,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.1},"
                              "\"label_smoothing\":0.1}",
                      high[] = "{\"epochs\":5,\"optimizer\":{\"kind\":\"sgd\",\"lr\":1}}",
                      other[] = "{\"epochs\":6,\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.1}}",
                      fields[] = "[\"/optimizer/lr\",\"/label_smoothing\",\"/model/dropout\"]";
    JSON_AUTO a = NULL;
    JSON_AUTO b = NULL;
    JSON_AUTO c = NULL;
    ck_ok(without(low, fields, &a), err);
    ck_ok(without(high, fields, &b), err);
    ck_ok(without(other, fields, &c), err);
    JSON_AUTO want = json_of("{\"epochs\":5,\"optimizer\":{\"kind\":\"sgd\"}}");
    ck_assert(json_equal(a, want));
    ck_assert(json_equal(a, b));
    ck_assert(!json_equal(a, c));
    JSON_AUTO whole = NULL;
    JSON_AUTO same = json_of(low);
    ck_ok(without(low, "[]", &whole), err);
    ck_assert(json_equal(whole, same));
}
END_TEST

START_TEST(refused)
{
    json_t *left = NULL;
    ck_fails(without("{}", "[\"/optimizer/lr\", \"/model/layers\"]", &left), AS_E_INVAL, err,
             "another value of '/model/layers'");
    ck_fails(without("{}", "[3]", &left), AS_E_INVAL, err, "another value of ''");
    ck_assert_ptr_null(left);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("train_vary");
    TCase *t = tcase_create("train_vary");
    tcase_add_test(t, rates_vary_and_shapes_do_not);
    tcase_add_test(t, what_is_left);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    return s;
}
