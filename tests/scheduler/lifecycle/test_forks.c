/* Population based training in the service: who is replaced by whom, the rows of forks, what they
 * begin from, the limits that count them, and what becomes of it all when servers and runners go.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static int64_t epoch;

/* A sweep of a command whose trials are compared at 2, 4, 6 and 8. */
static void make_population(const char *name, int64_t population, int64_t most, const char *more)
{
    char text[2000];
    struct sweep_row row;
    err = (struct as_err){0};
    snprintf(
        text, sizeof text,
        "{'name': '%s', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'x': "
        "{'type': 'float', 'min': 0, 'max': 1}, 'y': {'type': 'int', 'min': 1, 'max': 9}}, "
        "'search': {'method': 'random', 'seed': 7}, 'limits': {'max_trials': %d}, 'trial': "
        "{'command': ['true', '${x}'], 'checkpoints': true}, 'early_stopping': {'method': "
        "'pbt', 'population': %d, 'period': 2, 'max_steps': 8, 'quantile': 0.5, 'resample': 0, "
        "'explore': ['x']}%s}",
        name, (int)most, (int)population, more);
    json_t *doc = json_of(text);
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
}

static void begin(void)
{
    err = (struct as_err){0};
    epoch = make_runner(&s, "r", 64);
}

static struct attempt_ref ref(const char *sweep, int64_t number)
{
    struct trial_row row = trial_of(&s, sweep, number);
    return (struct attempt_ref){row.sweep, number, row.attempt};
}

/* Report a loss; true: it is told to end. */
static bool report_at(struct attempt_ref r, int64_t step, double loss)
{
    const struct measurement m = {step, "loss", loss};
    struct attempt_recorded got;
    ck_ok(attempt_record(s.db, &s.a, &r, NULL,
                         &(struct attempt_report){.points = &m, .n_points = 1}, &got, &err),
          err);
    ck_assert(!got.directive || got.directive->action == DIRECTIVE_PRUNE);
    return got.directive != NULL;
}

static void keep(struct attempt_ref r, int64_t step, const char *bytes, const char *path)
{
    char sha[SHA256_HEX_SIZE];
    put_blob(&s, bytes, sha);
    const struct file_row file = {.path = path, .size = (int64_t)strlen(bytes), .sha256 = sha};
    ck_ok(attempt_keep(s.db, &r, NULL, step, &file, 1, &err), err);
}

static int64_t count(const char *sql)
{
    return pg_fixture_i64(s.url, sql);
}

static double param(const struct trial_row *row, const char *name)
{
    JSON_AUTO j = json_of(row->params);
    return json_number_value(json_object_get(j, name));
}

/* Trial 1 is worse than trial 0 at the first rung: trial 2 takes its place, from trial 0. */
START_TEST(a_fork_takes_the_place)
{
    begin();
    make_population("a", 2, 5, "");
    struct claim_list l = claim(&s, "r", epoch, 9);
    ck_assert_uint_eq(l.n, 2); /* the population, and no more */
    ck_assert_int_eq(l.rows[0].keep_every, 2);
    ck_assert_int_eq(l.rows[0].keep_until, 8);
    ck_assert_ptr_null(l.rows[0].may_differ);
    keep(ref("a", 0), 2, "state of 0", "at/state");
    ck_assert(!report_at(ref("a", 0), 2, 0.5));
    keep(ref("a", 0), 4, "later", "at/state");
    ck_assert(report_at(ref("a", 1), 2, 0.6));
    struct trial_row fork = trial_of(&s, "a", 2), parent = trial_of(&s, "a", 0);
    ck_assert_int_eq(fork.state, TRIAL_QUEUED);
    ck_assert_int_eq(fork.origin, ORIGIN_FORKED);
    ck_assert(fork.is_fork && fork.parent == 0 && fork.fork_step == 2 && !fork.has_index);
    ck_assert_int_eq(fork.seed, parent.seed);
    ck_assert_str_eq(fork.suggestion,
                     "{\"method\":\"pbt\",\"parent\":0,\"replaces\":1,\"step\":2}");
    ck_assert_double_eq(param(&fork, "y"), param(&parent, "y")); /* it may not change */
    double moved = fabs(param(&fork, "x") - param(&parent, "x"));
    ck_assert_msg(fabs(moved - 0.2) < 1e-9 || param(&fork, "x") == 0 || param(&fork, "x") == 1,
                  "%.17g", moved);
    struct trial_row gone = end(&s, ref("a", 1), OUTCOME_PRUNED);
    ck_assert_int_eq(gone.state, TRIAL_PRUNED);
    ck_assert_str_eq(gone.reason, "rank 2 of 2 at step 2, where the last 1 are replaced: trial 2 "
                                  "goes on from trial 0 in its place");
    l = claim(&s, "r", epoch, 9); /* what it begins from is its parent's at that step */
    ck_assert_uint_eq(l.n, 1);
    ck_assert(l.rows[0].number == 2 && l.rows[0].attempt == 1 && l.rows[0].files.n == 1);
    ck_assert_str_eq(l.rows[0].files.rows[0].path, "at/state");
    ck_assert_int_eq(l.rows[0].files.rows[0].size, 10);
    ck_assert_int_eq(
        count("select count(*) from event_each where number = 2 and state = 'queued' and "
              "reason = 'it goes on from trial 0 at step 2, in place of trial 1'"),
        1);
    ck_assert_int_eq(count("select planned from sweep"), 3);
    /* its own steps alone are spent, and it reaches the next rung */
    ck_assert(!report_at(ref("a", 2), 4, 0.4));
    ck_assert_int_eq(count("select spent from trial where number = 2"), 2);
    ck_assert_int_eq(count("select steps_spent from sweep"), 6);
    ck_assert_int_eq(count("select rung from trial where number = 2"), 2);
}
END_TEST

