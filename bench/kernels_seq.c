/* Attention, layer normalisation, embedding, gather and averages of weights on one back end.
 *
 * Attention is bound by arithmetic, so its floor is the rate of one large matrix product. The
 * others are bound by memory, so their floor is the rate of a copy far larger than the caches. Both
 * are measured on the device in the same run; on the host there are none. */
#include "bench/kernels_seq.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/kernels_data.h"
#include "kernels/ops.h"

#define GIB ((size_t)1 << 30)

static struct backend *be;
static double best_gflops = NAN, best_gbytes = NAN; /* the rates of the device */

/* n integers in [0, below). */
static struct tensor words(size_t n, int32_t below)
{
    struct as_err err;
    struct buf *b = NULL;
    must(buf_create(be, BUF_I32, n, &b, &err), &err);
    AS_AUTO(as_freep) int32_t *data = as_calloc(n + 1, sizeof(*data));
    must(data ? AS_OK : as_fail(&err, AS_E_NOMEM, "out of memory"), &err);
    struct rng r;
    rng_init(&r, 2, n);
    for (size_t i = 0; data && i < n; i++)
        data[i] = (int32_t)rng_below(&r, (uint64_t)below);
    must(buf_upload(b, 0, data, n, &err), &err);
    return tensor_at(b, 0, n);
}

static void finish(void *arg)
{
    struct as_err err;
    (void)arg;
    must(backend_sync(be, &err), &err);
}

static void release(struct tensor *const *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_free(all[i]->buf);
}

/* ---- ceilings ---- */

struct product {
    struct linear_args a;
    struct tensor y;
};

static void multiply(void *arg)
{
    struct as_err err;
    const struct product *p = arg;
    must(backend_linear_forward(be, &p->a, ACT_NONE, p->y, tensor_none(), &err), &err);
}

struct copy {
    struct tensor from, to;
    size_t n;
};

static void copy(void *arg)
{
    struct as_err err;
    const struct copy *c = arg;
    must(buf_copy(c->to.buf, 0, c->from.buf, 0, c->n, &err), &err);
}

/* Without bias and activation a linear layer is the library's product only. */
void bench_ceilings(struct backend *used)
{
    enum { SIDE = 8192 };
    be = used;
    if (strcmp(backend_name(be), "cuda") != 0)
        return;
    size_t square = (size_t)SIDE * SIDE;
    struct product p = {
        {1, SIDE, SIDE, SIDE, floats(be, 1, square), floats(be, 1, square), tensor_none()},
        floats(be, 1, square)};
    best_gflops = 2e-9 * (double)square * SIDE / bench_seconds(multiply, finish, &p);
    bench_report("ceiling: product 8192x8192x8192", best_gflops, "GFLOP/s", NAN, NAN, NULL,
                 "cuBLAS, float32");
    struct copy c = {floats(be, 1, GIB / 4), floats(be, 1, GIB / 4), GIB / 4};
    best_gbytes = 2e-9 * (double)GIB / bench_seconds(copy, finish, &c);
    bench_report("ceiling: copy of 1 GiB", best_gbytes, "GB/s", NAN, NAN, NULL,
                 "device to device, read and written");
    struct tensor *all[] = {&p.a.x, &p.a.w, &p.y, &c.from, &c.to};
    release(all, AS_ARRAY_LEN(all));
}

/* ---- attention ---- */

struct attend {
    struct attention_args a;
    struct tensor dout, dqkv;
};

static void attend(void *arg)
{
    struct as_err err;
    const struct attend *t = arg;
    must(backend_attention_forward(be, &t->a, &err), &err);
}

static void attend_back(void *arg)
{
    struct as_err err;
    const struct attend *t = arg;
    must(backend_attention_backward(be, &t->a, t->dout, t->dqkv, &err), &err);
}

/* Only the causal half of each product of T x T x D counts: 2 products forward, 5 backward. */
static void time_attention(size_t batch, size_t heads, size_t seq, size_t dim)
{
    size_t n = batch * seq * heads * dim;
    struct attend t = {.a = {1, batch, heads, seq, dim, floats(be, 1, 3 * n), floats(be, 1, n),
                             floats(be, 1, batch * heads * seq)}};
    t.a.work = floats(be, 1, backend_attention_work(be, &t.a));
    t.dout = floats(be, 1, n);
    t.dqkv = floats(be, 1, 3 * n);
    double gflop = 1e-9 * (double)n * (double)seq;
    char name[96];
    snprintf(name, sizeof(name), "attention forward %zux%zux%zux%zu", batch, heads, seq, dim);
    bench_report(name, 2 * gflop / bench_seconds(attend, finish, &t), "GFLOP/s", best_gflops, NAN,
                 NULL, "batch, heads, positions, head");
    snprintf(name, sizeof(name), "attention backward %zux%zux%zux%zu", batch, heads, seq, dim);
    bench_report(name, 5 * gflop / bench_seconds(attend_back, finish, &t), "GFLOP/s", best_gflops,
                 NAN, NULL, "dQ, dK, dV");
    struct tensor *all[] = {&t.a.qkv, &t.a.out, &t.a.lse, &t.a.work, &t.dout, &t.dqkv};
    release(all, AS_ARRAY_LEN(all));
}

