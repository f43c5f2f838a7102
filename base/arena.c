#include "base/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef __has_feature /* clang has it; gcc has none and defines __SANITIZE_ADDRESS__ instead */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define ARENA_BLOCK_BYTES 0 /* each piece has its own block */
#else
#define ARENA_BLOCK_BYTES 8192
#endif

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    max_align_t data[];
};

void arena_done(struct arena *a)
{
    struct arena_block *b = a->head;
    while (b) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
    a->head = NULL;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
    const size_t align = sizeof(max_align_t);
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = bytes ? (bytes + align - 1) / align * align : align;
    struct arena_block *b = a->head;
    if (!b || b->cap - b->used < bytes) {
        size_t cap = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
        b = as_calloc(1, sizeof *b + cap);
        if (!b)
            return NULL;
        b->cap = cap;
        b->next = a->head;
        a->head = b;
    }
    char *p = (char *)b->data + b->used;
    b->used += bytes;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    if (!s || len == SIZE_MAX)
        return NULL;
    char *copy = arena_alloc(a, len + 1, 1);
    if (copy) {
        memcpy(copy, s, len);
        copy[len] = 0;
    }
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1, 1);
    if (s)
        (void)vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}
