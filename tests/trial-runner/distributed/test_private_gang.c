/* `privacy` with ranks: the same bits for any number of them, whoever dies, wherever it goes on;
 * and a model that has learned something at the epsilon that it reports. */
#include <stdio.h>

#include "model/network/privacy_account.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

#define NET                                                                                        \
    "\"model\":{\"layers\":[48],\"dropout\":0.1},\"batch_size\":256,\"micro_batch\":32,"           \
    "\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.2},\"epochs\":"
#define PRIVATE ",\"privacy\":{\"clip\":1,\"noise\":1.1}"

START_TEST(bits_are_equal_for_any_number_of_ranks)
{
    const char *train = NET "3" PRIVATE;
    gang_train(&rig, "p1", train, 1);
    gang_train(&rig, "p3", train, 3);
    gang_train(&rig, "p4", train, 4);
    gang_train(&rig, "server", NET "3" PRIVATE ",\"distributed\":{\"server\":{}}", 3);
    gang_train(&rig, "quieter", NET "3,\"privacy\":{\"clip\":1,\"noise\":1.05}", 1);
    gang_same(&rig, "p1", "p3");
    gang_same(&rig, "p1", "p4");
    gang_same(&rig, "p1", "server");
    ck_assert(!gang_is_same(&rig, "p1", "quieter"));
}
END_TEST

START_TEST(deaths_and_stops_change_no_bit)
{
    const char *train = NET "40" PRIVATE;
    gang_train(&rig, "calm", train, 1);
    (void)gang_train_dying(&rig, "dying", train, 4, 4, 3);
    gang_same(&rig, "calm", "dying");
    gang_train_halted(&rig, "halted", train, 3, 5, 2);
    gang_same(&rig, "calm", "halted");
}
END_TEST

/* A quarter of the noise as a control: an epsilon that says nothing, and a better model. */
START_TEST(a_private_model_has_learned)
{
    const struct train_privacy_spec p = {.given = true, .clip = 1, .noise = 1.1, .delta = 1e-5};
    gang_train(&rig, "private", NET "40" PRIVATE, 2);
    gang_train(&rig, "public", NET "40", 2);
    double error = gang_last(&rig, "private", "val_error");
    ck_assert_double_le(error, 0.15);
    ck_assert_double_gt(error, gang_last(&rig, "public", "val_error"));
    double epsilon = gang_last(&rig, "private", "epsilon");
    ck_assert_double_eq(epsilon, privacy_epsilon(&p, 1348, 256, 40));
    printf("error %g at epsilon %g, %g without privacy\n", error, epsilon,
           gang_last(&rig, "public", "val_error"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("private gang");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, bits_are_equal_for_any_number_of_ranks);
    tcase_add_test(t, deaths_and_stops_change_no_bit);
    tcase_add_test(t, a_private_model_has_learned);
    suite_add_tcase(s, t);
    return s;
}
