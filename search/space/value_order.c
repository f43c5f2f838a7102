#include "search/space/value_order.h"

#include <stdlib.h>

#include "base/mem.h"

/* Of two values each is as far from the other in any order. */
#define VALUES_LEAST 3

struct valued {
    double value;
    size_t choice;
};

bool value_order_exists(const struct space_param *p)
{
    if (p->kind != PARAM_CATEGORICAL || p->n_values < VALUES_LEAST)
        return false;
    for (size_t k = 0; k < p->n_values; k++)
        if (!json_is_number(json_array_get(p->values, k)))
            return false;
    return true;
}

/* Values are distinct, but whole numbers past 2^53 may be equal as doubles. */
static int by_value(const void *a, const void *b)
{
    const struct valued *x = a, *y = b;
    int order = (x->value > y->value) - (x->value < y->value);
    return order ? order : (x->choice > y->choice) - (x->choice < y->choice);
}

as_status value_order_places(const struct space_param *p, double **ret, struct as_err *err)
{
    AS_AUTO(as_freep) double *places = as_calloc(p->n_values, sizeof *places);
    AS_AUTO(as_freep) struct valued *v = as_calloc(p->n_values, sizeof *v);
    if (!places || !v)
        return as_fail(err, AS_E_NOMEM, "out of memory for the order of values");
    for (size_t k = 0; k < p->n_values; k++)
        v[k] = (struct valued){json_number_value(json_array_get(p->values, k)), k};
    qsort(v, p->n_values, sizeof *v, by_value);
    for (size_t k = 0; k < p->n_values; k++)
        places[v[k].choice] = (double)k / (double)(p->n_values - 1);
    *ret = as_steal(places);
    return AS_OK;
}
