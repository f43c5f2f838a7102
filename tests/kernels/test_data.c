/* Gather, tick, augmentation: equal bits on both sides, and the rules of the header. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/kernels/case.h"

/* ---- gather ---- */

struct gather_shape {
    size_t rows, batch, width, at_rows, index_len;
    bool at;
};

enum { SRC, INDEX, AT, DST, GATHER_PLACES };

static as_status gather(struct backend *be, size_t members, const struct tensor *t,
                        const void *shape, struct as_err *err)
{
    const struct gather_shape *s = shape;
    struct gather_args a = {.members = members,
                            .rows = s->rows,
                            .batch = s->batch,
                            .width = s->width,
                            .src = t[SRC],
                            .index = t[INDEX],
                            .at = t[AT],
                            .at_rows = s->at_rows,
                            .index_len = s->index_len,
                            .dst = t[DST]};
    return backend_gather(be, &a, err);
}

/* Indices from -1 to `rows`, and batches from -1 to 4: some of each are outside. */
static struct case_op gather_op(const struct gather_shape *s, buf_kind kind)
{
    return (struct case_op){
        .call = gather,
        .shape = s,
        .n_places = GATHER_PLACES,
        .places = {[SRC] = {"src", kind, s->rows * s->width, -9, 9, CASE_SHARED},
                   [INDEX] = {"index", BUF_I32, s->at ? s->index_len : s->batch, -1,
                              (float)s->rows + 1, CASE_SHARED},
                   [AT] = {"at", BUF_I32, 1, -1, 5, s->at ? CASE_SHARED : CASE_ABSENT},
                   [DST] = {"dst", kind, s->batch * s->width, 5, 6, 0}},
    };
}

START_TEST(gather_matches)
{
    static const struct gather_shape shapes[] = {
        {0, 3, 2, 3, 9, true},  {5, 0, 2, 0, 9, true},     {5, 3, 0, 3, 9, true},
        {5, 3, 2, 0, 0, false}, {1, 1, 1, 1, 1, true},     {7, 4, 3, 4, 17, true},
        {9, 4, 33, 2, 8, true}, {300, 65, 2, 65, 0, true}, {20, 8, 5, 3, 30, true}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        for (int kind = BUF_F32; kind <= BUF_I32; kind++) {
            struct case_op op = gather_op(&shapes[i], (buf_kind)kind);
            case_twin(&op);
            case_slots(&op);
        }
    }
}
END_TEST

/* Batches of 2 of an index of 5 rows: the third has one row and then nothing. */
START_TEST(gather_by_hand)
{
    static const struct gather_shape shape = {4, 2, 1, 2, 5, true};
    static const int32_t index[] = {3, 0, 2, 1, 3};
    static const float want[][2] = {{30, 0}, {20, 10}, {30, NAN}, {NAN, NAN}};
    struct case_op op = gather_op(&shape, BUF_F32);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < 4; i++)
        twin_set_f32(&r.at[SRC], 0, i, 10 * (float)i);
    for (size_t i = 0; i < 5; i++)
        twin_set_i32(&r.at[INDEX], 0, i, index[i]);
    for (size_t at = 0; at < 4; at++) {
        twin_set_i32(&r.at[AT], 0, 0, (int32_t)at);
        case_do(&r, op.call);
        FOR_SIDES(s)
        for (size_t i = 0; i < 2; i++) {
            float got = twin_get_f32(&r.at[DST], s, 0, i);
            ck_assert(got == want[at][i] || (isnan(got) && isnan(want[at][i])));
        }
    }
    static const int32_t far[] = {-1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < AS_ARRAY_LEN(far); i++) {
        twin_set_i32(&r.at[AT], 0, 0, far[i]);
        case_do(&r, op.call);
        FOR_SIDES(s)
        ck_assert_float_nan(twin_get_f32(&r.at[DST], s, 0, 0));
    }
}
END_TEST

/* ---- bytes ---- */

enum { BYTES, BYTES_INDEX, BYTES_AT, MEAN, SCALE, SCALED, BYTES_PLACES };

static as_status gather_bytes(struct backend *be, size_t members, const struct tensor *t,
                              const void *shape, struct as_err *err)
{
    const struct gather_shape *s = shape;
    struct gather_bytes_args a = {.members = members,
                                  .rows = s->rows,
                                  .batch = s->batch,
                                  .width = s->width,
                                  .src = t[BYTES],
                                  .index = t[BYTES_INDEX],
                                  .at = t[BYTES_AT],
                                  .at_rows = s->at_rows,
                                  .index_len = s->index_len,
                                  .mean = t[MEAN],
                                  .scale = t[SCALE],
                                  .dst = t[SCALED]};
    return backend_gather_bytes(be, &a, err);
}

