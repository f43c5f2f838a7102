#include "tests/api/http/echo_app.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "tests/support/check_main.h"

static void answer_text(struct http_exchange *x, int status, const char *text)
{
    x->answer.status = status;
    x->answer.content_type = "text/plain";
    x->answer.bytes = text;
    x->answer.len = strlen(text);
}

static void *release_later(void *arg)
{
    struct http_exchange *x = arg;
    clock_sleep_ms(20);
    if (http_query(&x->head, "refuse"))
        answer_text(x, 401, "no");
    http_release(x);
    return NULL;
}

static void on_head(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    x->body_kind = HTTP_BODY_MEMORY;
    x->body_max = 100000;
    if (strcmp(x->head.path, "/early") == 0)
        answer_text(x, 403, "early");
    if (strcmp(x->head.path, "/held") == 0) {
        pthread_t t;
        http_hold(x);
        ck_assert_int_eq(pthread_create(&t, NULL, release_later, x), 0);
        (void)pthread_detach(t);
    }
}

static void on_request(void *ctx, struct http_exchange *x)
{
    struct app *a = ctx;
    if (strcmp(x->head.path, "/park") == 0) {
        http_watch(x);
        pthread_mutex_lock(&a->lock);
        a->parked = x;
        pthread_mutex_unlock(&a->lock);
        atomic_fetch_add(&a->n_handled, 1);
        return;
    }
    if (strcmp(x->head.path, "/stream") == 0) {
        struct http_stream *s = http_stream_create(1 << 16, NULL, NULL, NULL);
        ck_assert_ptr_nonnull(s);
        x->answer.status = 200;
        x->answer.stream = http_stream_ref(s);
        x->answer.stream_size = -1;
        pthread_mutex_lock(&a->lock);
        a->stream = s;
        pthread_mutex_unlock(&a->lock);
    } else {
        char *text = arena_printf(&x->arena, "%s %s body=%s;", x->head.method, x->head.path,
                                  str_cstr(&x->body));
        answer_text(x, 200, text);
    }
    atomic_fetch_add(&a->n_handled,
                     1); /* last: a thread that reads this also sees the fields above */
    http_release(x);
}

static void on_refusal(void *ctx, struct http_exchange *x, const struct as_err *err)
{
    (void)ctx;
    static const int too_large[] = {413, 414, 431}; /* by http_refusal */
    answer_text(x, err->code == AS_E_TOO_LARGE ? too_large[x->refusal] : 400,
                arena_strdup(&x->arena, err->msg));
}

static void on_end(void *ctx, struct http_exchange *x)
{
    struct app *a = ctx;
    (void)x;
    atomic_fetch_add(&a->n_ended, 1);
}

/* Answer the parked exchange if its peer is gone. */
static void on_gone(void *ctx)
{
    struct app *a = ctx;
    pthread_mutex_lock(&a->lock);
    struct http_exchange *x = a->parked;
    if (x && atomic_load(&x->is_gone)) {
        a->parked = NULL;
        atomic_fetch_add(&a->n_gone, 1);
        http_release(x);
    }
    pthread_mutex_unlock(&a->lock);
}

struct app app;

/* opts: http_options_default() with changes. */
static void start_with(struct http_options opts)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t len = sizeof sa;
    struct as_err err;
    const struct http_app hooks = {.ctx = &app,
                                   .on_head = on_head,
                                   .on_request = on_request,
                                   .on_refusal = on_refusal,
                                   .on_end = on_end,
                                   .on_gone = on_gone};
    memset(&app, 0, sizeof app);
    (void)pthread_mutex_init(&app.lock, NULL);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    opts.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(opts.listen_fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    ck_assert_int_eq(listen(opts.listen_fd, 64), 0);
    ck_assert_int_eq(getsockname(opts.listen_fd, (struct sockaddr *)&sa, &len), 0);
    app.port = ntohs(sa.sin_port);
    ck_ok(http_start(&opts, &hooks, &app.http, &err), err);
}

void start_transport(void)
{
    start_with(http_options_default());
}

void start_impatient(void)
{
    struct http_options opts = http_options_default();
    opts.idle_ms = PATIENCE_MS * INT64_C(10);
    opts.head_ms = opts.body_grace_ms = 700;
    start_with(opts);
}

void start_few(void)
{
    struct http_options opts = http_options_default();
    opts.head_ms = opts.idle_ms = opts.body_grace_ms = PATIENCE_MS * INT64_C(10);
    opts.max_connections = FEW;
    opts.max_per_address = FEW_OF_ONE;
    start_with(opts);
}

void stop_transport(void)
{
    http_quiesce(app.http);
    ck_assert(http_stop(app.http, PATIENCE_MS));
    (void)pthread_mutex_destroy(&app.lock);
}
