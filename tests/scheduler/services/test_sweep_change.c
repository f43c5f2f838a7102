/* Limits that change while a sweep runs and after it has ended. */
#include "scheduler/services/sweep_change.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/lifecycle/ensembles.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static struct sweep_changed changed;

static as_status try_change(const char *id, const char *patch)
{
    struct sweep_patch p;
    json_t *doc = json_of(patch);
    as_status st = sweep_patch_parse(doc, &p, &err);
    if (st == AS_OK)
        st = sweep_change(s.db, &s.a, id, &p, "tok1", &changed, &err);
    json_decref(doc);
    return st;
}

static sweep_state change(const char *id, const char *patch)
{
    ck_ok(try_change(id, patch), err);
    return changed.sweep.state;
}

static bool noted(const char *part)
{
    for (size_t i = 0; i < changed.n_notes; i++)
        if (strstr(changed.notes[i], part))
            return true;
    return false;
}

/* Claim and complete all that can be had; how many. */
static int64_t run_all(int64_t epoch, attempt_outcome outcome)
{
    int64_t n = 0;
    for (struct claim_list list; (list = claim(&s, "r", epoch, 16)).n > 0;) {
        for (size_t i = 0; i < list.n; i++, n++) {
            if (outcome == OUTCOME_COMPLETED)
                finish(&s, ref_of(&list.rows[i]), 1);
            else
                end(&s, ref_of(&list.rows[i]), outcome);
        }
    }
    return n;
}

START_TEST(an_ended_sweep_runs_on)
{
    make_sweep(&s, "a", "'max_trials': 3", "");
    int64_t e = make_runner(&s, "r", 16);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 3);
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    ck_assert_int_eq(change("a", "{'limits': {'max_trials': 5}}"), SWEEP_RUNNING);
    ck_assert_int_eq(changed.sweep.planned, 5);
    ck_assert_int_eq(changed.sweep.finished_ms, 0);
    ck_assert_ptr_null(changed.sweep.reason);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 2);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FINISHING);
    /* and from finishing, before its ensemble is there */
    ck_assert_int_eq(change("a", "{'limits': {'max_trials': 6}}"), SWEEP_RUNNING);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 1);
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    struct trial_row last = trial_of(&s, "a", 5);
    ck_assert_int_eq(last.index, 5);
    ck_assert_int_eq(last.finish_seq, 6);
}
END_TEST

START_TEST(what_blocks_is_said)
{
    make_sweep(&s, "a", "'max_trials': 2, 'max_failed_trials': 0", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claimed_row c = claim_one(&s, "r", e);
    end(&s, ref_of(&c), OUTCOME_FAILED);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FAILED);
    ck_assert_int_eq(change("a", "{'limits': {'max_trials': 9}}"), SWEEP_FAILED);
    ck_assert(noted("stays failed") && noted("max_failed_trials"));
    ck_fails(try_change("a", "{'state': 'running'}"), AS_E_CONFLICT, err, "max_failed_trials");
    ck_assert_int_eq(change("a", "{'limits': {'max_failed_trials': 1}}"), SWEEP_RUNNING);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 8);
    (void)reap(&s);
    ck_fails(try_change("a", "{'state': 'running'}"), AS_E_CONFLICT, err, "raise max_trials");
    ck_assert_int_eq(change("a", "{'limits': {'grace': 9}}"), SWEEP_COMPLETED);
    ck_assert(noted("raise max_trials"));
}
END_TEST

START_TEST(a_cancelled_sweep_waits_for_a_word)
{
    make_sweep(&s, "a", "'max_trials': 2", "");
    int64_t e = make_runner(&s, "r", 2);
    claim_one(&s, "r", e);
    change("a", "{'state': 'cancelled'}");
    ck_assert_int_eq(change("a", "{'limits': {'max_trials': 4}}"), SWEEP_CANCELLED);
    ck_assert(noted("resume it"));
    ck_assert_int_eq(change("a", "{'state': 'running'}"), SWEEP_RUNNING);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 3);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_CANCELLED], 1);
}
END_TEST

