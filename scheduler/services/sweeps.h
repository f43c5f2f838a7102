/* Sweeps: create, read, delete. sweep_change.h changes them.
 *
 * Every function: AS_E_UNAVAILABLE when the database is away, AS_E_NOMEM. Rows live in `a`. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEPS_H
#define ASSAY_SCHEDULER_SERVICES_SWEEPS_H

#include <jansson.h>

#include "base/arena.h"
#include "base/faults.h"
#include "base/status.h"
#include "scheduler/lifecycle/idempotency.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/rows/rung_row.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/store.h"
#include "scheduler/suggester/suggester.h"

/* Check the document completely, store the sweep and let it run.
 *   doc     the sweep document; borrowed
 *   idem    NULL if the request has no key. With a key, one transaction creates the sweep and
 *           stores the key: a repeat returns the first sweep, also after a crash in between
 *   ret     its id is its name, or name-2, name-3, …
 * AS_E_INVAL, AS_E_TOO_LARGE, AS_E_UNSUPPORTED: with the pointer of the field; also a data set that
 * does not exist, and a metric that its task does not have. Nothing is stored. AS_E_CONFLICT: the
 * key was used with another body. */
AS_MUST_CHECK as_status sweep_create(struct store *db, struct arena *a, const json_t *doc,
                                     const struct idem_key *idem, struct sweep_row *ret,
                                     struct as_err *err);

/* The same, but the sweep is paused until it is resumed, so that known results can be added
 * first. */
AS_MUST_CHECK as_status sweep_create_paused(struct store *db, struct arena *a, const json_t *doc,
                                            const struct idem_key *idem, struct sweep_row *ret,
                                            struct as_err *err);

/* What a request asks for. */
struct sweep_request {
    const json_t *doc;           /* borrowed, as all below */
    const struct idem_key *idem; /* NULL: none */
    bool is_paused;
    bool is_unique; /* AS_E_CONFLICT with /name if the name is taken, in the place of name-2 */
    struct faults *faults; /* every fault of the document is noted there; NULL: the first is
                              returned alone */
};

/* As sweep_create and sweep_create_paused, which are short for it. */
AS_MUST_CHECK as_status sweep_request_create(struct store *db, struct arena *a,
                                             const struct sweep_request *q, struct sweep_row *ret,
                                             struct as_err *err);

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status sweep_get(struct store *db, struct arena *a, const char *id,
                                  struct sweep_row *ret, struct as_err *err);

/* What early stopping has done in it. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status sweep_stopping(struct store *db, struct arena *a, const char *id,
                                       struct stopping_report *ret, struct as_err *err);

/* What its search has learned of its parameters, as JSON in `a` (search/learned.h), by its newest
 * suggestion; NULL: nothing. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status sweep_learned(struct store *db, struct arena *a,
                                      const struct sweep_row *sweep, const char **ret,
                                      struct as_err *err);

/* Newest first. A page may have fewer sweeps than asked for: see PAGE_BYTES_MAX. AS_E_INVAL: the
 * cursor. */
AS_MUST_CHECK as_status sweep_list(struct store *db, struct arena *a, const struct sweep_query *q,
                                   struct sweep_page *ret, struct as_err *err);

/* Delete it with its trials, measurements and files. AS_E_NOT_FOUND. AS_E_CONFLICT: it has not
 * ended. */
AS_MUST_CHECK as_status sweep_delete(struct store *db, const char *id, struct as_err *err);

#endif
