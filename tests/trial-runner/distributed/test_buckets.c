/* Whole trainings whose gradients leave in buckets (more than two of BUCKET_NUMBERS): equal bits
 * for any number of ranks, also when ranks die in the middle of a step. */
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

/* 64 x 768 + 768 x 768 + 768 x 10 and biases: 648,202 parameters. Four shards. */
#define WIDE                                                                                       \
    "\"model\":{\"layers\":[768,768],\"dropout\":0.1},\"optimizer\":{\"kind\":\"adam\",\"lr\":"    \
    "0.001},\"batch_size\":128,\"micro_batch\":32,\"epochs\":"

/* The trainer itself says so of its last step: both buckets of parameters have left early; the
 * third is what is only known at the end. */
static void left_early(const char *tag, size_t place)
{
    char folder[8];
    size_t len;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    AS_AUTO(as_freep) char *out = rig_read(&rig, tag, folder, "out", &len);
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(strstr(out, ": 2 of 3 buckets left before the gradient") != NULL, "%s: %s", tag,
                  out);
}

START_TEST(buckets_give_equal_bits_for_any_number_of_ranks)
{
    char tag[8];
    const char *train = IS_SANITIZED ? WIDE "1" : WIDE "2";
    gang_train(&rig, "p1", train, 1);
    for (size_t n = 2; n <= 5; n += IS_SANITIZED ? 3 : 1) { /* with five, one has no shard */
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        gang_train(&rig, tag, train, n);
        gang_same(&rig, "p1", tag);
        left_early(tag, 0);
    }
}
END_TEST

START_TEST(deaths_between_buckets_change_no_bit)
{
    const char *train = IS_SANITIZED ? WIDE "2" : WIDE "8";
    gang_train(&rig, "calm", train, 1);
    (void)gang_train_dying(&rig, "dying", train, 3, IS_SANITIZED ? 1 : 3, 9);
    gang_same(&rig, "calm", "dying");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("buckets");
    TCase *t = tcase_create("buckets");
    rig_fixture(t, &rig);
    tcase_add_test(t, buckets_give_equal_bits_for_any_number_of_ranks);
    tcase_add_test(t, deaths_between_buckets_change_no_bit);
    suite_add_tcase(s, t);
    return s;
}
