/* Whole trainings with a parameter server, and with gossip: the serial run's bits where they are
 * promised, the bar of the loss where they are not, deaths. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

#define SHARDS "\"batch_size\":128,\"micro_batch\":16,"
#define NET "\"model\":{\"layers\":[24],\"dropout\":0.1},\"epochs\":6," SHARDS
#define WHOLE "\"optimizer\":{\"lr\":0.01,\"clip_norm\":1,\"ema\":0.9}"
#define SLICED "\"optimizer\":{\"lr\":0.01}"
#define HOW(section) ",\"distributed\":{" section "}"

static struct rig rig;

/* The model's file names its document; what it predicts does not. */
static bool is_same(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    AS_AUTO(as_freep) char *x = rig_read(&rig, a, "artifacts", "predictions.npy", &n);
    AS_AUTO(as_freep) char *y = rig_read(&rig, b, "artifacts", "predictions.npy", &m);
    ck_assert_msg(x && y, "%s or %s has no predictions", a, b);
    return n == m && memcmp(x, y, n) == 0;
}

START_TEST(synchronous_server_has_the_bits_of_the_serial_run)
{
    gang_train(&rig, "one", NET WHOLE, 1);
    gang_train(&rig, "s1", NET WHOLE HOW("\"server\":{}"), 1);
    gang_train(&rig, "s3", NET WHOLE HOW("\"server\":{\"mode\":\"sync\"}"), 3);
    gang_train(&rig, "s4",
               NET WHOLE HOW("\"server\":{\"mode\":\"ssp\",\"staleness\":0,"
                             "\"shards\":7}"),
               4);
    ck_assert(is_same("one", "s1"));
    ck_assert(is_same("one", "s3"));
    ck_assert(is_same("one", "s4"));
}
END_TEST

/* Each number goes to the server and comes back: what an all-reduce sends, and the heads. */
START_TEST(traffic_is_that_of_a_push_and_a_pull)
{
    uint64_t plain, server, n;
    gang_train(&rig, "plain", NET WHOLE HOW("\"allreduce\":\"tree\""), 4);
    gang_train(&rig, "server", NET WHOLE HOW("\"server\":{}"), 4);
    for (size_t r = 0; r < 4; r++) {
        gang_traffic(&rig, "plain", r, &plain, &n);
        gang_traffic(&rig, "server", r, &server, &n);
        ck_assert_uint_ge(server, plain);
        ck_assert_uint_le(server, plain + plain / 20);
    }
}
END_TEST

START_TEST(stale_server_reaches_the_bar)
{
    gang_train(&rig, "one", NET WHOLE, 1);
    gang_train(&rig, "ssp", NET WHOLE HOW("\"server\":{\"mode\":\"ssp\",\"staleness\":3}"), 3);
    ck_assert(!is_same("one", "ssp"));
    ck_assert_double_le(gang_last(&rig, "ssp", "val_error"),
                        gang_last(&rig, "one", "val_error") + 0.05);
}
END_TEST

#define LASTING "\"model\":{\"layers\":[64,64]},\"epochs\":60," SHARDS WHOLE

START_TEST(deaths_change_no_bit_of_the_synchronous_server)
{
    gang_train(&rig, "calm", LASTING, 1);
    gang_train_dying(&rig, "dying", LASTING HOW("\"server\":{}"), 4, 4, 3);
    ck_assert(is_same("calm", "dying"));
}
END_TEST

/* Rank 0 may have died: some rank has reported the last epoch. */
static bool is_good(const char *tag)
{
    size_t n = 0;
    for (int i = 0; i < GANG_MAX; i++) {
        char folder[8];
        (void)snprintf(folder, sizeof folder, "r%d", i);
        AS_AUTO(as_freep) char *text = rig_read(&rig, tag, folder, "report", &n);
        const char *last = text ? strstr(text, "\"step\": 60,") : NULL;
        const char *error = last ? strstr(last, "\"val_error\": ") : NULL;
        if (error)
            return strtod(error + strlen("\"val_error\": "), NULL) < 0.1;
    }
    return false;
}

START_TEST(deaths_do_not_stop_the_stale_server)
{
    gang_train_dying(&rig, "dying", LASTING HOW("\"server\":{\"mode\":\"ssp\",\"staleness\":2}"), 4,
                     4, 5);
    ck_assert(is_good("dying"));
}
END_TEST

/* --- without a common step --- */

