/* The end of a linear layer's forward pass: bias, activation, and the input kept for gelu. */
#ifndef ASSAY_KERNELS_CPU_ACTIVATION_H
#define ASSAY_KERNELS_CPU_ACTIVATION_H

#include "kernels/ops_dense.h"

/* y [rows, cols], a row every ld elements, holds x w and becomes act(y + b). b [cols], or NULL; z
 * (a row every ld elements too) receives y + b, or NULL. z may be y when act is ACT_NONE. */
void cpu_bias_act(act_kind act, float *y, const float *b, float *z, size_t rows, size_t cols,
                  size_t ld);

#endif
