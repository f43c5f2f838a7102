/* Sums of tensors, of micro-batches, and averages of weights. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/case.h"

static const size_t sizes[] = {0, 1, 15, 16, 33, 1001};

/* ---- add ---- */

struct add_shape {
    size_t n;
    act_kind act;
};

enum { A, B, SUM, ADD_PLACES };

static as_status add(struct backend *be, size_t members, const struct tensor *t, const void *shape,
                     struct as_err *err)
{
    const struct add_shape *s = shape;
    struct add_args a = {members, s->n, t[A], t[B], t[SUM], s->act};
    return backend_add(be, &a, err);
}

/* Into the sum itself, from the left and from the right. */
static as_status add_in_place(struct backend *be, size_t members, const struct tensor *t,
                              const void *shape, struct as_err *err)
{
    const struct add_shape *s = shape;
    struct add_args a = {members, s->n, t[SUM], t[B], t[SUM], s->act};
    as_status st = backend_add(be, &a, err);
    a.a = t[A];
    a.b = t[SUM];
    return st < 0 ? st : backend_add(be, &a, err);
}

START_TEST(add_matches)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        for (int act = ACT_NONE; act <= ACT_RELU; act++) {
            struct add_shape shape = {sizes[i], (act_kind)act};
            struct case_op op = {.call = add,
                                 .shape = &shape,
                                 .n_places = ADD_PLACES,
                                 .places = {[A] = {"a", BUF_F32, sizes[i], -1, 1, CASE_SHARED},
                                            [B] = {"b", BUF_F32, sizes[i], -1, 1, CASE_SHARED},
                                            [SUM] = {"y", BUF_F32, sizes[i], -1, 1, 0}}};
            case_twin(&op);
            case_slots(&op);
            op.call = add_in_place;
            case_twin(&op);
            if (sizes[i] < 4)
                continue;
            op.call = add;
            struct case_run r = case_make(&op, 1, false);
            static const float a[] = {1, -3, NAN, INFINITY}, b[] = {2, 1, 1, -INFINITY};
            for (size_t j = 0; j < 4; j++) {
                twin_set_f32(&r.at[A], 0, j, a[j]);
                twin_set_f32(&r.at[B], 0, j, b[j]);
            }
            case_do(&r, add);
            case_same(&r);
            ck_assert_float_eq(twin_get_f32(&r.at[SUM], 1, 0, 0), 3);
            ck_assert_float_eq(twin_get_f32(&r.at[SUM], 1, 0, 1), act == ACT_RELU ? 0 : -2);
            ck_assert_float_nan(twin_get_f32(&r.at[SUM], 1, 0, 2));
            ck_assert_float_nan(twin_get_f32(&r.at[SUM], 1, 0, 3));
        }
    }
}
END_TEST

/* ---- micro-batches ---- */

enum { GRADS, BATCH, SCALE, FIRST, ACCUMULATE_PLACES };

static as_status accumulate(struct backend *be, size_t members, const struct tensor *t,
                            const void *shape, struct as_err *err)
{
    struct grad_accumulate_args a = {members, *(const size_t *)shape, t[GRADS], t[BATCH], t[SCALE],
                                     t[FIRST]};
    return backend_grad_accumulate(be, &a, err);
}

static struct case_op accumulate_op(const size_t *n)
{
    return (struct case_op){
        .call = accumulate,
        .shape = n,
        .n_places = ACCUMULATE_PLACES,
        .atol = 2e-7f,
        .rtol = 2e-7f,
        .places = {[GRADS] = {"grads", BUF_F32, *n, -1, 1, CASE_SHARED},
                   [BATCH] = {"sum", BUF_F32, *n, -1, 1, 0},
                   [SCALE] = {"scale", BUF_F32, 1, 0, 1, CASE_SHARED},
                   [FIRST] = {"first", BUF_I32, 1, 0, 2, CASE_SHARED}},
    };
}

START_TEST(accumulate_matches)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        struct case_op op = accumulate_op(&sizes[i]);
        case_twin(&op);
        case_slots(&op);
    }
}
END_TEST

