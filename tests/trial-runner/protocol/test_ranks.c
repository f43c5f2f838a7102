/* The lines between the runner and a rank. */
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "trial-runner/protocol/ranks.h"

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define WORLD(attempt, epoch, rank, secret, peers)                                                 \
    "{\"op\":\"world\",\"attempt\":\"" attempt "\",\"epoch\":" epoch ",\"rank\":" rank             \
    ",\"secret\":\"" secret "\",\"peers\":" peers "}"

static struct as_err err;

START_TEST(a_world_and_back)
{
    static const char line[] =
        WORLD("18446744073709551615", "7", "1", ZEROS, "[\"10.0.0.3:1\",\"x\"]");
    struct rank_request r;
    AS_AUTO(str_done) struct str again = {0};
    ck_ok(rank_request_parse(line, strlen(line), &r, &err), err);
    ck_assert_uint_eq(r.attempt, UINT64_MAX);
    ck_assert(r.op == RANK_WORLD && r.epoch == 7 && r.rank == 1 && r.n == 2);
    ck_assert_str_eq(rank_request_peer(&r, 0), "10.0.0.3:1");
    ck_ok(rank_request_format(&r, &again, &err), err);
    rank_request_done(&r);
    ck_ok(rank_request_parse(again.s, again.len - 1, &r, &err), err);
    ck_assert_str_eq(rank_request_peer(&r, 1), "x");
    rank_request_done(&r);
}
END_TEST

START_TEST(wrong_worlds_name_the_field)
{
    static const struct {
        const char *line, *pointer;
    } bad[] = {
        {WORLD("-1", "7", "0", ZEROS, "[\"x\"]"), "/attempt"},
        {WORLD("18446744073709551616", "7", "0", ZEROS, "[\"x\"]"), "/attempt"},
        {WORLD("1", "0", "0", ZEROS, "[\"x\"]"), "/epoch"},
        {WORLD("1", "2147483648", "0", ZEROS, "[\"x\"]"), "/epoch"},
        {WORLD("1", "1", "1", ZEROS, "[\"x\"]"), "/rank"},
        {WORLD("1", "1", "0", "00", "[\"x\"]"), "/secret"},
        {WORLD("1", "1", "0", ZEROS, "[]"), "/peers"},
        {WORLD("1", "1", "0", ZEROS, "[1]"), "/peers"},
        {"{\"op\":\"stop\",\"epoch\":1}", "/epoch"},
        {"{\"op\":\"go\"}", "/op"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        struct rank_request r;
        as_status st = rank_request_parse(bad[i].line, strlen(bad[i].line), &r, &err);
        ck_assert_msg(st == AS_E_INVAL, "%s", bad[i].line);
        ck_assert_str_eq(err.pointer, bad[i].pointer);
        ck_assert_ptr_null(strstr(err.msg, "0000000000000000")); /* no secret in a message */
    }
}
END_TEST

START_TEST(other_lost_ranks_and_back)
{
    static const char *const good[] = {
        "{\"event\":\"lost\",\"epoch\":3,\"rank\":2,\"others\":[3,4095]}",
        "{\"event\":\"lost\",\"epoch\":3,\"rank\":2,\"others\":[]}"};
    static const char *const bad[] = {
        "{\"event\":\"lost\",\"epoch\":3,\"rank\":2,\"others\":[3,4096]}",
        "{\"event\":\"lost\",\"epoch\":3,\"rank\":2,\"others\":[-1]}",
        "{\"event\":\"lost\",\"epoch\":3,\"rank\":2,\"others\":[\"3\"]}",
        "{\"event\":\"lost\",\"epoch\":3,\"rank\":-1,\"others\":[3]}"};
    struct rank_event e;
    for (size_t i = 0; i < AS_ARRAY_LEN(good); i++) {
        AS_AUTO(str_done) struct str line = {0};
        ck_ok(rank_event_parse(good[i], strlen(good[i]), &e, &err), err);
        ck_assert_uint_eq(json_array_size(e.others), i == 0 ? 2 : 0);
        ck_ok(rank_event_format(&e, &line, &err), err);
        ck_assert_uint_eq(line.len, strlen(good[i]) + 1);
        ck_assert(memcmp(line.s, good[i], strlen(good[i])) == 0);
        rank_event_done(&e);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(rank_event_parse(bad[i], strlen(bad[i]), &e, &err), AS_E_INVAL);
        ck_assert_str_eq(err.pointer, "/others");
    }
}
END_TEST

START_TEST(events_and_back)
{
    static const struct rank_event events[] = {
        {.kind = RANK_LISTENING, .endpoint = "10.0.0.3:1 host=…"},
        {.kind = RANK_JOINED, .epoch = 3, .step = INT64_MAX},
        {.kind = RANK_LOST, .epoch = 3, .rank = -1},
        {.kind = RANK_LOST, .epoch = 1, .rank = 4095},
        {.kind = RANK_PROGRESS, .step = 140, .sent_bytes = INT64_MAX, .step_ns = 7},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(events); i++) {
        AS_AUTO(str_done) struct str line = {0};
        struct rank_event e;
        ck_ok(rank_event_format(&events[i], &line, &err), err);
        ck_ok(rank_event_parse(line.s, line.len - 1, &e, &err), err);
        ck_assert(e.kind == events[i].kind && e.epoch == events[i].epoch &&
                  e.step == events[i].step && e.rank == events[i].rank &&
                  e.sent_bytes == events[i].sent_bytes && e.step_ns == events[i].step_ns);
        if (e.endpoint)
            ck_assert_str_eq(e.endpoint, events[i].endpoint);
        rank_event_done(&e);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("ranks");
    TCase *t = tcase_create("ranks");
    tcase_add_test(t, a_world_and_back);
    tcase_add_test(t, wrong_worlds_name_the_field);
    tcase_add_test(t, events_and_back);
    tcase_add_test(t, other_lost_ranks_and_back);
    suite_add_tcase(s, t);
    return s;
}
