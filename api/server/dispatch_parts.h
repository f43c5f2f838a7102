/* What requests use of a server. */
#ifndef ASSAY_API_SERVER_DISPATCH_PARTS_H
#define ASSAY_API_SERVER_DISPATCH_PARTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "api/server/route.h"

struct attempt_key;
struct auth;
struct beats;
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
    struct server *server; /* for handlers: dispatch.c passes it to struct call */
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

#endif
