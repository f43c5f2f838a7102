/* The client against a real server on this machine: statuses, retries, blobs, streams, interrupts.
 */
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/client/client.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "tests/api/client/http_server.h"

/* The behaviour of the test server, and the requests that it saw. */
struct script {
    int status;          /* of every answer, once `fail` is used up */
    const char *code;    /* with status >= 400: a problem of this code */
    atomic_int fail;     /* answer this number of requests with 503 first */
    atomic_int requests; /* seen */
    atomic_int release;  /* a request to /wait is answered when this is set */
    char seen[512];      /* "METHOD path?query auth key type body" of the last */
    char *blob;          /* content of /v1/blobs */
    size_t blob_len;
    bool wrong_blob, cut_blob;
    bool ranges;    /* the server knows Range */
    size_t resumed; /* where the last range began */
    atomic_int puts;
    char last_event_id[64];
};

static struct script sc;
static struct http_server *server;
static struct client *client;

static void answer_blob(const struct server_request *q, struct server_answer *a)
{
    if (strcmp(q->method, "PUT") == 0) {
        char *copy = malloc(q->body_len + 1);
        memcpy(copy, q->body, q->body_len);
        free(sc.blob);
        sc.blob = copy;
        sc.blob_len = q->body_len;
        sc.puts++;
        a->status = 201;
        return;
    }
    if (!sc.blob) {
        answer_problem(a, 404, "not_found", "no such blob");
        return;
    }
    a->content_type = "application/octet-stream";
    if (strcmp(q->method, "HEAD") == 0)
        return;
    size_t from = 0;
    if (sc.ranges && sscanf(q->range, "bytes=%zu-", &from) == 1) {
        a->status = from < sc.blob_len ? 206 : 416;
        sc.resumed = from;
        if (from >= sc.blob_len)
            return;
    }
    a->body = malloc(sc.blob_len - from);
    memcpy(a->body, sc.blob + from, sc.blob_len - from);
    a->body_len = sc.blob_len - from;
    a->body[0] = (char)(a->body[0] ^ sc.wrong_blob);
    a->cut = sc.cut_blob;
    sc.cut_blob = false;
}

/* Send two events on each connection, numbered from Last-Event-ID on; then end the connection. */
static void answer_events(const struct server_request *q, struct server_answer *a)
{
    int after = (int)strtol(q->last_event_id, NULL, 10);
    snprintf(sc.last_event_id, sizeof sc.last_event_id, "%s", q->last_event_id);
    answer_json(a, 200,
                ": hello\n\nid: %d\nevent: trial.changed\ndata: {\"n\":\ndata: %d}\n\n"
                "id: %d\r\ndata: {\"n\": %d}\r\n\r\nid: 99\ndata: {\"half\"",
                after + 1, after + 1, after + 2, after + 2);
    a->content_type = "text/event-stream";
}

static void handle_request(void *arg, const struct server_request *q, struct server_answer *a)
{
    (void)arg;
    sc.requests++;
    if (sc.fail > 0) {
        sc.fail--;
        answer_problem(a, 503, "unavailable", "the database is away");
        return;
    }
    if (strncmp(q->path, "/v1/blobs/", 10) == 0) {
        answer_blob(q, a);
        return;
    }
    if (strcmp(q->path, "/events") == 0) {
        answer_events(q, a);
        return;
    }
    while (strcmp(q->path, "/wait") == 0 && !sc.release)
        clock_sleep_ms(5);
    snprintf(sc.seen, sizeof sc.seen, "%s %s?%s %s %s %s %s", q->method, q->path, q->query,
             q->authorization, q->idempotency_key, q->content_type, q->body);
    if (sc.status == 204)
        a->status = 204;
    else if (sc.status >= 400 && sc.code)
        answer_problem(a, sc.status, sc.code, "the detail");
    else
        answer_json(a, sc.status, "{\"x\": 1}");
}

