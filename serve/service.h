/* The Open Inference Protocol over HTTP (docs/serving.md): an application of api/http/http.h.
 *
 * I/O threads answer everything but inference at once. They parse the bodies of inference, small
 * ones at least, and give the rows to the batcher; a worker computes and writes the answer. */
#ifndef ASSAY_SERVE_SERVICE_H
#define ASSAY_SERVE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "serve/batcher.h"
#include "serve/model_cache.h"

struct service;

struct service_options {
    struct http_tls *tls; /* borrowed; NULL: plain HTTP */
    int listen_fd;        /* taken by service_start() */
    unsigned io_threads;
    unsigned max_connections, max_per_address; /* see struct http_options */
    size_t max_rows;                           /* of one request */
    int64_t max_bytes;                         /* of one body */
    int64_t deadline_ms;                       /* from the request line until it is computed */
    const char *const *host_names;             /* NULL-terminated, or NULL: any Host is answered */
    const char *version;                       /* of the program */
};

/* All are borrowed until service_stop() returned true. Errors as http_start(). */
AS_MUST_CHECK as_status service_start(const struct service_options *opts, struct model_cache *cache,
                                      struct batcher *batcher, struct service **ret,
                                      struct as_err *err);

/* Answer what was asked, close the connections, and end. Takes at most 2 x wait_ms. False: a
 * request is still computed; nothing was freed. NULL is fine. */
AS_MUST_CHECK bool service_stop(struct service *s, int64_t wait_ms);

#endif
