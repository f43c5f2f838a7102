/* The objects of a fleet for the API of Kubernetes. JSON, so no value needs quoting. */
#ifndef ASSAY_CLI_FLEET_KUBERNETES_OBJECTS_H
#define ASSAY_CLI_FLEET_KUBERNETES_OBJECTS_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/fleet/fleet_spec.h"

/* The label that all objects of a fleet have, with the fleet's name. */
#define KUBERNETES_FLEET_LABEL "app.kubernetes.io/instance"

/* "default", if the spec names none. */
const char *kubernetes_namespace(const struct fleet_spec *spec);

/* A Job (batch/v1) of one runner, or of spec->ranks runners that start together. `id`: small
 * letters and digits that no other job of the fleet has, at most 12; *ret is owned by the caller.
 * AS_E_NOMEM. Pure. */
AS_MUST_CHECK as_status kubernetes_job(const struct fleet_spec *spec, const char *id, json_t **ret,
                                       struct as_err *err);

/* The Secret with the runner's token; its name is that of the fleet (assay-NAME). */
AS_MUST_CHECK as_status kubernetes_secret(const struct fleet_spec *spec, const char *token,
                                          json_t **ret, struct as_err *err);

/* A NetworkPolicy for the runners of the fleet: they are reached by each other alone (ranks); where
 * they may go is left open, for the server's address is a name. */
AS_MUST_CHECK as_status kubernetes_network_policy(const struct fleet_spec *spec, json_t **ret,
                                                  struct as_err *err);

#endif
