/* The path of convolutions on cuda: ASSAY_CUDA_CONV, and the case that cuDNN is absent, has another
 * version, or has no engine for a shape. test_conv.c tests the values. This program runs emulated
 * and on a device. tests/kernels/emu/dnn.cuh lists the shapes without an engine in the emulated
 * cuDNN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/ops.h"
#include "tests/support/check_main.h"
#include "tests/kernels/twin.h"

/* K, B, H, W, C, O, KH, KW, stride, pad */
static const struct conv_args usual = {2, 3, 7, 6, 5, 9, 3, 3, 2, 1, .groups = 1};
static const struct conv_args second_choice = {2, 3, 7, 6, 5, 17, 3, 3, 2, 1, .groups = 1};
static const struct conv_args no_engine = {2, 3, 7, 6, 7, 9, 3, 3, 2, 1, .groups = 1};

#define STAND_IN "only the stand-in for cuDNN can be told what it lacks (ASSAY_TEST_EMULATED)"

/* ---- the environment ---- */

static char *was_library; /* ASSAY_CUDNN at the start of the test */

static void put(const char *name, const char *value)
{
    ck_assert_int_eq(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void remember(void)
{
    const char *library = getenv("ASSAY_CUDNN");
    was_library = library != NULL ? as_strdup(library) : NULL;
}

static void restore(void)
{
    put("ASSAY_CUDNN", was_library);
    put("ASSAY_CUDA_CONV", NULL);
    put("EMU_CUDNN_VERSION", NULL);
    put("EMU_CUDNN_NO_HANDLE", NULL);
    free(was_library);
}

static struct backend *open_path(const char *path, bool bf16)
{
    struct as_err err;
    struct backend *be = NULL;
    put("ASSAY_CUDA_CONV", path);
    ck_ok(backend_open("cuda", &(struct backend_opts){.bf16 = bf16}, &be, &err), err);
    return be;
}

/* ---- one layer, forward and backward ---- */

struct layer {
    struct backend *be;
    struct conv_args a;
    struct conv_grads g;
    struct tensor y;
    struct buf *values, *work;
    size_t n; /* floats of y, dx, dw of all members: the first of values */
};

/* Tensors one after another, members with a gap of one float between them, so that few begin at
 * multiples of 16 bytes. */
static struct tensor next(struct buf *b, size_t *at, size_t members, size_t n)
{
    struct tensor t = tensor_at(b, *at, n + 1);
    *at += members * (n + 1);
    return t;
}

static void layer_make(struct layer *l, struct backend *be, const struct conv_args *sizes)
{
    struct as_err err;
    size_t oh = conv_out_len(sizes->height, sizes->kernel_h, sizes->stride, sizes->pad);
    size_t ow = conv_out_len(sizes->width, sizes->kernel_w, sizes->stride, sizes->pad);
    size_t k = sizes->members, ny = sizes->batch * oh * ow * sizes->out, at = 0;
    size_t nx = sizes->batch * sizes->height * sizes->width * sizes->channels;
    size_t nw = sizes->kernel_h * sizes->kernel_w * sizes->channels * sizes->out;
    size_t all = 2 * k * (nx + ny + nw + 3), work = backend_conv_work(be, sizes);
    *l = (struct layer){.be = be, .a = *sizes};
    ck_ok(buf_create(be, BUF_F32, all, &l->values, &err), err);
    ck_ok(buf_create(be, BUF_F32, k * work + 1, &l->work, &err), err);
    float *data = as_calloc(all, sizeof(*data));
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < all; i++)
        data[i] = (float)(i * 37 % 101) / 50 - 1;
    ck_ok(buf_upload(l->values, 0, data, all, &err), err);
    free(data);
    l->y = next(l->values, &at, k, ny);
    l->g.dx = next(l->values, &at, k, nx);
    l->g.dw = next(l->values, &at, k, nw);
    l->n = at;
    l->a.x = next(l->values, &at, k, nx);
    l->a.w = next(l->values, &at, k, nw);
    l->g.dy = next(l->values, &at, k, ny);
    l->a.work = tensor_at(l->work, 0, work);
}

static void layer_done(struct layer *l)
{
    buf_free(l->values);
    buf_free(l->work);
}

static as_status layer_run(const struct layer *l, struct as_err *err)
{
    as_status st = backend_conv_forward(l->be, &l->a, ACT_RELU, l->y, tensor_none(), err);
    return st < 0 ? st : backend_conv_backward(l->be, &l->a, &l->g, err);
}

/* y, dx and dw, owned by the caller. */
static float *layer_results(const struct layer *l)
{
    struct as_err err;
    float *ret = as_calloc(l->n, sizeof(*ret));
    ck_assert_ptr_nonnull(ret);
    ck_ok(buf_download(l->values, 0, ret, l->n, &err), err);
    return ret;
}

/* The outputs of this layer on this path; *ret_n values, owned by the caller. backend_conv_path()
 * must then begin with `text`. */
static float *results(const char *path, const struct conv_args *sizes, const char *text,
                      size_t *ret_n)
{
    struct as_err err;
    struct layer l;
    struct backend *be = open_path(path, false);
    layer_make(&l, be, sizes);
    ck_ok(layer_run(&l, &err), err);
    float *ret = layer_results(&l);
    *ret_n = l.n;
    ck_assert_msg(strncmp(backend_conv_path(be), text, strlen(text)) == 0,
                  "'%s' begins not with %s", backend_conv_path(be), text);
    layer_done(&l);
    backend_free(be);
    return ret;
}

/* With ASSAY_CUDA_CONV=cudnn, our own path runs and the text says why. The bits are those of our
 * own. */
static void falls_back(const struct conv_args *sizes, const char *text)
{
    size_t n = 0, m = 0;
    float *own = results(NULL, sizes, "own", &n), *got = results("cudnn", sizes, text, &m);
    ck_assert_uint_eq(n, m);
    ck_assert_msg(memcmp(own, got, n * sizeof(*own)) == 0, "%s: other bits than our own", text);
    free(own);
    free(got);
}

static void close_to(const float *a, const float *b, size_t n, double bound)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)a[i] - (double)b[i]) <= bound, "element %zu: %g and %g", i,
                      (double)a[i], (double)b[i]);
}

