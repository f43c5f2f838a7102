/* `server: {rows: sparse}` with embeddings, in real processes: the bits of `allreduce`, and a part
 * of the bytes. */
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/gang_check.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

#define NET                                                                                        \
    "\"model\":{\"layers\":[8],\"embedding\":32},\"optimizer\":{\"lr\":0.01},\"batch_size\":16,"   \
    "\"micro_batch\":4,\"epochs\":"
#define HOW(section) ",\"distributed\":{\"server\":{" section "}}"

static uint64_t sent(const char *tag, size_t n)
{
    uint64_t sum = 0, bytes, exchanges;
    for (size_t r = 0; r < n; r++) {
        gang_traffic(&rig, tag, r, &bytes, &exchanges);
        sum += bytes;
    }
    return sum;
}

/* A batch of 16 rows touches at most 32 of about 600 rows of the tables. */
START_TEST(bits_are_equal_and_few_bytes_travel)
{
    gang_categories(&rig);
    gang_train(&rig, "one", NET "3", 1);
    gang_train(&rig, "dense", NET "3" HOW(""), 4);
    gang_train(&rig, "sparse", NET "3" HOW("\"rows\":\"sparse\""), 4);
    gang_train(&rig, "s3", NET "3" HOW("\"rows\":\"sparse\",\"shards\":5"), 3);
    gang_same(&rig, "one", "dense");
    gang_same(&rig, "one", "sparse");
    gang_same(&rig, "one", "s3");
    printf("sparse sends %.3f of dense\n", (double)sent("sparse", 4) / (double)sent("dense", 4));
    ck_assert_uint_lt(sent("sparse", 4), sent("dense", 4) / 5);
}
END_TEST

START_TEST(deaths_and_stops_change_no_bit)
{
    const char *train = NET "40" HOW("\"rows\":\"sparse\"");
    gang_categories(&rig);
    gang_train(&rig, "calm", NET "40", 1);
    (void)gang_train_dying(&rig, "dying", train, 4, 3, 5);
    gang_same(&rig, "calm", "dying");
    gang_train_halted(&rig, "halted", train, 3, 4, 2);
    gang_same(&rig, "calm", "halted");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("sparse rows in gangs");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, bits_are_equal_and_few_bytes_travel);
    tcase_add_test(t, deaths_and_stops_change_no_bit);
    suite_add_tcase(s, t);
    return s;
}
