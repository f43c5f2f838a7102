/* A bucket of an S3-compatible service: ENDPOINT/BUCKET/PREFIX/ab/abcdef….
 *
 * libcurl signs the requests itself (AWS Signature Version 4, CURLOPT_AWS_SIGV4). A piece has at
 * most 4 MiB, so that every object is one PUT from memory, and no upload in several parts is
 * needed. The digest of the body, which the signature needs, is the name of the piece.
 *
 * Paths name the bucket (path style), because every service and every port understands that. A
 * request is repeated after failures of the network and answers that say "later" (429, 5xx), with
 * growing pauses; PUT, GET and DELETE of one name may all be repeated. */
#include "scheduler/content/piece_kinds_priv.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#define TRIES 5
#define FIRST_PAUSE_MS 200
#define CONNECT_MS 5000L
#define SLOW_S 20L /* cut when no byte moves for so long */
#define ANSWER_MAX 400

struct s3 {
    char *base;    /* the URL up to the prefix, without a slash at its end; all owned */
    char *userpwd; /* KEY:SECRET */
    char *sigv4;   /* aws:amz:REGION:s3 */
    char *token;   /* "x-amz-security-token: …"; NULL: none */
};

static void s3_close(void *self)
{
    struct s3 *s = self;
    if (!s)
        return;
    free(s->base);
    free(s->userpwd);
    free(s->sigv4);
    free(s->token);
    free(s);
}

static void s3_closep(struct s3 **s)
{
    s3_close(*s);
}

/* ---- the address ---- */

/* s3://BUCKET or s3://BUCKET/PREFIX, of letters that no URL must escape. */
static as_status check_where(const char *where, struct as_err *err)
{
    const char *bucket = where + strlen("s3://");
    size_t n = strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    const char *prefix = bucket + n;
    bool ok = n >= 3 && n <= 63 && (*prefix == '\0' || *prefix == '/') && strlen(prefix) <= 200;
    for (const char *part = prefix; ok && *part;) { /* at a slash */
        size_t len = strcspn(++part, "/");
        ok = len > 0 &&
             strspn(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          "0123456789._-/") >= len &&
             strspn(part, ".") < len;
        part += len;
    }
    if (ok)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "--blob-store is '%.100s', expected s3://BUCKET or s3://BUCKET/PREFIX, a bucket "
                   "of 3 to 63 of a-z 0-9 . - and a prefix of letters, digits, . _ - and /",
                   where);
}

static as_status check_endpoint(const char *endpoint, struct as_err *err)
{
    const char *host = as_starts_with(endpoint, "https://")  ? endpoint + 8
                       : as_starts_with(endpoint, "http://") ? endpoint + 7
                                                             : "";
    size_t n = strcspn(host, "/@?# ");
    if (n > 0 && (!host[n] || (host[n] == '/' && !host[n + 1])))
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "--s3-endpoint is '%.100s', expected http://HOST:PORT or https://HOST:PORT, "
                   "without a path",
                   endpoint);
}

static as_status need_env(const char *name, const char **ret, struct as_err *err)
{
    *ret = getenv(name);
    if (*ret && **ret && !strpbrk(*ret, "\r\n"))
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "--blob-store is in S3, and the environment variable %s is missing or not valid",
                   name);
}

static as_status take_text(struct str *b, char **ret, struct as_err *err)
{
    as_status st = str_check(b, err);
    if (st == AS_OK)
        *ret = str_take(b);
    str_done(b);
    return st;
}

