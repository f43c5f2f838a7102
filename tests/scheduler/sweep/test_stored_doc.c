/* Documents that come back from the database. */
#include "scheduler/sweep/stored_doc.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"

#define GOOD                                                                                       \
    "{\"name\":\"a\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"                        \
    "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},"                             \
    "\"search\":{\"method\":\"random\",\"seed\":7},\"limits\":{\"max_trials\":3},"                 \
    "\"trial\":{\"command\":[\"true\"]}}"

static struct as_err err;

START_TEST(tree_and_document)
{
    JSON_AUTO tree = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    ck_ok(stored_doc_read(GOOD, &tree, &doc, &err), err);
    ck_assert_str_eq(json_string_value(json_object_get(tree, "name")), "a");
    ck_assert_str_eq(doc->metric, "loss");
    ck_assert_uint_eq(doc->seed, 7);
}
END_TEST

START_TEST(either_alone)
{
    JSON_AUTO tree = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    ck_ok(stored_doc_read(GOOD, &tree, NULL, &err), err);
    ck_ok(stored_doc_read(GOOD, NULL, &doc, &err), err);
    ck_assert_ptr_nonnull(tree);
    ck_assert_ptr_nonnull(doc);
}
END_TEST

/* The request did not cause it, so it is never AS_E_INVAL. */
START_TEST(unreadable)
{
    json_t *tree = NULL;
    struct sweep_doc *doc = NULL;
    ck_fails(stored_doc_read("{", &tree, &doc, &err), AS_E_INTERNAL, err,
             "the stored document cannot be read: ");
    ck_fails(stored_doc_read("{\"name\":1}", &tree, &doc, &err), AS_E_INTERNAL, err,
             "the stored document cannot be read: ");
    ck_assert_ptr_null(tree);
    ck_assert_ptr_null(doc);
}
END_TEST

START_TEST(out_of_memory_stays)
{
    ck_assert_int_eq(stored_doc_failed(as_fail_nomem(&err), &err), AS_E_NOMEM);
    ck_assert_str_eq(err.msg, "the stored document cannot be read: out of memory");
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("stored_doc");
    TCase *c = tcase_create("stored_doc");
    tcase_add_test(c, tree_and_document);
    tcase_add_test(c, either_alone);
    tcase_add_test(c, unreadable);
    tcase_add_test(c, out_of_memory_stays);
    suite_add_tcase(su, c);
    return su;
}
