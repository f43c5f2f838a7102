/* Runners: register, heartbeat, leave, list.
 *
 * A runner has a name and an epoch; each registration makes the next epoch, and what an older one
 * says is answered AS_E_STALE ("stale_epoch" in the API). Its lease is one row, extended by
 * heartbeats on the database's clock; an attempt is held for as long as its runner's lease. */
#ifndef ASSAY_SCHEDULER_SERVICES_RUNNERS_H
#define ASSAY_SCHEDULER_SERVICES_RUNNERS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/page.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/store.h"

struct runner_register {
    const char *name; /* a slug */
    int64_t slots;    /* 1..1024 */
    const char *const *gpus;
    size_t n_gpus;                    /* at most 64 */
    const char *host, *version;       /* NULL allowed */
    const struct attempt_ref *resume; /* what it still runs */
    size_t n_resume;
};

struct registration {
    int64_t epoch, lease_ms, heartbeat_ms;
    struct directive_list directives; /* for those of `resume` that are not current */
};

/* A new epoch. Attempts of older epochs that `resume` does not list are lost at once; those that
 * it lists and that are still current move to the new epoch. AS_E_INVAL: the name or a count.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_register(struct store *db, struct arena *a,
                                        const struct runner_register *req, struct registration *ret,
                                        struct as_err *err);

/* Extend the lease and learn what to stop: every listed attempt that is not current. An attempt
 * that the database has running there and that two heartbeats in a row did not list is lost, once
 * it is older than a lease (before that its claim's answer may be under way).
 * A runner that had expired and still has its epoch lives again.
 * AS_E_NOT_FOUND: never registered. AS_E_STALE: the epoch, or it left: register again.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_heartbeat(struct store *db, struct arena *a, const char *name,
                                         int64_t epoch, const struct attempt_ref *attempts,
                                         size_t n, struct directive_list *ret, struct as_err *err);

/* Its attempts go back to the queue and burn no restart. Repeating is fine. AS_E_NOT_FOUND,
 * AS_E_STALE, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_leave(struct store *db, const char *name, int64_t epoch,
                                     struct as_err *err);

/* Live ones first, then by name. AS_E_INVAL: the cursor. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_list(struct store *db, struct arena *a, const struct page_req *page,
                                    struct runner_page *ret, struct as_err *err);

#endif
