/* What a handler sees of one request: its parameters, its body, the store, and functions that
 * answer.
 *
 * A handler decodes the request, makes one call of the scheduler, and answers through exactly one
 * call_… function. It knows no HTTP status numbers, and returns errors unchanged. */
#ifndef ASSAY_API_SERVER_CALL_H
#define ASSAY_API_SERVER_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/http/http.h"
#include "api/server/auth.h"
#include "api/server/waiting.h"
#include "api/server/pool.h"
#include "api/server/route.h"
#include "base/faults.h"
#include "scheduler/commit/committer.h"
#include "scheduler/content/blobs.h"
#include "scheduler/lifecycle/idempotency.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/services/tokens.h"
#include "scheduler/store/store.h"

#define REQUEST_ID_SIZE 65
#define RUNNER_SECRET_MIN 32
#define RUNNER_SECRET_MAX 128

struct attempt_key;
struct dispatch;
struct server;
struct sweep_fronts;
struct table_cache;
struct trial_orders;

struct call {
    struct pool_job job;
    struct waiting_item waiting;
    struct auth_check auth;
    const struct dispatch *dispatch; /* borrowed */
    struct server *server;           /* borrowed */
    struct http_exchange *x;
    const struct route *route; /* NULL: no route has this path */
    const char *params[ROUTE_PARAMS_MAX];
    char request_id[REQUEST_ID_SIZE];
    struct arena *arena; /* of the exchange */
    struct store *db;
    struct suggester *suggester;  /* borrowed */
    struct result_cache *results; /* borrowed */
    struct table_cache *tables;   /* borrowed */
    struct trial_orders *orders;  /* borrowed */
    struct sweep_fronts *fronts;  /* borrowed */
    struct attempt_key *attempts; /* borrowed */
    struct principal who;         /* set for routes that need a token */
    struct faults faults;         /* of the body, if its parser notes all of them; owned */
    json_t *body;                 /* owned; ROUTE_BODY_JSON and ROUTE_BODY_MERGE_PATCH */
    struct idem_key *idem;        /* of a request with an Idempotency-Key, else NULL */
    struct blob_put *upload;      /* owned; ROUTE_BODY_BYTES */
    bool is_draining;             /* the server is stopping: do not wait */
    bool wants_wake;              /* other requests that wait may find something now */
    bool wants_wait;              /* the handler found nothing yet: retry it later */
    int64_t settled_ns;           /* when the answer was set */
    struct call_commit {          /* call_submit(): what its handler waits for */
        struct commit_member *const *members;
        size_t n;
        struct beat_member *beat; /* call_submit_beat(), instead of members */
        atomic_size_t n_left;     /* members that have no answer yet */
        route_fn *then;           /* the second half of the handler; NULL: nothing was submitted */
        void *state;              /* for the second half; the handler's */
        struct arena *arenas;     /* of call_members() */
        size_t n_arenas;
    } commit;
    /* claim_request.arrived_ns of a claim that waited for ends of attempts. 0: it did not wait for
     * them. -1: its next try sets it. */
    int64_t since_ns;
};

/* ---- decode ---- */

/* A path parameter as text; "" if the route has none of that name. Its value is not checked. */
const char *call_param(const struct call *c, const char *name);
/* Read a decimal number in [min, max] from the head of a request. Each number has one spelling: no
 * plus sign, no leading zeros, no blanks. Returns false and leaves *ret for any other text. */
bool call_read_i64(const char *s, int64_t min, int64_t max, int64_t *ret);
/* A path parameter as a number in [min, 2^31). AS_E_INVAL. */
AS_MUST_CHECK as_status call_param_i64(const struct call *c, const char *name, int64_t min,
                                       int64_t *ret, struct as_err *err);
/* A query parameter, or NULL. */
const char *call_query(const struct call *c, const char *name);
/* *ret is untouched if the parameter is absent. AS_E_INVAL: the message names the parameter. */
AS_MUST_CHECK as_status call_query_i64(const struct call *c, const char *name, int64_t min,
                                       int64_t max, int64_t *ret, struct as_err *err);
AS_MUST_CHECK as_status call_query_word(const struct call *c, const char *name,
                                        const char *const *words, int *ret, struct as_err *err);
/* "true" or "false". */
AS_MUST_CHECK as_status call_query_bool(const struct call *c, const char *name, bool *ret,
                                        struct as_err *err);
