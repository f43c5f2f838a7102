/* Ownership helpers and overflow-checked allocation.
 *
 * A local variable that owns memory is declared `AS_AUTO(as_freep) char *p = NULL;`, and is freed
 * at the end of its block. `return as_steal(p)` gives the memory away instead. The header of each
 * type declares its own `foo_freep(struct foo **)` through AS_DEFINE_FREEP. */
#ifndef ASSAY_BASE_MEM_H
#define ASSAY_BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>

#include "base/status.h"

/* unused: clang does not count that free_fn gets it. */
#define AS_AUTO(free_fn) __attribute__((cleanup(free_fn), unused))

/* Give ownership away: yields the value of p and sets p to NULL. */
#define as_steal(p)                                                                                \
    __extension__({                                                                                \
        __auto_type as_steal_tmp_ = (p);                                                           \
        (p) = NULL;                                                                                \
        as_steal_tmp_;                                                                             \
    })

/* Define `static inline void NAMEp(TYPE **)` for AS_AUTO from a destructor that accepts NULL. */
#define AS_DEFINE_FREEP(type, free_fn)                                                             \
    static inline void free_fn##p(type **p)                                                        \
    {                                                                                              \
        free_fn(*p);                                                                               \
        *p = NULL;                                                                                 \
    }

/* cleanup for plain malloc'd pointers of any type. */
static inline void as_freep(void *pp)
{
    void **p = pp;
    free(*p);
    *p = NULL;
}

#define AS_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* n * size zeroed bytes; NULL when that overflows or memory is out. If n or size is 0, it returns a
 * pointer that may be freed. Owned by the caller. */
void *as_calloc(size_t n, size_t size);

/* Grow *p to n elements of `size`; *p is untouched on failure. New bytes are not initialised.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status as_grow(void *pp, size_t n, size_t size, struct as_err *err);

/* Make room for one more element in a vector of *cap elements of which `len` are used, doubling.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status as_reserve_one(void *pp, size_t len, size_t *cap, size_t size,
                                       struct as_err *err);

/* A copy of s (NULL stays NULL), or NULL when memory is out. Owned by the caller. */
char *as_strdup(const char *s);

/* Tests only: the nth allocation through these helpers from now on fails (0 switches it off).
 * Returns what was left of the last such count: 0 if that allocation was reached. */
size_t as_mem_fail_nth(size_t nth);

#endif