static void setup(void)
{
    struct as_err err = {0};
    memset(&sc, 0, sizeof sc);
    sc.status = 200;
    server = http_server_start(0, handle_request, NULL);
    ck_ok(client_create(http_server_url(server), "tok", "test", &client, &err), err);
}

static void teardown(void)
{
    client_free(client);
    http_server_stop(server);
    free(sc.blob);
}

START_TEST(sends_what_it_is_told)
{
    struct as_err err = {0};
    AS_AUTO(str_done) struct str path = {0}, query = {0};
    JSON_AUTO body = json_pack("{s:i}", "b", 1);
    JSON_AUTO ret = NULL;
    struct client_opts opts = {.idempotency_key = "k1", .content_type = "application/x+json"};
    int status = 0;
    str_puts(&path, "/v1");
    client_path_add(&path, "a b~c");
    client_path_add_i64(&path, 7);
    client_query_add(&query, "state", "r&n=1");
    client_query_add_i64(&query, "n", -3);
    ck_assert_str_eq(path.s, "/v1/a%20b~c/7");
    ck_assert_str_eq(query.s, "state=r%26n%3D1&n=-3");
    ck_ok(client_call(client, "POST", path.s, query.s, body, &opts, &ret, &status, &err), err);
    ck_assert_int_eq(status, 200);
    ck_assert_int_eq(json_integer_value(json_object_get(ret, "x")), 1);
    ck_assert_str_eq(sc.seen, "POST /v1/a b~c/7?state=r&n=1&n=-3 Bearer tok k1 "
                              "application/x+json {\"b\":1}");
}
END_TEST

START_TEST(empty_answers)
{
    struct as_err err = {0};
    JSON_AUTO ret = json_null();
    sc.status = 204;
    ck_ok(client_call(client, "DELETE", "/x", NULL, NULL, NULL, &ret, NULL, &err), err);
    ck_assert_ptr_null(ret);
}
END_TEST

static const struct {
    int http;
    const char *code;
    as_status want;
} statuses[] = {
    {400, "invalid", AS_E_INVAL},           {401, "denied", AS_E_DENIED},
    {403, "denied", AS_E_DENIED},           {404, "not_found", AS_E_NOT_FOUND},
    {409, "conflict", AS_E_CONFLICT},       {409, "stale_attempt", AS_E_STALE},
    {409, "stale_epoch", AS_E_STALE},       {413, "too_large", AS_E_TOO_LARGE},
    {415, "unsupported", AS_E_UNSUPPORTED}, {422, "invalid", AS_E_INVAL},
    {429, "busy", AS_E_UNAVAILABLE},        {500, "internal", AS_E_INTERNAL},
    {503, "unavailable", AS_E_UNAVAILABLE},
};

START_TEST(problems_become_statuses)
{
    struct as_err err = {0};
    int status = 0;
    sc.status = statuses[_i].http;
    sc.code = statuses[_i].code;
    as_status st = client_call(client, "GET", "/x", NULL, NULL, NULL, NULL, &status, &err);
    ck_fails(st, statuses[_i].want, err, "the detail");
    ck_assert_int_eq(status, statuses[_i].http);
    ck_assert_str_eq(client_problem_code(client), statuses[_i].code);
    sc.code = NULL; /* an answer that is no problem document */
    st = client_call(client, "GET", "/x", NULL, NULL, NULL, NULL, NULL, &err);
    if (statuses[_i].http != 409)
        ck_fails(st, statuses[_i].want, err, "answered HTTP");
    ck_assert_str_eq(client_problem_code(client), "");
}
END_TEST

static void named_field(void *arg, const struct server_request *q, struct server_answer *a)
{
    (void)arg, (void)q;
    answer_json(a, 400,
                "{\"title\":\"Invalid\",\"detail\":\"bad document\",\"errors\":["
                "{\"pointer\":\"/limits/max_trials\",\"detail\":\"must be above 0\"},"
                "{\"pointer\":\"/x\",\"detail\":\"unknown\"}]}");
    a->content_type = "application/problem+json; charset=utf-8";
}

