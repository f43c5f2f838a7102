/* Gradient norm, clipping and optimizers: the back end under test against the oracle, and the
 * oracle against figures from PyTorch's formulas worked by hand. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/twin.h"

static const size_t sizes[] = {0, 1, 15, 16, 33, 4099, 20011};

static void stats(size_t members, size_t n, bool bad)
{
    struct twin g = twin_f32(members, n, false, -1, 1), sq = twin_f32(members, 1, false, 5, 6);
    struct twin finite = twin_i32(members, 1, false, 5, 6);
    struct twin active = twin_i32(members, 1, false, 1, 2);
    if (bad && n > 0) {
        twin_set_f32(&g, 0, n - 1, INFINITY);
        if (members > 1)
            twin_set_f32(&g, 1, n / 2, NAN);
    }
    FOR_SIDES(s)
    {
        struct as_err err;
        struct grad_stats_args a = {
            members, n, twin_at(&g, s), twin_at(&sq, s), twin_at(&finite, s), twin_at(&active, s)};
        ck_ok(backend_grad_stats(twin_backend(s), &a, &err), err);
        a.active = tensor_none();
        ck_ok(backend_grad_stats(twin_backend(s), &a, &err), err);
    }
    twin_same_or_nan(&sq, "sq_norm", 0, 1e-6f);
    twin_same(&finite, "finite", 0, 0);
    twin_same(&active, "active", 0, 0);
    if (members > 0)
        ck_assert_int_eq(twin_get_i32(&active, 1, 0, 0), !bad || n == 0);
}

START_TEST(grad_stats)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        stats(0, sizes[i], false);
        stats(1, sizes[i], false);
        stats(3, sizes[i], false);
        stats(1, sizes[i], true);
        stats(3, sizes[i], true);
    }
}
END_TEST

/* Squares of 1e30 overflow float: the norm is infinite, the elements are finite, and clipping
 * leaves the member alone. */
START_TEST(norm_overflows)
{
    struct twin g = twin_f32(1, 10, false, 1e30f, 2e30f), sq = twin_f32(1, 1, false, 0, 1);
    struct twin finite = twin_i32(1, 1, false, 0, 1), most = twin_f32(1, 1, false, 1, 2);
    FOR_SIDES(s)
    {
        struct as_err err;
        struct grad_stats_args a = {
            1, 10, twin_at(&g, s), twin_at(&sq, s), twin_at(&finite, s), tensor_none()};
        ck_ok(backend_grad_stats(twin_backend(s), &a, &err), err);
        ck_assert(isinf(twin_get_f32(&sq, s, 0, 0)));
        ck_assert_int_eq(twin_get_i32(&finite, s, 0, 0), 1);
        struct grad_clip_args c = {1, 10, twin_at(&g, s), twin_at(&sq, s), twin_at(&most, s)};
        ck_ok(backend_grad_clip(twin_backend(s), &c, &err), err);
        ck_assert_float_ge(twin_get_f32(&g, s, 0, 0), 1e30f);
    }
}
END_TEST

START_TEST(grad_clip)
{
    static const float limits[] = {1, 0, -1, NAN, 1e9f};
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        struct twin g = twin_f32(5, sizes[i], false, -1, 1), sq = twin_f32(5, 1, false, 4, 9);
        struct twin most = twin_f32(5, 1, false, 0, 1);
        for (size_t k = 0; k < AS_ARRAY_LEN(limits); k++)
            twin_set_f32(&most, k, 0, limits[k]);
        FOR_SIDES(s)
        {
            struct as_err err;
            struct grad_clip_args a = {5, sizes[i], twin_at(&g, s), twin_at(&sq, s),
                                       twin_at(&most, s)};
            ck_ok(backend_grad_clip(twin_backend(s), &a, &err), err);
        }
        twin_same(&g, "grads", 0, 1e-6f);
    }
}
END_TEST

struct arena {
    struct twin params, grads, lr, decay, active, step;
};

static struct arena make_arena(size_t members, size_t n)
{
    struct arena a = {
        .params = twin_f32(members, n, false, -1, 1),
        .grads = twin_f32(members, n, false, -1, 1),
        .lr = twin_f32(members, 1, false, 0.01f, 0.1f),
        .decay = twin_f32(members, 1, false, 0, 0.1f),
        .active = twin_i32(members, 1, false, 1, 2),
        .step = twin_i32(members, 1, false, 0, 1),
    };
    if (members > 1)
        twin_set_i32(&a.active, 1, 0, 0);
    return a;
}

