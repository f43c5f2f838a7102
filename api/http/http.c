/* The transport over libmicrohttpd: the callbacks of the library, and the life of one exchange.
 *
 * libmicrohttpd calls on_access several times for one request: with the head, with each chunk of
 * the body, and at the end of the request. The flags of struct exchange say how far a request has
 * come. The connection is suspended while the application holds the exchange, and resumed by
 * http_release(), so that a waiting request costs no thread.
 *
 * The table of http_watch.c knows every connection by its descriptor. This file reports each phase
 * of a request to it. The table cuts a connection with shutdown(2), and libmicrohttpd ends it as if
 * the peer had left (a suspended connection: after it is resumed).
 *
 * Some comments name gaps of version 0.9.75. Decision 6002 lists all of them. */
#include "api/http/http.h"

#include <microhttpd.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/http/http_recv.h"
#include "api/http/http_resume_priv.h"
#include "api/http/http_stream_priv.h"
#include "api/http/http_watch_priv.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

/* Bytes for the head and small bodies of one connection. A longer head is answered 431.
 * libmicrohttpd takes up to 32 KiB from the heap, where those of many connections leave holes that
 * no other use fills, and maps more. What is mapped goes back to the system with the connection,
 * and costs no memory before it is used. */
#define CONNECTION_MEMORY (36 * 1024)
/* The connections that libmicrohttpd itself allows beyond our own limit: those that were cut and
 * are not closed yet. At its limit it would accept none, so that nobody could be closed for the
 * next. */
#define CONNECTIONS_MORE(n) ((n) / 4 + 64)
/* Bytes of a refused body that are still read, so that the client sees the answer and no reset. */
#define DRAIN_MAX (8 * 1024 * 1024)
/* Seconds without a byte in either direction, on a connection that is not suspended: a reader that
 * stalls. */
#define STALL_S 60
#define HEADERS_MAX 100

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_table *table;
    struct http_resumer *resumer;
    struct http_app app;
    struct http_options opts;
    atomic_bool is_quiet;    /* no new connections */
    atomic_bool is_stopping; /* requests that begin now are cut, not answered */
};

/* Where an exchange is that on_request was called for. Whoever moves it away from HOLD_CALL first,
 * the I/O thread or http_release(), tells the other what to do: the answer of an application that
 * releases within the call is sent at once, without suspending the connection. */
typedef enum hold {
    HOLD_NONE,
    HOLD_CALL,     /* in the call */
    HOLD_RELEASED, /* released before the connection was suspended */
    HOLD_PARKED,   /* suspended: http_release() resumes it */
} hold;

/* An exchange as http.c sees it. The public part comes first. */
struct exchange {
    struct http_exchange x;
    struct http_server *server;
    struct MHD_Connection *conn;
    struct http_resumed resumed;
    int fd;
    char *target;         /* raw; owned */
    uintptr_t target_end; /* where it ends in libmicrohttpd's buffer; see has_hidden_tail */
    struct as_err refusal;
    bool is_head_read, is_head_done, is_held, is_handed_over, must_cut;
    atomic_int hold;
};

struct http_options http_options_default(void)
{
    return (struct http_options){
        .listen_fd = -1,
        .threads = 2,
        .max_connections = 4096,
        .head_ms = 10000,
        .idle_ms = 75000,
        .body_grace_ms = 20000,
        .body_rate = 1024,
    };
}

