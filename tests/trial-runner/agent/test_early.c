/* What the runner does when early stopping pauses or prunes a trial: of plain programs, members of
 * groups, and ranks. */
#include "tests/trial-runner/agent/gang_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/support/roots.h"

#define STEPS "for i in 1 2 3; do echo '{\"step\": '$i', \"loss\": 1}' >> $ASSAY_REPORT; done; "
#define ON_TERM(what) "trap '" what "' TERM; "
#define CHECKPOINT "echo state > $ASSAY_CHECKPOINTS/c; "
#define FOR_EVER "while :; do sleep 0.02; done"

static struct trial *offer_decided(int number, const char *decision, const char *script)
{
    struct trial *t = offer_sh(number, script);
    fx_lock();
    t->decision = decision;
    t->decides_at = 3;
    fx_unlock();
    return t;
}

static json_int_t exit_code_of(const struct trial *t)
{
    fx_lock();
    json_int_t code = json_integer_value(json_object_get(t->completion, "exit_code"));
    fx_unlock();
    return code;
}

/* ---- programs ---- */

START_TEST(a_trial_is_paused_with_its_checkpoint)
{
    struct trial *t = offer_decided(0, "pause", ON_TERM(CHECKPOINT "exit 0") STEPS FOR_EVER);
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "paused");
    ck_assert_str_eq(reason_of(t), DECISION_REASON);
    ck_assert_uint_eq(json_array_size(t->checkpoints), 1);
    ck_assert(log_has(t, "[assay-runner] early stopping pauses the trial: " DECISION_REASON "\n"));
    ck_assert(!log_has(t, "did not obey") && !log_has(t, "no checkpoint"));
    struct trial *next = offer_sh(1, "exit 0"); /* the slot is free and the runner goes on */
    AWAIT(next->completion);
}
END_TEST

START_TEST(a_trial_is_pruned)
{
    struct trial *t = offer_decided(0, "prune", ON_TERM(CHECKPOINT "exit 75") STEPS FOR_EVER);
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "pruned");
    ck_assert_str_eq(reason_of(t), DECISION_REASON);
    ck_assert_ptr_null(t->checkpoints); /* nothing goes on from it */
    ck_assert(log_has(t, "early stopping ends the trial: " DECISION_REASON "\n"));
}
END_TEST

/* Each heartbeat repeats the decision: the answer to the measurement may be lost. */
START_TEST(a_heartbeat_is_enough)
{
    struct trial *t = offer_decided(0, "prune", STEPS "exec sleep 1000");
    t->is_quiet = true;
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "pruned");
    ck_assert_int_eq(exit_code_of(t), -SIGTERM);
}
END_TEST

START_TEST(a_trial_that_does_not_obey_is_killed)
{
    struct trial *t = offer(0,
                            "{\"command\":[\"sh\",\"-c\",\"trap '' TERM; echo '{\\\"step\\\": 3, "
                            "\\\"loss\\\": 1}' >> $ASSAY_REPORT; while :; do sleep 0.02; done\"]}",
                            200, 0, 0);
    fx_lock();
    t->decision = "pause";
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "paused");
    ck_assert_int_eq(exit_code_of(t), -SIGKILL);
    ck_assert(log_has(t, "[assay-runner] the trial did not obey: it went on for 0.2 s after"));
    ck_assert(log_has(t, "the trial left no checkpoint: if it is resumed, it begins again\n"));
}
END_TEST

/* The decision comes with the answer to the last measurements, after exit 0: it stands. */
START_TEST(a_decision_stands_after_the_end)
{
    struct trial *t = offer_decided(0, "pause", CHECKPOINT STEPS "exit 0");
    struct trial *failed = offer_decided(1, "prune", STEPS "exit 3");
    fx_lock();
    fx.hold_items = true;
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(fx.held_items > 0 && fx.trials[0].said && fx.trials[1].said &&
          as_streq(json_string_value(json_object_get(t->said, "phase")), "ended") &&
          as_streq(json_string_value(json_object_get(failed->said, "phase")), "ended"));
    fx_lock();
    fx.hold_items = false;
    fx_unlock();
    AWAIT(t->completion && failed->completion);
    ck_assert_str_eq(outcome_of(t), "paused");
    ck_assert_str_eq(reason_of(t), DECISION_REASON);
    ck_assert_uint_eq(json_array_size(t->checkpoints), 1);
    ck_assert_str_eq(outcome_of(failed), "pruned");
    ck_assert_int_eq(exit_code_of(failed), 3);
}
END_TEST

