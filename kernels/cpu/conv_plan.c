/* Cuts a dense convolution into blocks, slices and parts (conv.h) and computes its workspace.
 *
 * A block is as large as the second-level cache allows, but has at least PIXELS pixels, because
 * each block reads the whole weight. dw has few slices, since each needs room for its own sum of
 * the weight; where there are too few for the threads, the rows of the weight are cut into parts as
 * well. All of this depends on the sizes alone, never on the number of threads, so the bits do not
 * either. */
#include "kernels/cpu/conv.h"

/* Floats that a block reads or writes: 128 KiB, so that both sides and a panel fit the 512 KiB that
 * a small second-level cache has. */
#define BLOCK 32768
/* A block has at least this many pixels, because each block reads the whole weight. */
#define PIXELS 128
/* Floats that a pass over a panel of the weight reads at most: 128 KiB, to stay in the same
 * cache. */
#define PASS 32768
#define SLICES 8
/* Parts of dw for each missing slice, so that there are enough pieces of work. */
#define PARTS 4
/* Floats of all partial sums of dw together: 8 MiB. */
#define PARTIAL (1u << 21)
/* A part of dw packs its dy again. This pays only with at least this many rows of the weight. */
#define PART_ROWS 64

static size_t at_least_1(size_t n)
{
    return n == 0 ? 1 : n;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t ceil_div(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/* Rounded up to whole vectors, so that pieces of the workspace begin at multiples of 64 bytes. */
static size_t room(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

/* Cut n into equal pieces of at most `most`. */
static size_t even(size_t n, size_t most)
{
    return at_least_1(ceil_div(n, at_least_1(ceil_div(n, at_least_1(most)))));
}

static void cut(struct conv_plan *p)
{
    const struct conv_args *a = p->a;
    size_t in = p->hp * p->wp * a->channels, out = p->oh * p->ow * p->out_cols;
    size_t image = at_least_1(larger(in, out));
    p->group = p->band = 1;
    p->dx_band = p->hp;
    if (image <= BLOCK) {
        /* At least one block for each slice, if the batch has so many images. */
        size_t least = ceil_div(PIXELS, at_least_1(p->oh * p->ow));
        size_t share = ceil_div(a->batch, SLICES);
        p->group = even(a->batch, larger(least, smaller(BLOCK / image, share)));
        p->band = at_least_1(p->oh);
    } else {
        size_t row = larger(a->stride * p->wp * a->channels, p->ow * p->out_cols);
        p->band = even(p->oh, BLOCK / at_least_1(row));
        p->dx_band = even(p->hp, BLOCK / at_least_1(p->wp * a->channels));
    }
    size_t groups = ceil_div(a->batch, p->group);
    p->blocks = groups * ceil_div(p->oh, p->band);
    p->dx_blocks = groups * ceil_div(p->hp, p->dx_band);
    p->slices = smaller(SLICES, p->blocks);
    p->dx_slices = smaller(SLICES, p->dx_blocks);
    size_t dw = at_least_1(p->patch * p->out_cols);
    p->dw_slices = smaller(p->slices, at_least_1(PARTIAL / dw));
    p->dw_parts = smaller(SLICES / at_least_1(p->dw_slices), at_least_1(p->patch / PART_ROWS));
}

static void measure(struct conv_plan *p)
{
    const struct conv_args *a = p->a;
    size_t in_rows = p->oh == 0 ? 0 : (p->band - 1) * a->stride + a->kernel_h;
    p->x_size = a->pad == 0 ? 0 : room(p->group * in_rows * p->wp * a->channels);
    p->dy_size = room(p->group * p->band * p->ow * p->out_cols);
    p->dx_size = a->pad == 0 ? 0 : room(p->group * p->dx_band * p->wp * a->channels);
    p->dw_size = room((p->patch + 1) * p->out_cols);
    p->forward_work = room((p->patch + 1) * p->out_cols) + p->slices * p->x_size;
    p->dw_work = p->dw_slices * (p->dw_size + p->dw_parts * (p->x_size + p->dy_size));
    p->dx_work = room(a->kernel_h * a->out * p->run_cols) + p->dx_slices * p->dx_size;
}

struct conv_plan conv_plan(const struct conv_args *a)
{
    struct conv_plan p = {
        .a = a,
        .tile = conv_tile(),
        .oh = conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
        .ow = conv_out_len(a->width, a->kernel_w, a->stride, a->pad),
        .hp = a->height + 2 * a->pad,
        .wp = a->width + 2 * a->pad,
        .run = a->kernel_w * a->channels,
        .patch = a->kernel_h * a->kernel_w * a->channels,
    };
    if (p.ow == 0)
        p.oh = 0;
    p.out_cols = conv_panel_cols(p.tile, a->out);
    p.run_cols = conv_panel_cols(p.tile, p.run);
    p.pass = at_least_1(PASS / at_least_1(p.run * p.tile->cols));
    cut(&p);
    measure(&p);
    return p;
}

static struct conv_block block_of(const struct conv_plan *p, size_t i, size_t rows, size_t band)
{
    size_t bands = at_least_1(ceil_div(rows, band));
    struct conv_block b = {.image = i / bands * p->group, .row = i % bands * band};
    b.images = smaller(p->group, p->a->batch - b.image);
    b.rows = smaller(band, rows - b.row);
    return b;
}

struct conv_block conv_block(const struct conv_plan *p, size_t i)
{
    return block_of(p, i, p->oh, p->band);
}

struct conv_block conv_dx_block(const struct conv_plan *p, size_t i)
{
    return block_of(p, i, p->hp, p->dx_band);
}
