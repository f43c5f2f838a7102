/* Trials that are tried again: states, limits, the order of ends, and what the search sees. */
#include "scheduler/services/trial_retry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/suggester/sweep_history.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static struct trial_row row;
static int64_t epoch;

static void begin(void)
{
    epoch = make_runner(&s, "r", 16);
}

static as_status retry(int64_t number)
{
    return trial_retry(s.db, &s.a, "a", number, "tok1", &row, &err);
}

static int64_t retry_all(trial_state state)
{
    struct retried done;
    const struct retry_request req = {.state = state};
    ck_ok(trials_retry(s.db, &s.a, "a", &req, NULL, &done, &err), err);
    return (int64_t)done.n;
}

static void set_state(sweep_state state)
{
    struct sweep_changed changed;
    const struct sweep_patch p = {.state = &state};
    ck_ok(sweep_change(s.db, &s.a, "a", &p, NULL, &changed, &err), err);
}

/* A trial in each state; the number of each is its state. */
START_TEST(only_what_failed_or_was_cancelled)
{
    make_sweep(&s, "a", "'max_trials': 20, 'max_restarts': 0", "");
    struct claim_list list = claim(&s, "r", epoch, 4);
    finish(&s, ref_of(&list.rows[0]), 1);
    end(&s, ref_of(&list.rows[1]), OUTCOME_RETRY); /* no restart is left: it fails */
    ck_ok(trial_cancel(s.db, &s.a, "a", 2, &row, &err), err);
    ck_fails(retry(0), AS_E_CONFLICT, err, "is completed");
    ck_fails(retry(3), AS_E_CONFLICT, err, "is running");
    ck_fails(retry(4), AS_E_NOT_FOUND, err, "no trial 4");
    ck_ok(retry(1), err);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 0);
    ck_assert_int_eq(row.finish_seq, 0);
    ck_assert_int_eq(row.finished_ms, 0);
    ck_assert_ptr_nonnull(strstr(row.retries, "\"retried_by\": \"tok1\""));
    ck_fails(retry(1), AS_E_CONFLICT, err, "is queued");
    ck_ok(retry(2), err);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_FAILED], 0);
    struct claim_list again = claim(&s, "r", epoch, 2);
    ck_assert_uint_eq(again.n, 2);
    ck_assert_int_eq(again.rows[0].number, 1);
    ck_assert_int_eq(again.rows[0].attempt, 2);
    end(&s, ref_of(&again.rows[0]), OUTCOME_FAILED);
    finish(&s, ref_of(&again.rows[1]), 1);
    ck_ok(retry(1), err); /* as often as one likes */
    ck_assert_int_eq(pg_fixture_i64(s.url, "select json_array_length(retries::json) from trial "
                                           "where number = 1"),
                     2);
    /* the ends 0 1 2, two retries, two ends, a retry */
    ck_assert_int_eq(pg_fixture_i64(s.url, "select finish_seq from sweep"), 8);
    /* a failed report of the earlier attempt that comes twice changes nothing */
    end(&s, ref_of(&again.rows[0]), OUTCOME_FAILED);
    ck_assert_int_eq(trial_of(&s, "a", 1).state, TRIAL_QUEUED);
}
END_TEST

START_TEST(known_results_are_not_run)
{
    make_sweep(&s, "a", "'max_trials': 20", "");
    json_t *body = json_of("{'params': {'x': 0.5}, 'state': 'failed'}");
    ck_ok(trial_add(s.db, &s.a, "a", body, NULL, &row, &err), err);
    json_decref(body);
    ck_fails(retry(0), AS_E_CONFLICT, err, "was added with its result");
    ck_assert_int_eq(retry_all(TRIAL_FAILED), 0);
}
END_TEST

START_TEST(an_ended_sweep_runs_on_within_its_limits)
{
    make_sweep(&s, "a", "'max_trials': 3, 'max_failed_trials': 1", "");
    struct claim_list list = claim(&s, "r", epoch, 3);
    finish(&s, ref_of(&list.rows[0]), 1);
    end(&s, ref_of(&list.rows[1]), OUTCOME_FAILED);
    end(&s, ref_of(&list.rows[2]), OUTCOME_FAILED);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FAILED);
    ck_ok(retry(1), err); /* one failure is left, and one is allowed */
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_assert_int_eq(c.number, 1);
    ck_assert_uint_eq(claim(&s, "r", epoch, 4).n, 0); /* max_trials holds */
    end(&s, ref_of(&c), OUTCOME_FAILED);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FAILED);
    ck_assert_int_eq(retry_all(TRIAL_FAILED), 2);
    list = claim(&s, "r", epoch, 4);
    ck_assert_uint_eq(list.n, 2);
    finish(&s, ref_of(&list.rows[0]), 2);
    finish(&s, ref_of(&list.rows[1]), 3);
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    ck_assert_int_eq(retry_all(TRIAL_FAILED), 0);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
}
END_TEST