START_TEST(problems_name_the_field)
{
    struct as_err err = {0};
    struct http_server *s = http_server_start(0, named_field, NULL);
    struct client *c = NULL;
    ck_ok(client_create(http_server_url(s), NULL, "test", &c, &err), err);
    ck_fails(client_call(c, "GET", "/x", NULL, NULL, NULL, NULL, NULL, &err), AS_E_INVAL, err,
             "bad document: must be above 0 (and 1 more)");
    ck_assert_str_eq(err.pointer, "/limits/max_trials");
    client_free(c);
    http_server_stop(s);
}
END_TEST

static void answer_nonsense(void *arg, const struct server_request *q, struct server_answer *a)
{
    (void)arg;
    answer_json(a, 200, "{\"x\":");
    a->content_type = strcmp(q->path, "/html") == 0 ? "text/html" : "application/json";
    if (strcmp(q->path, "/cut") == 0)
        a->cut = true;
}

START_TEST(answers_that_break_the_contract)
{
    struct as_err err = {0};
    struct http_server *s = http_server_start(0, answer_nonsense, NULL);
    struct client *c = NULL;
    ck_ok(client_create(http_server_url(s), NULL, "test", &c, &err), err);
    ck_fails(client_call(c, "GET", "/x", NULL, NULL, NULL, NULL, NULL, &err), AS_E_INTERNAL, err,
             "not JSON");
    ck_fails(client_call(c, "GET", "/html", NULL, NULL, NULL, NULL, NULL, &err), AS_E_INTERNAL, err,
             "text/html");
    ck_fails(client_call(c, "GET", "/cut", NULL, NULL, NULL, NULL, NULL, &err), AS_E_UNAVAILABLE,
             err, "no answer");
    client_free(c);
    http_server_stop(s);
}
END_TEST

START_TEST(retries_while_unavailable)
{
    struct as_err err = {0};
    struct client_opts opts = {.retry_ms = 20000};
    sc.fail = 3;
    ck_ok(client_call(client, "PUT", "/x", NULL, NULL, &opts, NULL, NULL, &err), err);
    ck_assert_int_eq(sc.requests, 4);
    sc.fail = 1;
    ck_fails(client_call(client, "PUT", "/x", NULL, NULL, NULL, NULL, NULL, &err), AS_E_UNAVAILABLE,
             err, "database is away");
}
END_TEST

struct restart {
    int port;
    struct http_server *server;
};

/* The server starts again after a try of the client has failed. */
static void *start_late(void *arg)
{
    struct restart *r = arg;
    http_port_turn_away(r->port);
    r->server = http_server_start(r->port, handle_request, NULL);
    return NULL;
}

START_TEST(survives_a_restart_of_the_server)
{
    struct as_err err = {0};
    struct client_opts opts = {.retry_ms = CLIENT_RETRY_FOREVER};
    struct restart r = {0};
    struct client *c = NULL;
    pthread_t t;
    int port_fd = http_port_reserve(&r.port);
    r.server = http_server_start(r.port, handle_request, NULL);
    ck_ok(client_create(http_server_url(r.server), "tok", "test", &c, &err), err);
    ck_ok(client_call(c, "GET", "/x", NULL, NULL, NULL, NULL, NULL, &err), err);
    http_server_stop(r.server);
    ck_fails(client_call(c, "GET", "/x", NULL, NULL, NULL, NULL, NULL, &err), AS_E_UNAVAILABLE, err,
             "no answer from http://127.0.0.1");
    pthread_create(&t, NULL, start_late, &r);
    ck_ok(client_call(c, "GET", "/x", NULL, NULL, &opts, NULL, NULL, &err), err);
    pthread_join(t, NULL);
    client_free(c);
    http_server_stop(r.server);
    (void)close(port_fd);
}
END_TEST

