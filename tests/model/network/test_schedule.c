#include "tests/support/check_main.h"
#include "model/network/schedule.h"

static struct train_spec spec_of(train_schedule_kind kind)
{
    return (struct train_spec){.optimizer = {.lr = 0.5},
                               .schedule = {.kind = kind, .pct_start = 0.3, .cycles = 1},
                               .epochs = 10};
}

START_TEST(constant)
{
    struct train_spec s = spec_of(TRAIN_CONSTANT);
    ck_assert_double_eq(schedule_lr(&s, 0, 7), 0.5);
    ck_assert_double_eq(schedule_lr(&s, 69, 7), 0.5);
    s.schedule.warmup_epochs = 2;
    ck_assert_double_eq_tol(schedule_lr(&s, 0, 7), 0.5 / 14, 1e-12);
    ck_assert_double_eq_tol(schedule_lr(&s, 13, 7), 0.5, 1e-12);
    ck_assert_double_eq(schedule_lr(&s, 14, 7), 0.5);
    s.schedule.warmup_epochs = 10; /* nothing but rise */
    ck_assert_double_eq(schedule_lr(&s, 69, 7), 0.5);
}
END_TEST

START_TEST(cosine)
{
    struct train_spec s = spec_of(TRAIN_COSINE);
    s.schedule.min_lr = 0.1;
    ck_assert_double_eq(schedule_lr(&s, 0, 10), 0.5);
    ck_assert_double_eq_tol(schedule_lr(&s, 50, 10), 0.3, 1e-12); /* half way, in the middle */
    for (int64_t i = 1; i < 100; i++)
        ck_assert(schedule_lr(&s, i, 10) < schedule_lr(&s, i - 1, 10));
    ck_assert_double_ge(schedule_lr(&s, 99, 10), 0.1);
    s.schedule.warmup_epochs = 1;
    ck_assert_double_eq_tol(schedule_lr(&s, 4, 10), 0.25, 1e-12);
    ck_assert_double_eq(schedule_lr(&s, 10, 10), 0.5);
    s.schedule.warmup_epochs = 10;
    ck_assert_double_eq(schedule_lr(&s, 99, 10), 0.5);
}
END_TEST

/* 10 epochs in 3 cycles: 3, 3 and 4 epochs. */
START_TEST(cosine_in_cycles)
{
    struct train_spec s = spec_of(TRAIN_COSINE);
    s.schedule.cycles = 3;
    const int64_t first[] = {0, 30, 60}, n[] = {30, 30, 40};
    for (size_t c = 0; c < 3; c++) {
        ck_assert_double_eq(schedule_lr(&s, first[c], 10), 0.5);
        ck_assert_double_eq_tol(schedule_lr(&s, first[c] + n[c] / 2, 10), 0.25, 1e-12);
        for (int64_t i = 1; i < n[c]; i++)
            ck_assert(schedule_lr(&s, first[c] + i, 10) < schedule_lr(&s, first[c] + i - 1, 10));
        ck_assert_double_lt(schedule_lr(&s, first[c] + n[c] - 1, 10), 0.01);
    }
    s.schedule.warmup_epochs = 4; /* past the first cycle */
    ck_assert_double_eq_tol(schedule_lr(&s, 39, 10), 0.5, 1e-12);
    ck_assert_double_eq(schedule_lr(&s, 40, 10), 0.5);
    ck_assert_double_eq_tol(schedule_lr(&s, 50, 10), 0.25, 1e-12);
}
END_TEST

START_TEST(one_cycle)
{
    /* torch.optim.lr_scheduler.OneCycleLR(max_lr=0.5, total_steps=100, pct_start=0.3): the rise
     * ends at step 29, the fall at step 99 */
    struct train_spec s = spec_of(TRAIN_ONE_CYCLE);
    ck_assert_double_eq_tol(schedule_lr(&s, 0, 10), 0.02, 1e-12);
    ck_assert_double_eq_tol(schedule_lr(&s, 29, 10), 0.5, 1e-12);
    ck_assert_double_eq_tol(schedule_lr(&s, 64, 10), 0.25, 1e-12);
    ck_assert_double_eq_tol(schedule_lr(&s, 99, 10), 0, 1e-12);
    s.epochs = 1; /* a single step has neither rise nor fall */
    ck_assert_double_eq_tol(schedule_lr(&s, 0, 1), 0.5, 1e-12);
    s.schedule.pct_start = 0.999;
    ck_assert_double_ge(schedule_lr(&s, 9, 10), 0);
}
END_TEST

START_TEST(step)
{
    /* torch.optim.lr_scheduler.StepLR, by the epoch or by a fraction of it */
    struct train_spec s = spec_of(TRAIN_STEP);
    s.schedule.step_epochs = 3;
    s.schedule.gamma = 0.1;
    ck_assert_double_eq(schedule_lr(&s, 0, 7), 0.5);
    ck_assert_double_eq(schedule_lr(&s, 20, 7), 0.5);
    ck_assert_double_eq_tol(schedule_lr(&s, 21, 7), 0.05, 1e-12);
    ck_assert_double_eq_tol(schedule_lr(&s, 69, 7), 0.0005, 1e-12);
    s.schedule.step_epochs = 0.5;
    ck_assert_double_eq_tol(schedule_lr(&s, 5, 10), 0.05, 1e-12);
    s.schedule.warmup_epochs = 1;
    ck_assert_double_eq_tol(schedule_lr(&s, 4, 10), 0.25, 1e-12);
    ck_assert_double_eq_tol(schedule_lr(&s, 10, 10), 0.005, 1e-12); /* the steps fall meanwhile */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("schedule");
    TCase *t = tcase_create("schedule");
    tcase_add_test(t, constant);
    tcase_add_test(t, cosine);
    tcase_add_test(t, cosine_in_cycles);
    tcase_add_test(t, one_cycle);
    tcase_add_test(t, step);
    suite_add_tcase(s, t);
    return s;
}
