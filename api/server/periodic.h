/* A thread that runs a round at an interval, and between two rounds when it is woken. */
#ifndef ASSAY_API_SERVER_PERIODIC_H
#define ASSAY_API_SERVER_PERIODIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct periodic;

struct periodic_task {
    const char *name; /* for errors, such as "the reaper"; outlives the thread */
    int64_t every_ms; /* from the end of a round to the next one; the first is at once */
    /* One round. is_due: the interval has passed; else the thread was woken. Returns true to be
     * called again at once, as if it was woken. */
    bool (*round)(void *arg, bool is_due);
    void *arg; /* outlives the thread */
};

/* Start the thread. AS_E_NOMEM. */
AS_MUST_CHECK as_status periodic_start(const struct periodic_task *task, struct periodic **ret,
                                       struct as_err *err);

/* Let it run a round now, or after the one that runs. In any thread. */
void periodic_wake(struct periodic *p);

/* Ask it to start no further round. Does not wait. */
void periodic_request_stop(struct periodic *p);

/* Ask it to start no further round, wait for the one that runs, and free it. Returns false if that
 * still runs after wait_ms: nothing was freed then. NULL: true. */
AS_MUST_CHECK bool periodic_end(struct periodic *p, int64_t wait_ms);

#endif
