#include "search/search_cache.h"

struct search_cache {
    const struct search_method *method; /* of `own`; NULL until the first suggestion */
    struct search_method_cache *own;
};

struct search_cache *search_cache_create(void)
{
    return as_calloc(1, sizeof(struct search_cache));
}

static void drop(struct search_cache *c)
{
    if (c->own)
        c->method->cache_free(c->own);
    c->own = NULL;
}

void search_cache_free(struct search_cache *c)
{
    if (c)
        drop(c);
    free(c);
}

size_t search_cache_bytes(const struct search_cache *c)
{
    return sizeof *c + (c->own ? c->method->cache_bytes(c->own) : 0);
}

struct search_method_cache *search_cache_of(struct search_cache *c, const struct search_method *m)
{
    if (!c || !m->cache_create)
        return NULL;
    if (c->method != m)
        drop(c);
    if (!c->own) {
        c->method = m;
        c->own = m->cache_create();
    }
    return c->own;
}
