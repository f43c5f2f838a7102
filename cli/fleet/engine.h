/* The engines that start the jobs of a fleet, behind one table of functions.
 *
 * A unit is what an engine starts and ends as one: a task of an array (Slurm), a Job (Kubernetes),
 * the runner of a host (ssh). It has one runner, or spec->ranks runners that start together. */
#ifndef ASSAY_CLI_FLEET_ENGINE_H
#define ASSAY_CLI_FLEET_ENGINE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/fleet/fleet_spec.h"

typedef enum unit_state { UNIT_PENDING, UNIT_RUNNING, UNIT_ENDING } unit_state;
extern const char *const unit_state_words[]; /* in the enum's order */

struct fleet_unit {
    char id[128];
    unit_state state;
    char reason[160]; /* why it is pending, as the engine says it; "": nothing */
};

struct fleet_units {
    struct fleet_unit *v; /* owned */
    size_t n, cap;
};
void fleet_units_done(struct fleet_units *u);
/* AS_E_NOMEM; AS_E_TOO_LARGE: more than FLEET_UNITS_MAX. */
AS_MUST_CHECK as_status fleet_units_add(struct fleet_units *u, const char *id, unit_state state,
                                        const char *reason, struct as_err *err);

/* The errors of all functions: those of command_run(). AS_E_UNAVAILABLE: the engine is away, and
 * may have done what it was asked to do: list before you ask again. */
struct engine_ops {
    /* What would be submitted for n units, without credentials: for people, and for other tools. */
    as_status (*print)(const struct fleet_spec *s, int64_t n, struct str *b, struct as_err *err);
    /* Start n units more. token: a runner's, for engines that pass it on. */
    as_status (*submit)(const struct fleet_spec *s, int64_t n, const char *token,
                        struct as_err *err);
    /* The units that have not ended. ret is empty before. */
    as_status (*list)(const struct fleet_spec *s, struct fleet_units *ret, struct as_err *err);
    /* End these units; their runners get SIGTERM. One that has ended already is no error. */
    as_status (*stop)(const struct fleet_spec *s, const char *const *ids, size_t n,
                      struct as_err *err);
    /* Is the job that a runner said it belongs to (`job` of the API) this unit? */
    bool (*is_of)(const char *job, const struct fleet_spec *s, const char *unit);
    bool needs_token; /* for submit() */
};

const struct engine_ops *engine_of(const struct fleet_spec *s);

extern const struct engine_ops engine_slurm, engine_kubernetes, engine_ssh;

#endif
