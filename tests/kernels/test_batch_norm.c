/* Batch normalisation: the back end under test against the oracle, against differences and
 * against values by hand; members, faults. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/twin.h"

struct shape {
    size_t members, rows, channels;
};

static const struct shape shapes[] = {
    {0, 4, 3},   {1, 0, 3},   {2, 4, 0},    {1, 1, 1},  {2, 1, 5},     {3, 2, 17},
    {1, 64, 16}, {2, 65, 65}, {1, 1000, 3}, {3, 63, 7}, {1, 200, 130},
};

struct norm {
    struct twin x, gamma, beta, mean, inv_std, y, running_mean, running_var;
    struct twin dy, dx, dgamma, dbeta;
};

static struct norm norm_of(const struct shape *s, bool shared_x)
{
    size_t k = s->members, n = s->rows * s->channels, c = s->channels;
    return (struct norm){
        .x = twin_f32(k, n, shared_x, 2, 4), /* a mean that is far from 0 */
        .gamma = twin_f32(k, c, false, 0.5f, 2),
        .beta = twin_f32(k, c, false, -1, 1),
        .mean = twin_f32(k, c, false, 5, 6),
        .inv_std = twin_f32(k, c, false, 5, 6),
        .y = twin_f32(k, n, false, 5, 6),
        .running_mean = twin_f32(k, c, false, -1, 1),
        .running_var = twin_f32(k, c, false, 0.5f, 2),
        .dy = twin_f32(k, n, false, -1, 1),
        .dx = twin_f32(k, n, false, 5, 6),
        .dgamma = twin_f32(k, c, false, 5, 6),
        .dbeta = twin_f32(k, c, false, 5, 6),
    };
}

static struct batch_norm_args args_of(const struct norm *n, const struct shape *s, act_kind act,
                                      int side)
{
    return (struct batch_norm_args){.members = s->members,
                                    .rows = s->rows,
                                    .channels = s->channels,
                                    .x = twin_at(&n->x, side),
                                    .gamma = twin_at(&n->gamma, side),
                                    .beta = twin_at(&n->beta, side),
                                    .mean = twin_at(&n->mean, side),
                                    .inv_std = twin_at(&n->inv_std, side),
                                    .eps = 1e-3f,
                                    .act = act,
                                    .y = twin_at(&n->y, side)};
}

static void hold(const struct shape *s, act_kind act, bool shared_x, bool running)
{
    struct as_err err;
    struct norm n = norm_of(s, shared_x);
    FOR_SIDES(i)
    {
        struct batch_norm_args a = args_of(&n, s, act, i);
        struct tensor none = tensor_none();
        ck_ok(backend_batch_norm_train(twin_backend(i), &a, 0.1f,
                                       running ? twin_at(&n.running_mean, i) : none,
                                       running ? twin_at(&n.running_var, i) : none, &err),
              err);
    }
    /* One row: x - mean is 0, and the slopes are 1 / sqrt(eps) = 32 times the rounding error. */
    float close = s->rows < 3 ? 1e-3f : 2e-5f;
    twin_same(&n.mean, "mean", 1e-6f, 1e-6f);
    twin_same(&n.inv_std, "inv_std", 1e-6f, s->rows < 3 ? 1e-4f : 1e-5f);
    twin_same(&n.y, "y", close, 1e-5f);
    twin_same(&n.running_mean, "running_mean", 1e-6f, 1e-6f);
    twin_same(&n.running_var, "running_var", 1e-6f, 1e-5f);
    if (act == ACT_RELU) /* near 0, both sides must make the same choices */
        n.y = twin_f32(s->members, s->rows * s->channels, false, -1, 1);
    FOR_SIDES(i)
    {
        struct batch_norm_args a = args_of(&n, s, act, i);
        ck_ok(backend_batch_norm_backward(twin_backend(i), &a, twin_at(&n.dy, i), twin_at(&n.dx, i),
                                          twin_at(&n.dgamma, i), twin_at(&n.dbeta, i), &err),
              err);
    }
    twin_same(&n.dx, "dx", 10 * close, 1e-4f);
    twin_same(&n.dgamma, "dgamma", 1e-4f + close, 1e-4f);
    twin_same(&n.dbeta, "dbeta", 1e-4f, 1e-5f);
}

START_TEST(train)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        hold(&shapes[i], (act_kind)_i, false, true);
        hold(&shapes[i], (act_kind)_i, true, false);
    }
}
END_TEST

