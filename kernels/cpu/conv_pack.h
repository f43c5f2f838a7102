/* Copies of matrices into panels and of images into padded images, for convolution. */
#ifndef ASSAY_KERNELS_CPU_CONV_PACK_H
#define ASSAY_KERNELS_CPU_CONV_PACK_H

#include "kernels/cpu/conv.h"

/* src [rows, cols], row-major, into panels: each [rows][width], one after another. */
void conv_pack(const struct conv_tile *t, const float *src, size_t rows, size_t cols, float *dst);

/* src [rows, cols] transposed, [cols, rows], into panels. */
void conv_pack_transposed(const struct conv_tile *t, const float *src, size_t rows, size_t cols,
                          float *dst);

/* Copy the part of x that block b reads into images of `rows` rows of wp pixels, padded with
 * zeros. */
void conv_pad(const struct conv_plan *p, const struct conv_block *b, const float *x, float *dst);

/* The reverse for a block of dx: copy the pixels inside the image. */
void conv_unpad(const struct conv_plan *p, const struct conv_block *b, const float *src, float *dx);

/* sum[o] += over the rows of src [rows, cols], `jump` floats apart, in their order. */
void conv_sum_rows(const float *src, size_t rows, size_t cols, size_t jump, float *sum);

/* dst [rows, cols] = the sum, in their order, of n matrices in panels, `jump` floats apart. */
void conv_merge(const struct conv_tile *t, const float *src, size_t n, size_t jump, size_t rows,
                size_t cols, float *dst);

#endif
