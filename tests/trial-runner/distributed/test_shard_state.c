/* Divided moments in real processes: equal bits to whole ones, whoever dies or joins; less memory;
 * what one copy costs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

#define MODEL                                                                                      \
    "\"model\":{\"layers\":[24,12],\"dropout\":0.1,\"norm\":\"batch\"},\"batch_size\":256,"        \
    "\"micro_batch\":32,\"epochs\":%d,\"optimizer\":%s%s"

static const char *const optimizers[] = {
    "{\"lr\":0.01,\"clip_norm\":1,\"ema\":0.9}",
    "{\"kind\":\"sgd\",\"lr\":0.05,\"momentum\":0.9,\"nesterov\":true,\"weight_decay\":0.001}",
    "{\"kind\":\"rmsprop\",\"lr\":0.003,\"momentum\":0.5}",
    "{\"kind\":\"lion\",\"lr\":0.001}",
    "{\"kind\":\"adagrad\",\"lr\":0.05}",
};
enum { OPTIMIZERS = 5 };

static void compose(char ret[500], int epochs, int optimizer, const char *distributed)
{
    (void)snprintf(ret, 500, MODEL, epochs, optimizers[optimizer], distributed);
}

#define DIVIDED ",\"distributed\":{\"shard_state\":true}"
#define ONE_COPY ",\"distributed\":{\"shard_state\":true,\"state_copies\":1}"

START_TEST(divided_moments_give_the_bits_of_whole_ones)
{
    char train[500], tag[8];
    compose(train, 4, _i, "");
    gang_train(&rig, "whole", train, 2);
    for (size_t n = 1; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        compose(train, 4, _i, n == 3 ? ONE_COPY : DIVIDED);
        gang_train(&rig, tag, train, n);
        gang_same(&rig, "whole", tag);
    }
}
END_TEST

START_TEST(deaths_and_restarts_change_no_bit)
{
    char train[500];
    compose(train, 100, _i, "");
    gang_train(&rig, "whole", train, 1);
    compose(train, 100, _i, DIVIDED);
    (void)gang_train_dying(&rig, "dying", train, 4, 4, 9);
    gang_same(&rig, "whole", "dying");
    gang_train_halted(&rig, "halted", train, 3, 2, 2);
    gang_same(&rig, "whole", "halted");
}
END_TEST

/* Each newcomer ends a world, perhaps in the middle of its meeting. With one copy, too, that takes
 * no slice away. */
START_TEST(newcomers_cost_nothing)
{
    char train[500];
    compose(train, 100, 0, "");
    gang_train(&rig, "whole", train, 1);
    compose(train, 100, 0, _i ? DIVIDED : ONE_COPY);
    gang_train_growing(&rig, "growing", train, 2, 6);
    gang_same(&rig, "whole", "growing");
}
END_TEST

/* One batch in an epoch: a checkpoint on the way is always one of an epoch's end, which all ranks
 * must gather. */
START_TEST(checkpoints_on_the_way_are_whole)
{
    char train[500];
    static const char *const kept[] = {
        "\"optimizer\":{\"lr\":0.01},\"distributed\":{\"shard_state\":true}",
        "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05},\"distributed\":{\"compress\":\"one_bit\"}",
        ("\"optimizer\":{\"lr\":0.01},\"distributed\":{\"local_sgd\":{\"steps\":2,"
         "\"block_momentum\":0.5},\"compress\":\"fp16\"}")};
    (void)snprintf(train, sizeof train,
                   "\"model\":{\"layers\":[24,12]},\"batch_size\":2048,\"micro_batch\":256,"
                   "\"epochs\":150,%s",
                   kept[_i]);
    gang_train(&rig, "calm", train, 1);
    gang_train_killed(&rig, "killed", train, 3, 20, 2);
    gang_same(&rig, "calm", "killed");
}
END_TEST

/* What rank 0 prints about its moments. */
static double held(const char *tag)
{
    size_t len;
    double bytes = 0;
    AS_AUTO(as_freep) char *out = rig_read(&rig, tag, "r0", "out", &len);
    const char *at = out ? strstr(out, "moments: ") : NULL;
    ck_assert_msg(at && sscanf(at, "moments: %lf", &bytes) == 1, "%s says nothing of moments:\n%s",
                  tag, out ? out : "");
    return bytes;
}

START_TEST(each_rank_holds_its_part_of_the_moments)
{
    char train[500];
    compose(train, 2, 0, ONE_COPY);
    gang_train(&rig, "p1", train, 1);
    gang_train(&rig, "p4", train, 4);
    compose(train, 2, 0, DIVIDED);
    gang_train(&rig, "twice", train, 4);
    double all = held("p1");
    ck_assert_double_le(fabs(held("p4") - all / 4), 16);
    ck_assert_double_le(fabs(held("twice") - all / 2), 32);
}
END_TEST

/* Which a death with one copy shows: no rank goes on with moments that were made up, and the next
 * attempt gets the bits from the checkpoint. */
START_TEST(one_copy_restarts_from_the_checkpoint)
{
    char train[500];
    compose(train, 100, 0, ONE_COPY);
    gang_train(&rig, "calm", train, 2);
    gang_train_orphaned(&rig, "dying", train, 3, 1, 2);
    gang_same(&rig, "calm", "dying");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("shard_state");
    TCase *t = tcase_create("shard_state");
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, divided_moments_give_the_bits_of_whole_ones, 0, OPTIMIZERS);
    tcase_add_loop_test(t, deaths_and_restarts_change_no_bit, 0, 2);
    tcase_add_loop_test(t, newcomers_cost_nothing, 0, 2);
    tcase_add_test(t, each_rank_holds_its_part_of_the_moments);
    tcase_add_test(t, one_copy_restarts_from_the_checkpoint);
    suite_add_tcase(s, t);
    t = tcase_create("killed");
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, checkpoints_on_the_way_are_whole, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
