/* Adam's inner loop, with coupled and with decoupled decay. */
#ifndef ASSAY_KERNELS_CPU_ADAM_H
#define ASSAY_KERNELS_CPU_ADAM_H

#include <stddef.h>

/* One step of one member, worked out once:
 *   grad = g + couple p
 *   m1   = beta1 m1 + rest1 grad,  m2 = beta2 m2 + rest2 grad^2, below least1 and least2: 0
 *   p    = keep p - rate m1 / (root sqrt(m2) + eps) */
struct adam {
    float couple, keep;
    float beta1, rest1, least1;
    float beta2, rest2, least2;
    float rate, root, eps;
};

/* n places; the four overlap nowhere. Each is worked out by itself: its bits do not depend on how
 * the arena is cut. Root and quotient are within 2 units in the last place. */
void cpu_adam(const struct adam *h, float *p, const float *g, float *m1, float *m2, size_t n);

#endif
