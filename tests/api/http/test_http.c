/* The transport over real sockets, with a small application on top: which requests reach it, which
 * are refused, and what happens to clients that are slow, leave, or send wrong lengths. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/http/http.h"
#include "base/clock.h"
#include "tests/api/http/echo_app.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

static void wait_for(atomic_int *n, int want)
{
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (atomic_load(n) < want && clock_mono_ns() < until)
        clock_sleep_ms(5);
    ck_assert_int_ge(atomic_load(n), want);
}

static void expect_status(const char *request, int status, const char *part)
{
    struct str out = {0};
    int got = raw_request(app.port, request, strlen(request), PATIENCE_MS, &out);
    ck_assert_msg(got == status, "got %d, wanted %d for:\n%s\n%s", got, status, request,
                  str_cstr(&out));
    ck_assert_msg(strstr(str_cstr(&out), part) != NULL, "'%s' is not in %s", part, str_cstr(&out));
    str_done(&out);
}

#define HOST "Host: localhost\r\n"
#define CLOSE "Connection: close\r\n\r\n"

START_TEST(test_plain)
{
    expect_status("GET /a%20b?x=1 HTTP/1.1\r\n" HOST CLOSE, 200, "GET /a b body=;");
    expect_status("POST /p HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" CLOSE "hello", 200,
                  "body=hello;");
    expect_status("POST /p HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" CLOSE
                  "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
                  200, "body=hello!;");
    expect_status("POST /p HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n" CLOSE
                  "ok",
                  100, "body=ok;");
}
END_TEST

START_TEST(test_keep_alive_and_pipelining)
{
    struct str out = {0};
    int fd = raw_connect(app.port);
    raw_puts(fd, "GET /one HTTP/1.1\r\n" HOST "\r\nGET /two HTTP/1.1\r\n" HOST CLOSE);
    ck_assert(raw_read(fd, &out, NULL, PATIENCE_MS));
    ck_assert_uint_eq(raw_count(&out, "200 OK"), 2);
    ck_assert_ptr_nonnull(strstr(str_cstr(&out), "/two body"));
    (void)close(fd);
    str_clear(&out);
    fd = raw_connect(app.port); /* also after answers that need only a head */
    raw_puts(fd, "GET /early HTTP/1.1\r\n" HOST "\r\nGET /held?refuse=1 HTTP/1.1\r\n" HOST
                 "\r\nHEAD /early HTTP/1.1\r\n" HOST "\r\nGET /two HTTP/1.1\r\n" HOST CLOSE);
    ck_assert(raw_read(fd, &out, NULL, PATIENCE_MS));
    ck_assert_uint_eq(raw_count(&out, "HTTP/1.1 403"), 2);
    ck_assert_uint_eq(raw_count(&out, "HTTP/1.1 401"), 1);
    ck_assert_ptr_nonnull(strstr(str_cstr(&out), "/two body"));
    (void)close(fd);
    str_done(&out);
}
END_TEST

#define CHUNKED "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

/* A request that two parsers could read in two ways is refused, and the connection ends: no byte
 * after it is read as a request. */
