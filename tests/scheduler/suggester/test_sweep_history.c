/* What a search sees: a cached history and a new one are equal, whatever happened between. */
#include <math.h>
#include <stdio.h>

#include "scheduler/store/history_store.h"
#include "scheduler/suggester/sweep_history.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

static int64_t key_of(const char *id)
{
    char sql[200];
    snprintf(sql, sizeof sql, "select key from sweep where id = '%s'", id);
    return pg_fixture_i64(s.url, sql);
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_same(const struct sweep_history *a, const struct sweep_history *b)
{
    struct history x = sweep_history_view(a), y = sweep_history_view(b);
    const struct history_place *p = sweep_history_place(a), *q = sweep_history_place(b);
    ck_assert_int_eq(p->total, q->total);
    ck_assert_int_eq(p->suggested, q->suggested);
    ck_assert_int_eq(p->finish_seq, q->finish_seq);
    ck_assert_int_eq(p->mark, q->mark);
    ck_assert_uint_eq(x.n, y.n);
    for (size_t i = 0; i < x.n; i++) {
        const struct observation *o = &x.trials[i], *r = &y.trials[i];
        ck_assert_uint_eq(o->number, r->number);
        ck_assert_int_eq(o->state, r->state);
        ck_assert_int_eq(o->is_suggested, r->is_suggested);
        ck_assert(config_equal(sweep_history_spec(a)->space, o->config, r->config));
        for (size_t m = 0; m < SEARCH_MAX_OBJECTIVES; m++)
            ck_assert(same_number(o->values[m], r->values[m]));
        for (size_t m = 0; m < SEARCH_MAX_OUTCOMES; m++)
            ck_assert(same_number(o->outcomes[m], r->outcomes[m]));
    }
}

/* Load both and compare. */
static void check_cold(struct sweep_history *warm, int64_t key)
{
    struct sweep_history *cold = sweep_history_create(key);
    ck_ok(sweep_history_load(s.db, warm, &err), err);
    ck_ok(sweep_history_load(s.db, cold, &err), err);
    check_same(warm, cold);
    sweep_history_free(cold);
}

static observation_state state_at(const struct sweep_history *h, size_t i)
{
    return sweep_history_view(h).trials[i].state;
}

START_TEST(it_grows_by_what_is_new)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    int64_t key = key_of("a");
    struct sweep_history *h = sweep_history_create(key);
    check_cold(h, key);
    ck_assert_uint_eq(sweep_history_view(h).n, 0);
    ask(&s, "a", "c", 4);
    check_cold(h, key);
    ck_assert_uint_eq(sweep_history_view(h).n, 4);
    tell(&s, "a", 2, "c", 0.25);
    tell(&s, "a", 0, "c", NAN);
    check_cold(h, key);
    ck_assert_int_eq(state_at(h, 0), OBSERVED_FAILED);
    ck_assert_int_eq(state_at(h, 1), OBSERVED_PENDING);
    ck_assert_int_eq(state_at(h, 2), OBSERVED_COMPLETED);
    ck_assert_double_eq(sweep_history_view(h).trials[2].values[0], 0.25);
    ck_assert_int_eq(sweep_history_place(h)->finish_seq, 2);
    struct trial_row row;
    ck_ok(trial_cancel(s.db, &s.a, "a", 1, &row, &err), err);
    ck_assert_int_eq(row.finish_seq, 3);
    check_cold(h, key);
    ck_assert_uint_eq(sweep_history_view(h).n, 3); /* cancelled: left out */
    ck_assert_uint_eq(sweep_history_view(h).trials[1].number, 2);
    ask(&s, "a", "d", 3);
    check_cold(h, key);
    ck_assert_uint_eq(sweep_history_view(h).n, 6);
    ck_assert_uint_gt(sweep_history_bytes(h), 0);
    sweep_history_free(h);
}
END_TEST

/* A history of more trials than one statement may read: from nothing, and after more ends than
 * that. */
START_TEST(a_long_history_is_read_in_parts)
{
    char sql[600];
    make_learner(&s, "a", "'max_trials': 100000", "");
    int64_t key = key_of("a");
    snprintf(sql, sizeof sql,
             "insert into trial (sweep_key, number, state, origin, suggestion_index, attempt, "
             "params, suggestion, seed) select %lld, n, 'queued', 'suggested', n, 0, "
             "'{\"x\":0.5,\"y\":0.5}', '{}', n from generate_series(0, %d) n",
             (long long)key, HISTORY_PART);
    pg_fixture_exec(s.url, sql);
    pg_fixture_exec(s.url, "analyze");
    struct sweep_history *h = sweep_history_create(key);
    ck_ok(sweep_history_load(s.db, h, &err), err);
    ck_assert_uint_eq(sweep_history_view(h).n, HISTORY_PART + 1);
    pg_fixture_exec(s.url,
                    "update trial set state = 'failed', finished_at = now(), finish_seq = "
                    "number + 1; update sweep_count set finish_seq = n_total, search_mark = 1");
    ck_ok(sweep_history_load(s.db, h, &err), err);
    for (size_t i = 0; i <= HISTORY_PART; i += HISTORY_PART / 4)
        ck_assert_int_eq(state_at(h, i), OBSERVED_FAILED);
    ck_assert_int_eq(sweep_history_place(h)->finish_seq, HISTORY_PART + 1);
    pg_fixture_exec(s.url, "delete from sweep_base"); /* invariants compare pairs of trials */
    sweep_history_free(h);
}
END_TEST

