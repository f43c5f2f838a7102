/* The child process that trains with PyTorch (peer_torch.py): the peer of `./dev bench train`.
 * Started at the first request by the first of $ASSAY_PYTHON, /usr/bin/python3 and python3 that
 * imports torch, with the OpenMP build of OpenBLAS where Debian has it; one process lets OpenBLAS
 * choose its kernels, on machines with AVX-512 another has it take those for them. */
#ifndef ASSAY_BENCH_TRAIN_PEER_H
#define ASSAY_BENCH_TRAIN_PEER_H

#include <jansson.h>

#include "base/status.h"

/* Rows per second that PyTorch trains of a case (peer_torch.py says what one is; borrowed), in
 * about `seconds` for each of the processes, of which the best counts. AS_E_UNAVAILABLE: no
 * interpreter imports torch. AS_E_IO: it failed, with what it said. */
AS_MUST_CHECK as_status torch_rate(const json_t *c, int threads, double seconds, const char *device,
                                   double *ret, struct as_err *err);

/* "PyTorch 1.13.0a0", or NULL before the first request. */
const char *torch_version(void);

void torch_close(void);

#endif
