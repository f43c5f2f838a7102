/* Sums of encoded vectors over all ranks: with messages (fp16, one_bit, top_k) or with factors
 * (powersgd). Private to shard_sum.c. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_CODED_SUM_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_CODED_SUM_H

#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/gradient_codec.h"
#include "trial-runner/distributed/residuals.h"

/* Memory that is kept from sum to sum. */
struct coded_buffer {
    char *bytes;
    size_t size;
};

/* At least so many bytes; what was there may be lost. Never NULL, also for none. AS_E_NOMEM. */
AS_MUST_CHECK as_status coded_buffer_make(struct coded_buffer *r, size_t size, struct as_err *err);

struct coded_sum {
    struct codec *codec;         /* owned */
    struct residuals *residuals; /* borrowed; NULL: no error feedback */
    struct coded_buffer out, in, slice, left, right;
};

void coded_sum_done(struct coded_sum *s); /* frees the codec too */

/* What is summed: this rank's shards, and those of all. */
struct coded_terms {
    uint64_t step;
    uint32_t shards;
    const struct shard_run *runs; /* by rank */
    const float *const *partials; /* of this rank's run: codec_values() each */
    size_t exact; /* coded_sum_factors: numbers behind them that travel as float32 */
};

/* ret = the sum, codec_values(). Each rank encodes slice j of each of its shards for rank j, which
 * adds them up in the order of the shards, encodes the sum, and sends it to all. */
AS_MUST_CHECK as_status coded_sum_messages(struct coded_sum *s, struct coll *c,
                                           const struct coded_terms *t, float *ret,
                                           struct as_err *err);
/* The same for a codec whose factors are summed (factor_sum.c). ret: codec_values() + t->exact. */
AS_MUST_CHECK as_status coded_sum_factors(struct coded_sum *s, struct coll *c,
                                          const struct coded_terms *t, float *ret,
                                          struct as_err *err);

#endif
