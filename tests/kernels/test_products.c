/* Products on a device: which way is chosen (cublasLt with fused steps, cublasLt alone, cuBLAS,
 * long sums in parts), and that each way gives the oracle's values and a member the same bits alone
 * and in a group. The choices of cublasLt are known for the emulated library only: a real one may
 * differ. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/cuda/products.h"
#include "tests/kernels/case.h"

#define EMULATED "only the emulated cublasLt can be made to fail (ASSAY_TEST_EMULATED)"

/* The counters of a back end of the plugin. */
static struct products_count counts_of(const struct backend *be)
{
    char path[4096];
    cuda_products_count *count = NULL;
    (void)snprintf(path, sizeof(path), "%s/libassay-cuda.so", getenv("ASSAY_PLUGIN_DIR"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_msg(plugin != NULL, "%s is not the plugin in use", path);
    *(void **)&count = dlsym(plugin, CUDA_PRODUCTS_COUNT_SYMBOL);
    ck_assert_ptr_nonnull(count);
    struct products_count n = *count(be);
    ck_assert_int_eq(dlclose(plugin), 0);
    return n;
}

/* The back end under test opened with ASSAY_CUDA_PRODUCTS; it stays set, because cases open back
 * ends again. */
static void open_with(const char *way)
{
    ck_assert_int_eq(setenv(CUDA_PRODUCTS_ENV, way, 1), 0);
    twin_open();
}

static void open_auto(void)
{
    open_with("auto");
}

static void open_lt(void)
{
    open_with("lt");
}

static void open_gemm(void)
{
    open_with("gemm");
}

static void close_any(void)
{
    twin_close();
    ck_assert_int_eq(unsetenv(CUDA_PRODUCTS_ENV), 0);
}

/* ---- layers as lists of places ---- */

enum { X, W, B, Y, Z, DY, DX, DW, DB, PLACES };

struct layer {
    size_t batch, in, out;
    act_kind act;
    bool biased, keep, accumulate;
    bool aligned; /* members at multiples of 16 bytes */
};

static void lay(const struct layer *l)
{
    size_t offset = l->aligned ? 4 : 3, gap = l->aligned ? 4 : 5;
    twin_lay(offset, gap);
}

static struct linear_args args_of(const struct layer *l, size_t members, const struct tensor *t)
{
    return (struct linear_args){members, l->batch, l->in, l->out, t[X], t[W], t[B]};
}

static as_status forward(struct backend *be, size_t members, const struct tensor *t,
                         const void *shape, struct as_err *err)
{
    const struct layer *l = shape;
    struct linear_args a = args_of(l, members, t);
    return backend_linear_forward(be, &a, l->act, t[Y], t[Z], err);
}

static as_status backward(struct backend *be, size_t members, const struct tensor *t,
                          const void *shape, struct as_err *err)
{
    const struct layer *l = shape;
    struct linear_args a = args_of(l, members, t);
    struct linear_grads g = {t[DY], t[DX], t[DW], t[DB], l->accumulate};
    return backend_linear_backward(be, &a, &g, err);
}

static struct case_op op_of(const struct layer *l, case_call *call)
{
    return (struct case_op){
        .call = call,
        .shape = l,
        .places = {[X] = {"x", BUF_F32, l->batch * l->in, -1, 1, CASE_SHARED},
                   [W] = {"w", BUF_F32, l->in * l->out, -1, 1, CASE_SHARED},
                   [B] = {"b", BUF_F32, l->out, -1, 1, l->biased ? CASE_SHARED : CASE_ABSENT},
                   [Y] = {"y", BUF_F32, l->batch * l->out, 5, 6, 0},
                   [Z] = {"z", BUF_F32, l->batch * l->out, 5, 6, l->keep ? 0 : CASE_ABSENT},
                   [DY] = {"dy", BUF_F32, l->batch * l->out, -1, 1, CASE_SHARED},
                   [DX] = {"dx", BUF_F32, l->batch * l->in, 5, 6, 0},
                   [DW] = {"dw", BUF_F32, l->in * l->out, 5, 6, 0},
                   [DB] = {"db", BUF_F32, l->out, 5, 6, 0}},
        .n_places = PLACES,
        .atol = 2e-5f,
        .rtol = 1e-5f,
    };
}

/* ---- the chosen way ---- */

struct way {
    const char *what;
    struct layer layer;
    case_call *call;
    size_t members;
    unsigned lt, bias, relu, bias_grad, one_by_one; /* of the emulated library */
};

/* clang-format off */
static const struct way ways[] = {
    {"bias and relu", {8, 16, 12, ACT_RELU, true, false, false, true}, forward, 3, 1, 1, 1, 0, 0},
    {"alone", {8, 16, 12, ACT_RELU, true, false, false, true}, forward, 1, 1, 1, 1, 0, 0},
    {"relu without a bias", {8, 16, 12, ACT_RELU, false, false, false, true}, forward, 3, 1, 0, 1, 0, 0},
    {"bias alone", {8, 16, 12, ACT_NONE, true, false, false, true}, forward, 3, 1, 1, 0, 0, 0},
    {"odd inner size", {7, 5, 12, ACT_RELU, true, false, false, true}, forward, 3, 1, 1, 1, 0, 0},
    {"odd outputs: the bias at any place", {9, 16, 7, ACT_RELU, true, false, false, true}, forward, 3, 1, 0, 0, 0, 0},
    {"odd outputs alone: as in a group", {9, 16, 7, ACT_RELU, true, false, false, true}, forward, 1, 1, 0, 0, 0, 0},
    {"at any place", {8, 16, 12, ACT_RELU, true, false, false, false}, forward, 3, 1, 0, 0, 0, 0},
    {"z is wanted", {8, 16, 12, ACT_RELU, true, true, false, true}, forward, 3, 1, 1, 0, 0, 0},
    {"z without activation", {8, 16, 12, ACT_NONE, true, true, false, true}, forward, 2, 1, 1, 0, 0, 0},
    {"gelu", {8, 16, 12, ACT_GELU, true, true, false, true}, forward, 3, 1, 1, 0, 0, 0},
    {"tanh", {8, 16, 12, ACT_TANH, true, false, false, true}, forward, 3, 1, 1, 0, 0, 0},
    {"nothing to fuse", {8, 16, 12, ACT_TANH, false, false, false, true}, forward, 3, 1, 0, 0, 0, 0},
    {"an empty sum", {8, 0, 12, ACT_RELU, true, false, false, true}, forward, 3, 0, 0, 0, 0, 0},
    {"no rows", {0, 16, 12, ACT_RELU, true, false, false, true}, forward, 3, 0, 0, 0, 0, 0},
    {"dw with db", {8, 16, 12, ACT_NONE, false, false, false, true}, backward, 3, 2, 0, 0, 1, 0},
    {"dw with db, member by member", {12, 16, 12, ACT_NONE, false, false, false, true}, backward, 3, 2, 0, 0, 1, 1},
    {"dw with db, two at once", {12, 16, 12, ACT_NONE, false, false, false, true}, backward, 2, 2, 0, 0, 1, 0},
    {"dw with db, alone", {12, 16, 12, ACT_NONE, false, false, false, true}, backward, 1, 2, 0, 0, 1, 0},
    {"db not for two at once", {7, 16, 12, ACT_NONE, false, false, false, true}, backward, 3, 2, 0, 0, 0, 0},
    {"db not for two at once: nor alone", {7, 16, 12, ACT_NONE, false, false, false, true}, backward, 1, 2, 0, 0, 0, 0},
    {"dw and db are added to", {8, 16, 12, ACT_NONE, false, false, true, true}, backward, 3, 2, 0, 0, 0, 0},
    {"dw, odd inputs", {8, 13, 12, ACT_NONE, false, false, false, true}, backward, 3, 2, 0, 0, 0, 0},
    {"past the tiles of our own", {33, 65, 70, ACT_GELU, true, true, false, false}, forward, 2, 1, 0, 0, 0, 0},
    {"dw past the tiles", {37, 33, 66, ACT_NONE, false, false, false, false}, backward, 2, 2, 0, 0, 0, 0},
    {"dw past the tiles, added to", {64, 40, 32, ACT_NONE, false, false, true, true}, backward, 2, 2, 0, 0, 0, 0},
    {"dw at any place", {33, 17, 9, ACT_NONE, false, false, false, false}, backward, 3, 2, 0, 0, 0, 0},
};
/* clang-format on */

static void same_count(const struct way *w, const char *what, uint64_t got, unsigned want)
{
    ck_assert_msg(!twin_is_emulated() || got == want, "%s: %s %u, expected %u", w->what, what,
                  (unsigned)got, want);
}

/* Run it on both sides. Returns the counters of the back end under test. */
static struct products_count counted(const struct way *w)
{
    struct case_op op = op_of(&w->layer, w->call);
    lay(&w->layer);
    struct case_run r = case_make(&op, w->members, false);
    ck_assert_uint_eq(counts_of(twin_backend(1)).planned, 0);
    case_do(&r, w->call);
    case_same(&r);
    return counts_of(twin_backend(1));
}

START_TEST(through_lt)
{
    const struct way *w = &ways[_i];
    struct products_count n = counted(w);
    same_count(w, "by cublasLt", n.lt, w->lt);
    same_count(w, "with bias", n.bias, w->bias);
    same_count(w, "with relu", n.relu, w->relu);
    same_count(w, "with bias gradient", n.bias_grad, w->bias_grad);
    same_count(w, "member by member", n.one_by_one, w->one_by_one);
    ck_assert_uint_eq(n.lt + n.gemm, w->lt);
}
END_TEST

START_TEST(through_gemm)
{
    const struct way *w = &ways[_i];
    struct products_count n = counted(w);
    ck_assert_uint_eq(n.gemm, w->lt);
    ck_assert_uint_eq(n.lt + n.planned, 0);
}
END_TEST

/* ---- long sums, in parts ---- */

/* The gradient of a weight sums all rows: `beyond` more than the shortest sum that is split. */
static const struct long_sum {
    const char *what;
    size_t beyond;
    struct layer layer; /* its batch is the sum's length */
} long_sums[] = {
    {"parts of one length", 0, {0, 12, 8, ACT_NONE, false, false, false, true}},
    {"a rest", 5, {0, 12, 8, ACT_NONE, false, false, false, true}},
    {"at any place", 3, {0, 13, 7, ACT_NONE, false, false, false, false}},
    {"added to", 0, {0, 12, 8, ACT_NONE, false, false, true, true}},
    {"added to, with a rest", 7, {0, 5, 3, ACT_NONE, false, false, true, false}},
    {"several tiles", 1, {0, 70, 66, ACT_NONE, false, false, false, false}},
};

static struct case_op long_sum_op(const struct long_sum *l, struct layer *ret)
{
    *ret = l->layer;
    ret->batch = (size_t)counts_of(twin_backend(1)).split_from + l->beyond;
    struct case_op op = op_of(ret, backward);
    op.places[DW].lo = -1; /* what is added to is as large as a factor */
    op.places[DW].hi = 1;
    op.atol = 2e-4f; /* sums of 2,048 products on a device */
    return op;
}

START_TEST(long_sum)
{
    const struct long_sum *l = &long_sums[_i];
    struct layer layer;
    struct case_op op = long_sum_op(l, &layer);
    lay(&layer);
    struct case_run r = case_make(&op, 3, false);
    struct products_count before = counts_of(twin_backend(1));
    case_do(&r, backward);
    case_same(&r);
    ck_assert_msg(counts_of(twin_backend(1)).split == before.split + 1, "%s: not in parts",
                  l->what);
}
END_TEST

START_TEST(long_sum_alone)
{
    struct layer layer;
    struct case_op op = long_sum_op(&long_sums[_i], &layer);
    lay(&layer);
    case_slots(&op);
}
END_TEST

/* One row less is not split. */
START_TEST(short_sum)
{
    struct layer layer;
    struct case_op op = long_sum_op(&long_sums[0], &layer);
    layer.batch--;
    op = op_of(&layer, backward);
    op.atol = 2e-4f;
    lay(&layer);
    struct case_run r = case_make(&op, 2, false);
    case_do(&r, backward);
    case_same(&r);
    ck_assert_uint_eq(counts_of(twin_backend(1)).split, 0);
}
END_TEST

START_TEST(same_bits_alone)
{
    const struct way *w = &ways[_i];
    struct case_op op = op_of(&w->layer, w->call);
    lay(&w->layer);
    case_slots(&op);
}
END_TEST

/* Inputs shared by all members (stride 0), and none of them. */
START_TEST(shared_inputs)
{
    const struct way *w = &ways[_i];
    struct case_op op = op_of(&w->layer, w->call);
    for (size_t members = 0; members <= 3; members += 3) {
        lay(&w->layer);
        struct case_run r = case_make(&op, members, true);
        case_do(&r, w->call);
        case_same(&r);
    }
}
END_TEST

START_TEST(gradients)
{
    static const struct layer l = {4, 4, 4, ACT_NONE, true, false, false, true};
    struct case_op op = op_of(&l, forward);
    for (int i = 0; i < 3; i++) {
        struct case_gradient g = {
            backward, (size_t[]){X, W, B}[i], (size_t[]){DX, DW, DB}[i], Y, DY, 1e-2f, 2e-3f};
        lay(&l);
        case_differences(&op, &g);
    }
}
END_TEST

/* ---- plans ---- */

/* The first call makes a plan. A second call and a recording do not. Other members need other
 * plans. */
START_TEST(planned_once)
{
    static const struct layer l = {8, 16, 12, ACT_RELU, true, false, false, true};
    struct case_op op = op_of(&l, forward);
    struct backend *be = twin_backend(1);
    struct as_err err;
    AS_AUTO(graph_freep) struct graph *g = NULL;
    lay(&l);
    struct case_run three = case_make(&op, 3, false), two = case_make(&op, 2, false);
    case_do(&three, forward);
    case_do(&three, backward);
    struct products_count first = counts_of(be);
    ck_assert_uint_gt(first.planned, 0);
    case_do(&three, forward);
    case_do(&three, backward);
    ck_ok(backend_graph_begin(be, &err), err);
    struct tensor t[PLACES];
    for (size_t i = 0; i < PLACES; i++)
        t[i] = i == Z ? tensor_none() : twin_at(&three.at[i], 1);
    ck_ok(forward(be, 3, t, &l, &err), err);
    ck_ok(backward(be, 3, t, &l, &err), err);
    ck_ok(backend_graph_end(be, &g, &err), err);
    struct products_count again = counts_of(be);
    ck_assert_uint_eq(again.planned, first.planned);
    ck_assert_uint_eq(again.planned_late, 0);
    ck_ok(backend_graph_run(be, g, &err), err);
    case_same(&three);
    case_do(&two, forward);
    ck_assert_uint_gt(counts_of(be).planned, first.planned);
    graph_freep(&g); /* before the back end */
}
END_TEST

/* A graph without an earlier call gives the bits of the call, though ReLU is not in the launch. */
START_TEST(recorded_first)
{
    static const struct layer l = {8, 16, 12, ACT_RELU, true, false, false, true};
    struct case_op op = op_of(&l, forward);
    struct backend *be = twin_backend(1);
    struct as_err err;
    AS_AUTO(graph_freep) struct graph *g = NULL;
    float y[2][3][8 * 12];
    lay(&l);
    struct case_run r = case_make(&op, 3, false);
    struct tensor t[PLACES];
    for (size_t i = 0; i < PLACES; i++)
        t[i] = i == Z ? tensor_none() : twin_at(&r.at[i], 1);
    for (int way = 0; way < 2; way++) {
        if (way == 0) {
            ck_ok(backend_graph_begin(be, &err), err);
            ck_ok(forward(be, 3, t, &l, &err), err);
            ck_ok(backend_graph_end(be, &g, &err), err);
            ck_ok(backend_graph_run(be, g, &err), err);
        } else {
            ck_ok(forward(be, 3, t, &l, &err), err);
        }
        for (size_t k = 0; k < 3; k++)
            ck_ok(buf_download(t[Y].buf, t[Y].offset + k * t[Y].stride, y[way][k], 8 * 12, &err),
                  err);
    }
    struct products_count n = counts_of(be);
    if (twin_is_emulated()) {
        ck_assert_uint_eq(n.planned_late, 1);
        ck_assert_uint_eq(n.relu, 1); /* the call's */
    }
    ck_assert(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    graph_freep(&g);
}
END_TEST

/* ---- other libraries, other settings ---- */

/* With an environment variable set, the layer's calls on a back end of its own: right values, and
 * the counters of the forward call and of both. */
static void with(const char *name, const char *value, const struct layer *l,
                 struct products_count *ret_forward, struct products_count *ret_both)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
    twin_close();
    twin_open();
    ck_assert_int_eq(unsetenv(name), 0);
    struct case_op op = op_of(l, forward);
    lay(l);
    struct case_run r = case_make(&op, 3, false);
    case_do(&r, forward);
    *ret_forward = counts_of(twin_backend(1));
    case_do(&r, backward);
    *ret_both = counts_of(twin_backend(1));
    case_same(&r);
}

static const struct layer fusable = {8, 16, 12, ACT_RELU, true, false, false, true};

START_TEST(unknown_way)
{
    struct as_err err;
    struct backend *be = NULL;
    ck_assert_int_eq(setenv(CUDA_PRODUCTS_ENV, "cutlass", 1), 0);
    ck_fails(backend_open("cuda", NULL, &be, &err), AS_E_INVAL, err, "is 'cutlass', must be");
    ck_assert_int_eq(setenv(CUDA_PRODUCTS_ENV, "", 1), 0); /* as if it were not set */
    ck_ok(backend_open("cuda", NULL, &be, &err), err);
    ck_assert_uint_gt(counts_of(be).split_from, 0);
    backend_free(be);
}
END_TEST

/* A ReLU epilogue that turns NaN into 0 is not used. */
START_TEST(relu_loses_nan)
{
    struct products_count f, b;
    with("EMU_RELU", "nan_to_0", &fusable, &f, &b);
    ck_assert_uint_eq(f.relu, 0);
    ck_assert_uint_eq(f.bias, 1);
    ck_assert_uint_eq(f.refused, 1);
}
END_TEST

/* An algorithm passes the library's check but does not run: cuBLAS is used from then on. */
START_TEST(launch_turned_down)
{
    struct products_count f, b;
    with("EMU_LT", "launch_fails", &fusable, &f, &b);
    ck_assert_uint_eq(b.lt, 0);
    ck_assert_uint_eq(b.gemm, 3);
    ck_assert_uint_eq(b.refused, b.planned);
}
END_TEST

/* NaN in x reaches relu's output, fused or not. */
START_TEST(nan_stays)
{
    struct case_op op = op_of(&fusable, forward);
    lay(&fusable);
    struct case_run r = case_make(&op, 2, false);
    twin_set_f32(&r.at[X], 1, 16, NAN); /* row 1 */
    case_do(&r, forward);
    case_same(&r);
    for (size_t o = 0; o < fusable.out; o++) {
        ck_assert_float_nan(twin_get_f32(&r.at[Y], 1, 1, fusable.out + o));
        ck_assert(!isnan(twin_get_f32(&r.at[Y], 1, 0, fusable.out + o)));
    }
}
END_TEST

/* bfloat16 factors, float32 sums: the same way as float32, with the error of 8 bits. */
START_TEST(bf16)
{
    struct as_err err;
    struct backend *be = NULL;
    struct buf *b = NULL;
    enum { M = 4, I = 64, O = 4, N = M * I + I * O + O + M * O };
    float data[N], y = 0;
    for (size_t i = 0; i < N; i++)
        data[i] = 1 + (float)(i % 97) / 777;
    double exact = (double)data[M * I + I * O];
    for (size_t i = 0; i < I; i++)
        exact += (double)data[i] * (double)data[M * I + i * O];
    ck_ok(backend_open("cuda", &(struct backend_opts){.bf16 = true}, &be, &err), err);
    ck_ok(buf_create(be, BUF_F32, N, &b, &err), err);
    ck_ok(buf_upload(b, 0, data, N, &err), err);
    size_t w = M * I, bias = w + I * O, to = bias + O;
    struct linear_args a = {
        1, M, I, O, tensor_at(b, 0, M * I), tensor_at(b, w, I * O), tensor_at(b, bias, O)};
    ck_ok(backend_linear_forward(be, &a, ACT_RELU, tensor_at(b, to, M * O), tensor_none(), &err),
          err);
    ck_ok(buf_download(b, to, &y, 1, &err), err);
    struct products_count n = counts_of(be);
    ck_assert_msg(fabs((double)y - exact) < 0.01 * exact, "%g, exactly %g", (double)y, exact);
    ck_assert_msg(fabs((double)y - exact) > 1e-6 * exact, "%g: float32 factors", (double)y);
    ck_assert_uint_eq(n.lt + n.gemm, 1);
    if (twin_is_emulated())
        ck_assert_uint_eq(n.relu, 1);
    buf_free(b);
    backend_free(be);
}
END_TEST

/* The cases for every way, and the one that checks which way was chosen. */
static TCase *add_way(Suite *s, const char *name, void (*open)(void), const TTest *which)
{
    TCase *c = tcase_create(name);
    tcase_add_checked_fixture(c, open, close_any);
    tcase_add_loop_test(c, which, 0, AS_ARRAY_LEN(ways));
    tcase_add_loop_test(c, shared_inputs, 0, AS_ARRAY_LEN(ways));
    tcase_add_test(c, nan_stays);
    tcase_add_test(c, gradients);
    suite_add_tcase(s, c);
    return c;
}

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_products");
    (void)add_way(s, "gemm", open_gemm, through_gemm);
    TCase *c = add_way(s, "lt", open_lt, through_lt);
    tcase_add_loop_test(c, same_bits_alone, 0, AS_ARRAY_LEN(ways));
    tcase_add_test(c, planned_once);
    tcase_add_test(c, recorded_first);
    add_test_if(c, relu_loses_nan, twin_is_emulated(), EMULATED);
    add_test_if(c, launch_turned_down, twin_is_emulated(), EMULATED);
    tcase_add_test(c, bf16);
    c = tcase_create("auto");
    tcase_add_checked_fixture(c, open_auto, close_any);
    tcase_add_loop_test(c, long_sum, 0, AS_ARRAY_LEN(long_sums));
    tcase_add_loop_test(c, long_sum_alone, 0, AS_ARRAY_LEN(long_sums));
    tcase_add_test(c, short_sum);
    tcase_add_test(c, unknown_way);
    tcase_add_test(c, bf16);
    suite_add_tcase(s, c);
    return s;
}