static int fd_of(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/* NULL: libmicrohttpd does not know it. */
static const struct sockaddr *address_of(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

/* MHD_quiesce_daemon would stop accepting, but it is unsafe with epoll and several threads
 * (0.9.75). A worker that wakes during the call also removes the listener from its epoll set, and
 * the second removal aborts the process. The descriptor that it returns must stay open until
 * MHD_stop_daemon. So new connections are accepted here and closed at once. */
static enum MHD_Result on_accept(void *cls, const struct sockaddr *addr, socklen_t len)
{
    const struct http_server *s = cls;
    (void)addr;
    (void)len;
    return atomic_load(&s->is_quiet) ? MHD_NO : MHD_YES;
}

/* ---- messages that http_recv.c refuses ---- */

static void on_message(void *ctx, int fd)
{
    struct http_server *s = ctx;
    http_table_phase(s->table, fd, HTTP_PHASE_HEAD);
}

static void write_answer(const struct http_answer *a, struct str *out)
{
    str_printf(out, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n", a->status,
               MHD_get_reason_phrase_for((unsigned)a->status), a->len);
    if (a->content_type)
        str_printf(out, "Content-Type: %s\r\n", a->content_type);
    for (size_t i = 0; i < a->n_headers; i++)
        str_printf(out, "%s: %s\r\n", a->headers[i].name, a->headers[i].value);
    str_puts(out, "X-Content-Type-Options: nosniff\r\n\r\n");
    str_add(out, a->bytes, a->len);
}

/* libmicrohttpd never sees this message: an exchange that lives only here is refused. */
static void on_refused(void *ctx, int fd, const char *problem, http_refusal kind, struct str *ret)
{
    struct http_server *s = ctx;
    struct http_exchange x = {.start_ns = clock_mono_ns(), .refusal = kind, .head.method = "-"};
    struct as_err err = {0};
    as_status st = kind == HTTP_REFUSAL_REQUEST ? AS_E_INVAL : AS_E_TOO_LARGE;
    http_table_phase(s->table, fd, HTTP_PHASE_HEAD); /* the time that the peer has to leave */
    (void)as_fail(&err, st, "%s", problem);
    s->app.on_refusal(s->app.ctx, &x, &err);
    write_answer(&x.answer, ret);
    s->app.on_end(s->app.ctx, &x);
    arena_done(&x.arena);
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = cls;
    int fd = fd_of(conn);
    const struct http_guard_hooks hooks = {s, on_message, on_refused};
    (void)socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        http_table_opened(s->table, fd, address_of(conn));
        if (!http_guard_open(fd, &hooks, s->opts.tls))
            (void)shutdown(fd, SHUT_RDWR);
    } else {
        http_guard_close(fd);
        http_table_closed(s->table, fd);
    }
}

/* The request line was read: the exchange begins. The result becomes *con_cls of on_access. */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *conn)
{
    struct http_server *s = cls;
    struct exchange *e = as_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->server = s;
    e->conn = conn;
    e->resumed.conn = conn;
    e->fd = fd_of(conn);
    e->target = as_strdup(uri);
    e->target_end = (uintptr_t)uri + strlen(uri);
    e->x.start_ns = clock_mono_ns();
    e->x.head.content_length = -1;
    http_table_phase(s->table, e->fd, HTTP_PHASE_HEAD);
    http_table_serve(s->table, e->fd, &e->x);
    return e;
}

/* Cut the connection if the peer has shut down its sending half. libmicrohttpd uses edge-triggered
 * epoll and does not read again after a short read, so it misses an end of data that arrived
 * together with the request. Call this only after the answer was sent. */