/* A fork whose parent left nothing at the step begins from its start, and an event says so. */
START_TEST(nothing_was_kept)
{
    begin();
    make_population("a", 2, 5, "");
    claim(&s, "r", epoch, 9);
    keep(ref("a", 0), 4, "another step", "state");
    ck_assert(!report_at(ref("a", 0), 2, 0.5));
    ck_assert(report_at(ref("a", 1), 2, 0.6));
    ck_assert_int_eq(
        count("select count(*) from event_each where number = 2 and reason like '%its parent "
              "left no checkpoint there, so it begins from its start'"),
        1);
    end(&s, ref("a", 1), OUTCOME_PRUNED);
    struct claim_list l = claim(&s, "r", epoch, 9);
    ck_assert_uint_eq(l.n, 1);
    ck_assert_uint_eq(l.rows[0].files.n, 0);
    /* so all its steps are its own */
    ck_assert(!report_at(ref("a", 2), 2, 0.4));
    ck_assert(!report_at(ref("a", 2), 4, 0.3));
    ck_assert_int_eq(count("select spent from trial where number = 2"), 4);
    end(&s, ref("a", 2), OUTCOME_COMPLETED);
    ck_assert_int_eq(count("select spent from trial where number = 2"), 4);
    ck_assert_int_eq(count("select steps_spent from sweep"), 8);
}
END_TEST

/* What is kept belongs to the result of the step: afterwards nothing changes it. */
START_TEST(what_is_kept_stays)
{
    begin();
    make_population("a", 2, 5, "");
    claim(&s, "r", epoch, 9);
    keep(ref("a", 0), 2, "first", "state");
    keep(ref("a", 0), 2, "second", "state"); /* the report was not there yet */
    ck_assert_int_eq(count("select size from trial_file where kind = 'kept'"), 6);
    ck_assert(!report_at(ref("a", 0), 2, 0.5));
    keep(ref("a", 0), 2, "the third one", "state");
    ck_assert_int_eq(count("select size from trial_file where kind = 'kept'"), 6);
    /* its checkpoint is apart */
    ck_ok(
        attempt_files(s.db, &(struct attempt_ref){"a", 0, 1}, NULL, FILE_CHECKPOINT, NULL, 0, &err),
        err);
    ck_assert_int_eq(count("select count(*) from trial_file"), 1);
}
END_TEST

/* The fork goes through all that a trial with a checkpoint does: its runner may be lost before it
 * has left one of its own. */
