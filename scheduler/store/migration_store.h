/* The migrations as they were built in, and their ledger in the database. */
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

/* Ascending by version, from 1 without holes. */
extern const struct migration store_migrations[];
extern const size_t store_migrations_count;

struct migration_applied {
    int64_t version;
    const char *name;
    const char *sha256;
};

/* Wait for the lock that the transaction then holds to its end: one migrates at a time. Makes the
 * ledger when there is none. */
AS_MUST_CHECK as_status store_migration_lock(struct tx *t, struct as_err *err);

/* Ascending; none when there is no ledger yet. */
AS_MUST_CHECK as_status store_migration_list(struct tx *t, struct arena *a,
                                             struct migration_applied **ret, size_t *ret_n,
                                             struct as_err *err);

/* Run it and write its row. */
AS_MUST_CHECK as_status store_migration_apply(struct tx *t, const struct migration *m,
                                              const char *sha256, struct as_err *err);

#endif
