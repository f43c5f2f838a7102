/* The table of methods. */
#include "search/suggest.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "search/auto.h"
#include "search/cmaes/cmaes.h"
#include "search/coordinate/coordinate.h"
#include "search/evolution/evolution.h"
#include "search/forest/forest_method.h"
#include "search/gp/gp.h"
#include "search/mcmc/mcmc.h"
#include "search/sampling/grid_method.h"
#include "search/sampling/sampler.h"
#include "search/tpe/tpe.h"

/* Error messages list them in this order. */
static const struct search_method *const methods[] = {
    &search_grid,       &search_random, &search_sobol, &search_gp,
    &search_tpe,        &search_forest, &search_cmaes, &search_evolution,
    &search_coordinate, &search_mcmc,   &search_auto,
};
#define DEFAULT_METHOD (&search_gp)

static as_status refuse_name(const char *name, const char *pointer, struct as_err *err)
{
    char names[128] = "";
    for (size_t i = 0; i < AS_ARRAY_LEN(methods); i++) {
        size_t at = strlen(names);
        (void)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", methods[i]->name);
    }
    return as_fail_at(err, AS_E_INVAL, pointer, "%s: found '%.40s', expected one of %s", pointer,
                      name, names);
}

as_status search_method_parse(const char *name, const char *pointer,
                              const struct search_method **ret, struct as_err *err)
{
    if (!name) {
        *ret = DEFAULT_METHOD;
        return AS_OK;
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(methods); i++) {
        if (as_streq(name, methods[i]->name)) {
            *ret = methods[i];
            return AS_OK;
        }
    }
    return refuse_name(name, pointer, err);
}

as_status suggest(const struct search_spec *spec, const struct history *history,
                  const json_t *state, uint64_t number, uint64_t index, struct search_cache *cache,
                  struct suggestion *ret, struct as_err *err)
{
    const struct search_method *m = spec->method;
    return m->suggest(spec, history, state, number, index, search_cache_of(cache, m), ret, err);
}

void suggest_explain(const json_t *reason, const json_t *metrics, struct str *b)
{
    const char *name = json_string_value(json_object_get(reason, "method"));
    for (size_t i = 0; name && i < AS_ARRAY_LEN(methods); i++) {
        if (as_streq(name, methods[i]->name) && methods[i]->explain) {
            methods[i]->explain(methods[i], reason, metrics, b);
            return;
        }
    }
    str_puts(b, name ? name : "");
}
