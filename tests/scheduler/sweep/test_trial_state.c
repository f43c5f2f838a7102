/* Every state with every event, written a second time as a picture. */
#include <string.h>

#include "base/mem.h"
#include "scheduler/sweep/trial_state.h"
#include "tests/support/check_main.h"

/* One letter for each event, in the order of enum trial_event: claim, complete, fail, lose,
 * release, cancel, prune, pause, resume, timeout, keep, retry. Q R P C N F X: the new state; . :
 * a conflict. */
static const char *const trial_picture[TRIAL_STATES] = {
    [TRIAL_QUEUED] = "RC...X......",    [TRIAL_RUNNING] = ".CFQQXNP.FC.",
    [TRIAL_PAUSED] = ".....XN.Q...",    [TRIAL_COMPLETED] = "............",
    [TRIAL_PRUNED] = "............",    [TRIAL_FAILED] = "...........Q",
    [TRIAL_CANCELLED] = "...........Q",
};
static const char trial_letters[] = "QRPCNFX";

/* pause, resume, cancel, exhaust, timeout, target, settle, finish, fail, reopen. R P G C F X: the
 * new state. */
static const char *const sweep_picture[SWEEP_STATES] = {
    [SWEEP_RUNNING] = "P.XGGGG.F.",   [SWEEP_PAUSED] = ".RXGGGG.F.",
    [SWEEP_FINISHING] = "..X....CFR", [SWEEP_COMPLETED] = ".........R",
    [SWEEP_FAILED] = ".........R",    [SWEEP_CANCELLED] = ".........R",
};
static const char sweep_letters[] = "RPGCFX";

START_TEST(every_trial_state_and_event)
{
    for (int from = 0; from < TRIAL_STATES; from++) {
        ck_assert_uint_eq(strlen(trial_picture[from]), TRIAL_EVENTS);
        for (int ev = 0; ev < TRIAL_EVENTS; ev++) {
            struct trial_step step = {0};
            struct as_err err = {0};
            as_status st = trial_step((trial_state)from, (trial_event)ev, 0, 3, &step, &err);
            if (trial_picture[from][ev] == '.') {
                ck_fails(st, AS_E_CONFLICT, err, trial_state_format((trial_state)from));
                ck_assert_ptr_nonnull(strstr(err.msg, trial_event_format((trial_event)ev)));
                ck_assert_ptr_null(step.reason);
                continue;
            }
            ck_ok(st, err);
            ck_assert_int_eq(trial_letters[step.to], trial_picture[from][ev]);
            ck_assert_int_eq(step.burns_restart, ev == TRIAL_EV_LOSE);
            ck_assert_uint_gt(strlen(step.reason), 5);
        }
    }
}
END_TEST

START_TEST(every_sweep_state_and_event)
{
    for (int from = 0; from < SWEEP_STATES; from++) {
        ck_assert_uint_eq(strlen(sweep_picture[from]), SWEEP_EVENTS);
        for (int ev = 0; ev < SWEEP_EVENTS; ev++) {
            struct sweep_step step = {0};
            struct as_err err = {0};
            as_status st = sweep_step((sweep_state)from, (sweep_event)ev, &step, &err);
            if (sweep_picture[from][ev] == '.') {
                ck_fails(st, AS_E_CONFLICT, err, sweep_state_format((sweep_state)from));
                ck_assert_ptr_nonnull(strstr(err.msg, sweep_event_format((sweep_event)ev)));
                continue;
            }
            ck_ok(st, err);
            ck_assert_int_eq(sweep_letters[step.to], sweep_picture[from][ev]);
            ck_assert_uint_gt(strlen(step.reason), 5);
        }
    }
}
END_TEST

START_TEST(only_people_lead_out_of_an_end)
{
    for (int st = 0; st < TRIAL_STATES; st++)
        ck_assert_int_eq(trial_state_is_final((trial_state)st),
                         strspn(trial_picture[st], ".") >= TRIAL_EV_RETRY);
    for (int st = 0; st < SWEEP_STATES; st++)
        ck_assert_int_eq(sweep_state_is_final((sweep_state)st),
                         strspn(sweep_picture[st], ".") >= SWEEP_EV_REOPEN);
}
END_TEST

START_TEST(losing_burns_restarts_until_none_is_left)
{
    struct trial_step step;
    struct as_err err = {0};
    for (int64_t used = 0; used < 3; used++) {
        ck_ok(trial_step(TRIAL_RUNNING, TRIAL_EV_LOSE, used, 3, &step, &err), err);
        ck_assert(step.to == TRIAL_QUEUED && step.burns_restart);
    }
    ck_ok(trial_step(TRIAL_RUNNING, TRIAL_EV_LOSE, 3, 3, &step, &err), err);
    ck_assert(step.to == TRIAL_FAILED && !step.burns_restart);
    ck_assert_ptr_nonnull(strstr(step.reason, "no restart is left"));
    ck_ok(trial_step(TRIAL_RUNNING, TRIAL_EV_LOSE, 0, 0, &step, &err), err);
    ck_assert_int_eq(step.to, TRIAL_FAILED);
    ck_ok(trial_step(TRIAL_RUNNING, TRIAL_EV_RELEASE, 3, 3, &step, &err), err);
    ck_assert(step.to == TRIAL_QUEUED && !step.burns_restart);
}
END_TEST

START_TEST(names_survive)
{
    struct as_err err = {0};
    for (int s = 0; s < TRIAL_STATES; s++) {
        trial_state back = TRIAL_QUEUED;
        ck_ok(trial_state_parse(trial_state_format((trial_state)s), &back, &err), err);
        ck_assert_int_eq(back, s);
    }
    for (int s = 0; s < SWEEP_STATES; s++) {
        sweep_state back = SWEEP_RUNNING;
        ck_ok(sweep_state_parse(sweep_state_format((sweep_state)s), &back, &err), err);
        ck_assert_int_eq(back, s);
    }
    trial_state t;
    sweep_state w;
    ck_fails(trial_state_parse("done", &t, &err), AS_E_INVAL, err, "queued, running, paused");
    ck_fails(sweep_state_parse(NULL, &w, &err), AS_E_INVAL, err, "running, paused, finishing");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("scheduler/model/trial_state");
    TCase *t = tcase_create("states");
    tcase_add_test(t, every_trial_state_and_event);
    tcase_add_test(t, every_sweep_state_and_event);
    tcase_add_test(t, only_people_lead_out_of_an_end);
    tcase_add_test(t, losing_burns_restarts_until_none_is_left);
    tcase_add_test(t, names_survive);
    suite_add_tcase(s, t);
    return s;
}
