/* Idempotency keys. */
#include "scheduler/lifecycle/idempotency.h"

#include <string.h>

#include "base/str.h"
#include "scheduler/store/idempotency_store.h"

static as_status find_answer(struct tx *t, struct arena *a, const struct idem_key *k,
                             struct idem_answer *ret, struct as_err *err)
{
    struct idem_row row;
    *ret = (struct idem_answer){.outcome = IDEM_NEW};
    as_status st = store_idempotency_get(t, a, k, &row, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st != AS_OK)
        return st;
    if (!row.same_body)
        ret->outcome = IDEM_OTHER_BODY;
    else if (row.status)
        *ret = (struct idem_answer){IDEM_REPEATED, row.status, row.body, row.location};
    return AS_OK; /* no answer is stored: the operation itself finds what it created */
}

static as_status look_for_answer(struct store *db, tx_kind kind, struct arena *a,
                                 const struct idem_key *k, struct idem_answer *ret,
                                 struct as_err *err)
{
    struct tx_run run = tx_run_start(db, kind, err);
    while (tx_run_again(&run))
        run.status = find_answer(run.tx, a, k, ret, err);
    return run.status;
}

as_status idempotency_find(struct store *db, struct arena *a, const struct idem_key *k,
                           struct idem_answer *ret, struct as_err *err)
{
    size_t len = strlen(k->key);
    if (len < 1 || len > 128)
        return as_fail(err, AS_E_INVAL, "Idempotency-Key has %zu bytes, expected 1 to 128", len);
    struct idem_answer answer = {0};
    as_status st = look_for_answer(db, TX_READ, a, k, &answer, err);
    if (st == AS_OK && answer.outcome == IDEM_REPEATED) /* perhaps it is not on the disk yet */
        st = look_for_answer(db, TX_SEEN, a, k, &answer, err);
    if (st == AS_OK)
        *ret = answer;
    return st;
}

as_status idempotency_store(struct store *db, const struct idem_key *k, int64_t status,
                            const char *body, const char *location, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = store_idempotency_answer(run.tx, k, status, body, location, err);
    return run.status;
}

as_status idempotency_begin(struct tx *t, struct arena *a, const struct idem_key *k,
                            const char *sweep, struct idem_made *ret, struct as_err *err)
{
    bool is_new = true;
    struct idem_row row;
    *ret = (struct idem_made){0};
    if (!k)
        return AS_OK;
    as_status st = store_idempotency_add(t, k, &is_new, err);
    if (st != AS_OK || is_new)
        return st;
    st = store_idempotency_hold(t, a, k, &row, err);
    if (st != AS_OK)
        return st;
    if (!row.same_body)
        return as_fail(err, AS_E_CONFLICT, "the idempotency key was used with another body");
    bool is_trial = row.number >= 0;
    if (!row.sweep || is_trial != (sweep != NULL) || (sweep && !as_streq(row.sweep, sweep)))
        return as_fail(err, AS_E_CONFLICT, "the idempotency key was used for something else");
    *ret = (struct idem_made){.sweep = row.sweep, .number = row.number};
    return AS_OK;
}

as_status idempotency_end(struct tx *t, const struct idem_key *k, const char *sweep, int64_t number,
                          struct as_err *err)
{
    return k ? store_idempotency_made(t, k, sweep, number, err) : AS_OK;
}
