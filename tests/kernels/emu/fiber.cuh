/* Fibers: each has its own stack; all run in one thread of the system and switch explicitly. */
#ifndef ASSAY_TESTS_KERNELS_EMU_FIBER_CUH
#define ASSAY_TESTS_KERNELS_EMU_FIBER_CUH

#include <stddef.h>

/* n fibers that run `main` when first resumed; `main` never returns. They are never freed. */
void fibers_create(size_t n, void (*main)(void));

/* Run fiber i until it yields. Call it from outside any fiber. */
void fiber_resume(size_t i);

/* Switch back to the caller of the resume of this fiber. */
void fiber_yield(void);

#endif
