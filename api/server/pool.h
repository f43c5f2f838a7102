/* Worker threads with two queues: new jobs, and jobs that are retried (long-polls).
 *
 * Every fourth job comes from the second queue if that has one, so that neither queue starves. */
#ifndef ASSAY_API_SERVER_POOL_H
#define ASSAY_API_SERVER_POOL_H

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

/* Embedded in the struct of a task. */
struct pool_job {
    struct pool_job *next;
    void (*run)(struct pool_job *job);
};

struct pool;

/* AS_E_NOMEM. */
AS_MUST_CHECK as_status pool_create(size_t n_threads, struct pool **ret, struct as_err *err);

/* The pool owns `job` until it calls its run. */
void pool_submit(struct pool *p, struct pool_job *job);
void pool_submit_again(struct pool *p, struct pool_job *job);

/* Runs the queued jobs, then ends the threads. NULL is fine. */
void pool_free(struct pool *p);
AS_DEFINE_FREEP(struct pool, pool_free)

#endif
