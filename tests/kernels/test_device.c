/* What only a device offers: recorded graphs, products with bfloat16 factors (the test checks too
 * that the host refuses them), work that runs after its call, faults and memory of its own. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/twin.h"

enum { K = 2, ROWS = 12, BATCH = 4, IN = 3, OUT = 5, STEPS = 6 };

static bool on_device(void)
{
    return strcmp(backend_name(twin_backend(1)), "cuda") == 0;
}

/* One training step of a linear layer. All its changing values lie in buffers. */
struct step {
    struct backend *be;
    struct tick_args tick;
    struct gather_args x, y;
    struct linear_args layer;
    struct linear_grads grads;
    struct mse_args loss;
    struct opt_args opt;
    struct tensor pred;
    struct twin params, losses, count, clock;
};

static struct tensor floats(int side, size_t n, float lo, float hi, struct twin *ret)
{
    *ret = twin_f32(K, n, false, lo, hi);
    return twin_at(ret, side);
}

static struct tensor zeros(int side, size_t n, struct twin *ret)
{
    *ret = twin_i32(K, n, false, 0, 1);
    return twin_at(ret, side);
}

static void step_make(struct step *s, int side)
{
    struct twin t;
    size_t n = IN * OUT;
    *s = (struct step){.be = twin_backend(side)};
    struct tensor at = zeros(side, 1, &s->clock), rate = floats(side, 1, 0, 1, &t);
    s->tick = (struct tick_args){K, STEPS, 1, floats(side, STEPS, 0.1f, 0.3f, &t), at, rate};
    t = twin_i32(K, ROWS, false, 0, ROWS);
    struct tensor index = twin_at(&t, side);
    s->x = (struct gather_args){.members = K,
                                .rows = ROWS,
                                .batch = BATCH,
                                .width = IN,
                                .src = floats(side, ROWS * IN, -1, 1, &t),
                                .index = index,
                                .dst = floats(side, BATCH * IN, 0, 1, &t)};
    s->y = s->x;
    s->y.width = OUT;
    s->y.src = floats(side, ROWS * OUT, -1, 1, &t);
    s->y.dst = floats(side, BATCH * OUT, 0, 1, &t);
    struct tensor w = floats(side, n, -1, 1, &s->params), dw = floats(side, n, 0, 1, &t);
    s->layer = (struct linear_args){K, BATCH, IN, OUT, s->x.dst, w, tensor_none()};
    s->pred = floats(side, BATCH * OUT, 0, 1, &t);
    struct tensor dy = floats(side, BATCH * OUT, 0, 1, &t);
    s->loss = (struct mse_args){
        .members = K,
        .batch = BATCH,
        .outputs = OUT,
        .pred = s->pred,
        .target = s->y.dst,
        .dpred = dy,
        .grad_scale = 1,
        .out = {floats(side, BATCH, 0, 1, &t), floats(side, 1, 0, 1, &s->losses), 1, true}};
    s->grads = (struct linear_grads){dy, tensor_none(), dw, tensor_none(), false};
    s->opt = (struct opt_args){.members = K,
                               .n = n,
                               .kind = zeros(side, 1, &t), /* OPT_SGD */
                               .params = w,
                               .grads = dw,
                               .m1 = floats(side, n, 0, 1, &t),
                               .lr = rate,
                               .step = zeros(side, 1, &s->count)};
}

static as_status step_run(const struct step *s, struct as_err *err)
{
    as_status st = backend_tick(s->be, &s->tick, err);
    if (st < 0 || (st = backend_gather(s->be, &s->x, err)) < 0 ||
        (st = backend_gather(s->be, &s->y, err)) < 0 ||
        (st = backend_linear_forward(s->be, &s->layer, ACT_NONE, s->pred, tensor_none(), err)) <
            0 ||
        (st = backend_mse(s->be, &s->loss, err)) < 0 ||
        (st = backend_linear_backward(s->be, &s->layer, &s->grads, err)) < 0)
        return st;
    return backend_optimize(s->be, &s->opt, err);
}

/* A graph that runs three times gives the same as three times the calls: the step, the learning
 * rate and the weights are read again each time. */