/* 0.25 * 4, which replaces the old value, then + 0.75 * 8. */
START_TEST(accumulate_by_hand)
{
    static const size_t n = 3;
    struct case_op op = accumulate_op(&n);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < n; i++) {
        twin_set_f32(&r.at[GRADS], 0, i, 4);
        twin_set_f32(&r.at[BATCH], 0, i, NAN);
    }
    twin_set_f32(&r.at[SCALE], 0, 0, 0.25f);
    twin_set_i32(&r.at[FIRST], 0, 0, 1);
    case_do(&r, op.call);
    FOR_SIDES(s)
    ck_assert_float_eq(twin_get_f32(&r.at[BATCH], s, 0, 2), 1);
    for (size_t i = 0; i < n; i++)
        twin_set_f32(&r.at[GRADS], 0, i, 8);
    twin_set_f32(&r.at[SCALE], 0, 0, 0.75f);
    twin_set_i32(&r.at[FIRST], 0, 0, 0);
    case_do(&r, op.call);
    FOR_SIDES(s)
    ck_assert_float_eq(twin_get_f32(&r.at[BATCH], s, 0, 2), 7);
}
END_TEST

/* ---- moving average ---- */

enum { PARAMS, AVERAGE, DECAY, ACTIVE, EMA_PLACES };

static as_status ema(struct backend *be, size_t members, const struct tensor *t, const void *shape,
                     struct as_err *err)
{
    struct ema_args a = {members,  *(const size_t *)shape, t[PARAMS], t[AVERAGE], t[DECAY],
                         t[ACTIVE]};
    return backend_ema(be, &a, err);
}

static struct case_op ema_op(const size_t *n, unsigned active)
{
    return (struct case_op){
        .call = ema,
        .shape = n,
        .n_places = EMA_PLACES,
        .atol = 2e-7f,
        .rtol = 2e-7f,
        .places = {[PARAMS] = {"params", BUF_F32, *n, -1, 1, CASE_SHARED},
                   [AVERAGE] = {"average", BUF_F32, *n, -1, 1, 0},
                   [DECAY] = {"decay", BUF_F32, 1, 0, 1, CASE_SHARED},
                   [ACTIVE] = {"active", BUF_I32, 1, 0, 2, active}},
    };
}

START_TEST(ema_matches)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        for (unsigned active = CASE_SHARED; active <= CASE_ABSENT; active++) {
            struct case_op op = ema_op(&sizes[i], active);
            case_twin(&op);
            case_slots(&op);
        }
    }
}
END_TEST

START_TEST(ema_by_hand)
{
    static const size_t n = 1;
    struct case_op op = ema_op(&n, 0);
    struct case_run r = case_make(&op, 2, false);
    for (size_t k = 0; k < 2; k++) {
        twin_set_f32(&r.at[PARAMS], k, 0, 8);
        twin_set_f32(&r.at[AVERAGE], k, 0, 4);
        twin_set_f32(&r.at[DECAY], k, 0, 0.75f);
        twin_set_i32(&r.at[ACTIVE], k, 0, k == 0);
    }
    case_do(&r, op.call);
    FOR_SIDES(s)
    {
        ck_assert_float_eq(twin_get_f32(&r.at[AVERAGE], s, 0, 0), 5);
        ck_assert_float_eq(twin_get_f32(&r.at[AVERAGE], s, 1, 0), 4);
    }
}
END_TEST

START_TEST(arguments)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct twin floats = twin_f32(2, 8, false, 0, 1), words = twin_i32(2, 8, false, 0, 1);
    struct tensor f = twin_at(&floats, 1), w = twin_at(&words, 1), none = tensor_none();
    struct grad_accumulate_args g = {2, 8, f, f, f, f};
    ck_fails(backend_grad_accumulate(be, &g, &err), AS_E_INVAL, err,
             "gradient accumulation: first is F32, expected I32");
    g.first = w;
    g.sum = tensor_at(floats.side[1], 0, 0);
    ck_fails(backend_grad_accumulate(be, &g, &err), AS_E_INVAL, err, "sum is written");
    struct ema_args e = {2, 8, f, f, none, w};
    ck_fails(backend_ema(be, &e, &err), AS_E_INVAL, err, "moving average: decay is missing");
    e.n = SIZE_MAX;
    ck_fails(backend_ema(be, &e, &err), AS_E_TOO_LARGE, err, "moving average: n is");
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_sums");
    TCase *c = tcase_create("sums");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, add_matches);
    tcase_add_test(c, accumulate_matches);
    tcase_add_test(c, accumulate_by_hand);
    tcase_add_test(c, ema_matches);
    tcase_add_test(c, ema_by_hand);
    tcase_add_test(c, arguments);
    suite_add_tcase(s, c);
    return s;
}
