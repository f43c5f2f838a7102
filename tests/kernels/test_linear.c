/* Gather, linear layers and activations: the back end under test against the oracle. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/twin.h"

struct shape {
    size_t members, batch, in, out;
};

/* 0, 1, odd, off the tile of any kernel, more members than one. */
static const struct shape shapes[] = {
    {0, 2, 3, 4}, {1, 0, 3, 4},   {1, 2, 0, 4},    {1, 2, 3, 0},     {1, 1, 1, 1},     {1, 1, 7, 1},
    {3, 2, 5, 3}, {1, 17, 33, 9}, {3, 17, 31, 65}, {2, 129, 20, 10}, {1, 64, 128, 96}, {5, 1, 1, 2},
};

static void forward(const struct shape *s, act_kind act, bool shared_x, bool bias, bool keep)
{
    struct twin x = twin_f32(s->members, s->batch * s->in, shared_x, -1, 1);
    struct twin w = twin_f32(s->members, s->in * s->out, false, -1, 1);
    struct twin b = twin_f32(s->members, s->out, false, -1, 1);
    struct twin y = twin_f32(s->members, s->batch * s->out, false, 5, 6);
    struct twin z = twin_f32(s->members, s->batch * s->out, false, 5, 6);
    struct as_err err;
    FOR_SIDES(i)
    {
        struct linear_args a = {.members = s->members,
                                .batch = s->batch,
                                .in = s->in,
                                .out = s->out,
                                .x = twin_at(&x, i),
                                .w = twin_at(&w, i),
                                .b = bias ? twin_at(&b, i) : tensor_none()};
        ck_ok(backend_linear_forward(twin_backend(i), &a, act, twin_at(&y, i),
                                     keep ? twin_at(&z, i) : tensor_none(), &err),
              err);
    }
    /* float sums of up to 128 products of size 1 */
    twin_same(&y, "y", 2e-5f, 1e-5f);
    twin_same(&z, "z", 2e-5f, 1e-5f);
}

START_TEST(linear_forward)
{
    act_kind act = (act_kind)_i;
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        forward(&shapes[i], act, false, true, false);
        forward(&shapes[i], act, true, false, true);
        forward(&shapes[i], act, false, true, true);
    }
}
END_TEST

static void backward(const struct shape *s, bool shared_x, bool accumulate, unsigned wanted)
{
    struct twin x = twin_f32(s->members, s->batch * s->in, shared_x, -1, 1);
    struct twin w = twin_f32(s->members, s->in * s->out, false, -1, 1);
    struct twin dy = twin_f32(s->members, s->batch * s->out, false, -1, 1);
    struct twin dx = twin_f32(s->members, s->batch * s->in, false, 5, 6);
    struct twin dw = twin_f32(s->members, s->in * s->out, false, 5, 6);
    struct twin db = twin_f32(s->members, s->out, false, 5, 6);
    struct as_err err;
    FOR_SIDES(i)
    {
        struct linear_args a = {s->members,     s->batch,       s->in,        s->out,
                                twin_at(&x, i), twin_at(&w, i), tensor_none()};
        struct linear_grads g = {.dy = twin_at(&dy, i),
                                 .dx = wanted & 1 ? twin_at(&dx, i) : tensor_none(),
                                 .dw = wanted & 2 ? twin_at(&dw, i) : tensor_none(),
                                 .db = wanted & 4 ? twin_at(&db, i) : tensor_none(),
                                 .accumulate = accumulate};
        ck_ok(backend_linear_backward(twin_backend(i), &a, &g, &err), err);
    }
    twin_same(&dx, "dx", 2e-5f, 1e-5f);
    twin_same(&dw, "dw", 2e-5f, 1e-5f);
    twin_same(&db, "db", 2e-5f, 1e-5f);
}

START_TEST(linear_backward)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        backward(&shapes[i], false, false, 7);
        backward(&shapes[i], true, true, 7);
        backward(&shapes[i], true, false, 6);
        backward(&shapes[i], false, true, 1);
    }
}
END_TEST

/* Weights inside an arena [K, N]: the stride is the arena's, not the weight's. Whole-buffer
 * comparison shows a write beside them. One w for all members is allowed for ensembles' inputs. */
START_TEST(shared_weights)
{
    struct as_err err;
    struct twin x = twin_f32(3, 4 * 5, false, -1, 1), w = twin_f32(3, 5 * 2, true, -1, 1);
    struct twin b = twin_f32(3, 2, true, -1, 1), y = twin_f32(3, 4 * 2, false, 0, 1);
    FOR_SIDES(i)
    {
        struct linear_args a = {3, 4, 5, 2, twin_at(&x, i), twin_at(&w, i), twin_at(&b, i)};
        ck_ok(backend_linear_forward(twin_backend(i), &a, ACT_RELU, twin_at(&y, i), tensor_none(),
                                     &err),
              err);
    }
    twin_same(&y, "y", 2e-5f, 1e-5f);
}
END_TEST

