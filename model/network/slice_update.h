/* One member's optimizer on a slice of the parameters that is somewhere on the host: for ranks that
 * keep only a part of the moments, and for parameter servers. Equal bits to optimizer_apply() for
 * the same elements; no clipping and no average of weights. */
#ifndef ASSAY_MODEL_NETWORK_SLICE_UPDATE_H
#define ASSAY_MODEL_NETWORK_SLICE_UPDATE_H

#include "model/network/optimizer.h"

struct slice_update;

/* On the back end of o. Nothing is borrowed. AS_E_NOMEM;
 * AS_E_UNSUPPORTED: LAMB, which needs the norms of whole tensors. ret: slice_update_free(). */
AS_MUST_CHECK as_status slice_update_create(const struct optimizer *o,
                                            const struct train_spec *spec,
                                            struct slice_update **ret, struct as_err *err);
void slice_update_free(struct slice_update *u);
AS_DEFINE_FREEP(struct slice_update, slice_update_free)

/* One step for n elements: params and moments in place. `steps_done`: the steps that these moments
 * have seen before. m2 is not read if the optimizer has none. AS_E_NOMEM, AS_E_INTERNAL. */
AS_MUST_CHECK as_status slice_update_run(struct slice_update *u, struct backend *lane, float lr,
                                         int32_t steps_done, size_t n, float *params,
                                         const float *grads, float *m1, float *m2,
                                         struct as_err *err);

#endif
