/* Layer normalisation, forward and backward.
 *
 * Sums over a row are kept in LANES doubles, which are added in a fixed order. Sums over the rows
 * (the gradients of gamma and beta) are doubles for a block of columns at a time, in the order of
 * the rows. So the bits depend neither on the instruction set nor on the threads. dx may be dy, so
 * the gradients of gamma and beta are computed first. */
#include "kernels/cpu/cpu.h"

#include <assert.h>
#include <math.h>

#include "base/cpu_clones.h"

#define LANES 16
#define COLUMNS 64

CPU_INLINE double add_lanes(const double lane[LANES])
{
    double sum = 0;
    for (size_t j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

CPU_INLINE double row_sum(const float *x, size_t n)
{
    double lane[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++)
            lane[j] += (double)x[i + j];
    }
    return add_lanes(lane);
}

CPU_INLINE double row_squares(const float *x, double mean, size_t n)
{
    double lane[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++)
            lane[j] += ((double)x[i + j] - mean) * ((double)x[i + j] - mean);
    }
    return add_lanes(lane);
}

/* Rows of one member; each pointer is at the first of them. */
struct norm {
    const float *x, *gamma, *beta;
    float *mean, *inv_std;
    size_t rows, width;
    float eps;
};

/* A pass over all members, cut into tiles of rows, or of COLUMNS columns. */
struct pass {
    const struct layer_norm_args *a;
    struct tensor y; /* forward */
    struct tensor dy, dx, dgamma, dbeta;
    size_t tile_rows, tiles; /* of a member */
};

static struct norm norm_of(const struct layer_norm_args *a, size_t k, size_t first, size_t rows)
{
    /* ops_seq.c has checked this. */
    assert(a->x.buf != NULL && a->gamma.buf != NULL && a->beta.buf != NULL);
    assert(a->mean.buf != NULL && a->inv_std.buf != NULL);
    return (struct norm){tensor_f32(a->x, k) + first * a->width,
                         tensor_f32(a->gamma, k),
                         tensor_f32(a->beta, k),
                         tensor_f32(a->mean, k) + first,
                         tensor_f32(a->inv_std, k) + first,
                         rows,
                         a->width,
                         a->eps};
}

static void cut_rows(struct pass *p)
{
    p->tile_rows = CPU_CHUNK / (p->a->width + 1) + 1;
    p->tiles = (p->a->rows + p->tile_rows - 1) / p->tile_rows;
}

/* The rows of tile i of a member; *ret_first is the number of the first. */
static struct norm tile_of(const struct pass *p, size_t k, size_t i, size_t *ret_first)
{
    size_t first = i * p->tile_rows, left = p->a->rows - first;
    *ret_first = first;
    return norm_of(p->a, k, first, left < p->tile_rows ? left : p->tile_rows);
}

CPU_CLONES static void forward_rows(const struct norm *m, float *y)
{
    double n = m->width > 0 ? (double)m->width : 1;
    const float *gamma = m->gamma, *beta = m->beta;
    for (size_t r = 0; r < m->rows; r++) {
        const float *x = m->x + r * m->width;
        double mean = row_sum(x, m->width) / n;
        double inv_std = 1 / sqrt(row_squares(x, mean, m->width) / n + (double)m->eps);
        m->mean[r] = (float)mean;
        m->inv_std[r] = (float)inv_std;
        float *to = y + r * m->width, middle = (float)mean, scale = (float)inv_std;
        for (size_t d = 0; d < m->width; d++)
            to[d] = (x[d] - middle) * scale * gamma[d] + beta[d];
    }
}

static void forward_tile(void *arg, size_t i)
{
    const struct pass *p = arg;
    size_t k = i / p->tiles, first;
    struct norm m = tile_of(p, k, i % p->tiles, &first);
    forward_rows(&m, tensor_f32(p->y, k) + first * m.width);
}

as_status cpu_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                 struct tensor y, struct as_err *err)
{
    (void)err;
    struct pass p = {.a = a, .y = y};
    cut_rows(&p);
    cpu_split(be, a->members * p.tiles, forward_tile, &p);
    return AS_OK;
}

/* Columns [first, first + len), len <= COLUMNS. */
CPU_CLONES static void backward_params(const struct norm *m, size_t first, size_t len,
                                       const float *dy, float *dgamma, float *dbeta)
{
    double by_gamma[COLUMNS] = {0}, by_beta[COLUMNS] = {0};
    for (size_t r = 0; r < m->rows; r++) {
        const float *x = m->x + r * m->width + first, *g = dy + r * m->width + first;
        float mean = m->mean[r], inv_std = m->inv_std[r];
        for (size_t d = 0; d < len; d++) {
            by_gamma[d] += (double)(g[d] * ((x[d] - mean) * inv_std));
            by_beta[d] += (double)g[d];
        }
    }
    for (size_t d = 0; d < len; d++) {
        dgamma[first + d] = (float)by_gamma[d];
        dbeta[first + d] = (float)by_beta[d];
    }
}

static void params_tile(void *arg, size_t i)
{
    const struct pass *p = arg;
    size_t k = i / p->tiles, first = i % p->tiles * COLUMNS, left = p->a->width - first;
    struct norm m = norm_of(p->a, k, 0, p->a->rows);
    backward_params(&m, first, left < COLUMNS ? left : COLUMNS, tensor_f32(p->dy, k),
                    tensor_f32(p->dgamma, k), tensor_f32(p->dbeta, k));
}

/* With g = dy gamma: dx = inv_std * (g - mean(g) - x_hat mean(g x_hat)). dx may be dy. */
CPU_CLONES static void backward_rows(const struct norm *m, const float *dy, float *dx)
{
    const float *gamma = m->gamma;
    for (size_t r = 0; r < m->rows; r++) {
        const float *x = m->x + r * m->width, *g = dy + r * m->width;
        float mean = m->mean[r], inv_std = m->inv_std[r];
        double sum[LANES] = {0}, along[LANES] = {0};
        for (size_t i = 0; i < m->width; i += LANES) {
            size_t len = m->width - i < LANES ? m->width - i : LANES;
            for (size_t j = 0; j < len; j++) {
                float by_x_hat = g[i + j] * gamma[i + j];
                sum[j] += (double)by_x_hat;
                along[j] += (double)(by_x_hat * ((x[i + j] - mean) * inv_std));
            }
        }
        float middle = (float)(add_lanes(sum) / (double)m->width);
        float slope = (float)(add_lanes(along) / (double)m->width);
        float *to = dx + r * m->width;
        for (size_t d = 0; d < m->width; d++)
            to[d] = inv_std * (g[d] * gamma[d] - middle - (x[d] - mean) * inv_std * slope);
    }
}

static void backward_tile(void *arg, size_t i)
{
    const struct pass *p = arg;
    size_t k = i / p->tiles, first;
    struct norm m = tile_of(p, k, i % p->tiles, &first);
    backward_rows(&m, tensor_f32(p->dy, k) + first * m.width,
                  tensor_f32(p->dx, k) + first * m.width);
}

as_status cpu_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err)
{
    (void)err;
    struct pass p = {.a = a, .dy = dy, .dx = dx, .dgamma = dgamma, .dbeta = dbeta};
    p.tiles = (a->width + COLUMNS - 1) / COLUMNS;
    cpu_split(be, a->members * p.tiles, params_tile, &p);
    cut_rows(&p); /* after the sums above: dx may be dy */
    cpu_split(be, a->members * p.tiles, backward_tile, &p);
    return AS_OK;
}