START_TEST(a_call_ends_in_time)
{
    struct as_err err = {0};
    struct client_opts opts = {.timeout_ms = 50};
    ck_fails(client_call(client, "GET", "/wait", NULL, NULL, &opts, NULL, NULL, &err),
             AS_E_UNAVAILABLE, err, "no answer");
    sc.release = 1;
}
END_TEST

static void *interrupt_when_waiting(void *arg)
{
    while (sc.requests == 0)
        clock_sleep_ms(2);
    client_interrupt(arg);
    return NULL;
}

START_TEST(an_interrupt_ends_a_call_and_every_later_one)
{
    struct as_err err = {0};
    struct client_opts opts = {.retry_ms = CLIENT_RETRY_FOREVER, .timeout_ms = 600000};
    pthread_t t;
    pthread_create(&t, NULL, interrupt_when_waiting, client);
    ck_fails(client_call(client, "GET", "/wait", NULL, NULL, &opts, NULL, NULL, &err),
             AS_E_UNAVAILABLE, err, "interrupted");
    pthread_join(t, NULL);
    sc.release = 1;
    ck_fails(client_call(client, "GET", "/x", NULL, NULL, &opts, NULL, NULL, &err),
             AS_E_UNAVAILABLE, err, "interrupted");
    ck_assert(!client_wait(client, 600000));
}
END_TEST

START_TEST(refuses_bad_urls_and_tokens)
{
    static const char *const bad[] = {"",          "127.0.0.1:80", "ftp://x",    "http://",
                                      "http:///x", "http://u@h",   "http://h?x", "http://h h"};
    struct as_err err = {0};
    struct client *c = NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
        ck_fails(client_create(bad[i], NULL, "t", &c, &err), AS_E_INVAL, err, "server");
    ck_fails(client_create("http://h", "a\nb", "t", &c, &err), AS_E_INVAL, err, "token");
    ck_ok(client_create("http://h/prefix/", "", "t", &c, &err), err);
    client_free(c);
    client_free(NULL);
}
END_TEST

static char dir[TEMP_FOLDER_SIZE];

static char *write_file(const char *name, size_t len)
{
    char *path = file_join(dir, name), *bytes = malloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 7 % 251);
    ck_assert(file_replace(path, bytes, len, 0600, NULL) == AS_OK);
    free(bytes);
    return path;
}

static void note_progress(void *arg, int64_t done)
{
    int64_t *last = arg;
    ck_assert_int_gt(done, *last);
    *last = done;
}

