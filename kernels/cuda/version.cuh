/* What differs between the versions of CUDA that this plugin is built with: 12 and 13. Everything
 * else that the files here call has one form in both: graphs with flags (since 12.0), events,
 * cublasLt's attributes (since 11.3). It is built with 13; 12 was read about and not tried. CUDA 11
 * is refused, because its cudaGraphInstantiate() takes other arguments.
 *
 * A program that was built with CUDA N runs on each driver of the same N and on newer ones (NVIDIA,
 * "CUDA Compatibility", minor version compatibility). */
#ifndef ASSAY_KERNELS_CUDA_VERSION_CUH
#define ASSAY_KERNELS_CUDA_VERSION_CUH

#include <cuda_runtime.h>

#if CUDART_VERSION < 12000
#error "the CUDA plugin needs CUDA 12 or newer"
#endif

/* The oldest NVIDIA driver for Linux of this major version of CUDA. */
#if CUDART_VERSION < 13000
#define CUDA_OLDEST_DRIVER "525"
#else
#define CUDA_OLDEST_DRIVER "580"
#endif

/* Where the kernel module says its version, such as "550.54.15". */
#ifndef CUDA_DRIVER_VERSION_FILE
#define CUDA_DRIVER_VERSION_FILE "/sys/module/nvidia/version"
#endif

#endif
