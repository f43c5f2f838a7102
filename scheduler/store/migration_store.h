/* The migrations that were built in, and their ledger in the database. */
#ifndef ASSAY_SCHEDULER_STORE_MIGRATION_STORE_H
#define ASSAY_SCHEDULER_STORE_MIGRATION_STORE_H

#include <stddef.h>

#include "base/arena.h"
#include "scheduler/store/tx.h"

struct migration {
    int version;
    const char *name;
    const char *sql;
};

/* In ascending order of versions, from 1 without gaps. */
extern const struct migration store_migrations[];
extern const size_t store_migrations_count;

struct migration_applied {
    int64_t version;
    const char *name;
    const char *sha256;
};

/* Wait for the lock that only one migrating program can hold; the transaction then holds it to its
 * end. Creates the ledger if there is none. */
AS_MUST_CHECK as_status store_migration_lock(struct tx *t, struct as_err *err);

/* In ascending order; none if there is no ledger yet. */
AS_MUST_CHECK as_status store_migration_list(struct tx *t, struct arena *a,
                                             struct migration_applied **ret, size_t *ret_n,
                                             struct as_err *err);

/* Write to the table, without a change: fails where writes fail. */
AS_MUST_CHECK as_status store_migration_touch(struct tx *t, struct as_err *err);

/* Is there room on the database's disk? Writes a temporary file of 4 MiB, which the end of the
 * transaction removes: no table, no log. The touch above may succeed on a full disk, because its
 * page and its segment of the log have their place already. AS_OK also if the server refuses that
 * for another reason, such as its own limit of temporary files. AS_E_EXHAUSTED: the disk is full.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status store_migration_room(struct tx *t, struct as_err *err);

/* Run a migration and write its row. */
AS_MUST_CHECK as_status store_migration_apply(struct tx *t, const struct migration *m,
                                              const char *sha256, struct as_err *err);

#endif
