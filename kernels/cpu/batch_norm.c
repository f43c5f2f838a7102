/* Batch normalisation in pieces. A piece is some channels of a member; pieces share nothing and run
 * side by side. A piece goes down the rows in chunks that stay in the first-level cache. Sums
 * within a chunk are float. Chunks are joined in double, in order (the variance after Chan, Golub
 * and LeVeque 1983). So x is read from memory once for the statistics and once for y. */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"

#define WIDTH 64 /* channels of a piece */
#define CHUNK 32 /* rows */

struct affine {
    float mean[WIDTH], scale[WIDTH], shift[WIDTH]; /* y = (x - mean) scale + shift */
    bool relu;
};

/* dx = scale (g - base - (x - mean) tilt), g is the part of dy that relu passes on. */
struct slopes {
    float mean[WIDTH], scale[WIDTH], base[WIDTH], tilt[WIDTH];
};

/* The inputs of backward, at the first channel of a piece; y NULL: no relu. */
struct rows {
    const float *x, *dy, *y;
};

struct norm_loops {
    size_t lanes;
    void (*stats)(const float *x, size_t rows, size_t jump, float *ret_mean, float *ret_spread);
    void (*apply)(const struct affine *f, size_t c, const float *x, float *y, size_t rows,
                  size_t jump);
    void (*sums)(const struct slopes *s, size_t c, const struct rows *in, size_t rows, size_t jump,
                 float *ret_sum, float *ret_product);
    void (*back)(const struct slopes *s, size_t c, const struct rows *in, size_t rows, size_t jump,
                 float *dx);
};

#define VEC_BODY "kernels/cpu/batch_norm_body.inc"
#define VEC_LOOPS struct norm_loops
#include "kernels/cpu/vec_widths.inc"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

struct stats {
    double mean[WIDTH], spread[WIDTH]; /* spread: sum of squared differences from the mean */
};

/* Add the statistics of a chunk of `rows` to those of the `seen` rows before it. */
CPU_CLONES static void join_chunk(struct stats *s, size_t seen, const float *mean,
                                  const float *spread, size_t rows, size_t n)
{
    double part = (double)rows / (double)(seen + rows), both = (double)seen * part;
    for (size_t c = 0; c < n; c++) {
        double d = (double)mean[c] - s->mean[c];
        s->mean[c] += d * part;
        s->spread[c] += (double)spread[c] + d * d * both;
    }
}

/* Channels [at, at + n) of member k. */
struct piece {
    size_t k, at, n;
};

static void stats_of(const struct batch_norm_args *a, const struct piece *p, struct stats *s)
{
    const float *x = tensor_f32(a->x, p->k) + p->at;
    *s = (struct stats){{0}, {0}};
    for (size_t r = 0; r < a->rows; r += CHUNK, x += CHUNK * a->channels) {
        float mean[WIDTH] = {0}, spread[WIDTH] = {0};
        size_t rows = smaller(a->rows - r, CHUNK);
        for (size_t c = 0; c < p->n;) {
            const struct norm_loops *loops = loops_for(p->n - c);
            loops->stats(x + c, rows, a->channels, mean + c, spread + c);
            c += loops->lanes;
        }
        join_chunk(s, r, mean, spread, rows, p->n);
    }
}

static void apply(const struct batch_norm_args *a, const struct piece *p, const struct affine *f)
{
    const float *x = tensor_f32(a->x, p->k) + p->at;
    float *y = tensor_f32(a->y, p->k) + p->at;
    size_t jump = CHUNK * a->channels;
    for (size_t r = 0; r < a->rows; r += CHUNK, x += jump, y += jump) {
        for (size_t c = 0; c < p->n;) {
            const struct norm_loops *loops = loops_for(p->n - c);
            loops->apply(f, c, x, y, smaller(a->rows - r, CHUNK), a->channels);
            c += loops->lanes;
        }
    }
}

static void follow(float *running, float momentum, double value)
{
    *running = (float)((1 - (double)momentum) * (double)*running + (double)momentum * value);
}

struct train {
    const struct batch_norm_args *a;
    float momentum;
    struct tensor running_mean, running_var;
};

static void train_piece(const struct train *t, const struct piece *p)
{
    const struct batch_norm_args *a = t->a;
    double rows = (double)a->rows;
    struct stats s;
    struct affine f = {.relu = a->act == ACT_RELU};
    stats_of(a, p, &s);
    for (size_t c = 0; c < p->n; c++) {
        size_t at = p->at + c;
        double var = a->rows == 0 ? 0 : s.spread[c] / rows;
        float inv_std = (float)(1 / sqrt(var + (double)a->eps));
        tensor_f32(a->mean, p->k)[at] = f.mean[c] = (float)s.mean[c];
        tensor_f32(a->inv_std, p->k)[at] = inv_std;
        f.scale[c] = inv_std * tensor_f32(a->gamma, p->k)[at];
        f.shift[c] = tensor_f32(a->beta, p->k)[at];
        if (t->running_mean.buf == NULL || a->rows == 0)
            continue;
        follow(tensor_f32(t->running_mean, p->k) + at, t->momentum, s.mean[c]);
        follow(tensor_f32(t->running_var, p->k) + at, t->momentum,
               a->rows > 1 ? s.spread[c] / (rows - 1) : var);
    }
    apply(a, p, &f);
}

