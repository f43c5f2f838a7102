/* Whole trainings with L-BFGS: the serial run's bits for any number of ranks, checkpoints, ranks
 * that join and die, and how far it gets in few iterations. */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

#define ALL "\"batch_size\":2048,\"micro_batch\":128,"
#define LBFGS ALL "\"optimizer\":{\"kind\":\"lbfgs\",\"weight_decay\":0.001},"
#define MLP "\"model\":{\"layers\":[32,16],\"activation\":\"tanh\"},"

START_TEST(bits_are_those_of_the_serial_run)
{
    const char *train = MLP LBFGS "\"epochs\":12";
    char tag[8];
    gang_train(&rig, "p1", train, 1);
    for (size_t n = 2; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        gang_train(&rig, tag, train, n);
        gang_same(&rig, "p1", tag);
    }
    gang_train(&rig, "short",
               MLP ALL "\"optimizer\":{\"kind\":\"lbfgs\",\"weight_decay\":0.001,"
                       "\"history\":2},\"epochs\":12",
               1);
    ck_assert(!gang_is_same(&rig, "p1", "short")); /* pairs matter */
}
END_TEST

#define LASTING MLP LBFGS "\"epochs\":150"

START_TEST(checkpoints_and_joins_change_no_bit)
{
    gang_train(&rig, "calm", LASTING, 1);
    gang_train_halted(&rig, "halted", LASTING, 3, 5, 2);
    gang_same(&rig, "calm", "halted");
    gang_train_growing(&rig, "growing", LASTING, 1, 4);
    gang_same(&rig, "calm", "growing");
}
END_TEST

/* Of a rank that dies its pieces of the pairs are lost, so all begin anew; no step is. */
START_TEST(deaths_cost_pairs_and_no_step)
{
    gang_train(&rig, "calm", LASTING, 2);
    size_t well = gang_train_dying(&rig, "dying", LASTING, 4, 4, 5);
    ck_assert_double_eq(gang_last_of(&rig, "dying", well, "step"), 150);
    ck_assert_double_le(gang_last_of(&rig, "dying", well, "train_loss"),
                        2 * gang_last(&rig, "calm", "train_loss"));
}
END_TEST

/* As many passes over the rows: the trials of lengths are few. */
START_TEST(it_gets_further_than_first_order_steps_of_all_rows)
{
#define LOGISTIC "\"model\":{\"kind\":\"logistic\"},"
    gang_train(&rig, "lbfgs", LOGISTIC ALL "\"optimizer\":{\"kind\":\"lbfgs\"},\"epochs\":30", 2);
    gang_train(&rig, "sgd",
               LOGISTIC ALL "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.5,\"momentum\":0.9},"
                            "\"epochs\":60",
               2);
    double lbfgs = gang_last(&rig, "lbfgs", "train_loss"),
           sgd = gang_last(&rig, "sgd", "train_loss");
    printf("train_loss %g after 30 iterations, %g after 60 steps of SGD\n", lbfgs, sgd);
    ck_assert_double_lt(lbfgs, 0.5 * sgd);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("lbfgs in gangs");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, bits_are_those_of_the_serial_run);
    tcase_add_test(t, checkpoints_and_joins_change_no_bit);
    tcase_add_test(t, deaths_cost_pairs_and_no_step);
    tcase_add_test(t, it_gets_further_than_first_order_steps_of_all_rows);
    suite_add_tcase(s, t);
    return s;
}
