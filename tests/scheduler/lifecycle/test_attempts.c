/* A trial's life: its fences, and what is recorded. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static int64_t epoch;

static void begin(void)
{
    epoch = make_runner(&s, "r", 64);
}

static as_status complete(struct attempt_ref ref, attempt_outcome outcome, struct trial_row *ret)
{
    struct completion c = {.outcome = outcome};
    return attempt_complete(s.db, &s.a, &ref, NULL, &c, ret, &err);
}

START_TEST(a_life)
{
    struct trial_detail d;
    make_sweep(&s, "a", "'max_trials': 2", ", 'ensemble': false");
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_assert_str_eq(c.sweep, "a");
    ck_assert_int_eq(c.number, 0);
    ck_assert_int_eq(c.attempt, 1);
    ck_assert_str_eq(c.metric, "loss");
    ck_assert_ptr_nonnull(strstr(c.trial, "${x}"));
    ck_assert_ptr_nonnull(strstr(c.params, "\"x\":"));
    ck_assert_ptr_null(c.dataset);
    ck_assert_int_eq(c.grace_ms, 30000);
    ck_assert(c.seed >= 0 && c.seed <= 0x7fffffff);
    measure(&s, ref_of(&c), "loss", 1, 0.9);
    measure(&s, ref_of(&c), "loss", 2, 0.4);
    measure(&s, ref_of(&c), "other", 2, 7);
    struct trial_row row = trial_of(&s, "a", 0);
    ck_assert(row.has_value && row.value == 0.4 && row.has_step && row.step == 2);
    ck_assert_int_eq(row.state, TRIAL_RUNNING);
    row = end(&s, ref_of(&c), OUTCOME_COMPLETED);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    ck_assert(row.value == 0.4 && row.finished_ms >= row.started_ms && row.started_ms > 0);
    ck_assert_ptr_null(row.reason);
    ck_assert_ptr_nonnull(strstr(row.metrics, "\"other\": 7"));
    ck_assert_ptr_nonnull(strstr(row.suggestion, "\"method\":\"random\""));
    ck_ok(trial_get(s.db, &s.a, "a", 0, &d, &err), err);
    ck_assert_uint_eq(d.n_attempts, 1);
    ck_assert_str_eq(d.attempts[0].outcome, "completed");
    struct sweep_row sw = sweep_of_id(&s, "a");
    ck_assert(sw.has_best && sw.best_number == 0 && sw.best_value == 0.4);
    ck_assert_int_gt(sw.started_ms, 0);
}
END_TEST

static as_status end_with(struct attempt_ref ref, int64_t step, double loss, struct trial_row *ret)
{
    struct measurement m = {.step = step, .metric = "loss", .value = loss};
    struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
    return attempt_complete(s.db, &s.a, &ref, NULL, &c, ret, &err);
}

/* A value that would be dropped is refused; the same value again is a repeat. */
START_TEST(another_value_is_refused)
{
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 4", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    measure(&s, ref, "loss", 3, 0.7);
    ck_fails(end_with(ref, 3, 0.6, &row), AS_E_CONFLICT, err, "0.7 is recorded at that step");
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
    for (int i = 0; i < 2; i++) {
        ck_ok(end_with(ref, -1, 0.5, &row), err);
        ck_assert(row.state == TRIAL_COMPLETED && row.value == 0.5 && row.step == 4);
    }
    ck_ok(end_with(ref, 4, 0.5, &row), err);
    ck_ok(complete(ref, OUTCOME_COMPLETED, &row), err);
    ck_fails(end_with(ref, -1, 0.7, &row), AS_E_CONFLICT, err, "0.5 is recorded last");
    ck_assert_str_eq(err.pointer, "/metrics/loss");
    ck_fails(end_with(ref, 9, 0.5, &row), AS_E_CONFLICT, err, "without a value of it");
    ck_assert(trial_of(&s, "a", 0).value == 0.5);
    /* a value that is not finite is a result like others */
    c = claim_one(&s, "r", epoch);
    ref = ref_of(&c);
    for (int i = 0; i < 2; i++) {
        ck_ok(end_with(ref, -1, NAN, &row), err);
        ck_assert_int_eq(row.state, TRIAL_FAILED);
    }
    ck_fails(end_with(ref, -1, 0.5, &row), AS_E_CONFLICT, err, "NaN is recorded");
    /* what another attempt measured is not this attempt's */
    c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 7, 0.9);
    end(&s, ref_of(&c), OUTCOME_RETRY);
    c = claim_one(&s, "r", epoch);
    ck_assert_int_eq(c.attempt, 2);
    ck_ok(end_with(ref_of(&c), 7, 0.4, &row), err);
    ck_assert(row.value == 0.4);
}
END_TEST

