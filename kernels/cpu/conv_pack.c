#include "kernels/cpu/conv_pack.h"

#include <string.h>

#include "base/cpu_clones.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void conv_pack(const struct conv_tile *t, const float *src, size_t rows, size_t cols, float *dst)
{
    for (size_t c = 0; c < cols; c += t->cols) {
        size_t width = conv_panel_width(t, c, cols);
        t->pack(src + c, rows, cols, smaller(cols - c, width), dst);
        dst += rows * width;
    }
}

void conv_pack_transposed(const struct conv_tile *t, const float *src, size_t rows, size_t cols,
                          float *dst)
{
    for (size_t r = 0; r < rows; r += t->cols) {
        size_t width = conv_panel_width(t, r, rows), n = smaller(rows - r, width);
        for (size_t c = 0; c < cols; c++) {
            for (size_t i = 0; i < n; i++)
                dst[c * width + i] = src[(r + i) * cols + c];
            for (size_t i = n; i < width; i++)
                dst[c * width + i] = 0;
        }
        dst += cols * width;
    }
}

void conv_pad(const struct conv_plan *p, const struct conv_block *b, const float *x, float *dst)
{
    const struct conv_args *a = p->a;
    size_t c = a->channels, line = a->width * c, edge = a->pad * c;
    size_t rows = (b->rows - 1) * a->stride + a->kernel_h;
    for (size_t n = b->image; n < b->image + b->images; n++) {
        for (size_t r = b->row * a->stride; r < b->row * a->stride + rows; r++) {
            if (r < a->pad || r - a->pad >= a->height) {
                memset(dst, 0, p->wp * c * sizeof(*dst));
            } else {
                memset(dst, 0, edge * sizeof(*dst));
                memcpy(dst + edge, x + (n * a->height + r - a->pad) * line, line * sizeof(*dst));
                memset(dst + edge + line, 0, edge * sizeof(*dst));
            }
            dst += p->wp * c;
        }
    }
}

void conv_unpad(const struct conv_plan *p, const struct conv_block *b, const float *src, float *dx)
{
    const struct conv_args *a = p->a;
    size_t line = a->width * a->channels;
    for (size_t n = b->image; n < b->image + b->images; n++) {
        for (size_t r = b->row; r < b->row + b->rows; r++) {
            if (r >= a->pad && r - a->pad < a->height)
                memcpy(dx + (n * a->height + r - a->pad) * line, src + a->pad * a->channels,
                       line * sizeof(*dx));
            src += p->wp * a->channels;
        }
    }
}

CPU_CLONES void conv_sum_rows(const float *restrict src, size_t rows, size_t cols, size_t jump,
                              float *restrict sum)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            sum[c] += src[r * jump + c];
}

CPU_CLONES static void merge_row(const float *restrict src, size_t n, size_t jump, size_t cols,
                                 float *restrict dst)
{
    for (size_t c = 0; c < cols; c++)
        dst[c] = n == 0 ? 0 : src[c];
    for (size_t i = 1; i < n; i++)
        for (size_t c = 0; c < cols; c++)
            dst[c] += src[i * jump + c];
}

void conv_merge(const struct conv_tile *t, const float *src, size_t n, size_t jump, size_t rows,
                size_t cols, float *dst)
{
    for (size_t c = 0; c < cols; c += t->cols) {
        size_t width = conv_panel_width(t, c, cols);
        for (size_t r = 0; r < rows; r++)
            merge_row(src + r * width, n, jump, smaller(cols - c, width), dst + r * cols + c);
        src += rows * width;
    }
}