START_TEST(test_smuggling)
{
    static const char *const requests[] = {
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\nGET /smuggled HTTP/1.1\r\n" HOST "\r\n",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 5\r\n\r\n"
        "abcdeGET /smuggled HTTP/1.1\r\n" HOST "\r\n",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n",
        "POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"
        "\r\n0\r\n\r\n",
        "GET /x HTTP/1.1\r\n" HOST HOST "\r\n",
        "GET /x HTTP/1.1\r\n\r\n",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length : 3\r\n\r\nabc",
        "POST /x HTTP/1.1\r\n" HOST "Bad Name: 3\r\n\r\nabc",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\nabc",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: 3, 3\r\n\r\nabc",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: 1000000000000000000000\r\n\r\nabc",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\nabc",
        "GET /x HTTP/1.1\n" HOST "\r\n",
        "GET /x HTTP/1.1\r\nHost: a\n\r\n",
        "GET /x HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n",
        "GET /x HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n",
        "GET /x HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n",
        CHUNKED "5;a\nb\r\nhello\r\n0\r\n\r\n",
        CHUNKED "5;a=\x01\r\nhello\r\n0\r\n\r\n",
        CHUNKED "5\nhello\r\n0\r\n\r\n",
        CHUNKED "5\r\nhelloX\r\n0\r\n\r\n",
        CHUNKED "5\r\nhello\n0\r\n\r\n",
        CHUNKED "5\r\nhello\r\n0;a\n\r\n",
        CHUNKED "5\r\nhello\r\n0\r\nX: a\n\r\n",
        CHUNKED "-5\r\nhello\r\n0\r\n\r\n",
        CHUNKED "0x5\r\nhello\r\n0\r\n\r\n",
        CHUNKED "\r\nhello\r\n0\r\n\r\n",
        CHUNKED "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(requests); i++) {
        struct str out = {0};
        int status = raw_request(app.port, requests[i], strlen(requests[i]), PATIENCE_MS, &out);
        ck_assert_msg(status == 400, "got %d for:\n%s\n%s", status, requests[i], str_cstr(&out));
        ck_assert_uint_eq(raw_count(&out, "HTTP/1.1"), 1);
        ck_assert_msg(!strstr(str_cstr(&out), "200 OK"), "a second request in:\n%s", requests[i]);
        ck_assert_ptr_null(strstr(str_cstr(&out), "smuggled"));
        str_done(&out);
    }
    ck_assert_int_eq(atomic_load(&app.n_handled), 0);
}
END_TEST

/* A NUL does not end a header's value. */
START_TEST(test_hidden_bytes)
{
#define BYTES(s) s, sizeof(s) - 1
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {BYTES("POST /x HTTP/1.1\r\n" HOST "Content-Length: 2\0 9\r\n\r\nabcdefghi")},
        {BYTES("GET /x HTTP/1.1\r\nHost: localhost\0.evil\r\n\r\n")},
        {BYTES("GET /x HTTP/1.1\r\n" HOST "X: a\0\r\n\r\n")},
        {BYTES("GET /x HTTP/1.1\r\n" HOST "X\0Y: a\r\n\r\n")},
        {BYTES("GET /x HTTP/1.1\r\n" HOST "Last: a\0\0b\r\n\r\n")},
        {BYTES(CHUNKED "5;a\0b\r\nhello\r\n0\r\n\r\n")},
        {BYTES(CHUNKED "5\r\nhello\r\n0\r\nX: \0\r\n\r\n")},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct str out = {0};
        int status = raw_request(app.port, cases[i].bytes, cases[i].len, PATIENCE_MS, &out);
        ck_assert_msg(status == 400, "case %zu: got %d: %s", i, status, str_cstr(&out));
        ck_assert_uint_eq(raw_count(&out, "HTTP/1.1"), 1);
        str_done(&out);
    }
    ck_assert_int_eq(atomic_load(&app.n_handled), 0);
    /* a body may have any byte */
    static const char body[] = "POST /x HTTP/1.1\r\n" HOST "Content-Length: 3\r\n" CLOSE "\n\0\r";
    struct str out = {0};
    ck_assert_int_eq(raw_request(app.port, body, sizeof body - 1, PATIENCE_MS, &out), 200);
    str_done(&out);
}
END_TEST

/* However a message is cut into pieces: the same refusal. A message before it is answered. */
START_TEST(test_refusal_in_pieces)
{
    static const char request[] = "GET /one HTTP/1.1\r\n" HOST "\r\n"
                                  "POST /two HTTP/1.1\r\n" HOST "Content-Length: two\r\n\r\n";
    for (size_t cut = 1; cut < sizeof request; cut += 3) {
        struct str out = {0};
        int fd = raw_connect(app.port);
        raw_send(fd, request, cut);
        clock_sleep_ms(2);
        raw_send(fd, request + cut, sizeof request - 1 - cut);
        ck_assert(raw_read(fd, &out, NULL, PATIENCE_MS));
        ck_assert_uint_eq(raw_count(&out, "HTTP/1.1"), 2);
        ck_assert_int_eq(raw_status(&out), 200);
        ck_assert_uint_eq(raw_count(&out, "HTTP/1.1 400"), 1);
        (void)close(fd);
        str_done(&out);
    }
}
END_TEST

