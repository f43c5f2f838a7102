/* The HTTP client of the API (api/openapi.yaml). assay and assay-runner use it.
 *
 * A client is one base URL, one token and one connection: use it from one thread (only
 * client_interrupt may be called from another thread). TLS certificates are verified, redirects are
 * not followed, answers are bounded, and every call ends within its time limit.
 *
 * Errors. A problem document (RFC 9457) becomes a status, a message and, when the server names a
 * field, the JSON pointer in err->pointer:
 *   400, 422 AS_E_INVAL            401, 403 AS_E_DENIED       404 AS_E_NOT_FOUND
 *   409 AS_E_STALE (codes stale_attempt and stale_epoch) or AS_E_CONFLICT
 *   413 AS_E_TOO_LARGE             405, 415 AS_E_UNSUPPORTED
 *   429, 502, 503, 504, no connection, a cut connection, no answer in time: AS_E_UNAVAILABLE
 *   other answers, and answers that break the contract: AS_E_INTERNAL
 *
 * Retries. Within opts.retry_ms, calls that end in AS_E_UNAVAILABLE are repeated after a jittered
 * exponential pause (100 ms to 5 s, Retry-After respected up to 30 s). Retries are safe when the
 * request may be repeated: reads, PUT, DELETE, the runner protocol, and creations with an
 * idempotency key. A retried POST that creates something and has no key may create it twice. */
#ifndef ASSAY_API_CLIENT_CLIENT_H
#define ASSAY_API_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/str.h"

#define CLIENT_RETRY_FOREVER INT64_MAX
#define CLIENT_MAX_JSON_BYTES (64 << 20) /* of one answer */
#define CLIENT_KEY_SIZE 33               /* an idempotency key with its NUL */

struct client;

/* A client of the server at `base_url` (http:// or https://, a path prefix is allowed, no query).
 *   token    bearer token, copied; NULL or "" for none
 *   program  for the User-Agent, such as "assay-runner"; copied
 *   ret      owned by the caller, free with client_free(); untouched on failure
 * Nothing is sent yet. AS_E_INVAL: the message names the error in the URL or the token.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status client_create(const char *base_url, const char *token, const char *program,
                                      struct client **ret, struct as_err *err);
void client_free(struct client *c);
AS_DEFINE_FREEP(struct client, client_free)

/* Trust the certificates that lead to an authority of this file (PEM), and to no other. For all
 * clients of this process, before the first of them is made; NULL changes nothing. AS_E_NOT_FOUND,
 * AS_E_INVAL: it is no file. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status client_trust(const char *ca_file, struct as_err *err);

/* From now on show the secret of a runner with each request. `secret` is copied. AS_E_INVAL,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status client_show_secret(struct client *c, const char *secret,
                                           struct as_err *err);

/* End the call in progress, and every later one, with AS_E_UNAVAILABLE "interrupted". May be called
 * from any thread and from a signal handler. */
void client_interrupt(struct client *c);
bool client_interrupted(const struct client *c);

/* Pause for ms. Returns false at once when the client is interrupted. */
bool client_wait(struct client *c, int64_t ms);

/* Zeroed: the defaults. */
struct client_opts {
    const char *idempotency_key; /* borrowed; NULL: none */
    const char *content_type;    /* of the body; NULL: application/json */
    const char *const *headers;  /* more of them, "Name: value" each, and a NULL; NULL: none.
                                  * client_call() alone sends them */
    int64_t timeout_ms;          /* of one try; 0: 30 s. Add the wait of a long-poll */
    int64_t retry_ms;            /* time in which to retry; 0: one try */
    /* For blobs: called after each piece with the bytes so far. NULL: none. */
    void (*on_progress)(void *arg, int64_t done);
    void *progress_arg; /* borrowed */
    /* Of a file that is downloaded: it is not synced, because nobody reads it after a power cut. */
    bool is_temporary;
};

/* One request and its JSON answer.
 *   path    from the root, each segment escaped already (client_path_add): "/v1/sweeps/digits"
 *   query   "a=1&b=2" escaped already (client_query_add), or NULL
 *   body    borrowed, not changed; NULL for none
 *   opts    borrowed; NULL for the defaults
 *   ret     the answer, owned by the caller; *ret is NULL if it has no body (204). ret may be NULL
 *   ret_http_status   may be NULL; also set when the call fails; 0 if there was no answer */
AS_MUST_CHECK as_status client_call(struct client *c, const char *method, const char *path,
                                    const char *query, const json_t *body,
                                    const struct client_opts *opts, json_t **ret,
                                    int *ret_http_status, struct as_err *err);

