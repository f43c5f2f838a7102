/* What is left to gain: bounds are kept at their counts whoever computes them and when, and end a
 * sweep by limits.stop_when. */
#include "scheduler/services/regret_checks.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "scheduler/services/trials.h"
#include "scheduler/store/regret_store.h"
#include "scheduler/store/tx.h"
#include "search/regret_bound.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

/* Ask for n trials and complete them with a bowl over x and y, and noise of this deviation. */
static void run_noisy(const char *sweep, int n, double noise)
{
    struct rng r;
    for (int i = 0; i < n; i++) {
        struct suggestion_row t = ask_one(&s, sweep, "c");
        json_t *params = json_plain(t.params);
        double x = json_number_value(json_object_get(params, "x"));
        double y = json_number_value(json_object_get(params, "y"));
        json_decref(params);
        rng_init(&r, 3, (uint64_t)t.number);
        tell(&s, sweep, t.number, "c",
             (x - 0.3) * (x - 0.3) + (y - 0.6) * (y - 0.6) + noise * rng_normal(&r));
    }
}

static void run_trials(const char *sweep, int n)
{
    run_noisy(sweep, n, 0);
}

/* Rounds until nothing is due. */
static struct regret_report check_all(struct store *db)
{
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(db, false);
    struct regret_report sum = {0}, one;
    ck_assert_ptr_nonnull(c);
    do {
        ck_ok(regret_checks_round(c, NULL, &one, &err), err);
        sum.kept += one.kept;
        sum.sweeps_ended += one.sweeps_ended;
    } while (one.kept > 0);
    return sum;
}

static struct regret_check_list list_of(const char *sweep)
{
    struct regret_check_list l = {0};
    ck_ok(regret_checks_list(s.db, &s.a, sweep, &l, &err), err);
    return l;
}

/* Equal bits, and NaN is equal to itself. */
static void check_same(const struct regret_check_list *a, const struct regret_check_list *b)
{
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        ck_assert_int_eq(a->rows[i].completed, b->rows[i].completed);
        ck_assert_int_eq(a->rows[i].seq, b->rows[i].seq);
        ck_assert_int_eq(a->rows[i].enough, b->rows[i].enough);
        ck_assert_msg(a->rows[i].bound == b->rows[i].bound ||
                          (isnan(a->rows[i].bound) && isnan(b->rows[i].bound)),
                      "%zu: %.17g and %.17g", i, a->rows[i].bound, b->rows[i].bound);
        ck_assert(a->rows[i].relative == b->rows[i].relative ||
                  (isnan(a->rows[i].relative) && isnan(b->rows[i].relative)));
        ck_assert(a->rows[i].has_best == b->rows[i].has_best && a->rows[i].best == b->rows[i].best);
        ck_assert(a->rows[i].best_mean == b->rows[i].best_mean);
        ck_assert(a->rows[i].best_deviation == b->rows[i].best_deviation);
        ck_assert(a->rows[i].best_noise == b->rows[i].best_noise);
    }
}

/* That have ended and are looked at. */
#define OPEN_SWEEPS                                                                                \
    "select count(*) from sweep where regret_open and state not in ('running', 'paused')"

#define CHANGED                                                                                    \
    "select count(*) from event_each where type = 'sweep.changed' and state = 'running' and "      \
    "number is null"