START_TEST(completions_repeat)
{
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 2", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    finish(&s, ref_of(&c), 0.5);
    ck_ok(complete(ref_of(&c), OUTCOME_COMPLETED, &row), err);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    ck_fails(complete(ref_of(&c), OUTCOME_FAILED, &row), AS_E_STALE, err, "is completed");
    /* a retry may be repeated even while the next attempt runs */
    c = claim_one(&s, "r", epoch);
    row = end(&s, ref_of(&c), OUTCOME_RETRY);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 1);
    struct attempt_ref over = ref_of(&c); /* its runner ended it: it writes nothing more */
    ck_fails(attempt_log(s.db, &over, NULL, "more\n", false, &err), AS_E_STALE, err, "is queued");
    struct claimed_row again = claim_one(&s, "r", epoch);
    ck_assert_int_eq(again.number, c.number);
    ck_assert_int_eq(again.attempt, 2);
    ck_ok(complete(ref_of(&c), OUTCOME_RETRY, &row), err);
    ck_assert_int_eq(row.attempt, 2);
    ck_assert_int_eq(row.restarts, 1);
    ck_assert_int_eq(row.state, TRIAL_RUNNING);
    ck_fails(complete(ref_of(&c), OUTCOME_COMPLETED, &row), AS_E_STALE, err, "attempt 2 is");
}
END_TEST

START_TEST(a_value_is_wanted)
{
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 3", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_fails(complete(ref_of(&c), OUTCOME_COMPLETED, &row), AS_E_UNSUPPORTED, err,
             "the metric 'loss' was never reported");
    ck_assert_str_eq(err.pointer, "/metrics/loss");
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING); /* nothing has happened */
    row = finish(&s, ref_of(&c), 0.5);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 1, 0.1);
    measure(&s, ref_of(&c), "loss", 2, NAN);
    ck_assert_ptr_nonnull(strstr(trial_of(&s, "a", 1).metrics, "\"NaN\""));
    row = end(&s, ref_of(&c), OUTCOME_COMPLETED);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_str_eq(row.reason, "exit 0, but the metric 'loss' is NaN");
    c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 1, -INFINITY);
    row = end(&s, ref_of(&c), OUTCOME_COMPLETED);
    ck_assert_str_eq(row.reason, "exit 0, but the metric 'loss' is -Infinity");
}
END_TEST

START_TEST(outcomes)
{
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 4, 'max_restarts': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    row = end(&s, ref_of(&c), OUTCOME_RELEASED);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 0);
    c = claim_one(&s, "r", epoch);
    row = end(&s, ref_of(&c), OUTCOME_RETRY);
    ck_assert_int_eq(row.restarts, 1);
    c = claim_one(&s, "r", epoch);
    row = end(&s, ref_of(&c), OUTCOME_RETRY); /* no restart is left */
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(row.reason, "no restart was left"));
    c = claim_one(&s, "r", epoch);
    row = end(&s, ref_of(&c), OUTCOME_TIMEOUT);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    struct completion f = {
        .outcome = OUTCOME_FAILED, .has_exit_code = true, .exit_code = -9, .reason = "killed"};
    ck_ok(attempt_complete(s.db, &s.a, &ref, NULL, &f, &row, &err), err);
    ck_assert_str_eq(row.reason, "killed");
    struct trial_detail d;
    ck_ok(trial_get(s.db, &s.a, "a", ref.number, &d, &err), err);
    ck_assert(d.attempts[0].has_exit_code && d.attempts[0].exit_code == -9);
}
END_TEST

