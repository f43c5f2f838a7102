/* Replaces CUDA's header of this name where kernels/cuda is compiled for the host: see emu.cuh. */
#ifndef ASSAY_TESTS_KERNELS_EMU_CUDA_RUNTIME_H
#define ASSAY_TESTS_KERNELS_EMU_CUDA_RUNTIME_H

#ifdef __cplusplus
#include "tests/kernels/emu/emu.cuh"
#endif

#endif
