/* Attention: twins at odd shapes and aligned, bits alone, in a group and with any number of
 * threads, finite differences, values from PyTorch 1.13, causality, bad values, arguments. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/case.h"

struct attend_shape {
    size_t batch, heads, seq, dim;
};

enum { QKV, ATTENDED, LSE, WORK, DATTENDED, DQKV, ATTEND_PLACES };

static struct attention_args attend_args(size_t members, const struct tensor *t, const void *shape)
{
    const struct attend_shape *s = shape;
    return (struct attention_args){.members = members,
                                   .batch = s->batch,
                                   .heads = s->heads,
                                   .seq = s->seq,
                                   .head_dim = s->dim,
                                   .qkv = t[QKV],
                                   .out = t[ATTENDED],
                                   .lse = t[LSE],
                                   .work = t[WORK]};
}

static as_status attend_forward(struct backend *be, size_t members, const struct tensor *t,
                                const void *shape, struct as_err *err)
{
    struct attention_args a = attend_args(members, t, shape);
    return backend_attention_forward(be, &a, err);
}

static as_status attend_backward(struct backend *be, size_t members, const struct tensor *t,
                                 const void *shape, struct as_err *err)
{
    struct attention_args a = attend_args(members, t, shape);
    return backend_attention_backward(be, &a, t[DATTENDED], t[DQKV], err);
}

static as_status attend_both(struct backend *be, size_t members, const struct tensor *t,
                             const void *shape, struct as_err *err)
{
    as_status st = attend_forward(be, members, t, shape, err);
    return st < 0 ? st : attend_backward(be, members, t, shape, err);
}

static struct case_op attend_op(const struct attend_shape *s, case_call *call, float range)
{
    struct attention_args a = attend_args(1, (struct tensor[ATTEND_PLACES]){{0}}, s);
    size_t n = s->batch * s->seq * s->heads * s->dim, work = 0;
    FOR_SIDES(side)
    {
        size_t need = backend_attention_work(twin_backend(side), &a);
        work = need > work ? need : work;
    }
    return (struct case_op){
        .call = call,
        .shape = s,
        .n_places = ATTEND_PLACES,
        .atol = 4e-6f,
        .rtol = 4e-6f,
        .places = {[QKV] = {"qkv", BUF_F32, 3 * n, -range, range, CASE_SHARED},
                   [ATTENDED] = {"out", BUF_F32, n, 5, 6, 0},
                   [LSE] = {"lse", BUF_F32, s->batch * s->heads * s->seq, 5, 6, 0},
                   [WORK] = {"work", BUF_F32, work, 5, 6, CASE_SCRATCH},
                   [DATTENDED] = {"dout", BUF_F32, n, -1, 1, 0},
                   [DQKV] = {"dqkv", BUF_F32, 3 * n, 5, 6, 0}},
    };
}

START_TEST(attention)
{
    static const struct attend_shape shapes[] = {
        {0, 2, 3, 4},  {2, 0, 3, 4},    {2, 2, 0, 4},    {1, 2, 5, 0},
        {1, 1, 1, 1},  {3, 2, 1, 5},    {2, 3, 7, 1},    {1, 1, 63, 8},
        {2, 1, 64, 4}, {1, 2, 65, 3},   {1, 1, 130, 5},  {2, 4, 16, 33},
        {1, 1, 9, 70}, {1, 1, 40, 130}, {1, 1, 35, 256}, {1, 1, 150, 50}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct case_op op = attend_op(&shapes[i], attend_both, 2);
        case_twin(&op);
        case_slots(&op);
    }
}
END_TEST

/* Rows that begin at multiples of 16 bytes, which cuda moves by four floats. */
START_TEST(attention_aligned)
{
    static const struct attend_shape shapes[] = {{1, 2, 140, 24}, {1, 1, 70, 64}, {2, 1, 40, 128}};
    twin_lay(8, 4);
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct case_op op = attend_op(&shapes[i], attend_both, 2);
        case_twin(&op);
        case_slots(&op);
    }
}
END_TEST

START_TEST(attention_gradients)
{
    static const struct attend_shape shapes[] = {{2, 2, 5, 3}, {1, 1, 67, 1}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct case_op op = attend_op(&shapes[i], attend_forward, 1);
        struct case_gradient g = {attend_backward, QKV, DQKV, ATTENDED, DATTENDED, 5e-3f, 2e-3f};
        case_differences(&op, &g);
    }
}
END_TEST

