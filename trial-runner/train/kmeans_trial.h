/* One k-means member in training: iterations, reports, checkpoints, artifacts; alone or as one of
 * several ranks. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_KMEANS_TRIAL_H
#define ASSAY_TRIAL_RUNNER_TRAIN_KMEANS_TRIAL_H

#include "trial-runner/train/run.h"

struct kmeans_trial;

/* Begin to train m, or go on from its checkpoint.
 *   setup  without be and device; borrowed until kmeans_trial_free(), as m and team are
 *   team   of a rank; NULL: the member trains alone
 * AS_E_INVAL: more clusters than training rows; the checkpoint is of another job. AS_E_NOMEM,
 * AS_E_IO; AS_E_UNSUPPORTED (cpu_gemm_ready). */
AS_MUST_CHECK as_status kmeans_trial_create(const struct lockstep_setup *setup, struct member *m,
                                            size_t threads, struct team *team,
                                            struct kmeans_trial **ret, struct as_err *err);
void kmeans_trial_free(struct kmeans_trial *t);
AS_DEFINE_FREEP(struct kmeans_trial, kmeans_trial_free)

/* Do iterations for some milliseconds, at least one, or end the member (member_end): when its
 * centroids stay, when it has all its iterations, is asked to stop, or fails. m->epoch is the
 * iterations done. */
void kmeans_trial_slice(struct kmeans_trial *t, struct watch *w);

#endif