START_TEST(test_targets)
{
    static const char *const targets[] = {
        "/a%00b", "/a%2fb",     "/a%5cb",   "/a\\b",    "/a/../b",   "/%2e%2e/b", "/a/.",
        "/%ff",   "/%c0%ae",    "/a%0ab",   "/a%",      "/a%4",      "/a%zz",     "*",
        "a",      "/x?a=1&a=2", "/x?a=%00", "/x?a=%ff", "/\xff\xfe", "/a#b"};
    for (size_t i = 0; i < AS_ARRAY_LEN(targets); i++) {
        char request[200];
        int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST CLOSE, targets[i]);
        int status = raw_request(app.port, request, (size_t)n, PATIENCE_MS, NULL);
        ck_assert_msg(status == 400, "got %d for %s", status, targets[i]);
    }
    ck_assert_int_eq(atomic_load(&app.n_handled), 0);
}
END_TEST

/* However libmicrohttpd handles these, the application does not see them and the server
 * survives. */
START_TEST(test_garbage)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"GET /a\0b HTTP/1.1\r\n" HOST CLOSE, sizeof("GET /a\0b HTTP/1.1\r\n" HOST CLOSE) - 1},
        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11},
        {"GET\r\n\r\n", 7},
        {"GET / HTTP/9.9\r\n" HOST "\r\n", 16 + 17 + 2},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 66},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 82},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        int status = raw_request(app.port, cases[i].bytes, cases[i].len, 1500, NULL);
        ck_assert_msg(status == 0 || status >= 400, "case %zu: %d", i, status);
    }
    expect_status("GET /alive HTTP/1.1\r\n" HOST CLOSE, 200, "/alive");
}
END_TEST

START_TEST(test_huge_head)
{
    struct str b = {0}, out = {0};
    str_puts(&b, "GET / HTTP/1.1\r\n" HOST "X-Long: ");
    for (int i = 0; i < 100000; i++)
        str_putc(&b, 'a');
    str_puts(&b, "\r\n\r\n");
    int status = raw_request(app.port, b.s, b.len, PATIENCE_MS, &out);
    ck_assert_int_eq(status, 431);
    ck_assert_uint_eq(raw_count(&out, "HTTP/1.1"), 1);
    str_clear(&b);
    str_clear(&out);
    str_puts(&b, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 150; i++)
        str_printf(&b, "X-%d: 1\r\n", i);
    str_puts(&b, "\r\n");
    ck_assert_int_eq(raw_request(app.port, b.s, b.len, PATIENCE_MS, &out), 431);
    str_clear(&b);
    str_clear(&out);
    str_puts(&b, "GET /");
    for (int i = 0; i < 5000; i++)
        str_putc(&b, 'a');
    str_puts(&b, " HTTP/1.1\r\n" HOST CLOSE);
    ck_assert_int_eq(raw_request(app.port, b.s, b.len, PATIENCE_MS, &out), 414);
    ck_assert_int_eq(atomic_load(&app.n_handled), 0);
    str_done(&b);
    str_done(&out);
}
END_TEST

