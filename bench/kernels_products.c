#include "bench/kernels_products.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "bench/kernels_data.h"
#include "kernels/cuda/products.h"
#include "kernels/ops.h"

#define STEPS 16 /* in one graph, so that its launch takes little of the time */

struct shape {
    size_t members, batch, in, out;
};

/* Small layers, MLPs, a transformer's projection; odd widths. */
static const struct shape shapes[] = {{1, 32, 64, 32},     {32, 32, 64, 64},    {64, 128, 64, 64},
                                      {64, 128, 96, 96},   {64, 128, 128, 10},  {1, 128, 784, 128},
                                      {64, 128, 784, 128}, {64, 128, 783, 127}, {1, 128, 784, 512},
                                      {1, 4096, 512, 512}, {8, 2048, 256, 1024}};

static struct backend *be;

struct layer {
    struct linear_args a;
    struct linear_grads g;
    struct tensor y;
};

static void both(const struct layer *l)
{
    struct as_err err;
    must(backend_linear_forward(be, &l->a, ACT_RELU, l->y, tensor_none(), &err), &err);
    must(backend_linear_backward(be, &l->a, &l->g, &err), &err);
}

static void replay(void *arg)
{
    struct as_err err;
    must(backend_graph_run(be, arg, &err), &err);
}

static void finish(void *arg)
{
    struct as_err err;
    (void)arg;
    must(backend_sync(be, &err), &err);
}

/* GFLOP/s of the three products of a layer; the time contains the rest of its work too. */
static double rate_of(const struct shape *s)
{
    struct as_err err;
    struct graph *g = NULL;
    size_t k = s->members;
    struct layer l = {{k, s->batch, s->in, s->out, floats(be, k, s->batch * s->in),
                       floats(be, k, s->in * s->out), floats(be, k, s->out)},
                      {floats(be, k, s->batch * s->out), floats(be, k, s->batch * s->in),
                       floats(be, k, s->in * s->out), floats(be, k, s->out), false},
                      floats(be, k, s->batch * s->out)};
    both(&l); /* makes the plans before the recording */
    must(backend_graph_begin(be, &err), &err);
    for (int i = 0; i < STEPS; i++)
        both(&l);
    must(backend_graph_end(be, &g, &err), &err);
    double seconds = bench_seconds(replay, finish, g) / STEPS;
    graph_free(g);
    struct tensor *all[] = {&l.a.x, &l.a.w, &l.a.b, &l.g.dy, &l.g.dx, &l.g.dw, &l.g.db, &l.y};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]->buf);
    return 6e-9 * (double)(k * s->batch * s->in * s->out) / seconds;
}

static void time_shape(const struct shape *s, bool bf16)
{
    static const char *const ways[] = {"gemm", "lt", "auto"};
    double gemm = NAN;
    for (size_t i = 0; i < AS_ARRAY_LEN(ways); i++) {
        struct as_err err;
        char name[96];
        if (setenv(CUDA_PRODUCTS_ENV, ways[i], 1) != 0)
            must(as_fail(&err, AS_E_NOMEM, "out of memory"), &err);
        must(backend_open("cuda", &(struct backend_opts){.bf16 = bf16}, &be, &err), &err);
        double rate = rate_of(s);
        gemm = i == 0 ? rate : gemm;
        snprintf(name, sizeof(name), "linear layer by %s%s K=%zu %zux%zux%zu", ways[i],
                 bf16 ? ", bf16," : "", s->members, s->batch, s->in, s->out);
        bench_report(name, rate, "GFLOP/s", NAN, i == 0 ? NAN : gemm, i == 0 ? NULL : "gemm",
                     "recorded; bias, ReLU, dX, dW, db");
        backend_freep(&be);
    }
}

void bench_products(void)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        time_shape(&shapes[i], false);
        time_shape(&shapes[i], true);
    }
}
