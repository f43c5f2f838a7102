/* The suggester: search threads that compute what methods that learn suggest next, so that neither
 * a request thread nor a sweep's row waits for a fit.
 *
 * Claims and asks take what it has *prepared* for (sweep, number) and ask it for more; it loads the
 * sweep's history (incrementally, it stays cached), computes, and calls `on_ready`. Nothing in it
 * is needed for correctness: a prepared suggestion counts only when the transaction that holds the
 * sweep's row finds that it is still the next one, so it may be dropped, computed twice, or by two
 * servers. What keeps it from computing (no memory, no database) is told to those who asked for it
 * before. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_SUGGESTER_H
#define ASSAY_SCHEDULER_SUGGESTER_SUGGESTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct suggester_opts {
    size_t threads;   /* search threads, at most 8; 0: none, whoever asks computes */
    size_t max_bytes; /* of all cached histories and models; the least recently used go first. 0: an
                         eighth of the machine's memory, at most 512 MiB */
    /* How long a claim or ask waits for what is being computed before it says that it is: it holds
     * a request thread meanwhile (at most two do). 0: 20 ms; negative: not at all. */
    int64_t patience_ms;
    /* After a result the next suggestion is prepared ahead when the last one took this long and
     * somebody asked lately. 0: 5 ms; negative: whatever it took. */
    int64_t ahead_ms;
    /* Called after something became ready (or failed), by a search thread that holds nothing; must
     * not block. NULL: nobody. */
    void (*on_ready)(void *ctx);
    void *ctx; /* borrowed for the suggester's life */
};

struct suggester;

/* `db` is borrowed for its life, one suggester for each store; each search thread uses one
 * connection now and then. Created before, and freed after, whatever passes it to claims and asks.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status suggester_create(struct store *db, const struct suggester_opts *opts,
                                         struct suggester **ret, struct as_err *err);
/* Waits for what the search threads compute at that moment. No operation that was given it may be
 * under way. NULL is fine. */
void suggester_free(struct suggester *sg);
AS_DEFINE_FREEP(struct suggester, suggester_free)

/* For /metrics. Any thread. */
struct suggester_figures {
    int64_t computed; /* suggestions, since it started */
    int64_t taken;    /* of them, became trials */
    int64_t failed;
    int64_t sweeps;  /* cached now */
    int64_t bytes;   /* about what they hold */
    int64_t waiting; /* sweeps that wait for a thread */
    double seconds;  /* spent computing, since it started */
};
void suggester_figures_get(struct suggester *sg, struct suggester_figures *ret);

#endif
