/* Losses: the back end under test against the oracle. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/kernels/twin.h"

struct ce {
    size_t members, batch, classes;
    struct twin logits, labels, smoothing, dlogits, row_class, correct, row_loss, loss;
};

static struct ce make_ce(size_t members, size_t batch, size_t classes, float range)
{
    return (struct ce){
        .members = members,
        .batch = batch,
        .classes = classes,
        .logits = twin_f32(members, batch * classes, false, -range, range),
        .labels = twin_i32(members, batch, batch % 2 == 0, 0, (int32_t)classes),
        .smoothing = twin_f32(members, 1, false, 0, 0.3f),
        .dlogits = twin_f32(members, batch * classes, false, 5, 6),
        .row_class = twin_i32(members, batch, false, 5, 6),
        .correct = twin_i32(members, 1, false, 5, 6),
        .row_loss = twin_f32(members, batch, false, 5, 6),
        .loss = twin_f32(members, 1, false, 5, 6),
    };
}

enum { SMOOTH = 1, BACKWARD = 2, IN_PLACE = 4, ACCUMULATE = 8 };

static void run_ce(const struct ce *t, unsigned how)
{
    FOR_SIDES(s)
    {
        struct as_err err;
        struct tensor to = (how & IN_PLACE) != 0 ? twin_at(&t->logits, s) : twin_at(&t->dlogits, s);
        struct softmax_ce_args a = {
            .members = t->members,
            .batch = t->batch,
            .classes = t->classes,
            .logits = twin_at(&t->logits, s),
            .labels = twin_at(&t->labels, s),
            .smoothing = (how & SMOOTH) != 0 ? twin_at(&t->smoothing, s) : tensor_none(),
            .dlogits = (how & BACKWARD) != 0 ? to : tensor_none(),
            .grad_scale = 0.5f,
            .row_class = twin_at(&t->row_class, s),
            .correct = twin_at(&t->correct, s),
            .out = {twin_at(&t->row_loss, s), twin_at(&t->loss, s), 2, (how & ACCUMULATE) != 0},
        };
        ck_ok(backend_softmax_ce(twin_backend(s), &a, &err), err);
    }
}

static void same_ce(const struct ce *t)
{
    twin_same_or_nan(&t->dlogits, "dlogits", 1e-6f, 2e-6f);
    twin_same_or_nan(&t->logits, "logits", 1e-6f, 2e-6f);
    twin_same_or_nan(&t->row_loss, "row_loss", 2e-6f, 2e-6f);
    twin_same_or_nan(&t->loss, "loss", 2e-6f, 2e-6f);
    twin_same(&t->row_class, "row_class", 0, 0);
    twin_same(&t->correct, "correct", 0, 0);
}

START_TEST(cross_entropy)
{
    static const struct {
        size_t members, batch, classes;
    } shapes[] = {{0, 1, 2}, {1, 0, 3},   {1, 1, 1},    {3, 1, 2},    {1, 5, 10},
                  {3, 8, 3}, {2, 33, 65}, {1, 2, 1000}, {3, 300, 10}, {1, 7, 64}};
    for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
        for (unsigned how = 0; how < 16; how++) {
            struct ce t = make_ce(shapes[i].members, shapes[i].batch, shapes[i].classes, 8);
            run_ce(&t, how);
            same_ce(&t);
        }
        twin_close(); /* many buffers: free them */
        twin_open();
    }
}
END_TEST

/* Logits of 1e4 and -1e4 must neither overflow nor underflow into NaN. */
START_TEST(cross_entropy_extremes)
{
    struct ce t = make_ce(2, 6, 5, 1e4f);
    run_ce(&t, BACKWARD | SMOOTH);
    same_ce(&t);
    for (size_t r = 0; r < 6; r++)
        ck_assert(isfinite(twin_get_f32(&t.row_loss, 1, 0, r)));
}
END_TEST

/* NaN, infinities, and a label outside: the row's loss is NaN, its neighbours' are not; members do
 * not touch one another. */
START_TEST(cross_entropy_bad_rows)
{
    struct ce t = make_ce(2, 5, 4, 3); /* labels of their own, since the batch is odd */
    twin_set_f32(&t.logits, 0, 0 * 4 + 2, NAN);
    twin_set_f32(&t.logits, 0, 1 * 4 + 1, INFINITY);
    twin_set_i32(&t.labels, 0, 2, 4);
    twin_set_i32(&t.labels, 0, 3, -1);
    run_ce(&t, BACKWARD);
    same_ce(&t);
    for (size_t r = 0; r < 4; r++)
        ck_assert_float_nan(twin_get_f32(&t.row_loss, 1, 0, r));
    ck_assert_int_eq(twin_get_i32(&t.row_class, 1, 0, 0), -1);
    ck_assert_int_eq(twin_get_i32(&t.row_class, 1, 0, 1), 1);
    ck_assert_float_nan(twin_get_f32(&t.dlogits, 1, 0, 2 * 4));
    ck_assert_float_nan(twin_get_f32(&t.dlogits, 1, 0, 3 * 4 + 3));
    ck_assert(isfinite(twin_get_f32(&t.row_loss, 1, 0, 4)));
    ck_assert_float_nan(twin_get_f32(&t.loss, 1, 0, 0));
    ck_assert(isfinite(twin_get_f32(&t.loss, 1, 1, 0)));
}
END_TEST