START_TEST(a_limit_that_holds_refuses)
{
    make_sweep(&s, "a", "'max_trials': 3, 'max_failed_trials': 0", "");
    struct claim_list list = claim(&s, "r", epoch, 3);
    end(&s, ref_of(&list.rows[0]), OUTCOME_FAILED); /* the others are cancelled with the sweep */
    ck_fails(retry(1), AS_E_CONFLICT, err, "max_failed_trials is 0");
    ck_assert_int_eq(trial_of(&s, "a", 1).state, TRIAL_CANCELLED);
    ck_ok(retry(0), err);
    ck_assert_int_eq(retry_all(TRIAL_CANCELLED), 2);
}
END_TEST

START_TEST(a_cancelled_sweep)
{
    make_sweep(&s, "a", "'max_trials': 3", "");
    struct claim_list list = claim(&s, "r", epoch, 2);
    set_state(SWEEP_CANCELLED);
    ck_fails(retry(0), AS_E_CONFLICT, err, "resume it first");
    set_state(SWEEP_RUNNING);
    ck_ok(retry(0), err);
    list = claim(&s, "r", epoch, 9);
    ck_assert_uint_eq(list.n, 2); /* 0 again, and 2 */
    set_state(SWEEP_CANCELLED);
    ck_assert_int_eq(retry_all(TRIAL_CANCELLED), 3); /* all exist: only they run */
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
}
END_TEST

/* Without a checkpoint a trial begins anew, so that it is not completed by a value of before. */
START_TEST(values_of_before_do_not_count)
{
    make_sweep(&s, "a", "'max_trials': 2", "");
    struct claim_list list = claim(&s, "r", epoch, 2);
    for (int i = 0; i < 2; i++) {
        struct attempt_ref ref = ref_of(&list.rows[i]);
        measure(&s, ref, "loss", 1, 0.5);
        char sha[SHA256_HEX_SIZE];
        put_blob(&s, "state", sha);
        const struct file_row file = {.path = "c", .size = 5, .sha256 = sha};
        if (i == 1)
            ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, &file, 1, &err), err);
        end(&s, ref, OUTCOME_FAILED);
    }
    ck_assert_int_eq(retry_all(TRIAL_FAILED), 2);
    ck_assert(!trial_of(&s, "a", 0).has_value && trial_of(&s, "a", 1).has_value);
    list = claim(&s, "r", epoch, 2);
    struct attempt_ref first = ref_of(&list.rows[0]);
    struct completion c = {.outcome = OUTCOME_COMPLETED};
    struct trial_row got;
    ck_fails(attempt_complete(s.db, &s.a, &first, NULL, &c, &got, &err), AS_E_UNSUPPORTED, err,
             "'loss' was never reported");
    ck_assert_int_eq(end(&s, ref_of(&list.rows[1]), OUTCOME_COMPLETED).state, TRIAL_COMPLETED);
}
END_TEST

static observation_state seen_of(struct sweep_history *h, uint64_t number, bool *ret_there)
{
    struct history v = sweep_history_view(h);
    *ret_there = false;
    for (size_t i = 0; i < v.n; i++) {
        if (v.trials[i].number != number)
            continue;
        *ret_there = true;
        return v.trials[i].state;
    }
    return OBSERVED_PENDING;
}

/* A history that was cached through it all, and one that is read now. */
static void check_seen(struct sweep_history *warm, uint64_t number, bool there,
                       observation_state state)
{
    bool is_there;
    struct sweep_history *cold =
        sweep_history_create(pg_fixture_i64(s.url, "select key from sweep"));
    ck_ok(sweep_history_load(s.db, warm, &err), err);
    ck_ok(sweep_history_load(s.db, cold, &err), err);
    ck_assert_int_eq(seen_of(warm, number, &is_there), state);
    ck_assert_int_eq(is_there, there);
    ck_assert_int_eq(seen_of(cold, number, &is_there), state);
    ck_assert_int_eq(is_there, there);
    sweep_history_free(cold);
}

START_TEST(the_search_sees_it_run_again)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    struct sweep_history *h = sweep_history_create(pg_fixture_i64(s.url, "select key from sweep"));
    ask(&s, "a", "c", 3);
    tell(&s, "a", 0, "c", NAN);
    ck_ok(trial_cancel(s.db, &s.a, "a", 1, &row, &err), err);
    check_seen(h, 0, true, OBSERVED_FAILED);
    check_seen(h, 1, false, OBSERVED_PENDING);
    ck_ok(retry(0), err);
    ck_ok(retry(1), err);
    check_seen(h, 0, true, OBSERVED_PENDING);
    check_seen(h, 1, true, OBSERVED_PENDING);
    ask(&s, "a", "d", 2);
    check_seen(h, 1, true, OBSERVED_PENDING);
    tell(&s, "a", 0, "d", 0.25);
    tell(&s, "a", 1, "d", NAN);
    check_seen(h, 0, true, OBSERVED_COMPLETED);
    check_seen(h, 1, true, OBSERVED_FAILED);
    sweep_history_free(h);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/services/trial_retry");
    TCase *c = service_case(suite, "retry", &s, 0);
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_add_test(c, only_what_failed_or_was_cancelled);
    tcase_add_test(c, known_results_are_not_run);
    tcase_add_test(c, an_ended_sweep_runs_on_within_its_limits);
    tcase_add_test(c, a_limit_that_holds_refuses);
    tcase_add_test(c, a_cancelled_sweep);
    tcase_add_test(c, values_of_before_do_not_count);
    tcase_add_test(c, the_search_sees_it_run_again);
    return suite;
}
