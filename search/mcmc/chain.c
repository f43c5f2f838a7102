#include "search/mcmc/chain.h"

#include <math.h>

#include "search/population/moves.h"

static double width(struct rng *r)
{
    return CHAIN_LEAST * pow(CHAIN_MOST / CHAIN_LEAST, rng_uniform(r));
}

/* A walk over the levels 0 to n - 1 that comes back from its ends: the level -1 - k is the level
 * k. */
static uint64_t moved_level(struct rng *r, uint64_t level, uint64_t n)
{
    double step = rint(width(r) * (double)(n - 1) * rng_normal(r)), turn = 2 * (double)n;
    if (step == 0)
        step = rng_below(r, 2) ? 1 : -1;
    double at = fmod((double)level + step, turn);
    at = at < 0 ? at + turn : at;
    return (uint64_t)(at < (double)n ? at : turn - 1 - at);
}

static double moved(const struct encoding *e, size_t j, struct rng *r, double now)
{
    switch (e->params[j].kind) {
    case ENCODED_CHOICE:
        return moves_other_choice(r, &e->params[j], now);
    case ENCODED_LEVELS:
        return encoding_place(e, j, moved_level(r, encoding_level(e, j, now), e->params[j].levels));
    default:
        return moves_reflect(now + width(r) * rng_normal(r));
    }
}

size_t chain_move(const struct encoding *e, struct rng *r, bool *scratch, double *point)
{
    bool *before = scratch, *after = scratch + e->n;
    size_t j = (size_t)rng_below(r, e->n);
    encoding_active(e, point, before);
    if (!before[j] || e->params[j].kind == ENCODED_CONSTANT)
        return j;
    point[j] = moved(e, j, r, point[j]);
    encoding_active(e, point, after);
    moves_activate(e, before, after, r, point);
    return j;
}

bool chain_accepts(double cost, double proposed, double temperature, double u)
{
    if (proposed <= cost)
        return true;
    return temperature > 0 && u < exp((cost - proposed) / temperature);
}
