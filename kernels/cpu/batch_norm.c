/* Batch normalisation, in pieces of up to WIDTH channels that share nothing, so that they may run
 * side by side. A piece goes down the rows in chunks that stay in the first-level cache: within
 * one, float sums; chunks are joined in double, in order (Chan, Golub and LeVeque 1983 for the
 * variance), so x is read from memory once for the statistics and once for y. */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/clones.h"

#define WIDTH 64
#define CHUNK 64 /* rows: 16 KiB of WIDTH floats */

struct stats {
    double mean[WIDTH], spread[WIDTH]; /* spread: sum of squared differences from the mean */
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

CPU_CLONES static void chunk_mean(const float *restrict x, size_t rows, size_t jump, size_t n,
                                  float *restrict mean)
{
    float sum[WIDTH] = {0};
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < n; c++)
            sum[c] += x[r * jump + c];
    for (size_t c = 0; c < n; c++)
        mean[c] = sum[c] / (float)rows;
}

CPU_CLONES static void chunk_spread(const float *restrict x, size_t rows, size_t jump, size_t n,
                                    const float *restrict mean, float *restrict ret)
{
    float first[WIDTH] = {0}, second[WIDTH] = {0};
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < n; c++) {
            float d = x[r * jump + c] - mean[c];
            first[c] += d;
            second[c] += d * d;
        }
    }
    /* The mean was rounded: what its error added goes again. */
    for (size_t c = 0; c < n; c++)
        ret[c] = second[c] - first[c] * first[c] / (float)rows;
}

/* Join a chunk of `rows` to what `seen` rows gave. */
static void join(struct stats *s, size_t seen, const float *mean, const float *spread, size_t rows,
                 size_t n)
{
    double a = (double)seen, b = (double)rows;
    for (size_t c = 0; c < n; c++) {
        double d = (double)mean[c] - s->mean[c];
        s->mean[c] += d * (b / (a + b));
        s->spread[c] += (double)spread[c] + d * d * (a * b / (a + b));
    }
}

static void stats_of(const float *x, size_t rows, size_t jump, size_t n, struct stats *s)
{
    *s = (struct stats){0};
    for (size_t r = 0; r < rows; r += CHUNK) {
        float mean[WIDTH], spread[WIDTH];
        size_t some = smaller(rows - r, CHUNK);
        chunk_mean(x + r * jump, some, jump, n, mean);
        chunk_spread(x + r * jump, some, jump, n, mean, spread);
        join(s, r, mean, spread, some, n);
    }
}

struct affine {
    float mean[WIDTH], scale[WIDTH], shift[WIDTH]; /* y = (x - mean) scale + shift */
};

/* x may be y. */
CPU_CLONES static void apply(const struct affine *f, const float *x, float *y, size_t rows,
                             size_t jump, size_t n, act_kind act)
{
    for (size_t r = 0; r < rows; r++, x += jump, y += jump) {
        if (act == ACT_RELU) {
            for (size_t c = 0; c < n; c++) {
                float v = (x[c] - f->mean[c]) * f->scale[c] + f->shift[c];
                y[c] = v < 0.0f ? 0.0f : v;
            }
        } else {
            for (size_t c = 0; c < n; c++)
                y[c] = (x[c] - f->mean[c]) * f->scale[c] + f->shift[c];
        }
    }
}

static void follow(float *running, float momentum, double value)
{
    *running = (float)((1 - (double)momentum) * (double)*running + (double)momentum * value);
}

/* Channels [at, at + n) of member k. */
static void train_piece(const struct batch_norm_args *a, size_t k, size_t at, size_t n,
                        float momentum, float *running_mean, float *running_var)
{
    const float *x = tensor_f32(a->x, k) + at;
    const float *gamma = tensor_f32(a->gamma, k) + at, *beta = tensor_f32(a->beta, k) + at;
    float *mean = tensor_f32(a->mean, k) + at, *inv_std = tensor_f32(a->inv_std, k) + at;
    double rows = (double)a->rows;
    struct stats s;
    struct affine f;
    stats_of(x, a->rows, a->channels, n, &s);
    for (size_t c = 0; c < n; c++) {
        double var = a->rows == 0 ? 0 : s.spread[c] / rows;
        mean[c] = (float)s.mean[c];
        inv_std[c] = (float)(1 / sqrt(var + (double)a->eps));
        f.mean[c] = mean[c];
        f.scale[c] = inv_std[c] * gamma[c];
        f.shift[c] = beta[c];
        if (running_mean == NULL || a->rows == 0)
            continue;
        follow(running_mean + at + c, momentum, s.mean[c]);
        follow(running_var + at + c, momentum, a->rows > 1 ? s.spread[c] / (rows - 1) : var);
    }
    apply(&f, x, tensor_f32(a->y, k) + at, a->rows, a->channels, n, a->act);
}

as_status cpu_batch_norm_train(struct backend *be, const struct batch_norm_args *a, float momentum,
                               struct tensor running_mean, struct tensor running_var,
                               struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t c = 0; c < a->channels; c += WIDTH)
            train_piece(a, k, c, smaller(a->channels - c, WIDTH), momentum,
                        tensor_f32(running_mean, k), tensor_f32(running_var, k));
    return AS_OK;
}

