/* OpenBLAS as the regression uses it. */
#ifndef ASSAY_SEARCH_REGRESSION_BLAS_THREAD_PRIV_H
#define ASSAY_SEARCH_REGRESSION_BLAS_THREAD_PRIV_H

#include "base/blas.h"

/* One thread, because more are slower at these sizes, and because the bits of a result depend on
 * their number. Cheap if it is already set. */
static inline void gp_blas_one_thread(void)
{
    const struct blas *blas = blas_need();
    if (blas->get_num_threads() != 1)
        blas->set_num_threads(1);
}

#endif
