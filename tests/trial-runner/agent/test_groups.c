/* Trials that share a process: how the runner handles a group's members, their ends, and the end of
 * their process. The trainer is group_trainer.py, whose members do what their document says. */
#include "tests/trial-runner/agent/runner_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/roots.h"

#define DO(what) "{\"dataset\":\"d\",\"do\":\"" what "\"}"

static void start(void)
{
    static char trainer[400];
    (void)snprintf(trainer, sizeof trainer, "%s/tests/trial-runner/agent/group_trainer.py",
                   source_root());
    start_runner("--trainer", trainer);
}

/* The process that trained it, by the measurement that it left. */
static json_int_t pid_of(const struct trial *t)
{
    fx_lock();
    json_t *first = json_array_get(t->items, 0);
    json_int_t pid =
        (json_int_t)json_number_value(json_object_get(json_object_get(first, "metrics"), "loss"));
    fx_unlock();
    return pid;
}

static void leave_cleanly(void)
{
    int status = end_runner(SIGTERM);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    AS_AUTO(as_freep) char *trials = file_join(fx.work, "trials/.groups");
    ck_assert(rmdir(trials) == 0 || access(trials, F_OK) != 0); /* no folder of a group is left */
}

START_TEST(members_share_a_process_and_end_alone)
{
    struct trial *a = offer_member(0, DO("train"), "g1"), *b = offer_member(1, DO("fail"), "g1");
    struct trial *c = offer_member(2, DO("train"), "g1");
    start();
    AWAIT(a->completion && b->completion && c->completion);
    ck_assert_str_eq(outcome_of(a), "completed");
    ck_assert_str_eq(outcome_of(b), "failed");
    ck_assert_str_eq(reason_of(b), "exit 1: the loss is not finite");
    ck_assert_str_eq(outcome_of(c), "completed");
    ck_assert(pid_of(a) > 1 && pid_of(a) == pid_of(b) && pid_of(a) == pid_of(c));
    ck_assert_uint_eq(json_array_size(a->artifacts), 1);
    /* each log has its own member's line, and those of the process, marked */
    ck_assert(log_has(a, "only s/0.1\n") && !log_has(a, "only s/1") && !log_has(a, "only s/2"));
    ck_assert(log_has(c, "only s/2.1\n") && !log_has(c, "only s/0") && !log_has(c, "only s/1"));
    ck_assert(log_has(a, "[group] slots 4 gpus 5\n"));
    AWAIT(fx.empty_refills == 1); /* it asked for more, there was nothing, it closed */
    leave_cleanly();
}
END_TEST

START_TEST(groups_take_a_slot_and_their_gpus_once)
{
    struct trial *t[6];
    for (int i = 0; i < 6; i++)
        t[i] = offer_member(i, DO("wait"), i < 3 ? "g1" : "g2"); /* GPUs: two in all */
    start();
    for (int i = 0; i < 6; i++)
        AWAIT(t[i]->items && t[i]->log);
    AWAIT(strstr(t[0]->log, "slots 4 gpus 5\n") && strstr(t[3]->log, "slots 4 gpus 7\n"));
    ck_assert(pid_of(t[0]) == pid_of(t[2]) && pid_of(t[0]) != pid_of(t[3]));
    leave_cleanly();
    for (int i = 0; i < 6; i++) {
        ck_assert_str_eq(outcome_of(t[i]), "released");
        ck_assert_uint_eq(json_array_size(t[i]->checkpoints), 1);
    }
}
END_TEST

START_TEST(a_member_that_left_makes_room_for_the_next)
{
    struct trial *stays = offer_member(0, DO("wait"), "g1"),
                 *first = offer_member(1, DO("train"), "g1");
    struct trial *next = offer_member(2, DO("train"), "g1");
    next->refills = "g1";
    start();
    AWAIT(first->completion && next->completion && stays->items);
    AWAIT(fx.empty_refills == 1);
    ck_assert_int_eq(fx.refill_claims, 2);
    ck_assert(pid_of(next) == pid_of(stays));
    fx_lock();
    stays->stop = true;
    fx_unlock();
    AWAIT(kill((pid_t)pid_of(stays), 0) != 0); /* closed and empty: the process has left */
    ck_assert_ptr_null(stays->completion);     /* the server stopped it: nothing is written */
    leave_cleanly();
}
END_TEST

/* While the next member is being computed, a group that trains stays open, however long it takes.
 */
START_TEST(a_group_waits_for_a_member_that_is_being_computed)
{
    struct trial *stays = offer_member(0, DO("wait"), "g1"),
                 *first = offer_member(1, DO("train"), "g1");
    fx.pending = true;
    start();
    AWAIT(first->completion && stays->items);
    AWAIT(fx.empty_refills > 2);
    struct trial *next = offer_member(2, DO("train"), "g1");
    fx_lock();
    next->refills = "g1";
    fx_unlock();
    AWAIT(next->completion);
    ck_assert(pid_of(next) == pid_of(stays));
    fx_lock();
    stays->stop = true; /* nobody trains: it is not waited for any longer */
    fx_unlock();
    AWAIT(kill((pid_t)pid_of(stays), 0) != 0);
    leave_cleanly();
}
END_TEST

/* The throughput that a group has sent is in the next claim, also if its members have ended
 * before. */
START_TEST(the_next_claim_asks_for_groups_as_measured)
{
    struct trial *a = offer_member(0, DO("measure"), "g1");
    start();
    AWAIT(a->completion && fx.measured);
    fx_lock();
    const json_t *first = json_array_get(fx.measured, 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "shape")), "mlp 1-2");
    ck_assert_int_eq(json_integer_value(json_object_get(first, "members")), 16);
    fx_unlock();
    leave_cleanly();
}
END_TEST

