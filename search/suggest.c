/* Which method answers. */
#include "search/suggest.h"

#include "search/gp/gp.h"

struct search_cache {
    struct gp_cache *gp; /* NULL until it is needed */
};

struct search_cache *search_cache_create(void)
{
    return as_calloc(1, sizeof(struct search_cache));
}

void search_cache_free(struct search_cache *c)
{
    if (c)
        gp_cache_free(c->gp);
    free(c);
}

size_t search_cache_bytes(const struct search_cache *c)
{
    return sizeof *c + (c->gp ? gp_cache_bytes(c->gp) : 0);
}

void suggestion_done(struct suggestion *s)
{
    config_free(s->config);
    json_decref(s->reason);
    json_decref(s->state);
    *s = (struct suggestion){0};
}

bool search_method_learns(search_method m)
{
    return m == SEARCH_GP;
}

as_status suggest(const struct search_spec *spec, const struct history *history,
                  const json_t *state, uint64_t number, uint64_t index, struct search_cache *cache,
                  struct suggestion *ret, struct as_err *err)
{
    if (spec->method == SEARCH_GP) {
        if (cache && !cache->gp)
            cache->gp = gp_cache_create(); /* without one, it makes its own */
        return gp_suggest(spec, history, state, number, index, cache ? cache->gp : NULL, ret, err);
    }
    struct suggestion s = {0};
    as_status st = spec->method == SEARCH_GRID && spec->grid
                       ? sampler_suggest_cell(spec->grid, index, &s.config, &s.reason, err)
                       : sampler_suggest(spec->space, spec->method, spec->seed, index, &s.config,
                                         &s.reason, err);
    if (st == AS_OK)
        *ret = s;
    return st;
}
