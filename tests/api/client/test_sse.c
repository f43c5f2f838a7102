#include "tests/support/check_main.h"

#include <stdio.h>
#include <string.h>

#include "api/client/sse.h"

struct seen {
    char text[512];
    int stop_after;
};

static bool on_event(void *arg, const char *id, const char *type, const char *data, size_t len)
{
    struct seen *s = arg;
    size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "[%s|%s|%.*s]", id, type, (int)len, data);
    return --s->stop_after != 0;
}

static const struct {
    const char *bytes, *want, *id;
} cases[] = {
    {"data: a\n\n", "[|message|a]", ""},
    {"data:a\ndata\ndata: b\n\n", "[|message|a\n\nb]", ""},
    {"id: 7\nevent: x\ndata: 1\n\ndata: 2\n\n", "[7|x|1][7|message|2]", "7"},
    {": comment\n\n: another\n\n", "", ""},
    {"id: 3\n\n", "", "3"},                 /* an id without data counts */
    {"id: 3\n\nid: 4\ndata: x\n", "", "3"}, /* an incomplete event does not */
    {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", "[|message|a][|message|b][|message|c]", ""},
    {"retry: 5\nunknown: x\ndata: y\n\n", "[|message|y]", ""},
    {"data:  two spaces\n\n", "[|message| two spaces]", ""},
};

START_TEST(events)
{
    for (size_t step = 1; step <= strlen(cases[_i].bytes); step++) { /* pieces of every size */
        AS_AUTO(sse_done) struct sse s = {0};
        struct seen seen = {0};
        struct as_err err = {0};
        bool stop = false;
        for (size_t at = 0; at < strlen(cases[_i].bytes); at += step) {
            size_t left = strlen(cases[_i].bytes) - at;
            ck_ok(sse_feed(&s, cases[_i].bytes + at, left < step ? left : step, on_event, &seen,
                           &stop, &err),
                  err);
        }
        ck_assert_str_eq(seen.text, cases[_i].want);
        ck_assert_str_eq(s.id, cases[_i].id);
    }
}
END_TEST

START_TEST(stops_when_told)
{
    AS_AUTO(sse_done) struct sse s = {0};
    struct seen seen = {.stop_after = 1};
    struct as_err err = {0};
    bool stop = false;
    const char *bytes = "data: 1\n\ndata: 2\n\n";
    ck_ok(sse_feed(&s, bytes, strlen(bytes), on_event, &seen, &stop, &err), err);
    ck_assert(stop);
    ck_assert_str_eq(seen.text, "[|message|1]");
}
END_TEST

START_TEST(a_cut_forgets_the_half_event)
{
    AS_AUTO(sse_done) struct sse s = {0};
    struct seen seen = {0};
    struct as_err err = {0};
    bool stop = false;
    const char *half = "id: 9\ndata: ha", *whole = "data: b\n\n";
    sse_resume(&s, "8");
    ck_ok(sse_feed(&s, half, strlen(half), on_event, &seen, &stop, &err), err);
    sse_reset(&s);
    ck_ok(sse_feed(&s, whole, strlen(whole), on_event, &seen, &stop, &err), err);
    ck_assert_str_eq(seen.text, "[8|message|b]");
}
END_TEST

START_TEST(an_endless_event_is_refused)
{
    AS_AUTO(sse_done) struct sse s = {0};
    struct as_err err = {0};
    bool stop = false;
    as_status st = AS_OK;
    char bytes[4096];
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; st == AS_OK && i < 1000; i++)
        st = sse_feed(&s, bytes, sizeof bytes, on_event, NULL, &stop, &err);
    ck_fails(st, AS_E_TOO_LARGE, err, "event");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("sse");
    TCase *t = tcase_create("sse");
    tcase_add_loop_test(t, events, 0, (int)AS_ARRAY_LEN(cases));
    tcase_add_test(t, stops_when_told);
    tcase_add_test(t, a_cut_forgets_the_half_event);
    tcase_add_test(t, an_endless_event_is_refused);
    suite_add_tcase(s, t);
    return s;
}
