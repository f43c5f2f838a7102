/* The thread that collects garbage among stored content (scheduler/content/content_gc.h): a round
 * every second. It is not the reaper's thread, because removing gigabytes, a VACUUM or a slow S3
 * service may take long, and leases must not wait for that. */
#ifndef ASSAY_API_SERVER_GC_LOOP_H
#define ASSAY_API_SERVER_GC_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/store/store.h"

struct gc_loop;

/* Start the thread. `db` is borrowed until gc_loop_end() has returned true. AS_E_NOMEM. */
AS_MUST_CHECK as_status gc_loop_start(struct store *db, struct gc_loop **ret, struct as_err *err);

/* Ask the thread to start no further round, wait for the running one, and free the loop. Returns
 * false if the round still runs after wait_ms: nothing was freed then. NULL: true. */
AS_MUST_CHECK bool gc_loop_end(struct gc_loop *c, int64_t wait_ms);

#endif