/* z may be y without an activation; a NaN in the input must reach the output of each activation. */
START_TEST(forward_in_place_and_nan)
{
    act_kind act = (act_kind)_i;
    struct as_err err;
    struct twin x = twin_f32(1, 3 * 2, false, -1, 1), w = twin_f32(1, 2 * 4, false, -1, 1);
    struct twin y = twin_f32(1, 3 * 4, false, 0, 1);
    twin_set_f32(&x, 0, 0, NAN);
    twin_set_f32(&x, 0, 2, INFINITY);
    FOR_SIDES(i)
    {
        struct linear_args a = {1, 3, 2, 4, twin_at(&x, i), twin_at(&w, i), tensor_none()};
        struct tensor z = act == ACT_NONE ? twin_at(&y, i) : tensor_none();
        ck_ok(backend_linear_forward(twin_backend(i), &a, act, twin_at(&y, i), z, &err), err);
        for (size_t o = 0; o < 4; o++)
            ck_assert_float_nan(twin_get_f32(&y, i, 0, o));
    }
    if (act != ACT_GELU) /* gelu(-inf) = -inf * 0 is NaN on some and -0 on others */
        twin_same_or_nan(&y, "y", 2e-5f, 1e-5f);
}
END_TEST

START_TEST(act_backward)
{
    act_kind act = (act_kind)_i;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1000};
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        for (size_t members = 1; members <= 3; members += 2) {
            float range = act == ACT_TANH ? 1 : 6; /* tanh keeps its output */
            struct twin kept = twin_f32(members, sizes[i], false, -range, range);
            struct twin dy = twin_f32(members, sizes[i], false, -1, 1);
            struct twin dx = twin_f32(members, sizes[i], false, 5, 6);
            if (sizes[i] > 0)
                twin_set_f32(&kept, 0, 0, 0);
            for (int in_place = 0; in_place < 2; in_place++) {
                FOR_SIDES(s)
                {
                    struct as_err err;
                    struct act_args a = {members,
                                         sizes[i],
                                         act,
                                         twin_at(&kept, s),
                                         twin_at(&dy, s),
                                         in_place ? twin_at(&dy, s) : twin_at(&dx, s)};
                    ck_ok(backend_act_backward(twin_backend(s), &a, &err), err);
                }
                twin_same(in_place ? &dy : &dx, "dx", 5e-7f, 1e-6f);
            }
        }
    }
}
END_TEST

/* Large and small inputs of the activations, where one polynomial replaces another. */
START_TEST(act_range)
{
    act_kind act = (act_kind)_i;
    const size_t n = 20001;
    struct as_err err;
    struct twin x = twin_f32(1, n, false, -12, 12), w = twin_f32(1, 1, false, 0, 1);
    struct twin y = twin_f32(1, n, false, 0, 1);
    twin_set_f32(&w, 0, 0, 1);
    twin_set_f32(&x, 0, 0, 1e30f);
    twin_set_f32(&x, 0, 1, -1e30f);
    twin_set_f32(&x, 0, 2, 0);
    twin_set_f32(&x, 0, 3, 1e-30f);
    FOR_SIDES(s)
    {
        struct linear_args a = {1, n, 1, 1, twin_at(&x, s), twin_at(&w, s), tensor_none()};
        ck_ok(backend_linear_forward(twin_backend(s), &a, act, twin_at(&y, s), tensor_none(), &err),
              err);
    }
    twin_same(&y, "y", 5e-7f, 1e-6f);
}
END_TEST

static void gather(size_t members, size_t rows, size_t batch, size_t width, bool shared_src,
                   bool shared_index)
{
    struct as_err err;
    struct twin src = twin_f32(members, rows * width, shared_src, -1, 1);
    struct twin whole = twin_i32(members, rows * width, shared_src, -9, 9);
    struct twin index = twin_i32(members, batch, shared_index, 0, (int32_t)(rows > 0 ? rows : 1));
    struct twin dst = twin_f32(members, batch * width, false, 5, 6);
    struct twin dst_whole = twin_i32(members, batch * width, false, 5, 6);
    if (batch > 2) {
        twin_set_i32(&index, 0, 0, -1);
        twin_set_i32(&index, 0, 1, (int32_t)rows);
    }
    FOR_SIDES(s)
    {
        struct gather_args a = {.members = members,
                                .rows = rows,
                                .batch = batch,
                                .width = width,
                                .src = twin_at(&src, s),
                                .index = twin_at(&index, s),
                                .dst = twin_at(&dst, s)};
        ck_ok(backend_gather(twin_backend(s), &a, &err), err);
        a.src = twin_at(&whole, s);
        a.dst = twin_at(&dst_whole, s);
        ck_ok(backend_gather(twin_backend(s), &a, &err), err);
    }
    twin_same_or_nan(&dst, "dst F32", 0, 0);
    twin_same(&dst_whole, "dst I32", 0, 0);
}

