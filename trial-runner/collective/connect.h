/* How a mesh comes to be: every rank dials those below it and accepts those above it. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_CONNECT_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_CONNECT_H

#include "trial-runner/collective/link.h"
#include "trial-runner/collective/listener.h"
#include "trial-runner/collective/world.h"

/* Fills links[peer] for all peers but this rank; they are the caller's, also on failure.
 *   bell   this rank's eventfd, which local peers are given
 * AS_E_UNAVAILABLE   until_ns (CLOCK_MONOTONIC) has come; *ret_missing is the first missing peer */
AS_MUST_CHECK as_status connect_all(const struct listener *listener, const struct world *world,
                                    bool tcp_only, int bell, int64_t until_ns, struct link **links,
                                    int32_t *ret_missing, struct as_err *err);

#endif
