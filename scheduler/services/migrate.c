/* Decides what to apply; store/migration_store.c applies it. */
#include "scheduler/services/migrate.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "scheduler/store/migration_store.h"
#include "scheduler/store/tx.h"

/* Compare the ledger with what is built in. *ret_next is the index of the first that is missing. */
static as_status ledger_check(struct tx *t, size_t *ret_next, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct migration_applied *rows = NULL;
    size_t n = 0;
    as_status st = store_migration_list(t, &a, &rows, &n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        const struct migration *m = i < store_migrations_count ? &store_migrations[i] : NULL;
        char sha[SHA256_HEX_SIZE];
        if (!m || rows[i].version != m->version)
            return as_fail(err, AS_E_CONFLICT,
                           "the database has migration %04lld_%s, which this program does not "
                           "know: it was made by a newer version; upgrade the program",
                           (long long)rows[i].version, rows[i].name);
        st = sha256_of(m->sql, strlen(m->sql), sha, err);
        if (st == AS_OK && !as_streq(sha, rows[i].sha256))
            return as_fail(err, AS_E_CONFLICT,
                           "migration %04d_%s was applied to this database with other content "
                           "(%.12s there, %.12s here): migrations never change once they are used",
                           m->version, m->name, rows[i].sha256, sha);
    }
    if (st == AS_OK)
        *ret_next = n;
    return st;
}

/* Apply the next one; *ret is false when none is missing. */
static as_status tx_apply_next(struct tx *t, void *arg, struct as_err *err)
{
    bool *ret = arg;
    size_t next = 0;
    *ret = false;
    as_status st = store_migration_lock(t, err);
    if (st == AS_OK)
        st = ledger_check(t, &next, err);
    if (st != AS_OK || next == store_migrations_count)
        return st;
    const struct migration *m = &store_migrations[next];
    char sha[SHA256_HEX_SIZE];
    st = sha256_of(m->sql, strlen(m->sql), sha, err);
    if (st == AS_OK)
        st = store_migration_apply(t, m, sha, err);
    *ret = st == AS_OK;
    return st;
}

as_status migrate_run(struct store *db, size_t *ret_applied, struct as_err *err)
{
    size_t applied = 0;
    for (;;) {
        bool did = false;
        as_status st = store_run(db, TX_WRITE, tx_apply_next, &did, err);
        if (st != AS_OK)
            return st;
        if (!did)
            break;
        applied++;
    }
    if (ret_applied)
        *ret_applied = applied;
    return AS_OK;
}

static as_status tx_check(struct tx *t, void *arg, struct as_err *err)
{
    (void)arg;
    size_t next = 0;
    as_status st = ledger_check(t, &next, err);
    if (st == AS_OK && next < store_migrations_count)
        return as_fail(err, AS_E_CONFLICT,
                       "the database has %zu of %zu migrations: run `assayd --migrate`", next,
                       store_migrations_count);
    return st;
}

as_status migrate_check(struct store *db, struct as_err *err)
{
    return store_run(db, TX_READ, tx_check, NULL, err);
}

as_status store_ready(struct store *db, struct as_err *err)
{
    return migrate_check(db, err);
}