START_TEST(lowering_makes_no_more_and_ends_nothing)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 16);
    struct claim_list list = claim(&s, "r", e, 4);
    ck_assert_int_eq(change("a", "{'limits': {'max_trials': 2, 'max_concurrent_trials': 1}}"),
                     SWEEP_RUNNING);
    ck_assert(noted("4 trials already") && noted("4 trials run"));
    ck_assert_int_eq(changed.sweep.planned, 4);
    ck_assert_ptr_nonnull(strstr(changed.sweep.document, "\"max_trials\": 2"));
    ck_assert_uint_eq(claim(&s, "r", e, 4).n, 0);
    for (size_t i = 0; i < 3; i++)
        finish(&s, ref_of(&list.rows[i]), 1);
    ck_assert_uint_eq(claim(&s, "r", e, 4).n, 0);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    finish(&s, ref_of(&list.rows[3]), 1);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FINISHING);
    /* known results use none of the budget, also of one that is used up */
    change("a", "{'limits': {'max_trials': 5}}");
    ck_assert_int_eq(changed.sweep.planned, 5);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 1);
}
END_TEST

START_TEST(a_grid_ends_with_its_cells)
{
    make_grid(&s, "g", 3, "");
    int64_t e = make_runner(&s, "r", 4);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 3);
    (void)reap(&s);
    ck_assert_int_eq(change("g", "{'limits': {'max_trials': 9}}"), SWEEP_COMPLETED);
    ck_assert(noted("the grid has 3 cells"));
    ck_assert_int_eq(changed.sweep.planned, 3);
    make_grid(&s, "h", 3, "'max_trials': 2");
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 2);
    (void)reap(&s);
    ck_assert_int_eq(change("h", "{'limits': {'max_trials': 9}}"), SWEEP_RUNNING);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 1);
}
END_TEST

/* As if the sweep had begun so long ago. */
static void age(const char *id, const char *column, int ms)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "update sweep_base set %s = %s - interval '%d ms' where id = '%s' returning 1", column,
             column, ms, id);
    ck_assert_int_eq(pg_fixture_i64(s.url, sql), 1);
}

START_TEST(time_between_an_end_and_running_on_is_free)
{
    make_sweep(&s, "a", "'max_trials': 2, 'wall_time': 10000", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claimed_row c = claim_one(&s, "r", e);
    age("a", "started_at", 6000000); /* 6,000 of 10,000 s are used */
    finish(&s, ref_of(&c), 1);
    run_all(e, OUTCOME_COMPLETED);
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from sweep where spent_ms / 1000 "
                                           "between 6000 and 6900"),
                     1);
    age("a", "finished_at", 90000000); /* it has rested for long */
    age("a", "started_at", 90000000);
    ck_assert_int_eq(change("a", "{'limits': {'max_trials': 5}}"), SWEEP_RUNNING);
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    age("a", "reopened_at", 3000000); /* 9,000 of 10,000 s */
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    c = claim_one(&s, "r", e);
    age("a", "reopened_at", 1100000);
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    ck_assert_str_eq(sweep_of_id(&s, "a").reason, "wall_time is over");
    ck_assert_int_eq(trial_of(&s, "a", c.number).state, TRIAL_CANCELLED);
    ck_assert_int_eq(change("a", "{'limits': {'max_trials': 9}}"), SWEEP_COMPLETED);
    ck_assert(noted("wall_time is over: raise it"));
    ck_assert_int_eq(change("a", "{'limits': {'wall_time': '5h'}}"), SWEEP_RUNNING);
    ck_assert_int_eq(change("a", "{'limits': {'wall_time': 1}}"), SWEEP_FINISHING);
    (void)reap(&s);
    ck_assert_int_eq(change("a", "{'limits': {'wall_time': null}}"), SWEEP_RUNNING);
    ck_assert_int_eq(run_all(e, OUTCOME_COMPLETED), 6);
}
END_TEST

START_TEST(every_limit_reaches_its_column)
{
    make_sweep(&s, "a", "'max_trials': 2", "");
    change("a", "{'limits': {'max_trials': 7, 'max_concurrent_trials': 3, 'max_failed_trials': 4, "
                "'max_restarts': 5, 'target': 0.125, 'trial_timeout': '6m', 'on_timeout': 'keep', "
                "'wall_time': 7.5, 'grace': 8}}");
    ck_assert_int_eq(
        pg_fixture_i64(
            s.url, "select count(*) from sweep where planned = 7 and max_concurrent = 3 and "
                   "max_failed = 4 and max_restarts = 5 and trial_timeout_ms = 360000 and "
                   "wall_time_ms = 7500 and grace_ms = 8000 and target = 0.125 and keeps_timed_out "
                   "and document #>> '{limits,"
                   "trial_timeout}' = '360' and document #>> '{limits,wall_time}' = '7.5'"),
        1);
    change("a", "{'limits': {'max_concurrent_trials': null, 'max_failed_trials': null, "
                "'max_restarts': null, 'target': null, 'trial_timeout': null, 'on_timeout': null, "
                "'wall_time': null, 'grace': null}}");
    ck_assert_int_eq(
        pg_fixture_i64(s.url,
                       "select count(*) from sweep where planned = 7 and max_concurrent is null "
                       "and max_failed is null and max_restarts = 3 and trial_timeout_ms is null "
                       "and wall_time_ms is null and grace_ms = 30000 and target is null and not "
                       "keeps_timed_out"),
        1);
}
END_TEST

