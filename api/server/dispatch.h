/* The one way of a request to a handler. Nothing is done for a request before its Host, its route
 * and its token were checked. A path that is not in the route table is denied. */
#ifndef ASSAY_API_SERVER_DISPATCH_H
#define ASSAY_API_SERVER_DISPATCH_H

#include <jansson.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http/http.h"
#include "api/server/route.h"
#include "api/server/waiting.h"
#include "base/status.h"

#define DISPATCH_JSON_MAX ((int64_t)1 << 20) /* bytes of a JSON body */

struct attempt_key;
struct auth;
struct beats;
struct call;
struct committer;
struct http_metrics;
struct pool;
struct result_cache;
struct server;
struct store;
struct suggester;
struct sweep_fronts;
struct table_cache;
struct token_rates;
struct trial_orders;
struct web_files;

/* The parts that requests use. All are borrowed, and set before the first request. */
struct dispatch {
    const struct route *routes;
    size_t n_routes;
    struct server *server; /* for handlers: dispatch.c only passes it to struct call */
    struct store *store;
    struct suggester *suggester;
    struct result_cache *results;
    struct table_cache *tables;
    struct trial_orders *orders;
    struct sweep_fronts *fronts;
    struct attempt_key *attempts; /* makes the tokens of attempts */
    struct auth *auth;
    struct token_rates *rates; /* NULL: no limit */
    /* The workers of routes: of ROUTE_SLOW, of ROUTE_URGENT, of ROUTE_BEAT, and of all others. */
    struct pool *slow_pool, *view_pool, *urgent_pool, *beat_pool, *pool;
    struct waiting_list *waiting;
    struct committer *committer;
    struct beats *beats;
    const struct web_files *web;
    struct http_metrics *metrics;  /* created with the same table */
    const char *const *host_names; /* see http_host_allowed(); NULL for none */
    const char *disk;              /* a folder on the database's disk, or NULL */
    int64_t max_blob_bytes;
    atomic_size_t big_bytes; /* of big bodies and answers since server_tidy() */
    atomic_bool is_draining; /* set by the owner: connections close, handlers do not wait */
};

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

/* The hooks of struct waiting_hooks; ctx is a struct dispatch. */
void dispatch_retry(void *ctx, struct waiting_item *item);
void dispatch_probe(void *ctx, const int64_t *keys, size_t n, size_t *ret);

#endif