/* Attempt 1 was lost and attempt 2 runs when attempt 1 reports again. */
START_TEST(zombies_change_nothing)
{
    struct trial_row row;
    struct measurement m = {.step = 9, .metric = "loss", .value = 0};
    int64_t n = 0;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row one = claim_one(&s, "r", epoch);
    struct attempt_ref zombie = ref_of(&one);
    end(&s, zombie, OUTCOME_RELEASED);
    struct claimed_row two = claim_one(&s, "r", epoch);
    ck_assert_int_eq(two.attempt, 2);
    ck_fails(attempt_measure(s.db, &zombie, NULL, &m, 1, &n, &err), AS_E_STALE, err,
             "attempt 2 is");
    ck_fails(attempt_log(s.db, &zombie, NULL, "boo", false, &err), AS_E_STALE, err, "attempt 2 is");
    ck_fails(attempt_files(s.db, &zombie, NULL, FILE_CHECKPOINT, NULL, 0, &err), AS_E_STALE, err,
             "");
    ck_fails(complete(zombie, OUTCOME_COMPLETED, &row), AS_E_STALE, err, "");
    ck_assert_int_eq(atomic_load(&store_counters(s.db)->stale_rejected), 4);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement"), 0);
    row = finish(&s, ref_of(&two), 0.25);
    ck_assert(row.value == 0.25);
    ck_fails(attempt_measure(s.db, &zombie, NULL, &m, 1, &n, &err), AS_E_STALE, err, "");
    struct attempt_ref over = ref_of(&two);
    ck_fails(attempt_measure(s.db, &over, NULL, &m, 1, &n, &err), AS_E_STALE, err, "is completed");
    struct attempt_ref none = {"nope", 0, 1}, far = {"a", 7, 1};
    ck_fails(attempt_measure(s.db, &none, NULL, &m, 1, &n, &err), AS_E_NOT_FOUND, err, "'nope'");
    ck_fails(attempt_measure(s.db, &far, NULL, &m, 1, &n, &err), AS_E_NOT_FOUND, err, "trial 7");
}
END_TEST

/* The lease ran out, no other attempt has begun, and the work is complete. */
/* A value that a lost attempt measured is none of the attempt after it. */
START_TEST(a_value_is_of_one_attempt)
{
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row first = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&first), "loss", 1, 0.5);
    end(&s, ref_of(&first), OUTCOME_RETRY);
    ck_assert(trial_of(&s, "a", 0).has_value); /* until another attempt begins */
    struct claimed_row second = claim_one(&s, "r", epoch);
    ck_assert(!trial_of(&s, "a", 0).has_value);
    ck_assert_str_eq(trial_of(&s, "a", 0).metrics, "{}");
    ck_fails(complete(ref_of(&second), OUTCOME_COMPLETED, &row), AS_E_UNSUPPORTED, err,
             "was never reported");
    row = finish(&s, ref_of(&second), 0.25);
    ck_assert_double_eq(row.value, 0.25);
}
END_TEST

START_TEST(late_results_count)
{
    struct registration reg;
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 2", "");
    struct claimed_row good = claim_one(&s, "r", epoch), bad = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&good), "loss", 1, 0.5);
    struct runner_register req = {.name = "r", .slots = 64}; /* it does not list what it ran */
    ck_ok(runner_register(s.db, &s.a, &req, &reg, &err), err);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_QUEUED);
    struct attempt_ref late = ref_of(&good);
    measure(&s, late, "loss", 2, 0.25); /* it was still on its way */
    ck_ok(attempt_log(s.db, &late, NULL, "late\n", false, &err), err);
    ck_ok(attempt_files(s.db, &late, NULL, FILE_ARTIFACT, NULL, 0, &err), err);
    ck_ok(complete(late, OUTCOME_COMPLETED, &row), err);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    ck_assert(row.value == 0.25);
    ck_fails(attempt_log(s.db, &late, NULL, "later\n", false, &err), AS_E_STALE, err,
             "is completed");
    ck_assert_int_eq(atomic_load(&store_counters(s.db)->late_accepted), 1);
    /* a failure that arrives so late is refused: the trial runs again */
    ck_fails(complete(ref_of(&bad), OUTCOME_FAILED, &row), AS_E_STALE, err, "is queued");
    struct claim_list list = claim(&s, "r", reg.epoch, 5);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].number, 1);
    ck_assert_int_eq(list.rows[0].attempt, 2);
}
END_TEST

