/* Adam's inner loop, with coupled and with decoupled decay. */
#ifndef ASSAY_KERNELS_CPU_ADAM_H
#define ASSAY_KERNELS_CPU_ADAM_H

#include <stddef.h>

/* One step of one member, worked out once:
 *   grad = g + couple p
 *   m1   = beta1 m1 + rest1 grad,  m2 = beta2 m2 + rest2 grad^2
 *   p    = keep p - rate m1 / (root sqrt(m2) + eps)
 * A moment that is subnormal becomes 0; whether one below least1 or least2 does is not promised. */
struct adam {
    float couple, keep;
    float beta1, rest1, least1;
    float beta2, rest2, least2;
    float rate, root, eps;
};

/* n places; the four overlap nowhere. Each is worked out by itself: its bits do not depend on how
 * the arena is cut. p moves by the move above within 5e-7 of itself. */
void cpu_adam(const struct adam *h, float *p, const float *g, float *m1, float *m2, size_t n);

#endif
