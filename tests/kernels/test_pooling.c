/* Pooling: the back end under test against the oracle, differences and values by hand; faults. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/twin.h"

struct shape {
    size_t members, batch, height, width, channels, kernel_h, kernel_w, stride, pad;
};

static const struct shape shapes[] = {
    /* K B  H   W   C  KH KW s  p */
    {0, 2, 4, 4, 2, 2, 2, 2, 0},    {1, 0, 4, 4, 2, 2, 2, 2, 0},
    {1, 2, 4, 4, 0, 2, 2, 2, 0},    {2, 2, 2, 3, 3, 3, 3, 1, 0}, /* larger than the image */
    {1, 1, 1, 1, 1, 1, 1, 1, 0},    {2, 3, 1, 1, 5, 2, 2, 1, 1},
    {3, 2, 24, 24, 20, 2, 2, 2, 0}, {2, 3, 7, 9, 3, 2, 2, 2, 0},  /* rows and columns left over */
    {2, 2, 9, 8, 17, 3, 3, 2, 1},   {1, 2, 6, 6, 33, 3, 3, 1, 1}, /* windows overlap */
    {2, 2, 9, 9, 4, 2, 2, 3, 0},    {3, 2, 5, 4, 6, 5, 4, 1, 0},  /* kernel = image */
    {1, 2, 6, 7, 16, 3, 2, 2, 1},   {1, 2, 4, 4, 40, 4, 4, 4, 0},
};

static size_t y_len(const struct shape *s)
{
    return s->batch * conv_out_len(s->height, s->kernel_h, s->stride, s->pad) *
           conv_out_len(s->width, s->kernel_w, s->stride, s->pad) * s->channels;
}

static size_t x_len(const struct shape *s)
{
    return s->batch * s->height * s->width * s->channels;
}

static struct pool_args args_of(const struct shape *s, pool_kind kind)
{
    return (struct pool_args){.members = s->members,
                              .batch = s->batch,
                              .height = s->height,
                              .width = s->width,
                              .channels = s->channels,
                              .kernel_h = s->kernel_h,
                              .kernel_w = s->kernel_w,
                              .stride = s->stride,
                              .pad = s->pad,
                              .kind = kind};
}

static void hold(const struct shape *s, pool_kind kind, bool shared, bool ties)
{
    struct as_err err;
    struct twin x = twin_f32(s->members, x_len(s), shared, -1, 1);
    struct twin y = twin_f32(s->members, y_len(s), false, 5, 6);
    struct twin dy = twin_f32(s->members, y_len(s), shared, -1, 1);
    struct twin dx = twin_f32(s->members, x_len(s), false, 5, 6);
    struct twin index = twin_i32(s->members, y_len(s), false, -9, -5);
    for (size_t i = 0; ties && s->members > 0 && i < x_len(s); i++)
        twin_set_f32(&x, 0, i, (float)(i * 7 % 3));
    FOR_SIDES(i)
    {
        struct pool_args a = args_of(s, kind);
        a.index = kind == POOL_MAX ? twin_at(&index, i) : tensor_none();
        ck_ok(backend_pool_forward(twin_backend(i), &a, twin_at(&x, i), twin_at(&y, i), &err), err);
        ck_ok(backend_pool_backward(twin_backend(i), &a, twin_at(&dy, i), twin_at(&dx, i), &err),
              err);
    }
    twin_same(&y, "y", kind == POOL_MAX ? 0 : 1e-6f, kind == POOL_MAX ? 0 : 1e-6f);
    twin_same(&index, "index", 0, 0);
    twin_same(&dx, "dx", 2e-6f, 1e-6f);
}

START_TEST(pool)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        hold(&shapes[i], (pool_kind)_i, false, false);
        hold(&shapes[i], (pool_kind)_i, true, false);
        hold(&shapes[i], (pool_kind)_i, false, true);
    }
}
END_TEST

/* 3 x 3, window 2, stride 1, pad 1: the first of equals, NaN wins, padding is ignored. */
START_TEST(by_hand)
{
    const struct shape s = {1, 1, 3, 3, 1, 2, 2, 1, 1};
    const float image[] = {-1, -1, -3, -1, 5, NAN, -7, NAN, 5};
    /* Windows from (-1, -1) on; the last row reads row 2 only. */
    const float y_want[] = {-1, -1, -1, -3, -1, 5, NAN, NAN, -1, NAN, NAN, NAN, -7, NAN, NAN, 5};
    const int32_t from[] = {0, 0, 1, 2, 0, 4, 5, 5, 3, 7, 5, 5, 6, 7, 7, 8};
    struct as_err err;
    struct twin x = twin_f32(1, 9, false, 0, 1), y = twin_f32(1, 16, false, 0, 1);
    struct twin dy = twin_f32(1, 16, false, 0, 1), dx = twin_f32(1, 9, false, 0, 1);
    struct twin index = twin_i32(1, 16, false, 0, 1), avg = twin_f32(1, 16, false, 0, 1);
    for (size_t i = 0; i < 9; i++)
        twin_set_f32(&x, 0, i, image[i]);
    for (size_t i = 0; i < 16; i++)
        twin_set_f32(&dy, 0, i, 1);
    FOR_SIDES(i)
    {
        struct pool_args a = args_of(&s, POOL_MAX);
        a.index = twin_at(&index, i);
        ck_ok(backend_pool_forward(twin_backend(i), &a, twin_at(&x, i), twin_at(&y, i), &err), err);
        ck_ok(backend_pool_backward(twin_backend(i), &a, twin_at(&dy, i), twin_at(&dx, i), &err),
              err);
        for (size_t p = 0; p < 16; p++) {
            float got = twin_get_f32(&y, i, 0, p);
            ck_assert_msg(got == y_want[p] || (isnan(got) && isnan(y_want[p])), "y[%zu] is %g", p,
                          (double)got);
            ck_assert_int_eq(twin_get_i32(&index, i, 0, p), from[p]);
        }
        const float dx_want[] = {3, 1, 1, 1, 1, 4, 1, 3, 1};
        for (size_t p = 0; p < 9; p++)
            ck_assert_float_eq(twin_get_f32(&dx, i, 0, p), dx_want[p]);
        a.kind = POOL_AVG;
        a.index = tensor_none();
        ck_ok(backend_pool_forward(twin_backend(i), &a, twin_at(&x, i), twin_at(&avg, i), &err),
              err);
        ck_assert_float_eq(twin_get_f32(&avg, i, 0, 0), -0.25f); /* over the whole window of 4 */
        ck_assert_float_eq(twin_get_f32(&avg, i, 0, 5), 0.5f);
    }
}
END_TEST

