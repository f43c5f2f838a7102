/* Decides which migrations to apply; store/migration_store.c applies them. Each migration is a
 * transaction of its own under one lock, so servers that start together apply each once. The text
 * of every applied migration is compared by its digest: a database of a newer program, or one whose
 * migration was changed afterwards, is refused and not touched. */
#include "scheduler/services/migrate.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "scheduler/store/migration_store.h"
#include "scheduler/store/tx.h"

/* Compare the ledger with the built-in migrations. *ret_next is the index of the first missing
 * one. */
static as_status ledger_check(struct tx *t, size_t *ret_next, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct migration_applied *rows = NULL;
    size_t n = 0;
    as_status st = store_migration_list(t, &a, &rows, &n, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++) {
        const struct migration *m = i < store_migrations_count ? &store_migrations[i] : NULL;
        char sha[SHA256_HEX_SIZE];
        if (!m || rows[i].version != m->version)
            return as_fail(err, AS_E_CONFLICT,
                           "the database has migration %04lld_%s, which this program does not "
                           "know: it was made by a newer version; upgrade the program",
                           (long long)rows[i].version, rows[i].name);
        st = sha256_of(m->sql, strlen(m->sql), sha, err);
        if (st != AS_OK)
            return st;
        if (!as_streq(sha, rows[i].sha256))
            return as_fail(err, AS_E_CONFLICT,
                           "migration %04d_%s was applied to this database with other content "
                           "(%.12s there, %.12s here): migrations never change once they are used",
                           m->version, m->name, rows[i].sha256, sha);
    }
    *ret_next = n;
    return AS_OK;
}

/* Apply the next migration; *ret is false if none is missing. */
static as_status apply_next(struct tx *t, bool *ret, struct as_err *err)
{
    size_t next = 0;
    *ret = false;
    as_status st = store_migration_lock(t, err);
    if (st != AS_OK)
        return st;
    st = ledger_check(t, &next, err);
    if (st < 0 || next == store_migrations_count)
        return st;
    const struct migration *m = &store_migrations[next];
    char sha[SHA256_HEX_SIZE];
    st = sha256_of(m->sql, strlen(m->sql), sha, err);
    if (st != AS_OK)
        return st;
    *ret = true;
    return store_migration_apply(t, m, sha, err);
}

as_status migrate_run(struct store *db, size_t *ret_applied, struct as_err *err)
{
    size_t applied = 0;
    for (;;) {
        bool did = false;
        struct tx_run run = tx_run_start(db, TX_WRITE, err);
        while (tx_run_again(&run))
            run.status = apply_next(run.tx, &did, err);
        if (run.status != AS_OK)
            return run.status;
        if (!did)
            break;
        applied++;
    }
    if (ret_applied)
        *ret_applied = applied;
    return AS_OK;
}

static as_status check_all(struct tx *t, struct as_err *err)
{
    size_t next = 0;
    as_status st = ledger_check(t, &next, err);
    if (st != AS_OK)
        return st;
    if (next < store_migrations_count)
        return as_fail(err, AS_E_CONFLICT,
                       "the database has %zu of %zu migrations: run `assayd --migrate`", next,
                       store_migrations_count);
    return AS_OK;
}

as_status migrate_check(struct store *db, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = check_all(run.tx, err);
    return run.status;
}

as_status migrate_check_writes(struct store *db, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = store_migration_touch(run.tx, err);
    return run.status;
}

as_status migrate_check_room(struct store *db, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = store_migration_room(run.tx, err);
    return run.status;
}

as_status store_ready(struct store *db, struct as_err *err)
{
    return migrate_check(db, err);
}
