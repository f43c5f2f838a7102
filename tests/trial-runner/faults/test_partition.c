/* The network between two hosts with two ranks each fails: one half goes on, the other half waits;
 * when the network is back, all four go on. The hosts are network namespaces with a veth pair. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/faults/trials.h"

#define RANKS 4

static const struct trial lasting = {"a", FAULT_CNN(32, 550), "3"};

static struct rig rig;
static char names[GANG_HOSTS][32];

/* Runs ip(8); the shell knows both names as $A and $B. True if it ended well. */
static bool ip(const char *arguments)
{
    char line[300];
    (void)snprintf(line, sizeof line, "ip %s 2>/dev/null", arguments);
    return system(line) == 0;
}

static void name_hosts(void)
{
    for (int i = 0; i < GANG_HOSTS; i++) {
        (void)snprintf(names[i], sizeof names[i], "assay%d%c", (int)getpid(), 'a' + i);
        (void)setenv(i == 0 ? "A" : "B", names[i], 1);
    }
}

static bool may_make_hosts(void)
{
    name_hosts();
    return ip("netns add $A") && ip("netns del $A");
}

static bool make_hosts(void)
{
    name_hosts();
    return ip("netns add $A") && ip("netns add $B") &&
           ip("link add link0 netns $A type veth peer name link0 netns $B") &&
           ip("-n $A addr add 10.77.0.1/24 dev link0") &&
           ip("-n $B addr add 10.77.0.2/24 dev link0") && ip("-n $A link set lo up") &&
           ip("-n $B link set lo up") && ip("-n $A link set link0 up") &&
           ip("-n $B link set link0 up");
}

static void setup(void)
{
    rig_open(&rig);
    gang_pictures(&rig);
    ck_assert(make_hosts());
}

static void teardown(void)
{
    (void)ip("netns del $A");
    (void)ip("netns del $B");
    rig_close(&rig);
}

/* False: not as it should be. On a busy machine that may be because a rank got no processor for as
 * long as silence is waited for, or because the training was over. */
static bool cut_and_mend(struct gang *g)
{
    if (!gang_gather(g, RANKS))
        return false;
    gang_pass(g, 100000);
    if (gang_is_over(g))
        return false;
    int64_t epoch = g->epoch;
    ck_assert(ip("-n $A link set link0 down"));
    if (!gang_gather(g, RANKS / 2))
        return false;
    /* Both ranks of the other half were missed at once, not one after the other. */
    size_t host = g->ranks[gang_place(g, 0)].host; /* of the half that goes on */
    if (g->epoch != epoch + 1 || g->ranks[gang_place(g, 1)].host != host)
        return false;
    int64_t until_ns = clock_mono_ns() + PATIENCE_MS / 4 * NS_PER_MS; /* then another try */
    while (g->stale ==
           0) /* the other half accuses the first in vain; the first goes on meanwhile */
        if (clock_mono_ns() > until_ns || !gang_turn(g, PATIENCE_MS) || gang_is_over(g))
            return false;
    gang_pass(g, 200000);
    for (size_t i = 0; i < RANKS; i++)
        if (g->ranks[i].out != (g->ranks[i].host != host) ||
            g->ranks[i].joined != (g->ranks[i].host == host ? epoch + 1 : epoch))
            return false;
    ck_assert(ip("-n $A link set link0 up"));
    for (size_t i = 0; i < RANKS; i++)
        if (g->ranks[i].out)
            gang_admit(g, i);
    return gang_gather(g, RANKS);
}

START_TEST(one_half_goes_on)
{
    static struct gang g;
    static const char *const waits[][2] = {{"2s", "4s"}, {"4s", "8s"}, {"4s", "8s"}, {"8s", "16s"}};
    bool well = false;
    gang_run_calm(&rig, "calm", &lasting, 1);
    for (size_t i = 0; i < AS_ARRAY_LEN(waits) && !well; i++) {
        char tag[8];
        struct gang_opts opts = {.no_checkpoints = true,
                                 .hold = true,
                                 .silence = waits[i][0],
                                 .join = waits[i][1],
                                 .hosts = {{names[0], "10.77.0.1"}, {names[1], "10.77.0.2"}},
                                 .n_hosts = 2};
        (void)snprintf(tag, sizeof tag, "cut%zu", i);
        gang_start_with(&g, &rig, tag, &lasting, RANKS, &opts);
        well = cut_and_mend(&g);
        if (well) {
            gang_run(&g);
            gang_ended_well(&g, 0);
            ck_assert_uint_eq(g.steps_back, 0);
            gang_same_reports("calm", &g);
            gang_same_results(&rig, "calm", tag);
        } else {
            (void)fprintf(stderr, "%s: epoch %lld at step %lld, not as expected\n", tag,
                          (long long)g.epoch, (long long)g.top_step);
            ck_assert(ip("-n $A link set link0 up"));
        }
        gang_done(&g);
    }
    ck_assert(well);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("partition");
    TCase *t = tcase_create("partition");
    tcase_add_checked_fixture(t, setup, teardown);
    add_test_if(t, one_half_goes_on, may_make_hosts(),
                "network namespaces cannot be made here (ip netns add)");
    suite_add_tcase(s, t);
    return s;
}
