/* Fibers: stacks of their own in one thread of the system, switched by hand. */
#ifndef ASSAY_TESTS_KERNELS_EMU_FIBER_CUH
#define ASSAY_TESTS_KERNELS_EMU_FIBER_CUH

#include <stddef.h>

/* n fibers that run `main` when first resumed; `main` never returns. Kept for good. */
void fibers_create(size_t n, void (*main)(void));

/* Run fiber i until it yields; from outside any fiber. */
void fiber_resume(size_t i);

/* Back to who resumed this fiber. */
void fiber_yield(void);

#endif