static as_status read_address(struct s3 *s, const struct piece_place *place, const char *region,
                              struct as_err *err)
{
    struct str url = {0}, sign = {0};
    size_t len = place->endpoint ? strlen(place->endpoint) : 0;
    if (len > 0 && place->endpoint[len - 1] == '/')
        len--;
    if (len > 0)
        str_printf(&url, "%.*s/%s", (int)len, place->endpoint, place->where + strlen("s3://"));
    else
        str_printf(&url, "https://s3.%s.amazonaws.com/%s", region, place->where + strlen("s3://"));
    as_status st = take_text(&url, &s->base, err);
    if (st != AS_OK)
        return st;
    str_printf(&sign, "aws:amz:%s:s3", region);
    return take_text(&sign, &s->sigv4, err);
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static void init_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

as_status s3_open(const struct piece_place *place, void **ret, struct as_err *err)
{
    AS_AUTO(s3_closep) struct s3 *s = as_calloc(1, sizeof *s);
    const char *key = NULL, *secret = NULL, *region = getenv("AWS_REGION");
    const char *token = getenv("AWS_SESSION_TOKEN");
    struct str b = {0};
    if (!s)
        return as_fail_nomem(err);
    pthread_once(&curl_once, init_curl);
    as_status st = check_where(place->where, err);
    if (st == AS_OK && place->endpoint)
        st = check_endpoint(place->endpoint, err);
    if (st == AS_OK && !place->endpoint)
        st = need_env("AWS_REGION", &region, err);
    if (st == AS_OK)
        st = need_env("AWS_ACCESS_KEY_ID", &key, err);
    if (st == AS_OK)
        st = need_env("AWS_SECRET_ACCESS_KEY", &secret, err);
    if (st == AS_OK)
        st = read_address(s, place, region && *region ? region : "us-east-1", err);
    if (st != AS_OK)
        return st;
    str_printf(&b, "%s:%s", key, secret);
    st = take_text(&b, &s->userpwd, err);
    if (st == AS_OK && token && *token) {
        str_printf(&b, "x-amz-security-token: %s", token);
        st = take_text(&b, &s->token, err);
    }
    if (st == AS_OK)
        *ret = as_steal(s);
    return st;
}

/* ---- requests ---- */

/* One request and its answer. */
struct exchange {
    const char *method, *sha256;
    const void *body; /* NULL: none */
    size_t body_len;
    char *buf; /* of a success; NULL: its body is dropped */
    size_t size, len;
    bool too_large;
    CURL *easy;
    long status;            /* 0: no answer */
    char words[ANSWER_MAX]; /* the beginning of an answer that is no success */
    size_t n_words;
};

static size_t on_answer(char *bytes, size_t one, size_t n, void *arg)
{
    struct exchange *x = arg;
    (void)one;
    (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
    if (x->status / 100 != 2) {
        size_t take = n < sizeof x->words - 1 - x->n_words ? n : sizeof x->words - 1 - x->n_words;
        memcpy(x->words + x->n_words, bytes, take);
        x->n_words += take;
        return n;
    }
    if (!x->buf)
        return n;
    x->too_large = n > x->size - x->len;
    if (x->too_large)
        return 0;
    memcpy(x->buf + x->len, bytes, n);
    x->len += n;
    return n;
}

static struct curl_slist *headers_of(const struct s3 *s, const struct exchange *x)
{
    static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    char line[120];
    (void)snprintf(line, sizeof line, "x-amz-content-sha256: %s", x->body ? x->sha256 : empty);
    struct curl_slist *list = curl_slist_append(NULL, line), *more = list;
    if (more && x->body)
        more = curl_slist_append(list, "Content-Type: application/octet-stream");
    if (more && s->token)
        more = curl_slist_append(list, s->token);
    if (more)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

static CURLcode perform(const struct s3 *s, struct exchange *x, const char *url,
                        struct curl_slist *headers, char *detail)
{
    CURL *e = x->easy;
    CURLcode bad = curl_easy_setopt(e, CURLOPT_URL, url);
    bad |= curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, x->method);
    bad |= curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    bad |= curl_easy_setopt(e, CURLOPT_AWS_SIGV4, s->sigv4);
    bad |= curl_easy_setopt(e, CURLOPT_USERPWD, s->userpwd);
    bad |= curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    bad |= curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    bad |= curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    bad |= curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, SLOW_S);
    bad |= curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS, 200L);
    bad |= curl_easy_setopt(e, CURLOPT_ERRORBUFFER, detail);
    bad |= curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_answer);
    bad |= curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    if (x->body) {
        bad |= curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_len);
        bad |= curl_easy_setopt(e, CURLOPT_POSTFIELDS, x->body);
    }
    if (bad != CURLE_OK)
        return CURLE_FAILED_INIT;
    CURLcode code = curl_easy_perform(e);
    (void)curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &x->status);
    return code;
}

