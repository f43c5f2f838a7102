/* The decoder and encoders of many parts in one request. */
#include <stdio.h>
#include <string.h>

#include "api/codec/wire.h"
#include "base/json.h"
#include "tests/api/codec/decode_check.h"
#include "tests/support/schema_check.h"
#include "tests/support/check_main.h"

#define PART "\"sweep\":\"s\",\"number\":1,\"attempt\":2"

static as_status try_batch(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct batch_request r;
    return batch_decode(doc, a, &r, err);
}

static const struct decode_case cases[] = {
    {try_batch, "{}", ""},
    {try_batch, "{\"ends\":[]}", NULL},
    {try_batch, "{\"ends\":null,\"measurements\":[],\"claim\":null}", NULL},
    {try_batch, "{\"ends\":[1,\"a\",null,[],{}],\"measurements\":[1],\"claim\":1}", NULL},
    {try_batch, "[]", ""},
    {try_batch, "{\"ends\":{}}", "/ends"},
    {try_batch, "{\"measurements\":\"\"}", "/measurements"},
    {try_batch, "{\"epoch\":1}", "/epoch"},
};

START_TEST(bodies)
{
    decode_check(&cases[_i], false);
}
END_TEST

START_TEST(parts_are_read_and_faults_are_placed)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err;
    struct batch_request r;
    JSON_AUTO doc = decode_parse(
        "{\"ends\":[{" PART ",\"outcome\":\"failed\",\"reason\":\"r\",\"exit_code\":3},"
        "{" PART ",\"outcome\":\"lost\"}],\"measurements\":[{" PART ",\"items\":[{\"step\":3,"
        "\"metrics\":{\"a\":1}}],\"notes\":{\"n\":\"t\"},\"seat\":4,\"world_epoch\":5},{}],"
        "\"claim\":{\"epoch\":7,\"claim_id\":\"c\",\"wait_ms\":9}}");
    ck_ok(batch_decode(doc, &a, &r, &err), err);
    ck_assert(r.n_ends == 2 && r.n_reports == 2 && r.claim.is_asked);
    ck_assert_ptr_null(r.ends[0].part.fault);
    ck_assert_str_eq(r.ends[0].part.ref.sweep, "s");
    ck_assert(r.ends[0].part.ref.number == 1 && r.ends[0].part.ref.attempt == 2);
    ck_assert(!r.ends[0].part.has_seat && r.ends[0].end.outcome == OUTCOME_FAILED);
    ck_assert(r.ends[0].end.exit_code == 3 && as_streq(r.ends[0].end.reason, "r"));
    ck_assert_str_eq(r.ends[1].part.fault->pointer, "/ends/1/outcome");
    ck_assert(as_starts_with(r.ends[1].part.fault->msg, "/ends/1/outcome: found \"lost\""));
    ck_assert(r.reports[0].part.has_seat && r.reports[0].part.seat == 4 &&
              r.reports[0].part.epoch == 5);
    ck_assert(r.reports[0].report.points.n == 1 && r.reports[0].report.n_notes == 1);
    ck_assert_str_eq(r.reports[1].part.fault->pointer, "/measurements/1/sweep");
    ck_assert(!r.claim.fault && r.claim.claim.epoch == 7 && r.claim.wait_ms == 9);
}
END_TEST

START_TEST(parts_have_a_limit)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct as_err err;
    struct batch_request r;
    JSON_AUTO doc = json_pack("{s:[],s:[]}", "ends", "measurements");
    for (int i = 0; i < BATCH_PARTS_MAX; i++)
        ck_assert_int_eq(json_array_append_new(
                             json_object_get(doc, i % 2 ? "ends" : "measurements"), json_object()),
                         0);
    ck_ok(batch_decode(doc, &a, &r, &err), err);
    ck_assert_int_eq(json_array_append_new(json_object_get(doc, "ends"), json_object()), 0);
    ck_fails(batch_decode(doc, &a, &r, &err), AS_E_TOO_LARGE, err, "at most 256");
    ck_assert_str_eq(err.pointer, "/measurements");
}
END_TEST