static struct case_op gather_bytes_op(const struct gather_shape *s)
{
    return (struct case_op){
        .call = gather_bytes,
        .shape = s,
        .n_places = BYTES_PLACES,
        .places = {[BYTES] = {"src", BUF_I32, gather_bytes_len(s->rows, s->width), -2e9f, 2e9f,
                              CASE_SHARED},
                   [BYTES_INDEX] = {"index", BUF_I32, s->at ? s->index_len : s->batch, -1,
                                    (float)s->rows + 1, CASE_SHARED},
                   [BYTES_AT] = {"at", BUF_I32, 1, -1, 5, s->at ? CASE_SHARED : CASE_ABSENT},
                   [MEAN] = {"mean", BUF_F32, s->width, 0, 255, CASE_SHARED},
                   [SCALE] = {"scale", BUF_F32, s->width, 1, 90, CASE_SHARED},
                   [SCALED] = {"dst", BUF_F32, s->batch * s->width, 5, 6, 0}},
    };
}

/* No tolerance: the scaled value has the same bits everywhere. */
START_TEST(gather_bytes_matches)
{
    static const struct gather_shape shapes[] = {
        {0, 3, 2, 3, 9, true},  {5, 0, 2, 0, 9, true},     {5, 3, 0, 3, 9, true},
        {5, 3, 2, 0, 0, false}, {1, 1, 1, 1, 1, true},     {7, 4, 3, 4, 17, true},
        {9, 4, 33, 2, 8, true}, {300, 65, 2, 65, 0, true}, {70, 90, 784, 8, 300, true}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct case_op op = gather_bytes_op(&shapes[i]);
        case_twin(&op);
        case_slots(&op);
    }
}
END_TEST

/* Rows of 3 bytes, so that they begin inside an element. The index names the second row twice, and
 * a row that does not exist. */
START_TEST(gather_bytes_by_hand)
{
    static const struct gather_shape shape = {3, 4, 3, 0, 0, false};
    static const unsigned char bytes[12] = {0, 1, 2, 253, 254, 255, 7, 8, 9};
    static const int32_t index[] = {1, 2, 3, 1};
    static const float want[] = {253, 127, 88, 7, 4, 6, NAN, NAN, NAN, 253, 127, 88};
    struct case_op op = gather_bytes_op(&shape);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < 3; i++) {
        int32_t word;
        memcpy(&word, bytes + 4 * i, 4);
        twin_set_i32(&r.at[BYTES], 0, i, word);
        twin_set_f32(&r.at[MEAN], 0, i, i == 2 ? -9 : 0);
        twin_set_f32(&r.at[SCALE], 0, i, (float)i + 1);
    }
    for (size_t i = 0; i < 4; i++)
        twin_set_i32(&r.at[BYTES_INDEX], 0, i, index[i]);
    case_do(&r, op.call);
    FOR_SIDES(s)
    for (size_t i = 0; i < AS_ARRAY_LEN(want); i++) {
        float got = twin_get_f32(&r.at[SCALED], s, 0, i);
        ck_assert(got == want[i] || (isnan(got) && isnan(want[i])));
    }
}
END_TEST

/* Memory of malloc becomes a buffer, on every back end. */
START_TEST(adopted_memory)
{
    FOR_SIDES(s)
    {
        struct as_err err;
        AS_AUTO(buf_freep) struct buf *b = NULL, *none = NULL;
        float *own = malloc(3 * sizeof *own), got[3];
        ck_assert_ptr_nonnull(own);
        own[0] = 1, own[1] = 2, own[2] = 3;
        ck_ok(buf_adopt(twin_backend(s), BUF_F32, 3, own, &b, &err), err);
        ck_ok(buf_download(b, 0, got, 3, &err), err);
        ck_assert(got[0] == 1 && got[1] == 2 && got[2] == 3);
        ck_assert_uint_eq(buf_len(b), 3);
        ck_ok(buf_adopt(twin_backend(s), BUF_I32, 0, NULL, &none, &err), err);
        ck_fails(buf_adopt(twin_backend(s), (buf_kind)9, 1, malloc(4), &none, &err), AS_E_INVAL,
                 err, "kind 9");
    }
}
END_TEST