START_TEST(a_stop_of_one_member_leaves_the_others)
{
    struct trial *a = offer_member(0, DO("wait"), "g1"), *b = offer_member(1, DO("wait"), "g1");
    start();
    AWAIT(a->items && b->items);
    fx_lock();
    a->stop = true;
    fx_unlock();
    AWAIT(fx.refill_claims > 0); /* its place is free */
    ck_assert_int_eq(kill((pid_t)pid_of(b), 0), 0);
    leave_cleanly();
    ck_assert_ptr_null(a->completion);
    ck_assert_str_eq(outcome_of(b), "released");
}
END_TEST

/* A member with this document beside one that waits: both are tried again. Returns the one that
 * waits. */
static struct trial *both_are_tried_again(const char *train)
{
    struct trial *a = offer_member(0, DO("wait"), "g1"), *b = offer_member(1, train, "g1");
    start();
    AWAIT(a->completion && b->completion);
    ck_assert_str_eq(outcome_of(a), "retry");
    ck_assert_str_eq(outcome_of(b), "retry");
    return a;
}

START_TEST(a_crash_is_tried_again_by_all)
{
    struct trial *a = both_are_tried_again(DO("crash"));
    ck_assert_ptr_nonnull(
        strstr(reason_of(a), "the process of its group ended (signal 11): about to crash"));
    ck_assert(log_has(a, "[group] about to crash\n"));
    leave_cleanly();
}
END_TEST

START_TEST(a_process_that_leaves_early_completes_nothing)
{
    (void)both_are_tried_again(DO("leave"));
    leave_cleanly();
}
END_TEST

/* The runner was frozen when the member ended, and looks again after its timeout. */
START_TEST(a_member_that_ended_in_time_is_no_timeout)
{
    /* On a busy machine a member may take so long to begin: then once more, with more time. */
    for (int timeout_ms = 4000, is_in_time = 0; !is_in_time; timeout_ms *= 2) {
        ck_assert_int_le(timeout_ms, 64000);
        struct trial *a = offer_member(0, DO("linger"), "g1");
        AS_AUTO(as_freep) char *go = file_join(fx.work, "trials/s/0/1/artifacts/go");
        json_object_set_new(a->claim, "timeout_ms", json_integer(timeout_ms));
        start();
        AWAIT(a->items || a->completion);
        ck_assert_int_eq(kill(fx.runner, SIGSTOP), 0);
        if (!a->completion)
            ck_ok(file_replace(go, "", 0, 0600, NULL), (struct as_err){0});
        clock_sleep_ms(timeout_ms); /* that is the fault */
        ck_assert_int_eq(kill(fx.runner, SIGCONT), 0);
        AWAIT(a->completion);
        is_in_time = strcmp(outcome_of(a), "completed") == 0;
        leave_cleanly();
        if (!is_in_time) {
            fx_teardown();
            fx_setup();
        }
    }
}
END_TEST

START_TEST(a_member_that_does_not_stop_costs_its_group)
{
    struct trial *a = offer_member(0, DO("deaf"), "g1"), *b = offer_member(1, DO("wait"), "g1");
    json_object_set_new(a->claim, "grace_ms", json_integer(300));
    start();
    AWAIT(a->items && b->items);
    fx_lock();
    a->stop = true;
    fx_unlock();
    AWAIT(b->completion); /* killed once the grace period is over */
    ck_assert_str_eq(outcome_of(b), "retry");
    ck_assert_ptr_null(a->completion);
    leave_cleanly();
}
END_TEST

START_TEST(nonsense_on_the_socket_ends_the_group)
{
    (void)both_are_tried_again(DO("garbage"));
    leave_cleanly();
}
END_TEST

START_TEST(a_trainer_that_cannot_be_run_fails_the_members)
{
    struct trial *a = offer_member(0, DO("train"), "g1");
    AS_AUTO(as_freep) char *program = file_join(fx.dir, "trainer");
    ck_assert(file_replace(program, "nothing\n", 8, 0600, NULL) == AS_OK);
    start_runner("--trainer", program);
    AWAIT(a->completion);
    ck_assert_str_eq(outcome_of(a), "failed");
    ck_assert_ptr_nonnull(strstr(reason_of(a), "cannot run"));
    leave_cleanly();
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("groups");
    TCase *t = tcase_create("groups");
    tcase_add_checked_fixture(t, fx_setup, fx_teardown);
    tcase_add_test(t, members_share_a_process_and_end_alone);
    tcase_add_test(t, groups_take_a_slot_and_their_gpus_once);
    tcase_add_test(t, a_member_that_left_makes_room_for_the_next);
    tcase_add_test(t, a_group_waits_for_a_member_that_is_being_computed);
    tcase_add_test(t, the_next_claim_asks_for_groups_as_measured);
    tcase_add_test(t, a_stop_of_one_member_leaves_the_others);
    tcase_add_test(t, a_crash_is_tried_again_by_all);
    tcase_add_test(t, a_process_that_leaves_early_completes_nothing);
    tcase_add_test(t, a_member_that_ended_in_time_is_no_timeout);
    tcase_add_test(t, a_member_that_does_not_stop_costs_its_group);
    tcase_add_test(t, nonsense_on_the_socket_ends_the_group);
    tcase_add_test(t, a_trainer_that_cannot_be_run_fails_the_members);
    suite_add_tcase(s, t);
    return s;
}
