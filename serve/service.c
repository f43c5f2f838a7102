/* The routes are few and fixed by the protocol, so they are found by comparing segments of the
 * path.
 *
 * One inference goes: on_head (model found, limits; an unknown model is answered before its body is
 * read) → on_request (body parsed here if it is small, else by a worker) → batcher → on_done
 * (answer written, connection resumed). Whoever holds the request owns it: I/O thread, then worker.
 * The model's version is taken once, at the head, so that a request sees one version only. */
#include "serve/service.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/http.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "serve/infer_answer.h"

/* A larger body is parsed by a worker: an I/O thread takes a tenth of a millisecond for so many. */
#define INLINE_BYTES (32 << 10)
#define SEGMENTS_MAX 8

struct service {
    struct service_options opts;
    struct model_cache *cache;
    struct batcher *batcher;
    struct http_server *http;
    atomic_bool is_draining;
};

/* One inference; in the arena of its exchange. */
struct call {
    struct batch_job job;
    struct batch_task task;
    struct service *service;
    struct http_exchange *x;
    struct served *version; /* a reference */
    struct infer_request q;
    struct str answer;
};

/* ---- answers ---- */

static void answer_bytes(const struct service *s, struct http_exchange *x, int status,
                         const char *type, const char *bytes, size_t len)
{
    x->answer.status = status;
    x->answer.content_type = type;
    x->answer.bytes = bytes;
    x->answer.len = len;
    x->answer.close = atomic_load_explicit(&s->is_draining, memory_order_relaxed);
}

static void answer_json(const struct service *s, struct http_exchange *x, int status,
                        const char *json)
{
    answer_bytes(s, x, status, "application/json", json, strlen(json));
}

/* {"error": …}, as the protocol wants it. */
static void answer_error(const struct service *s, struct http_exchange *x, int status,
                         const char *message)
{
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "{\"error\":");
    infer_text_write(&b, message, strlen(message));
    str_puts(&b, "}");
    const char *json = b.failed ? NULL : arena_strndup(&x->arena, b.s, b.len);
    answer_json(s, x, status, json ? json : "{\"error\":\"out of memory\"}");
    if (status == 503)
        http_answer_header(x, "Retry-After", "1");
}

static int status_code(as_status st)
{
    switch (st) {
    case AS_E_INVAL:
    case AS_E_UNSUPPORTED:
        return 400;
    case AS_E_DENIED:
        return 403;
    case AS_E_NOT_FOUND:
        return 404;
    case AS_E_TOO_LARGE:
        return 413;
    case AS_E_TIMEOUT:
    case AS_E_UNAVAILABLE:
    case AS_E_NOMEM:
        return 503;
    default:
        return 500;
    }
}

static void answer_status(const struct service *s, struct http_exchange *x,
                          const struct as_err *err)
{
    answer_error(s, x, status_code(err->code), err->msg);
}

/* ---- inference ---- */

static void release_call(struct call *c)
{
    struct http_exchange *x = c->x;
    stats_request(c->version->stats, x->answer.status, clock_mono_ns() - x->start_ns);
    http_release(x);
}

static void fail_call(struct call *c, const struct as_err *err)
{
    answer_status(c->service, c->x, err);
    release_call(c);
}

static void answer_call(struct call *c, const float *out)
{
    struct as_err err = {0};
    struct http_exchange *x = c->x;
    size_t json_len = 0;
    as_status st = infer_answer_write(&c->version->schema, c->version->name, c->version->version,
                                      &c->q, out, c->job.rows, &c->answer, &json_len, &err);
    if (st < 0) {
        fail_call(c, &err);
        return;
    }
    bool is_binary = json_len < c->answer.len;
    answer_bytes(c->service, x, 200, is_binary ? "application/octet-stream" : "application/json",
                 c->answer.s, c->answer.len);
    if (is_binary) {
        const char *n = arena_printf(&x->arena, "%zu", json_len);
        if (n)
            http_answer_header(x, "Inference-Header-Content-Length", n);
    }
    release_call(c);
}

