/* Parameter servers whose workers send encoded gradients, in real processes: equal bits for any
 * number of ranks, bytes, accuracy with and without error feedback, residuals in checkpoints,
 * deaths. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/distributed/gang_runs.h"

static struct rig rig;

/* Eight shards, the last batch of an epoch has fewer. */
#define EIGHT "\"batch_size\":256,\"micro_batch\":32,"
#define FOUR "\"batch_size\":128,\"micro_batch\":32,"
#define MLP                                                                                        \
    "\"model\":{\"layers\":[48,32]},\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.05,\"momentum\":0.9}" \
    ","

static const char *const codecs[] = {"\"fp16\"", "\"one_bit\"",
                                     "{\"kind\":\"top_k\",\"fraction\":0.05}",
                                     "{\"kind\":\"one_bit\",\"warmup_steps\":5}"};

static const char *document(char ret[500], const char *begin, const char *codec, const char *server)
{
    (void)snprintf(ret, 500, "%s\"distributed\":{\"server\":%s,\"compress\":%s}", begin, server,
                   codec);
    return ret;
}

START_TEST(codecs_give_equal_bits_for_any_number_of_ranks)
{
    char train[500], tag[8];
    gang_train(&rig, "p1", document(train, MLP EIGHT "\"epochs\":3,", codecs[_i], "{}"), 1);
    for (size_t n = 3; n <= 4; n++) { /* slices of other sizes, shards of other ranks */
        (void)snprintf(tag, sizeof tag, "p%zu", n);
        const char *server = n == 3 ? "{\"shards\":5}" : "{\"mode\":\"ssp\",\"staleness\":0}";
        gang_train(&rig, tag, document(train, MLP EIGHT "\"epochs\":3,", codecs[_i], server), n);
        gang_same(&rig, "p1", tag);
    }
    gang_train(&rig, "plain", document(train, MLP EIGHT "\"epochs\":3,", "\"none\"", "{}"), 1);
    ck_assert(!gang_is_same(&rig, "p1", "plain"));
}
END_TEST

START_TEST(checkpoints_hold_what_messages_have_lost)
{
    char train[500];
    document(train, MLP EIGHT "\"epochs\":20,", codecs[_i], "{}");
    gang_train(&rig, "calm", train, 2);
    gang_train_halted(&rig, "halted", train, 3, 2, 2);
    gang_same(&rig, "calm", "halted");
}
END_TEST

/* Residuals move to the ranks that get their shards. */
START_TEST(joins_change_no_bit)
{
    char train[500];
    const char *codec = _i < 3 ? codecs[_i] : "{\"kind\":\"one_bit\",\"warmup_steps\":75}";
    document(train, MLP EIGHT "\"epochs\":50,", codec, "{}");
    gang_train(&rig, "calm", train, 1);
    gang_train_growing(&rig, "growing", train, 1, 4);
    gang_same(&rig, "calm", "growing");
}
END_TEST

static uint64_t sent_by_all(const char *tag, const char *train)
{
    uint64_t sum = 0, bytes, exchanges;
    gang_train(&rig, tag, train, 4);
    for (size_t r = 0; r < 4; r++) {
        gang_traffic(&rig, tag, r, &bytes, &exchanges);
        sum += bytes;
    }
    return sum;
}

/* The push is nearly free; the pull is what it was. Without a common step the ends of phases
 * remain, too: all ranks get all weights and moments. */
START_TEST(pushes_are_small)
{
    static const char *const servers[] = {"{}", "{\"mode\":\"ssp\"}", "{\"mode\":\"async\"}"};
    static const double most[][3] = {{0.77, 0.54, 0.6}, {0.77, 0.54, 0.6}, {0.85, 0.65, 0.7}};
    char train[500];
#define WIDE                                                                                       \
    "\"model\":{\"layers\":[160,160]},\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.02},"               \
    "\"batch_size\":32,\"micro_batch\":8,\"epochs\":1,"
    uint64_t plain = sent_by_all("plain", document(train, WIDE, "\"none\"", servers[_i]));
    for (size_t c = 0; c < 3; c++) {
        char tag[8];
        (void)snprintf(tag, sizeof tag, "c%zu", c);
        uint64_t coded = sent_by_all(tag, document(train, WIDE, codecs[c], servers[_i]));
        ck_assert_msg((double)coded <= most[_i][c] * (double)plain, "%s: %.3f of the plain server",
                      codecs[c], (double)coded / (double)plain);
    }
}
END_TEST

#define GENTLE                                                                                     \
    "\"model\":{\"layers\":[48,32]},\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.02}," FOUR            \
    "\"epochs\":60,"