START_TEST(series_merge_attempts)
{
    struct series_list list;
    int64_t n = 0;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    struct measurement first[] = {{1, "loss", 5}, {2, "loss", 4}, {3, "loss", 3}, {1, "lr", 0.1}};
    ck_ok(attempt_measure(s.db, &ref, NULL, first, 4, &n, &err), err);
    ck_assert_int_eq(n, 4);
    ck_ok(attempt_measure(s.db, &ref, NULL, first, 4, &n, &err), err); /* repeated */
    ck_assert_int_eq(n, 0);
    struct measurement other = {3, "loss", 99};
    ck_ok(attempt_measure(s.db, &ref, NULL, &other, 1, &n, &err), err); /* existing points stay */
    ck_assert_int_eq(n, 0);
    end(&s, ref, OUTCOME_RETRY);
    c = claim_one(&s, "r", epoch);
    ref = ref_of(&c);
    struct measurement second[] = {{3, "loss", 2.5}, {4, "loss", 2}};
    ck_ok(attempt_measure(s.db, &ref, NULL, second, 2, &n, &err), err);
    ck_ok(trial_series(s.db, &s.a, "a", 0, NULL, NULL, &list, &err), err);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_str_eq(list.rows[0].metric, "loss");
    ck_assert_uint_eq(list.rows[0].n, 4);
    ck_assert(list.rows[0].values[1] == 4 && list.rows[0].values[2] == 2.5);
    ck_assert_int_eq(list.rows[0].steps[3], 4);
    ck_assert_str_eq(list.rows[1].metric, "lr");
    ck_ok(trial_series(s.db, &s.a, "a", 0, "lr", NULL, &list, &err), err);
    ck_assert_uint_eq(list.n, 1);
    ck_assert(trial_of(&s, "a", 0).value == 2);
}
END_TEST

START_TEST(bad_measurements_are_refused)
{
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    struct measurement m = {-1, "loss", 0};
    int64_t n = 0;
    ck_fails(attempt_measure(s.db, &ref, NULL, &m, 1, &n, &err), AS_E_INVAL, err,
             "step of 'loss' is -1");
    m = (struct measurement){1, "a b", 0};
    ck_fails(attempt_measure(s.db, &ref, NULL, &m, 1, &n, &err), AS_E_INVAL, err, "'a b'");
    ck_ok(attempt_measure(s.db, &ref, NULL, NULL, 0, &n, &err), err);
}
END_TEST

START_TEST(logs_keep_the_last_tail)
{
    struct log_row row;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    ck_ok(trial_log(s.db, &s.a, "a", 0, 0, &row, &err), err);
    ck_assert_int_eq(row.attempt, 0);
    ck_ok(attempt_log(s.db, &ref, NULL, "one\n", false, &err), err);
    ck_ok(attempt_log(s.db, &ref, NULL, "two\n\xc3\xa9", true, &err), err);
    end(&s, ref, OUTCOME_RETRY);
    claim_one(&s, "r", epoch);
    ck_ok(trial_log(s.db, &s.a, "a", 0, 0, &row, &err), err); /* attempt 2 has no output yet */
    ck_assert_int_eq(row.attempt, 1);
    ck_assert_str_eq(row.text, "two\n\xc3\xa9");
    ck_assert(row.truncated);
    ck_ok(trial_log(s.db, &s.a, "a", 0, 2, &row, &err), err);
    ck_assert_str_eq(row.text, "");
    ck_fails(trial_log(s.db, &s.a, "a", 0, 3, &row, &err), AS_E_NOT_FOUND, err, "attempt 3");
    ck_fails(attempt_log(s.db, &ref, NULL, "\xff", false, &err), AS_E_INVAL, err, "UTF-8");
}
END_TEST

static as_status keep_notes(const struct attempt_ref *ref, const struct trial_note *notes, size_t n)
{
    struct attempt_recorded got;
    return attempt_record(s.db, &s.a, ref, NULL,
                          &(struct attempt_report){.notes = notes, .n_notes = n}, &got, &err);
}

