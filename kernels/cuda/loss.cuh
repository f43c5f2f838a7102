/* Functions that the losses share: sums over the rows of each member, in a fixed order
 * (loss.cu). */
#ifndef ASSAY_KERNELS_CUDA_LOSS_CUH
#define ASSAY_KERNELS_CUDA_LOSS_CUH

#include "kernels/cuda/cuda.cuh"

/* loss[k] (+)= weight * mean of row_loss. */
as_status cuda_reduce_rows(struct backend *be, const struct loss_out *o, size_t members,
                           size_t batch, const char *what, struct as_err *err);

/* out[k] (+)= the sum of row_loss, where an earlier launch wrote integers below 2^24. */
void cuda_count_rows(struct backend *be, const struct loss_out *o, size_t members, size_t batch,
                     struct tensor out);

#endif
