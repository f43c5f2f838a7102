/* What a handler sees of one request: its parameters, its body, the store, and the verbs to answer.
 *
 * A handler decodes, makes one call of the scheduler, and encodes through exactly one call_… verb.
 * It knows no status numbers; errors go back as they are. */
#ifndef ASSAY_API_SERVER_CALL_H
#define ASSAY_API_SERVER_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/http/http.h"
#include "api/server/waiting.h"
#include "api/server/pool.h"
#include "api/server/route.h"
#include "scheduler/content/blobs.h"
#include "scheduler/lifecycle/idempotency.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/services/tokens.h"
#include "scheduler/store/store.h"

#define REQUEST_ID_SIZE 65

struct dispatch;
struct server;

struct call {
    struct pool_job job;
    struct waiting_item waiting;
    const struct dispatch *dispatch; /* borrowed */
    struct server *server;           /* borrowed */
    struct http_exchange *x;
    const struct route *route; /* NULL: the path is no route */
    const char *params[ROUTE_PARAMS_MAX];
    char request_id[REQUEST_ID_SIZE];
    struct arena *arena; /* of the exchange */
    struct store *db;
    struct suggester *suggester;  /* borrowed */
    struct result_cache *results; /* borrowed */
    struct principal who;         /* of routes that need a token */
    json_t *body;                 /* owned; ROUTE_BODY_JSON and ROUTE_BODY_MERGE_PATCH */
    struct idem_key *idem;        /* of a request with an Idempotency-Key, else NULL */
    struct blob_put *upload;      /* owned; ROUTE_BODY_BYTES */
    bool is_draining;             /* the server wants to end: do not wait */
    bool wants_wait;              /* the handler found nothing yet: run it again later */
    int64_t settled_ns;           /* when the answer was known */
    int64_t since_ns; /* claim_request.arrived_ns of a claim that awaited ends; 0: it did
                         not; -1: its next try sets it */
};

/* ---- decode ---- */

/* A path parameter as text: its name is only checked against the route. Never NULL. */
const char *call_param(const struct call *c, const char *name);
/* A decimal number in [min, max] as heads of requests spell it: one spelling for each number, so
 * without a plus sign, leading zeros or blanks. *ret is set when it is one. */
bool call_read_i64(const char *s, int64_t min, int64_t max, int64_t *ret);
/* A path parameter as a number in [min, 2^31). AS_E_INVAL. */
AS_MUST_CHECK as_status call_param_i64(const struct call *c, const char *name, int64_t min,
                                       int64_t *ret, struct as_err *err);
/* A query parameter, or NULL. */
const char *call_query(const struct call *c, const char *name);
/* *ret is untouched when it is absent. AS_E_INVAL names it. */
AS_MUST_CHECK as_status call_query_i64(const struct call *c, const char *name, int64_t min,
                                       int64_t max, int64_t *ret, struct as_err *err);
AS_MUST_CHECK as_status call_query_word(const struct call *c, const char *name,
                                        const char *const *words, int *ret, struct as_err *err);
/* "true" or "false". */
AS_MUST_CHECK as_status call_query_bool(const struct call *c, const char *name, bool *ret,
                                        struct as_err *err);
/* cursor and page_size. */
AS_MUST_CHECK as_status call_page(const struct call *c, struct page_req *ret, struct as_err *err);

/* ---- answer: one of these, last ---- */

/* 200 with a JSON body; takes `body` (NULL: there was no memory for it, AS_E_NOMEM). */
AS_MUST_CHECK as_status call_ok(struct call *c, json_t *body, struct as_err *err);
/* 201, as above; `location` may be NULL and is copied. */
AS_MUST_CHECK as_status call_created(struct call *c, json_t *body, const char *location,
                                     struct as_err *err);
as_status call_ok_empty(struct call *c);      /* 200 without a body */
as_status call_created_empty(struct call *c); /* 201 without a body */
as_status call_done(struct call *c);          /* 204 */
/* 200 with bytes in the call's arena, or for ever. */
as_status call_bytes(struct call *c, const char *type, const char *bytes, size_t len);
/* 200 with a stream; takes one reference. size -1: not known. */
as_status call_stream(struct call *c, const char *type, struct http_stream *stream, int64_t size);

/* False: wait_ms have passed since the request came, or the server drains: answer with what there
 * is. Remembers wait_ms for call_wait(). */
bool call_may_wait(struct call *c, int64_t wait_ms);
/* There is nothing to answer yet: the handler returns AS_OK now and is run again when there may be.
 * `key` is what it waits for, see waiting.h. Also when its patience ended since call_may_wait()
 * said true: then it is run again at once. */
void call_wait(struct call *c, int64_t key);

#endif