static size_t pieces_of(const struct batch_norm_args *a)
{
    return (a->channels + WIDTH - 1) / WIDTH;
}

/* Tile i of the pieces of all members. */
static struct piece piece_of(const struct batch_norm_args *a, size_t i)
{
    size_t at = i % pieces_of(a) * WIDTH;
    return (struct piece){i / pieces_of(a), at, smaller(a->channels - at, WIDTH)};
}

static void train_tile(void *arg, size_t i)
{
    const struct train *t = arg;
    struct piece p = piece_of(t->a, i);
    train_piece(t, &p);
}

as_status cpu_batch_norm_train(struct backend *be, const struct batch_norm_args *a, float momentum,
                               struct tensor running_mean, struct tensor running_var,
                               struct as_err *err)
{
    (void)err;
    struct train t = {a, momentum, running_mean, running_var};
    cpu_split(be, a->members * pieces_of(a), train_tile, &t);
    return AS_OK;
}

static void eval_tile(void *arg, size_t i)
{
    const struct train *t = arg;
    const struct batch_norm_args *a = t->a;
    struct piece piece = piece_of(a, i), *p = &piece;
    const float *mean = tensor_f32(t->running_mean, p->k), *var = tensor_f32(t->running_var, p->k);
    struct affine f = {.relu = a->act == ACT_RELU};
    for (size_t c = 0; c < p->n; c++) {
        size_t at = p->at + c;
        f.mean[c] = mean[at];
        f.scale[c] = (float)((double)tensor_f32(a->gamma, p->k)[at] /
                             sqrt((double)var[at] + (double)a->eps));
        f.shift[c] = tensor_f32(a->beta, p->k)[at];
    }
    apply(a, p, &f);
}

as_status cpu_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                              struct tensor running_mean, struct tensor running_var,
                              struct as_err *err)
{
    (void)err;
    struct train t = {a, 0, running_mean, running_var};
    cpu_split(be, a->members * pieces_of(a), eval_tile, &t);
    return AS_OK;
}

/* ---- backward ---- */

struct backward {
    const struct batch_norm_args *a;
    struct tensor dy, dx, dgamma, dbeta;
};

static struct rows rows_at(const struct backward *b, const struct piece *p, size_t r)
{
    const struct batch_norm_args *a = b->a;
    size_t at = r * a->channels + p->at;
    return (struct rows){tensor_f32(a->x, p->k) + at, tensor_f32(b->dy, p->k) + at,
                         a->act == ACT_RELU ? tensor_f32(a->y, p->k) + at : NULL};
}

/* The sums over all rows of g and of g (x - mean). */
static void sums_of(const struct backward *b, const struct piece *p, const struct slopes *s,
                    double *sums, double *products)
{
    for (size_t r = 0; r < b->a->rows; r += CHUNK) {
        float sum[WIDTH] = {0}, product[WIDTH] = {0};
        struct rows in = rows_at(b, p, r);
        for (size_t c = 0; c < p->n;) {
            const struct norm_loops *loops = loops_for(p->n - c);
            loops->sums(s, c, &in, smaller(b->a->rows - r, CHUNK), b->a->channels, sum + c,
                        product + c);
            c += loops->lanes;
        }
        for (size_t c = 0; c < p->n; c++) {
            sums[c] += (double)sum[c];
            products[c] += (double)product[c];
        }
    }
}

static void backward_piece(const struct backward *b, const struct piece *p)
{
    const struct batch_norm_args *a = b->a;
    struct slopes s;
    double sums[WIDTH] = {0}, products[WIDTH] = {0}, rows = (double)a->rows;
    memcpy(s.mean, tensor_f32(a->mean, p->k) + p->at, p->n * sizeof(*s.mean));
    sums_of(b, p, &s, sums, products);
    for (size_t c = 0; c < p->n; c++) {
        size_t at = p->at + c;
        double inv_std = (double)tensor_f32(a->inv_std, p->k)[at];
        tensor_f32(b->dbeta, p->k)[at] = (float)sums[c];
        tensor_f32(b->dgamma, p->k)[at] = (float)(products[c] * inv_std);
        s.scale[c] = (float)((double)tensor_f32(a->gamma, p->k)[at] * inv_std);
        s.base[c] = (float)(sums[c] / rows);
        s.tilt[c] = (float)(products[c] * inv_std * inv_std / rows);
    }
    for (size_t r = 0; r < a->rows; r += CHUNK) {
        struct rows in = rows_at(b, p, r);
        float *dx = tensor_f32(b->dx, p->k) + r * a->channels + p->at;
        for (size_t c = 0; c < p->n;) {
            const struct norm_loops *loops = loops_for(p->n - c);
            loops->back(&s, c, &in, smaller(a->rows - r, CHUNK), a->channels, dx);
            c += loops->lanes;
        }
    }
}

static void backward_tile(void *arg, size_t i)
{
    const struct backward *b = arg;
    struct piece p = piece_of(b->a, i);
    backward_piece(b, &p);
}

as_status cpu_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err)
{
    (void)err;
    struct backward b = {a, dy, dx, dgamma, dbeta};
    cpu_split(be, a->members * pieces_of(a), backward_tile, &b);
    return AS_OK;
}
