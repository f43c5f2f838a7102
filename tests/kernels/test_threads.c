/* Operations that are cut into pieces give the same bits with any number of threads. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ops.h"
#include "tests/support/check_main.h"

static struct backend *be;
static struct buf *kept[32];
static size_t n_kept;

static void open_with(int threads)
{
    struct as_err err;
    ck_ok(backend_open("cpu", &(struct backend_opts){.threads = threads}, &be, &err), err);
}

static void close_all(void)
{
    while (n_kept > 0)
        buf_free(kept[--n_kept]);
    backend_freep(&be);
}

static struct tensor keep(buf_kind kind, size_t members, size_t n, const void *data)
{
    struct as_err err;
    struct buf **b = &kept[n_kept++];
    ck_assert_uint_le(n_kept, AS_ARRAY_LEN(kept));
    ck_ok(buf_create(be, kind, members * n, b, &err), err);
    ck_ok(buf_upload(*b, 0, data, members * n, &err), err);
    return tensor_at(*b, 0, n);
}

/* Floats around 0. */
static struct tensor tensor_of(size_t members, size_t n, uint64_t seed)
{
    AS_AUTO(as_freep) float *data = as_calloc(members * n + 1, sizeof(*data));
    struct rng r;
    ck_assert_ptr_nonnull(data);
    rng_init(&r, seed, n);
    for (size_t i = 0; i < members * n; i++)
        data[i] = (float)rng_uniform(&r) - 0.5f;
    return keep(BUF_F32, members, n, data);
}

/* Integers in [0, below). */
static struct tensor whole_of(size_t members, size_t n, uint64_t below)
{
    AS_AUTO(as_freep) int32_t *data = as_calloc(members * n + 1, sizeof(*data));
    struct rng r;
    ck_assert_ptr_nonnull(data);
    rng_init(&r, below, n);
    for (size_t i = 0; i < members * n; i++)
        data[i] = (int32_t)(rng_uniform(&r) * (double)below);
    return keep(BUF_I32, members, n, data);
}

static uint32_t *taken(struct tensor t)
{
    struct as_err err;
    uint32_t *data = as_calloc(buf_len(t.buf) + 1, sizeof(*data));
    ck_assert_ptr_nonnull(data);
    ck_ok(buf_download(t.buf, 0, data, buf_len(t.buf), &err), err);
    return data;
}

/* Every buffer of a run, after it. */
struct results {
    size_t n;
    size_t len[AS_ARRAY_LEN(kept)];
    uint32_t *data[AS_ARRAY_LEN(kept)];
};

static void take_all(struct results *r)
{
    r->n = n_kept;
    for (size_t i = 0; i < n_kept; i++) {
        r->len[i] = buf_len(kept[i]);
        r->data[i] = taken(tensor_at(kept[i], 0, 0));
    }
}

static void results_done(struct results *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->data[i]);
}

/* run(arg) makes tensors and calls operations, from the same numbers each time. */
static void same_with_threads(void (*run)(const void *arg), const void *arg)
{
    struct results one = {0};
    for (int threads = 1; threads <= 8; threads += threads == 1 ? 1 : 6) {
        struct results many = {0};
        open_with(threads);
        run(arg);
        take_all(threads == 1 ? &one : &many);
        for (size_t i = 0; i < many.n; i++)
            ck_assert_mem_eq(one.data[i], many.data[i], one.len[i] * sizeof(uint32_t));
        results_done(&many);
        close_all();
    }
    results_done(&one);
}

/* Forward and backward of K layers: members, batch, in, out. */
static void run_layer(const void *arg)
{
    struct as_err err;
    const size_t *shape = arg, members = shape[0], batch = shape[1], in = shape[2], out = shape[3];
    struct linear_args a = {members,
                            batch,
                            in,
                            out,
                            tensor_of(members, batch * in, 1),
                            tensor_of(members, in * out, 2),
                            tensor_of(members, out, 3)};
    struct tensor y = tensor_of(members, batch * out, 4), z = tensor_of(members, batch * out, 5);
    ck_ok(backend_linear_forward(be, &a, ACT_GELU, y, z, &err), err);
    struct act_args back = {members, batch * out, ACT_GELU,
                            z,       y,           tensor_of(members, batch * out, 6)};
    ck_ok(backend_act_backward(be, &back, &err), err);
    struct linear_grads g = {back.dx, tensor_of(members, batch * in, 7),
                             tensor_of(members, in * out, 8), tensor_of(members, out, 9), true};
    ck_ok(backend_linear_backward(be, &a, &g, &err), err);
}