/* Points and notes of one report are kept together, or neither is. */
START_TEST(a_report_is_one_transaction)
{
    struct trial_detail d;
    struct attempt_recorded got;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    const struct trial_note note = {"phase", "warm"};
    const struct measurement good = {.step = 1, .metric = "loss", .value = 0.5};
    const struct measurement bad = {.step = -1, .metric = "loss", .value = 0.5};
    struct attempt_report r = {.points = &bad, .n_points = 1, .notes = &note, .n_notes = 1};
    ck_fails(attempt_record(s.db, &s.a, &ref, NULL, &r, &got, &err), AS_E_INVAL, err, "step of");
    ck_ok(trial_get(s.db, &s.a, "a", 0, &d, &err), err);
    ck_assert_uint_eq(d.n_notes, 0);
    r.points = &good;
    ck_ok(attempt_record(s.db, &s.a, &ref, NULL, &r, &got, &err), err);
    ck_assert_int_eq(got.points, 1);
    ck_ok(trial_get(s.db, &s.a, "a", 0, &d, &err), err);
    ck_assert_uint_eq(d.n_notes, 1);
}
END_TEST

/* The last text of each name, of the first TRIAL_NOTES_MAX names, and only of a current attempt. */
START_TEST(notes_keep_the_last_text)
{
    struct trial_detail d;
    char names[TRIAL_NOTES_MAX + 5][8], big[TRIAL_NOTE_TEXT_MAX + 2];
    struct trial_note many[TRIAL_NOTES_MAX + 5];
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    const struct trial_note first[] = {{"phase", "warm"}, {"b", "{\"x\",2}"}};
    const struct trial_note second[] = {{"phase", "hot \xc3\xa9"}, {"a.b-c", ""}};
    ck_ok(keep_notes(&ref, first, 2), err);
    ck_ok(keep_notes(&ref, second, 2), err);
    ck_ok(keep_notes(&ref, second, 2), err);
    ck_ok(keep_notes(&ref, NULL, 0), err);
    ck_ok(trial_get(s.db, &s.a, "a", 0, &d, &err), err);
    ck_assert_uint_eq(d.n_notes, 3);
    ck_assert_str_eq(d.notes[0].name, "a.b-c");
    ck_assert_str_eq(d.notes[0].text, "");
    ck_assert_str_eq(d.notes[1].text, "{\"x\",2}");
    ck_assert_str_eq(d.notes[2].text, "hot \xc3\xa9");
    for (size_t i = 0; i < AS_ARRAY_LEN(many); i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        many[i] = (struct trial_note){names[i], "x"};
    }
    many[AS_ARRAY_LEN(many) - 1] =
        (struct trial_note){"phase", "last"}; /* known: it has its place */
    ck_ok(keep_notes(&ref, many, AS_ARRAY_LEN(many)), err);
    ck_ok(trial_get(s.db, &s.a, "a", 0, &d, &err), err);
    ck_assert_uint_eq(d.n_notes, TRIAL_NOTES_MAX);
    ck_assert_str_eq(d.notes[TRIAL_NOTES_MAX - 1].text, "last");
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\0';
    const struct trial_note bad[] = {{"b c", "x"}, {"b", big}};
    for (size_t i = 0; i < 2; i++)
        ck_fails(keep_notes(&ref, &bad[i], 1), AS_E_INVAL, err, "/notes/b");
    end(&s, ref, OUTCOME_RETRY);
    claim_one(&s, "r", epoch);
    ck_fails(keep_notes(&ref, first, 1), AS_E_STALE, err, "attempt 2 is");
}
END_TEST