START_TEST(attention_as_torch)
{
    static const struct attend_shape shape = {1, 1, 3, 2};
    struct case_op op = attend_op(&shape, attend_both, 1);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < 18; i++)
        twin_set_f32(&r.at[QKV], 0, i, (float)((int)(i * 7 % 11) - 5) / 4);
    for (size_t i = 0; i < 6; i++)
        twin_set_f32(&r.at[DATTENDED], 0, i, (float)((int)(i * 5 % 7) - 3) / 2);
    case_do(&r, op.call);
    case_expect(
        &r, ATTENDED,
        (const float[]){0.25f, -0.75f, 0.043739505f, -0.95626044f, -0.42699867f, 0.13866317f},
        1e-6f);
    case_expect(&r, LSE, (const float[]){0.88388348f, 0.17836139f, 0.91684568f}, 1e-6f);
    case_expect(&r, DQKV,
                (const float[]){0, 0, -0.04219861f, -0.043484125f, -1.1769987f, 0.52018809f,
                                -0.042841405f, -0.042841345f, 0.053034756f, 0.032648016f,
                                0.32300133f, -0.30485386f, -0.0052783606f, 0.054320231f,
                                -0.010836107f, 0.010836107f, 0.85399735f, 0.28466579f},
                1e-6f);
}
END_TEST

/* Scores of some thousands: the softmax subtracts the largest, so nothing overflows. */
START_TEST(attention_extremes)
{
    static const struct attend_shape shape = {1, 2, 70, 16};
    struct case_op op = attend_op(&shape, attend_both, 60);
    op.atol = 2e-2f; /* scores of 1e4 have a last place of 1e-3 */
    struct case_run r = case_make(&op, 1, false);
    case_do(&r, op.call);
    FOR_SIDES(s)
    for (size_t i = 0; i < op.places[DQKV].n; i++)
        ck_assert(isfinite(twin_get_f32(&r.at[DQKV], s, 0, i)));
    FOR_SIDES(s)
    for (size_t i = 0; i < op.places[ATTENDED].n; i++)
        ck_assert_float_le(fabsf(twin_get_f32(&r.at[ATTENDED], s, 0, i)), 60.001f);
}
END_TEST

/* No position reads a later one: a change of the last changes no bit of the other outputs. */
START_TEST(attention_is_causal)
{
    static const struct attend_shape shape = {1, 1, 70, 4};
    struct case_op op = attend_op(&shape, attend_forward, 1);
    struct case_run r = case_make(&op, 1, false);
    float before[SIDES][69 * 4];
    case_do(&r, op.call);
    FOR_SIDES(s)
    for (size_t i = 0; i < 69 * 4; i++)
        before[s][i] = twin_get_f32(&r.at[ATTENDED], s, 0, i);
    for (size_t i = 0; i < 12; i++)
        twin_set_f32(&r.at[QKV], 0, 69 * 12 + i, 9);
    case_do(&r, op.call);
    FOR_SIDES(s)
    for (size_t i = 0; i < 69 * 4; i++)
        ck_assert(before[s][i] == twin_get_f32(&r.at[ATTENDED], s, 0, i));
}
END_TEST

/* A NaN reaches its own and later positions; other heads and sequences stay finite. */
START_TEST(attention_nan)
{
    static const struct attend_shape shape = {2, 2, 5, 4};
    struct case_op op = attend_op(&shape, attend_both, 1);
    for (size_t part = 0; part < 3; part++) {
        struct case_run r = case_make(&op, 1, false);
        twin_set_f32(&r.at[QKV], 0, ((1 * 3 + part) * 2 + 0) * 4, NAN); /* b 0, t 1, head 0 */
        case_do(&r, op.call);
        FOR_SIDES(s)
        {
            ck_assert_float_nan(twin_get_f32(&r.at[ATTENDED], s, 0, (1 * 2 + 0) * 4));
            ck_assert(isfinite(twin_get_f32(&r.at[ATTENDED], s, 0, (4 * 2 + 1) * 4)));
            ck_assert(isfinite(twin_get_f32(&r.at[ATTENDED], s, 0, (5 + 1) * 2 * 4)));
        }
    }
}
END_TEST

/* Twice the length is at most twice the stripe: nothing grows with the square. */
START_TEST(attention_work_is_bounded)
{
    struct attention_args a = {.members = 1, .batch = 64, .heads = 16, .seq = 4096, .head_dim = 64};
    size_t once = backend_attention_work(twin_backend(1), &a);
    a.seq *= 2;
    ck_assert_uint_le(backend_attention_work(twin_backend(1), &a), 2 * once);
    ck_assert_uint_le(once, (size_t)64 * 16 * 4096); /* one number for each row of each head */
}
END_TEST