static void cut_half_closed(int fd)
{
    char next;
    if (recv(fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        (void)shutdown(fd, SHUT_RDWR);
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct http_server *s = cls;
    struct exchange *e = *con_cls;
    (void)conn;
    if (!e)
        return;
    if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        cut_half_closed(e->fd);
    http_table_serve(s->table, e->fd, NULL);
    http_table_phase(s->table, e->fd, HTTP_PHASE_IDLE);
    if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        http_guard_answered(e->fd);
    if (e->x.answer.stream) {
        http_stream_detach(e->x.answer.stream);
        http_stream_unref(e->x.answer.stream);
    }
    s->app.on_end(s->app.ctx, &e->x);
    str_done(&e->x.body);
    arena_done(&e->x.arena);
    free(e->target);
    free(e);
    *con_cls = NULL;
}

void http_answer_header(struct http_exchange *x, const char *name, const char *value)
{
    struct http_answer *a = &x->answer;
    if (a->n_headers < HTTP_ANSWER_HEADERS_MAX)
        a->headers[a->n_headers++] = (struct http_pair){name, value};
}

/* ---- sending ---- */

static void sleep_connection(void *conn)
{
    MHD_suspend_connection(conn);
}

static void wake_connection(void *conn)
{
    MHD_resume_connection(conn);
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct exchange *e = cls;
    (void)pos;
    const struct http_sleeper sleeper = {sleep_connection, wake_connection, e->conn};
    ssize_t n = http_stream_take(e->x.answer.stream, buf, max, &sleeper);
    if (n == HTTP_STREAM_WHOLE)
        return MHD_CONTENT_READER_END_OF_STREAM;
    return n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}

/* The content of an answer to HEAD: libmicrohttpd wants its length only. */
static ssize_t read_nothing(void *cls, uint64_t pos, char *buf, size_t max)
{
    (void)cls;
    (void)pos;
    (void)buf;
    (void)max;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *make_response(struct exchange *e)
{
    struct http_answer *a = &e->x.answer;
    if (a->head_size > 0 && a->len == 0 && as_streq(e->x.head.method, "HEAD"))
        return MHD_create_response_from_callback((uint64_t)a->head_size, 1024, read_nothing, e,
                                                 NULL);
    if (!a->stream)
        return MHD_create_response_from_buffer(a->len, (void *)a->bytes, MHD_RESPMEM_PERSISTENT);
    return MHD_create_response_from_callback(a->stream_size < 0 ? MHD_SIZE_UNKNOWN
                                                                : (uint64_t)a->stream_size,
                                             16 * 1024, read_stream, e, NULL);
}

static enum MHD_Result send_answer(struct exchange *e)
{
    struct http_answer *a = &e->x.answer;
    if (a->status == 0)
        return MHD_NO;
    struct MHD_Response *r = make_response(e);
    if (!r)
        return MHD_NO;
    enum MHD_Result ok = MHD_YES;
    if (a->content_type)
        ok = ok && MHD_add_response_header(r, "Content-Type", a->content_type) == MHD_YES;
    for (size_t i = 0; i < a->n_headers && ok; i++)
        ok = MHD_add_response_header(r, a->headers[i].name, a->headers[i].value);
    ok = ok && MHD_add_response_header(r, "X-Content-Type-Options", "nosniff") == MHD_YES;
    if (a->close || e->must_cut)
        ok = ok && MHD_add_response_header(r, "Connection", "close") == MHD_YES;
    if (a->stream) {
        http_table_stream(e->server->table, e->fd, a->stream);
        http_table_watch(e->server->table, e->fd);
    }
    http_table_phase(e->server->table, e->fd, HTTP_PHASE_WORK);
    if (ok)
        ok = MHD_queue_response(e->conn, (unsigned)a->status, r);
    MHD_destroy_response(r);
    return ok;
}

void http_hold(struct http_exchange *x)
{
    struct exchange *e = (struct exchange *)x;
    e->is_held = true;
    http_table_phase(e->server->table, e->fd, HTTP_PHASE_WORK);
    http_resumer_waits(e->server->resumer);
    MHD_suspend_connection(e->conn);
}

void http_release(struct http_exchange *x)
{
    struct exchange *e = (struct exchange *)x;
    int expected = HOLD_CALL;
    if (!atomic_compare_exchange_strong(&e->hold, &expected, HOLD_RELEASED))
        http_resumer_add(e->server->resumer, &e->resumed);
}

void http_watch(struct http_exchange *x)
{
    struct exchange *e = (struct exchange *)x;
    http_table_watch(e->server->table, e->fd);
}

/* ---- reading ---- */

static void refuse_request(struct exchange *e, as_status st, bool must_cut)
{
    e->refusal.code = st;
    e->must_cut |= must_cut;
    e->server->app.on_refusal(e->server->app.ctx, &e->x, &e->refusal);
}

struct header_walk {
    struct http_filter filter;
    unsigned n;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                 size_t key_len, const char *value, size_t value_len)
{
    struct header_walk *w = cls;
    (void)kind;
    (void)key_len;
    http_filter_add(&w->filter, key, value ? value : "", value_len);
    return ++w->n < HEADERS_MAX ? MHD_YES : MHD_NO;
}

static void read_peer(struct exchange *e)
{
    const struct sockaddr *sa = address_of(e->conn);
    if (sa && sa->sa_family == AF_INET)
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
                        e->x.peer, sizeof e->x.peer);
    else if (sa && sa->sa_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr,
                        e->x.peer, sizeof e->x.peer);
}

/* libmicrohttpd passes the target as a C string, so a NUL byte in the request line would hide the
 * rest of the line. The target and the version lie in one buffer with one byte between them. A
 * larger distance means that bytes were hidden. If they were not in one buffer, this check could
 * detect nothing and would refuse nothing; test_http.c checks that it works with the installed
 * library. */
static bool has_hidden_tail(const struct exchange *e, const char *version)
{
    uintptr_t at = (uintptr_t)version;
    return at > e->target_end + 1 && at - e->target_end < CONNECTION_MEMORY;
}

static as_status read_head(struct exchange *e, const char *method, const char *version)
{
    struct http_head *h = &e->x.head;
    struct header_walk w = {.filter = {.head = h, .arena = &e->x.arena}};
    struct as_err *err = &e->refusal;
    (void)MHD_get_connection_values_n(e->conn, MHD_HEADER_KIND, on_header, &w);
    read_peer(e);
    h->method = arena_strdup(&e->x.arena, method);
    if (!h->method || !e->target)
        return as_fail(err, AS_E_NOMEM, "out of memory for the request");
    if (w.n >= HEADERS_MAX)
        return as_fail(err, AS_E_INVAL, "more than %d header lines", HEADERS_MAX - 1);
    if (has_hidden_tail(e, version))
        return as_fail(err, AS_E_INVAL, "the request line has a NUL byte or too many blanks");
    if (!http_guard_works(e->fd))
        return as_fail(err, AS_E_INTERNAL, "libmicrohttpd does not call recv(): see http_recv.h");
    as_status st = http_filter_check(&w.filter, version, err);
    if (st < 0)
        return st;
    e->x.refusal = HTTP_REFUSAL_TARGET; /* of what follows */
    st = http_target_parse(e->target, &e->x.arena, h, err);
    if (st == AS_OK)
        e->x.refusal = HTTP_REFUSAL_REQUEST;
    return st;
}

/* The application has judged the head: send its answer, or continue with the body. */
static enum MHD_Result end_head(struct exchange *e)
{
    struct http_head *h = &e->x.head;
    e->is_head_done = true;
    if (!e->x.answer.status && h->content_length > e->x.body_max) {
        as_status st = as_fail(&e->refusal, AS_E_TOO_LARGE,
                               "the body has %lld bytes, at most %lld are allowed",
                               (long long)h->content_length, (long long)e->x.body_max);
        refuse_request(e, st, h->content_length > DRAIN_MAX);
    }
    bool has_body = h->content_length > 0 || h->is_chunked;
    /* libmicrohttpd closes the connection after an answer that is queued here. So this is done only
     * where it must be: otherwise each file of the dashboard would cost a connection of its own. */
    if (e->x.answer.status && (e->must_cut || (has_body && h->expects_continue))) {
        e->must_cut |= has_body;
        return send_answer(e);
    }
    http_table_phase(e->server->table, e->fd,
                     e->x.answer.status ? HTTP_PHASE_REST : HTTP_PHASE_BODY);
    return MHD_YES;
}

/* The first call for a request: its head is known, its body is not read yet. */
static enum MHD_Result begin_head(struct exchange *e, const char *method, const char *version)
{
    e->is_head_read = true;
    if (atomic_load(&e->server->is_stopping))
        return MHD_NO;
    as_status st = read_head(e, method, version);
    if (st < 0)
        refuse_request(e, st, true);
    else
        e->server->app.on_head(e->server->app.ctx, &e->x);
    return e->is_held ? MHD_YES : end_head(e);
}

static as_status keep_chunk(struct exchange *e, const char *data, size_t len)
{
    struct http_exchange *x = &e->x;
    if (x->body_size > x->body_max)
        return as_fail(&e->refusal, AS_E_TOO_LARGE, "the body has more than %lld bytes",
                       (long long)x->body_max);
    if (x->body_kind == HTTP_BODY_SINK)
        return x->sink(x->sink_ctx, data, len, &e->refusal);
    if (x->body_kind == HTTP_BODY_MEMORY)
        str_add(&x->body, data, len);
    return str_check(&x->body, &e->refusal);
}

static enum MHD_Result take_chunk(struct exchange *e, const char *data, size_t *len)
{
    e->x.body_size += (int64_t)*len;
    http_table_received(e->server->table, e->fd, *len);
    if (!e->x.answer.status) {
        as_status st = keep_chunk(e, data, *len);
        if (st < 0)
            refuse_request(e, st, false);
    }
    *len = 0;
    if (e->x.answer.status && e->x.body_size > e->x.body_max + DRAIN_MAX)
        return MHD_NO;
    return MHD_YES;
}

/* The request is whole. Another thread may release it at any time from on_request on. */
static enum MHD_Result hand_over(struct exchange *e)
{
    int expected = HOLD_CALL;
    e->is_handed_over = true;
    http_table_phase(e->server->table, e->fd, HTTP_PHASE_WORK);
    atomic_store(&e->hold, HOLD_CALL);
    e->server->app.on_request(e->server->app.ctx, &e->x);
    if (atomic_load(&e->hold) == HOLD_RELEASED)
        return send_answer(e);
    http_resumer_waits(e->server->resumer);
    MHD_suspend_connection(e->conn);
    if (!atomic_compare_exchange_strong(&e->hold, &expected, HOLD_PARKED))
        http_resumer_add(e->server->resumer, &e->resumed);
    return MHD_YES;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *conn, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *data_len, void **con_cls)
{
    struct exchange *e = *con_cls;
    (void)cls;
    (void)conn;
    (void)url;
    if (!e)
        return MHD_NO; /* on_request_line was out of memory */
    if (!e->is_head_read)
        return begin_head(e, method, version);
    if (!e->is_head_done)
        return end_head(e);
    if (*data_len)
        return take_chunk(e, data, data_len);
    if (e->x.answer.status || e->is_handed_over)
        return send_answer(e);
    return hand_over(e);
}

/* ---- the daemon ---- */

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *fmt, va_list ap)
{
    char line[400];
    (void)cls;
    (void)vsnprintf(line, sizeof line, fmt, ap);
    log_write(LOG_DEBUG, "libmicrohttpd", "detail=\"%s\"", line);
}

/* MHD_OPTION_STRICT_FOR_CLIENT is not set: its answer to a missing Host has the head twice
 * (0.9.75), and http_filter.h refuses the same requests and more. */
static struct MHD_Daemon *start_daemon(struct http_server *s)
{
    const struct http_options *o = &s->opts;
    unsigned max = http_table_max(s->table);
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, on_accept,
        s, on_access, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET,
        o->listen_fd, MHD_OPTION_THREAD_POOL_SIZE, o->threads, MHD_OPTION_CONNECTION_LIMIT,
        max + CONNECTIONS_MORE(max), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STALL_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
}

static as_status start_parts(struct http_server *s, struct as_err *err)
{
    as_status st = http_table_create(&s->opts, &s->app, &s->table, err);
    if (st < 0)
        return st;
    st = http_resumer_create(s->table, wake_connection, &s->resumer, err);
    if (st < 0)
        return st;
    s->daemon = start_daemon(s);
    if (!s->daemon)
        return as_fail(err, AS_E_INTERNAL, "libmicrohttpd does not start: %m");
    return AS_OK;
}

as_status http_start(const struct http_options *opts, const struct http_app *app,
                     struct http_server **ret, struct as_err *err)
{
    struct http_server *s = as_calloc(1, sizeof *s);
    int fd = opts->listen_fd;
    if (!s) {
        file_closep(&fd);
        return as_fail(err, AS_E_NOMEM, "out of memory for the HTTP server");
    }
    s->opts = *opts;
    s->app = *app;
    as_status st = start_parts(s, err);
    if (st < 0) {
        file_closep(&fd);
        http_resumer_free(s->resumer);
        http_table_free(s->table);
        free(s);
        return st;
    }
    *ret = s;
    return AS_OK;
}

void http_quiesce(struct http_server *s)
{
    atomic_store(&s->is_quiet, true);
}

bool http_stop(struct http_server *s, int64_t wait_ms)
{
    if (!s)
        return true;
    if (!http_table_wait_idle(s->table, wait_ms))
        http_table_cut_all(s->table);
    atomic_store(&s->is_stopping, true); /* before the wait: no exchange can be held after it */
    if (!http_table_wait_idle(s->table, wait_ms))
        return false;
    http_resumer_free(s->resumer); /* nothing is served: it resumes nothing */
    MHD_stop_daemon(s->daemon);
    http_table_free(s->table);
    free(s);
    return true;
}
