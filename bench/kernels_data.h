/* Functions that the parts of bench/kernels share: random numbers on the host and in a back end's
 * buffers. Each ends the program on failure. */
#ifndef ASSAY_BENCH_KERNELS_DATA_H
#define ASSAY_BENCH_KERNELS_DATA_H

#include "kernels/backend.h"

/* Print the error and end the program unless st is AS_OK. */
void must(as_status st, const struct as_err *err);

/* n floats in [-0.5, 0.5), the same for the same n. Owned by the caller. */
float *host_floats(size_t n);

/* Such floats, the same for each member, in a new buffer [members, n], owned by the caller. */
struct tensor floats(struct backend *be, size_t members, size_t n);

#endif