struct pass {
    struct backend *be;
    struct pool_args a;
    struct tensor x, y;
};

static void run_forward(void *arg)
{
    struct as_err err;
    struct pass *p = arg;
    ck_ok(backend_pool_forward(p->be, &p->a, p->x, p->y, &err), err);
}

START_TEST(by_differences)
{
    const struct shape s = {1, 2, 7, 6, 3, 3, 3, 2, 1};
    struct as_err err;
    struct twin x = twin_f32(1, x_len(&s), false, -1, 1), dx = twin_f32(1, x_len(&s), false, 0, 1);
    struct twin y = twin_f32(1, y_len(&s), false, 0, 1), dy = twin_f32(1, y_len(&s), false, -1, 1);
    struct twin index = twin_i32(1, y_len(&s), false, 0, 1);
    /* No two within 0.01 of each other, so that a step of 0.002 moves no maximum. */
    for (size_t i = 0; i < x_len(&s); i++)
        twin_set_f32(&x, 0, i, 0.01f * (float)(i * 101 % 257));
    FOR_SIDES(i)
    {
        struct pass p = {twin_backend(i), args_of(&s, (pool_kind)_i), twin_at(&x, i),
                         twin_at(&y, i)};
        p.a.index = _i == POOL_MAX ? twin_at(&index, i) : tensor_none();
        run_forward(&p);
        ck_ok(backend_pool_backward(p.be, &p.a, twin_at(&dy, i), twin_at(&dx, i), &err), err);
        /* y of up to 2.5, rounded by 1e-7, over two steps */
        struct slope d = {
            run_forward, &p,  {y.side[i], y.offset, y_len(&s)}, {dy.side[i], dy.offset, y_len(&s)},
            2e-3f,       1e-3};
        struct place px = {x.side[i], x.offset, x_len(&s)};
        struct place pdx = {dx.side[i], dx.offset, x_len(&s)};
        slope_hold(&d, "x", &px, &pdx);
    }
}
END_TEST

START_TEST(faults)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct tensor t = tensor_none();
#define FAULT(part, ...)                                                                           \
    do {                                                                                           \
        struct pool_args a = {__VA_ARGS__};                                                        \
        ck_fails(backend_pool_forward(be, &a, t, t, &err), AS_E_INVAL, err, part);                 \
        ck_fails(backend_pool_backward(be, &a, t, t, &err), AS_E_INVAL, err, part);                \
    } while (0)
    /*                             K  B  H  W  C KH KW s  p */
    FAULT("0 x 4", 1, 1, 0, 4, 2, 2, 2, 2, 0);
    FAULT("kernel is 2 x 0", 1, 1, 4, 4, 2, 2, 0, 2, 0);
    FAULT("stride is 0", 1, 1, 4, 4, 2, 2, 2, 0, 0);
    FAULT("pad is 2", 1, 1, 4, 4, 2, 3, 3, 2, 2);
    FAULT("kind 7", 1, 1, 4, 4, 2, 2, 2, 2, 0, (pool_kind)7);
#undef FAULT
    const struct shape s = {2, 1, 4, 4, 2, 2, 2, 2, 0};
    struct twin x = twin_f32(2, x_len(&s), false, 0, 1), y = twin_f32(2, y_len(&s), false, 0, 1);
    struct pool_args a = args_of(&s, POOL_MAX);
    ck_fails(backend_pool_forward(be, &a, twin_at(&x, 1), twin_at(&y, 1), &err), AS_E_INVAL, err,
             "index is missing");
    a.index = twin_at(&y, 1);
    ck_fails(backend_pool_forward(be, &a, twin_at(&x, 1), twin_at(&y, 1), &err), AS_E_INVAL, err,
             "index is F32");
    a.kind = POOL_AVG;
    a.index = t;
    ck_fails(backend_pool_backward(be, &a, twin_at(&y, 1), twin_at(&y, 1), &err), AS_E_INVAL, err,
             "dx has 32 elements");
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_pool");
    TCase *c = tcase_create("pool");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_loop_test(c, pool, POOL_MAX, POOL_AVG + 1);
    tcase_add_test(c, by_hand);
    tcase_add_loop_test(c, by_differences, POOL_MAX, POOL_AVG + 1);
    tcase_add_test(c, faults);
    suite_add_tcase(s, c);
    return s;
}
