#include "trial-runner/collective/world.h"

#include <stddef.h>

as_status world_check(const struct world *w, struct as_err *err)
{
    if (w->n < 1 || w->n > WORLD_MAX_RANKS)
        return as_fail(err, AS_E_INVAL, "a world of %d ranks; expected 1 to %d", (int)w->n,
                       WORLD_MAX_RANKS);
    if (w->rank < 0 || w->rank >= w->n)
        return as_fail(err, AS_E_INVAL, "rank %d in a world of %d", (int)w->rank, (int)w->n);
    if (w->n > 1 && !w->peers)
        return as_fail(err, AS_E_INVAL, "a world of %d ranks without endpoints", (int)w->n);
    return AS_OK;
}