/* The runner is killed before the server has its result. The next one delivers what was on disk,
 * and obeys the decision that answers its measurements. */
START_TEST(a_decision_about_a_result_on_disk)
{
    AS_AUTO(as_freep) char *journaled = file_join(fx.work, "trials/s/0/1/result.json");
    struct trial *t = offer_sh(0, CHECKPOINT STEPS "exit 75");
    fx_lock();
    fx.hold_results = true;
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(access(journaled, F_OK) == 0 && t->checkpoints);
    end_runner(SIGKILL);
    fx_lock();
    fx.hold_results = false;
    t->decision = "pause";
    fx_unlock();
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_str_eq(outcome_of(t), "paused");
    ck_assert_uint_eq(json_array_size(t->checkpoints), 1);
}
END_TEST

/* A drain does not undo a decision, whichever came first. */
START_TEST(a_decision_goes_before_a_drain)
{
    AS_AUTO(as_freep) char *go = file_join(fx.dir, "go");
    (void)setenv("GO", go, 1);
    int status = 0;
    struct trial *t = offer_decided(
        0, "prune", ON_TERM("until [ -e $GO ]; do sleep 0.02; done; exit 0") STEPS FOR_EVER);
    start_runner(NULL, NULL);
    AWAIT(log_has(t, "early stopping ends"));
    kill(fx.runner, SIGTERM);
    ck_assert(file_replace(go, "", 0, 0600, NULL) == AS_OK);
    ck_assert_int_eq(waitpid(fx.runner, &status, 0), fx.runner);
    fx.runner = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_str_eq(outcome_of(t), "pruned");
}
END_TEST

/* ---- the checkpoint of a trial that is resumed ---- */

/* Pause a trial with a checkpoint of two files. */
static struct trial *pause_one(int number)
{
    struct trial *t = offer_decided(
        number, "pause",
        ON_TERM(CHECKPOINT "mkdir $ASSAY_CHECKPOINTS/d; echo more > $ASSAY_CHECKPOINTS/d/e; exit 0")
            STEPS FOR_EVER);
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    ck_assert_uint_eq(json_array_size(t->checkpoints), 2);
    return t;
}

/* The next attempt at a trial that left these checkpoints. */
static struct trial *offer_again(int number, const struct trial *before, const char *script)
{
    fx_lock();
    struct trial *t = offer_sh(number, script);
    json_object_set(t->claim, "files", before->checkpoints);
    fx_unlock();
    return t;
}

/* The server has lost the content: what the runner has kept is enough. It is a copy: the trial may
 * write to it, and the next attempt finds what was kept. */
START_TEST(a_trial_that_resumes_here_downloads_nothing)
{
    struct trial *t = pause_one(0);
    LOCKED(fx.blobs[0].sha[0] = fx.blobs[1].sha[0] = 'x');
    for (int i = 1; i < 3; i++) {
        struct trial *again = offer_again(
            i, t,
            "cat $ASSAY_CHECKPOINTS/c $ASSAY_CHECKPOINTS/d/e; echo x >> $ASSAY_CHECKPOINTS/c");
        AWAIT(again->completion);
        ck_assert_str_eq(again->log, "state\nmore\n");
        ck_assert_ptr_null(again->lost);
    }
}
END_TEST