/* As many parameters and header lines as are allowed, and one more. */
START_TEST(test_limits_of_a_head)
{
    static const struct {
        int parameters, headers, status;
    } cases[] = {{32, 1, 200},  {33, 1, 414},  {500, 1, 414}, {2000, 1, 414},
                 {32, 98, 200}, {32, 99, 431}, {1, 2500, 431}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct str b = {0}, out = {0};
        str_puts(&b, "GET /");
        for (int k = 0; k < cases[i].parameters; k++)
            str_printf(&b, "%c%x", k ? '&' : '?', (unsigned)k);
        str_puts(&b, " HTTP/1.1\r\n" HOST);
        for (int k = 1; k < cases[i].headers; k++)
            str_puts(&b, "A:\r\n");
        str_puts(&b, CLOSE);
        int status = raw_request(app.port, b.s, b.len, PATIENCE_MS, &out);
        ck_assert_msg(status == cases[i].status, "case %zu: got %d: %s", i, status, str_cstr(&out));
        ck_assert_uint_eq(raw_count(&out, "HTTP/1.1"), 1);
        str_done(&b);
        str_done(&out);
    }
}
END_TEST

START_TEST(test_body_too_large)
{
    struct str b = {0}, out = {0};
    expect_status("POST / HTTP/1.1\r\n" HOST
                  "Content-Length: 100001\r\nExpect: 100-continue\r\n\r\n",
                  413, "at most 100000");
    expect_status("POST / HTTP/1.1\r\n" HOST "Content-Length: 999999999999\r\n\r\n", 413,
                  "at most");
    /* chunked, so that only counting detects the size; the answer still arrives */
    str_puts(&b, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" CLOSE);
    for (int i = 0; i < 30; i++) {
        str_puts(&b, "1000\r\n");
        for (int k = 0; k < 4096; k++)
            str_putc(&b, 'x');
        str_puts(&b, "\r\n");
    }
    str_puts(&b, "0\r\n\r\n");
    ck_assert_int_eq(raw_request(app.port, b.s, b.len, PATIENCE_MS, &out), 413);
    ck_assert_int_eq(atomic_load(&app.n_handled), 0);
    str_done(&b);
    str_done(&out);
}
END_TEST

START_TEST(test_early_answer_with_body)
{
    expect_status("POST /early HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" CLOSE "hello", 403,
                  "early");
    expect_status("POST /early HTTP/1.1\r\n" HOST
                  "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
                  403, "early");
    ck_assert_int_eq(atomic_load(&app.n_handled), 0);
}
END_TEST

/* Held while only the head is known, then the body is read. */
START_TEST(test_hold_at_head)
{
    expect_status("POST /held HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" CLOSE "hello", 200,
                  "body=hello;");
    expect_status("GET /held HTTP/1.1\r\n" HOST CLOSE, 200, "GET /held");
    expect_status("POST /held?refuse=1 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" CLOSE "hello",
                  401, "no");
    expect_status("GET /held?refuse=1 HTTP/1.1\r\n" HOST CLOSE, 401, "no");
}
END_TEST

/* A byte now and then after these does not keep a connection alive. */
static void check_closed(const char *bytes)
{
    struct str out = {0};
    int fd = raw_connect(app.port);
    int64_t begin = clock_mono_ns();
    bool closed = false;
    raw_puts(fd, bytes);
    while (!closed && clock_mono_ns() - begin < PATIENCE_MS * NS_PER_MS) {
        raw_puts(fd, "a");
        closed = raw_read(fd, &out, NULL, 100);
    }
    ck_assert_msg(closed, "the connection outlived its deadline");
    ck_assert_int_eq(atomic_load(&app.n_handled), 0);
    (void)close(fd);
    str_done(&out);
}

/* The deadline of a head is absolute. */
START_TEST(test_slow_head)
{
    check_closed("GET / HTTP/1.1\r\n" HOST "X-Slow: ");
}
END_TEST

/* Neither silence nor a slow first line keeps a connection alive, at its start and between
 * requests. */
START_TEST(test_slow_first_line)
{
    static const char *const begins[] = {"", "G", "GET /one HTTP/1.1\r\n" HOST "\r\nG"};
    for (size_t i = 0; i < AS_ARRAY_LEN(begins); i++) {
        struct str out = {0};
        int64_t begin = clock_mono_ns();
        bool closed = false;
        int fd = raw_connect(app.port);
        raw_puts(fd, begins[i]);
        /* On a busy machine the request itself may come too late: then once more. */
        while (i == 2 && raw_read(fd, &out, "/one body", PATIENCE_MS)) {
            ck_assert_int_lt(clock_mono_ns() - begin, PATIENCE_MS * NS_PER_MS);
            (void)close(fd);
            str_clear(&out);
            fd = raw_connect(app.port);
            raw_puts(fd, begins[i]);
        }
        while (!closed && clock_mono_ns() - begin < PATIENCE_MS * NS_PER_MS) {
            closed = raw_read(fd, &out, NULL, 100);
            if (!closed && i == 2)
                raw_puts(fd, "E");
        }
        ck_assert_msg(closed, "case %zu: the connection outlived its deadline", i);
        (void)close(fd);
        str_done(&out);
    }
}
END_TEST

/* A body must arrive at a lowest rate. */
START_TEST(test_slow_body)
{
    check_closed("POST / HTTP/1.1\r\n" HOST "Content-Length: 50000\r\n\r\n");
}
END_TEST

START_TEST(test_peer_leaves_while_parked)
{
    int fd = raw_connect(app.port);
    raw_puts(fd, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    wait_for(&app.n_handled, 1);
    (void)close(fd);
    wait_for(&app.n_gone, 1);
    wait_for(&app.n_ended, 1);
}
END_TEST

START_TEST(test_stream)
{
    struct str out = {0};
    int fd = raw_connect(app.port);
    raw_puts(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    wait_for(&app.n_handled, 1);
    struct http_stream *s = app.stream;
    ck_assert_int_eq(http_stream_write(s, "first;", 6), AS_OK);
    ck_assert(!raw_read(fd, &out, "first;", PATIENCE_MS));
    ck_assert_ptr_nonnull(strstr(str_cstr(&out), "first;"));
    for (int i = 0; i < 1000; i++) {
        char piece[32];
        int n = snprintf(piece, sizeof piece, "piece %d;", i);
        as_status st = AS_E_TOO_LARGE;
        while ((st = http_stream_write(s, piece, (size_t)n)) == AS_E_TOO_LARGE)
            clock_sleep_ms(1);
        ck_assert_int_eq(st, AS_OK);
    }
    ck_assert(!raw_read(fd, &out, "piece 999;", PATIENCE_MS));
    ck_assert_ptr_nonnull(strstr(str_cstr(&out), "piece 999;"));
    http_stream_end(s, true);
    ck_assert(!raw_read(fd, &out, "\r\n0\r\n", PATIENCE_MS));
    ck_assert_int_eq(http_stream_write(s, "x", 1), AS_E_NOT_FOUND);
    http_stream_unref(s);
    (void)close(fd);
    str_done(&out);
}
END_TEST

START_TEST(test_stream_peer_leaves)
{
    int fd = raw_connect(app.port);
    raw_puts(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    wait_for(&app.n_handled, 1);
    struct http_stream *s = app.stream;
    (void)close(fd);
    wait_for(&app.n_ended, 1); /* without a byte being written */
    ck_assert(http_stream_is_gone(s));
    http_stream_unref(s);
}
END_TEST

static void *send_many_requests(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        const char *request = i % 2 ? "POST /held HTTP/1.1\r\n" HOST "Content-Length: 2\r\n" CLOSE
                                      "ab"
                                    : "GET /x HTTP/1.1\r\n" HOST CLOSE;
        struct str out = {0};
        (void)raw_request(app.port, request, strlen(request), PATIENCE_MS, &out);
        ck_assert_int_eq(raw_status(&out), 200);
        str_done(&out);
    }
    return NULL;
}

START_TEST(test_many_at_once)
{
    pthread_t t[8];
    for (size_t i = 0; i < AS_ARRAY_LEN(t); i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, send_many_requests, NULL), 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(t); i++)
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
    ck_assert_int_eq(atomic_load(&app.n_handled), 400);
}
END_TEST

static long resident_kb(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
    (void)fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The memory of connections goes back to the system when they end. */
START_TEST(test_memory_of_connections)
{
    int fds[400];
    long before = resident_kb();
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++) {
        AS_AUTO(str_done) struct str out = {0};
        fds[i] = raw_connect(app.port);
        raw_puts(fds[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        ck_assert(!raw_read(fds[i], &out, ";", PATIENCE_MS));
    }
    long most = resident_kb();
    ck_assert_int_gt(most, before + 4 * (long)AS_ARRAY_LEN(fds)); /* a page for each at least */
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (resident_kb() > before + (most - before) / 2 && clock_mono_ns() < until)
        clock_sleep_ms(5);
    ck_assert_int_le(resident_kb(), before + (most - before) / 2);
}
END_TEST

/* ---- few connections ---- */

static bool is_closed(int fd)
{
    AS_AUTO(str_done) struct str out = {0};
    bool closed = raw_read(fd, &out, NULL, PATIENCE_MS);
    ck_assert_uint_eq(out.len, 0);
    (void)close(fd);
    return closed;
}

static void expect_served(int fd, const char *path)
{
    AS_AUTO(str_done) struct str out = {0};
    char text[120];
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    raw_puts(fd, text);
    ck_assert(!raw_read(fd, &out, ";", PATIENCE_MS));
    ck_assert_int_eq(raw_status(&out), 200);
}

/* A connection whose request is being read: the server has asked for the body. */
static int open_busy(int port)
{
    AS_AUTO(str_done) struct str out = {0};
    int fd = raw_connect(port);
    raw_puts(fd, "POST /busy HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                 "Expect: 100-continue\r\n\r\n");
    ck_assert(!raw_read(fd, &out, "100 Continue\r\n\r\n", PATIENCE_MS));
    return fd;
}

/* Silent connections keep no request of their address out, however many come. */
START_TEST(test_silent_connections_make_room)
{
    int silent[5 * FEW_OF_ONE], known = raw_connect(app.port);
    expect_served(known, "/known");
    for (size_t i = 0; i < AS_ARRAY_LEN(silent); i++)
        silent[i] = raw_connect(app.port);
    int fd = raw_connect(app.port);
    expect_served(fd, "/new");
    expect_served(known, "/known"); /* it has sent a request before: the silent ones go first */
    (void)close(fd);
    for (size_t i = 0; i + FEW_OF_ONE < AS_ARRAY_LEN(silent); i++)
        ck_assert_msg(is_closed(silent[i]), "connection %zu", i);
    for (size_t i = AS_ARRAY_LEN(silent) - FEW_OF_ONE; i < AS_ARRAY_LEN(silent); i++)
        (void)close(silent[i]);
    (void)close(known);
}
END_TEST

/* So do those that begin a head and never end it, and those whose answer is known while they send
 * a body. */
START_TEST(test_slow_connections_make_room)
{
    AS_AUTO(str_done) struct str out = {0};
    int fds[FEW_OF_ONE];
    for (int i = 0; i < FEW_OF_ONE; i++) {
        fds[i] = raw_connect(app.port);
        raw_puts(fds[i], i % 2 ? "GET / HTTP/1.1\r\nHost: a\r\n"
                               : "POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n");
    }
    for (int i = 0; i < 2 * FEW_OF_ONE; i++) {
        int fd = raw_connect(app.port);
        expect_served(fd, "/new");
        (void)close(fd);
    }
    for (int i = 0; i < FEW_OF_ONE; i++)
        (void)close(fds[i]);
}
END_TEST

/* Requests that are being read or answered are not closed: the new connection is. */
START_TEST(test_busy_connections_stay)
{
    int fds[FEW_OF_ONE];
    for (int i = 0; i < FEW_OF_ONE; i++)
        fds[i] = open_busy(app.port);
    for (int i = 0; i < FEW_OF_ONE; i++)
        ck_assert(is_closed(raw_connect(app.port)));
    for (int i = 0; i < FEW_OF_ONE; i++) {
        AS_AUTO(str_done) struct str out = {0};
        raw_puts(fds[i], "whole");
        ck_assert(!raw_read(fds[i], &out, ";", PATIENCE_MS));
        ck_assert_ptr_nonnull(strstr(str_cstr(&out), "body=whole;"));
        (void)close(fds[i]);
    }
}
END_TEST

static int connect_from(const char *address)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(inet_pton(AF_INET, address, &from.sin_addr), 1);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)app.port);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* The same for the connections of all addresses, each within its share. */
START_TEST(test_silent_connections_of_many)
{
    enum { EACH = FEW_OF_ONE - 1, OTHERS = 8 };
    int fds[OTHERS][EACH];
    char address[20];
    for (int i = 0; i < OTHERS; i++)
        for (int k = 0; k < EACH; k++) {
            (void)snprintf(address, sizeof address, "127.0.0.%d", 2 + i);
            fds[i][k] = connect_from(address);
        }
    for (int i = 0; i < 3; i++) {
        int fd = raw_connect(app.port);
        expect_served(fd, "/new");
        (void)close(fd);
    }
    for (int i = 0; i < OTHERS; i++)
        for (int k = 0; k < EACH; k++)
            (void)close(fds[i][k]);
}
END_TEST

/* The service manager hears from the thread that watches connections, as often as it wants. The
 * socket is an abstract one, so that nothing is left behind. */
START_TEST(test_watchdog)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int n = snprintf(at.sun_path, sizeof at.sun_path, "@assay-test-http-%d", (int)getpid());
    (void)setenv("NOTIFY_SOCKET", at.sun_path, 1);
    (void)setenv("WATCHDOG_USEC", "20000", 1);
    at.sun_path[0] = '\0';
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    start_transport();
    for (int i = 0; i < 2; i++) {
        char text[20] = "";
        ck_assert_int_gt(recv(fd, text, sizeof text - 1, 0), 0);
        ck_assert_str_eq(text, "WATCHDOG=1");
    }
    stop_transport();
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    close(fd);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_http");
    TCase *tc = tcase_create("transport");
    tcase_add_checked_fixture(tc, start_transport, stop_transport);
    tcase_add_test(tc, test_plain);
    tcase_add_test(tc, test_keep_alive_and_pipelining);
    tcase_add_test(tc, test_smuggling);
    tcase_add_test(tc, test_hidden_bytes);
    tcase_add_test(tc, test_refusal_in_pieces);
    tcase_add_test(tc, test_limits_of_a_head);
    tcase_add_test(tc, test_targets);
    tcase_add_test(tc, test_garbage);
    tcase_add_test(tc, test_huge_head);
    tcase_add_test(tc, test_body_too_large);
    tcase_add_test(tc, test_early_answer_with_body);
    tcase_add_test(tc, test_hold_at_head);
    tcase_add_test(tc, test_peer_leaves_while_parked);
    tcase_add_test(tc, test_stream);
    tcase_add_test(tc, test_stream_peer_leaves);
    tcase_add_test(tc, test_many_at_once);
    tcase_add_test(tc, test_memory_of_connections);
    suite_add_tcase(s, tc);
    tc = tcase_create("watchdog");
    tcase_add_test(tc, test_watchdog);
    suite_add_tcase(s, tc);
    tc = tcase_create("deadlines");
    tcase_add_checked_fixture(tc, start_impatient, stop_transport);
    tcase_add_test(tc, test_slow_head);
    tcase_add_test(tc, test_slow_first_line);
    tcase_add_test(tc, test_slow_body);
    suite_add_tcase(s, tc);
    tc = tcase_create("few connections");
    tcase_add_checked_fixture(tc, start_few, stop_transport);
    tcase_add_test(tc, test_silent_connections_make_room);
    tcase_add_test(tc, test_slow_connections_make_room);
    tcase_add_test(tc, test_busy_connections_stay);
    tcase_add_test(tc, test_silent_connections_of_many);
    suite_add_tcase(s, tc);
    return s;
}
