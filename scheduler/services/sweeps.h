/* Sweeps: create, look at, change, delete.
 *
 * Every function: AS_E_UNAVAILABLE when the database is away, AS_E_NOMEM. Rows live in `a`. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEPS_H
#define ASSAY_SCHEDULER_SERVICES_SWEEPS_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/lifecycle/idempotency.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/suggester.h"

/* Check the document in full, store the sweep and let it run.
 *   doc     the sweep document; borrowed
 *   idem    NULL when the request has no key. With one, creation and key are one transaction: a
 *           repeat (also after a crash between the two answers) hands the first sweep back
 *   ret     its id is its name, or name-2, name-3, …
 * AS_E_INVAL, AS_E_TOO_LARGE, AS_E_UNSUPPORTED  with the pointer of the field; also a data set
 *                that does not exist and a metric that its task does not have. Nothing is stored.
 * AS_E_CONFLICT  the key was used with another body */
AS_MUST_CHECK as_status sweep_create(struct store *db, struct arena *a, const json_t *doc,
                                     const struct idem_key *idem, struct sweep_row *ret,
                                     struct as_err *err);

/* The same, but the sweep waits, paused, until it is resumed: for known results to be added first.
 */
AS_MUST_CHECK as_status sweep_create_paused(struct store *db, struct arena *a, const json_t *doc,
                                            const struct idem_key *idem, struct sweep_row *ret,
                                            struct as_err *err);

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status sweep_get(struct store *db, struct arena *a, const char *id,
                                  struct sweep_row *ret, struct as_err *err);

/* Newest first. `state` NULL: any. AS_E_INVAL: the cursor. */
AS_MUST_CHECK as_status sweep_list(struct store *db, struct arena *a, const sweep_state *state,
                                   const struct page_req *page, struct sweep_page *ret,
                                   struct as_err *err);

/* A merge patch as the API's SweepPatch; NULL, or JSON null for the two limits that may be removed:
 * `set_*` says that the field was there. */
struct sweep_patch {
    const sweep_state *state; /* RUNNING (resume), PAUSED or CANCELLED; NULL: unchanged */
    bool set_max_trials;
    int64_t max_trials;
    bool set_max_concurrent;
    int64_t max_concurrent; /* 0: no limit */
    bool set_max_failed;
    int64_t max_failed; /* -1: no limit */
};

/* Read a SweepPatch. AS_E_INVAL with the pointer of the field; AS_E_INVAL when it is empty. */
AS_MUST_CHECK as_status sweep_patch_parse(const json_t *doc, struct sweep_patch *ret,
                                          struct as_err *err);

/* All of the patch or nothing. Asking for the state that it has is fine. Cancelling ends queued and
 * running trials in the same transaction; their runners learn it with the next heartbeat.
 * AS_E_NOT_FOUND. AS_E_CONFLICT: it has ended, or max_trials is below the trials that exist.
 * AS_E_INVAL: a limit. */
AS_MUST_CHECK as_status sweep_change(struct store *db, struct arena *a, const char *id,
                                     const struct sweep_patch *patch, struct sweep_row *ret,
                                     struct as_err *err);

/* With its trials, measurements and files. AS_E_NOT_FOUND. AS_E_CONFLICT: it has not ended. */
AS_MUST_CHECK as_status sweep_delete(struct store *db, const char *id, struct as_err *err);

#endif
