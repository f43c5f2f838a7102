#include "scheduler/store/refs_priv.h"

void refs_done(struct refs *c)
{
    str_done(&c->ids);
    str_done(&c->numbers);
    str_done(&c->attempts);
}

as_status refs_format(struct refs *c, const struct attempt_ref *refs, size_t n, struct as_err *err)
{
    array_open(&c->ids);
    array_open(&c->numbers);
    array_open(&c->attempts);
    for (size_t i = 0; i < n; i++) {
        array_str(&c->ids, refs[i].sweep);
        array_i64(&c->numbers, refs[i].number);
        array_i64(&c->attempts, refs[i].attempt);
    }
    array_close(&c->ids);
    array_close(&c->numbers);
    array_close(&c->attempts);
    if (c->ids.failed || c->numbers.failed || c->attempts.failed)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return AS_OK;
}
