/* Creation of clients, JSON calls, retries, and the escaping of paths and queries.
 *
 * Waits between tries end early when the client is interrupted. client_interrupt() sets a flag and
 * writes to an eventfd: both are safe in a signal handler. The eventfd is never read, so it stays
 * readable and every later wait ends at once too. The pause doubles from 100 ms up to 5 s, and half
 * of it is random, so that many clients of a server that returns do not all come at once. */
#include "api/client/client_priv.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 5000

char *client_ca_file; /* set before threads make clients, and never freed */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready = CURLE_FAILED_INIT;

static void curl_start(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A header may only hold printable ASCII. */
static bool header_safe(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

static as_status check_url(const char *url, struct as_err *err)
{
    bool http = as_starts_with(url, "http://"), https = as_starts_with(url, "https://");
    const char *host = url + (https ? 8 : 7);
    if (!http && !https)
        return as_fail(err, AS_E_INVAL,
                       "the server is '%.200s', expected a URL such as http://127.0.0.1:7117", url);
    if (!*host || *host == '/' || strpbrk(host, "?#@") || !header_safe(url))
        return as_fail(err, AS_E_INVAL,
                       "the server's URL '%.200s' must be http(s)://HOST[:PORT][/PATH]", url);
    return AS_OK;
}

static char *join_strings(const char *a, const char *b)
{
    struct str s = {0};
    str_puts(&s, a);
    str_puts(&s, b);
    return str_take(&s);
}

as_status client_create(const char *base_url, const char *token, const char *program,
                        struct client **ret, struct as_err *err)
{
    as_status st = check_url(base_url, err);
    if (st < 0)
        return st;
    if (token && !header_safe(token))
        return as_fail(err, AS_E_INVAL, "the token has characters that are not allowed in a token");
    pthread_once(&curl_once, curl_start);
    if (curl_ready != CURLE_OK)
        return as_fail(err, AS_E_INTERNAL, "libcurl: %s", curl_easy_strerror(curl_ready));
    AS_AUTO(client_freep) struct client *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake_fd < 0)
        return as_fail(err, AS_E_IO, "eventfd: %s", strerror(errno));
    c->base_url = as_strdup(base_url);
    c->user_agent = as_strdup(program);
    if (token && *token)
        c->authorization = join_strings("Authorization: Bearer ", token);
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    if (!c->base_url || !c->user_agent || (token && *token && !c->authorization) || !c->multi ||
        !c->easy)
        return as_fail_nomem(err);
    for (size_t n = strlen(c->base_url); n && c->base_url[n - 1] == '/'; n--)
        c->base_url[n - 1] = '\0';
    *ret = as_steal(c);
    return AS_OK;
}

as_status client_trust(const char *ca_file, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    if (!ca_file)
        return AS_OK;
    as_status st = file_open_regular(ca_file, &fd, err);
    if (st < 0)
        return as_err_prefix(err, st, "--ca-file");
    client_ca_file = as_strdup(ca_file);
    return client_ca_file ? AS_OK : as_fail_nomem(err);
}

as_status client_show_secret(struct client *c, const char *secret, struct as_err *err)
{
    if (!*secret || !header_safe(secret))
        return as_fail(err, AS_E_INVAL, "the runner's secret has characters that are not allowed");
    free(c->runner_secret);
    c->runner_secret = join_strings("Assay-Runner-Secret: ", secret);
    return c->runner_secret ? AS_OK : as_fail_nomem(err);
}

void client_free(struct client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    if (c->wake_fd >= 0)
        close(c->wake_fd);
    free(c->base_url);
    free(c->authorization);
    free(c->runner_secret);
    free(c->user_agent);
    json_decref(c->problem);
    free(c);
}

void client_interrupt(struct client *c)
{
    int saved = errno;
    uint64_t one = 1;
    atomic_store(&c->interrupted, true);
    ssize_t n = write(c->wake_fd, &one, sizeof one); /* a full eventfd is readable already */
    (void)n;
    errno = saved;
}

bool client_interrupted(const struct client *c)
{
    return atomic_load(&c->interrupted);
}

bool client_wait(struct client *c, int64_t ms)
{
    int64_t now = clock_mono_ns(), end = now + ms * NS_PER_MS;
    while (now < end && !client_interrupted(c)) {
        struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};
        poll(&p, 1, (int)((end - now) / NS_PER_MS) + 1);
        now = clock_mono_ns();
    }
    return !client_interrupted(c);
}

const char *client_problem_code(const struct client *c)
{
    return c->problem_code;
}

const json_t *client_problem_errors(const struct client *c)
{
    const json_t *errors = json_object_get(c->problem, "errors");
    return json_is_array(errors) ? errors : NULL;
}

void backoff_start(struct backoff *b, int64_t retry_ms)
{
    int64_t now = clock_mono_ns();
    b->tries = 0;
    b->deadline_ns =
        retry_ms > (INT64_MAX - now) / NS_PER_MS ? INT64_MAX : now + retry_ms * NS_PER_MS;
}

/* At least at_least_ms. */
static int64_t pause_ms(unsigned tries, int64_t at_least_ms)
{
    int64_t ms = BACKOFF_FIRST_MS << (tries < 6 ? tries : 6);
    uint32_t r;
    if (ms > BACKOFF_MOST_MS)
        ms = BACKOFF_MOST_MS;
    random_bytes(&r, sizeof r);
    ms = ms / 2 + (int64_t)(r % (uint32_t)(ms / 2 + 1)); /* half fixed, half jitter */
    return ms < at_least_ms ? at_least_ms : ms;
}

