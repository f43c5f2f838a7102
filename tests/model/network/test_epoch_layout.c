/* The layout of an epoch: counts, which micro-steps end a batch, shares that add up to 1. */
#include "tests/support/check_main.h"
#include "model/network/epoch_layout.h"

static struct epoch_layout layout(int64_t batch, int64_t micro, size_t n_train)
{
    struct train_spec spec = {.batch_size = batch, .micro_batch = micro};
    size_t rows = (size_t)micro < n_train ? (size_t)micro : n_train;
    return epoch_layout_of(&spec, rows, n_train);
}

START_TEST(counts)
{
    struct epoch_layout l = layout(8, 8, 20);
    ck_assert_uint_eq(l.micro_steps, 3);
    ck_assert_uint_eq(l.per_batch, 1);
    ck_assert_int_eq(l.steps_per_epoch, 3);
    l = layout(12, 4, 20); /* 5 micro-steps: batches of 3 and 2 */
    ck_assert_uint_eq(l.micro_steps, 5);
    ck_assert_uint_eq(l.per_batch, 3);
    ck_assert_int_eq(l.steps_per_epoch, 2);
    l = layout(64, 8, 20); /* a batch of more rows than there are */
    ck_assert_uint_eq(l.per_batch, 3);
    ck_assert_int_eq(l.steps_per_epoch, 1);
    l = layout(64, 64, 20);
    ck_assert_uint_eq(l.micro_rows, 20);
    ck_assert_uint_eq(l.micro_steps, 1);
}
END_TEST

START_TEST(batches_end)
{
    struct epoch_layout l = layout(12, 4, 20);
    static const bool due[] = {false, false, true, false, true};
    static const bool between[] = {true, false, false, true, false, false};
    for (size_t at = 0; at < 5; at++)
        ck_assert_int_eq(epoch_layout_due(&l, at), due[at]);
    for (size_t at = 0; at < 6; at++)
        ck_assert_int_eq(epoch_layout_between_batches(&l, at), between[at]);
}
END_TEST

START_TEST(shares)
{
    struct epoch_layout l = layout(12, 4, 22); /* batches of 12 and 10 rows: 4 4 4, 4 4 2 */
    static const double rows[] = {4, 4, 4, 4, 4, 2};
    for (size_t at = 0; at < 6; at++)
        ck_assert(epoch_layout_share(&l, at) == rows[at] / (at < 3 ? 12 : 10));
    l = layout(8, 8, 20);
    for (size_t at = 0; at < 3; at++)
        ck_assert(epoch_layout_share(&l, at) == 1);
}
END_TEST

/* 3 partitions that give 10 rows each: micro-steps of 4, 4 and 2 rows of each. */
START_TEST(partitions_have_equal_batches)
{
    struct epoch_layout l = epoch_layout_of_parts(3, 4, 30);
    static const size_t rows[] = {4, 4, 4, 4, 4, 4, 2, 2, 2};
    size_t before = 0;
    ck_assert_uint_eq(l.micro_steps, 9);
    ck_assert_int_eq(l.steps_per_epoch, 3);
    for (size_t at = 0; at < 9; at++) {
        ck_assert_uint_eq(epoch_layout_rows(&l, at), rows[at]);
        ck_assert_uint_eq(epoch_layout_before(&l, at), before);
        ck_assert(epoch_layout_share(&l, at) == 1.0 / 3);
        ck_assert_int_eq(epoch_layout_due(&l, at), at % 3 == 2);
        before += rows[at];
    }
    ck_assert_uint_eq(epoch_layout_before(&l, 9), 30);
    l = layout(12, 4, 22);
    ck_assert_uint_eq(epoch_layout_rows(&l, 5), 2);
    ck_assert_uint_eq(epoch_layout_before(&l, 5), 20);
    ck_assert_uint_eq(epoch_layout_before(&l, 6), 22);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("epoch_layout");
    TCase *t = tcase_create("epoch_layout");
    tcase_add_test(t, counts);
    tcase_add_test(t, batches_end);
    tcase_add_test(t, shares);
    tcase_add_test(t, partitions_have_equal_batches);
    suite_add_tcase(s, t);
    return s;
}
