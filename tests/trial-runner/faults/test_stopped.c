/* A rank is stopped (SIGSTOP), the others go on without it, and it wakes up (SIGCONT) in an epoch
 * that is long over. What it says and sends then is refused; it may come back with the others'
 * state.
 *
 * The stand-in for the server holds it back (gang_opts.hold) until the test has looked. */
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/faults/trials.h"

#define RANKS 4

static const struct trial lasting = {"a", FAULT_CNN(32, 550), "3"};
static const struct trial very_long = {"a", FAULT_CNN(32, 9000), "3"};

static struct rig rig;

static void setup(void)
{
    rig_open(&rig);
    gang_pictures(&rig);
}

static void teardown(void)
{
    rig_close(&rig);
}

static void end_and_compare(struct gang *g)
{
    gang_run(g);
    gang_ended_well(g, SIGKILL);
    ck_assert_uint_eq(g->steps_back, 0);
    gang_same_reports("calm", g);
    gang_same_results(&rig, "calm", g->tag);
    gang_done(g);
}

/* How long a silent rank is waited for, and how long it sleeps. */
struct nap {
    const char *silence, *join; /* NULL: the defaults */
    int64_t silence_ms, sleep_ms;
};

/* False: as in stop_and_go_once(). */
static bool let_it_sleep(struct gang *g, size_t place, const struct nap *nap)
{
    int64_t start_ns = clock_mono_ns();
    gang_kill(g, place, SIGSTOP);
    if (!gang_gather(g, RANKS - 1) || !g->ranks[place].out)
        return false;
    int64_t noticed_ms = (g->accused_ns - start_ns) / NS_PER_MS;
    ck_assert_int_gt(noticed_ms, nap->silence_ms / 2);
    while (clock_mono_ns() - start_ns < nap->sleep_ms * NS_PER_MS)
        if (!gang_turn(g, 20) || gang_is_over(g))
            return false;
    gang_kill(g, place, SIGCONT);
    return true;
}

/* False: another rank was lost too, or the training ended before. On a busy machine that may be
 * because a rank, or this test, got no processor. */
static bool stop_and_go_once(struct gang *g, int64_t which, const struct nap *nap)
{
    if (!gang_gather(g, RANKS))
        return false;
    size_t place = gang_place(g, which);
    if (!let_it_sleep(g, place, nap))
        return false;
    int64_t epoch = g->epoch, joined = g->ranks[place].joined;
    while (g->stale == 0) /* it misses the others */
        if (!gang_turn(g, PATIENCE_MS) || gang_is_over(g))
            return false;
    gang_pass(g, 300000);
    if (g->epoch != epoch || g->ranks[place].joined != joined) /* it should disturb nobody */
        return false;
    gang_admit(g, place);
    if (!gang_gather(g, RANKS)) /* the training ended before it came back */
        return false;
    ck_assert_int_eq(g->ranks[place].step, g->ranks[gang_place(g, which == 0 ? 1 : 0)].step);
    return true;
}

/* Until one of the naps goes as it should, each longer than the one before. */
static void stop_and_go(const char *name, const struct trial *t, int64_t which,
                        const struct nap *naps, size_t n)
{
    static struct gang g;
    for (size_t i = 0; i < n; i++) {
        char tag[24];
        struct gang_opts opts = {
            .no_checkpoints = true, .hold = true, .silence = naps[i].silence, .join = naps[i].join};
        (void)snprintf(tag, sizeof tag, "%s%zu", name, i);
        gang_start_with(&g, &rig, tag, t, RANKS, &opts);
        if (stop_and_go_once(&g, which, &naps[i])) {
            end_and_compare(&g);
            return;
        }
        (void)fprintf(stderr, "%s: epoch %lld at step %lld, not as expected\n", tag,
                      (long long)g.epoch, (long long)g.top_step);
        gang_done(&g);
    }
    ck_abort_msg("%s: no try went as it should", name);
}

START_TEST(stopped_rank_is_refused_and_may_come_back)
{
    static const struct nap naps[] = {{"1s", "3s", 1000, 1800},
                                      {"2s", "6s", 2000, 3600},
                                      {"2s", "6s", 2000, 3600},
                                      {"4s", "12s", 4000, 7200}};
    gang_run_calm(&rig, "calm", &lasting, 1);
    stop_and_go("leader", &lasting, 0, naps, AS_ARRAY_LEN(naps));
    stop_and_go("last", &lasting, RANKS - 1, naps, AS_ARRAY_LEN(naps));
}
END_TEST

START_TEST(twenty_seconds_with_the_defaults)
{
    static const struct nap nap = {NULL, NULL, 5000, 20000};
    gang_run_calm(&rig, "calm", &very_long, 1);
    stop_and_go("default", &very_long, 2, &nap, 1);
}
END_TEST

/* It is stopped while the ranks meet for the first time, and wakes while the others meet again: its
 * calls are of another epoch. */
START_TEST(late_calls_of_an_old_epoch_are_refused)
{
    static struct gang g;
    static const struct gang_opts opts = {.no_checkpoints = true, .silence = "1s", .join = "1s"};
    gang_run_calm(&rig, "calm", &lasting, 1);
    for (size_t late = 0; late < 3; late += 2) {
        gang_start_with(&g, &rig, late ? "late2" : "late0", &lasting, RANKS, &opts);
        while (g.epoch == 0)
            ck_assert(gang_turn(&g, PATIENCE_MS));
        gang_kill(&g, late, SIGSTOP);
        ck_assert(gang_gather(&g, RANKS - 1));
        gang_kill(&g, 1, SIGKILL);
        gang_kill(&g, late, SIGCONT);
        ck_assert(gang_gather(&g, RANKS - 1)); /* all but the dead one */
        end_and_compare(&g);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("stopped");
    TCase *t = tcase_create("stopped");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, stopped_rank_is_refused_and_may_come_back);
    tcase_add_test(t, late_calls_of_an_old_epoch_are_refused);
    suite_add_tcase(s, t);
    t = tcase_create("defaults");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 1800);
    add_test_if(t, twenty_seconds_with_the_defaults, faults_long(), "ASSAY_LONG_FAULTS is not set");
    suite_add_tcase(s, t);
    return s;
}
