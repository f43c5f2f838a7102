/* The test server is libmicrohttpd with one thread for each connection, so that a handler may block
 * as long as a test wants. A cut answer promises its full length and sends half of it. A reserved
 * port is a bound socket that does not listen: with SO_REUSEADDR a server may start and stop on it,
 * and no program that asks for any free port gets it. */
#include "tests/api/client/http_server.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

#include "base/str.h"

struct http_server {
    struct MHD_Daemon *daemon;
    server_handler handler;
    void *arg;
    char url[64];
};

void answer_json(struct server_answer *a, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    a->status = status;
    if (vasprintf(&a->body, fmt, ap) < 0)
        abort();
    va_end(ap);
}

void answer_problem(struct server_answer *a, int status, const char *code, const char *detail)
{
    answer_json(a, status,
                "{\"type\":\"about:blank\",\"title\":\"t\",\"status\":%d,\"code\":\"%s\","
                "\"detail\":\"%s\"}",
                status, code, detail);
    a->content_type = "application/problem+json";
}

static const char *get_header(struct MHD_Connection *c, const char *name)
{
    const char *v = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
    return v ? v : "";
}

static enum MHD_Result add_argument(void *arg, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    (void)kind;
    str_printf(arg, "%s%s=%s", ((struct str *)arg)->len ? "&" : "", name, value ? value : "");
    return MHD_YES;
}

/* Send half of the body, then fail. */
static ssize_t cut_reader(void *cls, uint64_t pos, char *buf, size_t max)
{
    const struct server_answer *a = cls;
    size_t half = a->body_len / 2;
    if (pos >= half)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = half - pos < max ? half - pos : max;
    memcpy(buf, a->body + pos, n);
    return (ssize_t)n;
}

static void free_cut(void *cls)
{
    struct server_answer *a = cls;
    free(a->body);
    free(a);
}

static struct MHD_Response *cut_response(const struct server_answer *a)
{
    struct server_answer *copy = malloc(sizeof *copy);
    *copy = *a;
    return MHD_create_response_from_callback(a->body_len, 1024, cut_reader, copy, free_cut);
}

static enum MHD_Result respond(struct MHD_Connection *c, struct server_answer *a)
{
    if (a->body && a->body_len == 0)
        a->body_len = strlen(a->body);
    struct MHD_Response *r =
        a->cut ? cut_response(a)
               : MHD_create_response_from_buffer(a->body_len, a->body ? a->body : (char *)"",
                                                 MHD_RESPMEM_MUST_COPY);
    if (!a->cut)
        free(a->body);
    MHD_add_response_header(r, "Content-Type",
                            a->content_type ? a->content_type : "application/json");
    if (a->retry_after)
        MHD_add_response_header(r, "Retry-After", a->retry_after);
    enum MHD_Result ok = MHD_queue_response(c, (unsigned)(a->status ? a->status : 200), r);
    MHD_destroy_response(r);
    return ok;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **state)
{
    struct http_server *s = cls;
    struct str *body = *state;
    (void)version;
    if (!body) {
        *state = calloc(1, sizeof *body);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*data_size) {
        str_add(body, data, *data_size);
        *data_size = 0;
        return MHD_YES;
    }
    struct str query = {0};
    struct server_answer a = {0};
    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, add_argument, &query);
    struct server_request q = {
        .method = method,
        .path = url,
        .query = str_cstr(&query),
        .body = str_cstr(body),
        .body_len = body->len,
        .authorization = get_header(c, "Authorization"),
        .content_type = get_header(c, "Content-Type"),
        .idempotency_key = get_header(c, "Idempotency-Key"),
        .last_event_id = get_header(c, "Last-Event-ID"),
        .runner_secret = get_header(c, "Assay-Runner-Secret"),
        .range = get_header(c, "Range"),
        .seat = get_header(c, "Assay-Seat"),
        .world_epoch = get_header(c, "Assay-World-Epoch"),
    };
    s->handler(s->arg, &q, &a);
    str_done(&query);
    return respond(c, &a);
}

static void on_done(void *cls, struct MHD_Connection *c, void **state,
                    enum MHD_RequestTerminationCode why)
{
    (void)cls, (void)c, (void)why;
    if (*state)
        str_done(*state);
    free(*state);
}

/* A socket that is bound to this port of the loopback address (0: any port). It does not listen. */
static int bind_port(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (const struct sockaddr *)&addr, sizeof addr) < 0) {
        perror("bind_port");
        abort();
    }
    return fd;
}

int http_port_reserve(int *ret_port)
{
    struct sockaddr_in addr;
    socklen_t len = sizeof addr;
    int fd = bind_port(0);
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0) {
        perror("http_port_reserve");
        abort();
    }
    *ret_port = ntohs(addr.sin_port);
    return fd;
}

void http_port_turn_away(int port)
{
    int fd = bind_port(port), peer = -1;
    if (listen(fd, 1) < 0 || (peer = accept(fd, NULL, NULL)) < 0) {
        perror("http_port_turn_away");
        abort();
    }
    (void)close(peer);
    (void)close(fd);
}

struct http_server *http_server_start(int port, server_handler handler, void *arg)
{
    struct http_server *s = calloc(1, sizeof *s);
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (!s)
        abort();
    s->handler = handler;
    s->arg = arg;
    s->daemon = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0,
                                 NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, &addr,
                                 MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u,
                                 MHD_OPTION_NOTIFY_COMPLETED, on_done, NULL, MHD_OPTION_END);
    if (!s->daemon) {
        perror("MHD_start_daemon");
        abort();
    }
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d",
             MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    return s;
}

void http_server_stop(struct http_server *s)
{
    if (!s)
        return;
    MHD_stop_daemon(s->daemon);
    free(s);
}

const char *http_server_url(const struct http_server *s)
{
    return s->url;
}