/* ---- tick ---- */

struct tick_shape {
    size_t steps, columns;
};

enum { TICKS, NOW, VALUES, TICK_PLACES };

static as_status tick(struct backend *be, size_t members, const struct tensor *t, const void *shape,
                      struct as_err *err)
{
    const struct tick_shape *s = shape;
    struct tick_args a = {members, s->steps, s->columns, t[TICKS], t[NOW], t[VALUES]};
    return backend_tick(be, &a, err);
}

static struct case_op tick_op(const struct tick_shape *s)
{
    return (struct case_op){
        .call = tick,
        .shape = s,
        .n_places = TICK_PLACES,
        .places = {[TICKS] = {"table", BUF_F32, s->steps * s->columns, -1, 1, CASE_SHARED},
                   [NOW] = {"at", BUF_I32, 1, -1, (float)s->steps + 1, 0},
                   [VALUES] = {"out", BUF_F32, s->columns, 5, 6, 0}},
    };
}

START_TEST(tick_matches)
{
    static const struct tick_shape shapes[] = {{0, 2}, {3, 0}, {1, 1}, {5, 3}, {100, 7}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct case_op op = tick_op(&shapes[i]);
        case_twin(&op);
        case_slots(&op);
    }
}
END_TEST

START_TEST(tick_by_hand)
{
    static const struct tick_shape shape = {2, 2};
    static const float want[][2] = {{NAN, NAN}, {1, 2}, {3, 4}, {NAN, NAN}};
    struct case_op op = tick_op(&shape);
    struct case_run r = case_make(&op, 1, false);
    for (size_t i = 0; i < 4; i++)
        twin_set_f32(&r.at[TICKS], 0, i, (float)i + 1);
    twin_set_i32(&r.at[NOW], 0, 0, -1);
    for (int step = 0; step < 4; step++) {
        case_do(&r, op.call);
        FOR_SIDES(s)
        {
            ck_assert_int_eq(twin_get_i32(&r.at[NOW], s, 0, 0), step);
            for (size_t i = 0; i < 2; i++) {
                float got = twin_get_f32(&r.at[VALUES], s, 0, i);
                ck_assert(got == want[step][i] || (isnan(got) && isnan(want[step][i])));
            }
        }
    }
    twin_set_i32(&r.at[NOW], 0, 0, INT32_MAX); /* must not overflow */
    case_do(&r, op.call);
    FOR_SIDES(s)
    ck_assert_int_eq(twin_get_i32(&r.at[NOW], s, 0, 0), INT32_MIN);
}
END_TEST

/* ---- augmentation ---- */

struct image_shape {
    size_t batch, height, width, channels;
    bool bare;
};

enum { X, Y, PAD, FLIP, CUTOUT, SEED, STEP, IMAGE_PLACES };

static as_status augment(struct backend *be, size_t members, const struct tensor *t,
                         const void *shape, struct as_err *err)
{
    const struct image_shape *s = shape;
    struct augment_args a = {.members = members,
                             .batch = s->batch,
                             .height = s->height,
                             .width = s->width,
                             .channels = s->channels,
                             .x = t[X],
                             .y = t[Y],
                             .pad = t[PAD],
                             .flip = t[FLIP],
                             .cutout = t[CUTOUT],
                             .seed = t[SEED],
                             .step = t[STEP]};
    return backend_augment(be, &a, err);
}

static struct case_op image_op(const struct image_shape *s)
{
    size_t n = s->batch * s->height * s->width * s->channels;
    unsigned flags = s->bare ? CASE_ABSENT : 0;
    return (struct case_op){
        .call = augment,
        .shape = s,
        .n_places = IMAGE_PLACES,
        .places = {[X] = {"x", BUF_F32, n, 1, 2, CASE_SHARED}, /* never 0 */
                   [Y] = {"y", BUF_F32, n, 5, 6, 0},
                   [PAD] = {"pad", BUF_I32, 1, -2, 12, flags},
                   [FLIP] = {"flip", BUF_F32, 1, 0.2f, 0.8f, flags},
                   [CUTOUT] = {"cutout", BUF_I32, 1, -2, 9, flags},
                   [SEED] = {"seed", BUF_I32, 2, -1e9f, 1e9f, CASE_SHARED},
                   [STEP] = {"step", BUF_I32, 1, 0, 1000, CASE_SHARED}},
    };
}

