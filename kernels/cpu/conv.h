/* How a dense convolution is cut up on the host, from its sizes alone: the pieces, and so the order
 * of every sum, depend neither on the members nor on who runs them.
 *
 * A *block* is some whole images, or a band of one image's output rows, small enough for what it
 * reads and writes to stay in the second-level cache. *Slices* are runs of blocks (SLICES at most):
 * each has room of its own in the workspace, so that slices may run side by side. */
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
    size_t run, patch;         /* KW C: what lies side by side; KH KW C: rows of the weight */
    size_t out_cols, run_cols; /* O and `run` in panels */
    size_t pass;               /* rows of the kernel in one pass over the pixels */
    size_t group, band;        /* images and output rows of a block: one of the two is whole */
    size_t dx_band;            /* rows of the padded input of a block of dx */
    size_t blocks, dx_blocks;
    size_t slices, dx_slices;   /* of forward, of dx */
    size_t dw_slices, dw_parts; /* dw: slices of images, each in parts of the weight's rows */
    /* Floats of workspace. */
    size_t x_room, dy_room, dx_room, dw_room; /* of a slice or part */
    size_t forward_work, dw_work, dx_work;
};

struct conv_plan conv_plan(const struct conv_args *a);

struct conv_block {
    size_t image, images; /* which */
    size_t row, rows;     /* which rows of the output (of the padded input for dx) */
};

struct conv_block conv_block(const struct conv_plan *p, size_t i);
struct conv_block conv_dx_block(const struct conv_plan *p, size_t i);

#endif
