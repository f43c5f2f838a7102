/* One batch of claims: what batch_commit() is for results. */
#ifndef ASSAY_SCHEDULER_COMMIT_CLAIM_BATCH_H
#define ASSAY_SCHEDULER_COMMIT_CLAIM_BATCH_H

#include "scheduler/commit/batch.h"
#include "scheduler/commit/claim_docs.h"

/* Decide these members (CLAIM) in one transaction. No two of them may be of one runner. Otherwise
 * as batch_commit(); ret->completed, late, stale and recorded are 0, ret->claimed counts trials
 * that began. It computes no suggestion of a method that learns: `sg` (may be NULL) has them ready,
 * or the claim runs alone. is_patient: it waits for the rows of sweeps that others hold. */
AS_MUST_CHECK as_status batch_claim(const struct batch_ops *ops, void *ctx, struct suggester *sg,
                                    struct claim_docs *docs, bool is_patient,
                                    struct commit_member *const *members, size_t n,
                                    struct batch_result *ret, struct as_err *err);

#endif