START_TEST(files_are_replaced_as_sets)
{
    char one[SHA256_HEX_SIZE], two[SHA256_HEX_SIZE];
    struct file_list list;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    put_blob(&s, "one", one);
    put_blob(&s, "two!", two);
    struct file_row files[] = {{"m/state.bin", 3, one}, {"b \"x\",{}", 4, two}};
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, files, 2, &err), err);
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_ARTIFACT, files, 1, &err), err);
    ck_ok(trial_files(s.db, &s.a, "a", 0, "artifact", &list, &err), err);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.rows[0].path, "m/state.bin");
    /* the next attempt finds the checkpoint */
    end(&s, ref, OUTCOME_RETRY);
    c = claim_one(&s, "r", epoch);
    ck_assert_uint_eq(c.files.n, 2);
    ck_assert_str_eq(c.files.rows[0].path, "b \"x\",{}");
    ck_assert_str_eq(c.files.rows[0].sha256, two);
    ref = ref_of(&c);
    char absent[SHA256_HEX_SIZE] = {0};
    memset(absent, 'a', 64);
    struct file_row bad[] = {{"x", 3, one}, {"y", 1, absent}};
    ck_fails(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, bad, 2, &err), AS_E_UNSUPPORTED, err,
             "upload it first");
    ck_assert_str_eq(err.pointer, "/files/1/sha256");
    bad[1] = (struct file_row){"../y", 3, one};
    ck_fails(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, bad, 2, &err), AS_E_INVAL, err,
             "../y");
    bad[1] = (struct file_row){"x", 3, one};
    ck_fails(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, bad, 2, &err), AS_E_INVAL, err,
             "twice");
    bad[1] = (struct file_row){"/abs", 3, one};
    ck_fails(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, bad, 2, &err), AS_E_INVAL, err,
             "/abs");
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, NULL, 0, &err), err);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from trial_file where kind = "
                                           "'checkpoint'"),
                     0);
    /* a checkpoint that cannot be used is the trial's no more, and an event says why */
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, files, 2, &err), err);
    ck_ok(attempt_lost_checkpoint(s.db, &ref, NULL, "b: its content is gone", &err), err);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from trial_file where kind = "
                                           "'checkpoint'"),
                     0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event_each where type = "
                                           "'trial.changed' and state = 'running' and attempt = 2 "
                                           "and reason = 'b: its content is gone'"),
                     1);
    ref.attempt = 1;
    ck_fails(attempt_lost_checkpoint(s.db, &ref, NULL, "late", &err), AS_E_STALE, err,
             "not current");
}
END_TEST

/* Each attempt has its own, a lost one too. */
START_TEST(output_is_kept_for_each_attempt)
{
    char one[SHA256_HEX_SIZE], two[SHA256_HEX_SIZE], absent[SHA256_HEX_SIZE] = {0};
    struct file_list list;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref lost = ref_of(&c);
    put_blob(&s, "one", one);
    put_blob(&s, "two!", two);
    end(&s, lost, OUTCOME_RETRY);
    c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    const struct file_row first = {"output.log", 3, one}, second = {"output.log", 4, two};
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_LOG, &second, 1, &err), err);
    ck_ok(attempt_files(s.db, &lost, NULL, FILE_LOG, &first, 1, &err), err);
    ck_ok(attempt_files(s.db, &lost, NULL, FILE_LOG, &second, 1, &err), err);
    ck_ok(attempt_files(s.db, &lost, NULL, FILE_LOG, &first, 1, &err), err);
    ck_ok(trial_files(s.db, &s.a, "a", 0, "log", &list, &err), err);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_str_eq(list.rows[0].path, "attempt-1/output.log");
    ck_assert_str_eq(list.rows[0].sha256, one);
    ck_assert_str_eq(list.rows[1].path, "attempt-2/output.log");
    ck_assert_str_eq(list.rows[1].sha256, two);
    memset(absent, 'a', 64);
    const struct file_row gone = {"output.log", 3, absent}, out = {"../output.log", 3, one};
    ck_fails(attempt_files(s.db, &ref, NULL, FILE_LOG, &gone, 1, &err), AS_E_UNSUPPORTED, err,
             "upload it first");
    ck_fails(attempt_files(s.db, &ref, NULL, FILE_LOG, &out, 1, &err), AS_E_INVAL, err, "..");
    ref.attempt = 3;
    ck_fails(attempt_files(s.db, &ref, NULL, FILE_LOG, &first, 1, &err), AS_E_NOT_FOUND, err,
             "no attempt 3");
}
END_TEST

START_TEST(cancel_a_trial)
{
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 3", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_ok(trial_cancel(s.db, &s.a, "a", 0, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_CANCELLED);
    ck_ok(trial_cancel(s.db, &s.a, "a", 0, &row, &err), err);
    ck_fails(complete(ref_of(&c), OUTCOME_COMPLETED, &row), AS_E_STALE, err, "is cancelled");
    c = claim_one(&s, "r", epoch);
    finish(&s, ref_of(&c), 1);
    ck_fails(trial_cancel(s.db, &s.a, "a", 1, &row, &err), AS_E_CONFLICT, err, "it is completed");
    ck_fails(trial_cancel(s.db, &s.a, "a", 2, &row, &err), AS_E_NOT_FOUND, err, "trial 2");
}
END_TEST

