#include "cli/fleet/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

const char *const unit_state_words[] = {"pending", "running", "ending"};

void fleet_units_done(struct fleet_units *u)
{
    free(u->v);
    *u = (struct fleet_units){0};
}

as_status fleet_units_add(struct fleet_units *u, const char *id, unit_state state,
                          const char *reason, struct as_err *err)
{
    if (u->n == FLEET_UNITS_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "the fleet has more than %d jobs", FLEET_UNITS_MAX);
    as_status st = as_reserve_one(&u->v, u->n, &u->cap, sizeof *u->v, err);
    if (st < 0)
        return st;
    struct fleet_unit *unit = &u->v[u->n++];
    *unit = (struct fleet_unit){.state = state};
    (void)snprintf(unit->id, sizeof unit->id, "%s", id);
    (void)snprintf(unit->reason, sizeof unit->reason, "%s", reason);
    return AS_OK;
}

const struct engine_ops *engine_of(const struct fleet_spec *s)
{
    static const struct engine_ops *const all[] = {[FLEET_SLURM] = &engine_slurm,
                                                   [FLEET_KUBERNETES] = &engine_kubernetes,
                                                   [FLEET_SSH] = &engine_ssh};
    return all[s->engine];
}