START_TEST(what_was_changed_is_kept)
{
    struct sweep_change_list list;
    make_sweep(&s, "a", "'max_trials': 2", "");
    change("a", "{'limits': {'max_trials': 7, 'wall_time': '1h'}}");
    change("a", "{'limits': {'max_trials': 7}}"); /* it changes nothing */
    change("a", "{'state': 'paused'}");
    ck_ok(sweep_changes(s.db, &s.a, "a", &list, &err), err);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_str_eq(list.rows[0].changes, "{\"state\":{\"from\":\"running\",\"to\":\"paused\"}}");
    ck_assert_str_eq(list.rows[1].changes, "{\"max_trials\":{\"from\":2,\"to\":7},\"wall_time\":{"
                                           "\"from\":null,\"to\":3600}}");
    ck_assert_str_eq(list.rows[1].by, "tok1");
    ck_assert_int_gt(list.rows[1].changed_ms, 0);
    ck_assert_int_eq(
        pg_fixture_i64(s.url,
                       "select count(*) from event_each where type = 'sweep.changed' and reason "
                       "= 'max_trials 2 -> 7; wall_time none -> 3600 s'"),
        1);
    ck_fails(sweep_changes(s.db, &s.a, "b", &list, &err), AS_E_NOT_FOUND, err, "'b'");
}
END_TEST

/* Tags and remarks change in every state, and wake no sweep that has ended. */
START_TEST(tags_and_remarks)
{
    struct sweep_change_list list;
    struct sweep_page page;
    make_sweep(&s, "a", "'max_trials': 2", ", 'tags': ['x']");
    ck_assert_ptr_null(sweep_of_id(&s, "a").remarks);
    change("a", "{'tags': ['y', 'team=vision', 'y'], 'remarks': 'for *us*'}");
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_str_eq(row.tags, "[\"y\",\"team=vision\",\"y\"]");
    ck_assert_str_eq(row.remarks, "for *us*");
    ck_assert_ptr_nonnull(strstr(row.document, "team=vision"));
    change("a", "{'tags': ['y', 'team=vision', 'y'], 'remarks': 'for *us*'}"); /* nothing */
    ck_ok(sweep_changes(s.db, &s.a, "a", &list, &err), err);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.rows[0].changes,
                     "{\"tags\":{\"from\":\"x\",\"to\":\"y, team=vision, y\"},\"remarks\":{"
                     "\"from\":null,\"to\":\"for *us*\"}}");
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event_each where type = "
                                           "'sweep.changed' and reason = 'other tags; other "
                                           "remarks'"),
                     1);
    const struct sweep_query by_tag = {.tag = "team=vision", .page = {.size = 9}};
    ck_ok(sweep_list(s.db, &s.a, &by_tag, &page, &err), err);
    ck_assert_uint_eq(page.n, 1);
    ck_assert_ptr_null(page.rows[0].remarks); /* of a list without documents */

    change("a", "{'state': 'cancelled'}");
    change("a", "{'tags': [], 'remarks': null}");
    row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.state, SWEEP_CANCELLED);
    ck_assert_str_eq(row.tags, "[]");
    ck_assert_ptr_null(row.remarks);
    ck_fails(try_change("a", "{'tags': ['z', 7]}"), AS_E_INVAL, err, "/tags/1");
    ck_fails(try_change("a", "{'remarks': 7}"), AS_E_INVAL, err, "/remarks");
    ck_assert_str_eq(sweep_of_id(&s, "a").tags, "[]");
}
END_TEST

static as_status remark(size_t characters)
{
    AS_AUTO(str_done) struct str text = {0};
    str_puts(&text, "{'remarks': '");
    for (size_t i = 0; i < characters; i++)
        str_puts(&text, "ü");
    str_puts(&text, "'}");
    return try_change("a", str_cstr(&text));
}

