/* The jobs of a fleet beside what the server says of its runners and of the demand. Pure. */
#ifndef ASSAY_CLI_FLEET_FLEET_LOOK_H
#define ASSAY_CLI_FLEET_FLEET_LOOK_H

#include <jansson.h>

#include "cli/fleet/autoscale_plan.h"

/* One list of jobs, runners and demand. The arrays are owned; the rest are views of the units. */
struct fleet_look {
    struct autoscale_unit *units; /* one for each unit, in their order */
    int64_t *used;                /* slots that are used by its runners, also in their order */
    size_t n;
    struct autoscale_kind *kinds;
    size_t n_kinds;
};
void fleet_look_done(struct fleet_look *l);

/* runners: the items of GET /v1/runners; demand: GET /v1/demand, NULL: none. ret must be zeroed;
 * the units must live as long. AS_E_NOMEM. */
AS_MUST_CHECK as_status fleet_look_make(const struct fleet_spec *spec,
                                        const struct fleet_units *units, const json_t *runners,
                                        const json_t *demand, struct fleet_look *ret,
                                        struct as_err *err);

/* The units to end so that `keep` are left: those that wait first, then the idle ones, then the
 * others, the newest of each first. *ret_ids: owned list of views of the units. */
AS_MUST_CHECK as_status fleet_look_surplus(const struct fleet_look *l, int64_t keep,
                                           const char ***ret_ids, size_t *ret_n,
                                           struct as_err *err);

#endif
