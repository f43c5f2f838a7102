/* The kernels of one back end (ASSAY_BACKEND, or the automatic choice) at the shapes of small
 * models.
 *
 * Floors: for linear layers a bare cblas_sgemm of the same shapes, one for each product and member;
 * for the optimizer memcpy, by bytes moved. Both run on the host, so for cuda there is no floor
 * here. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/bench.h"
#include "bench/kernels_data.h"
#include "bench/kernels_conv.h"
#include "bench/kernels_products.h"
#include "bench/kernels_seq.h"
#include "kernels/ops.h"

static struct backend *be;

/* Waits once in each round, like a trainer that reads its losses now and then. */
static void finish(void *arg)
{
    struct as_err err;
    (void)arg;
    must(backend_sync(be, &err), &err);
}

/* ---- linear layers ---- */

struct layer {
    struct linear_args a;
    struct linear_grads g;
    struct tensor y;
    float *x, *w, *out; /* buffers of the floor, one member after another */
};

static void forward(void *arg)
{
    struct as_err err;
    const struct layer *l = arg;
    must(backend_linear_forward(be, &l->a, ACT_RELU, l->y, tensor_none(), &err), &err);
}

static void backward(void *arg)
{
    struct as_err err;
    const struct layer *l = arg;
    must(backend_linear_backward(be, &l->a, &l->g, &err), &err);
}

static void bare_forward(void *arg)
{
    const struct layer *l = arg;
    size_t b = l->a.batch, i = l->a.in, o = l->a.out;
    for (size_t k = 0; k < l->a.members; k++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b, (int)o, (int)i, 1,
                    l->x + k * b * i, (int)i, l->w + k * i * o, (int)o, 0, l->out + k * b * o,
                    (int)o);
}

/* Writes dw to w and dx to x: only the time matters, and the values stay finite (all become 0). */
static void bare_backward(void *arg)
{
    const struct layer *l = arg;
    size_t b = l->a.batch, i = l->a.in, o = l->a.out;
    for (size_t k = 0; k < l->a.members; k++) {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)i, (int)o, (int)b, 1,
                    l->x + k * b * i, (int)i, l->out + k * b * o, (int)o, 0, l->w + k * i * o,
                    (int)o);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)b, (int)i, (int)o, 1,
                    l->out + k * b * o, (int)o, l->w + k * i * o, (int)o, 0, l->x + k * b * i,
                    (int)i);
    }
}

static void time_layer(size_t members, size_t batch, size_t in, size_t out)
{
    struct layer l = {
        .a = {members, batch, in, out, floats(be, members, batch * in),
              floats(be, members, in * out), floats(be, members, out)},
        .g = {floats(be, members, batch * out), floats(be, members, batch * in),
              floats(be, members, in * out), floats(be, members, out), false},
        .y = floats(be, members, batch * out),
        .x = as_calloc(members * batch * in, sizeof(float)),
        .w = as_calloc(members * in * out, sizeof(float)),
        .out = as_calloc(members * batch * out, sizeof(float)),
    };
    struct as_err err;
    if (l.x == NULL || l.w == NULL || l.out == NULL)
        must(as_fail(&err, AS_E_NOMEM, "out of memory"), &err);
    bool host = strcmp(backend_name(be), "cuda") != 0;
    double gflop = 2e-9 * (double)members * (double)batch * (double)in * (double)out;
    char name[64], shape[32];
    snprintf(shape, sizeof(shape), "K=%zu %zux%zux%zu", members, batch, in, out);
    snprintf(name, sizeof(name), "linear forward %s", shape);
    bench_report(name, gflop / bench_seconds(forward, finish, &l), "GFLOP/s",
                 host ? gflop / bench_seconds(bare_forward, NULL, &l) : NAN, NAN, NULL,
                 "bias, ReLU");
    snprintf(name, sizeof(name), "linear backward %s", shape);
    bench_report(name, 2 * gflop / bench_seconds(backward, finish, &l), "GFLOP/s",
                 host ? 2 * gflop / bench_seconds(bare_backward, NULL, &l) : NAN, NAN, NULL,
                 "dX, dW, db");
    struct tensor *all[] = {&l.a.x, &l.a.w, &l.a.b, &l.g.dy, &l.g.dx, &l.g.dw, &l.g.db, &l.y};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]->buf);
    free(l.x);
    free(l.w);
    free(l.out);
}

/* ---- AdamW ---- */

static void step(void *arg)
{
    struct as_err err;
    must(backend_optimize(be, arg, &err), &err);
}

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

/* Bytes per second of memcpy, reads and writes counted. */
static double copy_rate(size_t bytes)
{
    struct copy c = {as_calloc(1, bytes), as_calloc(1, bytes), bytes};
    if (c.to == NULL || c.from == NULL)
        exit(EXIT_FAILURE);
    memset(c.from, 1, bytes);
    memset(c.to, 2, bytes); /* map the pages before the measurement */
    double rate = 2 * (double)bytes / bench_seconds(copy, NULL, &c);
    free(c.to);
    free(c.from);
    return rate;
}

static struct tensor constant(float v)
{
    struct as_err err;
    struct tensor t = tensor_at(floats(be, 1, 1).buf, 0, 0);
    must(buf_fill_f32(t.buf, 0, 1, v, &err), &err);
    return t;
}

