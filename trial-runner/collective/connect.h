/* How a mesh comes to be: every rank dials those below it and accepts those above it. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_CONNECT_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_CONNECT_H

#include "trial-runner/collective/link.h"
#include "trial-runner/collective/listener.h"
#include "trial-runner/collective/world.h"

struct connect_opts {
    bool tcp_only;
    int bell;         /* this rank's eventfd, which local peers are given */
    int over_fd;      /* readable: the epoch is over; negative: none */
    int64_t until_ns; /* CLOCK_MONOTONIC */
    int64_t prove_ns; /* a candidate that has proven nothing so long is closed */
};

/* Fills links[peer] for all peers but this rank; they are the caller's, also on failure. The links
 * that are NULL then are those of the missing peers.
 * AS_E_UNAVAILABLE   until_ns has come, or the epoch is over */
AS_MUST_CHECK as_status connect_all(const struct listener *listener, const struct world *world,
                                    const struct connect_opts *opts, struct link **links,
                                    struct as_err *err);

#endif