/* The record has the beginning of a long text, cut between characters. */
START_TEST(long_remarks)
{
    struct sweep_change_list list;
    make_sweep(&s, "a", "'max_trials': 2", "");
    ck_ok(remark(SWEEP_REMARKS_MAX), err);
    ck_assert_uint_eq(strlen(sweep_of_id(&s, "a").remarks), 2 * SWEEP_REMARKS_MAX);
    ck_ok(sweep_changes(s.db, &s.a, "a", &list, &err), err);
    ck_assert_uint_lt(strlen(list.rows[0].changes), 500);
    ck_fails(remark(SWEEP_REMARKS_MAX + 1), AS_E_INVAL, err, "/remarks");
}
END_TEST

/* A data set may be deleted when no sweep needs it any more. */
START_TEST(a_data_set_that_is_gone_is_named)
{
    make_sweep(&s, "a", "'max_trials': 1", "");
    int64_t e = make_runner(&s, "r", 1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "insert into sweep_dataset (sweep_key, dataset) select "
                                           "key, 'gone' from sweep returning 1"),
                     1);
    run_all(e, OUTCOME_COMPLETED);
    (void)reap(&s);
    ck_fails(try_change("a", "{'limits': {'max_trials': 2}}"), AS_E_CONFLICT, err, "'gone'");
    ck_assert_int_eq(sweep_of_id(&s, "a").planned, 1); /* all of the patch or nothing */
}
END_TEST

/* A second server claims while the limits go up and down. */
static void *claim_on(void *p)
{
    struct store *db = p;
    AS_AUTO(arena_done) struct arena a = {0};
    for (int i = 0; i < 60; i++) {
        char id[40];
        struct claim_list list;
        struct as_err why;
        snprintf(id, sizeof id, "other-%d", i);
        struct claim_request req = {.runner = "r2", .epoch = 1, .claim_id = id, .max_trials = 2};
        if (claim_trials(db, NULL, &a, &req, &list, &why) != AS_OK)
            continue;
        for (size_t k = 0; k < list.n; k++) {
            struct attempt_ref ref = ref_of(&list.rows[k]);
            const struct measurement m = {-1, "loss", 1};
            const struct completion c = {
                .outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
            struct trial_row row;
            ck_ok(attempt_complete(db, &a, &ref, NULL, &c, &row, &why), why);
        }
    }
    return NULL;
}

START_TEST(two_servers_and_a_change_beside_claims)
{
    struct store *other = NULL;
    const struct store_opts opts = {.url = s.url, .max_connections = 2};
    pthread_t thread;
    make_sweep(&s, "a", "'max_trials': 4", "");
    int64_t e = make_runner(&s, "r", 16);
    ck_assert_int_eq(make_runner(&s, "r2", 4), 1);
    ck_ok(store_open(&opts, &other, &err), err);
    ck_assert_int_eq(pthread_create(&thread, NULL, claim_on, other), 0);
    for (int i = 0; i < 40; i++) {
        char patch[80];
        snprintf(patch, sizeof patch, "{'limits': {'max_trials': %d}}", i % 2 ? 4 + i : 2);
        ck_ok(try_change("a", patch), err);
        struct claim_list list = claim(&s, "r", e, 2);
        for (size_t k = 0; k < list.n; k++)
            finish(&s, ref_of(&list.rows[k]), 1);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_int_le(row.counts.total, 43);
    ck_assert_int_le(row.counts.total, row.planned);
    change("a", "{'limits': {'max_trials': 50}}");
    run_all(e, OUTCOME_COMPLETED);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_COMPLETED], 50);
    store_close(other);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/services/sweep_change");
    TCase *c = service_case(suite, "changes", &s, 0);
    tcase_add_test(c, an_ended_sweep_runs_on);
    tcase_add_test(c, what_blocks_is_said);
    tcase_add_test(c, a_cancelled_sweep_waits_for_a_word);
    tcase_add_test(c, lowering_makes_no_more_and_ends_nothing);
    tcase_add_test(c, a_grid_ends_with_its_cells);
    tcase_add_test(c, time_between_an_end_and_running_on_is_free);
    tcase_add_test(c, every_limit_reaches_its_column);
    tcase_add_test(c, what_was_changed_is_kept);
    tcase_add_test(c, tags_and_remarks);
    tcase_add_test(c, long_remarks);
    tcase_add_test(c, a_data_set_that_is_gone_is_named);
    tcase_add_test(c, two_servers_and_a_change_beside_claims);
    return suite;
}
