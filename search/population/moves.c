#include "search/population/moves.h"

#include <math.h>

double moves_reflect(double x)
{
    x = fabs(fmod(x, 2));
    return x > 1 ? 2 - x : x;
}

double moves_other_choice(struct rng *r, const struct encoded_param *p, double now)
{
    uint64_t k = rng_below(r, p->levels - 1);
    return (double)(k + (k >= (uint64_t)now));
}

void moves_activate(const struct encoding *e, const bool *before, const bool *after, struct rng *r,
                    double *point)
{
    for (size_t j = 0; j < e->n; j++) {
        if (before[j] || !after[j] || e->params[j].kind == ENCODED_CONSTANT)
            continue;
        point[j] = e->params[j].kind == ENCODED_CHOICE ? (double)rng_below(r, e->params[j].levels)
                                                       : rng_uniform(r);
    }
    encoding_snap(e, point);
}
