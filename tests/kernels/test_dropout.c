/* Dropout: equal masks everywhere, statistics, edges of the rate. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/twin.h"

struct twins {
    struct twin x, y, rate, seed, step;
};

static struct twins make(size_t members, size_t rows, size_t width)
{
    size_t n = rows * width;
    return (struct twins){
        .x = twin_f32(members, n, false, 1, 2), /* not zero: a zero in y is a drop */
        .y = twin_f32(members, n, false, 5, 6),
        .rate = twin_f32(members, 1, false, 0.1f, 0.9f),
        .seed = twin_i32(members, 2, false, INT32_MIN, INT32_MAX),
        .step = twin_i32(members, 1, false, 0, 1000),
    };
}

static void drop(const struct twins *t, size_t members, size_t rows, size_t width, uint32_t layer,
                 bool in_place)
{
    FOR_SIDES(s)
    {
        struct as_err err;
        struct dropout_args a = {.members = members,
                                 .rows = rows,
                                 .width = width,
                                 .x = twin_at(&t->x, s),
                                 .y = in_place ? twin_at(&t->x, s) : twin_at(&t->y, s),
                                 .rate = twin_at(&t->rate, s),
                                 .seed = twin_at(&t->seed, s),
                                 .step = twin_at(&t->step, s),
                                 .layer = layer};
        ck_ok(backend_dropout(twin_backend(s), &a, &err), err);
    }
}

START_TEST(equal_bits)
{
    static const size_t widths[] = {0, 1, 3, 4, 32, 63, 64, 65, 127, 128, 129, 512, 1001, 1024};
    static const size_t rows[] = {0, 1, 2, 7, 33};
    for (size_t i = 0; i < AS_ARRAY_LEN(widths) * AS_ARRAY_LEN(rows); i++) {
        size_t width = widths[i / AS_ARRAY_LEN(rows)], batch = rows[i % AS_ARRAY_LEN(rows)];
        for (size_t members = 1; members <= 3; members += 2) {
            struct twins t = make(members, batch, width);
            drop(&t, members, batch, width, (uint32_t)i, false);
            twin_same(&t.y, "y", 0, 0);
            drop(&t, members, batch, width, 7, true);
            twin_same(&t.x, "x in place", 0, 0);
        }
    }
}
END_TEST

START_TEST(edges_of_the_rate)
{
    static const float rates[] = {0, -1, 1, 2, NAN, 1e-30f, 0.99999994f};
    for (size_t i = 0; i < AS_ARRAY_LEN(rates); i++) {
        struct twins t = make(1, 4, 25);
        twin_set_f32(&t.rate, 0, 0, rates[i]);
        twin_set_f32(&t.x, 0, 3, NAN);
        drop(&t, 1, 4, 25, 0, false);
        twin_same_or_nan(&t.y, "y", 0, 0);
        bool all = rates[i] >= 0.99f;
        ck_assert_float_eq(twin_get_f32(&t.y, 1, 0, 9), all ? 0 : twin_get_f32(&t.x, 1, 0, 9));
        ck_assert(all == !isnan(twin_get_f32(&t.y, 1, 0, 3)));
    }
}
END_TEST

static size_t dropped(const struct twin *t, size_t k, size_t n)
{
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++)
        zeros += twin_get_f32(t, 1, k, i) == 0;
    return zeros;
}

/* 4000 draws at rate 0.3: mean 1200, deviation 29; 6 deviations fail falsely once in 5e8, and the
 * seed is fixed. Kept elements are scaled by 1 / 0.7. */
START_TEST(share_and_scale)
{
    const size_t n = 4000;
    struct twins t = make(2, n / 50, 50);
    for (size_t k = 0; k < 2; k++)
        twin_set_f32(&t.rate, k, 0, 0.3f);
    drop(&t, 2, n / 50, 50, 1, false);
    for (size_t k = 0; k < 2; k++) {
        ck_assert_uint_gt(dropped(&t.y, k, n), 1200 - 174);
        ck_assert_uint_lt(dropped(&t.y, k, n), 1200 + 174);
    }
    for (size_t i = 0; i < 100; i++) {
        float y = twin_get_f32(&t.y, 1, 0, i), x = twin_get_f32(&t.x, 1, 0, i);
        ck_assert(y == 0 || fabsf(y - x / 0.7f) < 1e-5f);
    }
}
END_TEST

static void mask(const struct twins *t, uint32_t layer, bool ret[256])
{
    drop(t, 1, 8, 32, layer, false);
    for (size_t i = 0; i < 256; i++)
        ret[i] = twin_get_f32(&t->y, 1, 0, i) == 0;
}

/* The mask depends on seed, step and layer, and on nothing else. */
START_TEST(what_the_mask_depends_on)
{
    struct twins t = make(1, 8, 32);
    twin_set_f32(&t.rate, 0, 0, 0.5f);
    bool first[256], again[256], other[256];
    mask(&t, 4, first);
    for (size_t i = 0; i < 256; i++)
        twin_set_f32(&t.x, 0, i, 3);
    mask(&t, 4, again);
    ck_assert_mem_eq(first, again, sizeof(first));
    mask(&t, 5, other);
    ck_assert_mem_ne(first, other, sizeof(first));
    twin_set_i32(&t.step, 0, 0, twin_get_i32(&t.step, 0, 0, 0) + 1);
    mask(&t, 4, other);
    ck_assert_mem_ne(first, other, sizeof(first));
    twin_set_i32(&t.step, 0, 0, twin_get_i32(&t.step, 0, 0, 0) - 1);
    twin_set_i32(&t.seed, 0, 1, twin_get_i32(&t.seed, 0, 0, 1) ^ 1);
    mask(&t, 4, other);
    ck_assert_mem_ne(first, other, sizeof(first));
}
END_TEST

/* A layer padded from 13 to 20 units drops the same units of each row. */
START_TEST(width_does_not_matter)
{
    struct twins narrow = make(1, 9, 13), wide = make(1, 9, 20);
    twin_set_i32(&wide.step, 0, 0, twin_get_i32(&narrow.step, 0, 0, 0));
    for (size_t i = 0; i < 2; i++)
        twin_set_i32(&wide.seed, 0, i, twin_get_i32(&narrow.seed, 0, 0, i));
    twin_set_f32(&narrow.rate, 0, 0, 0.5f);
    twin_set_f32(&wide.rate, 0, 0, 0.5f);
    drop(&narrow, 1, 9, 13, 2, false);
    drop(&wide, 1, 9, 20, 2, false);
    size_t dropped_units = 0;
    for (size_t r = 0; r < 9; r++) {
        for (size_t u = 0; u < 13; u++) {
            bool here = twin_get_f32(&narrow.y, 1, 0, r * 13 + u) == 0;
            bool there = twin_get_f32(&wide.y, 1, 0, r * 20 + u) == 0;
            ck_assert_int_eq(here, there);
            dropped_units += here;
        }
    }
    ck_assert(dropped_units > 0 && dropped_units < 9 * 13);
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_dropout");
    TCase *c = tcase_create("dropout");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, equal_bits);
    tcase_add_test(c, edges_of_the_rate);
    tcase_add_test(c, share_and_scale);
    tcase_add_test(c, what_the_mask_depends_on);
    tcase_add_test(c, width_does_not_matter);
    suite_add_tcase(s, c);
    return s;
}
