/* Deaths of ranks at any moment: the weights are those of an undisturbed run, bit by bit, and no
 * completed step is lost.
 *
 * The ranks of most tests have no folder for checkpoints, so that only a living rank can hold the
 * trial's state: a world that joined at an earlier step than one before it has lost steps
 * (gang.steps_back). Delays between deaths are swept or drawn, so that deaths fall into computing,
 * summing, meeting, and the transfer of a state. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/faults/trials.h"

#define KILLS 200
#define RANKS 4

static const struct trial lasting = {"a", FAULT_CNN(8, 200), "3"};
/* One rank alone takes seconds for it. */
static const struct trial longer = {"a", FAULT_CNN(32, 250), "3"};
static const struct trial brief = {"b", FAULT_CNN(8, 40), "4"};
/* 0.3 million parameters and two moments of each: sending the state takes a while. It still trains
 * when a newcomer has started, eight times. */
static const struct trial heavy = {"c",
                                   "\"model\":{\"layers\":[512,512],\"dropout\":0.1},\"epochs\":10,"
                                   "\"batch_size\":64,\"micro_batch\":16,"
                                   "\"optimizer\":{\"lr\":0.001,\"clip_norm\":1}",
                                   "5"};
/* A rank that waits for a dead one waits for ever. None is lost because it gets no processor:
 * silence is no subject here. */
static const struct gang_opts no_files = {.no_checkpoints = true, .silence = "10m", .join = "1h"};
static const struct gang_opts with_files = {.silence = "10m", .join = "1h"};

static struct rig rig;

/* A living rank, so that another one that holds the state is left; GANG_MAX if there is none. */
static size_t victim_of(const struct gang *g, struct rng *r)
{
    for (int tries = 0; tries < 100; tries++) {
        size_t place = rng_below(r, g->n);
        const struct gang_rank *v = &g->ranks[place];
        if (v->pid && !v->dying && gang_holders(g) > (gang_holds(g, place) ? 1U : 0U))
            return place;
    }
    return GANG_MAX;
}

static void end_and_compare(struct gang *g, const char *calm)
{
    gang_run(g);
    gang_ended_well(g, SIGKILL);
    ck_assert_msg(g->steps_back == 0, "%s: a world joined at an earlier step than one before",
                  g->tag);
    gang_same_reports(calm, g);
    gang_same_results(&rig, calm, g->tag);
    gang_done(g);
}

/* One training of four ranks, in which one dies again and again and is replaced. */
static size_t run_with_kills(const char *tag, struct rng *r, size_t most)
{
    static struct gang g;
    size_t kills = 0;
    gang_start_with(&g, &rig, tag, &lasting, RANKS, &no_files);
    while (kills < most && !gang_is_over(&g) && gang_holders(&g) == 0)
        ck_assert(gang_turn(&g, 5));
    while (kills < most && g.n < GANG_MAX - 1) {
        gang_pass(&g, (int64_t)rng_below(r, 120000));
        if (gang_is_over(&g))
            break;
        size_t victim = victim_of(&g, r);
        if (victim == GANG_MAX)
            continue;
        gang_kill(&g, victim, SIGKILL);
        kills++;
        gang_add(&g);
    }
    end_and_compare(&g, "calm");
    return kills;
}

