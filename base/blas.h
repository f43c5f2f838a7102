/* OpenBLAS, opened at run time by who computes with it: the surrogate models of the search, and
 * matrix products on processors without AVX2. Loading it takes a third of the time that a program
 * needs to start, and it starts a thread for each CPU when it is loaded; most commands of `assay`
 * and all trials on other processors never call it. */
#ifndef ASSAY_BASE_BLAS_H
#define ASSAY_BASE_BLAS_H

#include <cblas.h>

#include "base/status.h"

/* The functions that somebody calls, as cblas.h has them. */
struct blas {
    typeof(cblas_sgemm) *sgemm;
    typeof(cblas_dgemm) *dgemm;
    typeof(cblas_dgemv) *dgemv;
    typeof(cblas_dsymm) *dsymm;
    typeof(cblas_dsyrk) *dsyrk;
    typeof(cblas_dtrsv) *dtrsv;
    typeof(cblas_ddot) *ddot;
    typeof(cblas_daxpy) *daxpy;
    /* OpenMP's build: of the calling thread */
    typeof(openblas_get_num_threads) *get_num_threads;
    typeof(openblas_set_num_threads) *set_num_threads;
    typeof(openblas_get_corename) *get_corename;
};

/* Open the library once for the process; it stays open. It gets one thread unless
 * OPENBLAS_NUM_THREADS is set. Any thread may call it.
 * AS_E_UNSUPPORTED: it does not open or lacks a function; the message names the package. */
AS_MUST_CHECK as_status blas_open(struct as_err *err);

/* The functions; NULL before blas_open() has succeeded. */
const struct blas *blas_get(void);

/* The functions; opens the library if nobody has. Where it does not open, the process ends as one
 * does at its start that is linked with a library that is missing: with a message on stderr and
 * exit code 127. A program whose users should read it earlier calls blas_open() at its start. */
const struct blas *blas_need(void);

#endif
