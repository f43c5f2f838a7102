/* The two paths of convolution on cuda with the same shapes, one after the other: our own is the
 * peer, cuDNN is the value. Each operation is first recorded as a graph, as the trainer does, so
 * that the figure does not contain the host's time for one call per member. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "bench/kernels_data.h"
#include "bench/kernels_conv.h"
#include "kernels/ops.h"

enum { FORWARD, DX, DW, OPS };
static const char *const op_names[OPS] = {"forward", "dx", "dw"};

struct layer {
    const char *name;
    size_t batch, side, channels, out, kernel, stride, pad;
};

/* One layer on one path. */
struct side {
    struct backend *be;
    struct conv_args a;
    struct tensor y, dy, dx, dw;
    int op;
    struct graph *graph;
};

static struct backend *open_path(const char *path, bool bf16)
{
    struct as_err err;
    struct backend *be = NULL;
    if (setenv("ASSAY_CUDA_CONV", path, 1) != 0)
        must(as_fail(&err, AS_E_NOMEM, "out of memory"), &err);
    must(backend_open("cuda", &(struct backend_opts){.bf16 = bf16}, &be, &err), &err);
    return be;
}

static void side_make(struct side *s, struct backend *be, const struct layer *l, size_t members)
{
    size_t out = conv_out_len(l->side, l->kernel, l->stride, l->pad);
    size_t nx = l->batch * l->side * l->side * l->channels, ny = l->batch * out * out * l->out;
    size_t nw = l->kernel * l->kernel * l->channels * l->out;
    *s = (struct side){.be = be,
                       .a = {members, l->batch, l->side, l->side, l->channels, l->out, l->kernel,
                             l->kernel, l->stride, l->pad, .groups = 1}};
    s->a.x = floats(be, members, nx);
    s->a.w = floats(be, members, nw);
    s->a.work = floats(be, members, backend_conv_work(be, &s->a));
    s->y = floats(be, members, ny);
    s->dy = floats(be, members, ny);
    s->dx = floats(be, members, nx);
    s->dw = floats(be, members, nw);
}

static void side_done(struct side *s)
{
    struct tensor *all[] = {&s->a.x, &s->a.w, &s->a.work, &s->y, &s->dy, &s->dx, &s->dw};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]->buf);
}

static as_status call(const struct side *s, struct as_err *err)
{
    struct conv_grads g = {.dy = s->dy};
    if (s->op == FORWARD)
        return backend_conv_forward(s->be, &s->a, ACT_NONE, s->y, tensor_none(), err);
    if (s->op == DX)
        g.dx = s->dx;
    else
        g.dw = s->dw;
    return backend_conv_backward(s->be, &s->a, &g, err);
}

static void replay(void *arg)
{
    struct as_err err;
    const struct side *s = arg;
    must(backend_graph_run(s->be, s->graph, &err), &err);
}

static void finish(void *arg)
{
    struct as_err err;
    const struct side *s = arg;
    must(backend_sync(s->be, &err), &err);
}

/* Seconds of one call for all members. */
static double seconds(struct side *s, int op)
{
    struct as_err err;
    s->op = op;
    must(call(s, &err), &err); /* makes plans and loads libraries */
    must(backend_graph_begin(s->be, &err), &err);
    must(call(s, &err), &err);
    must(backend_graph_end(s->be, &s->graph, &err), &err);
    double ret = bench_seconds(replay, finish, s);
    graph_free(s->graph);
    return ret;
}

/* GFLOP of one operation of one member. */
static double work_of(const struct layer *l)
{
    double out = (double)conv_out_len(l->side, l->kernel, l->stride, l->pad);
    return 2e-9 * (double)l->batch * out * out * (double)(l->kernel * l->kernel) *
           (double)(l->channels * l->out);
}

static void time_layer(struct backend *own, struct backend *cudnn, const struct layer *l,
                       size_t members, const char *kind)
{
    struct side s;
    double time[2][OPS], work = work_of(l) * (double)members;
    for (int path = 0; path < 2; path++) {
        side_make(&s, path == 0 ? own : cudnn, l, members);
        for (int op = 0; op < OPS; op++)
            time[path][op] = seconds(&s, op);
        side_done(&s);
    }
    for (int op = 0; op < OPS; op++) {
        char name[96];
        snprintf(name, sizeof(name), "conv path %s %s K=%zu %s", kind, op_names[op], members,
                 l->name);
        bench_report(name, work / time[1][op], "GFLOP/s", NAN, work / time[0][op], "own path",
                     backend_conv_path(cudnn));
    }
}

void bench_conv_paths(void)
{
    static const struct layer layers[] = {
        {"LeNet 64x28x28x1 5x5x20", 64, 28, 1, 20, 5, 1, 0},
        {"LeNet 64x12x12x20 5x5x50", 64, 12, 20, 50, 5, 1, 0},
        {"vgg8 128x32x32x3 3x3x64", 128, 32, 3, 64, 3, 1, 1},
        {"vgg8 128x16x16x64 3x3x128", 128, 16, 64, 128, 3, 1, 1},
        {"vgg8 128x8x8x128 3x3x256", 128, 8, 128, 256, 3, 1, 1},
        {"vgg8 128x8x8x256 3x3x256", 128, 8, 256, 256, 3, 1, 1},
        {"resnet18 128x32x32x64 3x3x64", 128, 32, 64, 64, 3, 1, 1},
        {"resnet18 128x32x32x64 3x3x128 stride 2", 128, 32, 64, 128, 3, 2, 1},
        {"resnet18 128x16x16x128 3x3x128", 128, 16, 128, 128, 3, 1, 1},
        {"resnet18 128x8x8x256 3x3x256", 128, 8, 256, 256, 3, 1, 1},
        {"resnet18 128x4x4x512 3x3x512", 128, 4, 512, 512, 3, 1, 1},
        {"resnet18 128x32x32x64 1x1x128 stride 2", 128, 32, 64, 128, 1, 2, 0},
    };
    static const size_t members[] = {1, 16};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        struct backend *own = open_path("own", bf16), *cudnn = open_path("cudnn", bf16);
        for (size_t k = 0; k < AS_ARRAY_LEN(members); k++)
            for (size_t i = 0; i < AS_ARRAY_LEN(layers); i++)
                time_layer(own, cudnn, &layers[i], members[k], bf16 ? "bf16" : "float32");
        backend_free(own);
        backend_free(cudnn);
    }
}