START_TEST(two_hundred_deaths_change_no_bit)
{
    struct rng r;
    char tag[24];
    size_t kills = 0, wanted = faults_long() ? 10 * KILLS : KILLS;
    int64_t start_ns = clock_mono_ns();
    gang_pictures(&rig);
    gang_run_calm(&rig, "calm", &lasting, 1);
    rng_init(&r, 17, 0);
    for (int k = 0; kills < wanted; k++) {
        (void)snprintf(tag, sizeof tag, "kills%d", k);
        kills += run_with_kills(tag, &r, wanted - kills);
    }
    (void)fprintf(stderr, "%zu deaths in %.1f s\n", kills,
                  (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S);
}
END_TEST

/* Down to one rank, one after another or three at once, and back to four. */
START_TEST(one_of_four_is_enough)
{
    static struct gang g;
    gang_pictures(&rig);
    gang_run_calm(&rig, "calm", &longer, 1);
    gang_start_with(&g, &rig, "down", &longer, RANKS, &no_files);
    for (int round = 0; round < 3; round++) {
        ck_assert_msg(gang_gather(&g, RANKS), "the training ended in round %d, at step %lld", round,
                      (long long)g.top_step);

        for (size_t left = RANKS - 1; left > 0; left--) {
            gang_kill(&g, gang_place(&g, round == 1 ? 0 : (int64_t)left), SIGKILL);
            if (round < 2) /* in the last round, three die at once */
                ck_assert(gang_gather(&g, left));
        }
        ck_assert(gang_gather(&g, 1));
        gang_pass(&g, 30000);
        for (size_t i = 1; i < RANKS; i++)
            (void)gang_add_in_time(&g);
    }
    ck_assert(gang_gather(&g, RANKS));
    end_and_compare(&g, "calm");
}
END_TEST

/* A second rank dies while the others meet without the first. */
START_TEST(death_during_a_recovery)
{
    static struct gang g;
    struct rng r;
    char tag[24] = "pairs";
    int trainings = 1;
    int64_t step_us = faults_long() ? 500 : 2500;
    gang_pictures(&rig);
    gang_run_calm(&rig, "calm", &lasting, 1);
    rng_init(&r, 5, 0);
    gang_start_with(&g, &rig, tag, &lasting, RANKS, &no_files);
    for (int64_t delay_us = 0; delay_us <= 50000; delay_us += step_us) {
        if (!gang_gather(&g, RANKS)) { /* that training is over: begin another */
            end_and_compare(&g, "calm");
            (void)snprintf(tag, sizeof tag, "pairs%d", trainings++);
            gang_start_with(&g, &rig, tag, &lasting, RANKS, &no_files);
            ck_assert(gang_gather(&g, RANKS));
        }
        size_t first = victim_of(&g, &r);
        gang_kill(&g, first, SIGKILL);
        gang_pass(&g, delay_us);
        size_t second = victim_of(&g, &r);
        for (int tries = 0; second == first && tries < 100; tries++)
            second = victim_of(&g, &r);
        if (gang_is_over(&g) || second == GANG_MAX)
            continue;
        gang_kill(&g, second, SIGKILL);
        if (!gang_gather(&g, RANKS - 2)) /* no rank waits out the time for joining */
            continue;
        gang_add(&g);
        gang_add(&g);
    }
    end_and_compare(&g, "calm");
}
END_TEST

/* The rank that sends the state, or the one that takes it, dies while it travels. */
START_TEST(death_during_a_transfer)
{
    static struct gang g;
    char tag[24];
    gang_run_calm(&rig, "calm", &heavy, 1);
    for (int sender = 0; sender < 2; sender++) {
        (void)snprintf(tag, sizeof tag, "transfer%d", sender);
        gang_start_with(&g, &rig, tag, &heavy, 3, &no_files);
        ck_assert(gang_gather(&g, 3));
        for (int64_t delay_us = 0; delay_us < 8000; delay_us += faults_long() ? 200 : 1000) {
            size_t added = gang_add_in_time(&g);
            while (!g.ranks[added].member && !gang_is_over(&g))
                ck_assert(gang_turn(&g, PATIENCE_MS));
            if (gang_is_over(&g))
                break;
            gang_pass(&g, delay_us); /* it has been told its first world */
            size_t first = gang_place(&g, 0);
            ck_assert_uint_ne(first, added);
            gang_kill(&g, sender ? first : added, SIGKILL);
            if (!gang_gather(&g, 3))
                break;
        }
        ck_assert_uint_ge(g.deaths, 4);
        end_and_compare(&g, "calm");
    }
}
END_TEST

/* A rank dies before the ranks have met for the first time. */
START_TEST(death_during_the_first_meeting)
{
    static struct gang g;
    char tag[24];
    gang_pictures(&rig);
    gang_run_calm(&rig, "calm", &brief, 1);
    for (int64_t delay_us = 0; delay_us <= 12000; delay_us += faults_long() ? 500 : 1500) {
        (void)snprintf(tag, sizeof tag, "first%d", (int)delay_us);
        gang_start_with(&g, &rig, tag, &brief, RANKS, &no_files);
        while (delay_us > 0 && g.epoch == 0)
            ck_assert(gang_turn(&g, PATIENCE_MS));
        gang_pass(&g, delay_us); /* with 0, it does not even listen yet */
        gang_kill(&g, (size_t)(delay_us / 1500 % RANKS), SIGKILL);
        ck_assert(gang_gather(&g, RANKS - 1));
        end_and_compare(&g, "calm");
    }
}
END_TEST

/* Nine ranks of one host have more descriptors each than this process may. */
START_TEST(many_connections_are_allowed)
{
    static struct gang g;
    struct rlimit lim;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
    rlim_t before = lim.rlim_cur;
    gang_pictures(&rig);
    gang_run_calm(&rig, "calm", &brief, 1);
    lim.rlim_cur = 24;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
    gang_start_with(&g, &rig, "nine", &brief, 9, &no_files);
    gang_run(&g);
    lim.rlim_cur = before;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
    gang_ended_well(&g, 0);
    gang_same_results(&rig, "calm", "nine");
    gang_done(&g);
}
END_TEST

/* Until two checkpoints have been written: at least one is of a later step than the gang began
 * at. */
static void await_checkpoints(struct gang *g)
{
    char path[200];
    struct stat last = {0}, now;
    (void)snprintf(path, sizeof path, "%s/%s/checkpoints/checkpoint.safetensors", rig.dir, g->tag);
    (void)stat(path, &last);
    for (int n = 0; n < 2 && gang_turn(g, 5);) {
        bool is_new = stat(path, &now) == 0 &&
                      (now.st_ino != last.st_ino || now.st_mtim.tv_nsec != last.st_mtim.tv_nsec);
        if (is_new)
            last = now;
        n += is_new;
    }
}

/* Every rank dies. The trial goes on from its last checkpoint with another number of ranks. */
START_TEST(death_of_all)
{
    static struct gang g;
    static const size_t sizes[] = {4, 2, 3, 1, 4};
    int64_t before = 0;
    gang_pictures(&rig);
    gang_run_calm(&rig, "calm", &lasting, 1);
    for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
        gang_start_with(&g, &rig, "all", &lasting, sizes[i], &with_files);
        ck_assert(gang_gather(&g, sizes[i]));
        ck_assert_msg(i == 0 || g.first_step > before,
                      "it began again at step %lld, not after %lld", (long long)g.first_step,
                      (long long)before);
        before = g.first_step;
        if (i + 1 == AS_ARRAY_LEN(sizes))
            break;
        await_checkpoints(&g);
        for (size_t k = 0; k < g.n; k++)
            gang_kill(&g, k, SIGKILL);
        gang_run(&g);
        ck_assert_msg(!gang_is_over(&g), "the training ended before its ranks died");
        gang_done(&g);
    }
    end_and_compare(&g, "calm");
}
END_TEST

