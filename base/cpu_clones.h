/* CPU_CLONES before a function compiles it three times: for any x86-64, for AVX2 with FMA and for
 * AVX-512. The loader chooses one, so the same binary runs on every processor and uses the widest
 * vectors of each.
 *
 * It does nothing under sanitizers (Meson sets ASSAY_NO_CLONES there): the loader would choose
 * before they are initialised. */
#ifndef ASSAY_BASE_CPU_CLONES_H
#define ASSAY_BASE_CPU_CLONES_H

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(ASSAY_NO_CLONES)
#define CPU_HAS_CLONES 1
#define CPU_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define CPU_CLONES
#endif

/* For functions that a clone calls: they must be inlined to be compiled for the clone's target. */
#define CPU_INLINE static inline __attribute__((always_inline))

#endif