/* The SHA-256 of the header Assay-Runner-Secret, in the arena; NULL: the header was not sent.
 * AS_E_INVAL: it does not look like a secret. */
AS_MUST_CHECK as_status call_runner_secret(const struct call *c, const char **ret,
                                           struct as_err *err);
/* The headers Assay-Seat and Assay-World-Epoch. *ret_has: they were sent. AS_E_INVAL: one alone, or
 * not a number. */
AS_MUST_CHECK as_status call_seat(const struct call *c, bool *ret_has, int64_t *ret_seat,
                                  int64_t *ret_epoch, struct as_err *err);
/* Read cursor and page_size. */
AS_MUST_CHECK as_status call_page(const struct call *c, struct page_req *ret, struct as_err *err);

/* ---- answer: one of these, last ---- */

/* 200 with a JSON body; takes `body`. AS_E_NOMEM if `body` is NULL: the encoder had no memory. */
AS_MUST_CHECK as_status call_ok(struct call *c, json_t *body, struct as_err *err);
/* 201, as above; `location` may be NULL and is copied. */
AS_MUST_CHECK as_status call_created(struct call *c, json_t *body, const char *location,
                                     struct as_err *err);
as_status call_ok_empty(struct call *c);      /* 200 without a body */
as_status call_created_empty(struct call *c); /* 201 without a body */
as_status call_done(struct call *c);          /* 204 */
/* 200 with bytes that live in the arena of the call, or for ever. */
as_status call_bytes(struct call *c, const char *type, const char *bytes, size_t len);
/* The same with bytes whose version is known, which are gzip if is_packed. 304 if the client has
 * that version (quoted, of the arena; NULL: their digest is). */
as_status call_content(struct call *c, const char *type, const char *bytes, size_t len,
                       bool is_packed, const char *etag);
/* 200 with a stream; takes one reference. size -1: not known. */
as_status call_stream(struct call *c, const char *type, struct http_stream *stream, int64_t size);

/* 206 with the bytes [first, last] of `size` as a stream; takes one reference. */
as_status call_part(struct call *c, const char *type, struct http_stream *stream, int64_t first,
                    int64_t last, int64_t size);
/* 416: the request's range lies outside of content of `size` bytes. */
as_status call_no_part(struct call *c, int64_t size);
/* 200 to HEAD: the content has `size` bytes. */
as_status call_size(struct call *c, const char *type, int64_t size);
/* Give the answer this ETag (quoted; lives as long as the arena). True: the client has that
 * version, and 304 was answered. */
bool call_has_version(struct call *c, const char *etag);

/* May the handler wait for something to answer? False: wait_ms have passed since the request
 * arrived, or the server is draining; answer with the current state. Stores wait_ms for
 * call_wait(). */
bool call_may_wait(struct call *c, int64_t wait_ms);
/* Requests that wait may find something now. */
void call_wake(struct call *c);
/* Wait: there is nothing to answer yet. The handler returns AS_OK after this call, and runs again
 * when there may be something. `key` names what it waits for (waiting.h). If its time ended after
 * call_may_wait() returned true, it runs again at once. */
void call_wait(struct call *c, int64_t key);
/* Submit these members (n >= 1, owned by the arena of the call; several are of call_members()) to
 * the committer when the handler has returned. It returns AS_OK after this call, holds no thread
 * meanwhile, and `then` runs when all of them have their answers. c->commit.state is for
 * what the second half needs. AS_E_UNAVAILABLE is the answer if the committer's queue is full. */
void call_submit(struct call *c, struct commit_member *const *members, size_t n, route_fn *then);
AS_MUST_CHECK as_status call_submit_one(struct call *c, struct commit_member *m, route_fn *then,
                                        struct as_err *err);
/* The same with a heartbeat (of the arena of the call), which others share a transaction with. A
 * `then` that finds it plain must not block. */
void call_submit_beat(struct call *c, struct beat_member *m, route_fn *then);
/* A member in the arena of the call, whose answer lives there too. NULL when memory is out. */
struct commit_member *call_member(struct call *c, commit_kind kind);
/* n members whose answers live in arenas of their own, until the call ends. Once for a call. NULL
 * when memory is out. */
struct commit_member *call_members(struct call *c, size_t n);
/* The call ends. */
void call_free_members(struct call *c);

#endif