static void on_done(struct batch_job *job, as_status st, const float *out, const struct as_err *err)
{
    struct call *c = (struct call *)(void *)((char *)job - offsetof(struct call, job));
    if (st < 0)
        fail_call(c, err);
    else
        answer_call(c, out);
}

/* The length of the JSON, if the header of the binary extension says it. */
static as_status json_length(const struct http_exchange *x, size_t *ret, struct as_err *err)
{
    const char *text = x->head.inference_length;
    int64_t n = 0;
    *ret = x->body.len;
    if (!text)
        return AS_OK;
    if (as_parse_i64(text, &n, NULL) < 0 || n < 0)
        return as_fail(err, AS_E_INVAL,
                       "Inference-Header-Content-Length is '%.40s', expected a number of bytes",
                       text);
    *ret = (size_t)n;
    return AS_OK;
}

static as_status parse_call(struct call *c, struct as_err *err)
{
    struct http_exchange *x = c->x;
    const struct served *v = c->version;
    float *raw = NULL;
    size_t json_len = 0;
    as_status st = json_length(x, &json_len, err);
    if (st == AS_OK)
        st = infer_request_parse(str_cstr(&x->body), x->body.len, json_len, &x->arena, &c->q, err);
    if (st == AS_OK)
        st = model_schema_wishes(&v->schema, &c->q, err);
    if (st == AS_OK)
        st = model_schema_rows(&v->schema, v->predictors[0], &c->q, c->service->opts.max_rows,
                               &x->arena, &raw, &c->job.rows, err);
    c->job.raw = raw;
    return st;
}

static void parse_and_submit(struct call *c)
{
    struct as_err err = {0};
    if (parse_call(c, &err) < 0) {
        fail_call(c, &err);
        return;
    }
    c->job.version = c->version;
    c->job.done = on_done;
    c->job.deadline_ns = c->x->start_ns + c->service->opts.deadline_ms * NS_PER_MS;
    if (batcher_submit(c->service->batcher, &c->job))
        return;
    (void)as_fail(&err, AS_E_UNAVAILABLE, "the queue of model '%s' is full: try again",
                  c->version->name);
    fail_call(c, &err);
}

static void run_parse(struct batch_task *task)
{
    parse_and_submit((struct call *)(void *)((char *)task - offsetof(struct call, task)));
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct service *s = ctx;
    struct call *c = x->app;
    struct as_err err = {0};
    if (!c) { /* cannot be: only heads of inference go on to their body */
        answer_error(s, x, 500, "the request was lost");
        http_release(x);
        return;
    }
    if (x->body.len <= INLINE_BYTES) {
        parse_and_submit(c);
        return;
    }
    c->task.run = run_parse;
    if (batcher_run(s->batcher, &c->task))
        return;
    (void)as_fail(&err, AS_E_UNAVAILABLE, "too many large requests wait: try again");
    fail_call(c, &err);
}

/* ---- routes ---- */

struct path {
    const char *segment[SEGMENTS_MAX];
    size_t len[SEGMENTS_MAX];
    size_t n; /* SEGMENTS_MAX + 1: too many */
};

static void split_path(const char *path, struct path *ret)
{
    ret->n = 0;
    for (const char *p = path; *p == '/' && p[1];) {
        size_t n = strcspn(++p, "/");
        if (ret->n == SEGMENTS_MAX) {
            ret->n++;
            return;
        }
        ret->segment[ret->n] = p;
        ret->len[ret->n++] = n;
        p += n;
    }
}

static bool segment_is(const struct path *p, size_t i, const char *word)
{
    return i < p->n && p->len[i] == strlen(word) && memcmp(p->segment[i], word, p->len[i]) == 0;
}

/* Answer anything that is no GET or HEAD. */
static bool is_read(const struct service *s, struct http_exchange *x)
{
    if (as_streq(x->head.method, "GET") || as_streq(x->head.method, "HEAD"))
        return true;
    answer_error(s, x, 405, "the method is not offered here, expected GET");
    http_answer_header(x, "Allow", "GET, HEAD");
    return false;
}