START_TEST(graph_runs_as_the_calls)
{
    struct as_err err;
    AS_AUTO(graph_freep) struct graph *g = NULL;
    struct step called, recorded;
    step_make(&called, 1);
    for (int i = 0; i < 3; i++)
        ck_ok(step_run(&called, &err), err);
    float params[K][IN * OUT], loss[K];
    for (size_t k = 0; k < K; k++) {
        loss[k] = twin_get_f32(&called.losses, 1, k, 0);
        for (size_t i = 0; i < IN * OUT; i++)
            params[k][i] = twin_get_f32(&called.params, 1, k, i);
    }
    twin_close();
    twin_open(); /* restarts the random numbers, so this step has the same values as the first */
    step_make(&recorded, 1);
    ck_ok(backend_graph_begin(recorded.be, &err), err);
    ck_ok(step_run(&recorded, &err), err);
    ck_ok(backend_graph_end(recorded.be, &g, &err), err);
    ck_assert_int_eq(twin_get_i32(&recorded.clock, 1, 0, 0), 0); /* nothing ran yet */
    for (int i = 0; i < 3; i++)
        ck_ok(backend_graph_run(recorded.be, g, &err), err);
    ck_assert_int_eq(twin_get_i32(&recorded.clock, 1, 1, 0), 3);
    ck_assert_int_eq(twin_get_i32(&recorded.count, 1, 1, 0), 3);
    for (size_t k = 0; k < K; k++) {
        ck_assert(twin_get_f32(&recorded.losses, 1, k, 0) == loss[k]);
        for (size_t i = 0; i < IN * OUT; i++)
            ck_assert(twin_get_f32(&recorded.params, 1, k, i) == params[k][i]);
    }
    graph_freep(&g); /* before the back end */
}
END_TEST

START_TEST(graph_refusals)
{
    struct as_err err;
    struct graph *g = NULL;
    struct backend *be = twin_backend(1);
    struct twin t = twin_f32(1, 4, false, 0, 1);
    struct buf *b = NULL;
    float x[4] = {0};
    ck_fails(backend_graph_end(be, &g, &err), AS_E_CONFLICT, err, "none is being recorded");
    ck_ok(backend_graph_begin(be, &err), err);
    ck_fails(backend_graph_begin(be, &err), AS_E_CONFLICT, err, "recorded already");
    ck_fails(buf_upload(t.side[1], 0, x, 4, &err), AS_E_CONFLICT, err, "upload while");
    ck_fails(buf_download(t.side[1], 0, x, 4, &err), AS_E_CONFLICT, err, "download while");
    ck_fails(buf_create(be, BUF_F32, 4, &b, &err), AS_E_CONFLICT, err, "a new buffer while");
    ck_fails(backend_sync(be, &err), AS_E_CONFLICT, err, "sync while");
    ck_ok(backend_graph_end(be, &g, &err), err); /* an empty one: nothing was launched */
    ck_ok(backend_graph_run(be, g, &err), err);
    graph_free(g);
    ck_ok(buf_upload(t.side[1], 0, x, 4, &err), err);
}
END_TEST

/* Factors of 8 bits: errors far above float32's, and well below a hundredth of the sums. A matrix
 * of some size, because libraries compute a single row without tensor cores, in float32. */
START_TEST(bf16_products)
{
    struct as_err err;
    struct backend *be = NULL;
    struct backend_opts opts = {.bf16 = true};
    const char *name = backend_name(twin_backend(1));
    if (!on_device()) {
        ck_fails(backend_open(name, &opts, &be, &err), AS_E_UNSUPPORTED, err, "bf16");
        return;
    }
    enum { N = 256, ALL = N * N };
    static float x[ALL], w[ALL];
    float exact = 0, y = 0;
    for (int i = 0; i < ALL; i++) {
        x[i] = 1 + (float)(i % N) / 777;
        w[i] = 1 + (float)(i / N) / 555;
    }
    for (int i = 0; i < N; i++) /* each element of y is the same sum */
        exact += x[i] * w[i * N];
    struct buf *b = NULL;
    ck_ok(backend_open(name, &opts, &be, &err), err);
    ck_ok(buf_create(be, BUF_F32, 3 * ALL, &b, &err), err);
    ck_ok(buf_upload(b, 0, x, ALL, &err), err);
    ck_ok(buf_upload(b, ALL, w, ALL, &err), err);
    struct linear_args a = {
        1, N, N, N, tensor_at(b, 0, ALL), tensor_at(b, ALL, ALL), tensor_none()};
    ck_ok(backend_linear_forward(be, &a, ACT_NONE, tensor_at(b, 2 * ALL, ALL), tensor_none(), &err),
          err);
    ck_ok(buf_download(b, 2 * ALL, &y, 1, &err), err);
    ck_assert_msg(fabsf(y - exact) < 0.01f * exact, "%g, in float32 %g", (double)y, (double)exact);
    ck_assert_msg(fabsf(y - exact) > 1e-6f * exact, "%g: float32 factors", (double)y);
    buf_free(b);
    backend_free(be);
}
END_TEST