START_TEST(eval)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct as_err err;
        struct norm n = norm_of(&shapes[i], _i == ACT_RELU);
        FOR_SIDES(side)
        {
            struct batch_norm_args a = args_of(&n, &shapes[i], (act_kind)_i, side);
            a.mean = a.inv_std = tensor_none(); /* not read */
            ck_ok(backend_batch_norm_eval(twin_backend(side), &a, twin_at(&n.running_mean, side),
                                          twin_at(&n.running_var, side), &err),
                  err);
        }
        twin_same(&n.y, "y", 1e-5f, 1e-5f);
    }
}
END_TEST

/* dx in place of dy, and y in place of x if no backward pass follows. */
START_TEST(in_place)
{
    const struct shape s = {2, 70, 9};
    struct as_err err;
    struct norm n = norm_of(&s, false);
    FOR_SIDES(i)
    {
        struct batch_norm_args a = args_of(&n, &s, ACT_NONE, i);
        ck_ok(
            backend_batch_norm_train(twin_backend(i), &a, 0.1f, tensor_none(), tensor_none(), &err),
            err);
        ck_ok(backend_batch_norm_backward(twin_backend(i), &a, twin_at(&n.dy, i), twin_at(&n.dy, i),
                                          twin_at(&n.dgamma, i), twin_at(&n.dbeta, i), &err),
              err);
        a.y = a.x;
        ck_ok(backend_batch_norm_eval(twin_backend(i), &a, twin_at(&n.running_mean, i),
                                      twin_at(&n.running_var, i), &err),
              err);
    }
    twin_same(&n.dy, "dx", 2e-4f, 1e-4f);
    twin_same(&n.x, "y", 1e-5f, 1e-5f);
}
END_TEST

/* Three rows 1 2 3: mean 2, variance 2/3, unbiased 1. With eps 1/12 the deviation is sqrt(3/4). */
START_TEST(by_hand)
{
    const struct shape s = {1, 3, 1};
    struct as_err err;
    struct norm n = norm_of(&s, false);
    for (size_t r = 0; r < 3; r++)
        twin_set_f32(&n.x, 0, r, (float)(r + 1));
    twin_set_f32(&n.gamma, 0, 0, sqrtf(3));
    twin_set_f32(&n.beta, 0, 0, 1);
    twin_set_f32(&n.running_mean, 0, 0, 4);
    twin_set_f32(&n.running_var, 0, 0, 3);
    FOR_SIDES(i)
    {
        struct batch_norm_args a = args_of(&n, &s, ACT_RELU, i);
        a.eps = 1.0f / 12;
        ck_ok(backend_batch_norm_train(twin_backend(i), &a, 0.25f, twin_at(&n.running_mean, i),
                                       twin_at(&n.running_var, i), &err),
              err);
        const float y[] = {0, 1, 3}; /* -1, 1, 3 before relu */
        for (size_t r = 0; r < 3; r++)
            ck_assert_float_eq_tol(twin_get_f32(&n.y, i, 0, r), y[r], 1e-6);
        ck_assert_float_eq_tol(twin_get_f32(&n.mean, i, 0, 0), 2, 1e-6);
        ck_assert_float_eq_tol(twin_get_f32(&n.inv_std, i, 0, 0), 1 / sqrtf(0.75f), 1e-6);
        ck_assert_float_eq_tol(twin_get_f32(&n.running_mean, i, 0, 0), 3.5, 1e-6);
        ck_assert_float_eq_tol(twin_get_f32(&n.running_var, i, 0, 0), 2.5, 1e-6);
    }
}
END_TEST

/* The mean is a thousand times the deviation: a sum of squares in float would lose all digits. */
START_TEST(far_from_zero)
{
    const struct shape s = {1, 5000, 2};
    struct as_err err;
    struct norm n = norm_of(&s, false);
    n.x = twin_f32(1, s.rows * s.channels, false, 999, 1001);
    FOR_SIDES(i)
    {
        struct batch_norm_args a = args_of(&n, &s, ACT_NONE, i);
        ck_ok(backend_batch_norm_train(twin_backend(i), &a, 0.1f, twin_at(&n.running_mean, i),
                                       twin_at(&n.running_var, i), &err),
              err);
    }
    twin_same(&n.inv_std, "inv_std", 0, 1e-4f);
    twin_same(&n.running_var, "running_var", 0, 1e-4f);
}
END_TEST

struct pass {
    struct backend *be;
    struct batch_norm_args a;
};