int64_t client_pause_ms(const struct client *c, unsigned tries)
{
    return pause_ms(tries, c->retry_after_ms);
}

bool backoff_pause(struct backoff *b, struct client *c, int64_t at_least_ms)
{
    int64_t ms = pause_ms(b->tries++, at_least_ms);
    int64_t now = clock_mono_ns(), end = now + ms * NS_PER_MS;
    if (now >= b->deadline_ns)
        return false;
    if (end > b->deadline_ns) /* one last try when the time is up */
        end = b->deadline_ns;
    return client_wait(c, (end - now) / NS_PER_MS + 1);
}

as_status http_retry(struct client *c, const struct http_request *q, int64_t retry_ms,
                     struct http_response *r, struct as_err *err)
{
    struct backoff b;
    backoff_start(&b, retry_ms);
    for (;;) {
        c->problem_code[0] = '\0';
        c->retry_after_ms = 0;
        if (q->body_size >= 0 && lseek(q->body_fd, 0, SEEK_SET) < 0)
            return as_fail(err, AS_E_IO, "lseek: %s", strerror(errno));
        as_status st = http_exchange(c, q, r, err);
        if (st == AS_OK)
            st = problem_status(c, q, r, err);
        c->retry_after_ms = r->retry_after_ms;
        if (st != AS_E_UNAVAILABLE || !backoff_pause(&b, c, r->retry_after_ms))
            return st;
        http_response_done(r);
        *r = (struct http_response){0};
    }
}

static as_status parse_answer(const struct http_request *q, const struct http_response *r,
                              json_t **ret, struct as_err *err)
{
    json_error_t at;
    *ret = NULL;
    if (r->status == 204 || (r->body.len == 0 && strcmp(q->method, "HEAD") == 0))
        return AS_OK;
    if (r->body.len == 0 && r->status == 201) /* a stored blob: the answer has no body */
        return AS_OK;
    if (!as_starts_with(r->content_type, "application/json"))
        return as_fail(err, AS_E_INTERNAL, "%s %s answered '%s', expected application/json",
                       q->method, q->path, r->content_type);
    /* Not json_parse(), which limits the number of values: a page of long series has more values
     * than any request. */
    *ret = json_loadb(str_cstr(&r->body), r->body.len, JSON_REJECT_DUPLICATES, &at);
    if (!*ret)
        return as_fail(err, AS_E_INTERNAL, "%s %s returned a body that is not JSON: %s", q->method,
                       q->path, at.text);
    return AS_OK;
}

static as_status call_server(struct client *c, struct http_request *q,
                             const struct client_opts *opts, json_t **ret, int *ret_http_status,
                             struct as_err *err)
{
    static const struct client_opts defaults;
    AS_AUTO(http_response_done) struct http_response r = {0};
    JSON_AUTO answer = NULL;
    if (!opts)
        opts = &defaults;
    q->body_size = -1;
    q->content_type = opts->content_type ? opts->content_type : "application/json";
    q->idempotency_key = opts->idempotency_key;
    q->headers = opts->headers;
    q->timeout_ms = opts->timeout_ms ? opts->timeout_ms : CLIENT_DEFAULT_TIMEOUT_MS;
    as_status st = http_retry(c, q, opts->retry_ms, &r, err);
    if (ret_http_status)
        *ret_http_status = r.status;
    if (st < 0 || (st = parse_answer(q, &r, &answer, err)) < 0)
        return st;
    if (ret)
        *ret = as_steal(answer);
    return AS_OK;
}

as_status client_call(struct client *c, const char *method, const char *path, const char *query,
                      const json_t *body, const struct client_opts *opts, json_t **ret,
                      int *ret_http_status, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    if (ret_http_status)
        *ret_http_status = 0;
    if (body && !(text = json_format_ordered(body)))
        return as_fail_nomem(err);
    struct http_request q = {.method = method,
                             .path = path,
                             .query = query,
                             .body = text,
                             .body_len = text ? strlen(text) : 0};
    return call_server(c, &q, opts, ret, ret_http_status, err);
}

as_status client_call_text(struct client *c, const char *method, const char *path, const char *text,
                           size_t len, const struct client_opts *opts, json_t **ret,
                           int *ret_http_status, struct as_err *err)
{
    struct http_request q = {.method = method, .path = path, .body = text, .body_len = len};
    return call_server(c, &q, opts, ret, ret_http_status, err);
}

static void append_escaped(struct str *b, const char *s)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                     (ch >= '0' && ch <= '9') || strchr("-._~", ch);
        if (plain) {
            str_putc(b, (char)ch);
        } else {
            str_putc(b, '%');
            str_putc(b, hex[ch >> 4]);
            str_putc(b, hex[ch & 15]);
        }
    }
}

void client_path_add(struct str *path, const char *segment)
{
    str_putc(path, '/');
    append_escaped(path, segment);
}

void client_path_add_i64(struct str *path, int64_t n)
{
    str_printf(path, "/%lld", (long long)n);
}

void client_query_add(struct str *q, const char *name, const char *value)
{
    if (q->len)
        str_putc(q, '&');
    append_escaped(q, name);
    str_putc(q, '=');
    append_escaped(q, value);
}

void client_query_add_i64(struct str *q, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    client_query_add(q, name, text);
}

void client_key_new(char ret[CLIENT_KEY_SIZE])
{
    uint8_t bytes[(CLIENT_KEY_SIZE - 1) / 2];
    random_bytes(bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, ret);
}