START_TEST(augment_matches)
{
    static const struct image_shape shapes[] = {
        {0, 4, 4, 1, false},    {2, 0, 4, 1, false}, {2, 4, 0, 3, false},
        {2, 4, 4, 0, false},    {3, 1, 1, 1, false}, {65, 5, 7, 3, false},
        {33, 28, 28, 1, false}, {9, 8, 8, 3, true},  {17, 1, 9, 2, false}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        struct case_op op = image_op(&shapes[i]);
        case_twin(&op);
        case_slots(&op);
    }
}
END_TEST

/* Augmentation that is off, in each of the ways to state it, is a copy. */
START_TEST(augment_of_nothing)
{
    for (int bare = 0; bare < 2; bare++) {
        struct image_shape shape = {4, 5, 6, 2, bare != 0};
        struct case_op op = image_op(&shape);
        struct case_run r = case_make(&op, 1, false);
        if (bare == 0) {
            twin_set_i32(&r.at[PAD], 0, 0, -3);
            twin_set_f32(&r.at[FLIP], 0, 0, NAN);
            twin_set_i32(&r.at[CUTOUT], 0, 0, 0);
        }
        case_do(&r, op.call);
        FOR_SIDES(s)
        for (size_t i = 0; i < op.places[X].n; i++)
            ck_assert(twin_get_f32(&r.at[X], s, 0, i) == twin_get_f32(&r.at[Y], s, 0, i));
    }
}
END_TEST

/* Extremes of each setting: always flipped; shifted completely out; cut out completely. */
START_TEST(augment_extremes)
{
    struct image_shape shape = {6, 3, 4, 2, false};
    struct case_op op = image_op(&shape);
    struct case_run r = case_make(&op, 1, false);
    twin_set_i32(&r.at[PAD], 0, 0, 0);
    twin_set_i32(&r.at[CUTOUT], 0, 0, 0);
    twin_set_f32(&r.at[FLIP], 0, 0, 1);
    case_do(&r, op.call);
    FOR_SIDES(s)
    for (size_t i = 0; i < op.places[X].n; i++) {
        size_t row = i / 8, col = i % 8 / 2, channel = i % 2;
        ck_assert(twin_get_f32(&r.at[Y], s, 0, i) ==
                  twin_get_f32(&r.at[X], s, 0, row * 8 + (3 - col) * 2 + channel));
    }
    twin_set_i32(&r.at[PAD], 0, 0, INT32_MAX);
    case_do(&r, op.call);
    FOR_SIDES(s)
    for (size_t i = 0; i < op.places[X].n; i++)
        ck_assert(twin_get_f32(&r.at[Y], s, 0, i) == 0);
    twin_set_i32(&r.at[PAD], 0, 0, 0);
    twin_set_i32(&r.at[CUTOUT], 0, 0, INT32_MAX);
    case_do(&r, op.call);
    FOR_SIDES(s)
    for (size_t i = 0; i < op.places[X].n; i++)
        ck_assert(twin_get_f32(&r.at[Y], s, 0, i) == 0);
}
END_TEST

/* The header's rule, computed here for one image: 5x5, pad 2, no flip, square of 2. */
START_TEST(augment_by_rule)
{
    enum { SIDE = 5 };
    struct image_shape shape = {1, SIDE, SIDE, 1, false};
    struct case_op op = image_op(&shape);
    for (int32_t step = 0; step < 30; step++) {
        struct case_run r = case_make(&op, 1, false);
        twin_set_i32(&r.at[PAD], 0, 0, 2);
        twin_set_f32(&r.at[FLIP], 0, 0, 0);
        twin_set_i32(&r.at[CUTOUT], 0, 0, 2);
        twin_set_i32(&r.at[SEED], 0, 0, 17);
        twin_set_i32(&r.at[SEED], 0, 1, 1);
        twin_set_i32(&r.at[STEP], 0, 0, step);
        uint32_t one[4], two[4];
        philox4x32(1ull << 32 | 17, (uint64_t)step << 32 | AUGMENT_PURPOSE, 0, one);
        philox4x32(1ull << 32 | 17, (uint64_t)step << 32 | AUGMENT_PURPOSE, 1, two);
        int down = (int)((uint64_t)one[0] * 5 >> 32) - 2;
        int right = (int)((uint64_t)one[1] * 5 >> 32) - 2;
        int top = (int)((uint64_t)two[0] * SIDE >> 32) - 1;
        int left = (int)((uint64_t)two[1] * SIDE >> 32) - 1;
        case_do(&r, op.call);
        FOR_SIDES(s)
        for (int at = 0; at < SIDE * SIDE; at++) {
            int i = at / SIDE, j = at % SIDE, row = i - down, col = j - right;
            bool cut = i >= top && i < top + 2 && j >= left && j < left + 2;
            bool inside = !cut && row >= 0 && row < SIDE && col >= 0 && col < SIDE;
            float want =
                inside ? twin_get_f32(&r.at[X], s, 0, (size_t)row * SIDE + (size_t)col) : 0;
            ck_assert(twin_get_f32(&r.at[Y], s, 0, (size_t)at) == want);
        }
    }
}
END_TEST

