/* Threads that share the pieces of one job: the lanes of the cpu back end, and the tiles of its
 * large operations.
 *
 * The thread that calls pool_run() works too and never waits for a thread that has not begun a
 * piece. On a busy machine fewer threads do a job, and it is not delayed. Idle threads spin for a
 * bounded time (POOL_SPIN_NS), because the next operation of a step follows within a few
 * microseconds, and then sleep.
 *
 * One job at a time: pool_run() is not called from two threads at once, nor from inside a piece. */
#ifndef ASSAY_KERNELS_CPU_POOL_H
#define ASSAY_KERNELS_CPU_POOL_H

#include <stddef.h>

#include "base/status.h"

struct pool;

/* Do piece i of a job. `who` in [0, threads) is the number of the thread; 0 is the caller's. */
typedef void pool_piece(void *arg, size_t i, size_t who);

/* Create a pool of `threads` threads. One is the caller's, so threads - 1 are started. Each of them
 * calls begin() (NULL: nothing) before this returns, one after another.
 *   ret  owned by the caller, free with pool_free()
 * AS_E_INVAL (threads is 0), AS_E_NOMEM, AS_E_UNAVAILABLE (no thread can be started) */
AS_MUST_CHECK as_status pool_create(size_t threads, void (*begin)(void), struct pool **ret,
                                    struct as_err *err);

/* Ends its threads. No job may be running. */
void pool_free(struct pool *p);

size_t pool_threads(const struct pool *p);

/* Call piece(arg, i, who) once for every i in [0, n), n < 2^32; returns when all are done. The
 * caller then sees all that the pieces wrote. Which thread does which piece is not fixed. */
void pool_run(struct pool *p, size_t n, pool_piece *piece, void *arg);

#endif