static void answer_server(const struct service *s, struct http_exchange *x)
{
    const char *json = arena_printf(&x->arena,
                                    "{\"name\":\"assay-serve\",\"version\":\"%s\",\"extensions\":"
                                    "[\"binary_tensor_data\"]}",
                                    s->opts.version);
    if (is_read(s, x))
        answer_json(s, x, json ? 200 : 503, json ? json : "{\"error\":\"out of memory\"}");
}

static void answer_health(const struct service *s, struct http_exchange *x, bool is_ready)
{
    if (!is_read(s, x))
        return;
    if (!is_ready)
        answer_json(s, x, 200, "{\"live\":true}");
    else if (!atomic_load(&s->is_draining) && model_cache_is_ready(s->cache))
        answer_json(s, x, 200, "{\"live\":true,\"ready\":true}");
    else
        answer_json(s, x, 503, "{\"live\":true,\"ready\":false}");
}

static void answer_metrics(const struct service *s, struct http_exchange *x)
{
    AS_AUTO(str_done) struct str b = {0};
    if (!is_read(s, x))
        return;
    model_cache_write_stats(s->cache, &b);
    const char *text = b.failed ? NULL : arena_strndup(&x->arena, str_cstr(&b), b.len);
    if (text)
        answer_bytes(s, x, 200, "text/plain; version=0.0.4", text, b.len);
    else
        answer_error(s, x, 503, "out of memory");
}

static void answer_metadata(const struct service *s, struct http_exchange *x,
                            const struct served *v)
{
    const char *json = arena_strndup(&x->arena, v->metadata.s, v->metadata.len);
    if (!is_read(s, x))
        return;
    if (json)
        answer_json(s, x, 200, json);
    else
        answer_error(s, x, 503, "out of memory");
}

static void answer_model_ready(const struct service *s, struct http_exchange *x,
                               const struct served *v)
{
    const char *json = arena_printf(&x->arena, "{\"name\":\"%s\",\"ready\":%s}", v->name,
                                    atomic_load(&s->is_draining) ? "false" : "true");
    if (is_read(s, x))
        answer_json(s, x, atomic_load(&s->is_draining) || !json ? 503 : 200, json ? json : "{}");
}

/* The head of an inference: its body is read, and on_request is called. */
static void begin_call(struct service *s, struct http_exchange *x, struct served *v)
{
    const char *encoding = x->head.content_encoding;
    if (!as_streq(x->head.method, "POST")) {
        answer_error(s, x, 405, "the method is not offered here, expected POST");
        http_answer_header(x, "Allow", "POST");
        return;
    }
    if (encoding && !as_streq(encoding, "identity")) {
        answer_error(s, x, 415, "bodies with a Content-Encoding are not read: send it as it is");
        return;
    }
    struct call *c = arena_alloc(&x->arena, 1, sizeof *c);
    if (!c) {
        answer_error(s, x, 503, "out of memory");
        return;
    }
    c->service = s;
    c->x = x;
    c->version = served_ref(v);
    x->app = c;
    x->body_kind = HTTP_BODY_MEMORY;
    x->body_max = s->opts.max_bytes;
}

/* The protocol's OpenAPI definition writes its parameters as "${MODEL_NAME}", and clients that are
 * made from it send "$iris" (openapi-client-axios 7.9 does). No name begins so: one sign is passed
 * over, until the definition is corrected. */
static void drop_sign(struct path *p, size_t i)
{
    if (i < p->n && p->len[i] > 1 && p->segment[i][0] == '$') {
        p->segment[i]++;
        p->len[i]--;
    }
}