/* Every k-th trial by number, as a whole history shows it; k is the smallest that suffices. */
START_TEST(a_sample_has_every_kth_trial)
{
    static const struct {
        int64_t most, every;
    } cases[] = {{40, 1}, {39, 2}, {20, 2}, {19, 3}, {7, 6}, {1, 40}};
    make_learner(&s, "a", "'max_trials': 40", "");
    int64_t key = key_of("a");
    for (int i = 0; i < 40; i++) {
        struct suggestion_row got = ask_one(&s, "a", "c");
        if (i % 7 != 6)
            tell(&s, "a", got.number, "c", i);
        else
            ck_ok(trial_cancel(s.db, &s.a, "a", got.number, &(struct trial_row){0}, &err), err);
    }
    struct sweep_history *all = sweep_history_create(key);
    ck_ok(sweep_history_load(s.db, all, &err), err);
    struct history x = sweep_history_view(all);
    for (size_t c = 0; c < AS_ARRAY_LEN(cases); c++) {
        struct sweep_history *some = sweep_history_create(key);
        int64_t every = 0;
        ck_ok(sweep_history_sample(s.db, some, cases[c].most, &every, &err), err);
        ck_assert_int_eq(every, cases[c].every);
        struct history y = sweep_history_view(some);
        size_t n = 0;
        for (size_t i = 0; i < x.n; i++) {
            if (x.trials[i].number % (uint64_t)every != 0)
                continue;
            ck_assert_uint_lt(n, y.n);
            ck_assert_uint_eq(y.trials[n].number, x.trials[i].number);
            ck_assert_int_eq(y.trials[n].state, x.trials[i].state);
            ck_assert(same_number(y.trials[n].values[0], x.trials[i].values[0]));
            ck_assert(config_equal(sweep_history_spec(all)->space, y.trials[n].config,
                                   x.trials[i].config));
            n++;
        }
        ck_assert_uint_eq(n, y.n);
        ck_fails(sweep_history_sample(s.db, some, 9, &every, &err), AS_E_INTERNAL, err, "first");
        sweep_history_free(some);
    }
    sweep_history_free(all);
}
END_TEST

START_TEST(suppositions_last_until_the_next_look)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    int64_t key = key_of("a");
    struct sweep_history *h = sweep_history_create(key);
    struct suggestion_row x = ask_one(&s, "a", "c");
    struct config *c = NULL;
    ck_ok(sweep_history_load(s.db, h, &err), err);
    ck_ok(sweep_history_config(h, x.params, &c, &err), err);
    ck_ok(sweep_history_suppose(h, c, &err), err);
    struct history view = sweep_history_view(h);
    ck_assert_uint_eq(view.n, 2);
    ck_assert_uint_eq(view.trials[1].number, 1);
    ck_assert_int_eq(view.trials[1].state, OBSERVED_PENDING);
    ck_assert(
        config_equal(sweep_history_spec(h)->space, view.trials[0].config, view.trials[1].config));
    check_cold(h, key);
    ck_assert_uint_eq(sweep_history_view(h).n, 1);
    sweep_history_free(h);
}
END_TEST

/* Objectives and constrained metrics, in the document's order; extreme doubles come back exact. */
START_TEST(every_metric_is_read)
{
    json_t *doc = json_of(
        "{'name': 'm', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': 'acc', 'goal': "
        "'maximize'}], 'constraints': [{'metric': 'ms', 'max': 20}], 'parameters': {'x': {'type': "
        "'float', 'min': 0, 'max': 1}}, 'search': {'method': 'gp', 'seed': 1}, 'limits': "
        "{'max_trials': 9}}");
    struct sweep_row sweep;
    struct trial_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &sweep, &err), err);
    json_decref(doc);
    ask(&s, "m", "c", 2);
    const struct measurement m[] = {
        {-1, "acc", 1e300}, {-1, "ms", 0.1 + 0.2}, {-1, "loss", -5e-324}};
    const struct completion done = {.outcome = OUTCOME_COMPLETED, .metrics = m, .n_metrics = 3};
    const struct ask_ref ref = {.sweep = "m", .number = 0, .client = "c"};
    ck_ok(ask_complete(s.db, &s.a, &ref, &done, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    struct sweep_history *h = sweep_history_create(key_of("m"));
    ck_ok(sweep_history_load(s.db, h, &err), err);
    const struct observation *o = sweep_history_view(h).trials;
    ck_assert(o[0].values[0] == -5e-324 && o[0].values[1] == 1e300);
    ck_assert(o[0].outcomes[0] == 0.1 + 0.2);
    ck_assert(isnan(o[1].values[0]) && isnan(o[1].outcomes[0]));
    ck_assert_uint_eq(sweep_history_spec(h)->n_objectives, 2);
    sweep_history_free(h);
}
END_TEST

START_TEST(a_deleted_sweep_is_not_found)
{
    struct sweep_history *h = sweep_history_create(12345);
    ck_fails(sweep_history_load(s.db, h, &err), AS_E_NOT_FOUND, err, "deleted");
    sweep_history_free(h);
    sweep_history_free(NULL);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("history");
    TCase *c = service_case(su, "history", &s, 0);
    tcase_add_test(c, it_grows_by_what_is_new);
    tcase_add_test(c, a_sample_has_every_kth_trial);
    tcase_add_test(c, suppositions_last_until_the_next_look);
    tcase_add_test(c, every_metric_is_read);
    tcase_add_test(c, a_deleted_sweep_is_not_found);
    tcase_add_test(service_case_alone(su, "analysed", &s, 0), a_long_history_is_read_in_parts);
    return su;
}
