/* Socket addresses of an endpoint. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_SOCKET_ADDRESS_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_SOCKET_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "trial-runner/collective/endpoint.h"

/* `ret` becomes the address of the endpoint's Unix socket or TCP port; returns its length, 0 if the
 * endpoint's address is not numeric. */
socklen_t socket_address(const struct endpoint *e, bool local, struct sockaddr_storage *ret);

#endif
