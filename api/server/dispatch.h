/* The one way of a request to a handler. Nothing is done for a request before its Host, its route
 * and its token were checked (request_head.h). */
#ifndef ASSAY_API_SERVER_DISPATCH_H
#define ASSAY_API_SERVER_DISPATCH_H

#include <jansson.h>

#include "api/http/http.h"
#include "api/server/waiting.h"
#include "base/status.h"

struct call;

/* The hooks of struct http_app; ctx is a struct dispatch. */
void dispatch_head(void *ctx, struct http_exchange *x);
void dispatch_request(void *ctx, struct http_exchange *x);
void dispatch_refusal(void *ctx, struct http_exchange *x, const struct as_err *err);
void dispatch_end(void *ctx, struct http_exchange *x);
void dispatch_gone(void *ctx);
/* The problem of a part of the request's body that failed with `err`, for a handler that answers
 * each part by itself. `flags` are those of the part's own route, which say what the status means.
 * New reference; NULL: memory is out. */
json_t *dispatch_problem(const struct call *c, unsigned flags, const struct as_err *err,
                         int *ret_http);

/* A hook of struct waiting_hooks; ctx is a struct dispatch. */
void dispatch_retry(void *ctx, struct waiting_item *item);

#endif
