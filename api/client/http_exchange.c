/* One HTTP exchange on libcurl's multi interface, which another thread can interrupt.
 *
 * The multi interface is used for a single request because curl_multi_poll() also waits for the
 * client's eventfd: an interrupt ends a long-poll of 20 s at once, also from a signal handler. The
 * easy interface can only be interrupted at its own pace. The multi handle keeps the connection
 * between exchanges; the easy handle is reset for each.
 *
 * libcurl's own limits cover a whole transfer. The limit on the time without a byte (idle_ms) and
 * the ticks are ours: drive_transfer() checks them each time that the poll returns. A callback of
 * libcurl aborts the transfer by its return value, and the flags of struct transfer record why. */
#include "api/client/client_priv.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"

/* What the callbacks of one exchange share. */
struct transfer {
    struct client *c;
    const struct http_request *q;
    struct http_response *r;
    bool too_large, read_failed;
    int64_t body_left;
    int64_t last_byte_ns;
};

void http_response_done(struct http_response *r)
{
    str_done(&r->body);
}

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

/* A piece of the answer's body. A return value other than n aborts the transfer. */
static size_t on_write(char *bytes, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    long status = 0;
    n *= size;
    curl_easy_getinfo(t->c->easy, CURLINFO_RESPONSE_CODE, &status);
    t->r->status = (int)status;
    t->last_byte_ns = clock_mono_ns();
    if (t->q->on_body && is_success(t->r->status)) {
        if (t->q->on_body(t->q->arg, bytes, n))
            return n;
        t->r->stopped = true;
        return 0;
    }
    if (n > CLIENT_MAX_JSON_BYTES - t->r->body.len) {
        t->too_large = true;
        return 0;
    }
    str_add(&t->r->body, bytes, n);
    return t->r->body.failed ? 0 : n;
}

static size_t on_read(char *buf, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    n *= size;
    if ((int64_t)n > t->body_left)
        n = (size_t)t->body_left;
    ssize_t got;
    do {
        got = read(t->q->body_fd, buf, n);
    } while (got < 0 && errno == EINTR);
    if (got < 0 || (got == 0 && n > 0)) { /* 0: the file has shrunk */
        t->read_failed = true;
        return CURL_READFUNC_ABORT;
    }
    t->body_left -= got;
    t->last_byte_ns = clock_mono_ns();
    if (t->q->on_sent)
        t->q->on_sent(t->q->sent_arg, t->q->body_size - t->body_left);
    return (size_t)got;
}

/* Copy the value of header `name` from a line "Name: value\r\n". Returns false for other
 * headers. */
static bool header_value(const char *line, size_t len, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);
    if (len <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
        return false;
    const char *v = line + n + 1, *end = line + len;
    while (v < end && (*v == ' ' || *v == '\t'))
        v++;
    while (end > v && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    size_t vlen = (size_t)(end - v) < size - 1 ? (size_t)(end - v) : size - 1;
    memcpy(ret, v, vlen);
    ret[vlen] = '\0';
    return true;
}

/* A header line. The empty line ends the headers. */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    char value[80];
    n *= size;
    t->last_byte_ns = clock_mono_ns();
    if (n <= 2 && t->q->on_open) {
        long status = 0;
        curl_easy_getinfo(t->c->easy, CURLINFO_RESPONSE_CODE, &status);
        if (is_success((int)status))
            t->q->on_open(t->q->arg);
    }
    header_value(line, n, "Content-Type", t->r->content_type, sizeof t->r->content_type);
    if (header_value(line, n, "Retry-After", value, sizeof value)) {
        int64_t s = 0;
        if (as_parse_i64(value, &s, NULL) == AS_OK && s > 0)
            t->r->retry_after_ms = (s < 30 ? s : 30) * 1000;
    }
    return n;
}

static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    AS_AUTO(str_done) struct str line = {0};
    str_puts(&line, name);
    str_puts(&line, value);
    if (line.failed)
        return false;
    struct curl_slist *grown = curl_slist_append(*list, str_cstr(&line));
    if (grown)
        *list = grown;
    return grown != NULL;
}

static bool build_headers(const struct client *c, const struct http_request *q,
                          struct curl_slist **list)
{
    bool ok = add_header(list, "Expect:", "") &&
              add_header(list, "Accept: ", q->accept ? q->accept : "application/json");
    if (ok && c->authorization)
        ok = add_header(list, c->authorization, "");
    if (ok && c->runner_secret)
        ok = add_header(list, c->runner_secret, "");
    if (ok && (q->body || q->body_size >= 0))
        ok = add_header(list, "Content-Type: ", q->content_type);
    if (ok && q->idempotency_key)
        ok = add_header(list, "Idempotency-Key: ", q->idempotency_key);
    for (size_t i = 0; ok && q->headers && q->headers[i]; i++)
        ok = add_header(list, q->headers[i], "");
    if (ok && q->last_event_id)
        ok = add_header(list, "Last-Event-ID: ", q->last_event_id);
    return ok;
}

