/* Local SGD in real processes: equal bits for any number of ranks, whoever dies; the same as
 * synchronous training where it must be; traffic; block momentum against plain averaging. */
#include <math.h>
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

/* Four workers, 85 batches in an epoch; the last batch has 3 rows: one worker. */
#define FOUR "\"batch_size\":16,\"micro_batch\":4,"
#define MLP "\"model\":{\"layers\":[48,32]},"

static void compose(char ret[500], const char *rest, int epochs, const char *distributed)
{
    (void)snprintf(ret, 500, "%s%s%s,\"epochs\":%d,\"distributed\":{%s}", MLP, FOUR, rest, epochs,
                   distributed);
}

/* Everything that a block must put back and together: dropout, batch normalisation, moments, the
 * average of weights, clipping. */
#define RICH                                                                                       \
    "\"model\":{\"layers\":[24,12],\"dropout\":0.1,\"norm\":\"batch\"},\"batch_size\":64,"         \
    "\"micro_batch\":8,\"optimizer\":{\"lr\":0.003,\"clip_norm\":1,\"ema\":0.9},"                  \
    "\"distributed\":{\"local_sgd\":{\"steps\":4,\"block_momentum\":0.5%s}},"

static void compose_rich(char ret[500], int epochs, const char *more)
{
    char head[400];
    (void)snprintf(head, sizeof head, RICH, more);
    (void)snprintf(ret, 500, "%s\"epochs\":%d", head, epochs);
}

static const char *const moments[] = {"", ",\"moments\":\"reset\""};

START_TEST(any_number_of_ranks_gives_the_same_bits)
{
    char train[500], tag[8];
    compose_rich(train, 4, moments[_i]);
    gang_train(&rig, "p1", train, 1);
    for (size_t n = 2; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        gang_train(&rig, tag, train, n);
        gang_same(&rig, "p1", tag);
    }
}
END_TEST

START_TEST(deaths_and_restarts_change_no_bit)
{
    char train[500];
    compose_rich(train, 60, moments[_i]);
    gang_train(&rig, "calm", train, 1);
    (void)gang_train_dying(&rig, "dying", train, 4, 4, 7);
    gang_same(&rig, "calm", "dying");
    gang_train_halted(&rig, "halted", train, 3, 2, 2);
    gang_same(&rig, "calm", "halted");
}
END_TEST

START_TEST(blocks_of_one_plain_step_are_synchronous_training)
{
    char train[500];
    compose(train, "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05}", 4, "\"allreduce\":\"tree\"");
    gang_train(&rig, "together", train, 2);
    compose(train, "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05}", 4,
            "\"local_sgd\":{\"steps\":1}");
    gang_train(&rig, "local", train, 2);
    compose(train, "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05}", 4,
            "\"local_sgd\":{\"steps\":2}");
    gang_train(&rig, "two", train, 2);
    double loss = gang_last(&rig, "together", "val_loss");
    ck_assert_double_le(fabs(gang_last(&rig, "local", "val_loss") - loss), 1e-4 * loss);
    ck_assert_double_gt(fabs(gang_last(&rig, "two", "val_loss") - loss), 1e-4 * loss);
}
END_TEST

/* With averaged moments, blocks of one step of SGD with momentum are synchronous training; with
 * moments that begin anew there is no momentum. */
START_TEST(averaged_moments_are_those_of_synchronous_training)
{
    static const char *const how[] = {"\"allreduce\":\"tree\"", "\"local_sgd\":{\"steps\":1}",
                                      "\"local_sgd\":{\"steps\":1,\"moments\":\"reset\"}"};
    static const char *const tags[] = {"together", "averaged", "reset"};
    double loss[3];
    for (size_t i = 0; i < 3; i++) {
        char train[500];
        compose(train, "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.01,\"momentum\":0.9}", 3, how[i]);
        gang_train(&rig, tags[i], train, 2);
        loss[i] = gang_last(&rig, tags[i], "val_loss");
    }
    ck_assert_double_le(fabs(loss[1] - loss[0]), 1e-4 * loss[0]);
    ck_assert_double_gt(fabs(loss[2] - loss[0]), 0.02 * loss[0]);
}
END_TEST

/* AdamW, 8 epochs: the bar is 1 % above synchronous training at equal samples. Moments begin each
 * block with 0, as CNTK's do, and its momentum has the rate 1. */
START_TEST(block_momentum_reaches_the_loss_that_averaging_does_not)
{
    uint64_t bytes, exchanges, less, blocks;
    char train[500];
    compose(train, "\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}", 8, "\"allreduce\":\"ring\"");
    gang_train(&rig, "together", train, 4);
    compose(train, "\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}", 8,
            "\"local_sgd\":{\"steps\":50,\"moments\":\"reset\",\"block_momentum\":{"
            "\"momentum\":0.5,\"lr\":1}}");
    gang_train(&rig, "momentum", train, 4);
    compose(train, "\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}", 8,
            "\"local_sgd\":{\"steps\":50,\"moments\":\"reset\"}");
    gang_train(&rig, "averaged", train, 4);
    double bar = 1.01 * gang_last(&rig, "together", "val_loss");
    ck_assert_double_le(gang_last(&rig, "momentum", "val_loss"), bar);
    ck_assert_double_gt(gang_last(&rig, "averaged", "val_loss"), bar);
    gang_traffic(&rig, "together", 0, &bytes, &exchanges);
    gang_traffic(&rig, "momentum", 0, &less, &blocks);
    ck_assert_uint_eq(exchanges, 8 * 85);
    ck_assert_uint_eq(blocks, 8 * 2); /* of 50 and 35 steps: a block ends with the epoch */
    ck_assert_uint_ge(bytes, 20 * less);
}
END_TEST

START_TEST(changes_can_be_compressed)
{
    char train[500];
    compose(train, "\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}", 8,
            "\"local_sgd\":{\"steps\":50,\"outer\":{\"lr\":0.7,\"momentum\":0.5}}");
    gang_train(&rig, "plain", train, 4);
    compose(train, "\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}", 8,
            "\"local_sgd\":{\"steps\":50,\"outer\":{\"lr\":0.7,\"momentum\":0.5}},"
            "\"compress\":\"fp16\"");
    gang_train(&rig, "coded", train, 4);
    gang_train(&rig, "alone", train, 1);
    gang_same(&rig, "coded", "alone");
    double loss = gang_last(&rig, "plain", "val_loss");
    ck_assert_double_le(fabs(gang_last(&rig, "coded", "val_loss") - loss), 0.02 * loss);
    ck_assert(!gang_is_same(&rig, "plain", "coded"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("local_sgd");
    TCase *t = tcase_create("local_sgd");
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, any_number_of_ranks_gives_the_same_bits, 0, 2);
    tcase_add_loop_test(t, deaths_and_restarts_change_no_bit, 0, 2);
    tcase_add_test(t, blocks_of_one_plain_step_are_synchronous_training);
    tcase_add_test(t, averaged_moments_are_those_of_synchronous_training);
    tcase_add_test(t, block_momentum_reaches_the_loss_that_averaging_does_not);
    tcase_add_test(t, changes_can_be_compressed);
    suite_add_tcase(s, t);
    return s;
}
