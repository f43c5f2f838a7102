/* The ranks of one k-means trial: they meet, those that are behind get the others' centroids, and
 * all add up the sums of their shards. It is for k-means what shared_step.h is for networks, whose
 * state is on a device. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_KMEANS_RANKS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_KMEANS_RANKS_H

#include "trial-runner/collective/operation.h"
#include "trial-runner/train/member.h"
#include "trial-runner/train/team.h"

/* What a trial knows between two iterations, beside m->epoch, the iterations done. */
struct kmeans_state {
    float *centroids; /* [n] */
    size_t n;
    bool settled; /* no iteration would move them */
};

struct kmeans_ranks;

/* All are borrowed. ret: kmeans_ranks_free(). AS_E_NOMEM. */
AS_MUST_CHECK as_status kmeans_ranks_create(struct team *team, struct member *m,
                                            struct kmeans_state *state, struct kmeans_ranks **ret,
                                            struct as_err *err);
void kmeans_ranks_free(struct kmeans_ranks *r);
AS_DEFINE_FREEP(struct kmeans_ranks, kmeans_ranks_free)

/* Returns when this rank is in a world whose ranks have one state. *ret_met: it has met others just
 * now, so that nothing but the state is common to them. AS_E_UNAVAILABLE: this rank is to stop
 * without the others. AS_E_CONFLICT: a rank has another job. */
AS_MUST_CHECK as_status kmeans_ranks_meet(struct kmeans_ranks *r, bool *ret_met,
                                          struct as_err *err);

/* The others have done their last iteration before a stop: so has this one. */
bool kmeans_ranks_stopping(const struct kmeans_ranks *r);

/* Was this rank asked to stop? */
bool kmeans_ranks_stop_asked(const struct kmeans_ranks *r);

/* Which of `total` shards this rank computes; perhaps none. */
struct shard_run kmeans_ranks_own(const struct kmeans_ranks *r, uint32_t total);

/* ret = the sum over all shards, in the order of the tree.
 *   round     of the sums of this world, equal on all ranks
 *   partials  of this rank's run, n numbers each
 * AS_E_UNAVAILABLE: a rank is lost, or the world is over; kmeans_ranks_part() is next. */
AS_MUST_CHECK as_status kmeans_ranks_sum(struct kmeans_ranks *r, uint64_t round, uint32_t total,
                                         double *const *partials, size_t n, double *ret,
                                         struct as_err *err);
void kmeans_ranks_part(struct kmeans_ranks *r);

/* An iteration is done, in so many ns, waits for other ranks included: the runner is told how far
 * this rank is, at most once a second. */
void kmeans_ranks_progress(struct kmeans_ranks *r, int64_t took_ns);

/* Does this rank write the trial's files? One rank of a world does. */
bool kmeans_ranks_leads(const struct kmeans_ranks *r);

/* Returns when every rank has called it in one state; the rank that leads calls `finish`. If a rank
 * is lost meanwhile, it is called anew by the next one that leads. */
AS_MUST_CHECK as_status kmeans_ranks_finish(struct kmeans_ranks *r,
                                            as_status (*finish)(void *arg, struct as_err *err),
                                            void *arg, struct as_err *err);

#endif