static struct opt_arena arena_at(const struct arena *a, size_t members, size_t n, int s, bool bare)
{
    return (struct opt_arena){
        .members = members,
        .n = n,
        .params = twin_at(&a->params, s),
        .grads = twin_at(&a->grads, s),
        .lr = twin_at(&a->lr, s),
        .weight_decay = bare ? tensor_none() : twin_at(&a->decay, s),
        .active = bare ? tensor_none() : twin_at(&a->active, s),
        .step = twin_at(&a->step, s),
    };
}

/* Several steps on the same gradients. `bare` leaves every optional tensor out. */
static void sgd(size_t members, size_t n, bool bare)
{
    struct arena arena = make_arena(members, n);
    struct twin velocity = twin_f32(members, n, false, 0, 0);
    struct twin momentum = twin_f32(members, 1, false, 0.5f, 0.95f);
    struct twin nesterov = twin_i32(members, 1, false, 0, 2);
    if (members > 2)
        twin_set_f32(&momentum, 2, 0, 0);
    for (int step = 0; step < 5; step++) {
        FOR_SIDES(s)
        {
            struct as_err err;
            struct sgd_args a = {.arena = arena_at(&arena, members, n, s, bare),
                                 .velocity = twin_at(&velocity, s),
                                 .momentum = bare ? tensor_none() : twin_at(&momentum, s),
                                 .nesterov = bare ? tensor_none() : twin_at(&nesterov, s)};
            ck_ok(backend_sgd(twin_backend(s), &a, &err), err);
        }
    }
    twin_same(&arena.params, "params", 1e-6f, 2e-6f);
    twin_same(&velocity, "velocity", 1e-6f, 2e-6f);
    twin_same(&arena.step, "step", 0, 0);
    if (members > 0)
        ck_assert_int_eq(twin_get_i32(&arena.step, 1, 0, 0), 5);
}

static void adamw(size_t members, size_t n, bool bare)
{
    struct arena arena = make_arena(members, n);
    struct twin m = twin_f32(members, n, false, 0, 0), v = twin_f32(members, n, false, 0, 0);
    struct twin beta1 = twin_f32(members, 1, false, 0.8f, 0.95f);
    struct twin beta2 = twin_f32(members, 1, false, 0.95f, 0.999f);
    struct twin eps = twin_f32(members, 1, false, 1e-8f, 1e-6f);
    for (int step = 0; step < 5; step++) {
        FOR_SIDES(s)
        {
            struct as_err err;
            struct adamw_args a = {.arena = arena_at(&arena, members, n, s, bare),
                                   .m = twin_at(&m, s),
                                   .v = twin_at(&v, s),
                                   .beta1 = twin_at(&beta1, s),
                                   .beta2 = twin_at(&beta2, s),
                                   .eps = twin_at(&eps, s)};
            ck_ok(backend_adamw(twin_backend(s), &a, &err), err);
        }
    }
    twin_same(&arena.params, "params", 2e-6f, 4e-6f);
    twin_same(&m, "m", 1e-6f, 2e-6f);
    twin_same(&v, "v", 1e-6f, 2e-6f);
    twin_same(&arena.step, "step", 0, 0);
}

START_TEST(optimizers_match)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        for (int bare = 0; bare < 2; bare++) {
            for (size_t members = 0; members <= 3; members++) {
                sgd(members, sizes[i], bare);
                adamw(members, sizes[i], bare);
            }
        }
        twin_close();
        twin_open();
    }
}
END_TEST

/* A masked member keeps parameters, moments and step to the bit, NaN gradients or not. */
START_TEST(masked_is_untouched)
{
    struct arena arena = make_arena(2, 9);
    struct twin velocity = twin_f32(2, 9, false, 0, 1), eps = twin_f32(2, 1, false, 1e-8f, 1e-8f);
    struct twin half = twin_f32(2, 1, true, 0.5f, 0.5f);
    twin_set_f32(&arena.grads, 1, 4, NAN);
    float before = twin_get_f32(&arena.params, 1, 1, 4);
    float moment = twin_get_f32(&velocity, 1, 1, 4);
    FOR_SIDES(s)
    {
        struct as_err err;
        struct sgd_args a = {.arena = arena_at(&arena, 2, 9, s, false),
                             .velocity = twin_at(&velocity, s),
                             .momentum = twin_at(&half, s)};
        ck_ok(backend_sgd(twin_backend(s), &a, &err), err);
        struct adamw_args b = {arena_at(&arena, 2, 9, s, false),
                               twin_at(&velocity, s),
                               twin_at(&velocity, s),
                               twin_at(&half, s),
                               twin_at(&half, s),
                               twin_at(&eps, s)};
        b.arena.active = twin_at(&arena.active, s);
        b.v = twin_at(&arena.grads, s); /* any buffer of the size: member 1 must not be written */
        b.arena.members = 2;
        twin_set_i32(&arena.active, 0, 0, 0);
        ck_ok(backend_adamw(twin_backend(s), &b, &err), err);
        twin_set_i32(&arena.active, 0, 0, 1);
    }
    ck_assert_float_eq(twin_get_f32(&arena.params, 1, 1, 4), before);
    ck_assert_float_eq(twin_get_f32(&velocity, 1, 1, 4), moment);
    ck_assert_int_eq(twin_get_i32(&arena.step, 1, 1, 0), 0);
    ck_assert_int_eq(twin_get_i32(&arena.step, 1, 0, 0), 1);
}
END_TEST

