/* What some clients ask of the server must not delay the requests that runners live by. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/api/server/fixture.h"
#include "tests/support/check_main.h"
#include "tests/support/pg_fixture.h"

#define WORKERS 4
#define LISTS 12

static int64_t blocked(void)
{
    return pg_fixture_i64(fix.database, "select count(*) from pg_stat_activity where datname = "
                                        "current_database() and wait_event_type = 'Lock'");
}

/* A lock in the database stops the lists, so that every worker is busy with one and others wait. */
START_TEST(test_heartbeats_pass_lists)
{
    struct rest viewer = as_viewer();
    struct rest_request lists[LISTS];
    struct rest admin = as_admin();
    char body[64];
    /* a token that the server does not know yet: checking it must not wait either */
    REPLY_AUTO fresh = rest_call(&admin, "POST", "/v1/tokens", "{\"role\":\"runner\"}");
    ck_status(fresh, 201);
    struct rest runner = {fix.url, reply_str(&fresh, "token")};
    long long epoch = make_runner("steady", 1);
    (void)make_sweep("meanwhile", 1);
    struct pg_session *lock =
        pg_fixture_session(fix.database, "begin; lock table dataset in access exclusive mode");
    for (size_t i = 0; i < LISTS; i++)
        rest_start(&lists[i], &viewer, "GET", "/v1/datasets", "");
    while (blocked() < WORKERS)
        clock_sleep_ms(5);

    (void)snprintf(body, sizeof body, "{\"epoch\":%lld,\"attempts\":[]}", epoch);
    REPLY_AUTO beat = rest_call(&runner, "POST", "/v1/runners/steady/heartbeat", body);
    ck_status(beat, 200);
    REPLY_AUTO claimed = claim("steady", epoch, 1, 0);
    ck_status(claimed, 200);
    REPLY_AUTO ready = rest_call(&viewer, "GET", "/readyz", NULL);
    ck_status(ready, 200);
    ck_assert_int_ge(blocked(), WORKERS); /* no list had to end first */

    pg_fixture_session_end(lock);
    for (size_t i = 0; i < LISTS; i++) {
        rest_join(&lists[i]); /* 503: the database gave up waiting for the lock */
        ck_assert(lists[i].reply.status == 200 || lists[i].reply.status == 503);
        reply_done(&lists[i].reply);
    }
    drop_sweep("meanwhile");
}
END_TEST

/* Lists of sweeps with large documents, many at once: each answer stays within its budget, and
 * cursors lead to every sweep. Under a sanitizer each list takes long: there are as many as make
 * three pages, and two for each worker. */
START_TEST(test_large_documents)
{
    enum { SWEEPS = IS_SANITIZED ? 12 : 60, CLIENTS = IS_SANITIZED ? 8 : 24 };
    struct rest viewer = as_viewer();
    struct rest_request lists[CLIENTS];
    char name[16], cursor[300] = "";
    size_t seen = 0;
    for (int i = 0; i < SWEEPS; i++) {
        (void)snprintf(name, sizeof name, "large-%d", i);
        (void)make_sweep(name, 1);
    }
    pg_fixture_exec(
        fix.database,
        "update sweep_base set document = jsonb_set(document::jsonb, '{trial,command,0}', "
        "to_jsonb(repeat('0123456789', 90000)))::json where id like 'large-%'");
    for (size_t i = 0; i < CLIENTS; i++)
        rest_start(&lists[i], &viewer, "GET", "/v1/sweeps?page_size=1000&include=document", "");
    for (size_t i = 0; i < CLIENTS; i++) {
        rest_join(&lists[i]);
        ck_assert_int_eq(lists[i].reply.status, 200);
        ck_assert_uint_lt(lists[i].reply.body.len, 5 << 20);
        reply_done(&lists[i].reply);
    }
    for (bool more = true; more;) {
        REPLY_AUTO page = rest_get(&viewer, "/v1/sweeps?page_size=1000&include=document%s", cursor);
        ck_assert_int_eq(page.status, 200);
        const json_t *items = reply_get(&page, "items");
        for (size_t i = 0; i < json_array_size(items); i++)
            seen += as_starts_with(
                json_string_value(json_object_get(json_array_get(items, i), "id")), "large-");
        more = *reply_str(&page, "next_cursor");
        (void)snprintf(cursor, sizeof cursor, "&cursor=%s", reply_str(&page, "next_cursor"));
    }
    ck_assert_uint_eq(seen, SWEEPS);
    REPLY_AUTO plain = rest_get(&viewer, "/v1/sweeps?page_size=1000");
    ck_status(plain, 200);
    ck_assert_uint_lt(plain.body.len, SWEEPS * 4096);
    ck_assert_uint_ge(json_array_size(reply_get(&plain, "items")), SWEEPS);
    REPLY_AUTO wrong = rest_get(&viewer, "/v1/sweeps?include=everything");
    ck_status(wrong, 400);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("load");
    TCase *t = tcase_create("load");
    tcase_add_unchecked_fixture(t, fixture_start, fixture_stop);
    tcase_add_test(t, test_heartbeats_pass_lists);
    tcase_add_test(t, test_large_documents);
    suite_add_tcase(s, t);
    return s;
}
