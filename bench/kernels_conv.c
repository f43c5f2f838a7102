/* Floors: for convolution the matrix products of the same sizes through cblas_sgemm, with the
 * patches ready as a matrix (no im2col, no bias, no scatter); for the others, which memory bounds,
 * memcpy of as many bytes. Floors are measured on the host only. */
#include "bench/kernels_conv.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "bench/kernels_data.h"
#include "kernels/ops.h"

static struct backend *be;

static void finish(void *arg)
{
    struct as_err err;
    (void)arg;
    must(backend_sync(be, &err), &err);
}

static bool on_host(void)
{
    return strcmp(backend_name(be), "cuda") != 0;
}

/* ---- convolution ---- */

struct conv {
    struct conv_args a;
    struct conv_grads g;
    struct tensor y;
    size_t pixels, patch;       /* of the output; of the weight */
    float *cols, *weight, *out; /* buffers of the floor */
};

static void forward(void *arg)
{
    struct as_err err;
    const struct conv *c = arg;
    must(backend_conv_forward(be, &c->a, ACT_RELU, c->y, tensor_none(), &err), &err);
}

static void backward(void *arg)
{
    struct as_err err;
    const struct conv *c = arg;
    must(backend_conv_backward(be, &c->a, &c->g, &err), &err);
}

static void bare_forward(void *arg)
{
    const struct conv *c = arg;
    int p = (int)c->pixels, k = (int)c->patch, o = (int)c->a.out;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p, o, k, 1, c->cols, k, c->weight, o, 0,
                c->out, o);
}

/* Writes dw to the weight and dx to the columns: only the time matters. */
static void bare_backward(void *arg)
{
    const struct conv *c = arg;
    int p = (int)c->pixels, k = (int)c->patch, o = (int)c->a.out;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, o, p, 1e-3f, c->cols, k, c->out, o, 0,
                c->weight, o);
    if (!tensor_is_none(c->g.dx))
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p, k, o, 1e-3f, c->out, o, c->weight,
                    o, 0, c->cols, k);
}

struct conv_shape {
    const char *name;
    size_t batch, side, channels, out, kernel, stride, pad, groups;
    bool dx; /* the first layer computes none */
};

static void time_conv(const struct conv_shape *s)
{
    size_t side = conv_out_len(s->side, s->kernel, s->stride, s->pad);
    struct conv c = {.a = {1, s->batch, s->side, s->side, s->channels, s->out, s->kernel, s->kernel,
                           s->stride, s->pad, s->groups},
                     .pixels = s->batch * side * side,
                     .patch = s->kernel * s->kernel * s->channels / s->groups};
    size_t in = s->batch * s->side * s->side * s->channels, out = c.pixels * s->out;
    c.a.x = floats(be, 1, in);
    c.a.w = floats(be, 1, c.patch * s->out);
    c.a.b = floats(be, 1, s->out);
    c.a.work = floats(be, 1, backend_conv_work(be, &c.a));
    c.y = floats(be, 1, out);
    c.g = (struct conv_grads){floats(be, 1, out), s->dx ? floats(be, 1, in) : tensor_none(),
                              floats(be, 1, c.patch * s->out), floats(be, 1, s->out)};
    bool floor = on_host() && s->groups == 1;
    c.cols = host_floats(floor ? c.pixels * c.patch : 0);
    c.weight = host_floats(floor ? c.patch * s->out : 0);
    c.out = host_floats(floor ? out : 0);
    double gflop = 2e-9 * (double)out * (double)c.patch, both = s->dx ? 2 * gflop : gflop;
    char name[96];
    snprintf(name, sizeof(name), "conv forward %s", s->name);
    bench_report(name, gflop / bench_seconds(forward, finish, &c), "GFLOP/s",
                 floor ? gflop / bench_seconds(bare_forward, NULL, &c) : NAN, NAN, NULL,
                 "bias, ReLU");
    snprintf(name, sizeof(name), "conv backward %s", s->name);
    bench_report(name, both / bench_seconds(backward, finish, &c), "GFLOP/s",
                 floor ? both / bench_seconds(bare_backward, NULL, &c) : NAN, NAN, NULL,
                 s->dx ? "dX, dW, db" : "dW, db");
    struct tensor *all[] = {&c.a.x,  &c.a.w,  &c.a.b,  &c.a.work, &c.y,
                            &c.g.dy, &c.g.dx, &c.g.dw, &c.g.db};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]->buf);
    free(c.cols);
    free(c.weight);
    free(c.out);
}

/* ---- operations that memory bounds ---- */

struct copy {
    float *to, *from;
    size_t bytes;
};

static void copy(void *arg)
{
    const struct copy *c = arg;
    memcpy(c->to, c->from, c->bytes);
    __asm__ volatile("" : : "r"(c->to) : "memory"); /* the compiler must not drop the copy */
}

/* GB/s of memcpy that reads and writes `bytes` together. */
static double copy_rate(size_t bytes)
{
    struct copy c = {host_floats(bytes / 8), host_floats(bytes / 8), bytes / 2};
    double rate = 1e-9 * (double)bytes / bench_seconds(copy, NULL, &c);
    free(c.to);
    free(c.from);
    return rate;
}