/* ---- tests ---- */

START_TEST(asked_for)
{
    struct as_err err;
    size_t n = 0;
    struct backend *be = NULL;
    put("ASSAY_CUDA_CONV", "fft");
    ck_fails(backend_open("cuda", NULL, &be, &err), AS_E_INVAL, err,
             "ASSAY_CUDA_CONV is \"fft\", expected own or cudnn");
    free(results(NULL, &usual, "own", &n));
    free(results("", &usual, "own", &n));
    free(results("own", &usual, "own", &n));
    be = open_path("cudnn", false);
    ck_assert_str_eq(backend_conv_path(be), "cuDNN, not opened yet");
    backend_free(be);
    float *own = results("own", &usual, "own", &n), *got = results("cudnn", &usual, "cuDNN 9.", &n);
    close_to(own, got, n, 1e-4); /* of sums of up to 108 products of size 1 */
    free(own);
    free(got);
}
END_TEST

START_TEST(library_absent)
{
    put("ASSAY_CUDNN", "/nonexistent/libcudnn.so.9");
    falls_back(&usual, "own, for /nonexistent/libcudnn.so.9 does not open: ");
    put("ASSAY_CUDNN", "libm.so.6");
    falls_back(&usual, "own, for libm.so.6 is not cuDNN");
}
END_TEST

START_TEST(another_version)
{
    static const char *const versions[][2] = {{"8907", "own, for cuDNN is 8.9, expected 9: "},
                                              {"7605", "own, for cuDNN is 7.6, expected 9: "},
                                              {"100000", "own, for cuDNN is 10.0, expected 9: "}};
    for (size_t i = 0; i < AS_ARRAY_LEN(versions); i++) {
        put("EMU_CUDNN_VERSION", versions[i][0]);
        falls_back(&usual, versions[i][1]);
    }
    put("EMU_CUDNN_VERSION", NULL);
    put("EMU_CUDNN_NO_HANDLE", "1");
    falls_back(&usual, "own, for back end cuda: cuDNN: a handle: not initialized");
}
END_TEST

