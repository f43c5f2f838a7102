/* The two inner products of a convolution, in registers: written once with gcc's vectors
 * (conv_tile_body.inc) and compiled for three instruction sets. The first call of conv_tile()
 * chooses.
 *
 * A *panel* is a matrix of few columns, dense, each row a whole number of vectors: `cols` wide, or
 * half of that where the used columns fit. The columns beyond them are zero. */
#ifndef ASSAY_KERNELS_CPU_CONV_TILE_H
#define ASSAY_KERNELS_CPU_CONV_TILE_H

#include <stdbool.h>
#include <stddef.h>

#define CONV_TILE_ROWS_MAX 8

/* to[r][c] = sum over the patch of from[r] of patch[i] panel[i][c]. A patch is `runs` pieces of
 * `run` floats, `jump` floats from one to the next. */
struct pixel_tile {
    const float *from[CONV_TILE_ROWS_MAX]; /* all `rows` of struct conv_tile must be readable */
    float *to[CONV_TILE_ROWS_MAX];         /* written in order: they may overlap when added to */
    size_t rows;                           /* the number of rows that are written */
    size_t runs, run, jump;
    const float *panel; /* [runs * run][width] */
    const float *start; /* [width]: start values of the sums; NULL: the sums are added to `to` */
    size_t cols;        /* the number of columns that are written */
    bool relu;          /* max(0, result); NaN stays */
};

/* sum[r][c] += sum over pixels p of from[r][at(p)] panel[p][c]. Pixels are images of height x
 * width; at(p) = image * image_jump + y * row_jump + x * pixel_jump. */
struct weight_tile {
    const float *from[CONV_TILE_ROWS_MAX];
    size_t rows;
    size_t images, height, width;
    size_t image_jump, row_jump, pixel_jump;
    const float *panel; /* [pixels][width of panel] */
    float *sum;         /* [rows][width of panel] */
    size_t cols;        /* width of the panel */
};

struct conv_tile {
    size_t rows;  /* pixels, or rows of the weight, at once */
    size_t cols;  /* of a whole panel */
    size_t lanes; /* cols / 2: width of a panel whose used columns fit in it */
    void (*pixels)(const struct pixel_tile *t);
    void (*weights)(const struct weight_tile *t);
    /* Columns of src, `jump` floats from row to row, into one panel. */
    void (*pack)(const float *src, size_t rows, size_t jump, size_t cols, float *panel);
};

/* The best tile that this machine can run. */
const struct conv_tile *conv_tile(void);

/* Width of the panel that begins at column `at` of n. */
static inline size_t conv_panel_width(const struct conv_tile *t, size_t at, size_t n)
{
    return n - at > t->lanes ? t->cols : t->lanes;
}

/* Columns of the panels for n columns, padding included. */
static inline size_t conv_panel_cols(const struct conv_tile *t, size_t n)
{
    return (n + t->lanes - 1) / t->lanes * t->lanes;
}

#endif
