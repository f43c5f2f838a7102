/* Ranks of gangs with the real runner: what its processes see and do when the world changes. The
 * server is gang_fixture.c; the trainer is rank_trainer.py, or a shell. */
#include "tests/trial-runner/agent/gang_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/roots.h"

#define DO(what) "{\"dataset\":\"d\",\"do\":\"" what "\"}"
#define SH(script) "{\"command\":[\"sh\",\"-c\",\"" script "\"]}"

static void start_trainer(void)
{
    static char trainer[400];
    (void)snprintf(trainer, sizeof trainer, "%s/tests/trial-runner/agent/rank_trainer.py",
                   source_root());
    start_runner("--trainer", trainer);
}

static void leave_cleanly(void)
{
    int status = end_runner(SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    AS_AUTO(as_freep) char *sweep = file_join(fx.work, "trials/s");
    ck_assert(access(sweep, F_OK) != 0); /* no folder of a rank is left */
}

/* The process of a seat, by its endpoint. */
static pid_t pid_of(int seat)
{
    fx_lock();
    const char *at = strstr(gang.seats[seat].endpoint, "pid=");
    pid_t pid = at ? (int)strtol(at + 4, NULL, 10) : 0;
    fx_unlock();
    ck_assert_int_gt(pid, 1);
    return pid;
}

static bool runs(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static const char *end_of(int seat)
{
    const char *s = json_string_value(json_object_get(gang.seats[seat].end, "outcome"));
    return s ? s : "";
}

static bool end_has(int seat, const char *part)
{
    const char *s = json_string_value(json_object_get(gang.seats[seat].end, "reason"));
    return s && strstr(s, part);
}

static bool all_joined(int64_t epoch)
{
    for (int i = 0; i < GANG_SEATS; i++)
        if (gang.seats[i].member && gang.seats[i].joined_epoch != epoch)
            return false;
    return gang.epoch == epoch;
}

static size_t list_size(const char *name)
{
    return json_array_size(json_object_get(gang.change, name));
}

/* ---- users' programs ---- */

START_TEST(a_program_sees_its_gang)
{
    struct trial *t = &fx.trials[0];
    AS_AUTO(as_freep) char *go = file_join(fx.dir, "go");
    (void)setenv("GO", go, 1);
    /* The first rank's end is the attempt's, and comes last here: it would drop the others. */
    offer_gang(3, 3, false, "all",
               SH("env | grep -E '^(RANK|LOCAL_|WORLD_|MASTER_|CUDA_V|TORCHEL|ASSAY_RANK)' | sort; "
                  "cat $ASSAY_HOSTFILE; echo '{\\\"loss\\\": '$RANK'}' > $ASSAY_REPORT; "
                  "echo $RANK > $ASSAY_ARTIFACTS/rank; "
                  "until [ $RANK != 0 -o -e $GO ]; do sleep 0.02; done"));
    start_runner(NULL, NULL);
    AWAIT(gang.seats[1].end && gang.seats[2].end);
    ck_assert(file_replace(go, "", 0, 0600, NULL) == AS_OK);
    AWAIT(t->completion);
    LOCKED(ck_assert_str_eq(outcome_of(t), "completed"));
    LOCKED(ck_assert_str_eq(end_of(1), "completed"));
    LOCKED(ck_assert_str_eq(end_of(2), "completed"));
    LOCKED(ck_assert_ptr_null(gang.seats[0].end)); /* its end is the attempt's */
    ck_assert(log_has(t, "ASSAY_RANK=0\n") && log_has(t, "ASSAY_RANKS=3\n"));
    ck_assert(log_has(t, "LOCAL_RANK=0\n") && log_has(t, "LOCAL_WORLD_SIZE=3\n"));
    ck_assert(log_has(t, "MASTER_ADDR=127.0.0.1\n") && log_has(t, "MASTER_PORT="));
    ck_assert(log_has(t, "RANK=0\n") && log_has(t, "WORLD_SIZE=3\n"));
    ck_assert(log_has(t, "TORCHELASTIC_RUN_ID=s/0.1\n") && log_has(t, "h slots=3\n"));
    ck_assert(log_has(t, "TORCHELASTIC_RESTART_COUNT=1\n"));
    ck_assert(log_has(t, "CUDA_VISIBLE_DEVICES=5,7\n") || log_has(t, "CUDA_VISIBLE_DEVICES=7,5\n"));
    ck_assert(!log_has(t, "ASSAY_RANK=1"));
    LOCKED(ck_assert_uint_eq(json_array_size(t->items), 1)); /* of rank 0 alone */
    LOCKED(ck_assert_uint_eq(json_array_size(t->artifacts), 1));
    LOCKED(ck_assert_int_eq(gang.refused, 0));
    AWAIT(fx.claim_seats > 0);
    leave_cleanly();
}
END_TEST

/* The second rank has ended when the first begins, which sees the GPUs of both. */
START_TEST(a_rank_that_begins_later_sees_all_gpus)
{
    struct trial *t = &fx.trials[0];
    offer_gang(2, 2, false, "all", SH("echo gpus=$CUDA_VISIBLE_DEVICES"));
    LOCKED(gang.alone = 1);
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    LOCKED(ck_assert_str_eq(end_of(1), "completed"));
    ck_assert(log_has(t, "gpus=5,7\n") || log_has(t, "gpus=7,5\n"));
    leave_cleanly();
}
END_TEST

START_TEST(one_rank_fails_and_all_end)
{
    offer_gang(3, 3, false, "all",
               SH("if [ $RANK = 1 ]; then echo the disk is gone; exit 3; fi; "
                  "trap 'echo told; exit 0' TERM; while true; do sleep 0.02; done"));
    start_runner(NULL, NULL);
    AWAIT(gang.over);
    fx_lock();
    ck_assert_str_eq(end_of(1), "failed");
    ck_assert_int_eq(json_integer_value(json_object_get(gang.seats[1].end, "exit_code")), 3);
    ck_assert(end_has(1, "the disk is gone"));
    fx_unlock();
    AS_AUTO(as_freep) char *sweep = file_join(fx.work, "trials/s");
    AWAIT(access(sweep, F_OK) != 0); /* all have ended, and nothing is left of them */
    LOCKED(ck_assert_ptr_null(fx.trials[0].completion));
    leave_cleanly();
}
END_TEST

START_TEST(the_leader_fails_and_its_reason_counts)
{
    struct trial *t = &fx.trials[0];
    offer_gang(2, 2, false, "all",
               SH("if [ $RANK = 0 ]; then echo no more; exit 4; fi; exec sleep 1000"));
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    LOCKED(ck_assert_str_eq(outcome_of(t), "failed"));
    LOCKED(ck_assert_str_eq(reason_of(t), "exit 4: no more"));
    AS_AUTO(as_freep) char *sweep = file_join(fx.work, "trials/s");
    AWAIT(access(sweep, F_OK) != 0);
    leave_cleanly();
}
END_TEST

START_TEST(only_the_first_rank_is_launched)
{
    struct trial *t = &fx.trials[0];
    offer_gang(3, 3, false, "first", SH("echo started $RANK of $WORLD_SIZE; cat $ASSAY_HOSTFILE"));
    start_runner(NULL, NULL);
    AWAIT(t->completion);
    LOCKED(ck_assert_str_eq(outcome_of(t), "completed"));
    ck_assert(log_has(t, "started 0 of 3\nh slots=3\n"));
    AS_AUTO(as_freep) char *sweep = file_join(fx.work, "trials/s");
    AWAIT(access(sweep, F_OK) != 0); /* the others were held until then */
    fx_lock();
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_null(gang.seats[i].end);
    fx_unlock();
    leave_cleanly();
}
END_TEST

START_TEST(a_held_rank_of_a_runner_that_leaves_is_released)
{
    offer_gang(2, 2, false, "first", SH("trap 'exit 0' TERM; while true; do sleep 0.02; done"));
    start_runner(NULL, NULL);
    AWAIT(gang.epoch == 1 && fx.trials[0].said);
    leave_cleanly();
    LOCKED(ck_assert(gang.over));
}
END_TEST

/* ---- elastic gangs ---- */

START_TEST(ranks_meet_and_the_leader_writes)
{
    struct trial *t = &fx.trials[0];
    offer_gang(3, 1, true, "all", DO("train"));
    start_trainer();
    AWAIT(all_joined(1));
    AWAIT(json_array_size(t->items) == 2);
    fx_lock(); /* of seat 0: its process */
    json_t *first = json_object_get(json_array_get(t->items, 0), "metrics");
    ck_assert_int_eq((pid_t)json_number_value(json_object_get(first, "loss")), pid_of(0));
    ck_assert(gang.writes[0] > 0 && gang.writes[1] == 0 && gang.refused == 0);
    fx_unlock();
    AWAIT(json_integer_value(json_object_get(t->said, "sent_bytes")) == 100);
    LOCKED(ck_assert_int_eq(json_integer_value(json_object_get(t->said, "step")), 11));
}
END_TEST

/* The leader is killed: the next one writes, from the first measurement on. */
START_TEST(another_leads_when_the_leader_dies)
{
    struct trial *t = &fx.trials[0];
    offer_gang(3, 1, true, "all", DO("train"));
    start_trainer();
    AWAIT(all_joined(1));
    AWAIT(json_array_size(t->items) == 2);
    kill(pid_of(0), SIGKILL);
    AWAIT(all_joined(2));
    fx_lock();
    ck_assert_int_eq(json_integer_value(json_object_get(gang.seats[0].end, "signal")), SIGKILL);
    ck_assert(gang.change == NULL); /* nobody had to be accused */
    fx_unlock();
    AWAIT(json_array_size(t->items) == 5); /* steps 1, 10 and 20 of seat 1 */
    fx_lock();
    json_t *third = json_object_get(json_array_get(t->items, 2), "metrics");
    ck_assert_int_eq((pid_t)json_number_value(json_object_get(third, "loss")), pid_of(1));
    ck_assert_int_gt(gang.writes[1], 0);
    fx_unlock();
}
END_TEST

START_TEST(a_rank_comes_later)
{
    offer_gang(2, 1, true, "all", DO("train"));
    start_trainer();
    AWAIT(all_joined(1));
    offer_seat(2, DO("train"));
    AWAIT(all_joined(2));
    LOCKED(ck_assert(gang.seats[2].member && runs(pid_of(0)) && runs(pid_of(2))));
}
END_TEST

START_TEST(who_is_in_no_world_is_killed)
{
    offer_gang(3, 1, true, "all", DO("train"));
    start_trainer();
    AWAIT(all_joined(1));
    pid_t pid = pid_of(1);
    drop_member(1);
    AWAIT(!runs(pid) && all_joined(2));
    fx_lock();
    ck_assert_ptr_null(gang.seats[1].end); /* the server knows */
    fx_unlock();
    ck_assert(runs(pid_of(0)) && runs(pid_of(2)));
}
END_TEST

START_TEST(a_member_of_another_machine_is_accused)
{
    offer_gang(2, 1, true, "all", DO("accuse"));
    start_trainer();
    AWAIT(all_joined(1));
    add_stranger(2);
    AWAIT(gang.epoch == 3 && gang.seats[0].joined_epoch == 3 && gang.seats[1].joined_epoch == 3);
    fx_lock();
    ck_assert(list_size("lost") == 1 && list_size("left") == 0 && !gang.seats[2].member);
    ck_assert_int_eq(json_integer_value(json_object_get(gang.change, "epoch")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(gang.change, "step")) >= 20, 1);
    fx_unlock();
}
END_TEST

/* All leave but the last, which writes its checkpoint; no rank is told to stop while others need
 * it. */
START_TEST(ranks_of_a_runner_that_leaves)
{
    struct trial *t = &fx.trials[0];
    offer_gang(3, 1, true, "all", DO("train"));
    start_trainer();
    AWAIT(all_joined(1));
    leave_cleanly();
    LOCKED(ck_assert_str_eq(outcome_of(t), "released"));
    LOCKED(ck_assert_uint_eq(json_array_size(t->checkpoints), 1));
    LOCKED(ck_assert_int_eq(gang.epoch, 3));
    for (int i = 0; i < 3; i++)
        LOCKED(ck_assert_ptr_null(gang.seats[i].end));
}
END_TEST

/* A member of another machine stays: all ranks of this runner leave, and the trial goes on
 * there. */
START_TEST(others_go_on_when_a_runner_leaves)
{
    offer_gang(2, 1, true, "all", DO("train"));
    start_trainer();
    AWAIT(all_joined(1));
    add_stranger(2);
    AWAIT(gang.seats[0].joined_epoch == 2 && gang.seats[1].joined_epoch == 2);
    leave_cleanly();
    LOCKED(
        ck_assert(gang.epoch == 4 && !gang.over && gang.seats[2].member && !gang.seats[0].member));
    LOCKED(ck_assert(list_size("left") == 1 && list_size("lost") == 0));
    LOCKED(ck_assert_ptr_null(fx.trials[0].completion));
}
END_TEST

/* Between two worlds the ranks need no server. */
START_TEST(a_rank_trains_on_without_a_server)
{
    offer_gang(2, 1, true, "all", DO("train"));
    start_trainer();
    AWAIT(all_joined(1));
    fx_lock();
    fx.down = true;
    fx_unlock();
    AWAIT(fx.answers_down >= 10);
    pid_t pid = pid_of(0);
    ck_assert(runs(pid) && runs(pid_of(1)));
    kill(pid, SIGKILL);
    AWAIT(!runs(pid));
    fx_lock();
    ck_assert_int_eq(gang.epoch, 1);
    fx.down = false;
    fx_unlock();
    AWAIT(all_joined(2));
}
END_TEST

START_TEST(a_rank_that_breaks_the_protocol_is_lost)
{
    offer_gang(2, 1, true, "all", DO("garbage"));
    start_trainer();
    AWAIT(gang.seats[1].end && gang.epoch == 2);
    AWAIT(all_joined(2));
}
END_TEST

START_TEST(an_error_of_a_rank_is_the_trials)
{
    offer_gang(2, 1, true, "all", DO("fail"));
    start_trainer();
    AWAIT(gang.over);
    fx_lock();
    ck_assert_str_eq(end_of(1), "failed");
    ck_assert(end_has(1, "the loss is not finite"));
    fx_unlock();
    AS_AUTO(as_freep) char *sweep = file_join(fx.work, "trials/s");
    AWAIT(access(sweep, F_OK) != 0);
    leave_cleanly();
}
END_TEST

START_TEST(a_completed_gang_completes_once)
{
    struct trial *t = &fx.trials[0];
    offer_gang(3, 1, true, "all", DO("complete"));
    start_trainer();
    AWAIT(t->completion);
    LOCKED(ck_assert_str_eq(outcome_of(t), "completed"));
    LOCKED(ck_assert_ptr_null(gang.seats[0].end));
    leave_cleanly();
}
END_TEST

static void add(Suite *s, const char *name, const TTest *test)
{
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, fx_setup, fx_teardown);
    tcase_add_checked_fixture(t, NULL, gang_teardown);
    tcase_add_test(t, test);
    suite_add_tcase(s, t);
}
#define ADD(test) add(s, #test, test)

TEST_SUITE()
{
    Suite *s = suite_create("ranks");
    ADD(a_program_sees_its_gang);
    ADD(a_rank_that_begins_later_sees_all_gpus);
    ADD(one_rank_fails_and_all_end);
    ADD(the_leader_fails_and_its_reason_counts);
    ADD(only_the_first_rank_is_launched);
    ADD(a_held_rank_of_a_runner_that_leaves_is_released);
    ADD(ranks_meet_and_the_leader_writes);
    ADD(another_leads_when_the_leader_dies);
    ADD(a_rank_comes_later);
    ADD(who_is_in_no_world_is_killed);
    ADD(a_member_of_another_machine_is_accused);
    ADD(ranks_of_a_runner_that_leaves);
    ADD(others_go_on_when_a_runner_leaves);
    ADD(a_rank_trains_on_without_a_server);
    ADD(a_rank_that_breaks_the_protocol_is_lost);
    ADD(an_error_of_a_rank_is_the_trials);
    ADD(a_completed_gang_completes_once);
    return s;
}
