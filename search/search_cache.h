/* What earlier suggestions of one sweep computed: the cache of the method that suggested last. It
 * only saves time: suggestions have the same bits without it. */
#ifndef ASSAY_SEARCH_SEARCH_CACHE_H
#define ASSAY_SEARCH_SEARCH_CACHE_H

#include <stddef.h>

#include "base/mem.h"
#include "search/problem/method.h"

/* One thread at a time; belongs to one sweep. NULL when memory is out. */
struct search_cache;
struct search_cache *search_cache_create(void);
void search_cache_free(struct search_cache *c);
AS_DEFINE_FREEP(struct search_cache, search_cache_free)
size_t search_cache_bytes(const struct search_cache *c); /* about what it holds */

/* The cache of method m in c, created on first use; view of c until another method asks. NULL if c
 * is NULL, the method has no cache, or memory is out. */
struct search_method_cache *search_cache_of(struct search_cache *c, const struct search_method *m);

#endif