/* Each count of the schedule up to the completed trials has a row, with the place of its trial. */
START_TEST(bounds_are_kept_at_their_counts)
{
    make_learner(&s, "a", "'max_trials': 50", "");
    run_trials("a", 3);
    ck_assert_int_eq(check_all(s.db).kept, 0);
    ck_assert(!sweep_of_id(&s, "a").has_regret);
    struct suggestion_row failing = ask_one(&s, "a", "c");
    tell(&s, "a", failing.number, "c", NAN); /* a place of the order, and no completed trial */
    run_trials("a", 11);
    int64_t before = pg_fixture_i64(s.url, CHANGED);
    ck_assert_int_eq(check_all(s.db).kept, 11);
    ck_assert_int_eq(pg_fixture_i64(s.url, CHANGED), before + 11); /* each is told */
    struct regret_check_list l = list_of("a");
    ck_assert_uint_eq(l.n, 11);
    for (size_t i = 0; i < l.n; i++) {
        ck_assert_int_eq(l.rows[i].completed, (int64_t)i + 4);
        ck_assert_int_eq(l.rows[i].seq, (int64_t)i + 5);
        ck_assert_int_eq(l.rows[i].enough, l.rows[i].completed >= 12);
        ck_assert(l.rows[i].bound >= 0);
    }
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert(w.has_regret && w.regret.completed == 14 && w.regret.bound == l.rows[10].bound);
    ck_assert_int_eq(w.state, SWEEP_RUNNING);
    ck_assert_int_eq(check_all(s.db).kept, 0);
}
END_TEST

/* Computed after each trial, by one server that keeps its history, or at the end by another one. */
START_TEST(bounds_do_not_depend_on_when_they_are_computed)
{
    AS_AUTO(regret_checks_freep) struct regret_checks *warm = regret_checks_create(s.db, false);
    struct regret_report one;
    make_learner(&s, "a", "'max_trials': 50", "");
    make_learner(&s, "b", "'max_trials': 50", "");
    for (int i = 0; i < 21; i++) {
        run_trials("a", 1);
        ck_ok(regret_checks_round(warm, NULL, &one, &err), err);
        ck_assert_int_eq(one.kept, i >= 3);
    }
    run_trials("b", 21);
    ck_assert_int_eq(check_all(s.db).kept, 18);
    struct regret_check_list a = list_of("a"), b = list_of("b");
    check_same(&a, &b);
}
END_TEST

/* Of more than REGRET_BOUND_EACH trials a sweep without the limit has the latest bound that is due,
 * with the bits that a sweep with the limit, which has them all, has there. */
START_TEST(late_bounds_are_left_out_where_no_limit_needs_them)
{
    make_learner(&s, "a", "'max_trials': 50", "");
    make_learner(&s, "b", "'max_trials': 50, 'stop_when': {'regret': 0}", "");
    make_learner(&s, "c", "'max_trials': 50", "");
    run_trials("a", 45);
    run_trials("b", 45);
    run_trials("c", REGRET_BOUND_EACH);
    check_all(s.db);
    run_trials("c", 13);
    check_all(s.db);
    pg_fixture_exec(s.url, "delete from regret_check where not scheduled"); /* between two counts */
    struct regret_check_list a = list_of("a"), b = list_of("b"), c = list_of("c");
    ck_assert_uint_eq(a.n, 1);
    ck_assert_int_eq(a.rows[0].completed, 44);
    ck_assert_uint_eq(b.n, 35);
    ck_assert_int_eq(b.rows[29].completed, 34);
    ck_assert_uint_eq(c.n, 30); /* up to that count they were not late */
    ck_assert_int_eq(c.rows[28].completed, REGRET_BOUND_EACH);
    b.rows[29] = b.rows[34];
    b.n = 30;
    check_same(&c, &b);
    b.rows[0] = b.rows[34];
    b.n = 1;
    check_same(&a, &b);
    run_trials("a", 1); /* and they go on from there */
    check_all(s.db);
    ck_assert_uint_eq(list_of("a").n, 2);
    ck_assert_int_eq(list_of("a").rows[1].completed, 46);
}
END_TEST

/* The sweep measures one configuration twice, and from then on keeps the trial that is best by a
 * model, whoever computes it. */
START_TEST(the_best_of_noisy_values_is_kept)
{
    make_learner(&s, "a", "'max_trials': 50", "");
    make_learner(&s, "b", "'max_trials': 50", "");
    run_noisy("a", 24, 0.2);
    run_noisy("b", 24, 0.2);
    check_all(s.db);
    struct regret_check_list a = list_of("a"), b = list_of("b");
    check_same(&a, &b);
    ck_assert(!a.rows[0].has_best);
    const struct regret_check *last = &a.rows[a.n - 1];
    ck_assert(last->has_best && last->best_deviation > 0 && last->best_noise > 0.02);
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert(w.best_is_by_model && w.best_number == last->best);
    ck_assert(w.told_value <= w.best_value);
    ck_assert(trial_of(&s, "a", w.best_number).value == w.best_value);
}
END_TEST