/* ---- a device that is behind its host ---- */

/* The caller may change its memory as soon as an upload has returned. */
START_TEST(upload_has_read_its_source)
{
    struct as_err err;
    struct buf *b = NULL;
    float x[3] = {1, 2, 3}, seen[3] = {0};
    ck_ok(buf_create(twin_backend(1), BUF_F32, 3, &b, &err), err);
    ck_ok(buf_upload(b, 0, x, 3, &err), err);
    memset(x, 0, sizeof x);
    ck_ok(buf_download(b, 0, seen, 3, &err), err);
    buf_free(b);
    for (int i = 0; i < 3; i++)
        ck_assert(seen[i] == (float)(i + 1));
}
END_TEST

/* How many launches of `fill` have run on the emulated device. */
static size_t fills_run(void)
{
    char path[4096];
    size_t (*launches)(const char *) = NULL;
    (void)snprintf(path, sizeof path, "%s/libassay-cuda.so", getenv("ASSAY_PLUGIN_DIR"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_msg(plugin != NULL, "%s is not the plugin in use", path);
    *(void **)&launches = dlsym(plugin, "emu_launches");
    ck_assert_ptr_nonnull(launches);
    size_t n = launches("fill");
    ck_assert_int_eq(dlclose(plugin), 0);
    return n;
}

/* Copies out run behind the operations that were called before them, beside those called later, and
 * end in their order; more than the device keeps events for. */
START_TEST(copies_out_see_what_was_called_before)
{
    enum { N = 1000, COPIES = 150 };
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct buf *b = NULL, *other = NULL;
    uint64_t copy[COPIES];
    bool ended = false;
    void *to = NULL, *none = NULL;
    ck_ok(buf_create(be, BUF_F32, (size_t)COPIES * N, &b, &err), err);
    ck_ok(buf_create(be, BUF_F32, N, &other, &err), err);
    ck_ok(backend_host_alloc(be, (size_t)COPIES * N, &to, &err), err);
    ck_ok(backend_host_alloc(be, 0, &none, &err), err);
    const float *host = to;
    for (size_t i = 0; i < (size_t)COPIES * N; i++)
        ck_assert(host[i] == 0);
    for (size_t k = 0; k < COPIES; k++) {
        ck_ok(buf_fill_f32(b, k * N, N, (float)k + 1, &err), err);
        ck_ok(buf_download_begin(b, k * N, (float *)to + k * N, N, &copy[k], &err), err);
        ck_ok(buf_fill_f32(other, 0, N, -1, &err), err); /* does not disturb it */
    }
    ck_ok(backend_copied(be, copy[COPIES / 2], true, &ended, &err), err);
    ck_assert(ended);
    for (size_t i = 0; i <= COPIES / 2 * N; i++)
        ck_assert_msg(host[i] == (float)(i / N) + 1, "%zu: %g", i, (double)host[i]);
    ck_ok(backend_copied(be, copy[0], false, &ended, &err), err);
    ck_assert(ended);
    ck_ok(backend_copied(be, copy[COPIES - 1], true, &ended, &err), err);
    ck_assert(ended && host[(size_t)COPIES * N - 1] == COPIES);
    ck_assert_int_eq(buf_download_begin(b, (size_t)COPIES * N, to, 1, &copy[0], &err), AS_E_INVAL);
    if (on_device())
        ck_assert_int_eq(backend_copied(be, COPIES * 99, false, &ended, &err), AS_E_INVAL);
    backend_host_free(be, to);
    backend_host_free(be, none);
    backend_host_free(be, NULL);
    buf_free(b);
    buf_free(other);
}
END_TEST

START_TEST(host_is_few_steps_ahead)
{
    struct as_err err;
    struct buf *b = NULL;
    struct backend *be = twin_backend(1);
    size_t most = 0;
    ck_ok(buf_create(be, BUF_F32, 1, &b, &err), err);
    ck_ok(backend_sync(be, &err), err);
    size_t before = fills_run();
    for (size_t i = 0; i < 40; i++) {
        ck_ok(buf_fill_f32(b, 0, 1, (float)i, &err), err);
        ck_ok(backend_step_end(be, &err), err);
        size_t ahead = i + 1 - (fills_run() - before);
        most = ahead > most ? ahead : most;
    }
    buf_free(b);
    ck_assert_msg(most >= 2 && most <= 4, "%zu steps ahead", most);
}
END_TEST

/* ---- faults of the device ---- */

static void without_fault(void)
{
    (void)unsetenv("EMU_FAIL");
    (void)unsetenv("EMU_MEMORY");
    (void)unsetenv("EMU_DRIVER");
    twin_close();
}

/* The class of a fault decides whether a runner blames the device. */
START_TEST(faults_have_classes)
{
    static const struct {
        const char *fail;
        as_status status;
        const char *text;
    } faults[] = {{"214:0", AS_E_UNAVAILABLE, "ECC"}, /* also cuBLAS reports it so */
                  {"719:0", AS_E_UNAVAILABLE, "back end cuda"},
                  {"700:0", AS_E_INTERNAL, "illegal memory access"},
                  {"1:0", AS_E_INTERNAL, "invalid argument"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct as_err err;
        struct buf *b = NULL;
        struct backend *be = twin_backend(1);
        ck_ok(buf_create(be, BUF_F32, 1, &b, &err), err);
        ck_ok(backend_sync(be, &err), err);
        ck_assert_int_eq(setenv("EMU_FAIL", faults[i].fail, 1), 0);
        as_status st = buf_fill_f32(b, 0, 1, 1, &err);
        if (st == AS_OK)
            st = backend_sync(be, &err);
        ck_assert_int_eq(st, faults[i].status);
        ck_assert_msg(strstr(err.msg, faults[i].text) != NULL, "%s", err.msg);
        ck_assert_int_eq(backend_step_end(be, &err), faults[i].status);
        ck_assert_int_eq(unsetenv("EMU_FAIL"), 0);
        buf_free(b);
    }
}
END_TEST

START_TEST(an_old_driver_is_refused_with_both_versions)
{
    struct as_err err;
    struct backend *be = NULL;
    ck_assert_int_eq(setenv("EMU_DRIVER", "12040", 1), 0);
    as_status st = backend_open("cuda", NULL, &be, &err);
    ck_assert_int_eq(st, AS_E_UNAVAILABLE);
    ck_assert_msg(strstr(err.msg, "found 550.54.15, which is for CUDA 12.4") != NULL &&
                      strstr(err.msg, "needs NVIDIA driver 580 or newer (CUDA 13.0)") != NULL,
                  "%s", err.msg);
    ck_assert_int_eq(setenv("EMU_DRIVER", "13010", 1), 0); /* newer than the plugin */
    ck_ok(backend_open("cuda", NULL, &be, &err), err);
    backend_free(be);
}
END_TEST

START_TEST(memory_of_the_device)
{
    struct as_err err;
    struct buf *b = NULL;
    struct backend *be = twin_backend(1);
    size_t free_bytes = 1, total = 1, after = 0;
    ck_ok(backend_memory(twin_backend(0), &free_bytes, &total, &err), err);
    ck_assert(free_bytes == 0 && total == 0); /* the host's */
    ck_assert_int_eq(setenv("EMU_MEMORY", "100000000", 1), 0);
    ck_ok(backend_memory(be, &free_bytes, &total, &err), err);
    ck_assert(total == 100000000 && free_bytes < total);
    ck_ok(buf_create(be, BUF_F32, 1000, &b, &err), err);
    ck_ok(backend_memory(be, &after, &total, &err), err);
    ck_assert_uint_eq(free_bytes - after, 4000);
    buf_free(b);
    ck_fails(buf_create(be, BUF_F32, total / 4, &b, &err), AS_E_NOMEM, err, "out of memory");
}
END_TEST

START_TEST(gpus_have_uuids)
{
    struct as_err err;
    struct backend_gpu gpus[2];
    size_t n = 0;
    ck_ok(backend_gpus(gpus, 2, &n, &err), err);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(gpus[0].id, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
    ck_assert_uint_eq(gpus[0].memory_bytes, (size_t)1 << 36);
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_device");
    TCase *c = tcase_create("device");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, graph_runs_as_the_calls);
    tcase_add_test(c, graph_refusals);
    tcase_add_test(c, bf16_products);
    tcase_add_test(c, upload_has_read_its_source);
    tcase_add_test(c, copies_out_see_what_was_called_before);
    suite_add_tcase(s, c);
    const char *async = getenv("EMU_ASYNC");
    if (twin_is_emulated()) {
        c = tcase_create("emulated");
        tcase_add_checked_fixture(c, twin_open, without_fault);
        tcase_add_test(c, faults_have_classes);
        tcase_add_test(c, an_old_driver_is_refused_with_both_versions);
        tcase_add_test(c, memory_of_the_device);
        tcase_add_test(c, gpus_have_uuids);
        if (async != NULL && strcmp(async, "1") == 0)
            tcase_add_test(c, host_is_few_steps_ahead);
        suite_add_tcase(s, c);
    }
    return s;
}