static void route_model(struct service *s, struct http_exchange *x, struct path *p)
{
    drop_sign(p, 2);
    drop_sign(p, 4);
    const char *name = arena_strndup(&x->arena, p->segment[2], p->len[2]);
    bool has_version = segment_is(p, 3, "versions") && p->n > 4, known = false;
    size_t at = has_version ? 5 : 3;
    AS_AUTO(served_unrefp)
    struct served *v = name ? model_cache_take(s->cache, name, &known) : NULL;
    const char *message = NULL;
    int status = 404;
    if (!v) {
        status = known ? 503 : 404;
        message = arena_printf(&x->arena,
                               known ? "the model '%.64s' is not loaded yet: try again"
                                     : "there is no model '%.64s'",
                               name ? name : "");
    } else if (has_version && !segment_is(p, 4, v->version) && !segment_is(p, 4, v->sha256)) {
        message =
            arena_printf(&x->arena, "model '%s' has no version '%.*s' here: found version %s",
                         v->name, p->len[4] < 64 ? (int)p->len[4] : 64, p->segment[4], v->version);
    } else if (p->n == at) {
        answer_metadata(s, x, v);
        return;
    } else if (p->n == at + 1 && segment_is(p, at, "ready")) {
        answer_model_ready(s, x, v);
        return;
    } else if (p->n == at + 1 && segment_is(p, at, "infer")) {
        begin_call(s, x, v);
        return;
    } else {
        message = "there is nothing at this path: expected /v2/models/NAME[/versions/VERSION], and "
                  "/ready or /infer behind it";
    }
    answer_error(s, x, status, message ? message : "out of memory");
}

static void on_head(void *ctx, struct http_exchange *x)
{
    struct service *s = ctx;
    struct path p;
    x->body_kind = HTTP_BODY_NONE;
    x->body_max = INLINE_BYTES; /* of what is not read */
    if (s->opts.host_names && !http_host_allowed(x->head.host, s->opts.host_names)) {
        answer_error(s, x, 403, "the Host header names another server: see --public-host");
        return;
    }
    split_path(x->head.path, &p);
    if (p.n >= 3 && p.n <= SEGMENTS_MAX && segment_is(&p, 0, "v2") && segment_is(&p, 1, "models"))
        route_model(s, x, &p);
    else if (p.n == 3 && segment_is(&p, 0, "v2") && segment_is(&p, 1, "health") &&
             (segment_is(&p, 2, "live") || segment_is(&p, 2, "ready")))
        answer_health(s, x, segment_is(&p, 2, "ready"));
    else if (p.n == 1 && segment_is(&p, 0, "v2"))
        answer_server(s, x);
    else if (p.n == 1 && segment_is(&p, 0, "metrics"))
        answer_metrics(s, x);
    else
        answer_error(s, x, 404,
                     "there is nothing at this path: expected /v2, /v2/health/live, "
                     "/v2/health/ready, /v2/models/NAME or /metrics");
}

static void on_refusal(void *ctx, struct http_exchange *x, const struct as_err *err)
{
    struct service *s = ctx;
    struct call *c = x->app;
    int status = status_code(err->code);
    if (err->code == AS_E_TOO_LARGE && x->refusal != HTTP_REFUSAL_REQUEST)
        status = x->refusal == HTTP_REFUSAL_TARGET ? 414 : 431;
    answer_error(s, x, status, err->msg);
    if (c)
        stats_request(c->version->stats, status, clock_mono_ns() - x->start_ns);
}

static void on_end(void *ctx, struct http_exchange *x)
{
    struct call *c = x->app;
    (void)ctx;
    if (!c)
        return;
    served_unref(c->version);
    str_done(&c->answer);
}

static void on_gone(void *ctx)
{
    (void)ctx; /* no exchange is watched */
}

as_status service_start(const struct service_options *opts, struct model_cache *cache,
                        struct batcher *batcher, struct service **ret, struct as_err *err)
{
    struct http_options http = http_options_default();
    struct service *s = as_calloc(1, sizeof *s);
    http.listen_fd = opts->listen_fd;
    http.tls = opts->tls;
    http.threads = opts->io_threads;
    http.max_connections = opts->max_connections;
    http.max_per_address = opts->max_per_address;
    if (!s)
        return as_fail_nomem(err);
    s->opts = *opts;
    s->cache = cache;
    s->batcher = batcher;
    const struct http_app app = {s, on_head, on_request, on_refusal, on_end, on_gone};
    as_status st = http_start(&http, &app, &s->http, err);
    if (st < 0) {
        free(s);
        return st;
    }
    *ret = s;
    return AS_OK;
}

bool service_stop(struct service *s, int64_t wait_ms)
{
    if (!s)
        return true;
    atomic_store(&s->is_draining, true); /* first: later answers close their connection */
    http_quiesce(s->http);
    if (!http_stop(s->http, wait_ms))
        return false;
    free(s);
    return true;
}