/* It comes first, and the others in the order of their values. */
START_TEST(the_kept_best_is_the_sweeps)
{
    struct trial_page page;
    make_learner(&s, "a", "'max_trials': 50", "");
    run_trials("a", 5);
    ck_ok(trial_best(s.db, &s.a, "a", 5, NULL, &page, &err), err);
    int64_t told = page.rows[0].number, second = page.rows[1].number, last = page.rows[4].number;
    ck_assert(!sweep_of_id(&s, "a").best_is_by_model && !page.expected);
    char sql[256];
    snprintf(sql, sizeof sql,
             "insert into regret_check (sweep_key, completed, seq, enough, best, best_mean, "
             "best_deviation, best_noise) select key, 5, 5, false, %d, 0.25, 0.125, 0.5 from sweep",
             (int)last);
    pg_fixture_exec(s.url, sql);
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert(w.best_is_by_model && w.best_number == last && w.told_number == told);
    ck_assert(w.best_value == trial_of(&s, "a", last).value && w.regret.best_mean == 0.25);
    ck_ok(trial_best(s.db, &s.a, "a", 5, NULL, &page, &err), err);
    ck_assert_uint_eq(page.n, 5);
    ck_assert(page.rows[0].number == last && page.rows[1].number == told);
    ck_assert(page.expected->best_mean == 0.25 && page.expected->best_deviation == 0.125);
    ck_assert(page.rows[4].number != last);
    ck_ok(trial_best(s.db, &s.a, "a", 2, NULL, &page, &err), err);
    ck_assert(page.n == 2 && page.rows[0].number == last && page.rows[1].number == told);
    ck_assert(second != told && !page.next_cursor);
    ck_ok(trial_best(s.db, &s.a, "a", 1, NULL, &page, &err), err);
    ck_assert(page.n == 1 && page.rows[0].number == last);
    pg_fixture_exec(s.url, "update regret_check set best = 49"); /* a trial without a value */
    ck_ok(trial_best(s.db, &s.a, "a", 1, NULL, &page, &err), err);
    ck_assert(page.rows[0].number == told && !page.expected);
    ck_assert(sweep_of_id(&s, "a").best_number == told);
}
END_TEST

#define STOP "'max_trials': 60, 'stop_when': {'regret': 1000, 'min_trials': 15}"

START_TEST(a_bound_within_the_limit_ends_the_sweep)
{
    make_learner(&s, "a", STOP, "");
    run_trials("a", 14);
    ck_assert_int_eq(check_all(s.db).sweeps_ended, 0);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    struct suggestion_row open = ask_one(&s, "a", "other");
    run_trials("a", 3);
    struct regret_report r = check_all(s.db);
    ck_assert_int_eq(r.sweeps_ended, 1);
    ck_assert_int_eq(r.kept, 3); /* those after its end too */
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert_int_eq(w.state, SWEEP_FINISHING);
    ck_assert_msg(strstr(w.reason, "of loss was left to gain after 15 completed trials "
                                   "(stop_when.regret is 1000)") != NULL,
                  "%s", w.reason);
    struct trial_row t = trial_of(&s, "a", open.number);
    ck_assert_int_eq(t.state, TRIAL_CANCELLED);
    ck_assert_ptr_nonnull(strstr(t.reason, "left to gain"));
    ck_assert_int_eq(reap(&s).ensembles, 1);
    w = sweep_of_id(&s, "a");
    ck_assert_int_eq(w.state, SWEEP_COMPLETED);
    ck_assert_ptr_nonnull(strstr(w.reason, "left to gain")); /* it stays */
}
END_TEST

