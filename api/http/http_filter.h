/* The checks that a request must pass before any other code sees it.
 *
 * libmicrohttpd 0.9.75 accepts messages that two parsers may read in two ways (Content-Length with
 * Transfer-Encoding, two Content-Lengths, no Host) and decodes %00 into the end of a string. This
 * file refuses all of these. It is pure: no I/O and no HTTP library, so that a fuzz target can
 * drive it (fuzz_http). */
#ifndef ASSAY_API_HTTP_HTTP_FILTER_H
#define ASSAY_API_HTTP_HTTP_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http/http_framing.h"
#include "base/arena.h"
#include "base/status.h"

struct http_pair {
    const char *name, *value;
};

/* The head of one request. Strings are in the request's arena; NULL: the header was not sent. */
struct http_head {
    const char *method;
    const char *path;        /* decoded: valid UTF-8, no NUL, no "." or ".." segment */
    struct http_pair *query; /* decoded, names are unique */
    size_t n_query;
    const char *host, *origin, *authorization, *content_type, *idempotency_key, *last_event_id;
    const char *if_none_match, *if_range, *range, *accept_encoding, *accept, *request_id,
        *fetch_site, *runner_secret, *seat, *world_epoch;
    const char *content_encoding, *inference_length; /* Inference-Header-Content-Length */
    int64_t content_length;                          /* -1: no such header */
    bool is_chunked, expects_continue;
};

/* The headers of one request while they are read, one after the other. Starts zeroed. */
struct http_filter {
    struct http_head *head; /* borrowed; filled by http_filter_add */
    struct arena *arena;    /* borrowed */
    unsigned n_host, n_length, n_encoding, n_authorization, n_type;
    bool bad_encoding, bad_length, no_memory;
    const char *problem; /* another error, or NULL */
};

/* Note one header line. `value` need not be NUL-terminated. */
void http_filter_add(struct http_filter *f, const char *name, const char *value, size_t len);

/* Judge the headers. Call it after the last one. `version` is "HTTP/1.1" or "HTTP/1.0".
 * AS_E_INVAL: refuse the request and close the connection after the answer, because the end of its
 * body is uncertain. AS_E_NOMEM. */
AS_MUST_CHECK as_status http_filter_check(const struct http_filter *f, const char *version,
                                          struct as_err *err);

/* Decode the raw request target ("/v1/sweeps?page_size=5") into head->path and head->query.
 * AS_E_INVAL: not origin-form, a bad escape, an encoded NUL, slash or backslash in the path, a
 * control character, not UTF-8, a "." or ".." segment, a parameter twice. AS_E_TOO_LARGE.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status http_target_parse(const char *raw, struct arena *arena,
                                          struct http_head *head, struct as_err *err);

/* The value of a query parameter, or NULL. */
const char *http_query(const struct http_head *head, const char *name);

/* Does `host` ("name", "name:port", "[::1]:port") name this server: a loopback name or address, or
 * one of the NULL-terminated `names` (without port)? This check defends against DNS rebinding. */
bool http_host_allowed(const char *host, const char *const *names);

/* Does the Origin of an unsafe request (such as "http://127.0.0.1:7117") name the same host and
 * port as its Host header? */
bool http_origin_matches(const char *origin, const char *host);

#endif
