/* Copies from the device's memory into shared memory that pass no register and go on while the
 * thread computes (Ampere and newer; elsewhere they are done at once). */
#ifndef ASSAY_KERNELS_CUDA_ASYNC_CUH
#define ASSAY_KERNELS_CUDA_ASYNC_CUH

#include "kernels/cuda/cuda.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define COPIES_ARE_ASYNCHRONOUS
#endif

/* W floats, or zeros if not `present`; W is 1 or 4, and both addresses are multiples of W floats.
 * `from` is not read when absent, but it must be an address of the device's memory. */
template <int W>
__device__ static inline void copy_async(float *to, const float *from, bool present)
{
#ifdef COPIES_ARE_ASYNCHRONOUS
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (W == 4) /* past L1: every block reads other rows */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                     "r"(present ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from),
                     "r"(present ? 4 : 0)
                     : "memory");
#else
    for (int i = 0; i < W; i++)
        to[i] = present ? from[i] : 0.0f;
#endif
}

/* All copies of the block have come, and every thread has read what it wanted. */
__device__ static inline void copies_arrive(void)
{
#ifdef COPIES_ARE_ASYNCHRONOUS
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

#endif
