/* Whole trainings with `solver: cocoa`: equal bits for any number of ranks, also when they stop,
 * join and die; the gap that is reported, and the optimum that L-BFGS finds. */
#include <math.h>
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

/* The digits: 1,348 rows to train with, in six shards. */
#define ALL "\"batch_size\":2000,\"micro_batch\":250,\"optimizer\":{"
#define COCOA                                                                                      \
    "\"model\":{\"kind\":\"logistic\",\"solver\":\"cocoa\"}," ALL "\"weight_decay\":0.01},"        \
    "\"epochs\":"
#define LBFGS                                                                                      \
    "\"model\":{\"kind\":\"logistic\"}," ALL "\"kind\":\"lbfgs\",\"weight_decay\":0.01},"          \
    "\"epochs\":"

START_TEST(bits_are_those_of_one_rank)
{
    char tag[8];
    gang_train(&rig, "p1", COCOA "4", 1);
    for (size_t n = 2; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        gang_train(&rig, tag, COCOA "4", n);
        gang_same(&rig, "p1", tag);
        ck_assert_double_eq(gang_last(&rig, "p1", "duality_gap"),
                            gang_last(&rig, tag, "duality_gap"));
    }
}
END_TEST

/* The penalty of CoCoA has the biases in it, and that of L-BFGS, too. */
START_TEST(the_gap_closes_at_the_optimum_of_lbfgs)
{
    gang_train(&rig, "cocoa", COCOA "60", 4);
    gang_train(&rig, "lbfgs", LBFGS "60", 2);
    double gap = gang_last(&rig, "cocoa", "duality_gap"),
           loss = gang_last(&rig, "cocoa", "val_loss"), best = gang_last(&rig, "lbfgs", "val_loss");
    printf("gap %g; val_loss %g, %g with L-BFGS\n", gap, loss, best);
    ck_assert(gap > -1e-6 && gap < 1e-3);
    ck_assert_double_le(fabs(loss - best), 0.01 * best);
}
END_TEST

START_TEST(stops_and_joins_change_no_bit)
{
    gang_train(&rig, "calm", COCOA "60", 1);
    gang_train_halted(&rig, "halted", COCOA "60", 3, 4, 2);
    gang_same(&rig, "calm", "halted");
    gang_train_growing(&rig, "growing", COCOA "60", 1, 4);
    gang_same(&rig, "calm", "growing");
}
END_TEST

/* The rows of a rank that dies begin anew: no round is lost, and the gap closes again. */
START_TEST(deaths_cost_progress_and_no_round)
{
    size_t well = gang_train_dying(&rig, "dying", COCOA "80", 4, 3, 5);
    ck_assert_double_eq(gang_last_of(&rig, "dying", well, "step"), 80);
    double gap = gang_last_of(&rig, "dying", well, "duality_gap");
    ck_assert(gap > -1e-6 && gap < 0.05);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("cocoa in gangs");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, bits_are_those_of_one_rank);
    tcase_add_test(t, the_gap_closes_at_the_optimum_of_lbfgs);
    tcase_add_test(t, stops_and_joins_change_no_bit);
    tcase_add_test(t, deaths_cost_progress_and_no_round);
    suite_add_tcase(s, t);
    return s;
}
