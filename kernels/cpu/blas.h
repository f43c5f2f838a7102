/* OpenBLAS, for matrix products on processors without AVX2. It is opened at run time, because no
 * other machine needs it: loading it takes as long as all other starting of a program, and it
 * starts a thread for each CPU when it is loaded. */
#ifndef ASSAY_KERNELS_CPU_BLAS_H
#define ASSAY_KERNELS_CPU_BLAS_H

#include <cblas.h>

#include "base/status.h"

struct blas {
    typeof(cblas_sgemm) *sgemm;
    typeof(openblas_set_num_threads) *set_num_threads; /* OpenMP's build: of the calling thread */
    typeof(openblas_get_corename) *get_corename;
};

/* Open the library once for the process; it stays open. It gets one thread unless
 * OPENBLAS_NUM_THREADS is set. Any thread may call it.
 * AS_E_UNSUPPORTED: it does not open or lacks a function; the message names the package. */
AS_MUST_CHECK as_status blas_open(struct as_err *err);

/* The functions; NULL before blas_open() has succeeded. */
const struct blas *blas_get(void);

#endif
