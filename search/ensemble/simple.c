/* The methods that need no more than the ranks of the candidates. */
#include "search/ensemble/selection_priv.h"

as_status average_fit(struct selection *s, struct row_list l, struct combination *ret,
                      struct as_err *err)
{
    (void)l;
    (void)err;
    for (size_t k = 0; k < s->n_usable && k < s->in->size; k++)
        ret->counts[s->order[k]] = 1;
    combination_average(ret, s->in);
    return AS_OK;
}

as_status bucketing_fit(struct selection *s, struct row_list l, struct combination *ret,
                        struct as_err *err)
{
    (void)l;
    (void)err;
    ret->counts[s->order[0]] = 1;
    combination_average(ret, s->in);
    return AS_OK;
}
