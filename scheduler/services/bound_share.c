#include "scheduler/services/bound_share.h"

#include <math.h>

#define FEW 64.0 /* trials, up to which a bound costs as much */

bool bound_share_covers(const struct bound_share *s, int64_t expected_ns, int64_t now_ns)
{
    int64_t cost = expected_ns < BOUND_EXPECTED_MAX_NS ? expected_ns : BOUND_EXPECTED_MAX_NS;
    return now_ns - s->free_ns >= s->rest * cost;
}

void bound_share_spend(struct bound_share *s, int64_t took_ns, int64_t now_ns)
{
    s->free_ns += (s->rest + 1) * took_ns;
    if (s->free_ns < now_ns - s->saved_ns)
        s->free_ns = now_ns - s->saved_ns;
}

int64_t bound_cost_expected(const struct bound_cost *last, int64_t completed)
{
    double growth = fmax((double)completed, FEW) / fmax((double)last->completed, FEW);
    double cost = (double)last->took_ns * growth * sqrt(growth);
    return cost < (double)BOUND_EXPECTED_MAX_NS ? (int64_t)cost : BOUND_EXPECTED_MAX_NS;
}
