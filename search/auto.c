#include "search/auto.h"

#include "base/json.h"
#include "search/cmaes/cmaes.h"
#include "search/evolution/evolution.h"
#include "search/gp/gp.h"
#include "search/sampling/sampler.h"
#include "search/search_cache.h"
#include "search/tpe/tpe.h"

/* ---- the rule ---- */

static const struct search_method *choose(const struct space *s, size_t n_trials)
{
    size_t n = 0;
    bool is_conditional = false;
    for (size_t i = 0; i < s->n; i++) {
        n += param_levels(&s->params[i]) != 1;
        is_conditional |= s->params[i].n_conds > 0;
    }
    if (n <= AUTO_GP_PARAMS && n_trials <= AUTO_GP_TRIALS)
        return &search_gp;
    if (n > AUTO_GP_PARAMS && n_trials <= AUTO_TPE_TRIALS)
        return &search_tpe;
    return is_conditional ? &search_evolution : &search_cmaes;
}

/* ---- its cache: a search_cache ---- */

static struct search_method_cache *cache_create(void)
{
    return (struct search_method_cache *)search_cache_create();
}

static void cache_free(struct search_method_cache *cache)
{
    search_cache_free((struct search_cache *)cache);
}

static size_t cache_bytes(const struct search_method_cache *cache)
{
    return search_cache_bytes((const struct search_cache *)cache);
}

/* ---- the suggestion ---- */

static as_status auto_suggest(const struct search_spec *spec, const struct history *history,
                              const json_t *state, uint64_t number, uint64_t index,
                              struct search_method_cache *cache, struct suggestion *ret,
                              struct as_err *err)
{
    const struct search_method *m = choose(spec->space, history ? history->n : 0);
    struct search_spec as = *spec;
    AS_AUTO(suggestion_done) struct suggestion s = {0};
    struct search_method_cache *own = search_cache_of((struct search_cache *)cache, m);
    as.method = m;
    as_status st = m->suggest(&as, history, state, number, index, own, &s, err);
    if (st < 0)
        return st;
    if (json_object_set_new(s.reason, "chosen_by", json_string(search_auto.name)) < 0)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
    *ret = s;
    s = (struct suggestion){0};
    return AS_OK;
}

const struct search_method search_auto = {
    .name = "auto",
    .is_model_based = true,
    .check = sampler_method_check,
    .sample = sampler_method_sample,
    .suggest = auto_suggest,
    .cache_create = cache_create,
    .cache_free = cache_free,
    .cache_bytes = cache_bytes,
};
