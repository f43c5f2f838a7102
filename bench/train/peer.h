/* The child process that trains with PyTorch (peer_torch.py): the peer of `./dev bench train`.
 * Started at the first request by the first of $ASSAY_PYTHON, /usr/bin/python3 and python3 that
 * imports torch, with the OpenMP build of OpenBLAS where Debian has it. One process lets OpenBLAS
 * choose its kernels. On machines with AVX-512 another makes it use the kernels for AVX-512. */
#ifndef ASSAY_BENCH_TRAIN_PEER_H
#define ASSAY_BENCH_TRAIN_PEER_H

#include <jansson.h>

#include "base/status.h"

/* How fast PyTorch trains: each figure by the setting that is best for it. */
struct torch_speed {
    double rows_per_s;
    double cpu_us; /* processor time of a row, in microseconds */
};

/* PyTorch's speed with case c (borrowed; peer_torch.py describes it) and so many threads. It
 * measures about `seconds` with each of the processes, and keeps what is better than *best, whose
 * figures are NaN at first. AS_E_UNAVAILABLE: no interpreter imports torch. AS_E_IO: it failed; the
 * message is its own. */
AS_MUST_CHECK as_status torch_speed(const json_t *c, int threads, double seconds,
                                    const char *device, struct torch_speed *best,
                                    struct as_err *err);

/* "PyTorch 1.13.0a0", or NULL before the first request. */
const char *torch_version(void);

void torch_close(void);

#endif