/* One parameter, two steps, worked by hand: p = 1, g = 0.5, lr = 0.1, wd = 0.1, momentum = 0.9.
 * SGD: g' = 0.6, v = 0.6, p = 0.94; g' = 0.594, v = 1.134, p = 0.8266.
 * With Nesterov: step 1 = 0.6 + 0.54, p = 0.886; g' = 0.5886, v = 1.1286, step = 1.60434,
 * p = 0.725566. */
START_TEST(sgd_by_hand)
{
    static const float want[2] = {0.8266f, 0.725566f};
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        struct arena arena = make_arena(1, 1);
        struct twin velocity = twin_f32(1, 1, false, 0, 0), momentum = twin_f32(1, 1, false, 0, 1);
        struct twin flag = twin_i32(1, 1, false, nesterov, nesterov + 1);
        twin_set_f32(&arena.params, 0, 0, 1);
        twin_set_f32(&arena.grads, 0, 0, 0.5f);
        twin_set_f32(&arena.lr, 0, 0, 0.1f);
        twin_set_f32(&arena.decay, 0, 0, 0.1f);
        twin_set_f32(&momentum, 0, 0, 0.9f);
        FOR_SIDES(s)
        {
            struct as_err err;
            struct sgd_args a = {arena_at(&arena, 1, 1, s, false), twin_at(&velocity, s),
                                 twin_at(&momentum, s), twin_at(&flag, s)};
            for (int step = 0; step < 2; step++)
                ck_ok(backend_sgd(twin_backend(s), &a, &err), err);
            ck_assert_float_eq_tol(twin_get_f32(&arena.params, s, 0, 0), want[nesterov], 2e-7f);
        }
    }
}
END_TEST

/* p = 1, g = 0.5, lr = 0.1, wd = 0.1, betas 0.9, 0.99, eps = 0: with a constant gradient both
 * corrected moments are exact, so each step is p = p * 0.99 - 0.1: 0.89, then 0.7811. */
START_TEST(adamw_by_hand)
{
    struct arena arena = make_arena(1, 1);
    struct twin m = twin_f32(1, 1, false, 0, 0), v = twin_f32(1, 1, false, 0, 0);
    struct twin beta1 = twin_f32(1, 1, false, 0.9f, 0.9f), eps = twin_f32(1, 1, false, 0, 0);
    struct twin beta2 = twin_f32(1, 1, false, 0.99f, 0.99f);
    twin_set_f32(&arena.params, 0, 0, 1);
    twin_set_f32(&arena.grads, 0, 0, 0.5f);
    twin_set_f32(&arena.lr, 0, 0, 0.1f);
    twin_set_f32(&arena.decay, 0, 0, 0.1f);
    FOR_SIDES(s)
    {
        struct as_err err;
        struct adamw_args a = {arena_at(&arena, 1, 1, s, false),
                               twin_at(&m, s),
                               twin_at(&v, s),
                               twin_at(&beta1, s),
                               twin_at(&beta2, s),
                               twin_at(&eps, s)};
        ck_ok(backend_adamw(twin_backend(s), &a, &err), err);
        ck_assert_float_eq_tol(twin_get_f32(&arena.params, s, 0, 0), 0.89f, 5e-7f);
        ck_ok(backend_adamw(twin_backend(s), &a, &err), err);
        ck_assert_float_eq_tol(twin_get_f32(&arena.params, s, 0, 0), 0.7811f, 1e-6f);
    }
}
END_TEST

Suite *test_suite(void)
{
    twin_probe();
    Suite *s = suite_create("kernels_optimizer");
    TCase *c = tcase_create("optimizer");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, grad_stats);
    tcase_add_test(c, norm_overflows);
    tcase_add_test(c, grad_clip);
    tcase_add_test(c, optimizers_match);
    tcase_add_test(c, masked_is_untouched);
    tcase_add_test(c, sgd_by_hand);
    tcase_add_test(c, adamw_by_hand);
    suite_add_tcase(s, c);
    return s;
}