START_TEST(layers)
{
    static const size_t shapes[][4] = {
        {1, 128, 784, 512}, {1, 100, 300, 257}, {33, 32, 64, 64}, {3, 200, 300, 70}, {2, 1, 5, 1}};
    same_with_threads(run_layer, shapes[_i]);
}
END_TEST

/* An optimizer's step: members, parameters. */
static void run_step(const void *arg)
{
    struct as_err err;
    const size_t *shape = arg, members = shape[0], n = shape[1];
    struct tensor grads = tensor_of(members, n, 1), sum = tensor_of(members, n, 2);
    struct tensor params = tensor_of(members, n, 3), one = tensor_of(members, 1, 4);
    struct tensor first = whole_of(members, 1, 2), norm = tensor_of(members, 1, 5);
    struct grad_accumulate_args acc = {members, n, grads, sum, one, first};
    ck_ok(backend_grad_accumulate(be, &acc, &err), err);
    struct grad_stats_args stats = {members, n, sum, norm, first, tensor_none()};
    ck_ok(backend_grad_stats(be, &stats, &err), err);
    struct grad_clip_args clip = {members, n, sum, norm, one};
    ck_ok(backend_grad_clip(be, &clip, &err), err);
    struct opt_args opt = {.members = members,
                           .n = n,
                           .kind = whole_of(members, 1, OPTIM_KINDS),
                           .params = params,
                           .grads = sum,
                           .m1 = tensor_of(members, n, 6),
                           .m2 = tensor_of(members, n, 8),
                           .lr = one,
                           .step = whole_of(members, 1, 9),
                           .work = tensor_of(members, 2, 7)};
    ck_ok(buf_fill_f32(opt.m2.buf, 0, members * n, 0.25f, &err), err);
    ck_ok(backend_optimize(be, &opt, &err), err);
    struct ema_args ema = {members, n, params, grads, one, tensor_none()};
    ck_ok(backend_ema(be, &ema, &err), err);
    struct add_args add = {members, n, params, grads, tensor_of(members, n, 9), ACT_RELU};
    ck_ok(backend_add(be, &add, &err), err);
}

START_TEST(steps)
{
    static const size_t shapes[][2] = {{1, 1100000}, {12, 40001}, {40, 6570}, {3, 1}};
    same_with_threads(run_step, shapes[_i]);
}
END_TEST

/* Rows into a batch: members, rows, batch, width. */
static void run_gather(const void *arg)
{
    struct as_err err;
    const size_t *shape = arg, members = shape[0], rows = shape[1], batch = shape[2];
    struct gather_args a = {.members = members,
                            .rows = rows,
                            .batch = batch,
                            .width = shape[3],
                            .src = tensor_of(1, rows * shape[3], 1),
                            .index = whole_of(members, 3 * batch, rows + 1), /* one is outside */
                            .at = whole_of(members, 1, 4),
                            .at_rows = batch,
                            .index_len = 3 * batch,
                            .dst = tensor_of(members, batch * shape[3], 2)};
    a.src.stride = 0;
    ck_ok(backend_gather(be, &a, &err), err);
}

START_TEST(gathers)
{
    static const size_t shapes[][4] = {
        {1, 300, 128, 784}, {33, 100, 32, 64}, {3, 20, 2000, 30}, {2, 5, 0, 7}, {2, 5, 3, 0}};
    same_with_threads(run_gather, shapes[_i]);
}
END_TEST

/* Members, rows, classes. */
static void run_loss(const void *arg)
{
    struct as_err err;
    const size_t *shape = arg, members = shape[0], batch = shape[1], classes = shape[2];
    struct softmax_ce_args a = {
        .members = members,
        .batch = batch,
        .classes = classes,
        .logits = tensor_of(members, batch * classes, 1),
        .labels = whole_of(members, batch, classes),
        .dlogits = tensor_of(members, batch * classes, 2),
        .grad_scale = 1,
        .row_class = whole_of(members, batch, 5),
        .correct = whole_of(members, 1, 5),
        .top5 = whole_of(members, 1, 5),
        .out = {tensor_of(members, batch, 3), tensor_of(members, 1, 4), 1, true},
    };
    ck_ok(backend_softmax_ce(be, &a, &err), err);
}

START_TEST(losses)
{
    static const size_t shapes[][3] = {{1, 3000, 200}, {2, 1, 40000}, {20, 32, 10}, {1, 70000, 3}};
    same_with_threads(run_loss, shapes[_i]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kernels_threads");
    TCase *c = tcase_create("threads");
    tcase_add_loop_test(c, layers, 0, 5);
    tcase_add_loop_test(c, steps, 0, 4);
    tcase_add_loop_test(c, gathers, 0, 5);
    tcase_add_loop_test(c, losses, 0, 4);
    suite_add_tcase(s, c);
    return s;
}