static size_t files_in(const struct gang *g, const char *folder)
{
    char path[200];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/%s/%s", rig.dir, g->tag, folder);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

/* One rank knows that all is done, and ends, while another still waits to hear it; then a new world
 * begins, with both. The other one must not wait there for the one that has ended. Which of its
 * threads is first decides whether it hears of the end or of the world: so, several times. */
START_TEST(one_ends_before_the_other_knows)
{
    static struct gang g;
    char tag[24];
    gang_pictures(&rig);
    gang_run_calm(&rig, "calm", &brief, 1);
    for (int k = 0; k < 8; k++) {
        (void)snprintf(tag, sizeof tag, "done%d", k);
        gang_start_with(&g, &rig, tag, &brief, 2, &no_files);
        size_t nothing = files_in(&g, "artifacts");
        while (files_in(&g, "artifacts") == nothing && gang_turn(&g, 0))
            ;
        size_t other = gang_place(&g, 1);
        gang_kill(&g, other, SIGSTOP); /* it has done its part, and waits for the files */
        gang_pass(&g, 100000);         /* the leader has written them, and waits for the other */
        gang_admit(&g, other);
        gang_pass(&g, 50000);
        gang_kill(&g, other, SIGCONT);
        int64_t until_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
        while (gang_turn(&g, 1000))
            ck_assert_msg(clock_mono_ns() < until_ns, "%s: a rank waits for one that is done", tag);
        end_and_compare(&g, "calm");
    }
}
END_TEST

/* What a rank's process has reported so far; owned by the caller, "" if nothing. */
static char *report_of(const struct gang *g, size_t place)
{
    char folder[24];
    size_t len;
    (void)snprintf(folder, sizeof folder, "r%zu", place);
    char *text = rig_read(&rig, g->tag, folder, "report", &len);
    return text ? text : strdup("");
}

/* The report of the last epoch outlives the rank that led then: who joined later has it too. */
START_TEST(last_report_outlives_its_rank)
{
    static struct gang g;
    gang_run_calm(&rig, "calm", &heavy, 1);
    gang_start_with(&g, &rig, "report", &heavy, 1, &no_files);
    for (bool reported = false; !reported;) {
        ck_assert(gang_turn(&g, 1));
        AS_AUTO(as_freep) char *now = report_of(&g, 0);
        reported = now[0] != '\0' && now[strlen(now) - 1] == '\n';
    }
    (void)gang_add_in_time(&g);
    ck_assert_msg(gang_gather(&g, 2), "the training ended before the second rank joined");
    gang_kill(&g, 0, SIGKILL);
    ck_assert(gang_gather(&g, 1));
    AS_AUTO(as_freep) char *old = report_of(&g, 0);
    AS_AUTO(as_freep) char *new = report_of(&g, 1);
    old[strcspn(old, "\n")] = '\0';
    ck_assert_msg(strstr(new, old) != NULL, "the second rank has '%s', not '%s'", new, old);
    end_and_compare(&g, "calm");
}
END_TEST

/* The leader is stopped for a moment while it writes a checkpoint, beside the one before: it is the
 * last one, or, seldom, one that was due anyway. The others wait for it, and another one joins. */
static void admit_while_one_writes(struct gang *g, size_t added)
{
    size_t leader = gang_place(g, 0), before = files_in(g, "checkpoints");
    while (files_in(g, "checkpoints") <= before && g->deaths == 0 && gang_alive(g) > 0)
        gang_pass(g, 200);
    gang_kill(g, leader, SIGSTOP);
    gang_pass(g, 30000);
    gang_admit(g, added);
    gang_pass(g, 1000);
    gang_kill(g, leader, SIGCONT);
}

/* One rank is asked to stop, so all do, with a checkpoint; meanwhile a new one joins, or one
 * dies. */
START_TEST(change_while_all_stop)
{
    static struct gang g;
    static const struct gang_opts hold = {.hold = true, .silence = "10m"};
    struct rng r;
    rng_init(&r, 3, 0);
    gang_run_calm(&rig, "calm", &heavy, 1);
    int times = faults_long() ? 40 : 6;
    for (int k = 0; k < times; k++) {
        gang_start_with(&g, &rig, "stop", &heavy, 3, &hold);
        if (!gang_gather(&g, 3)) /* it is at its end already */
            break;
        size_t added = gang_add(&g);
        while (!g.ranks[added].out && gang_turn(&g, PATIENCE_MS))
            ;
        gang_kill(&g, gang_place(&g, k % 3), SIGTERM);
        if (k % 4 != 3)
            admit_while_one_writes(&g, added);
        else {
            gang_pass(&g, (int64_t)rng_below(&r, 60000));
            gang_kill(&g, gang_place(&g, (k + 1) % 3), SIGKILL);
        }
        while (gang_turn(&g, 10))
            for (size_t i = 0; i < g.n; i++) /* the runner of the newcomer hears of it too */
                if (g.ranks[i].pid && g.deaths > 0)
                    gang_kill(&g, i, SIGTERM);
        for (size_t i = 0; i < g.n; i++)
            ck_assert_msg(g.ended[i] == 0 || g.ended[i] == 75 || g.ended[i] == -SIGKILL,
                          "%d: r%zu ended with %d", k, i, g.ended[i]);
        bool over = gang_is_over(&g);
        gang_done(&g);
        if (over)
            break;
    }
    gang_start_with(&g, &rig, "stop", &heavy, 2, &with_files);
    gang_run(&g);
    gang_ended_well(&g, 0);
    gang_same_results(&rig, "calm", "stop");
    gang_done(&g);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kills");
    const struct {
        const char *name;
        const TTest *test;
    } cases[] = {
        {"many", two_hundred_deaths_change_no_bit},
        {"down", one_of_four_is_enough},
        {"recovery", death_during_a_recovery},
        {"transfer", death_during_a_transfer},
        {"first", death_during_the_first_meeting},
        {"all", death_of_all},
        {"many connections", many_connections_are_allowed},
        {"done", one_ends_before_the_other_knows},
        {"report", last_report_outlives_its_rank},
        {"stop", change_while_all_stop},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) { /* CK_RUN_CASE runs one of them */
        TCase *t = tcase_create(cases[i].name);
        rig_fixture(t, &rig);
        tcase_set_timeout(t, 1800);
        tcase_add_test(t, cases[i].test);
        suite_add_tcase(s, t);
    }
    return s;
}
