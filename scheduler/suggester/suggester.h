/* The suggester: search threads that compute the next suggestions of methods that learn, so that no
 * request thread and no sweep's row waits for a fit.
 *
 * Claims and asks take what it has *prepared* for (sweep, number), and request more. It loads the
 * sweep's history (only what is new; the rest is cached), computes, and calls `on_ready`.
 * Correctness does not depend on it: the transaction that holds the sweep's row takes a prepared
 * suggestion only if it is still the next one. So a suggestion may be dropped, computed twice, or
 * computed by two servers. If it cannot compute (no memory, no database), the requests that waited
 * get the reason. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_SUGGESTER_H
#define ASSAY_SCHEDULER_SUGGESTER_SUGGESTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct suggester_opts {
    size_t threads;   /* search threads, at most 8; 0: none, the requesting thread computes */
    size_t max_bytes; /* limit of all cached histories and models; the least recently used go
                         first. 0: an eighth of the machine's memory, at most 512 MiB */
    /* How long a claim or an ask waits for a computation before it returns is_preparing. It holds a
     * request thread meanwhile (at most two do). 0: 20 ms; negative: it does not wait. */
    int64_t patience_ms;
    /* After a result, the next suggestion is prepared if the last one took at least this long and a
     * request came recently. 0: 1 ms; negative: always. */
    int64_t ahead_ms;
    /* Called by a search thread after a suggestion became ready or failed. The thread holds no
     * lock. Must not block. NULL: not wanted. */
    void (*on_ready)(void *ctx);
    void *ctx; /* borrowed for the suggester's life */
};

struct suggester;

/* `db` is borrowed for the suggester's life. A store has at most one suggester. Each search thread
 * uses one connection while it reads. Create it before, and free it after, all operations that use
 * it. AS_E_NOMEM. */
AS_MUST_CHECK as_status suggester_create(struct store *db, const struct suggester_opts *opts,
                                         struct suggester **ret, struct as_err *err);
/* Waits for the computations of the search threads. No operation that uses it may be running. NULL
 * is allowed. */
void suggester_free(struct suggester *sg);
AS_DEFINE_FREEP(struct suggester, suggester_free)

/* For /metrics. Any thread. */
struct suggester_figures {
    int64_t computed; /* suggestions since it started */
    int64_t taken;    /* suggestions that became trials */
    int64_t failed;
    int64_t sweeps;  /* sweeps that are cached now */
    int64_t bytes;   /* approximate memory of the cached sweeps */
    int64_t waiting; /* sweeps that wait for a search thread */
    double seconds;  /* computing time since it started */
};
void suggester_figures_get(struct suggester *sg, struct suggester_figures *ret);

#endif