/* The same with a body that is JSON text of `len` bytes already; borrowed. */
AS_MUST_CHECK as_status client_call_text(struct client *c, const char *method, const char *path,
                                         const char *text, size_t len,
                                         const struct client_opts *opts, json_t **ret,
                                         int *ret_http_status, struct as_err *err);

/* What a problem document means that is a part of an answer: the status and `err`, as if the call
 * had been answered with it and `http_status`, which is no success. Its code is a view of
 * `problem`; "" if it has none. `problem` may be anything. */
as_status client_problem_read(int http_status, const json_t *problem, const char **ret_code,
                              struct as_err *err);

/* The pause after the failure of a call that failed `tries` times before, for those who retry by
 * themselves: as long as within opts.retry_ms, and at least what the answer to the last call asks
 * for. */
int64_t client_pause_ms(const struct client *c, unsigned tries);

/* The `code` of the problem that ended the last call ("stale_epoch"), or "". A view of c until the
 * next call. */
const char *client_problem_code(const struct client *c);

/* The `errors` of that problem, [{pointer, detail}, …]: every field at fault; NULL if it names
 * none. Borrowed until the next call. */
const json_t *client_problem_errors(const struct client *c);

/* Make the content of a file available on the server: HEAD asks for it, and PUT uploads it if it is
 * absent.
 *   sha256   the digest of the file (sha256_of_file)
 *   ret_sent may be NULL; whether bytes were sent
 * AS_E_IO: the file cannot be read. AS_E_INVAL: it changed since the digest was computed. */
AS_MUST_CHECK as_status client_upload_file(struct client *c, const char *path, const char *sha256,
                                           const struct client_opts *opts, bool *ret_sent,
                                           struct as_err *err);

/* The same for an open regular file of `size_bytes` bytes, read from its beginning; borrowed. */
AS_MUST_CHECK as_status client_upload_fd(struct client *c, int fd, int64_t size_bytes,
                                         const char *sha256, const struct client_opts *opts,
                                         bool *ret_sent, struct as_err *err);

/* Fetch the blob to `dest_path`. The file is replaced if the digest of the content is right, and is
 * untouched otherwise (a file_draft is removed). A link is followed. The folder must exist. A try
 * after a cut goes on behind the bytes that are there.
 *   max_bytes  0: no limit; AS_E_TOO_LARGE past it
 * AS_E_NOT_FOUND; AS_E_IO (disk full, no regular file); AS_E_INTERNAL: the digest is wrong. */
AS_MUST_CHECK as_status client_download_blob(struct client *c, const char *sha256,
                                             const char *dest_path, int64_t max_bytes,
                                             const struct client_opts *opts, struct as_err *err);

/* Fetch the blob and write it to a descriptor that cannot be rewound, such as a pipe: what was
 * written stays, and a try after a cut goes on behind it. The same errors. */
AS_MUST_CHECK as_status client_download_fd(struct client *c, const char *sha256, int fd,
                                           const struct client_opts *opts, struct as_err *err);

/* The callbacks of a stream. All are borrowed for the call; all but on_event are optional. */
struct client_stream_fns {
    /* One event: its id, its type, its data. Return false to end the stream. */
    bool (*on_event)(void *arg, const char *id, const char *type, const json_t *data);
    /* About every tick_ms (0: never), whether connected or not. Return false to end the stream. */
    bool (*on_tick)(void *arg);
    /* The connection was made, or it was lost (`why` has the reason) and will be tried again. */
    void (*on_connection)(void *arg, bool connected, const char *why);
    void *arg;
    int64_t tick_ms;
};

/* Follow server-sent events at `path`. After each cut, connect again and resume after the last
 * event (Last-Event-ID), as long as each cut lasts less than opts->retry_ms.
 *   after   id of the last event already known; "0" for all stored events; NULL for new ones only
 * AS_OK: a callback ended it. AS_E_UNAVAILABLE: retry_ms passed without a connection, or the client
 * was interrupted. Other errors end it at once. A connection on which nothing arrives for
 * 45 s (the server sends a comment every 15 s) counts as cut. */
AS_MUST_CHECK as_status client_stream_events(struct client *c, const char *path, const char *after,
                                             const struct client_stream_fns *fns,
                                             const struct client_opts *opts, struct as_err *err);

/* Append "/" and the escaped segment; "name=value", after "&" when q is not empty. */
void client_path_add(struct str *path, const char *segment);
void client_path_add_i64(struct str *path, int64_t n);
void client_query_add(struct str *q, const char *name, const char *value);
void client_query_add_i64(struct str *q, const char *name, int64_t value);

/* A new random idempotency key. */
void client_key_new(char ret[CLIENT_KEY_SIZE]);

#endif