static void eval_piece(const struct batch_norm_args *a, size_t k, size_t at, size_t n,
                       const float *mean, const float *var)
{
    struct affine f;
    for (size_t c = 0; c < n; c++) {
        f.mean[c] = mean[at + c];
        f.scale[c] = (float)((double)tensor_f32(a->gamma, k)[at + c] /
                             sqrt((double)var[at + c] + (double)a->eps));
        f.shift[c] = tensor_f32(a->beta, k)[at + c];
    }
    apply(&f, tensor_f32(a->x, k) + at, tensor_f32(a->y, k) + at, a->rows, a->channels, n, a->act);
}

as_status cpu_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                              struct tensor running_mean, struct tensor running_var,
                              struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t c = 0; c < a->channels; c += WIDTH)
            eval_piece(a, k, c, smaller(a->channels - c, WIDTH), tensor_f32(running_mean, k),
                       tensor_f32(running_var, k));
    return AS_OK;
}

/* ---- backward ---- */

struct slopes {
    const float *x, *dy, *y; /* y NULL: no relu */
    float mean[WIDTH], inv_std[WIDTH];
};

/* Of one chunk of rows: sum of g and of g * (x - mean), g the gradient that relu lets pass. */
CPU_CLONES static void chunk_sums(const struct slopes *s, size_t first, size_t rows, size_t jump,
                                  size_t n, float *restrict ret_sum, float *restrict ret_product)
{
    float sum[WIDTH] = {0}, product[WIDTH] = {0};
    for (size_t r = first; r < first + rows; r++) {
        const float *x = s->x + r * jump, *dy = s->dy + r * jump;
        if (s->y != NULL) {
            const float *y = s->y + r * jump;
            for (size_t c = 0; c < n; c++) {
                float g = y[c] <= 0.0f ? 0.0f : dy[c];
                sum[c] += g;
                product[c] += g * (x[c] - s->mean[c]);
            }
        } else {
            for (size_t c = 0; c < n; c++) {
                sum[c] += dy[c];
                product[c] += dy[c] * (x[c] - s->mean[c]);
            }
        }
    }
    memcpy(ret_sum, sum, n * sizeof(*sum));
    memcpy(ret_product, product, n * sizeof(*product));
}

/* dx = scale (g - base - (x - mean) tilt); dx may be dy. */
struct tilt {
    float scale[WIDTH], base[WIDTH], tilt[WIDTH];
};

CPU_CLONES static void apply_back(const struct slopes *s, const struct tilt *t, float *dx,
                                  size_t rows, size_t jump, size_t n)
{
    for (size_t r = 0; r < rows; r++, dx += jump) {
        const float *x = s->x + r * jump, *dy = s->dy + r * jump;
        if (s->y != NULL) {
            const float *y = s->y + r * jump;
            for (size_t c = 0; c < n; c++) {
                float g = y[c] <= 0.0f ? 0.0f : dy[c];
                dx[c] = t->scale[c] * (g - t->base[c] - (x[c] - s->mean[c]) * t->tilt[c]);
            }
        } else {
            for (size_t c = 0; c < n; c++)
                dx[c] = t->scale[c] * (dy[c] - t->base[c] - (x[c] - s->mean[c]) * t->tilt[c]);
        }
    }
}

static void backward_piece(const struct batch_norm_args *a, size_t k, size_t at, size_t n,
                           const float *dy, float *dx, float *dgamma, float *dbeta)
{
    struct slopes s = {.x = tensor_f32(a->x, k) + at,
                       .dy = dy + at,
                       .y = a->act == ACT_RELU ? tensor_f32(a->y, k) + at : NULL};
    memcpy(s.mean, tensor_f32(a->mean, k) + at, n * sizeof(*s.mean));
    memcpy(s.inv_std, tensor_f32(a->inv_std, k) + at, n * sizeof(*s.inv_std));
    double sums[WIDTH] = {0}, products[WIDTH] = {0}, rows = (double)a->rows;
    for (size_t r = 0; r < a->rows; r += CHUNK) {
        float sum[WIDTH], product[WIDTH];
        chunk_sums(&s, r, smaller(a->rows - r, CHUNK), a->channels, n, sum, product);
        for (size_t c = 0; c < n; c++) {
            sums[c] += (double)sum[c];
            products[c] += (double)product[c];
        }
    }
    struct tilt t;
    for (size_t c = 0; c < n; c++) {
        double inv_std = (double)s.inv_std[c];
        dbeta[at + c] = (float)sums[c];
        dgamma[at + c] = (float)(products[c] * inv_std);
        t.scale[c] = tensor_f32(a->gamma, k)[at + c] * s.inv_std[c];
        t.base[c] = (float)(sums[c] / rows);
        t.tilt[c] = (float)(products[c] * inv_std * inv_std / rows);
    }
    apply_back(&s, &t, dx + at, a->rows, a->channels, n);
}

as_status cpu_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t c = 0; c < a->channels; c += WIDTH)
            backward_piece(a, k, c, smaller(a->channels - c, WIDTH), tensor_f32(dy, k),
                           tensor_f32(dx, k), tensor_f32(dgamma, k), tensor_f32(dbeta, k));
    return AS_OK;
}
