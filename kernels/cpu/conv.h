/* How a dense convolution is cut into pieces on the host. Its sizes alone decide: the pieces, and
 * so the order of every sum, depend neither on the number of members nor on the threads.
 *
 * A *block* is some whole images, or a band of one image's output rows, so small that the data that
 * it reads and writes stays in the second-level cache. A *slice* is a run of blocks. There are at
 * most SLICES of them, and each has its own part of the workspace, so they may run side by side. */
#ifndef ASSAY_KERNELS_CPU_CONV_H
#define ASSAY_KERNELS_CPU_CONV_H

#include "kernels/cpu/conv_tile.h"
#include "kernels/cpu/cpu.h"

/* The depthwise ones need no workspace. */
as_status cpu_depthwise_forward(struct backend *be, const struct conv_args *a, act_kind act,
                                struct tensor y, struct tensor z);
as_status cpu_depthwise_backward(struct backend *be, const struct conv_args *a,
                                 const struct conv_grads *g);

struct conv_plan {
    const struct conv_args *a;
    const struct conv_tile *tile;
    size_t oh, ow;             /* of the output */
    size_t hp, wp;             /* of the input with its padding */
    size_t run, patch;         /* KW C: floats in a row; KH KW C: rows of the weight */
    size_t out_cols, run_cols; /* O and `run` in panels */
    size_t pass;               /* rows of the kernel in one pass over the pixels */
    size_t group, band;        /* images and output rows of a block: one of the two is whole */
    size_t dx_band;            /* rows of the padded input of a block of dx */
    size_t blocks, dx_blocks;
    size_t slices, dx_slices;   /* of forward, of dx */
    size_t dw_slices, dw_parts; /* dw: slices of images, each in parts of the weight's rows */
    /* Floats of workspace. */
    size_t x_size, dy_size, dx_size, dw_size; /* for each slice or part */
    size_t forward_work, dw_work, dx_work;
};

struct conv_plan conv_plan(const struct conv_args *a);

struct conv_block {
    size_t image, images; /* the first, and how many */
    size_t row, rows; /* rows of the output (for dx of the padded input): the first, and how many */
};

struct conv_block conv_block(const struct conv_plan *p, size_t i);
struct conv_block conv_dx_block(const struct conv_plan *p, size_t i);

#endif
