/* A rank is stopped (SIGSTOP), the others go on without it, and it wakes up (SIGCONT) in an epoch
 * that is long over. What it says and sends then is refused; it may come back with the others' state.
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

static void let_it_sleep(struct gang *g, size_t place, int64_t silence_ms, int64_t sleep_ms)
{
    int64_t start_ns = clock_mono_ns();
    gang_kill(g, place, SIGSTOP);
    ck_assert(gang_gather(g, RANKS - 1));
    int64_t noticed_ms = (g->accused_ns - start_ns) / NS_PER_MS;
    ck_assert(g->ranks[place].out);
    ck_assert_int_gt(noticed_ms, silence_ms / 2);
    while (clock_mono_ns() - start_ns < sleep_ms * NS_PER_MS)
        ck_assert(gang_turn(g, 20) && !gang_is_over(g));
    gang_kill(g, place, SIGCONT);
}

static void stop_and_go(const char *tag, const struct gang_opts *opts, const struct trial *t,
                        int64_t which, int64_t silence_ms, int64_t sleep_ms)
{
    static struct gang g;
    gang_start_with(&g, &rig, tag, t, RANKS, opts);
    ck_assert(gang_gather(&g, RANKS));
    size_t place = gang_place(&g, which);
    let_it_sleep(&g, place, silence_ms, sleep_ms);
    int64_t epoch = g.epoch, joined = g.ranks[place].joined;
    while (g.stale == 0) /* it misses the others */
        ck_assert(gang_turn(&g, PATIENCE_MS) && !gang_is_over(&g));
    gang_pass(&g, 300000);
    ck_assert_int_eq(g.epoch, epoch); /* it has disturbed nobody */
    ck_assert_int_eq(g.ranks[place].joined, joined);
    gang_admit(&g, place);
    ck_assert_msg(gang_gather(&g, RANKS), "the training ended before it came back");
    ck_assert_int_eq(g.ranks[place].step, g.ranks[gang_place(&g, which == 0 ? 1 : 0)].step);
    end_and_compare(&g);
}

START_TEST(stopped_rank_is_refused_and_may_come_back)
{
    static const struct gang_opts opts = {
        .no_checkpoints = true, .hold = true, .silence = "1s", .join = "3s"};
    gang_run_calm(&rig, "calm", &lasting, 1);
    stop_and_go("leader", &opts, &lasting, 0, 1000, 1800);
    stop_and_go("last", &opts, &lasting, RANKS - 1, 1000, 1800);
}
END_TEST

START_TEST(twenty_seconds_with_the_defaults)
{
    static const struct gang_opts opts = {.no_checkpoints = true, .hold = true};
    gang_run_calm(&rig, "calm", &very_long, 1);
    stop_and_go("default", &opts, &very_long, 2, 5000, 20000);
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

Suite *test_suite(void)
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
