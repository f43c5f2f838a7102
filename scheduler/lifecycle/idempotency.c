/* Idempotency keys. */
#include "scheduler/lifecycle/idempotency.h"

#include <string.h>

#include "scheduler/store/idempotency_store.h"

struct find_arg {
    struct arena *a;
    const struct idem_key *k;
    int64_t status;
    const char *body, *location;
    struct idem_answer ret;
};

static as_status tx_find(struct tx *t, void *p, struct as_err *err)
{
    struct find_arg *arg = p;
    struct idem_row row;
    as_status st = store_idempotency_get(t, arg->a, arg->k, &row, err);
    arg->ret = (struct idem_answer){.outcome = IDEM_NEW};
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st != AS_OK)
        return st;
    if (!row.same_body)
        arg->ret.outcome = IDEM_OTHER_BODY;
    else if (row.status)
        arg->ret = (struct idem_answer){IDEM_REPLAY, row.status, row.body, row.location};
    return AS_OK; /* without an answer: the operation itself knows what it made */
}

as_status idempotency_find(struct store *db, struct arena *a, const struct idem_key *k,
                           struct idem_answer *ret, struct as_err *err)
{
    size_t len = strlen(k->key);
    if (len < 1 || len > 128)
        return as_fail(err, AS_E_INVAL, "Idempotency-Key has %zu bytes, expected 1 to 128", len);
    struct find_arg arg = {.a = a, .k = k};
    as_status st = store_run(db, TX_READ, tx_find, &arg, err);
    if (st == AS_OK)
        *ret = arg.ret;
    return st;
}

static as_status tx_answer(struct tx *t, void *p, struct as_err *err)
{
    struct find_arg *arg = p;
    return store_idempotency_answer(t, arg->k, arg->status, arg->body, arg->location, err);
}

as_status idempotency_store(struct store *db, const struct idem_key *k, int64_t status,
                            const char *body, const char *location, struct as_err *err)
{
    struct find_arg arg = {.k = k, .status = status, .body = body, .location = location};
    return store_run(db, TX_WRITE, tx_answer, &arg, err);
}