/* ---- threads ---- */

/* Attention of one member with so many threads, and layer norm of what it gives; dqkv and
 * dgamma. */
static void run_threaded(int threads, const struct attend_shape *s, float *ret, size_t n)
{
    struct as_err err;
    AS_AUTO(backend_freep) struct backend *be = NULL;
    AS_AUTO(buf_freep) struct buf *f = NULL;
    ck_ok(backend_open("cpu", &(struct backend_opts){.threads = threads}, &be, &err), err);
    struct attention_args a = attend_args(1, (struct tensor[ATTEND_PLACES]){{0}}, s);
    size_t width = s->heads * s->dim, rows = s->batch * s->seq,
           work = backend_attention_work(be, &a);
    ck_ok(buf_create(be, BUF_F32, 12 * n + 4 * width + 4 * rows + work, &f, &err), err);
    for (size_t i = 0; i < 4 * n; i++)
        ret[i] = (float)(i * 37 % 101) / 50 - 1;
    ck_ok(buf_upload(f, 0, ret, 4 * n, &err), err);
    struct tensor qkv = tensor_at(f, 0, 0), dout = tensor_at(f, 3 * n, 0);
    struct tensor dqkv = tensor_at(f, 4 * n, 0), out = tensor_at(f, 7 * n, 0);
    struct tensor y = tensor_at(f, 8 * n, 0), dx = tensor_at(f, 9 * n, 0);
    struct tensor rest = tensor_at(f, 10 * n, 0);
    a.qkv = qkv;
    a.out = out;
    a.lse = tensor_at(f, 11 * n, 0); /* n >= B H T */
    a.work = tensor_at(f, 12 * n + 4 * width + 4 * rows, 0);
    ck_ok(backend_attention_forward(be, &a, &err), err);
    ck_ok(backend_attention_backward(be, &a, dout, dqkv, &err), err);
    struct layer_norm_args l = {
        1, rows, width, out, qkv, qkv, rest, tensor_at(f, rest.offset + rows, 0), 1e-5f};
    struct tensor dgamma = tensor_at(f, 12 * n, 0), dbeta = tensor_at(f, 12 * n + width, 0);
    ck_ok(backend_layer_norm_forward(be, &l, y, &err), err);
    ck_ok(backend_layer_norm_backward(be, &l, dout, dx, dgamma, dbeta, &err), err);
    ck_ok(buf_download(f, 4 * n, ret, 6 * n, &err), err);
    ck_ok(buf_download(f, 12 * n, ret + 6 * n, 2 * width, &err), err);
}

START_TEST(threads_change_no_bit)
{
    static const struct attend_shape shape = {5, 3, 130, 40};
    enum { SIZE = 5 * 3 * 130 * 40, ALL = 6 * SIZE + 2 * 120 };
    float *one = as_calloc(ALL, sizeof(*one)), *three = as_calloc(ALL, sizeof(*three));
    ck_assert(one != NULL && three != NULL);
    run_threaded(1, &shape, one, SIZE);
    run_threaded(3, &shape, three, SIZE);
    ck_assert(memcmp(one, three, ALL * sizeof(*one)) == 0);
    ck_assert(one[0] != 0 && one[ALL - 1] != 0);
    free(one);
    free(three);
}
END_TEST

START_TEST(arguments)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct twin floats = twin_f32(2, 64, false, 0, 1);
    struct tensor f = twin_at(&floats, 1), none = tensor_none();
    struct attention_args a = {2, 1, 1, 2, 3, f, f, f, none};
    ck_fails(backend_attention_forward(be, &a, &err), AS_E_INVAL, err,
             "attention forward: work is missing");
    a.work = f;
    ck_fails(backend_attention_backward(be, &a, f, none, &err), AS_E_INVAL, err,
             "attention backward: dqkv is missing");
    a.seq = SIZE_MAX;
    ck_fails(backend_attention_forward(be, &a, &err), AS_E_TOO_LARGE, err, "seq is");
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_attention");
    TCase *c = tcase_create("attention");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, attention);
    tcase_add_test(c, attention_aligned);
    tcase_add_test(c, attention_gradients);
    tcase_add_test(c, attention_as_torch);
    tcase_add_test(c, attention_extremes);
    tcase_add_test(c, attention_is_causal);
    tcase_add_test(c, attention_nan);
    tcase_add_test(c, attention_work_is_bounded);
    tcase_add_test(c, threads_change_no_bit);
    tcase_add_test(c, arguments);
    suite_add_tcase(s, c);
    return s;
}
