/* Worker threads with two queues: what is new, and what is tried again (long-polls).
 *
 * Every fourth job comes from the second queue when there is one, so that neither starves. */
#ifndef ASSAY_API_SERVER_POOL_H
#define ASSAY_API_SERVER_POOL_H

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

/* Embedded in what is to be done. */
struct pool_job {
    struct pool_job *next;
    void (*run)(struct pool_job *job);
};

struct pool;

/* AS_E_NOMEM. */
AS_MUST_CHECK as_status pool_create(size_t n_threads, struct pool **ret, struct as_err *err);

/* `job` is the pool's until its run is called. */
void pool_submit(struct pool *p, struct pool_job *job);
void pool_submit_again(struct pool *p, struct pool_job *job);

/* Runs what is queued, then ends the threads. NULL is fine. */
void pool_free(struct pool *p);
AS_DEFINE_FREEP(struct pool, pool_free)

#endif
