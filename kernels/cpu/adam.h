/* Adam's inner loop, with coupled and with decoupled decay. */
#ifndef ASSAY_KERNELS_CPU_ADAM_H
#define ASSAY_KERNELS_CPU_ADAM_H

#include <stddef.h>

/* The constants of one step of one member, computed once:
 *   grad = g + couple p
 *   m1   = beta1 m1 + rest1 grad,  m2 = beta2 m2 + rest2 grad^2
 *   p    = keep p - rate m1 / (root sqrt(m2) + eps)
 * A subnormal moment becomes 0. Not promised: whether a moment below least1 or least2 does. */
struct adam {
    float couple, keep;
    float beta1, rest1, least1;
    float beta2, rest2, least2;
    float rate, root, eps;
};

/* Update n parameters. The four arrays must not overlap. Each parameter is computed by itself, so
 * its bits do not depend on how the arena is cut. The change of p is the one above within a
 * relative error of 5e-7. */
void cpu_adam(const struct adam *h, float *p, const float *g, float *m1, float *m2, size_t n);

#endif
