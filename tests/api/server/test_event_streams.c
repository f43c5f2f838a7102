/* Event streams whose clients do not read: they cost no queries, and they miss nothing later. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/http_stream_priv.h"
#include "api/server/event_streams.h"
#include "base/clock.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define STALLED 60
#define OLD_EVENTS 1500 /* of a kilobyte: several times the buffer of a stream */

static struct service s;
static struct as_err err;

static void sleep_reader(void *conn)
{
    (void)conn;
}

static void wake_reader(void *conn)
{
    (void)conn;
}

/* Events of one transaction, as the scheduler writes them. */
static void add_events(int n)
{
    char sql[300];
    (void)snprintf(sql, sizeof sql,
                   "insert into event (id, type, sweep, state, reason) select "
                   "(pg_current_xact_id()::text::bigint << 20) + i, 'sweep.changed', 'none', "
                   "'running', repeat('x', 1000) from generate_series(1, %d) i",
                   n);
    pg_fixture_exec(s.url, sql);
}

struct reader {
    struct http_stream *stream;
    struct str text;
    size_t events; /* complete ones */
};

/* Read what there is until `n` events have come. */
static void read_events(struct reader *r, size_t n)
{
    const struct http_sleeper sleeper = {sleep_reader, wake_reader, NULL};
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    char buf[4096];
    while (r->events < n) {
        ssize_t got = http_stream_take(r->stream, buf, sizeof buf, &sleeper);
        ck_assert_int_ge(got, 0);
        ck_assert_msg(clock_mono_ns() < until, "%zu of %zu events", r->events, n);
        if (got == 0)
            clock_sleep_ms(2);
        for (ssize_t i = 0; i < got; i++) {
            str_putc(&r->text, buf[i]);
            if (buf[i] != '\n')
                continue;
            r->events += as_starts_with(str_cstr(&r->text), "data: ");
            str_clear(&r->text);
        }
    }
    ck_assert_uint_eq(r->events, n);
}

static void await_full(struct http_stream *stream)
{
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (http_stream_room(stream) >= EVENT_STREAM_BYTES / 2) {
        ck_assert_int_lt(clock_mono_ns(), until);
        clock_sleep_ms(2);
    }
}

START_TEST(stalled_streams_cost_no_queries_and_miss_nothing)
{
    struct event_streams *streams = NULL;
    struct http_stream *stalled[STALLED];
    struct reader live = {0}, late = {0};
    ck_ok(event_streams_create(s.db, &streams, &err), err);
    add_events(OLD_EVENTS);
    int64_t first = pg_fixture_i64(s.url, "select min(id) from event");
    for (int i = 0; i < STALLED; i++) /* each at a place of its own */
        ck_ok(event_streams_add(streams, NULL, first - 1 + i, &stalled[i], &err), err);
    for (size_t i = 0; i < STALLED; i++)
        await_full(stalled[i]);
    ck_ok(event_streams_add(streams, NULL, 0, &live.stream, &err), err);
    read_events(&live, OLD_EVENTS);

    int64_t begin = clock_mono_ns();
    long before = event_streams_queries(streams);
    for (size_t i = 1; i <= 10; i++) { /* each takes a round at least */
        add_events(1);
        read_events(&live, OLD_EVENTS + i);
    }
    /* one for each tick, and the ends of what was begun before */
    int64_t ticks = (clock_mono_ns() - begin) / NS_PER_MS / EVENT_STREAMS_TICK_MS;
    ck_assert_int_le(event_streams_queries(streams) - before, 2 * ticks + 4);

    late.stream = stalled[0];
    read_events(&late, OLD_EVENTS + 10);
    event_streams_free(streams);
    for (size_t i = 0; i < STALLED; i++)
        http_stream_unref(stalled[i]);
    http_stream_unref(live.stream);
    str_done(&live.text);
    str_done(&late.text);
}
END_TEST

/* A crowd that starts in the past shares its queries. */
START_TEST(streams_at_one_place_share_a_query)
{
    struct event_streams *streams = NULL;
    struct reader readers[STALLED] = {0};
    ck_ok(event_streams_create(s.db, &streams, &err), err);
    add_events(100);
    int64_t begin = clock_mono_ns();
    for (size_t i = 0; i < STALLED; i++)
        ck_ok(event_streams_add(streams, NULL, 0, &readers[i].stream, &err), err);
    for (size_t i = 0; i < STALLED; i++)
        read_events(&readers[i], 100);
    /* Those that are up to date cost one for each tick. */
    int64_t ticks = (clock_mono_ns() - begin) / NS_PER_MS / EVENT_STREAMS_TICK_MS;
    ck_assert_int_lt(event_streams_queries(streams), STALLED / 2 + 2 * ticks);
    event_streams_free(streams);
    for (size_t i = 0; i < STALLED; i++) {
        http_stream_unref(readers[i].stream);
        str_done(&readers[i].text);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("event_streams");
    TCase *t = service_case(suite, "streams", &s, 0);
    tcase_add_test(t, stalled_streams_cost_no_queries_and_miss_nothing);
    tcase_add_test(t, streams_at_one_place_share_a_query);
    return suite;
}