START_TEST(pointers_and_messages_get_the_place)
{
    struct as_err err;
    (void)as_fail_at(&err, AS_E_INVAL, "/step", "/step: found -1");
    batch_pointer_add("/ends/3", &err);
    ck_assert_str_eq(err.pointer, "/ends/3/step");
    ck_assert_str_eq(err.msg, "/ends/3/step: found -1");
    ck_assert_int_eq(err.code, AS_E_INVAL);
    (void)as_fail_at(&err, AS_E_CONFLICT, "/metrics/a", "another value");
    batch_pointer_add("/ends/0", &err);
    ck_assert_str_eq(err.pointer, "/ends/0/metrics/a");
    ck_assert_str_eq(err.msg, "another value");
}
END_TEST

START_TEST(answers_fit_the_document)
{
    struct claim_list none = {.is_preparing = true};
    struct directive_row prune = {
        .ref = {"s", 1, 1}, .reason = "at step 3 it is 7th of 9", .action = DIRECTIVE_PRUNE};
    JSON_AUTO full = ck_schema(
        "BatchResult",
        batch_encode(
            json_pack("[o,o]", batch_end_encode(TRIAL_FAILED),
                      batch_problem_encode(409, json_pack("{s:s,s:s,s:i,s:s,s:s}", "type", "t",
                                                          "title", "t", "status", 409, "code", "c",
                                                          "detail", "d"))),
            json_pack("[o,o]", batch_report_encode(3, NULL), batch_report_encode(1, &prune)),
            batch_claim_encode(&none)));
    ck_assert(json_is_true(json_object_get(json_object_get(full, "claim"), "pending")));
    JSON_AUTO empty =
        ck_schema("BatchResult", batch_encode(json_array(), json_array(), json_null()));
    ck_assert(json_is_null(json_object_get(empty, "claim")));
    ck_assert_ptr_null(batch_problem_encode(500, NULL));
    ck_assert_ptr_null(batch_encode(json_array(), NULL, json_null()));
}
END_TEST

/* Each allocation fails in turn: all of the request is refused for want of memory. A part is never
 * taken for a malformed one. */
START_TEST(memory_may_run_out_anywhere)
{
    struct as_err err = {0};
    JSON_AUTO doc =
        decode_parse("{\"ends\":[{" PART ",\"outcome\":\"failed\",\"metrics\":{\"a\":1}},"
                     "7],\"measurements\":[{" PART ",\"items\":[]},{" PART
                     ",\"items\":[],\"notes\":{\"a\":\"b\"}}],"
                     "\"claim\":{\"epoch\":1,\"claim_id\":\"c\"}}");
    size_t nth = 1;
    for (as_status st = AS_E_NOMEM; st != AS_OK; nth++) {
        AS_AUTO(arena_done) struct arena a = {0};
        struct batch_request r;
        as_mem_fail_nth(nth);
        st = batch_decode(doc, &a, &r, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        if (st == AS_OK)
            ck_assert(!r.ends[0].part.fault && r.ends[1].part.fault && !r.reports[0].part.fault &&
                      !r.reports[1].part.fault && !r.claim.fault);
        ck_assert_uint_lt(nth, 1000);
    }
    ck_assert_uint_gt(nth, 2);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_codec_batch");
    TCase *tc = tcase_create("batch");
    tcase_add_loop_test(tc, bodies, 0, AS_ARRAY_LEN(cases));
    tcase_add_test(tc, parts_are_read_and_faults_are_placed);
    tcase_add_test(tc, parts_have_a_limit);
    tcase_add_test(tc, pointers_and_messages_get_the_place);
    tcase_add_test(tc, answers_fit_the_document);
    tcase_add_test(tc, memory_may_run_out_anywhere);
    suite_add_tcase(s, tc);
    return s;
}