static as_status change(const char *patch, struct sweep_changed *ret)
{
    struct sweep_patch p;
    json_t *j = json_of(patch);
    as_status st = sweep_patch_parse(j, &p, &err);
    if (st == AS_OK)
        st = sweep_change(s.db, &s.a, "a", &p, NULL, ret, &err);
    json_decref(j);
    return st;
}

START_TEST(the_limit_is_set_moved_and_removed)
{
    struct sweep_changed got;
    make_learner(&s, "a", "'max_trials': 60", "");
    run_trials("a", 20);
    check_all(s.db);
    /* too few trials by its own minimum; then the bound that is there already */
    ck_ok(change("{'limits': {'stop_when': {'relative': 1, 'min_trials': 21}}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_RUNNING);
    ck_ok(change("{'limits': {'stop_when': {'regret': 1000}}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_FINISHING);
    ck_fails(change("{'state': 'running'}", &got), AS_E_CONFLICT, err, "stop_when");
    ck_ok(change("{'limits': {'stop_when': {'regret': 0}}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_RUNNING);
    ck_ok(change("{'limits': {'stop_when': {'regret': 1000}}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_FINISHING);
    ck_ok(change("{'limits': {'stop_when': null}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_RUNNING);
    ck_assert_ptr_null(strstr(got.sweep.document, "stop_when"));
    run_trials("a", 4); /* and its bounds go on where they were */
    check_all(s.db);
    ck_assert_int_eq(list_of("a").rows[list_of("a").n - 1].completed, 24);
    ck_fails(change("{'limits': {'stop_when': 0.1}}", &got), AS_E_INVAL, err, "/limits/stop_when");
    struct sweep_change_list changes;
    ck_ok(sweep_changes(s.db, &s.a, "a", &changes, &err), err);
    ck_assert_ptr_nonnull(strstr(changes.rows[0].changes, "stop_when"));
}
END_TEST

/* A row that some server kept ends the sweep at the next round of any reaper, should the one that
 * kept it have found it paused and changed since. */
START_TEST(the_rule_reads_the_rows_alone)
{
    make_learner(&s, "a", STOP, "");
    run_trials("a", 4);
    ck_assert_int_eq(reap(&s).sweeps_ended, 0);
    pg_fixture_exec(s.url, "insert into regret_check (sweep_key, completed, seq, bound, enough) "
                           "select key, n, n, 1, true from sweep, generate_series(18, 20) n");
    ck_assert_int_eq(reap(&s).sweeps_ended, 1);
    ck_assert_ptr_nonnull(strstr(sweep_of_id(&s, "a").reason, "after 20 completed trials"));
}
END_TEST

/* The latest three bounds count, not the lowest. */
START_TEST(the_latest_three_bounds_count)
{
    struct sweep_changed got;
    make_learner(&s, "a", "'max_trials': 60", "");
    run_trials("a", 4);
    pg_fixture_exec(s.url,
                    "insert into regret_check (sweep_key, completed, seq, bound, enough) "
                    "select key, n, n, abs(n - 23), true from sweep, generate_series(20, 25) n");
    ck_ok(change("{'limits': {'stop_when': {'regret': 1}}}", &got), err); /* 3 2 1 0 1 2 */
    ck_assert_int_eq(got.sweep.state, SWEEP_RUNNING);
    pg_fixture_exec(s.url, "update regret_check set enough = false, bound = null where completed = "
                           "24");
    ck_ok(change("{'limits': {'stop_when': {'regret': 2}}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_RUNNING);
    pg_fixture_exec(s.url, "update regret_check set enough = true, bound = 2 where completed = 24");
    ck_ok(change("{'limits': {'stop_when': {'regret': 2}}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_FINISHING);
}
END_TEST

static void *check_in_thread(void *db)
{
    struct regret_report *r = as_calloc(1, sizeof *r);
    *r = check_all(db);
    return r;
}

/* Two servers at once: one keeps each bound, and one ends the sweep, at the same bound as alone. */
START_TEST(two_servers_agree)
{
    struct store *other = NULL;
    const struct store_opts opts = {.url = s.url};
    pthread_t threads[4];
    struct regret_report sum = {0};
    make_learner(&s, "a", STOP, "");
    make_learner(&s, "b", STOP, "");
    run_trials("a", 24);
    check_all(s.db);
    run_trials("b", 24);
    ck_ok(store_open(&opts, &other, &err), err);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, check_in_thread, i % 2 ? other : s.db),
                         0);
    for (int i = 0; i < 4; i++) {
        struct regret_report *r = NULL;
        pthread_join(threads[i], (void **)&r);
        sum.kept += r->kept;
        sum.sweeps_ended += r->sweeps_ended;
        free(r);
    }
    store_close(other);
    ck_assert_int_eq(sum.kept, 21);
    ck_assert_int_eq(sum.sweeps_ended, 1);
    struct regret_check_list a = list_of("a"), b = list_of("b");
    check_same(&a, &b);
    ck_assert_str_eq(sweep_of_id(&s, "a").reason, sweep_of_id(&s, "b").reason);
}
END_TEST

/* A sweep that ended before its bounds were computed gets them when all sweeps are looked at. */
START_TEST(an_ended_sweep_gets_its_bounds)
{
    make_learner(&s, "a", "'max_trials': 10", "");
    run_trials("a", 10);
    reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    ck_assert_int_eq(check_all(s.db).kept, 7);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    ck_assert_int_eq(pg_fixture_i64(s.url, OPEN_SWEEPS), 0);
}
END_TEST

/* The first round that finds nothing scheduled keeps a bound of all results, also between counts,
 * for a server that was started after the end. Ended sweeps are closed then, and opened again when
 * they run on. */
START_TEST(an_ended_sweep_has_a_bound_of_all_results)
{
    struct regret_report one;
    struct sweep_changed got;
    make_learner(&s, "a", "'max_trials': 37", "");
    make_learner(&s, "b", "'max_trials': 3", "");
    run_noisy("a", 37, 0.2);
    run_trials("b", 3);
    reap(&s);
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(s.db, true);
    ck_ok(regret_checks_round(c, NULL, &one, &err), err); /* the latest scheduled one */
    ck_ok(regret_checks_round(c, NULL, &one, &err), err);
    ck_assert_int_eq(one.kept, 1);
    struct regret_check_list l = list_of("a");
    ck_assert_uint_eq(l.n, 2);
    ck_assert(l.rows[0].completed == 36 && l.rows[1].completed == 37 && l.rows[1].has_best);
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert(w.best_is_by_model && w.best_number == l.rows[1].best && w.regret.completed == 37);
    ck_ok(regret_checks_round(c, NULL, &one, &err), err);
    ck_assert_int_eq(one.kept, 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, OPEN_SWEEPS), 0);
    ck_ok(change("{'limits': {'max_trials': 39}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_RUNNING);
    run_noisy("a", 2, 0.2);
    reap(&s);
    check_all(s.db);
    l = list_of("a"); /* the one between two counts is replaced */
    ck_assert_uint_eq(l.n, 3);
    ck_assert(l.rows[1].completed == 38 && l.rows[2].completed == 39);
    ck_assert_int_eq(pg_fixture_i64(s.url, OPEN_SWEEPS), 0);
}
END_TEST

/* A result that is added after the end, while servers find that nothing is left to compute. */
START_TEST(a_result_after_the_end_is_in_a_bound)
{
    struct trial_row row;
    make_learner(&s, "a", "'max_trials': 37", "");
    run_trials("a", 37);
    reap(&s);
    check_all(s.db);
    ck_assert_int_eq(pg_fixture_i64(s.url, OPEN_SWEEPS), 0);
    json_t *body = json_of("{'state': 'completed', 'params': {'x': 0.3, 'y': 0.6}, 'metrics': "
                           "{'loss': 0.5}}");
    ck_ok(trial_add(s.db, &s.a, "a", body, NULL, &row, &err), err);
    ck_assert_int_eq(pg_fixture_i64(s.url, OPEN_SWEEPS), 1);
    int64_t key = pg_fixture_i64(s.url, "select key from sweep"); /* a server saw it before */
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run))
        run.status = store_regret_close(run.tx, 4, &key, 1, &err);
    ck_ok(run.status, err);
    ck_assert_int_eq(pg_fixture_i64(s.url, OPEN_SWEEPS), 1);
    ck_assert_int_eq(check_all(s.db).kept, 1);
    ck_assert_int_eq(sweep_of_id(&s, "a").regret.completed, 38);
    ck_assert_int_eq(pg_fixture_i64(s.url, OPEN_SWEEPS), 0);
    json_decref(body);
}
END_TEST

/* While results come nothing is computed between two counts; when two rounds find as many trials,
 * one bound is of all of them. limits.stop_when does not read it. */
START_TEST(a_pause_gives_a_bound_of_all_results)
{
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(s.db, false);
    struct regret_report one;
    make_learner(&s, "a", "'max_trials': 99, 'stop_when': {'regret': 0, 'min_trials': 4}", "");
    run_trials("a", 36);
    check_all(s.db);
    for (int i = 0; i < 3; i++) {
        pg_fixture_exec(s.url, "delete from regret_check where not scheduled");
        run_trials("a", i == 0 ? 1 : 0);
        ck_ok(regret_checks_round(c, NULL, &one, &err), err);
        ck_assert_int_eq(one.kept, i > 0);
    }
    struct regret_check_list l = list_of("a");
    ck_assert_int_eq(l.rows[l.n - 1].completed, 37);
    pg_fixture_exec(s.url, "update regret_check set bound = 0, enough = true where completed in "
                           "(34, 36, 37)");
    reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    pg_fixture_exec(s.url, "update regret_check set bound = 0, enough = true where completed = 32");
    reap(&s);
    ck_assert_int_ne(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    ck_assert_ptr_nonnull(strstr(sweep_of_id(&s, "a").reason, "after 36 completed trials"));
}
END_TEST

/* Another server keeps the bound of 37 trials, and commits when the lock 7 is free. */
static void *keep_elsewhere(void *arg)
{
    pg_fixture_exec(
        s.url, "begin; update sweep_base set regret_due = regret_due; insert into regret_check "
               "(sweep_key, completed, seq, enough, scheduled) select key, 37, 37, false, false "
               "from sweep; select pg_advisory_xact_lock(7); commit");
    return arg;
}

static void await_wait(const char *locktype)
{
    char sql[120];
    int64_t end = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    snprintf(sql, sizeof sql, "select count(*) from pg_locks where not granted and locktype = '%s'",
             locktype);
    while (pg_fixture_i64(s.url, sql) == 0) {
        ck_assert_msg(clock_mono_ns() < end, "nobody waits for a lock of a %s", locktype);
        clock_sleep_ms(5);
    }
}

/* One between two counts goes with the next bound, also when that has waited for the one who wrote
 * it. */
START_TEST(a_bound_that_was_just_written_is_replaced)
{
    pthread_t other, next;
    struct regret_report *r = NULL;
    make_learner(&s, "a", "'max_trials': 99", "");
    run_trials("a", 36);
    check_all(s.db);
    run_trials("a", 2);
    struct pg_session *free_later = pg_fixture_session(s.url, "do 'begin perform "
                                                              "pg_advisory_lock(7); end'");
    ck_assert_int_eq(pthread_create(&other, NULL, keep_elsewhere, NULL), 0);
    await_wait("advisory");
    ck_assert_int_eq(pthread_create(&next, NULL, check_in_thread, s.db), 0);
    await_wait("transactionid");
    pg_fixture_session_end(free_later);
    pthread_join(other, NULL);
    pthread_join(next, (void **)&r);
    ck_assert_int_eq(r->kept, 1);
    free(r);
    struct regret_check_list l = list_of("a");
    ck_assert_uint_eq(l.n, 2);
    ck_assert(l.rows[0].completed == 36 && l.rows[1].completed == 38);
}
END_TEST

/* A grid is bounded as any other search. A round ends early when it is told to. */
START_TEST(any_search_is_bounded)
{
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(s.db, false);
    atomic_bool stopping = true;
    struct regret_report r;
    make_grid(&s, "g", 40, "'max_concurrent_trials': 40");
    int64_t epoch = make_runner(&s, "r", 40);
    struct claim_list l = claim(&s, "r", epoch, 40);
    for (size_t i = 0; i < 30; i++)
        finish(&s, ref_of(&l.rows[i]), fabs((double)i - 12));
    ck_ok(regret_checks_round(c, &stopping, &r, &err), err);
    ck_assert_int_eq(r.kept, 0);
    check_all(s.db);
    ck_assert_int_eq(sweep_of_id(&s, "g").regret.completed, 30);
    ck_assert(sweep_of_id(&s, "g").regret.enough);
}
END_TEST

/* Of several metrics there is no bound, and none is computed. */
START_TEST(several_metrics_have_none)
{
    json_t *doc = json_of(
        "{'name': 'm', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': 'acc', 'goal': "
        "'maximize'}], 'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'search': "
        "{'method': 'random', 'seed': 1}, 'limits': {'max_trials': 9}}");
    struct sweep_row w;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &w, &err), err);
    json_decref(doc);
    for (int64_t i = 0; i < 6; i++) {
        struct trial_row row;
        struct suggestion_row t = ask_one(&s, "m", "c");
        const struct measurement m[] = {{-1, "loss", (double)i}, {-1, "acc", 1}};
        const struct completion done = {.outcome = OUTCOME_COMPLETED, .metrics = m, .n_metrics = 2};
        const struct ask_ref ref = {.sweep = "m", .number = t.number, .client = "c"};
        ck_ok(ask_complete(s.db, &s.a, &ref, &done, &row, &err), err);
    }
    ck_assert_int_eq(check_all(s.db).kept, 0);
    ck_assert_uint_eq(list_of("m").n, 0);
    struct regret_due *due = NULL; /* and it takes no other sweep's place in a look */
    size_t n = 1;
    struct tx_run run = tx_run_start(s.db, TX_READ, &err);
    while (tx_run_again(&run))
        run.status = store_regret_due(run.tx, &s.a, 4, &due, &n, &err);
    ck_ok(run.status, err);
    ck_assert_uint_eq(n, 0);
    struct regret_check_list l;
    ck_fails(regret_checks_list(s.db, &s.a, "nothing", &l, &err), AS_E_NOT_FOUND, err, "nothing");
}
END_TEST

/* All values are equal, so that nothing separates the median trial from the best one. */
START_TEST(a_sweep_of_one_value_has_no_relative_bound)
{
    make_learner(&s, "a", "'max_trials': 60, 'stop_when': {'relative': 0.5, 'min_trials': 4}", "");
    for (int i = 0; i < 16; i++)
        tell(&s, "a", ask_one(&s, "a", "c").number, "c", 2);
    check_all(s.db);
    struct regret_check x = sweep_of_id(&s, "a").regret;
    ck_assert_int_eq(x.completed, 16);
    ck_assert(x.enough && isnan(x.relative)); /* there is nothing that it is a share of */
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
}
END_TEST

/* One that lives gets all bounds that it lacks in the round that finds that its results have
 * paused, as far as rest was saved: the next look may be far. */
START_TEST(a_pause_makes_up_for_all_bounds)
{
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(s.db, false);
    struct regret_report one;
    make_learner(&s, "a", "'max_trials': 99", "");
    run_trials("a", 20);
    for (int i = 0; i < 3; i++) { /* 4, then 5 to 20, then nothing */
        const int64_t kept[] = {1, 16, 0};
        ck_ok(regret_checks_round(c, NULL, &one, &err), err);
        ck_assert_int_eq(one.kept, kept[i]);
    }
    ck_assert_int_eq(list_of("a").rows[16].completed, 20);
}
END_TEST

#define ORDER                                                                                      \
    "select count(*) from (select row_number() over (order by id) n, sweep from event_each where " \
    "type = 'sweep.changed' and number is null and id > %lld) e where (n, sweep) in ((1, "         \
    "'limit'), "                                                                                   \
    "(2, 'ended'), (3, 'far'), (4, 'near'))"

/* One bound of each: those that live and have the limit, then those that have ended, then the
 * others, by how far they are behind. */
START_TEST(a_round_has_an_order)
{
    struct regret_report one;
    char sql[400];
    make_learner(&s, "near", "'max_trials': 50", "");
    make_learner(&s, "ended", "'max_trials': 5", "");
    make_learner(&s, "far", "'max_trials': 50", "");
    make_learner(&s, "limit", "'max_trials': 50, 'stop_when': {'regret': 0}", "");
    run_trials("near", 5);
    run_trials("ended", 5);
    run_trials("far", 7);
    run_trials("limit", 4);
    reap(&s);
    snprintf(sql, sizeof sql, ORDER,
             (long long)pg_fixture_i64(s.url, "select coalesce(max(id), 0) from event_each"));
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(s.db, false);
    ck_ok(regret_checks_round(c, NULL, &one, &err), err);
    ck_assert_int_eq(one.kept, 4);
    ck_assert_int_eq(pg_fixture_i64(s.url, sql), 4);
}
END_TEST

/* Bounds of live sweeps share a hundredth of a processor, and each is charged 2 ms of statements at
 * least; those of a sweep that has ended, or has the limit, wait for no rest. */
START_TEST(live_sweeps_share_a_hundredth)
{
    struct regret_report one;
    char id[3] = "a";
    for (int i = 0; i < 8; i++, id[0]++) {
        make_learner(&s, id, "'max_trials': 50", "");
        run_trials(id, 6);
    }
    make_learner(&s, "ended", "'max_trials': 6", "");
    make_learner(&s, "limit", "'max_trials': 50, 'stop_when': {'regret': 0}", "");
    run_trials("ended", 6);
    run_trials("limit", 6);
    reap(&s);
    int64_t begin_ns = clock_mono_ns();
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(s.db, true);
    ck_ok(regret_checks_round(c, NULL, &one, &err), err);
    int64_t n_live = (clock_mono_ns() - begin_ns) / (99 * 2 * NS_PER_MS);
    ck_assert_msg(one.kept >= 2 && one.kept <= 2 + n_live, "%lld", (long long)one.kept);
    ck_assert(list_of("ended").n == 1 && list_of("limit").n == 1);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/services/regret_checks");
    TCase *t = service_case(suite, "bounds", &s, 0);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, bounds_are_kept_at_their_counts);
    tcase_add_test(t, bounds_do_not_depend_on_when_they_are_computed);
    tcase_add_test(t, late_bounds_are_left_out_where_no_limit_needs_them);
    tcase_add_test(t, the_best_of_noisy_values_is_kept);
    tcase_add_test(t, the_kept_best_is_the_sweeps);
    tcase_add_test(t, a_bound_within_the_limit_ends_the_sweep);
    tcase_add_test(t, the_limit_is_set_moved_and_removed);
    tcase_add_test(t, the_rule_reads_the_rows_alone);
    tcase_add_test(t, the_latest_three_bounds_count);
    tcase_add_test(t, two_servers_agree);
    tcase_add_test(t, an_ended_sweep_gets_its_bounds);
    tcase_add_test(t, an_ended_sweep_has_a_bound_of_all_results);
    tcase_add_test(t, a_result_after_the_end_is_in_a_bound);
    tcase_add_test(t, a_pause_gives_a_bound_of_all_results);
    tcase_add_test(t, a_bound_that_was_just_written_is_replaced);
    tcase_add_test(t, a_pause_makes_up_for_all_bounds);
    tcase_add_test(t, a_round_has_an_order);
    tcase_add_test(t, live_sweeps_share_a_hundredth);
    tcase_add_test(t, any_search_is_bounded);
    tcase_add_test(t, several_metrics_have_none);
    tcase_add_test(t, a_sweep_of_one_value_has_no_relative_bound);
    return suite;
}
