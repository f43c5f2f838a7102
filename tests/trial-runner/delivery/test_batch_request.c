/* Many parts as one request, and its answer as one answer for each. */
#include <string.h>

#include "api/client/client.h"
#include "base/json.h"
#include "tests/support/check_main.h"
#include "trial-runner/delivery/batch_request.h"

static const struct attempt_id lone = {
    .sweep = "s", .number = 7, .attempt = 2, .seat = ATTEMPT_NO_SEAT};
static const struct attempt_id rank = {.sweep = "s", .number = 8, .attempt = 1, .seat = 3};

START_TEST(parts_become_one_request)
{
    AS_AUTO(str_done) struct str end = {0}, points = {0}, more = {0}, body = {0};
    JSON_AUTO failed = json_pack("{s:s}", "outcome", "failed");
    JSON_AUTO items = json_pack("{s:[]}", "items");
    batch_part_write(&lone, 0, failed, &end);
    batch_part_write(&rank, 5, items, &points);
    batch_part_write(&lone, 0, items, &more);
    const struct batch_text parts[] = {{end.s, end.len, BATCH_END},
                                       {points.s, points.len, BATCH_MEASUREMENTS},
                                       {more.s, more.len, BATCH_MEASUREMENTS}};
    batch_write(parts, 3, &body);
    ck_assert_str_eq(str_cstr(&body),
                     "{\"measurements\":[{\"sweep\":\"s\",\"number\":8,\"attempt\":1,\"seat\":3,"
                     "\"world_epoch\":5,\"items\":[]},{\"sweep\":\"s\",\"number\":7,\"attempt\":2,"
                     "\"items\":[]}],\"ends\":[{\"sweep\":\"s\",\"number\":7,\"attempt\":2,"
                     "\"outcome\":\"failed\"}]}");
    ck_assert_uint_le(body.len, BATCH_FRAME_BYTES + end.len + points.len + more.len + 3);
}
END_TEST

static struct batch_answer read_first(const char *ends)
{
    struct batch_answer a;
    AS_AUTO(str_done) struct str text = {0};
    str_printf(&text, "{\"ends\":%s}", ends);
    JSON_AUTO answer = json_loads(text.s, 0, NULL);
    ck_assert_ptr_nonnull(answer);
    batch_answer_read(answer, BATCH_END, 0, &a);
    a.body = a.body ? (const json_t *)&lone : NULL; /* whether there is one */
    return a;
}

START_TEST(each_part_has_its_answer)
{
    struct batch_answer a = read_first("[{\"status\":200,\"trial\":{}}]");
    ck_assert(a.st == AS_OK && a.body);
    a = read_first("[{\"status\":422,\"problem\":{\"code\":\"unprocessable\",\"detail\":"
                   "\"/ends/0/metrics/a: none\",\"errors\":[{\"pointer\":\"/ends/0/metrics/a\","
                   "\"detail\":\"none\"}]}}]");
    ck_assert(a.st == AS_E_INVAL && !a.body);
    ck_assert_str_eq(a.code, "unprocessable");
    ck_assert_str_eq(a.err.pointer, "/metrics/a");
    ck_assert_str_eq(a.err.msg, "/metrics/a: none");
    a = read_first("[{\"status\":400,\"problem\":{\"code\":\"invalid\",\"detail\":\"/ends/0: found "
                   "5\",\"errors\":[{\"pointer\":\"/ends/0\",\"detail\":\"/ends/0: found 5\"}]}}]");
    ck_assert_str_eq(a.err.pointer, "");
    ck_assert_str_eq(a.err.msg, "found 5");
    a = read_first("[{\"status\":409,\"problem\":{\"code\":\"stale_attempt\",\"detail\":\"d\"}}]");
    ck_assert_int_eq(a.st, AS_E_STALE);
    a = read_first("[{\"status\":503,\"problem\":null}]");
    ck_assert_int_eq(a.st, AS_E_UNAVAILABLE);
    static const char *const broken[] = {"[]",
                                         "5",
                                         "null",
                                         "[{}]",
                                         "[7]",
                                         "[{\"status\":\"200\"}]",
                                         "[{\"status\":100}]",
                                         "[{\"status\":999}]"};
    for (size_t i = 0; i < AS_ARRAY_LEN(broken); i++) {
        a = read_first(broken[i]);
        ck_assert(a.st == AS_E_INTERNAL && !a.body && a.err.msg[0]);
    }
}
END_TEST

START_TEST(memory_may_run_out_anywhere)
{
    JSON_AUTO items = json_pack("{s:[]}", "items");
    size_t nth = 1;
    for (bool failed = true; failed; nth++) {
        AS_AUTO(str_done) struct str part = {0}, body = {0};
        as_mem_fail_nth(nth);
        batch_part_write(&rank, 5, items, &part);
        batch_write(&(struct batch_text){part.s, part.failed ? 0 : part.len, BATCH_END}, 1, &body);
        as_mem_fail_nth(0);
        failed = part.failed || body.failed;
        ck_assert_uint_lt(nth, 1000);
    }
    ck_assert_uint_gt(nth, 2);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("delivery_batch_request");
    TCase *tc = tcase_create("batch");
    tcase_add_test(tc, parts_become_one_request);
    tcase_add_test(tc, each_part_has_its_answer);
    tcase_add_test(tc, memory_may_run_out_anywhere);
    suite_add_tcase(s, tc);
    return s;
}