START_TEST(one_group_has_the_bits_of_the_serial_run)
{
    gang_train(&rig, "one", NET SLICED, 1);
    gang_train(&rig, "g1", NET SLICED HOW("\"groups\":1"), 1);
    gang_train(&rig, "g3", NET SLICED HOW("\"groups\":1,\"server\":{\"shards\":5}"), 3);
    ck_assert(is_same("one", "g1"));
    ck_assert(is_same("one", "g3"));
}
END_TEST

START_TEST(asynchronous_servers_reach_the_bar)
{
    gang_train(&rig, "one", NET SLICED, 1);
    gang_train(&rig, "async", NET SLICED HOW("\"server\":{\"mode\":\"async\"}"), 3);
    gang_train(&rig, "groups", NET SLICED HOW("\"groups\":2"), 4);
    double bar = gang_last(&rig, "one", "val_error") + 0.05;
    ck_assert_double_le(gang_last(&rig, "async", "val_error"), bar);
    ck_assert_double_le(gang_last(&rig, "groups", "val_error"), bar);
    ck_assert(!is_same("one", "async"));
}
END_TEST

#define LASTING_SLICED "\"model\":{\"layers\":[64,64]},\"epochs\":60," SHARDS SLICED

START_TEST(deaths_do_not_stop_the_asynchronous_server)
{
    gang_train_dying(&rig, "dying",
                     LASTING_SLICED HOW("\"server\":{\"mode\":\"async\",\"shards\":6}"), 4, 4, 6);
    ck_assert(is_good("dying"));
    gang_train_dying(&rig, "groups", LASTING_SLICED HOW("\"groups\":2"), 4, 4, 7);
    ck_assert(is_good("groups"));
}
END_TEST

START_TEST(stopped_training_goes_on_with_other_ranks)
{
    gang_train_halted(&rig, "halted", LASTING_SLICED HOW("\"server\":{\"mode\":\"async\"}"), 3, 5,
                      2);
    ck_assert(is_good("halted"));
    gang_train_halted(&rig, "stale", LASTING HOW("\"server\":{\"mode\":\"ssp\"}"), 3, 5, 2);
    ck_assert(is_good("stale"));
}
END_TEST

/* --- gossip --- */

#define MORE "\"model\":{\"layers\":[24],\"dropout\":0.1},\"epochs\":20," SHARDS

START_TEST(gossip_reaches_the_bar)
{
    gang_train(&rig, "one", MORE WHOLE, 1);
    gang_train(&rig, "gossip", MORE WHOLE HOW("\"gossip\":{\"peers\":1}"), 3);
    gang_train(&rig, "more", MORE WHOLE HOW("\"gossip\":{\"peers\":2}"), 4);
    double bar = gang_last(&rig, "one", "val_error") + 0.05;
    ck_assert_double_le(gang_last(&rig, "gossip", "val_error"), bar);
    ck_assert_double_le(gang_last(&rig, "more", "val_error"), bar);
}
END_TEST

START_TEST(deaths_do_not_stop_gossip)
{
    gang_train_dying(&rig, "dying", LASTING HOW("\"gossip\":{}"), 4, 4, 8);
    ck_assert(is_good("dying"));
}
END_TEST

START_TEST(stopped_gossip_goes_on_with_other_ranks)
{
    gang_train_halted(&rig, "halted", LASTING HOW("\"gossip\":{}"), 3, 5, 2);
    ck_assert(is_good("halted"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("server in gangs");
    TCase *t = tcase_create("gang");
    rig_fixture(t, &rig);
    tcase_add_test(t, synchronous_server_has_the_bits_of_the_serial_run);
    tcase_add_test(t, traffic_is_that_of_a_push_and_a_pull);
    tcase_add_test(t, stale_server_reaches_the_bar);
    tcase_add_test(t, deaths_change_no_bit_of_the_synchronous_server);
    tcase_add_test(t, deaths_do_not_stop_the_stale_server);
    tcase_add_test(t, one_group_has_the_bits_of_the_serial_run);
    tcase_add_test(t, asynchronous_servers_reach_the_bar);
    tcase_add_test(t, deaths_do_not_stop_the_asynchronous_server);
    tcase_add_test(t, stopped_training_goes_on_with_other_ranks);
    tcase_add_test(t, gossip_reaches_the_bar);
    tcase_add_test(t, deaths_do_not_stop_gossip);
    tcase_add_test(t, stopped_gossip_goes_on_with_other_ranks);
    suite_add_tcase(s, t);
    return s;
}