/* Neither the server nor the cache has it: the trial begins again, with an empty folder. */
START_TEST(a_lost_checkpoint_begins_again)
{
    struct trial *t = pause_one(0);
    AS_AUTO(as_freep) char *cache = file_join(fx.dir, "cache");
    ck_assert(file_remove_tree(cache, NULL) == AS_OK);
    LOCKED(fx.blobs[1].sha[0] = 'x');
    struct trial *again = offer_again(1, t, "ls $ASSAY_CHECKPOINTS; echo begun");
    AWAIT(again->completion);
    ck_assert_str_eq(outcome_of(again), "completed");
    ck_assert(
        log_has(again, "[assay-runner] the trial begins again, because its checkpoint is lost"));
    ck_assert(log_has(again, "\nbegun\n"));
    LOCKED(ck_assert_ptr_nonnull(again->lost));
    LOCKED(ck_assert_uint_eq(json_array_size(again->checkpoints), 0));
}
END_TEST

/* What was kept and what the server has are damaged. */
START_TEST(a_damaged_checkpoint_begins_again)
{
    AS_AUTO(str_done) struct str path = {0};
    struct trial *t = pause_one(0);
    fx_lock();
    const char *sha = fx.blobs[0].sha;
    str_printf(&path, "%s/cache/%.2s/%s", fx.dir, sha, sha);
    fx.blobs[0].bytes[0] ^= 1;
    fx_unlock();
    ck_assert(file_replace(path.s, "cut", 3, 0600, NULL) == AS_OK);
    struct trial *again = offer_again(1, t, "ls $ASSAY_CHECKPOINTS; echo begun");
    AWAIT(again->completion);
    ck_assert_str_eq(outcome_of(again), "completed");
    LOCKED(
        ck_assert_ptr_nonnull(strstr(json_string_value(again->lost), "arrived with the digest")));
    ck_assert(access(path.s, F_OK) < 0);
}
END_TEST

/* ---- members of groups ---- */

static void start_trainer(const char *name)
{
    static char trainer[400];
    (void)snprintf(trainer, sizeof trainer, "%s/tests/trial-runner/agent/%s", source_root(), name);
    start_runner("--trainer", trainer);
}

