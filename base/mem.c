#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

static _Atomic size_t fail_countdown;

size_t as_mem_fail_nth(size_t nth)
{
    return atomic_exchange(&fail_countdown, nth);
}

static int allocation_must_fail(void)
{
    size_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
        ;
    return left == 1;
}

void *as_calloc(size_t n, size_t size)
{
    if (allocation_must_fail())
        return NULL;
    if (n == 0 || size == 0)
        return calloc(1, 1);
    return calloc(n, size);
}

as_status as_grow(void *pp, size_t n, size_t size, struct as_err *err)
{
    void **p = pp;
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return as_fail(err, AS_E_NOMEM, "%zu elements of %zu bytes do not fit in memory", n, size);
    void *q = allocation_must_fail() ? NULL : realloc(*p, bytes ? bytes : 1);
    if (!q)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu bytes", bytes);
    *p = q;
    return AS_OK;
}

as_status as_reserve_one(void *pp, size_t len, size_t *cap, size_t size, struct as_err *err)
{
    if (len < *cap)
        return AS_OK;
    if (*cap > SIZE_MAX / 2)
        return as_fail(err, AS_E_NOMEM, "a list of %zu elements cannot grow", *cap);
    size_t want = *cap ? *cap * 2 : 8;
    as_status st = as_grow(pp, want, size, err);
    if (st < 0)
        return st;
    *cap = want;
    return AS_OK;
}

char *as_strdup(const char *s)
{
    if (!s)
        return NULL;
    size_t n = strlen(s) + 1;
    char *copy = allocation_must_fail() ? NULL : malloc(n);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}
