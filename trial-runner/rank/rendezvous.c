/* One thread answers; each answer is made at once, so nothing is held. The list is searched from
 * its begin: a world of n ranks has some 3 n values. */
#include "trial-runner/rank/rendezvous.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/http/http.h"
#include "api/http/listen.h"
#include "base/str.h"

#define STOP_MS 1000

struct entry {
    char *path, *bytes;
    size_t len;
};

struct rendezvous {
    int fd; /* -1: the server has it */
    struct http_server *http;
    pthread_mutex_t lock; /* guards the rest */
    struct entry *v;
    size_t n, cap, bytes;
};

/* "/SCOPE/KEY" */
static bool is_value(const char *path)
{
    const char *key = *path == '/' ? strchr(path + 1, '/') : NULL;
    return key && key > path + 1 && key[1] && !strchr(key + 1, '/');
}

static struct entry *find_locked(struct rendezvous *r, const char *path)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->v[i].path, path) == 0)
            return &r->v[i];
    return NULL;
}

static int put_locked(struct rendezvous *r, const char *path, const struct str *body)
{
    struct entry *e = find_locked(r, path);
    size_t before = e ? e->len : 0, more = e ? 0 : strlen(path);
    if (r->bytes - before + body->len + more > RENDEZVOUS_MAX)
        return 413;
    AS_AUTO(as_freep) char *bytes = as_calloc(body->len + 1, 1);
    AS_AUTO(as_freep) char *name = e ? NULL : as_strdup(path);
    if (!bytes || (!e && !name) ||
        (!e && as_reserve_one(&r->v, r->n, &r->cap, sizeof *r->v, NULL) < 0))
        return 500;
    if (body->len)
        memcpy(bytes, body->s, body->len);
    if (!e) {
        e = &r->v[r->n++];
        *e = (struct entry){.path = as_steal(name)};
    }
    free(e->bytes);
    e->bytes = as_steal(bytes);
    e->len = body->len;
    r->bytes += body->len + more - before;
    return 200;
}

static int get_locked(struct rendezvous *r, struct http_exchange *x)
{
    const struct entry *e = find_locked(r, x->head.path);
    if (!e)
        return 404;
    char *copy = arena_alloc(&x->arena, e->len + 1, 1);
    if (!copy)
        return 500;
    memcpy(copy, e->bytes, e->len);
    x->answer.bytes = copy;
    x->answer.len = e->len;
    return 200;
}

static void answer(struct http_exchange *x, int status)
{
    x->answer.content_type = "application/octet-stream";
    x->answer.bytes = x->answer.bytes ? x->answer.bytes : "";
    x->answer.close = true; /* its clients read until the end of the connection */
    x->answer.status = status;
}

static void on_head(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    x->body_kind = as_streq(x->head.method, "PUT") ? HTTP_BODY_MEMORY : HTTP_BODY_NONE;
    x->body_max = (int64_t)RENDEZVOUS_VALUE_MAX;
    if (!is_value(x->head.path))
        answer(x, 400);
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct rendezvous *r = ctx;
    int status = 405;
    (void)pthread_mutex_lock(&r->lock);
    if (as_streq(x->head.method, "PUT"))
        status = put_locked(r, x->head.path, &x->body);
    else if (as_streq(x->head.method, "GET"))
        status = get_locked(r, x);
    else if (as_streq(x->head.method, "DELETE"))
        status = 200;
    (void)pthread_mutex_unlock(&r->lock);
    answer(x, status);
    http_release(x);
}

static void on_refusal(void *ctx, struct http_exchange *x, const struct as_err *err)
{
    (void)ctx;
    answer(x, err->code == AS_E_TOO_LARGE ? 413 : err->code == AS_E_INVAL ? 400 : 500);
}

static void on_end(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    (void)x;
}

static void on_gone(void *ctx)
{
    (void)ctx;
}

as_status rendezvous_open(const char *address, struct rendezvous **ret, int64_t *ret_port,
                          struct as_err *err)
{
    struct listener_address at;
    char text[100];
    bool six = strchr(address, ':') != NULL;
    AS_AUTO(as_freep) struct rendezvous *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail_nomem(err);
    (void)snprintf(text, sizeof text, "%s%.80s%s:0", six ? "[" : "", address, six ? "]" : "");
    as_status st = listen_open(text, true, &r->fd, &at, err);
    if (st == AS_OK)
        st = as_parse_i64(strrchr(at.url, ':') + 1, ret_port, err);
    if (st != AS_OK)
        return st;
    (void)pthread_mutex_init(&r->lock, NULL);
    *ret = as_steal(r);
    return AS_OK;
}

as_status rendezvous_serve(struct rendezvous *r, struct as_err *err)
{
    const struct http_app app = {r, on_head, on_request, on_refusal, on_end, on_gone};
    struct http_options o = http_options_default();
    o.listen_fd = r->fd;
    o.threads = 1;
    o.max_per_address = 0; /* all ranks of a machine */
    r->fd = -1;            /* http_start() takes it */
    return http_start(&o, &app, &r->http, err);
}

void rendezvous_free(struct rendezvous *r)
{
    if (!r)
        return;
    if (r->http && !http_stop(r->http, STOP_MS))
        return; /* it still runs */
    if (r->fd >= 0)
        (void)close(r->fd);
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].path);
        free(r->v[i].bytes);
    }
    free(r->v);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
