/* An arena: many small allocations with one lifetime (a request, a parse), freed together.
 *
 * Under AddressSanitizer each piece is its own malloc, so that it still finds overruns.
 * One thread at a time. */
#ifndef ASSAY_BASE_ARENA_H
#define ASSAY_BASE_ARENA_H

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

struct arena_block;
struct arena {
    struct arena_block *head;
};

/* A zeroed struct arena is empty and ready. */
void arena_done(struct arena *a);

/* n * size zeroed bytes, aligned for any type; NULL when memory is out or the product overflows.
 * A view of `a` until arena_done. */
void *arena_alloc(struct arena *a, size_t n, size_t size);

/* Copy into the arena. They return NULL for NULL, and when memory is out. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) AS_PRINTF(2, 3);

#endif
