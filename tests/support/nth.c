/* In builds without a sanitizer this file replaces the program's allocator by one that counts and
 * calls glibc's. It counts the blocks of all libraries, too: a run that is compared has been run
 * once before, so that what a library keeps is there already. */
#include "tests/support/nth.h"

#include <stdatomic.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "tests/support/check_main.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
long nth_live_blocks(void)
{
    return 0;
}
#else
static _Atomic long live;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

void *malloc(size_t size)
{
    void *p = __libc_malloc(size);
    atomic_fetch_add_explicit(&live, p != NULL, memory_order_relaxed);
    return p;
}

void *calloc(size_t n, size_t size)
{
    void *p = __libc_calloc(n, size);
    atomic_fetch_add_explicit(&live, p != NULL, memory_order_relaxed);
    return p;
}

void *realloc(void *p, size_t size)
{
    void *q = __libc_realloc(p, size);
    atomic_fetch_add_explicit(&live, (q != NULL) - (p != NULL), memory_order_relaxed);
    return q;
}

void free(void *p)
{
    atomic_fetch_sub_explicit(&live, p != NULL, memory_order_relaxed);
    __libc_free(p);
}

long nth_live_blocks(void)
{
    return atomic_load(&live);
}
#endif

size_t nth_each(const char *name, nth_fn *fn, const void *arg, size_t max)
{
    AS_AUTO(str_done) struct str want = {0};
    struct as_err err = {0};
    as_status st = fn(arg, &want, &err);
    ck_assert_msg(st == AS_OK && !want.failed, "%s: %s", name, err.msg);
    for (size_t n = 1;; n++) {
        struct str got = {0};
        err = (struct as_err){0};
        long before = nth_live_blocks();
        (void)as_mem_fail_nth(n);
        st = fn(arg, &got, &err);
        size_t left = as_mem_fail_nth(0);
        bool same = strcmp(str_cstr(&got), str_cstr(&want)) == 0;
        ck_assert_msg(st == AS_OK || (st == AS_E_NOMEM && left == 0), "%s: allocation %zu: %s: %s",
                      name, n, as_status_name(st), err.msg);
        ck_assert_msg(st != AS_OK || got.failed || same, "%s: allocation %zu: found '%s', not '%s'",
                      name, n, str_cstr(&got), str_cstr(&want));
        str_done(&got);
        ck_assert_msg(nth_live_blocks() == before, "%s: allocation %zu: %ld blocks are left", name,
                      n, nth_live_blocks() - before);
        if (left > 0 || n == max)
            return n - 1;
    }
}

void nth_check_json(size_t n, size_t left, const json_t *want, json_t *got, long before)
{
    ck_assert_msg(got || left == 0, "allocation %zu: NULL although memory was there", n);
    if (got && !json_equal(got, want)) {
        AS_AUTO(as_freep) char *text = json_format(got);
        ck_abort_msg("allocation %zu: half a value: %s", n, text);
    }
    json_decref(got);
    ck_assert_msg(nth_live_blocks() == before, "allocation %zu: %ld blocks are left", n,
                  nth_live_blocks() - before);
}
