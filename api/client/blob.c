/* Content by digest: upload if the server does not have it, download and check.
 *
 * A download goes to a file_draft, which replaces its destination after its digest was checked, so
 * that a cut connection or wrong content never leaves a partial file under the final
 * name. A try after a cut asks for the bytes that are missing (Range); content is named by its
 * digest, so every server gives the same bytes and no If-Range is needed. The digest is computed
 * over all tries. A server that sends the whole again is taken from the first byte, except into a
 * pipe, where what was written cannot be taken back. Transfers have no time limit as a
 * whole, because a blob may have gigabytes; a transfer that stands still for too long is cut. */
#include "api/client/client_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

#define HTTP_PARTIAL 206
#define HTTP_NO_RANGE 416

/* The longest time in which no byte of a transfer moves. */
static int64_t idle_limit_ms(const struct client_opts *opts)
{
    return opts && opts->timeout_ms ? opts->timeout_ms : CLIENT_DEFAULT_TIMEOUT_MS;
}

static as_status blob_path(const char *sha256, struct str *path, struct as_err *err)
{
    if (!sha256_hex_valid(sha256))
        return as_fail(err, AS_E_INVAL, "'%.80s' is not a SHA-256 digest", sha256);
    str_puts(path, "/v1/blobs");
    client_path_add(path, sha256);
    return str_check(path, err);
}

static as_status upload_content(struct client *c, int fd, int64_t size_bytes, const char *url_path,
                                const struct client_opts *opts, struct as_err *err)
{
    AS_AUTO(http_response_done) struct http_response r = {0};
    struct http_request q = {.method = "PUT",
                             .path = url_path,
                             .content_type = "application/octet-stream",
                             .body_fd = fd,
                             .body_size = size_bytes,
                             .idle_ms = idle_limit_ms(opts)};
    if (opts) {
        q.on_sent = opts->on_progress;
        q.sent_arg = opts->progress_arg;
    }
    return http_retry(c, &q, opts ? opts->retry_ms : 0, &r, err);
}

/* ---- parts ---- */

#define PART_BYTES ((int64_t)4 << 20)

/* An upload in parts: those that the server has are not sent. */
struct parts {
    struct client *c;
    int fd;
    int64_t size;
    const struct client_opts *opts; /* may be NULL */
    char *buf;                      /* PART_BYTES; owned */
    int64_t sent;
};

