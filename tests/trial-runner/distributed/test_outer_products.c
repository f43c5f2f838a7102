/* `sufficient_factors` in real processes: the bits of `allreduce: tree`, bytes to the byte, and
 * `auto` sends least. */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

#define HOW(when) ",\"distributed\":{\"sufficient_factors\":\"" when "\"}"

/* 64 x 96 and 96 x 32 travel as factors, 32 x 10 does not. The last batch of an epoch has fewer
 * rows than the others. */
#define NET                                                                                        \
    "\"model\":{\"layers\":[96,32],\"dropout\":0.1},\"optimizer\":{\"kind\":\"adam\",\"lr\":"      \
    "0.002},\"batch_size\":24,\"micro_batch\":4,\"epochs\":"

START_TEST(bits_are_those_of_the_tree)
{
    char tag[8];
    gang_train(&rig, "tree", NET "3", 1);
    for (size_t n = 1; n <= 4; n++) {
        (void)snprintf(tag, sizeof tag, "f%zu", n);
        gang_train(&rig, tag, NET "3" HOW("auto"), n);
        gang_same(&rig, "tree", tag);
    }
    gang_train(&rig, "always", NET "3" HOW("always"), 3);
    gang_same(&rig, "tree", "always");
    gang_train(&rig, "ring", NET "3,\"distributed\":{\"allreduce\":\"ring\"}", 3);
    ck_assert(!gang_is_same(&rig, "tree", "ring")); /* another order of additions would show */
}
END_TEST

START_TEST(deaths_and_stops_change_no_bit)
{
    gang_train(&rig, "calm", NET "30", 1);
    (void)gang_train_dying(&rig, "dying", NET "30" HOW("auto"), 4, 3, 5);
    gang_same(&rig, "calm", "dying");
    gang_train_halted(&rig, "halted", NET "30" HOW("auto"), 3, 2, 4);
    gang_same(&rig, "calm", "halted");
}
END_TEST

/* ---- bytes ---- */

enum { RANKS = 4, STEPS = 337 }; /* of 1,348 rows, in batches of 4 */

/* One row for each rank. Of 64 x 32, 32 x 2 and 2 x 10 only the first is cheaper as factors: 4 x 96
 * numbers are fewer than 2 x 2,048, but 4 x 34 are more than 2 x 64, and 4 x 12 than 2 x 20. */
#define NARROW                                                                                     \
    "\"model\":{\"layers\":[32,2]},\"optimizer\":{\"lr\":0.01},\"batch_size\":4,"                  \
    "\"micro_batch\":1,\"epochs\":1"

enum {
    WEIGHTS = 64 * 32 + 32 * 2 + 2 * 10,
    OTHERS = 32 + 2 + 10 + 1 + 2, /* biases, the loss, wishes */
};

/* All ranks together, in one step: factors of layers with rows + cols numbers a pair, and the sum
 * of `rest` numbers. */
static uint64_t bytes_of(uint64_t rows_and_cols, uint64_t rest)
{
    return RANKS * (RANKS - 1) * rows_and_cols * sizeof(float) +
           2 * (RANKS - 1) * rest * sizeof(float);
}

static uint64_t sent(const char *tag)
{
    uint64_t sum = 0, bytes, exchanges;
    for (size_t r = 0; r < RANKS; r++) {
        gang_traffic(&rig, tag, r, &bytes, &exchanges);
        ck_assert_uint_eq(exchanges, STEPS);
        sum += bytes;
    }
    return sum;
}

START_TEST(bytes_are_those_of_the_formula)
{
    gang_train(&rig, "never", NARROW, RANKS);
    gang_train(&rig, "auto", NARROW HOW("auto"), RANKS);
    gang_train(&rig, "always", NARROW HOW("always"), RANKS);
    gang_same(&rig, "never", "auto");
    gang_same(&rig, "never", "always");
    ck_assert_uint_eq(sent("never"), STEPS * bytes_of(0, WEIGHTS + OTHERS));
    ck_assert_uint_eq(sent("auto"), STEPS * bytes_of(64 + 32, 32 * 2 + 2 * 10 + OTHERS));
    ck_assert_uint_eq(sent("always"), STEPS * bytes_of(64 + 32 + 32 + 2 + 2 + 10, OTHERS));
    ck_assert_uint_lt(sent("auto"), sent("always"));
    ck_assert_uint_lt(sent("always"), sent("never"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("sufficient factors in gangs");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, bits_are_those_of_the_tree);
    tcase_add_test(t, deaths_and_stops_change_no_bit);
    tcase_add_test(t, bytes_are_those_of_the_formula);
    suite_add_tcase(s, t);
    return s;
}
