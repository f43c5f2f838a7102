/* What a rank of a parameter server owes after its messages: of a step that is computed ahead, of a
 * slice that was late, and of steps whose sums others have and this rank has not. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "trial-runner/distributed/parameter_server_priv.h"

enum { N = 6, SHARDS = 4, BOUND = 3, STEP = 7 };

static const struct shard_run own = {1, 2};
static struct as_err err;
static struct server s;
static int64_t position; /* of the replica */

static int64_t position_of(const void *self)
{
    return *(const int64_t *)self;
}

static const struct replica_ops ops = {.step = position_of};
static struct replica replica = {
    .ops = &ops, .self = &position, .n_params = N, .max_shards = SHARDS};

/* What the messages of a shard have lost before `step`; the residual at STEP is that of STEP. */
static float lost(uint32_t shard, int64_t step, size_t i)
{
    return (float)(1000 * (int64_t)shard + 10 * step) + (float)i;
}

static void setup(void)
{
    position = STEP;
    s = (struct server){.replica = &replica, .n = N, .bound = BOUND};
    s.flights = as_calloc(BOUND + 1, sizeof *s.flights);
    ck_assert_ptr_nonnull(s.flights);
    ck_ok(residuals_init(&s.kept, N, SHARDS, false, &err), err);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        for (size_t i = 0; i < N; i++)
            s.kept.of_shards[shard * N + i] = lost(shard, STEP, i);
    residuals_hold_all(&s.kept, STEP);
    for (size_t k = 0; k <= BOUND; k++) {
        s.flights[k].step = -1;
        s.flights[k].after = as_calloc(SHARDS, sizeof *s.flights[k].after);
        ck_assert_ptr_nonnull(s.flights[k].after);
    }
}

static void teardown(void)
{
    for (size_t k = 0; k <= BOUND; k++) {
        for (size_t shard = 0; shard < SHARDS; shard++)
            free(s.flights[k].after[shard]);
        free(s.flights[k].after);
    }
    free(s.flights);
    residuals_done(&s.kept);
}

/* This rank has encoded and sent its shards of a step that has `total` of them. */
static void give(int64_t step, uint32_t total)
{
    struct flight *f = server_flight(&s, step);
    f->step = step;
    f->run = own;
    f->total = total;
    for (uint32_t shard = own.first; shard < own.first + own.count; shard++) {
        f->after[shard] = as_calloc(N, sizeof(float));
        ck_assert_ptr_nonnull(f->after[shard]);
        for (size_t i = 0; i < N; i++)
            f->after[shard][i] = lost(shard, step + 1, i);
    }
}

/* The residuals of this rank's shards are those after `step`; no other shard's has changed. */
static void residuals_are_of(int64_t step)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        for (size_t i = 0; i < N; i++) {
            bool is_own = shard - own.first < own.count;
            ck_assert_float_eq(residuals_before(&s.kept, shard)[i],
                               lost(shard, is_own ? step : STEP, i));
        }
}

/* The next step of the residuals is staged: it becomes the residual when it is complete. */
static void staged_is(int64_t step)
{
    ck_assert_int_eq(s.kept.step, step);
    ck_assert_int_eq(s.kept.next, step + 1);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        ck_assert_int_eq(s.kept.written[shard], shard - own.first < own.count);
        for (size_t i = 0; i < N && s.kept.written[shard]; i++)
            ck_assert_float_eq(s.kept.after[shard][i], lost(shard, step + 1, i));
    }
}

/* Each step that was missed is staged in its turn, and all but the last are complete. */
START_TEST(missed_steps_are_staged_in_their_order)
{
    int64_t missed = _i + 1;
    for (int64_t k = 0; k < missed; k++)
        give(STEP + k, SHARDS);
    position = STEP + missed;
    ck_ok(server_stage_missed(&s, position, &err), err);
    residuals_are_of(position - 1);
    staged_is(position - 1);
    residuals_commit(&s.kept);
    residuals_are_of(position);
    ck_assert_int_eq(s.kept.step, position);
}
END_TEST

/* The others did steps that this rank had not given: what it lost up to there is complete. */
START_TEST(steps_that_were_not_given_end_it)
{
    give(STEP, SHARDS);
    give(STEP + 1, SHARDS);
    ck_ok(server_stage_missed(&s, STEP + 4, &err), err);
    residuals_are_of(STEP + 2);
    ck_assert_int_eq(s.kept.step, STEP + 2);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        ck_assert(!s.kept.written[shard]);
}
END_TEST

/* A step that was given ahead and that nobody has a sum of stays undone: it is computed again. */
START_TEST(steps_ahead_are_not_staged)
{
    give(STEP, SHARDS);
    give(STEP + 1, SHARDS);
    ck_ok(server_stage_missed(&s, STEP + 1, &err), err);
    residuals_are_of(STEP);
    staged_is(STEP);
    ck_ok(server_stage_missed(&s, STEP, &err), err);
    residuals_are_of(STEP);
}
END_TEST

/* A place of another step (the flights are a ring) is not taken for this one's. */
START_TEST(places_of_older_steps)
{
    give(STEP - BOUND, SHARDS); /* the place of STEP + 1 */
    ck_assert_ptr_eq(server_flight(&s, STEP + 1), server_flight(&s, STEP - BOUND));
    give(STEP, 3);
    ck_ok(server_stage_missed(&s, STEP + 3, &err), err);
    residuals_are_of(STEP + 1);
    ck_assert_int_eq(s.kept.step, STEP + 1);
    ck_assert_int_eq(s.kept.changed[2], STEP + 1);
    ck_assert_int_eq(s.kept.changed[3], STEP); /* the step had three shards */
}
END_TEST

/* A step that is computed ahead begins with what the step before it will have lost. */
START_TEST(messages_ahead_begin_with_the_one_before)
{
    give(STEP, SHARDS);
    ck_assert_float_eq(server_lost_before(&s, STEP, 1)[2], lost(1, STEP, 2));
    ck_assert_float_eq(server_lost_before(&s, STEP + 1, 1)[2], lost(1, STEP + 1, 2));
    ck_assert_float_eq(server_lost_before(&s, STEP + 1, 3)[2], lost(3, STEP, 2));
    give(STEP + 1, SHARDS);
    ck_assert_float_eq(server_lost_before(&s, STEP + 2, 2)[5], lost(2, STEP + 2, 5));
    ck_assert_float_eq(server_lost_before(&s, STEP + 3, 2)[5], lost(2, STEP + 2, 5));
}
END_TEST

/* A slice that was not added is owed again, the rest is not; a slice may reach behind the
 * parameters. */
START_TEST(late_slices_are_taken_back)
{
    give(STEP, SHARDS);
    ck_ok(server_stage(&s, STEP, &err), err);
    server_take_back(&s, server_flight(&s, STEP), 4, 5);
    residuals_commit(&s.kept);
    for (uint32_t shard = own.first; shard < own.first + own.count; shard++)
        for (size_t i = 0; i < N; i++)
            ck_assert_float_eq(residuals_before(&s.kept, shard)[i],
                               lost(shard, i < 4 ? STEP + 1 : STEP, i));
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("server_feedback");
    TCase *t = tcase_create("server_feedback");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, missed_steps_are_staged_in_their_order, 0, BOUND + 1);
    tcase_add_test(t, steps_that_were_not_given_end_it);
    tcase_add_test(t, steps_ahead_are_not_staged);
    tcase_add_test(t, places_of_older_steps);
    tcase_add_test(t, messages_ahead_begin_with_the_one_before);
    tcase_add_test(t, late_slices_are_taken_back);
    suite_add_tcase(suite, t);
    return suite;
}
