/* The HTTP service as a whole: transport, workers, long-polls and event streams over one store. */
#ifndef ASSAY_API_SERVER_SERVER_H
#define ASSAY_API_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct server_options {
    struct http_tls *tls;        /* borrowed; NULL: plain HTTP */
    int listen_fd;               /* server_start() takes it */
    struct store *store;         /* borrowed for the life of the server */
    size_t workers;              /* threads for calls; 0: 4 */
    size_t slow_workers;         /* threads for routes with ROUTE_SLOW; 0: 2 */
    size_t urgent_workers;       /* threads for routes with ROUTE_URGENT; 0: 2 */
    size_t beat_workers;         /* threads for routes with ROUTE_BEAT; 0: 2 */
    size_t search_threads;       /* threads that compute suggestions; 0: 2 */
    size_t max_connections;      /* open at one time, of all addresses; 0: 4096 */
    size_t max_per_address;      /* of one client address; 0: no other limit than the above */
    int64_t requests_per_second; /* of one token (token_rates.h); 0: any */
    size_t bad_tokens;      /* of one address in a minute, before they are answered 429; 0: any */
    int64_t max_blob_bytes; /* 0: 2 GiB */
    bool commits_single;    /* each operation is committed alone (scheduler/commit/) */
    const char *disk;       /* a folder on the database's disk if that is here; NULL; borrowed */
    const char *web_dir;    /* the built dashboard; NULL or absent: a page explains it */
    const char *const *host_names; /* NULL-terminated; besides the loopback names; borrowed */
};

struct server;

/* Start serving. AS_E_NOMEM, AS_E_IO (the web folder cannot be read), AS_E_INTERNAL. */
AS_MUST_CHECK as_status server_start(const struct server_options *opts, struct server **ret,
                                     struct as_err *err);

/* Report the end of a round of the reaper: this many leases of runners and clients have expired.
 * Wakes the waiting requests, because their trials may be available again. */
void server_reaped(struct server *s, int64_t runners, int64_t clients, int64_t gangs);

/* Give the memory of big requests back to the system, if there were any since the last call. Call
 * it about once a second; takes milliseconds. NULL is fine. */
void server_tidy(struct server *s);

/* Stop serving. The server reports that it is not ready, closes new connections, ends long-polls
 * and streams, and answers the running calls. It cuts the connections that are left after wait_ms,
 * and waits as long again. Returns false if a call still hangs in the database: the server must not
 * be freed then. NULL is fine. */
AS_MUST_CHECK bool server_drain(struct server *s, int64_t wait_ms);

/* Call it after server_drain() has returned true. NULL is fine. */
void server_free(struct server *s);

#endif