/* Read part i. *ret_len: its length. */
static as_status read_part(struct parts *p, int64_t i, size_t *ret_len, struct as_err *err)
{
    int64_t at = i * PART_BYTES;
    size_t want = (size_t)(p->size - at < PART_BYTES ? p->size - at : PART_BYTES), have = 0;
    while (have < want) {
        ssize_t n = pread(p->fd, p->buf + have, want - have, (off_t)at + (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return as_fail(err, AS_E_IO, "reading the upload: %s",
                           n < 0 ? strerror(errno) : "the file became shorter");
        have += (size_t)n;
    }
    *ret_len = want;
    return AS_OK;
}

/* The body of putBlobParts. New reference. */
static as_status list_parts(struct parts *p, json_t **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    char hex[SHA256_HEX_SIZE];
    for (int64_t i = 0; i * PART_BYTES < p->size; i++) {
        size_t len = 0;
        as_status st = read_part(p, i, &len, err);
        if (st == AS_OK)
            st = sha256_of(p->buf, len, hex, err);
        if (st < 0)
            return st;
        if (json_array_append_new(list, json_string(hex)) != 0)
            return as_fail_nomem(err);
    }
    *ret = json_pack("{s:I, s:O}", "size", (json_int_t)p->size, "parts", list);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status send_part(struct parts *p, int64_t i, const char *sha256, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    AS_AUTO(http_response_done) struct http_response r = {0};
    size_t len = 0;
    as_status st = blob_path(sha256, &path, err);
    if (st == AS_OK)
        st = read_part(p, i, &len, err);
    if (st < 0)
        return st;
    struct http_request q = {.method = "PUT",
                             .path = str_cstr(&path),
                             .content_type = "application/octet-stream",
                             .body = p->buf,
                             .body_len = len,
                             .body_size = -1,
                             .idle_ms = idle_limit_ms(p->opts)};
    st = http_retry(p->c, &q, p->opts ? p->opts->retry_ms : 0, &r, err);
    p->sent += (int64_t)len;
    if (st == AS_OK && p->opts && p->opts->on_progress)
        p->opts->on_progress(p->opts->progress_arg, p->sent);
    return st;
}

/* Send the parts that the server lacks. *ret_whole: it has the content now. */
static as_status send_missing(struct parts *p, const json_t *body, const char *path,
                              bool *ret_whole, struct as_err *err)
{
    JSON_AUTO answer = NULL;
    struct client_opts opts = {.retry_ms = p->opts ? p->opts->retry_ms : 0,
                               .timeout_ms = CLIENT_DEFAULT_TIMEOUT_MS * 10};
    const json_t *list = json_object_get(body, "parts");
    size_t k;
    json_t *place;
    as_status st = client_call(p->c, "PUT", path, NULL, body, &opts, &answer, NULL, err);
    const json_t *missing = json_object_get(answer, "missing");
    *ret_whole = st == AS_OK && json_array_size(missing) == 0;
    json_array_foreach((json_t *)missing, k, place)
    {
        const char *sha256 =
            json_string_value(json_array_get(list, (size_t)json_integer_value(place)));
        if (st == AS_OK && !sha256)
            return as_fail(err, AS_E_INTERNAL, "the server lacks a part that there is not");
        if (st == AS_OK)
            st = send_part(p, json_integer_value(place), sha256, err);
    }
    return st;
}

/* Upload in parts. AS_E_UNSUPPORTED: the server does not know parts. */
static as_status upload_parts(struct client *c, int fd, int64_t size, const char *url_path,
                              const struct client_opts *opts, struct as_err *err)
{
    JSON_AUTO body = NULL;
    AS_AUTO(str_done) struct str path = {0};
    AS_AUTO(as_freep) char *buf = as_calloc((size_t)PART_BYTES, 1);
    struct parts p = {.c = c, .fd = fd, .size = size, .opts = opts, .buf = buf};
    bool whole = false;
    str_printf(&path, "%s/parts", url_path);
    as_status st = buf ? str_check(&path, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = list_parts(&p, &body, err);
    /* twice: what is missing, and done; once more if a part was removed meanwhile */
    for (int i = 0; i < 3 && st == AS_OK && !whole; i++)
        st = send_missing(&p, body, str_cstr(&path), &whole, err);
    if (st == AS_E_NOT_FOUND && p.sent == 0)
        return AS_E_UNSUPPORTED;
    if (st == AS_OK && !whole)
        return as_fail(err, AS_E_UNAVAILABLE, "the server loses parts of the upload");
    return st;
}

/* Does the server have this content? */
static as_status find_blob(struct client *c, const char *url_path, const struct client_opts *opts,
                           bool *ret_there, struct as_err *err)
{
    struct client_opts head = {.retry_ms = opts ? opts->retry_ms : 0};
    struct as_err absent;
    as_status st = client_call(c, "HEAD", url_path, NULL, NULL, &head, NULL, NULL, &absent);
    *ret_there = st == AS_OK;
    if (st == AS_OK || st == AS_E_NOT_FOUND)
        return AS_OK;
    if (err)
        *err = absent;
    return st;
}

/* Upload the open file, or `path` if fd is -1, which is opened only when it is sent. */
static as_status upload_if_absent(struct client *c, int fd, int64_t size_bytes, const char *path,
                                  const char *sha256, const struct client_opts *opts,
                                  bool *ret_sent, struct as_err *err)
{
    AS_AUTO(str_done) struct str url_path = {0};
    AS_AUTO(file_closep) int opened = -1;
    struct stat sb;
    bool is_there = false;
    as_status st = blob_path(sha256, &url_path, err);
    if (st == AS_OK)
        st = find_blob(c, str_cstr(&url_path), opts, &is_there, err);
    if (st == AS_OK && !is_there && fd < 0 && path) {
        opened = fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &sb) < 0)
            return as_fail(err, AS_E_IO, "%s: %s", path, strerror(errno));
        size_bytes = sb.st_size;
    }
    bool in_parts = st == AS_OK && !is_there && size_bytes > PART_BYTES;
    if (in_parts)
        st = upload_parts(c, fd, size_bytes, str_cstr(&url_path), opts, err);
    if (st == AS_E_UNSUPPORTED || (st == AS_OK && !is_there && !in_parts))
        st = upload_content(c, fd, size_bytes, str_cstr(&url_path), opts, err);
    if (st < 0)
        return st;
    if (ret_sent)
        *ret_sent = !is_there;
    return AS_OK;
}

as_status client_upload_file(struct client *c, const char *path, const char *sha256,
                             const struct client_opts *opts, bool *ret_sent, struct as_err *err)
{
    return upload_if_absent(c, -1, 0, path, sha256, opts, ret_sent, err);
}

as_status client_upload_fd(struct client *c, int fd, int64_t size_bytes, const char *sha256,
                           const struct client_opts *opts, bool *ret_sent, struct as_err *err)
{
    return upload_if_absent(c, fd, size_bytes, NULL, sha256, opts, ret_sent, err);
}

/* A download into a descriptor. */
struct download {
    int fd;
    bool rewinds;            /* fd may be emptied for another try */
    int64_t size, max_bytes; /* size: what arrived, of all tries */
    bool is_resumed;         /* this try asked for what is missing, and nothing has arrived yet */
    const struct client_opts *opts; /* may be NULL */
    struct sha256 *digest;          /* of what arrived; owned */
    const struct http_response *r;  /* of this try */
    struct as_err *err;
    as_status st; /* why on_bytes ended it */
};

/* Begin from the first byte. */
static as_status restart(struct download *d, struct as_err *err)
{
    if (d->size > 0 && !d->rewinds)
        return as_fail(err, AS_E_UNAVAILABLE,
                       "the connection was cut, and the server sends no rest of the content");
    if (d->rewinds && (ftruncate(d->fd, 0) < 0 || lseek(d->fd, 0, SEEK_SET) < 0))
        return as_fail(err, AS_E_IO, "%s", strerror(errno));
    sha256_free(d->digest);
    d->digest = sha256_create();
    d->size = 0;
    return d->digest ? AS_OK : as_fail_nomem(err);
}

static bool on_bytes(void *arg, const char *bytes, size_t len)
{
    struct download *d = arg;
    if (d->is_resumed && d->r->status != HTTP_PARTIAL)
        d->st = restart(d, d->err); /* it sends the whole again */
    d->is_resumed = false;
    if (d->st < 0)
        return false;
    d->size += (int64_t)len;
    if (d->max_bytes && d->size > d->max_bytes)
        d->st = as_fail(d->err, AS_E_TOO_LARGE, "the blob is larger than %lld bytes",
                        (long long)d->max_bytes);
    else if ((d->st = file_write_all(d->fd, bytes, len, d->err)) == AS_OK)
        d->st = sha256_add(d->digest, bytes, len, d->err);
    if (d->opts && d->opts->on_progress)
        d->opts->on_progress(d->opts->progress_arg, d->size);
    return d->st == AS_OK;
}

/* One try: the content behind the d->size bytes that are there. */
static as_status fetch_blob_once(struct client *c, const char *url_path, struct download *d,
                                 int64_t *ret_retry_after_ms, struct as_err *err)
{
    AS_AUTO(http_response_done) struct http_response r = {0};
    char range[48];
    const char *const headers[] = {range, NULL};
    struct http_request q = {.method = "GET",
                             .path = url_path,
                             .accept = "application/octet-stream",
                             .headers = d->size > 0 ? headers : NULL,
                             .body_size = -1,
                             .idle_ms = idle_limit_ms(d->opts),
                             .on_body = on_bytes,
                             .arg = d};
    (void)snprintf(range, sizeof range, "Range: bytes=%lld-", (long long)d->size);
    d->is_resumed = d->size > 0;
    d->r = &r;
    as_status st = http_exchange(c, &q, &r, err);
    *ret_retry_after_ms = r.retry_after_ms;
    d->r = NULL;
    if (d->st < 0)
        return d->st;
    /* cut when all had arrived: nothing is behind it, and the digest decides */
    if (st == AS_OK && d->size > 0 && r.status == HTTP_NO_RANGE)
        return AS_OK;
    return st < 0 ? st : problem_status(c, &q, &r, err);
}

static as_status fetch_blob_checked(struct client *c, const char *url_path, const char *sha256,
                                    struct download *d, struct as_err *err)
{
    struct backoff b;
    uint8_t bytes[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
    int64_t retry_after_ms = 0;
    as_status st = restart(d, err);
    backoff_start(&b, d->opts ? d->opts->retry_ms : 0);
    if (st < 0)
        return st;
    do
        st = fetch_blob_once(c, url_path, d, &retry_after_ms, err);
    while (st == AS_E_UNAVAILABLE && d->st == AS_OK && backoff_pause(&b, c, retry_after_ms));
    if (st < 0 || (st = sha256_end(d->digest, bytes, err)) < 0)
        return st;
    hex_format(bytes, sizeof bytes, hex);
    if (strcmp(hex, sha256) != 0)
        return as_fail(err, AS_E_INTERNAL, "the blob %s arrived with the digest %s", sha256, hex);
    return AS_OK;
}

static void download_done(struct download *d)
{
    sha256_free(d->digest);
}

as_status client_download_blob(struct client *c, const char *sha256, const char *dest_path,
                               int64_t max_bytes, const struct client_opts *opts,
                               struct as_err *err)
{
    AS_AUTO(str_done) struct str url_path = {0};
    AS_AUTO(file_draft_done) struct file_draft draft = {0};
    as_status st = blob_path(sha256, &url_path, err);
    if (st == AS_OK)
        st = file_draft_open(&draft, dest_path, err);
    if (st < 0)
        return st;
    AS_AUTO(download_done)
    struct download d = {
        .fd = draft.fd, .rewinds = true, .max_bytes = max_bytes, .opts = opts, .err = err};
    st = fetch_blob_checked(c, str_cstr(&url_path), sha256, &d, err);
    return st < 0 ? st : file_draft_commit(&draft, 0644, !(opts && opts->is_temporary), err);
}

as_status client_download_fd(struct client *c, const char *sha256, int fd,
                             const struct client_opts *opts, struct as_err *err)
{
    AS_AUTO(str_done) struct str url_path = {0};
    as_status st = blob_path(sha256, &url_path, err);
    if (st < 0)
        return st;
    AS_AUTO(download_done) struct download d = {.fd = fd, .opts = opts, .err = err};
    return fetch_blob_checked(c, str_cstr(&url_path), sha256, &d, err);
}