/* Into a descriptor nothing is rewound: a server that knows no ranges cannot go on. */
START_TEST(blobs_go_through_descriptors)
{
    struct as_err err = {0};
    char sha[SHA256_HEX_SIZE], got[SHA256_HEX_SIZE];
    int64_t size = 0, last = 0;
    bool sent = false;
    const struct client_opts opts = {
        .retry_ms = 20000, .on_progress = note_progress, .progress_arg = &last};
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *up = write_file("up", 3000000);
    AS_AUTO(as_freep) char *down = file_join(dir, "down");
    AS_AUTO(file_closep) int in = open(up, O_RDONLY | O_CLOEXEC);
    AS_AUTO(file_closep) int out = open(down, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_ok(sha256_of_fd(in, NULL, NULL, sha, &size, &err), err);
    ck_assert_int_eq(size, 3000000);
    ck_ok(client_upload_fd(client, in, size, sha, &opts, &sent, &err), err);
    ck_assert(sent && last == size);
    last = 0;
    ck_ok(client_download_fd(client, sha, out, &opts, &err), err);
    ck_assert_int_eq(last, size);
    ck_ok(sha256_of_file(down, got, NULL, &err), err);
    ck_assert_str_eq(got, sha);
    last = 0;
    sc.cut_blob = true;
    ck_fails(client_download_fd(client, sha, out, &opts, &err), AS_E_UNAVAILABLE, err,
             "sends no rest");
    temp_folder_remove(dir);
}
END_TEST

/* After a cut only the rest is asked for, into a file and into a pipe; the digest is of the
 * whole. */
START_TEST(a_cut_download_goes_on)
{
    struct as_err err = {0};
    char sha[SHA256_HEX_SIZE], got[SHA256_HEX_SIZE];
    int64_t last = 0;
    const struct client_opts opts = {
        .retry_ms = 20000, .on_progress = note_progress, .progress_arg = &last};
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *up = write_file("up", 3000000);
    AS_AUTO(as_freep) char *down = file_join(dir, "down");
    AS_AUTO(as_freep) char *piped = file_join(dir, "piped");
    ck_ok(sha256_of_file(up, sha, NULL, &err), err);
    ck_ok(client_upload_file(client, up, sha, NULL, NULL, &err), err);
    sc.ranges = sc.cut_blob = true;
    ck_ok(client_download_blob(client, sha, down, 0, &opts, &err), err);
    ck_assert(sc.resumed > 0 && sc.resumed < 3000000);
    ck_assert_int_eq(last, 3000000); /* it never went back */
    ck_ok(sha256_of_file(down, got, NULL, &err), err);
    ck_assert_str_eq(got, sha);
    AS_AUTO(file_closep) int out = open(piped, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    last = 0;
    sc.resumed = 0;
    sc.cut_blob = true;
    ck_ok(client_download_fd(client, sha, out, &opts, &err), err);
    ck_assert_uint_gt(sc.resumed, 0);
    ck_ok(sha256_of_file(piped, got, NULL, &err), err);
    ck_assert_str_eq(got, sha);
    temp_folder_remove(dir);
}
END_TEST

START_TEST(blobs_go_up_once_and_come_down_checked)
{
    struct as_err err = {0};
    char sha[SHA256_HEX_SIZE], got[SHA256_HEX_SIZE];
    struct client_opts opts = {.retry_ms = 20000};
    bool sent = false;
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *up = write_file("up", 3000000);
    AS_AUTO(as_freep) char *down = file_join(dir, "down");
    ck_ok(sha256_of_file(up, sha, NULL, &err), err);
    ck_fails(client_download_blob(client, sha, down, 0, NULL, &err), AS_E_NOT_FOUND, err, "blob");
    sc.fail = 1;
    ck_ok(client_upload_file(client, up, sha, &opts, &sent, &err), err);
    ck_assert(sent);
    ck_ok(client_upload_file(client, up, sha, &opts, &sent, &err), err);
    ck_assert(!sent);
    ck_assert_int_eq(sc.puts, 1);
    sc.cut_blob = true; /* the first try is cut in the middle */
    AS_AUTO(as_freep) char *real = write_file("real", 10);
    ck_assert_int_eq(symlink("real", down), 0); /* its target is replaced, and it stays a link */
    ck_ok(client_download_blob(client, sha, down, 0, &opts, &err), err);
    ck_ok(sha256_of_file(real, got, NULL, &err), err);
    ck_assert_str_eq(got, sha);
    ck_assert_int_eq(unlink(down), 0);
    ck_ok(sha256_of_file(real, got, NULL, &err), err);
    ck_assert_str_eq(got, sha);
    ck_assert_int_eq(rename(real, down), 0);
    ck_fails(client_download_blob(client, sha, down, 1000, &opts, &err), AS_E_TOO_LARGE, err,
             "larger than 1000");
    sc.wrong_blob = true;
    unlink(down);
    ck_fails(client_download_blob(client, sha, down, 0, &opts, &err), AS_E_INTERNAL, err, "digest");
    ck_assert_int_ne(access(down, F_OK), 0);
    ck_ok(client_upload_file(client, down, sha, &opts, NULL, &err), err); /* it is there already */
    ck_fails(client_download_blob(client, "../etc", down, 0, NULL, &err), AS_E_INVAL, err,
             "not a SHA-256");
    unlink(up);
    ck_assert_int_eq(rmdir(dir), 0); /* no temporary is left */
}
END_TEST

struct follow {
    int events, connections, cuts, until;
    char text[400];
};

static bool on_event(void *arg, const char *id, const char *type, const json_t *data)
{
    struct follow *f = arg;
    size_t len = strlen(f->text);
    snprintf(f->text + len, sizeof f->text - len, "%s/%s/%lld ", id, type,
             (long long)json_integer_value(json_object_get(data, "n")));
    return ++f->events < f->until;
}

static void on_connection(void *arg, bool connected, const char *why)
{
    struct follow *f = arg;
    (void)why;
    f->connections += connected;
    f->cuts += !connected;
}

static bool on_tick(void *arg)
{
    struct follow *f = arg;
    return f->cuts < 3;
}

START_TEST(a_stream_resumes_where_it_was_cut)
{
    struct as_err err = {0};
    struct follow f = {.until = 5};
    struct client_stream_fns fns = {
        .on_event = on_event, .on_connection = on_connection, .arg = &f};
    struct client_opts opts = {.retry_ms = 20000};
    ck_ok(client_stream_events(client, "/events", "10", &fns, &opts, &err), err);
    ck_assert_str_eq(f.text, "11/trial.changed/11 12/message/12 13/trial.changed/13 "
                             "14/message/14 15/trial.changed/15 ");
    ck_assert_int_eq(f.connections, 3);
    ck_assert_int_eq(f.cuts, 2);
    ck_assert_str_eq(sc.last_event_id, "14");
}
END_TEST

START_TEST(a_stream_ends_on_a_tick_and_on_problems)
{
    struct as_err err = {0};
    struct follow f = {.until = 1000};
    struct client_stream_fns fns = {.on_event = on_event,
                                    .on_tick = on_tick,
                                    .tick_ms = 5,
                                    .on_connection = on_connection,
                                    .arg = &f};
    struct client_opts opts = {.retry_ms = 20000};
    ck_ok(client_stream_events(client, "/events", NULL, &fns, &opts, &err), err);
    ck_assert_int_ge(f.cuts, 3);
    fns.on_tick = NULL;
    sc.status = 404;
    sc.code = "not_found";
    ck_fails(client_stream_events(client, "/gone", NULL, &fns, &opts, &err), AS_E_NOT_FOUND, err,
             "the detail");
    sc.fail = 1;
    ck_fails(client_stream_events(client, "/events", NULL, &fns, NULL, &err), AS_E_UNAVAILABLE, err,
             "database is away");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("client");
    TCase *t = tcase_create("client");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sends_what_it_is_told);
    tcase_add_test(t, empty_answers);
    tcase_add_loop_test(t, problems_become_statuses, 0, (int)AS_ARRAY_LEN(statuses));
    tcase_add_test(t, problems_name_the_field);
    tcase_add_test(t, answers_that_break_the_contract);
    tcase_add_test(t, retries_while_unavailable);
    tcase_add_test(t, survives_a_restart_of_the_server);
    tcase_add_test(t, a_call_ends_in_time);
    tcase_add_test(t, an_interrupt_ends_a_call_and_every_later_one);
    tcase_add_test(t, refuses_bad_urls_and_tokens);
    tcase_add_test(t, blobs_go_up_once_and_come_down_checked);
    tcase_add_test(t, blobs_go_through_descriptors);
    tcase_add_test(t, a_cut_download_goes_on);
    tcase_add_test(t, a_stream_resumes_where_it_was_cut);
    tcase_add_test(t, a_stream_ends_on_a_tick_and_on_problems);
    suite_add_tcase(s, t);
    return s;
}
