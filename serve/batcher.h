/* Computes requests that arrive together in one pass.
 *
 * Each version has a queue of requests. A worker takes as many of them as fit into one pass, while
 * new ones gather behind it; so batches grow with the load, and a request that comes alone does not
 * wait. Where a pass takes less time than waking a thread, the thread that submits a request is the
 * worker: it computes the request, and what came from other threads in the meantime. A second
 * worker joins a version when a whole pass waits, or when the first one computes a
 * request that is larger than a pass. Large bodies are also parsed by the workers, because that
 * would keep an I/O thread too long. */
#ifndef ASSAY_SERVE_BATCHER_H
#define ASSAY_SERVE_BATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "serve/served.h"

struct batcher;

/* One request; embedded in the caller's struct. */
struct batch_job {
    struct served *version; /* the caller's reference */
    const float *raw;       /* [rows, features]; borrowed until done() */
    size_t rows;
    int64_t deadline_ns; /* monotonic */
    /* Called by a worker, once. AS_OK: out [rows, outputs] is a view for the call. AS_E_TIMEOUT:
     * the deadline passed before the request was computed; other errors as served_predict(). The
     * job is the caller's again. */
    void (*done)(struct batch_job *job, as_status st, const float *out, const struct as_err *err);
    struct batch_job *next;
};

/* Other work for a worker. */
struct batch_task {
    void (*run)(struct batch_task *task);
    struct batch_task *next;
};

/* `queue` is the most requests that wait for one version; `guests` the most threads that submit and
 * may compute themselves, each version needs a predictor for each of them and of the workers.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status batcher_create(size_t workers, size_t guests, size_t queue,
                                       struct batcher **ret, struct as_err *err);
/* Runs what waits, then ends the threads. NULL is fine. */
void batcher_free(struct batcher *b);

/* False: the queue of this version is full, and nothing was done. The call may compute the request,
 * and others: it takes less than a millisecond. */
AS_MUST_CHECK bool batcher_submit(struct batcher *b, struct batch_job *job);
/* False: as many tasks as `queue` wait. */
AS_MUST_CHECK bool batcher_run(struct batcher *b, struct batch_task *task);

#endif