static void report_bytes(const char *name, void (*run)(void *), void *arg, size_t floats_moved,
                         const char *note)
{
    size_t bytes = floats_moved * sizeof(float);
    bench_report(name, 1e-9 * (double)bytes / bench_seconds(run, finish, arg), "GB/s",
                 on_host() ? copy_rate(bytes) : NAN, NAN, NULL, note);
}

struct pool {
    struct pool_args a;
    struct tensor x, y, dx;
};

static void pool_forward(void *arg)
{
    struct as_err err;
    const struct pool *p = arg;
    must(backend_pool_forward(be, &p->a, p->x, p->y, &err), &err);
}

static void pool_backward(void *arg)
{
    struct as_err err;
    const struct pool *p = arg;
    must(backend_pool_backward(be, &p->a, p->y, p->dx, &err), &err);
}

static void time_pool(size_t batch, size_t side, size_t channels)
{
    struct as_err err;
    struct buf *index = NULL;
    size_t in = batch * side * side * channels, out = in / 4;
    must(buf_create(be, BUF_I32, out, &index, &err), &err);
    struct pool p = {
        {1, batch, side, side, channels, 2, 2, 2, 0, POOL_MAX, tensor_at(index, 0, out)},
        floats(be, 1, in),
        floats(be, 1, out),
        floats(be, 1, in)};
    char name[64];
    snprintf(name, sizeof(name), "max pool forward %zux%zux%zux%zu", batch, side, side, channels);
    report_bytes(name, pool_forward, &p, in + 2 * out, "2x2");
    snprintf(name, sizeof(name), "max pool backward %zux%zux%zux%zu", batch, side, side, channels);
    report_bytes(name, pool_backward, &p, in + 2 * out, "2x2");
    struct buf *all[] = {index, p.x.buf, p.y.buf, p.dx.buf};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]);
}

struct norm {
    struct batch_norm_args a;
    struct tensor dy, dx, dgamma, dbeta;
};

static void norm_forward(void *arg)
{
    struct as_err err;
    const struct norm *n = arg;
    must(backend_batch_norm_train(be, &n->a, 0.1f, tensor_none(), tensor_none(), &err), &err);
}

static void norm_backward(void *arg)
{
    struct as_err err;
    const struct norm *n = arg;
    must(backend_batch_norm_backward(be, &n->a, n->dy, n->dx, n->dgamma, n->dbeta, &err), &err);
}

static void time_norm(size_t rows, size_t channels)
{
    size_t all = rows * channels;
    struct norm n = {{1, rows, channels, floats(be, 1, all), floats(be, 1, channels),
                      floats(be, 1, channels), floats(be, 1, channels), floats(be, 1, channels),
                      1e-5f, ACT_RELU, floats(be, 1, all)},
                     floats(be, 1, all),
                     floats(be, 1, all),
                     floats(be, 1, channels),
                     floats(be, 1, channels)};
    char name[64];
    snprintf(name, sizeof(name), "batch norm train %zux%zu", rows, channels);
    report_bytes(name, norm_forward, &n, 3 * all, "ReLU; reads x twice, writes y");
    snprintf(name, sizeof(name), "batch norm backward %zux%zu", rows, channels);
    report_bytes(name, norm_backward, &n, 7 * all, "ReLU; reads x, y, dy twice, writes dx");
    struct tensor *tensors[] = {&n.a.x, &n.a.gamma, &n.a.beta, &n.a.mean, &n.a.inv_std,
                                &n.a.y, &n.dy,      &n.dx,     &n.dgamma, &n.dbeta};
    for (size_t i = 0; i < AS_ARRAY_LEN(tensors); i++)
        buf_free(tensors[i]->buf);
}

void bench_images(struct backend *backend)
{
    static const struct conv_shape shapes[] = {
        {"64x28x28x1 5x5x20", 64, 28, 1, 20, 5, 1, 0, 1, false},
        {"64x12x12x20 5x5x50", 64, 12, 20, 50, 5, 1, 0, 1, true},
        {"128x28x28x1 5x5x6", 128, 28, 1, 6, 5, 1, 0, 1, false},
        {"128x12x12x6 5x5x16", 128, 12, 6, 16, 5, 1, 0, 1, true},
        {"32x32x32x3 3x3x64", 32, 32, 3, 64, 3, 1, 1, 1, false},
        {"16x32x32x64 3x3x64", 16, 32, 64, 64, 3, 1, 1, 1, true},
        {"16x16x16x128 3x3x128", 16, 16, 128, 128, 3, 1, 1, 1, true},
        {"16x8x8x256 3x3x256", 16, 8, 256, 256, 3, 1, 1, 1, true},
        {"32x4x4x512 3x3x512", 32, 4, 512, 512, 3, 1, 1, 1, true},
        {"16x32x32x64 3x3x128 stride 2", 16, 32, 64, 128, 3, 2, 1, 1, true},
        {"16x32x32x64 1x1x64", 16, 32, 64, 64, 1, 1, 0, 1, true},
        {"16x32x32x64 3x3 depthwise", 16, 32, 64, 64, 3, 1, 1, 64, true},
    };
    be = backend;
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++)
        time_conv(&shapes[i]);
    time_pool(64, 24, 20);
    time_pool(64, 8, 50);
    time_norm(6400, 20);
    time_norm(16384, 64);
}