/* The database itself refuses states that the code must never write. */
START_TEST(constraints_hold)
{
    static const char *const wrong[] = {
        "insert into trial (sweep_key, number, state, params, suggestion, seed, "
        "suggestion_index) values (1, 50, 'running', '{}', '{}', 0, 50)",
        "update trial set state = 'completed'",
        "update trial set state = 'odd'",
        "update sweep_base set state = 'completed'",
        "update sweep_base set state = 'completed', finished_at = now()",
        "update sweep_count set planned = 0",
        "update trial set attempt = -1",
        "insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id) values (1, 0, "
        "2, "
        "'r', 1, 'x')",
    };
    make_sweep(&s, "a", "'max_trials': 1", "");
    claim_one(&s, "r", epoch);
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        char sql[500];
        snprintf(sql, sizeof sql,
                 "do $$ begin begin %s; exception when check_violation or unique_violation or "
                 "not_null_violation then return; end; raise 'allowed'; end $$",
                 wrong[i]);
        pg_fixture_exec(s.url, sql); /* ends the program if the statement is allowed */
    }
}
END_TEST

/* Whichever allocation fails, the error is "out of memory" and nothing is left half done. */
static as_status whole_life(void)
{
    struct arena a = {0};
    struct claim_list list = {0};
    struct trial_row row;
    struct trial_page page;
    struct trial_query q = {.sort = TRIAL_BY_VALUE, .page = {.size = 1}};
    struct claim_request req = {.runner = "r", .epoch = epoch, .claim_id = "oom", .max_trials = 1};
    struct measurement m = {1, "loss", 1};
    struct completion c = {.outcome = OUTCOME_RELEASED};
    int64_t n = 0;
    as_status st = claim_trials(s.db, NULL, &a, &req, &list, &err);
    if (st == AS_OK && list.n == 1) {
        struct attempt_ref ref = ref_of(&list.rows[0]);
        st = attempt_measure(s.db, &ref, NULL, &m, 1, &n, &err);
        if (st == AS_OK)
            st = trial_list(s.db, s.orders, &a, "a", &q, &page, &err);
        if (st == AS_OK)
            st = attempt_complete(s.db, &a, &ref, NULL, &c, &row, &err);
    }
    arena_done(&a);
    return st;
}

START_TEST(memory_may_run_out_anywhere)
{
    make_sweep(&s, "a", "'max_trials': 2", "");
    int oks = 0;
    for (size_t n = 1; oks < 3 && n < 4000; n++) {
        as_mem_fail_nth(n);
        as_status st = whole_life();
        as_mem_fail_nth(0);
        ck_assert_msg(st == AS_OK || st == AS_E_NOMEM, "allocation %zu: %s", n, err.msg);
        oks += st == AS_OK;
        check_invariants(&s);
    }
    ck_assert_int_eq(oks, 3);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("attempts");
    TCase *c = service_case(su, "attempts", &s, 0);
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_add_test(c, a_life);
    tcase_add_test(c, another_value_is_refused);
    tcase_add_test(c, completions_repeat);
    tcase_add_test(c, a_value_is_wanted);
    tcase_add_test(c, outcomes);
    tcase_add_test(c, zombies_change_nothing);
    tcase_add_test(c, a_value_is_of_one_attempt);
    tcase_add_test(c, late_results_count);
    tcase_add_test(c, series_merge_attempts);
    tcase_add_test(c, bad_measurements_are_refused);
    tcase_add_test(c, logs_keep_the_last_tail);
    tcase_add_test(c, a_report_is_one_transaction);
    tcase_add_test(c, notes_keep_the_last_text);
    tcase_add_test(c, files_are_replaced_as_sets);
    tcase_add_test(c, output_is_kept_for_each_attempt);
    tcase_add_test(c, cancel_a_trial);
    tcase_add_test(c, constraints_hold);
    tcase_add_test(c, memory_may_run_out_anywhere);
    return su;
}