/* ---- operations that memory bounds ---- */

static void report_bytes(const char *name, void (*run)(void *), void *arg, size_t floats_moved,
                         const char *note)
{
    double bytes = (double)floats_moved * sizeof(float);
    bench_report(name, 1e-9 * bytes / bench_seconds(run, finish, arg), "GB/s", best_gbytes, NAN,
                 NULL, note);
}

struct norm {
    struct layer_norm_args a;
    struct tensor y, dy, dgamma, dbeta;
};

static void normalise(void *arg)
{
    struct as_err err;
    const struct norm *n = arg;
    must(backend_layer_norm_forward(be, &n->a, n->y, &err), &err);
}

static void normalise_back(void *arg)
{
    struct as_err err;
    const struct norm *n = arg;
    must(backend_layer_norm_backward(be, &n->a, n->dy, n->y, n->dgamma, n->dbeta, &err), &err);
}

static void time_layer_norm(size_t rows, size_t width)
{
    size_t n = rows * width;
    struct norm t = {{1, rows, width, floats(be, 1, n), floats(be, 1, width), floats(be, 1, width),
                      floats(be, 1, rows), floats(be, 1, rows), 1e-5f},
                     floats(be, 1, n),
                     floats(be, 1, n),
                     floats(be, 1, width),
                     floats(be, 1, width)};
    report_bytes("layer norm forward", normalise, &t, 2 * n, "8192 rows of 768");
    report_bytes("layer norm backward", normalise_back, &t, 3 * n, "8192 rows of 768");
    struct tensor *all[] = {&t.a.x, &t.a.gamma, &t.a.beta, &t.a.mean, &t.a.inv_std,
                            &t.y,   &t.dy,      &t.dgamma, &t.dbeta};
    release(all, AS_ARRAY_LEN(all));
}

struct embed {
    struct embedding_args a;
    struct tensor y, dtable;
};

static void embed(void *arg)
{
    struct as_err err;
    const struct embed *e = arg;
    must(backend_embedding_forward(be, &e->a, e->y, &err), &err);
}

static void embed_back(void *arg)
{
    struct as_err err;
    const struct embed *e = arg;
    must(backend_embedding_backward(be, &e->a, e->y, e->dtable, tensor_none(), &err), &err);
}

static void time_embedding(size_t batch, size_t seq, size_t vocab, size_t width)
{
    size_t n = batch * seq * width;
    struct embed t = {{1, batch, seq, vocab, width, words(batch * seq, (int32_t)vocab),
                       floats(be, 1, vocab * width), tensor_none()},
                      floats(be, 1, n),
                      floats(be, 1, vocab * width)};
    report_bytes("embedding forward", embed, &t, 2 * n, "16 x 512 tokens, 768 wide");
    report_bytes("embedding backward", embed_back, &t, n + vocab * width, "table of 16384 tokens");
    struct tensor *all[] = {&t.a.tokens, &t.a.table, &t.y, &t.dtable};
    release(all, AS_ARRAY_LEN(all));
}

static void gather(void *arg)
{
    struct as_err err;
    must(backend_gather(be, arg, &err), &err);
}

static void time_gather(size_t rows, size_t batch, size_t width)
{
    struct gather_args a = {.members = 1,
                            .rows = rows,
                            .batch = batch,
                            .width = width,
                            .src = floats(be, 1, rows * width),
                            .index = words(batch, (int32_t)rows),
                            .dst = floats(be, 1, batch * width)};
    report_bytes("gather", gather, &a, 2 * batch * width, "8192 of 60000 rows of 784");
    struct tensor *all[] = {&a.src, &a.index, &a.dst};
    release(all, AS_ARRAY_LEN(all));
}

static void average(void *arg)
{
    struct as_err err;
    must(backend_ema(be, arg, &err), &err);
}

static void time_ema(size_t n)
{
    struct ema_args a = {1, n, floats(be, 1, n), floats(be, 1, n), floats(be, 1, 1), tensor_none()};
    report_bytes("moving average", average, &a, 3 * n, "16M weights");
    struct tensor *all[] = {&a.params, &a.average, &a.decay};
    release(all, AS_ARRAY_LEN(all));
}

void bench_sequences(struct backend *used)
{
    be = used;
    time_attention(8, 4, 64, 64);
    time_attention(8, 12, 512, 64);
    time_layer_norm(8192, 768);
    time_embedding(16, 512, 16384, 768);
    time_gather(60000, 8192, 784);
    time_ema(1u << 24);
}