static void run_forward(void *arg)
{
    struct as_err err;
    struct pass *p = arg;
    ck_ok(backend_batch_norm_train(p->be, &p->a, 0.1f, tensor_none(), tensor_none(), &err), err);
}

static struct place place_of(const struct twin *t, int side, size_t n)
{
    return (struct place){t->side[side], t->offset, n};
}

START_TEST(by_differences)
{
    const struct shape s = {1, 12, 5};
    struct as_err err;
    struct norm n = norm_of(&s, false);
    size_t all = s.rows * s.channels;
    /* Steps of 0.005 move y by some 0.02: keep y away from 0, where relu has its corner. */
    for (size_t r = 0; r < s.rows; r++)
        for (size_t c = 0; c < s.channels; c++)
            twin_set_f32(&n.x, 0, r * s.channels + c,
                         (r * 5 + c * 3) % 7 < 3 ? 1 + 0.1f * (float)r : 4 + 0.1f * (float)c);
    for (size_t c = 0; c < s.channels; c++)
        twin_set_f32(&n.beta, 0, c, 0.1f);
    FOR_SIDES(i)
    {
        struct pass p = {twin_backend(i), args_of(&n, &s, (act_kind)_i, i)};
        run_forward(&p);
        ck_ok(backend_batch_norm_backward(p.be, &p.a, twin_at(&n.dy, i), twin_at(&n.dx, i),
                                          twin_at(&n.dgamma, i), twin_at(&n.dbeta, i), &err),
              err);
        struct slope d = {run_forward, &p,  place_of(&n.y, i, all), place_of(&n.dy, i, all),
                          5e-3f,       1e-3};
        struct place x = place_of(&n.x, i, all), dx = place_of(&n.dx, i, all);
        struct place g = place_of(&n.gamma, i, 5), dg = place_of(&n.dgamma, i, 5);
        struct place b = place_of(&n.beta, i, 5), db = place_of(&n.dbeta, i, 5);
        slope_hold(&d, "x", &x, &dx);
        slope_hold(&d, "gamma", &g, &dg);
        slope_hold(&d, "beta", &b, &db);
    }
}
END_TEST

START_TEST(faults)
{
    const struct shape s = {2, 4, 3};
    struct as_err err;
    struct norm n = norm_of(&s, false);
    struct backend *be = twin_backend(1);
    const struct batch_norm_args good = args_of(&n, &s, ACT_RELU, 1);
    struct batch_norm_args a = good;
    struct tensor none = tensor_none(), mean = twin_at(&n.running_mean, 1), dy = twin_at(&n.dy, 1);
#define TRAIN(momentum, m, v, part)                                                                \
    ck_fails(backend_batch_norm_train(be, &a, momentum, m, v, &err), AS_E_INVAL, err, part)
    TRAIN(0.1f, mean, none, "must both be present");
    TRAIN(1.5f, none, none, "momentum is 1.5");
    TRAIN(NAN, none, none, "momentum is nan");
    a.act = ACT_TANH;
    TRAIN(0.1f, none, none, "activation 2");
    a = good;
    a.eps = -1;
    TRAIN(0.1f, none, none, "eps is -1");
    a = good;
    a.mean = none;
    TRAIN(0.1f, none, none, "mean is missing");
    a = good;
    a.y.stride = 0;
    TRAIN(0.1f, none, none, "y is written");
    a = good;
    ck_fails(backend_batch_norm_eval(be, &a, none, none, &err), AS_E_INVAL, err,
             "running_mean is missing");
    a.y = none;
    ck_fails(backend_batch_norm_backward(be, &a, dy, dy, mean, mean, &err), AS_E_INVAL, err,
             "y is missing");
    ck_fails(backend_batch_norm_backward(be, &good, none, dy, mean, mean, &err), AS_E_INVAL, err,
             "dy is missing");
#undef TRAIN
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_batch_norm");
    TCase *c = tcase_create("batch_norm");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_loop_test(c, train, ACT_NONE, ACT_RELU + 1);
    tcase_add_loop_test(c, eval, ACT_NONE, ACT_RELU + 1);
    tcase_add_test(c, in_place);
    tcase_add_test(c, by_hand);
    tcase_add_test(c, far_from_zero);
    tcase_add_loop_test(c, by_differences, ACT_NONE, ACT_RELU + 1);
    tcase_add_test(c, faults);
    suite_add_tcase(s, c);
    return s;
}