START_TEST(members_end_one_by_one)
{
    struct trial *paused = offer_member(0, "{\"dataset\":\"d\",\"do\":\"wait\"}", "g1");
    struct trial *pruned = offer_member(1, "{\"dataset\":\"d\",\"do\":\"wait\"}", "g1");
    struct trial *stays = offer_member(2, "{\"dataset\":\"d\",\"do\":\"wait\"}", "g1");
    paused->decision = "pause";
    pruned->decision = "prune";
    start_trainer("group_trainer.py");
    AWAIT(paused->completion && pruned->completion);
    ck_assert_str_eq(outcome_of(paused), "paused");
    ck_assert_uint_eq(json_array_size(paused->checkpoints), 1);
    ck_assert_str_eq(outcome_of(pruned), "pruned");
    ck_assert_ptr_null(pruned->checkpoints);
    AWAIT(stays->items && !stays->completion);
    int status = end_runner(SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_str_eq(outcome_of(stays), "released");
}
END_TEST

/* ---- ranks ---- */

static void decide_about_gang(const char *decision, int64_t at)
{
    fx_lock();
    fx.trials[0].decision = decision;
    fx.trials[0].decides_at = at;
    fx_unlock();
}

static void await_no_folders(void)
{
    AS_AUTO(as_freep) char *sweep = file_join(fx.work, "trials/s");
    AWAIT(access(sweep, F_OK) != 0);
}

/* The rank that leads is asked over its socket, and no rank gets SIGTERM: the attempt ends with its
 * checkpoint. Heartbeats repeat the decision to the others too, who go on until then. */
START_TEST(an_elastic_gang_is_told_through_its_leader)
{
    struct trial *t = &fx.trials[0];
    offer_gang(3, 1, true, "all", "{\"dataset\":\"d\",\"do\":\"train\"}");
    decide_about_gang("pause", 10);
    start_trainer("rank_trainer.py");
    AWAIT(t->completion);
    LOCKED(ck_assert_str_eq(outcome_of(t), "paused"));
    LOCKED(ck_assert_str_eq(reason_of(t), DECISION_REASON));
    LOCKED(ck_assert_uint_eq(json_array_size(t->checkpoints), 1));
    LOCKED(ck_assert_int_eq(gang.epoch, 1));
    await_no_folders();
    for (int i = 0; i < 3; i++)
        LOCKED(ck_assert_ptr_null(gang.seats[i].end));
    LOCKED(ck_assert_int_eq(gang.refused, 0));
}
END_TEST

/* The leader is lost at the rung: who leads next is told with its own measurements. */
START_TEST(the_next_leader_is_told)
{
    struct trial *t = &fx.trials[0];
    offer_gang(2, 1, true, "all", "{\"dataset\":\"d\",\"do\":\"train\"}");
    start_trainer("rank_trainer.py");
    AWAIT(gang.seats[0].joined_epoch == 1 && gang.seats[1].joined_epoch == 1);
    fx_lock();
    const char *at = strstr(gang.seats[0].endpoint, "pid=");
    kill((pid_t)strtol(at + 4, NULL, 10), SIGKILL);
    fx_unlock();
    decide_about_gang("prune", 20);
    AWAIT(t->completion);
    LOCKED(ck_assert_str_eq(outcome_of(t), "pruned"));
    LOCKED(ck_assert_int_eq(gang.epoch, 2));
    await_no_folders();
}
END_TEST

/* Of a command every rank is told: the leader ends the attempt, and the others end as it does. */
START_TEST(every_rank_of_a_command_is_told)
{
    struct trial *t = &fx.trials[0];
    offer_gang(3, 3, false, "all",
               "{\"command\":[\"sh\",\"-c\",\"trap 'echo s > $ASSAY_CHECKPOINTS/c; exit 0' TERM; "
               "echo '{\\\"step\\\": 3, \\\"loss\\\": 1}' > $ASSAY_REPORT; "
               "while :; do sleep 0.02; done\"]}");
    decide_about_gang("pause", 3);
    start_runner(NULL, NULL);
    AWAIT(gang.over);
    await_no_folders();
    for (int i = 1; i < 3; i++) /* nothing, or what every rank was told */
        LOCKED(ck_assert(
            !gang.seats[i].end ||
            as_streq(json_string_value(json_object_get(gang.seats[i].end, "outcome")), "paused")));
    LOCKED(ck_assert(!t->completion || as_streq(outcome_of(t), "paused")));
}
END_TEST

START_TEST(a_rank_without_a_process_is_told)
{
    struct trial *t = &fx.trials[0];
    offer_gang(2, 2, false, "first",
               "{\"command\":[\"sh\",\"-c\",\"echo '{\\\"step\\\": 3, \\\"loss\\\": 1}' > "
               "$ASSAY_REPORT; exec sleep 1000\"]}");
    decide_about_gang("prune", 3);
    start_runner(NULL, NULL);
    AWAIT(gang.over);
    await_no_folders();
    LOCKED(ck_assert(!t->completion || as_streq(outcome_of(t), "pruned")));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("early");
    TCase *t = tcase_create("early");
    tcase_add_checked_fixture(t, fx_setup, fx_teardown);
    tcase_add_test(t, a_trial_is_paused_with_its_checkpoint);
    tcase_add_test(t, a_trial_is_pruned);
    tcase_add_test(t, a_heartbeat_is_enough);
    tcase_add_test(t, a_trial_that_does_not_obey_is_killed);
    tcase_add_test(t, a_decision_stands_after_the_end);
    tcase_add_test(t, a_decision_about_a_result_on_disk);
    tcase_add_test(t, a_decision_goes_before_a_drain);
    tcase_add_test(t, a_trial_that_resumes_here_downloads_nothing);
    tcase_add_test(t, a_lost_checkpoint_begins_again);
    tcase_add_test(t, a_damaged_checkpoint_begins_again);
    tcase_add_test(t, members_end_one_by_one);
    suite_add_tcase(s, t);
    TCase *g = tcase_create("gangs");
    tcase_add_checked_fixture(g, fx_setup, fx_teardown);
    tcase_add_checked_fixture(g, NULL, gang_teardown);
    tcase_add_test(g, an_elastic_gang_is_told_through_its_leader);
    tcase_add_test(g, the_next_leader_is_told);
    tcase_add_test(g, every_rank_of_a_command_is_told);
    tcase_add_test(g, a_rank_without_a_process_is_told);
    suite_add_tcase(s, g);
    return s;
}