START_TEST(first_of_equals)
{
    struct ce t = make_ce(1, 3, 70, 1);
    for (size_t c = 0; c < 70; c++)
        twin_set_f32(&t.logits, 0, c, 1);
    twin_set_f32(&t.logits, 0, 70 + 33, 2);
    twin_set_f32(&t.logits, 0, 70 + 65, 2);
    run_ce(&t, 0);
    same_ce(&t);
    ck_assert_int_eq(twin_get_i32(&t.row_class, 1, 0, 0), 0);
    ck_assert_int_eq(twin_get_i32(&t.row_class, 1, 0, 1), 33);
}
END_TEST

START_TEST(first_of_few_equals)
{
    struct ce t = make_ce(1, 17, 16, 1); /* one row more than the rows that go side by side */
    for (size_t r = 0; r < 17; r++) {
        twin_set_f32(&t.logits, 0, r * 16 + r % 8, 2);
        twin_set_f32(&t.logits, 0, r * 16 + 15, 2);
    }
    run_ce(&t, BACKWARD);
    same_ce(&t);
    for (size_t r = 0; r < 17; r++)
        ck_assert_int_eq(twin_get_i32(&t.row_class, 1, 0, r), (int)(r % 8));
}
END_TEST

/* log 4 for four equal logits, on both sides: the oracle is compared with a known value too. */
START_TEST(known_answer)
{
    struct ce t = make_ce(1, 1, 4, 1);
    for (size_t c = 0; c < 4; c++)
        twin_set_f32(&t.logits, 0, c, -3);
    twin_set_i32(&t.labels, 0, 0, 2);
    run_ce(&t, BACKWARD);
    FOR_SIDES(s)
    {
        ck_assert_float_eq_tol(twin_get_f32(&t.loss, s, 0, 0), 2 * logf(4), 1e-6f);
        ck_assert_float_eq_tol(twin_get_f32(&t.dlogits, s, 0, 0), 0.5f * 0.25f, 1e-7f);
        ck_assert_float_eq_tol(twin_get_f32(&t.dlogits, s, 0, 2), 0.5f * -0.75f, 1e-7f);
    }
}
END_TEST

static void mse(size_t members, size_t batch, size_t outputs, bool shared, unsigned how)
{
    struct twin pred = twin_f32(members, batch * outputs, false, -2, 2);
    struct twin target = twin_f32(members, batch * outputs, shared, -2, 2);
    struct twin dpred = twin_f32(members, batch * outputs, false, 5, 6);
    struct twin row_loss = twin_f32(members, batch, false, 5, 6);
    struct twin loss = twin_f32(members, 1, false, 5, 6);
    FOR_SIDES(s)
    {
        struct as_err err;
        struct tensor to = (how & IN_PLACE) != 0 ? twin_at(&pred, s) : twin_at(&dpred, s);
        struct mse_args a = {
            .members = members,
            .batch = batch,
            .outputs = outputs,
            .pred = twin_at(&pred, s),
            .target = twin_at(&target, s),
            .dpred = (how & BACKWARD) != 0 ? to : tensor_none(),
            .grad_scale = 3,
            .out = {twin_at(&row_loss, s), twin_at(&loss, s), 0.25f, (how & ACCUMULATE) != 0},
        };
        ck_ok(backend_mse(twin_backend(s), &a, &err), err);
    }
    twin_same(&pred, "pred", 1e-6f, 2e-6f);
    twin_same(&dpred, "dpred", 1e-6f, 2e-6f);
    twin_same(&row_loss, "row_loss", 1e-6f, 2e-6f);
    twin_same(&loss, "loss", 1e-6f, 2e-6f);
}

START_TEST(mean_squared_error)
{
    for (unsigned how = 0; how < 16; how += 2) {
        mse(0, 1, 1, false, how);
        mse(1, 0, 3, false, how);
        mse(1, 1, 1, true, how);
        mse(3, 17, 1, true, how);
        mse(3, 5, 33, false, how);
        mse(1, 300, 2, false, how);
        mse(2, 3, 0, false, how);
    }
}
END_TEST

TEST_SUITE()
{
    twin_probe();
    Suite *s = suite_create("kernels_loss");
    TCase *c = tcase_create("loss");
    tcase_add_checked_fixture(c, twin_open, twin_close);
    tcase_add_test(c, cross_entropy);
    tcase_add_test(c, cross_entropy_extremes);
    tcase_add_test(c, cross_entropy_bad_rows);
    tcase_add_test(c, first_of_equals);
    tcase_add_test(c, first_of_few_equals);
    tcase_add_test(c, known_answer);
    tcase_add_test(c, mean_squared_error);
    suite_add_tcase(s, c);
    return s;
}