static double loss_of(const char *tag, const char *codec, const char *server, size_t ranks)
{
    char train[500];
    gang_train(&rig, tag, document(train, GENTLE, codec, server), ranks);
    return gang_last(&rig, tag, "val_loss");
}

/* The bars of test_compress.c; more where steps are stale. */
START_TEST(pushes_need_error_feedback)
{
    static const struct {
        const char *codec, *server;
        size_t ranks;
        double bar;
    } cases[] = {
        {"\"one_bit\"", "{}", 1, 1.01},
        {"{\"kind\":\"top_k\",\"fraction\":0.02}", "{}", 1, 1.05},
        {"{\"kind\":\"top_k\",\"fraction\":0.02}", "{\"mode\":\"ssp\",\"staleness\":2}", 2, 1.05},
        {"{\"kind\":\"top_k\",\"fraction\":0.02}", "{\"mode\":\"async\"}", 2, 1.08},
        {"\"one_bit\"", "{\"mode\":\"async\"}", 2, 1.08},
    };
    char without[200];
    double plain = loss_of("plain", "\"none\"", cases[_i].server, cases[_i].ranks);
    double with = loss_of("with", cases[_i].codec, cases[_i].server, cases[_i].ranks);
    (void)snprintf(without, sizeof without, "%s,\"error_feedback\":false", cases[_i].codec);
    double lossy = loss_of("without", without, cases[_i].server, cases[_i].ranks);
    ck_assert_double_le(with, cases[_i].bar * plain);
    ck_assert_double_gt(lossy, 1.5 * plain);
}
END_TEST

#define BRIEF                                                                                      \
    "\"model\":{\"layers\":[48,32]},\"optimizer\":{\"kind\":\"sgd\",\"lr\":0.02}," FOUR            \
    "\"epochs\":30,"

/* The last step of a training that lost ranks and residuals, and one that was stopped and continued
 * by other ranks. */
START_TEST(stale_servers_go_on)
{
    static const char *const servers[] = {"{\"mode\":\"ssp\",\"staleness\":2}",
                                          "{\"mode\":\"async\",\"shards\":6}", "{\"backup\":1}",
                                          "{},\"groups\":2"};
    char train[500];
    document(train, BRIEF, codecs[1], servers[_i]);
    gang_train(&rig, "calm", train, 4);
    double bar = 1.15 * gang_last(&rig, "calm", "val_loss");
    gang_train_halted(&rig, "halted", train, 3, 5, 2);
    ck_assert_double_le(gang_last(&rig, "halted", "val_loss"), bar);
    size_t well = gang_train_dying(&rig, "dying", train, 4, 2, 5);
    ck_assert_double_eq(gang_last_of(&rig, "dying", well, "step"), gang_last(&rig, "calm", "step"));
    ck_assert_double_le(gang_last_of(&rig, "dying", well, "val_loss"), bar);
}
END_TEST

/* A rank ends between the look at its messages and the request to stop: that is lost, and no signal
 * ends this process. */
START_TEST(a_stop_may_come_too_late)
{
    char train[500];
    const struct trial t = {"a", document(train, BRIEF, codecs[0], "{}"), "3"};
    siginfo_t end = {0};
    struct gang g;
    gang_start(&g, &rig, "late", &t, 1);
    gang_kill(&g, 0, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)g.ranks[0].pid, &end, WEXITED | WNOWAIT), 0);
    gang_ask_to_stop(&g);
    gang_run(&g);
    ck_assert_int_eq(g.ended[0], -SIGKILL);
    gang_done(&g);
}
END_TEST

static void add(Suite *s, const char *name, const TTest *test, int n)
{
    TCase *t = tcase_create(name);
    rig_fixture(t, &rig);
    tcase_add_loop_test(t, test, 0, n);
    suite_add_tcase(s, t);
}

TEST_SUITE()
{
    Suite *s = suite_create("server_compress");
    add(s, "bits", codecs_give_equal_bits_for_any_number_of_ranks, (int)AS_ARRAY_LEN(codecs));
    add(s, "checkpoints", checkpoints_hold_what_messages_have_lost, (int)AS_ARRAY_LEN(codecs));
    add(s, "joins", joins_change_no_bit, (int)AS_ARRAY_LEN(codecs));
    add(s, "bytes", pushes_are_small, 3);
    if (!IS_SANITIZED) /* convergence: long trainings that run no line more */
        add(s, "accuracy", pushes_need_error_feedback, 5);
    add(s, "deaths", stale_servers_go_on, 4);
    add(s, "stops", a_stop_may_come_too_late, 1);
    return s;
}