static void set_body(CURL *e, const struct http_request *q, struct transfer *t)
{
    if (q->body_size >= 0) {
        curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, t);
        curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body_size);
    } else if (q->body) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->body);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
    } else if (strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, "");
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    }
}

static void set_options(struct transfer *t, const char *url, struct curl_slist *headers,
                        char *errbuf)
{
    CURL *e = t->c->easy;
    const struct http_request *q = t->q;
    curl_easy_reset(e); /* keeps connections and DNS answers */
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (client_ca_file) {
        curl_easy_setopt(e, CURLOPT_CAINFO, client_ca_file);
        curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(e, CURLOPT_USERAGENT, t->c->user_agent);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_TIMEOUT_MS);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, errbuf);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    set_body(e, q, t);
    if (strcmp(q->method, "HEAD") == 0)
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
}

/* How long the poll may sleep: until the next tick, at most a second (for idle_ms). */
static int poll_ms(const struct transfer *t, int64_t now, int64_t next_tick)
{
    int64_t until = now + NS_PER_S;
    if (t->q->on_tick && next_tick < until)
        until = next_tick;
    return until > now ? (int)((until - now) / NS_PER_MS) + 1 : 0;
}

/* Run the transfer to its end. CURLE_ABORTED_BY_CALLBACK: this function ended it. */
static CURLcode drive_transfer(struct transfer *t)
{
    struct curl_waitfd wake = {.fd = t->c->wake_fd, .events = CURL_WAIT_POLLIN};
    int64_t next_tick = clock_mono_ns() + t->q->tick_ms * NS_PER_MS;
    for (;;) {
        int running = 0, queued = 0;
        if (curl_multi_perform(t->c->multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        CURLMsg *m = running ? NULL : curl_multi_info_read(t->c->multi, &queued);
        if (m)
            return m->data.result;
        int64_t now = clock_mono_ns();
        if (client_interrupted(t->c))
            return CURLE_ABORTED_BY_CALLBACK;
        if (t->q->idle_ms && now - t->last_byte_ns > t->q->idle_ms * NS_PER_MS)
            return CURLE_OPERATION_TIMEDOUT;
        if (t->q->on_tick && now >= next_tick) {
            next_tick = now + t->q->tick_ms * NS_PER_MS;
            if (!t->q->on_tick(t->q->arg)) {
                t->r->stopped = true;
                return CURLE_ABORTED_BY_CALLBACK;
            }
        }
        if (curl_multi_poll(t->c->multi, &wake, 1, poll_ms(t, now, next_tick), NULL) != CURLM_OK)
            return CURLE_FAILED_INIT;
    }
}

/* Convert libcurl's result to a status. r->status is set if a complete answer arrived. */
static as_status conclude_transfer(struct transfer *t, CURLcode rc, const char *errbuf,
                                   struct as_err *err)
{
    if (t->r->stopped)
        return AS_OK;
    if (client_interrupted(t->c))
        return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
    if (t->too_large)
        return as_fail(err, AS_E_INTERNAL, "the answer of %s is larger than %d MiB", t->q->path,
                       CLIENT_MAX_JSON_BYTES >> 20);
    if (t->r->body.failed || rc == CURLE_OUT_OF_MEMORY)
        return as_fail_nomem(err);
    if (t->read_failed)
        return as_fail(err, AS_E_IO, "the file cannot be read to its end while it is uploaded");
    if (rc != CURLE_OK) {
        t->r->status = 0;
        return as_fail(err, AS_E_UNAVAILABLE, "no answer from %s: %s", t->c->base_url,
                       *errbuf ? errbuf : curl_easy_strerror(rc));
    }
    long status = 0;
    curl_easy_getinfo(t->c->easy, CURLINFO_RESPONSE_CODE, &status);
    t->r->status = (int)status;
    return AS_OK;
}

as_status http_exchange(struct client *c, const struct http_request *q, struct http_response *r,
                        struct as_err *err)
{
    char errbuf[CURL_ERROR_SIZE] = "";
    struct transfer t = {.c = c, .q = q, .r = r, .body_left = q->body_size};
    struct curl_slist *headers = NULL;
    AS_AUTO(str_done) struct str url = {0};
    as_status st = AS_OK;

    if (client_interrupted(c))
        return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
    str_puts(&url, c->base_url);
    str_puts(&url, q->path);
    if (q->query && *q->query) {
        str_putc(&url, '?');
        str_puts(&url, q->query);
    }
    if (url.failed || !build_headers(c, q, &headers)) {
        st = as_fail_nomem(err);
    } else {
        t.last_byte_ns = clock_mono_ns();
        set_options(&t, str_cstr(&url), headers, errbuf);
        CURLcode rc = CURLE_FAILED_INIT;
        if (curl_multi_add_handle(c->multi, c->easy) == CURLM_OK) {
            rc = drive_transfer(&t);
            st = conclude_transfer(&t, rc, errbuf, err);
            curl_multi_remove_handle(c->multi, c->easy);
        } else {
            st = as_fail_nomem(err);
        }
        curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, NULL); /* errbuf goes out of scope */
    }
    curl_slist_free_all(headers);
    return st;
}
