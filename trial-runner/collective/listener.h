/* The sockets at which a rank waits for its peers. They outlive epochs: a rank registers its
 * endpoint once, before it knows any world. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_LISTENER_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_LISTENER_H

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/collective/endpoint.h"

struct listener {
    int tcp_fd, unix_fd; /* non-blocking */
    struct endpoint endpoint;
};

/* Listens on a free TCP port of `address` (a numeric address of this machine, which is also what
 * the peers are told), and on a Unix socket without a name in the file system.
 *   ret   owned by the caller, free with listener_free()
 * AS_E_INVAL   address is no numeric address
 * AS_E_IO      the address cannot be bound, or no descriptor is left */
AS_MUST_CHECK as_status listener_create(const char *address, struct listener **ret,
                                        struct as_err *err);
void listener_free(struct listener *l);
AS_DEFINE_FREEP(struct listener, listener_free)

#endif
