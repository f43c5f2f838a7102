/* The HTTP service as a whole: transport, workers, long-polls, event streams, over one store. */
#ifndef ASSAY_API_SERVER_SERVER_H
#define ASSAY_API_SERVER_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct server_options {
    int listen_fd;                 /* taken */
    struct store *store;           /* borrowed for the life of the server */
    size_t workers;                /* threads for calls; 0: 4 */
    size_t slow_workers;           /* threads for uploads and the like; 0: 2 */
    size_t search_threads;         /* that compute suggestions; 0: 2 */
    int64_t max_blob_bytes;        /* 0: 2 GiB */
    const char *web_dir;           /* the built dashboard; NULL or absent: a page that says so */
    const char *const *host_names; /* NULL-terminated; besides the loopback names; borrowed */
};

struct server;

/* Start to serve. AS_E_NOMEM, AS_E_IO (the web folder cannot be read), AS_E_INTERNAL. */
AS_MUST_CHECK as_status server_start(const struct server_options *opts, struct server **ret,
                                     struct as_err *err);

/* A round of the reaper is over: these leases ran out. Lets those that wait for work look. */
void server_reaped(struct server *s, int64_t runners, int64_t clients);

/* Not ready from now on, no new connections, long-polls and streams end, calls under way are
 * answered; what is left after wait_ms is cut, and given as long again. False: a call hangs in the
 * database still; the server must not be freed then. NULL is fine. */
AS_MUST_CHECK bool server_drain(struct server *s, int64_t wait_ms);

/* After a drain that said true. NULL is fine. */
void server_free(struct server *s);

#endif
