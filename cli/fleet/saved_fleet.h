/* The fleets that this user launched: their specs, so that `--scale`, `--status`, `--stop` and
 * `assay autoscale` need only the name. In $XDG_STATE_HOME/assay/fleets (~/.local/state/…). */
#ifndef ASSAY_CLI_FLEET_SAVED_FLEET_H
#define ASSAY_CLI_FLEET_SAVED_FLEET_H

#include "base/status.h"
#include "cli/fleet/fleet_spec.h"

/* The folder NAME of the fleet, made if needed, mode 0700: logs and the token may be there. Owned
 * by the caller. AS_E_DENIED: it belongs to another user; AS_E_IO, AS_E_NOT_FOUND, AS_E_NOMEM. */
AS_MUST_CHECK as_status saved_fleet_folder(const char *name, char **ret, struct as_err *err);

AS_MUST_CHECK as_status saved_fleet_write(const struct fleet_spec *s, struct as_err *err);

/* The texts of *ret are views of *ret_tree, which the caller owns. It is checked again.
 * AS_E_NOT_FOUND: this user has launched no such fleet from here. */
AS_MUST_CHECK as_status saved_fleet_read(const char *name, struct fleet_spec *ret,
                                         json_t **ret_tree, struct as_err *err);

/* Hold the fleet against another `assay autoscale` of this user on this machine until *ret_fd is
 * closed. AS_E_CONFLICT. */
AS_MUST_CHECK as_status saved_fleet_lock(const char *name, int *ret_fd, struct as_err *err);

#endif
