/* A set of transfers that an algorithm posts and waits for. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_EXCHANGE_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_EXCHANGE_H

#include "trial-runner/collective/mesh.h"
#include "trial-runner/collective/operation.h"

struct exchange {
    struct mesh *mesh;
    struct coll_id id;
    struct transfer *t; /* of `max`; their addresses do not change */
    bool streams;       /* receives that are posted now: see struct transfer */
    size_t n, max;
};

/* `t` is the caller's array of `max` transfers. */
void exchange_init(struct exchange *x, struct mesh *mesh, struct coll_id id, struct transfer *t,
                   size_t max);

/* Both post at once. They return the transfer, whose `done` counts its bytes: a later send can take
 * it as `ready` (NULL: all is ready).
 * exchange_receive: with `reduce`, to = with (+) what arrives; else to = what arrives. */
struct transfer *exchange_send(struct exchange *x, int32_t peer, const void *from, size_t bytes,
                               const size_t *ready);
struct transfer *exchange_receive(struct exchange *x, int32_t peer, void *to, size_t bytes,
                                  const struct reduction *reduce, const void *with);

/* Waits for all that was posted; then the exchange is empty again. */
AS_MUST_CHECK as_status exchange_wait(struct exchange *x, struct as_err *err);

/* Vectors of so many bytes do not stay in the caches: what is received of them last is streamed to
 * its place. Measured: streaming gains 10% of an all-reduce of 2 MiB, and costs 7% of one of 1 MiB
 * (2 ranks over TCP, EPYC 7002, 512 KiB of cache for each core). */
#define EXCHANGE_STREAMS_BYTES ((size_t)2 << 20)

/* The algorithms, each in a file of its name. n items; all buffers as in collective.h. */
AS_MUST_CHECK as_status ring_allreduce(struct mesh *m, struct coll_id id,
                                       const struct reduction *reduce, const void *in, void *out,
                                       size_t n, struct as_err *err);
AS_MUST_CHECK as_status ring_allgather(struct mesh *m, struct coll_id id, void *out, size_t n,
                                       size_t item_bytes, struct as_err *err);
AS_MUST_CHECK as_status halving_allreduce(struct mesh *m, struct coll_id id,
                                          const struct reduction *reduce, const void *in, void *out,
                                          size_t n, struct as_err *err);
/* What a sum in the order of the tree is about. */
struct tree_terms {
    const struct shard_run *runs; /* by rank */
    uint32_t total;
    const void *const *values; /* of this rank: one for each shard of its run, or, */
    bool merged;               /* if it has merged them, for each of its subtrees */
};
AS_MUST_CHECK as_status tree_sum(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                                 const struct tree_terms *terms, void *out, size_t n,
                                 struct as_err *err);
AS_MUST_CHECK as_status binomial_broadcast(struct mesh *m, struct coll_id id, int32_t root,
                                           void *data, size_t bytes, struct as_err *err);
AS_MUST_CHECK as_status dissemination_barrier(struct mesh *m, struct coll_id id,
                                              struct as_err *err);

#endif