/* What the answer means. AS_E_UNAVAILABLE: try again. */
static as_status meaning(const struct s3 *s, const struct exchange *x, CURLcode code,
                         const char *detail, struct as_err *err)
{
    if (x->too_large)
        return as_fail(err, AS_E_TOO_LARGE, "the piece %s has more than %zu bytes", x->sha256,
                       x->size);
    if (code == CURLE_OUT_OF_MEMORY)
        return as_fail_nomem(err);
    if (code == CURLE_FAILED_INIT || code == CURLE_UNKNOWN_OPTION)
        return as_fail(err, AS_E_INTERNAL, "libcurl cannot sign requests to S3 (it needs 7.85)");
    if (code != CURLE_OK)
        return as_fail(err, AS_E_UNAVAILABLE, "%.100s: %.100s", s->base,
                       *detail ? detail : curl_easy_strerror(code));
    if (x->status / 100 == 2)
        return AS_OK;
    if (x->status == 404 && !strstr(x->words, "NoSuchBucket"))
        return as_fail(err, AS_E_NOT_FOUND, "no piece %s", x->sha256);
    bool later = x->status == 429 || x->status >= 500;
    return as_fail(err, later ? AS_E_UNAVAILABLE : AS_E_DENIED, "%.60s answered %ld: %.120s",
                   s->base, x->status, x->words);
}

static as_status request_once(const struct s3 *s, struct exchange *x, struct as_err *err)
{
    char url[600], detail[CURL_ERROR_SIZE] = "";
    x->len = x->n_words = 0;
    x->status = 0;
    x->too_large = false;
    memset(x->words, 0, sizeof x->words);
    int n = snprintf(url, sizeof url, "%s/%.2s/%s", s->base, x->sha256, x->sha256);
    if (n < 0 || (size_t)n >= sizeof url)
        return as_fail(err, AS_E_INVAL, "the address of the bucket is too long");
    x->easy = curl_easy_init();
    struct curl_slist *headers = headers_of(s, x);
    as_status st = x->easy && headers ? AS_OK : as_fail_nomem(err);
    if (st == AS_OK) {
        CURLcode code = perform(s, x, url, headers, detail);
        st = meaning(s, x, code, detail, err);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(x->easy);
    return st;
}

static as_status request(const struct s3 *s, struct exchange *x, struct as_err *err)
{
    int64_t pause_ms = FIRST_PAUSE_MS;
    as_status st = request_once(s, x, err);
    for (int i = 1; i < TRIES && st == AS_E_UNAVAILABLE; i++, pause_ms *= 2) {
        clock_sleep_ms(pause_ms);
        st = request_once(s, x, err);
    }
    return st;
}

static as_status s3_put(void *self, const char *sha256, const void *bytes, size_t len,
                        struct as_err *err)
{
    struct exchange x = {.method = "PUT", .sha256 = sha256, .body = bytes, .body_len = len};
    as_status st = request(self, &x, err);
    return st == AS_E_NOT_FOUND ? as_fail(err, AS_E_DENIED, "no such bucket") : st;
}

static as_status s3_get(void *self, const char *sha256, void *buf, size_t size, size_t *ret_len,
                        struct as_err *err)
{
    struct exchange x = {.method = "GET", .sha256 = sha256, .buf = buf, .size = size};
    as_status st = request(self, &x, err);
    if (st == AS_OK)
        *ret_len = x.len;
    return st;
}

static as_status s3_remove(void *self, const char *sha256, struct as_err *err)
{
    struct exchange x = {.method = "DELETE", .sha256 = sha256};
    as_status st = request(self, &x, err);
    return st == AS_E_NOT_FOUND ? AS_OK : st;
}

const struct piece_ops s3_ops = {
    .put = s3_put, .get = s3_get, .remove = s3_remove, .close = s3_close};