/* 2000 images of two pixels at a share of 0.3: 600 flipped, deviation 20; 6 deviations. */
START_TEST(share_of_flips)
{
    struct image_shape shape = {2000, 1, 2, 1, false};
    struct case_op op = image_op(&shape);
    struct case_run r = case_make(&op, 1, false);
    twin_set_i32(&r.at[PAD], 0, 0, 0);
    twin_set_i32(&r.at[CUTOUT], 0, 0, 0);
    twin_set_f32(&r.at[FLIP], 0, 0, 0.3f);
    case_do(&r, op.call);
    size_t flips = 0;
    for (size_t i = 0; i < 4000; i += 2)
        flips += twin_get_f32(&r.at[Y], 1, 0, i) == twin_get_f32(&r.at[X], 1, 0, i + 1);
    ck_assert_uint_gt(flips, 600 - 123);
    ck_assert_uint_lt(flips, 600 + 123);
}
END_TEST

START_TEST(arguments)
{
    struct as_err err;
    struct backend *be = twin_backend(1);
    struct twin floats = twin_f32(2, 64, false, 0, 1), words = twin_i32(2, 64, false, 0, 1);
    struct tensor f = twin_at(&floats, 1), w = twin_at(&words, 1), none = tensor_none();
    struct gather_args g = {.members = 2,
                            .rows = 3,
                            .batch = 2,
                            .width = 2,
                            .src = f,
                            .index = w,
                            .at = f,
                            .at_rows = 2,
                            .index_len = 6,
                            .dst = f};
    ck_fails(backend_gather(be, &g, &err), AS_E_INVAL, err, "gather: at is F32, expected I32");
    g.at = w;
    g.index_len = 70;
    ck_fails(backend_gather(be, &g, &err), AS_E_INVAL, err, "index has 70 elements per member");
    g.at_rows = SIZE_MAX;
    g.index_len = 6;
    ck_fails(backend_gather(be, &g, &err), AS_E_TOO_LARGE, err, "gather: at_rows is");
    struct tick_args t = {2, 3, 2, f, w, none};
    ck_fails(backend_tick(be, &t, &err), AS_E_INVAL, err, "tick: out is missing");
    t.at = tensor_at(words.side[1], 0, 0);
    ck_fails(backend_tick(be, &t, &err), AS_E_INVAL, err, "tick: at is written, so 2 members");
    struct augment_args a = {2, 1, 4, 4, 2, f, f, w, f, w, none, w};
    ck_fails(backend_augment(be, &a, &err), AS_E_INVAL, err, "augmentation: seed is missing");
    a.seed = w;
    a.pad = f;
    ck_fails(backend_augment(be, &a, &err), AS_E_INVAL, err, "augmentation: pad is F32");
    a.height = 1u << 30;
    a.width = 1u << 30;
    a.channels = 1u << 30;
    ck_fails(backend_augment(be, &a, &err), AS_E_TOO_LARGE, err, "product");
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_data");
    TCase *c = tcase_create("data");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, gather_matches);
    tcase_add_test(c, gather_by_hand);
    tcase_add_test(c, gather_bytes_matches);
    tcase_add_test(c, gather_bytes_by_hand);
    tcase_add_test(c, adopted_memory);
    tcase_add_test(c, tick_matches);
    tcase_add_test(c, tick_by_hand);
    tcase_add_test(c, augment_matches);
    tcase_add_test(c, augment_of_nothing);
    tcase_add_test(c, augment_extremes);
    tcase_add_test(c, augment_by_rule);
    tcase_add_test(c, share_of_flips);
    tcase_add_test(c, arguments);
    suite_add_tcase(s, c);
    return s;
}