START_TEST(a_lost_runner_loses_no_fork)
{
    begin();
    make_population("a", 2, 5, "");
    claim(&s, "r", epoch, 9);
    keep(ref("a", 0), 2, "state", "state");
    report_at(ref("a", 0), 2, 0.5);
    ck_assert(report_at(ref("a", 1), 2, 0.6));
    epoch = make_runner(&s, "r", 64); /* it comes back without what it held */
    ck_assert_int_eq(trial_of(&s, "a", 1).state, TRIAL_PRUNED);
    struct claim_list l = claim(&s, "r", epoch, 9);
    ck_assert_uint_eq(l.n, 2); /* trial 0 again, and the fork */
    epoch = make_runner(&s, "r", 64);
    l = claim(&s, "r", epoch, 9);
    ck_assert_uint_eq(l.n, 2);
    ck_assert(l.rows[1].number == 2 && l.rows[1].attempt == 2 && l.rows[1].files.n == 1);
    /* a checkpoint that is lost is said once, and then it has none */
    struct attempt_ref r = ref("a", 2);
    ck_ok(attempt_lost_checkpoint(s.db, &r, NULL, "its content is gone", &err), err);
    ck_assert_int_eq(count("select count(*) from event_each where number = 2 and reason like "
                           "'%its content is gone%'"),
                     1);
    ck_assert_int_eq(count("select count(*) from trial_file where number = 2"), 0);
    ck_assert_int_eq(count("select count(*) from trial where parent is not null"), 1);
    /* it begins again: all its steps are its own when it ends between two rungs, too */
    ck_assert(!report_at(r, 1, 0.7));
    ck_assert(!report_at(r, 3, 0.6));
    end(&s, r, OUTCOME_COMPLETED);
    ck_assert_int_eq(count("select spent from trial where number = 2"), 3);
}
END_TEST

/* Drive all trials to their ends; the lower the number the better. */
static void play(const char *sweep)
{
    for (int round = 0; round < 40; round++) {
        struct claim_list l = claim(&s, "r", epoch, 64);
        int64_t total = sweep_of_id(&s, sweep).counts.total, live = 0;
        for (int64_t i = 0; i < total; i++) {
            struct trial_row row = trial_of(&s, sweep, i);
            if (row.state != TRIAL_RUNNING)
                continue;
            live++;
            int64_t step = (row.has_step ? row.step : row.is_fork ? row.fork_step : 0) + 2;
            keep(ref(sweep, i), step, "state", "state");
            if (report_at(ref(sweep, i), step, 0.1 * (double)i))
                end(&s, ref(sweep, i), OUTCOME_PRUNED);
            else if (step == 8)
                end(&s, ref(sweep, i), OUTCOME_COMPLETED);
        }
        if (live == 0 && l.n == 0)
            break;
    }
}

/* Forks count as trials: where none is left, a trial goes on in its place. */
START_TEST(limits_count_forks)
{
    begin();
    make_population("a", 4, 6, "");
    play("a");
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.counts.total, 6);
    ck_assert_int_eq(row.planned, 6);
    ck_assert_int_eq(row.counts.by_state[TRIAL_PRUNED], 2);
    ck_assert_int_eq(row.counts.by_state[TRIAL_COMPLETED], 4);
    ck_assert(row.state == SWEEP_FINISHING || row.state == SWEEP_COMPLETED);
    ck_assert_int_ge(count("select count(*) from rung_result where reason like '%max_trials leaves "
                           "none for a fork' and decision = 'go_on'"),
                     1);
    ck_assert_int_eq(
        count("select max(n) from (select count(*) n from rung_result group by rung) x"), 4);
    ck_assert_int_eq(
        count("select min(n) from (select count(*) n from rung_result group by rung) x"), 4);
    /* nothing is kept when nothing is forked any more; steps are counted once for each place */
    ck_assert_int_eq(count("select count(*) from trial_file where kind = 'kept'"), 0);
    ck_assert_int_eq(count("select steps_spent from sweep"), 4 * 8);
}
END_TEST

/* Change max_trials; how many trials are planned then. */
static int64_t set_max_trials(int64_t most)
{
    char text[80];
    struct sweep_patch p;
    struct sweep_changed changed;
    snprintf(text, sizeof text, "{'limits': {'max_trials': %d}}", (int)most);
    JSON_AUTO doc = json_of(text);
    ck_ok(sweep_patch_parse(doc, &p, &err), err);
    ck_ok(sweep_change(s.db, &s.a, "a", &p, NULL, &changed, &err), err);
    return changed.sweep.planned;
}