static void time_adamw(size_t members, size_t n)
{
    struct as_err err;
    struct buf *count = NULL, *kind = NULL;
    must(buf_create(be, BUF_I32, members, &count, &err), &err);
    must(buf_create(be, BUF_I32, 1, &kind, &err), &err);
    must(buf_fill_i32(kind, 0, 1, OPT_ADAMW, &err), &err);
    struct opt_args a = {
        .members = members,
        .n = n,
        .kind = tensor_at(kind, 0, 0),
        .params = floats(be, members, n),
        .grads = floats(be, members, n),
        .m1 = floats(be, members, n),
        .m2 = floats(be, members, n),
        .lr = constant(1e-3f),
        .weight_decay = constant(1e-2f),
        .step = tensor_at(count, 0, 1),
    };
    must(buf_fill_f32(a.m2.buf, 0, members * n, 1, &err),
         &err); /* no square roots of negative numbers */
    /* Reads params, grads, m1, m2; writes params, m1, m2. */
    double bytes = 7 * sizeof(float) * (double)members * (double)n;
    char name[64];
    snprintf(name, sizeof(name), "adamw K=%zu N=%zu", members, n);
    bool host = strcmp(backend_name(be), "cuda") != 0;
    bench_report(name, 1e-9 * bytes / bench_seconds(step, finish, &a), "GB/s",
                 host ? 1e-9 * copy_rate((size_t)bytes / 2) : NAN, NAN, NULL,
                 "floor: memcpy over as many bytes");
    struct tensor *all[] = {&a.kind, &a.params, &a.grads, &a.m1,
                            &a.m2,   &a.lr,     &a.step,  &a.weight_decay};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]->buf);
}

/* ---- dropout and loss: elements per second, no floor ---- */

static void drop(void *arg)
{
    struct as_err err;
    must(backend_dropout(be, arg, &err), &err);
}

static void time_dropout(size_t rows, size_t width)
{
    struct as_err err;
    struct buf *words = NULL;
    must(buf_create(be, BUF_I32, 3, &words, &err), &err);
    struct dropout_args a = {.members = 1,
                             .rows = rows,
                             .width = width,
                             .x = floats(be, 1, rows * width),
                             .y = floats(be, 1, rows * width),
                             .rate = constant(0.2f),
                             .seed = tensor_at(words, 0, 0),
                             .step = tensor_at(words, 2, 0)};
    char name[64];
    snprintf(name, sizeof(name), "dropout %zux%zu", rows, width);
    bench_report(name, 1e-9 * (double)(rows * width) / bench_seconds(drop, finish, &a), "Gelem/s",
                 NAN, NAN, NULL, "Philox, no stored mask");
    struct tensor *all[] = {&a.x, &a.y, &a.rate, &a.seed};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]->buf);
}

static void classify(void *arg)
{
    struct as_err err;
    must(backend_softmax_ce(be, arg, &err), &err);
}

static void time_cross_entropy(size_t batch, size_t classes)
{
    struct as_err err;
    struct buf *words = NULL;
    must(buf_create(be, BUF_I32, 2 * batch + 1, &words, &err), &err);
    struct softmax_ce_args a = {
        .members = 1,
        .batch = batch,
        .classes = classes,
        .logits = floats(be, 1, batch * classes),
        .labels = tensor_at(words, 0, 0),
        .dlogits = floats(be, 1, batch * classes),
        .grad_scale = 1,
        .row_class = tensor_at(words, batch, 0),
        .correct = tensor_at(words, 2 * batch, 0),
        .out = {floats(be, 1, batch), floats(be, 1, 1), 1, false},
    };
    char name[64];
    snprintf(name, sizeof(name), "softmax cross-entropy %zux%zu", batch, classes);
    bench_report(name, 1e6 * bench_seconds(classify, finish, &a), "us", NAN, NAN, NULL,
                 "forward and backward");
    struct tensor *all[] = {&a.logits, &a.labels, &a.dlogits, &a.out.row_loss, &a.out.loss};
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        buf_free(all[i]->buf);
}

int main(int argc, char **argv)
{
    if (!bench_start("kernels", "the kernels of one back end (ASSAY_BACKEND chooses)", argc, argv))
        return bench_exit();
    struct as_err err;
    must(backend_open(NULL, NULL, &be, &err), &err);
    fprintf(stderr, "back end %s on %s\n", backend_name(be), backend_device(be));
    bench_ceilings(be);
    time_layer(1, 128, 784, 512);
    time_layer(1, 128, 64, 32);
    time_layer(32, 128, 64, 32);
    time_adamw(1, 1u << 14);
    time_adamw(1, 1u << 24); /* past the caches */
    time_adamw(32, 1u << 14);
    time_dropout(128, 512);
    time_dropout(128, 33);
    time_cross_entropy(128, 10);
    bench_images(be);
    if (strcmp(backend_name(be), "cuda") == 0)
        bench_conv_paths();
    bench_sequences(be);
    bool cuda = strcmp(backend_name(be), "cuda") == 0;
    backend_free(be);
    if (cuda)
        bench_products();
    return bench_exit();
}