START_TEST(gather_rows)
{
    for (int shared = 0; shared < 4; shared++) {
        gather(1, 10, 4, 3, shared & 1, shared & 2);
        gather(3, 7, 9, 65, shared & 1, shared & 2);
        gather(2, 1, 1, 1, shared & 1, shared & 2);
        gather(2, 5, 0, 4, shared & 1, shared & 2);
        gather(2, 5, 4, 0, shared & 1, shared & 2);
        gather(2, 0, 3, 2, shared & 1, shared & 2);
    }
}
END_TEST

START_TEST(gather_bad_index)
{
    struct as_err err;
    struct twin src = twin_f32(1, 4 * 2, true, -1, 1), index = twin_i32(1, 2, true, 0, 1);
    struct twin dst = twin_f32(1, 2 * 2, false, 0, 1);
    twin_set_i32(&index, 0, 0, INT32_MIN);
    twin_set_i32(&index, 0, 1, 3);
    FOR_SIDES(s)
    {
        struct gather_args a = {.members = 1,
                                .rows = 4,
                                .batch = 2,
                                .width = 2,
                                .src = twin_at(&src, s),
                                .index = twin_at(&index, s),
                                .dst = twin_at(&dst, s)};
        ck_ok(backend_gather(twin_backend(s), &a, &err), err);
        ck_assert_float_nan(twin_get_f32(&dst, s, 0, 0));
        ck_assert_float_nan(twin_get_f32(&dst, s, 0, 1));
        ck_assert_float_eq(twin_get_f32(&dst, s, 0, 3), twin_get_f32(&src, s, 0, 7));
    }
}
END_TEST

/* Two blocks side by side in wider rows; the columns beside them stay. */
START_TEST(columns)
{
    for (int shared = 0; shared < 2; shared++)
        for (size_t rows = 0; rows < 70; rows += 23) {
            struct as_err err;
            struct twin src = twin_f32(3, rows * 37, shared, -1, 1);
            struct twin dst = twin_f32(3, rows * 50, false, 5, 6);
            FOR_SIDES(s)
            {
                struct columns_args a = {.members = 3,
                                         .rows = rows,
                                         .width = 33,
                                         .src = twin_at(&src, s),
                                         .src_width = 37,
                                         .src_at = 4,
                                         .dst = twin_at(&dst, s),
                                         .dst_width = 50,
                                         .dst_at = 10};
                ck_ok(backend_columns(twin_backend(s), &a, &err), err);
                a.width = 1;
                a.src_at = a.dst_at = 0;
                ck_ok(backend_columns(twin_backend(s), &a, &err), err);
                if (rows > 0) {
                    size_t last = (rows - 1) * 50;
                    ck_assert_float_eq(twin_get_f32(&dst, s, 2, last + 42),
                                       twin_get_f32(&src, s, 2, rows * 37 - 1));
                    ck_assert(twin_get_f32(&dst, s, 2, last + 43) >= 5);
                    ck_assert(twin_get_f32(&dst, s, 2, last + 9) >= 5);
                }
                a.src_at = 37;
                ck_fails(backend_columns(twin_backend(s), &a, &err), AS_E_INVAL, err, "columns: ");
                a.src_at = 0;
                a.width = 41;
                ck_fails(backend_columns(twin_backend(s), &a, &err), AS_E_INVAL, err, "columns: ");
            }
            twin_same(&dst, "dst", 0, 0);
        }
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_linear");
    TCase *c = tcase_create("linear");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_loop_test(c, linear_forward, ACT_NONE, ACT_GELU + 1);
    tcase_add_test(c, linear_backward);
    tcase_add_test(c, shared_weights);
    tcase_add_loop_test(c, forward_in_place_and_nan, ACT_NONE, ACT_GELU + 1);
    tcase_add_loop_test(c, act_backward, ACT_NONE, ACT_GELU + 1);
    tcase_add_loop_test(c, act_range, ACT_NONE, ACT_GELU + 1);
    tcase_add_test(c, gather_rows);
    tcase_add_test(c, gather_bad_index);
    tcase_add_test(c, columns);
    suite_add_tcase(s, c);
    return s;
}
