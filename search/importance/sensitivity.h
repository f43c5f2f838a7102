/* Sobol's sensitivity indices of functions on the unit cube, by picking and freezing.
 *
 * For f with independent inputs, uniform on [0,1)^d, or uniform on the allowed part of it:
 *   first_j = Var E[f | u_j] / Var f,   total_j = E Var[f | all but u_j] / Var f.
 * A and B are two sets of points, of one scrambled Sobol sequence in twice the dimensions; A_j is A
 * with input j from B. total_j is M. Jansen's estimator ("Analysis of variance designs for model
 * output", Comput. Phys. Commun. 117, 1999), E (f(A) - f(A_j))^2 / 2 Var. first_j mixes his,
 * 1 - E (f(B) - f(A_j))^2 / 2 Var, which is good for large indices, and that of A. Saltelli et al.
 * (Comput. Phys. Commun. 181, 2010), E f(B) (f(A_j) - f(A)) / Var, good for small ones, in the
 * shares s and 1 - s where s is the first: at 512 rows the error of small indices falls from 0.01
 * to 0.0005 on Sobol's g-function.
 *
 * With `allowed` both definitions stay the same, although inputs then depend on each other: A and B
 * are the allowed points of the sequence; for the total, u_j is redrawn beside A's other inputs,
 * for the first, all but u_j beside B's u_j, from the whole cube until the point is allowed. */
#ifndef ASSAY_SEARCH_IMPORTANCE_SENSITIVITY_H
#define ASSAY_SEARCH_IMPORTANCE_SENSITIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SENSITIVITY_BLOCKS 8

struct sensitivity_problem {
    size_t d;           /* inputs */
    size_t n_functions; /* evaluated together, at least 1 */
    size_t rows;        /* of A; a multiple of SENSITIVITY_BLOCKS, best a power of two */
    uint64_t key, hi;   /* of the Philox streams and the scrambling */
    /* Fill ret (n x n_functions, row-major) with the functions at n <= rows points u (n x d). */
    as_status (*evaluate)(void *ctx, const double *u, size_t n, double *ret, struct as_err *err);
    bool (*allowed)(void *ctx, const double *u); /* is this point (d)? NULL: all are */
    void *ctx;
    /* Each function but the first sees its own resample, with replacement, of SENSITIVITY_BLOCKS
     * blocks of rows, so that indices of equal functions differ by about the error of the
     * estimators (a little more: the blocks balance each other in the whole). */
    bool resample;
};

/* Estimate the indices of some of the inputs.
 *   inputs     n_inputs numbers below d; borrowed
 *   ret_first, ret_total   n_inputs x n_functions, row-major. Not clipped: noise may move them out
 *                          of [0,1]. 0 for functions that are constant
 * AS_E_EXHAUSTED  hardly any point is allowed: fewer than 8 of 256 rows
 * AS_E_NOMEM, and the errors of `evaluate`. rows (n_inputs + 2) evaluations, with `allowed` up to 2
 * rows (n_inputs + 1). Pure. */
AS_MUST_CHECK as_status sensitivity_estimate(const struct sensitivity_problem *p,
                                             const size_t *inputs, size_t n_inputs,
                                             double *ret_first, double *ret_total,
                                             struct as_err *err);

#endif
