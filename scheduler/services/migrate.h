/* The schema: numbered migrations, built into the program from migrations/.
 *
 * Each runs in one transaction that first takes a lock (pg_advisory_xact_lock) and last writes its
 * row in the ledger `schema_migration` (version, name, sha256, applied_at), so that several
 * programs may start at once and a failed migration leaves nothing behind. */
#ifndef ASSAY_SCHEDULER_SERVICES_MIGRATE_H
#define ASSAY_SCHEDULER_SERVICES_MIGRATE_H

#include <stddef.h>

#include "base/status.h"
#include "scheduler/store/store.h"

/* Apply the missing migrations. *ret_applied (NULL allowed) is their number; 0: none was missing.
 * AS_E_CONFLICT: an applied migration has another checksum here, or the database has one that this
 * program does not know (the database is newer); nothing is changed. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status migrate_run(struct store *db, size_t *ret_applied, struct as_err *err);

/* AS_OK: the database is reachable and has exactly the schema of this program. /readyz uses it.
 * AS_E_CONFLICT: as above, or migrations are missing (the message says to run `assayd --migrate`),
 * or fsync is off (ASSAY_ALLOW_FSYNC_OFF=1 allows that). AS_E_UNAVAILABLE. Two round trips. */
AS_MUST_CHECK as_status migrate_check(struct store *db, struct as_err *err);

/* Does the database take writes? Commits one that changes nothing. AS_E_UNAVAILABLE: it is away or
 * read-only. */
AS_MUST_CHECK as_status migrate_check_writes(struct store *db, struct as_err *err);

/* Has its disk room for content? Takes it some milliseconds. AS_E_EXHAUSTED: it is full.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status migrate_check_room(struct store *db, struct as_err *err);

#endif