/* The limit is raised and lowered while forks are made: the population stays. */
START_TEST(limits_change)
{
    begin();
    make_population("a", 4, 5, "");
    claim(&s, "r", epoch, 2);
    ck_assert_int_eq(set_max_trials(9), 4);
    ck_assert(!report_at(ref("a", 0), 2, 0.5));
    ck_assert(report_at(ref("a", 1), 2, 0.6));
    ck_assert_int_eq(count("select planned from sweep"), 5);
    ck_assert_int_eq(set_max_trials(12), 5);
    ck_assert_int_eq(set_max_trials(4), 4); /* three exist, and one more of the population fits */
    end(&s, ref("a", 1), OUTCOME_PRUNED);
    play("a");
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 4);
}
END_TEST

/* A population that leaves no trial for a fork is refused. */
START_TEST(a_population_has_room_for_forks)
{
    struct sweep_row row;
    begin();
    make_population("a", 4, 5, "");
    JSON_AUTO doc = json_of("{'name': 'b', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                            "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'limits': "
                            "{'max_trials': 5}, 'trial': {'command': ['true'], 'checkpoints': "
                            "true}, 'early_stopping': {'method': 'pbt', 'population': 5, 'period': "
                            "2, 'max_steps': 8}}");
    ck_assert_int_eq(sweep_create(s.db, &s.a, doc, NULL, &row, &err), AS_E_INVAL);
    ck_assert_str_eq(err.pointer, "/early_stopping/population");
    ck_assert_ptr_nonnull(strstr(err.msg, "expected less than limits.max_trials (5)"));
}
END_TEST

/* Two servers decide about the trials of one sweep in turn: the forks are those of one. */
START_TEST(two_servers_fork_as_one)
{
    struct store *other = NULL;
    struct store_opts opts = {.url = s.url, .max_connections = 2};
    begin();
    ck_ok(store_open(&opts, &other, &err), err);
    make_population("a", 16, 40, "");
    make_population("b", 16, 40, "");
    claim(&s, "r", epoch, 64);
    for (int64_t step = 2; step <= 4; step += 2) {
        for (int64_t i = 0; i < 16; i++) {
            for (int sweep = 0; sweep < 2; sweep++) {
                struct store *first = s.db;
                const char *name = sweep == 0 ? "a" : "b";
                if (trial_of(&s, name, i).state != TRIAL_RUNNING)
                    continue;
                if (sweep == 0 && i % 3 == 1)
                    s.db = other;
                if (report_at(ref(name, i), step, (double)((i * 7 + step) % 16)))
                    end(&s, ref(name, i), OUTCOME_PRUNED);
                s.db = first;
            }
        }
    }
    store_close(other);
#define OF(sweep)                                                                                  \
    "(select t.number, t.state, t.params::text, t.suggestion::text, parent, fork_step, rung, "     \
    "t.seed, t.reason from trial t join sweep w on w.key = t.sweep_key where w.id = '" sweep "')"
    ck_assert_int_eq(count("select count(*) from (" OF("a") " except " OF("b") ") d"), 0);
    ck_assert_int_ge(count("select count(*) from trial where parent is not null"), 8);
}
END_TEST

/* The same report again, and one that comes late, fork nothing. */
START_TEST(repeats_fork_nothing)
{
    begin();
    make_population("a", 2, 5, "");
    claim(&s, "r", epoch, 9);
    ck_assert(!report_at(ref("a", 0), 2, 0.5));
    struct attempt_ref r = ref("a", 1);
    for (int i = 0; i < 3; i++)
        ck_assert(report_at(r, 2, 0.6));
    ck_assert(report_at(r, 4, 0.1));
    end(&s, r, OUTCOME_COMPLETED);
    end(&s, r, OUTCOME_COMPLETED);
    ck_assert_int_eq(trial_of(&s, "a", 1).state, TRIAL_PRUNED);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 3);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/lifecycle/forks");
    TCase *c = service_case(suite, "forks", &s, 0);
    tcase_add_test(c, a_fork_takes_the_place);
    tcase_add_test(c, nothing_was_kept);
    tcase_add_test(c, what_is_kept_stays);
    tcase_add_test(c, a_lost_runner_loses_no_fork);
    tcase_add_test(c, limits_count_forks);
    tcase_add_test(c, limits_change);
    tcase_add_test(c, a_population_has_room_for_forks);
    tcase_add_test(c, two_servers_fork_as_one);
    tcase_add_test(c, repeats_fork_nothing);
    return suite;
}
