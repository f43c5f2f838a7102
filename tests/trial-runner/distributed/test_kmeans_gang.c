/* Whole k-means trainings in real processes: equal centroids for any number of ranks, also when
 * they stop, join and die; the same as one process without ranks has. */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/gang_check.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

#define KMEANS(clusters)                                                                           \
    "\"model\":{\"kind\":\"kmeans\",\"tolerance\":0,\"init\":\"random\",\"clusters\":" clusters "}"
#define DIGITS KMEANS("20") /* 1,348 rows to train with, in 21 shards */
#define CLOUD KMEANS("100")

START_TEST(bits_are_those_of_one_process)
{
    const struct trial alone = {".", DIGITS, "3"};
    char tag[8];
    ck_assert_int_eq(rig_solo(&rig, "solo", &alone, "cpu"), 0);
    gang_train(&rig, "p1", DIGITS, 1);
    gang_same(&rig, "p1", "solo");
    ck_assert_double_eq(rig_last(&rig, "solo", &alone, "step"), gang_last(&rig, "p1", "step"));
    ck_assert_double_eq(rig_last(&rig, "solo", &alone, "inertia"),
                        gang_last(&rig, "p1", "inertia")); /* not rounded: the order of sums */
    for (size_t n = 2; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        gang_train(&rig, tag, DIGITS, n);
        gang_same(&rig, "p1", tag);
        ck_assert_double_eq(gang_last(&rig, "p1", "inertia"), gang_last(&rig, tag, "inertia"));
    }
}
END_TEST

START_TEST(stops_and_joins_change_no_bit)
{
    gang_cloud(&rig);
    gang_train(&rig, "calm", CLOUD, 1);
    gang_train_halted(&rig, "halted", CLOUD, 3, 4, 2);
    gang_same(&rig, "calm", "halted");
    gang_train_growing(&rig, "growing", CLOUD, 1, 4);
    gang_same(&rig, "calm", "growing");
}
END_TEST

START_TEST(deaths_cost_nothing)
{
    gang_cloud(&rig);
    gang_train(&rig, "calm", CLOUD, 2);
    size_t well = gang_train_dying(&rig, "dying", CLOUD, 4, 2, 5);
    ck_assert_double_eq(gang_last(&rig, "calm", "step"), gang_last_of(&rig, "dying", well, "step"));
    gang_same(&rig, "calm", "dying");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("k-means in gangs");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, bits_are_those_of_one_process);
    tcase_add_test(t, stops_and_joins_change_no_bit);
    tcase_add_test(t, deaths_cost_nothing);
    suite_add_tcase(s, t);
    return s;
}