START_TEST(engines)
{
    size_t n = 0;
    free(results("cudnn", &usual, "cuDNN 9.19.0: 3 operations, own: 0", &n));
    float *own = results("own", &second_choice, "own", &n);
    float *got = results("cudnn", &second_choice, "cuDNN 9.19.0: 3 operations, own: 0", &n);
    close_to(own, got, n, 1e-4);
    free(own);
    free(got);
    falls_back(&no_engine, "cuDNN 9.19.0: 0 operations, own: 3");
}
END_TEST

/* A recorded layer gives the bits of the calls. A call that needs a new plan cannot be recorded. */
START_TEST(recorded)
{
    struct as_err err;
    struct layer l, other;
    AS_AUTO(graph_freep) struct graph *g = NULL;
    struct backend *be = open_path("cudnn", false);
    layer_make(&l, be, &usual);
    layer_make(&other, be, &second_choice);
    ck_ok(backend_graph_begin(be, &err), err);
    ck_fails(layer_run(&l, &err), AS_E_CONFLICT, err, "the first convolution while a graph");
    ck_ok(backend_graph_end(be, &g, &err), err);
    graph_freep(&g);
    ck_ok(layer_run(&l, &err), err);
    float *called = layer_results(&l);
    ck_ok(buf_fill_f32(l.values, 0, l.n, NAN, &err), err);
    ck_ok(backend_graph_begin(be, &err), err);
    ck_ok(layer_run(&l, &err), err);
    ck_fails(layer_run(&other, &err), AS_E_CONFLICT, err, "a new shape while a graph");
    ck_ok(backend_graph_end(be, &g, &err), err);
    ck_ok(backend_graph_run(be, g, &err), err);
    float *replayed = layer_results(&l);
    size_t last = 0; /* the gaps between members stay NaN */
    for (size_t i = 0; i < l.n; i++)
        if (!isnan(replayed[i])) {
            ck_assert(memcmp(&replayed[i], &called[i], sizeof(float)) == 0);
            last = i;
        }
    ck_assert_uint_eq(last, l.n - 2);
    free(called);
    free(replayed);
    graph_freep(&g);
    layer_done(&l);
    layer_done(&other);
    backend_free(be);
}
END_TEST

/* With bf16 cuDNN may round factors, to TF32 (the stand-in does): errors past those of float32,
 * well below those of 8 bits. Member 1 of 2 has the bits that it has alone at a place with another
 * alignment. */
START_TEST(tensor_cores)
{
    struct as_err err;
    struct layer l;
    size_t n = 0;
    double worst = 0;
    struct backend *be = open_path("cudnn", true);
    layer_make(&l, be, &usual);
    ck_ok(layer_run(&l, &err), err);
    float *got = layer_results(&l), *exact = results("own", &usual, "own", &n);
    ck_assert_uint_eq(n, l.n);
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)got[i] - (double)exact[i]));
    ck_assert_msg(worst < 0.05 && (worst > 1e-5 || !twin_is_emulated()), "the largest error is %g",
                  worst);
    l.a.members = 1;
    l.a.x = tensor_from(l.a.x, 1);
    l.a.w = tensor_from(l.a.w, 1);
    l.g.dy = tensor_from(l.g.dy, 1);
    ck_ok(layer_run(&l, &err), err); /* writes its outputs in place of member 0's */
    float *alone = layer_results(&l);
    size_t y = l.y.stride, dx = l.g.dx.offset, dw = l.g.dw.offset;
    ck_assert(memcmp(alone, got + y, (y - 1) * sizeof(*got)) == 0);
    ck_assert(memcmp(alone + dx, got + dx + l.g.dx.stride, (l.g.dx.stride - 1) * sizeof(*got)) ==
              0);
    ck_assert(memcmp(alone + dw, got + dw + l.g.dw.stride, (l.g.dw.stride - 1) * sizeof(*got)) ==
              0);
    free(got);
    free(exact);
    free(alone);
    layer_done(&l);
    backend_free(be);
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_conv_path");
    TCase *c = tcase_create("path");
    tcase_add_checked_fixture(c, remember, restore);
    tcase_add_test(c, asked_for);
    tcase_add_test(c, library_absent);
    add_test_if(c, another_version, twin_is_emulated(), STAND_IN);
    add_test_if(c, engines, twin_is_emulated(), STAND_IN);
    tcase_add_test(c, recorded);
    tcase_add_test(c, tensor_cores);
    suite_add_tcase(s, c);
    return s;
}
