/* The suggester: a prepared suggestion is taken only where it fits, no request waits for ever, and
 * a sweep suggests the same whatever is cached. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "scheduler/suggester/prepared.h"
#include "scheduler/suggester/result_cache.h"
#include "scheduler/services/sweep_importance.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static struct suggester *sg;
static struct result_cache results;
static sem_t ready;
static int64_t ahead_ms;

static void on_ready(void *ctx)
{
    sem_post(ctx);
}

/* threads < 0: no suggester at all. */
static void start(int threads, int64_t patience_ms, size_t max_bytes)
{
    const struct suggester_opts opts = {.threads = (size_t)threads,
                                        .patience_ms = patience_ms,
                                        .max_bytes = max_bytes,
                                        .ahead_ms = ahead_ms,
                                        .on_ready = on_ready,
                                        .ctx = &ready};
    if (threads >= 0)
        ck_ok(suggester_create(s.db, &opts, &sg, &err), err);
}

static void stop(void)
{
    suggester_free(sg);
    sg = NULL;
}

static void begin(void)
{
    sem_init(&ready, 0, 0);
    result_cache_init(&results);
}

static void stop_and_destroy(void)
{
    stop();
    result_cache_done(&results);
    sem_destroy(&ready);
}

static struct suggestion_list try_ask(const char *client, int64_t n, int64_t arrived_ns)
{
    struct suggestion_list list;
    const struct ask_request req = {
        .sweep = "a", .client = client, .count = n, .lease_ms = 600000, .arrived_ns = arrived_ns};
    ck_ok(ask_trials(s.db, sg, &s.a, &req, &list, &err), err);
    return list;
}

/* Like a waiting request: ask again when on_ready is called. */
static struct suggestion_list wait_ask(const char *client, int64_t n)
{
    int64_t arrived_ns = clock_mono_ns();
    struct suggestion_list list = try_ask(client, n, arrived_ns);
    while (list.is_preparing) {
        while (sem_wait(&ready) != 0 && errno == EINTR)
            ;
        list = try_ask(client, n, arrived_ns);
    }
    return list;
}

static int64_t seen_of(int64_t number)
{
    return trial_of(&s, "a", number).seen;
}

START_TEST(a_request_waits_for_its_suggestion)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    start(2, -1, 0);
    struct suggestion_list list = try_ask("c", 3, 0);
    ck_assert(list.n == 0 && list.is_preparing);
    list = wait_ask("c", 3);
    ck_assert_uint_eq(list.n, 3); /* a batch comes whole */
    ck_assert_uint_eq(wait_ask("d", 1).n, 1);
    struct suggester_figures f;
    suggester_figures_get(sg, &f);
    ck_assert_int_eq(f.taken, 4);
    ck_assert_int_ge(f.computed, 4);
    ck_assert_int_eq(f.failed, 0);
}
END_TEST

START_TEST(suggestions_say_what_they_saw)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    start(1, 0, 0);
    for (int i = 0; i < 6; i++) {
        ck_assert_uint_eq(wait_ask("c", 1).n, 1);
        struct trial_row row = tell(&s, "a", i, "c", 1.0 / (i + 1));
        ck_assert_int_eq(row.seen, i);
        ck_assert_int_eq(row.index, i);
        ck_assert_int_eq(row.finish_seq, i + 1);
        json_t *reason = json_of(row.suggestion);
        ck_assert_int_eq(json_integer_value(json_object_get(reason, "seen")), i);
        ck_assert_int_eq(json_integer_value(json_object_get(reason, "index")), i);
        ck_assert_str_eq(json_string_value(json_object_get(reason, "method")), "gp");
        json_decref(reason);
    }
}
END_TEST

/* A suggestion that was begun before a result is valid for requests that arrived before the result,
 * and for no others. */
START_TEST(stale_suggestions_are_for_those_who_waited)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    start(1, -1, 0);
    ck_assert_uint_eq(wait_ask("c", 2).n, 2);
    int64_t early = clock_mono_ns();
    struct suggestion_list list = try_ask("d", 1, early);
    while (list.is_preparing && sem_wait(&ready) == 0) {
        struct search_place place = {.key = list.sweep_key, .number = 2, .arrived_ns = early};
        place.mark = pg_fixture_i64(s.url, "select search_mark from sweep");
        if (suggester_ready(sg, &place, 1) == 1)
            break;
    }
    tell(&s, "a", 0, "c", 0.5);
    list = try_ask("d", 1, early);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(seen_of(2), 0);
    wait_ask("e", 1);
    ck_assert_int_eq(seen_of(3), 1);
}
END_TEST

/* Another server's trial comes between: a prepared suggestion is not inserted under another
 * number. */
START_TEST(a_loser_computes_again)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    start(1, -1, 0);
    struct suggestion_list list = try_ask("c", 3, 0);
    ck_assert(list.is_preparing);
    ask(&s, "a", "other", 2); /* another server, without a cache */
    list = wait_ask("c", 3);
    ck_assert_uint_eq(list.n, 3);
    for (int64_t i = 0; i < 5; i++)
        ck_assert_int_eq(trial_of(&s, "a", i).index, i);
    json_t *body = json_of("{'params': {'x': 0.5, 'y': 0.5}}");
    struct trial_row row;
    /* A fast thread answers at once: another client tries again. */
    static const char *const clients[] = {"d", "e", "f", "g", "h", "i"};
    size_t tries = 0;
    while (list = try_ask(clients[tries], 2, 0), !list.is_preparing)
        ck_assert_uint_lt(++tries, AS_ARRAY_LEN(clients));
    ck_ok(trial_add(s.db, &s.a, "a", body, NULL, &row, &err), err);
    json_decref(body);
    list = wait_ask(clients[tries], 2);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[0].origin, ORIGIN_ENQUEUED);
    ck_assert_int_eq(trial_of(&s, "a", list.rows[1].number).index, 5 + 2 * (int64_t)tries);
}
END_TEST

/* A result makes the prepared suggestions old: the next one is computed before the next request. */
START_TEST(suggestions_are_prepared_ahead)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    ahead_ms = -1;
    start(1, -1, 0);
    ahead_ms = 0;
    ck_assert_uint_eq(wait_ask("c", 2).n, 2);
    for (int64_t i = 0; i < 2; i++) {
        struct search_place place = {.key = 1, .number = 2, .arrived_ns = INT64_MAX};
        tell(&s, "a", i, "c", 1.0 - (double)i);
        place.finish_seq = i + 1;
        place.mark = pg_fixture_i64(s.url, "select search_mark from sweep");
        while (suggester_ready(sg, &place, 1) == 0)
            ck_assert_int_eq(sem_wait(&ready), 0);
    }
    struct suggestion_list list = try_ask("c", 1, 0);
    ck_assert(list.n == 1 && !list.is_preparing);
    ck_assert_int_eq(seen_of(2), 2);
}
END_TEST

START_TEST(runners_get_what_is_ready)
{
    make_learner(&s, "a", "'max_trials': 6", ", 'trial': {'command': ['true']}");
    make_sweep(&s, "b", "'max_trials': 2", "");
    start(1, -1, 0);
    int64_t e = make_runner(&s, "r", 16), pending = 0;
    int got = 0, from_b = 0;
    for (int round = 0; got < 8; round++) {
        struct claim_list list;
        char id[20];
        snprintf(id, sizeof id, "c%d", round);
        struct claim_request req = {.runner = "r", .epoch = e, .claim_id = id, .max_trials = 16};
        ck_ok(claim_trials(s.db, sg, &s.a, &req, &list, &err), err);
        for (size_t i = 0; i < list.n; i++)
            from_b += strcmp(list.rows[i].sweep, "b") == 0;
        got += (int)list.n;
        if (round == 0)
            ck_assert_int_eq(from_b, 2); /* a sweep that is being computed does not keep another
                                            one from giving */
        if (list.is_preparing) {
            ck_assert_uint_eq(list.n, 0);
            while (sem_wait(&ready) != 0)
                ;
        }
    }
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_RUNNING], 6);
    ck_ok(claims_pending(s.db, sg, &pending, &err), err);
    ck_assert_int_eq(pending, 0);
}
END_TEST

/* While a search runs, waiting requests do not spin. When it is idle, another try is worth it. */
START_TEST(pending_counts_what_is_ready)
{
    int64_t pending = 0;
    make_learner(&s, "a", "'max_trials': 6", ", 'trial': {'command': ['true']}");
    start(0, -1, 0);
    ck_ok(claims_pending(s.db, sg, &pending, &err), err);
    ck_assert_int_eq(pending, 6);
    ck_assert_int_eq(suggester_capacity(sg, 1, 2, 6), 6);
    ck_assert_uint_eq(wait_ask("c", 2).n, 2);
    ck_ok(claims_pending(s.db, sg, &pending, &err), err);
    ck_assert_int_eq(pending, 4);
}
END_TEST

/* Run a sweep of 14 trials: three clients, results out of order, a failure, an addition, a
 * cancellation. Returns the params, one after the other. */
static const char *drive(const char *name, int threads, bool is_forgetful)
{
    static const int order[] = {1, 0, 2};
    struct str all = {0};
    service_open(&s, 0);
    make_learner(&s, "a", "'max_trials': 14", "");
    start(threads, 0, is_forgetful ? 1 : 0);
    const char *const clients[] = {"p", "q", "r"};
    bool is_cancelled = false;
    for (int round = 0; round < 5; round++) {
        struct suggestion_list got[3];
        for (int i = 0; i < 3; i++) {
            got[i] = wait_ask(clients[i], 1 + (round == 1 && i == 0));
            for (size_t k = 0; k < got[i].n; k++)
                str_printf(&all, "%lld %s\n", (long long)got[i].rows[k].number,
                           got[i].rows[k].params);
        }
        if (is_forgetful && threads >= 0) {
            stop();
            start(threads, 0, 1);
        }
        if (round == 2) {
            json_t *body = json_of("{'params': {'x': 0.5, 'y': 0.25}, 'metrics': {'loss': 0.1}}");
            struct trial_row row;
            ck_ok(trial_add(s.db, &s.a, "a", body, NULL, &row, &err), err);
            json_decref(body);
        }
        for (int i = 0; i < 3; i++) {
            struct suggestion_list *g = &got[order[i]];
            for (size_t k = 0; k < g->n; k++) {
                json_t *p = json_of(g->rows[k].params);
                double x = json_number_value(json_object_get(p, "x"));
                json_decref(p);
                if (round == 3 && !is_cancelled) {
                    struct trial_row row;
                    ck_ok(trial_cancel(s.db, &s.a, "a", g->rows[k].number, &row, &err), err);
                    is_cancelled = true;
                    continue;
                }
                tell(&s, "a", g->rows[k].number, clients[order[i]],
                     g->rows[k].number == 4 ? (double)NAN : (x - 0.3) * (x - 0.3));
            }
        }
    }
    (void)name;
    stop();
    check_invariants(&s);
    service_close(&s);
    memset(&s, 0, sizeof s);
    return str_take(&all);
}

START_TEST(a_sweep_suggests_the_same_whatever_is_cached)
{
    service_close(&s);
    char *warm = (char *)drive("warm", 2, false), *again = (char *)drive("again", 2, false);
    char *cold = (char *)drive("cold", -1, false), *forgetful = (char *)drive("forgetful", 1, true);
    char *here = (char *)drive("here", 0, false);
    ck_assert_uint_gt(strlen(warm), 100);
    ck_assert_str_eq(warm, again);
    ck_assert_str_eq(warm, cold);
    ck_assert_str_eq(warm, forgetful);
    ck_assert_str_eq(warm, here);
    free(warm);
    free(again);
    free(cold);
    free(forgetful);
    free(here);
    service_open(&s, 0);
}
END_TEST

/* Memory runs out anywhere: the request gets an answer, and the next one works as if nothing
 * happened. */
START_TEST(out_of_memory_is_an_answer)
{
    struct suggestion_list list;
    make_learner(&s, "a", "'max_trials': 200", "");
    start(0, -1, 0);
    int failures = 0;
    for (size_t nth = 1; nth < 60; nth++) {
        const struct ask_request req = {
            .sweep = "a", .client = "c", .count = 1, .lease_ms = 600000};
        as_mem_fail_nth(nth);
        as_status st = ask_trials(s.db, sg, &s.a, &req, &list, &err);
        as_mem_fail_nth(0);
        ck_assert_msg(st == AS_OK || st == AS_E_NOMEM, "%s", err.msg);
        failures += st != AS_OK;
        struct suggestion_list mine = wait_ask("c", 1); /* the same suggestion, or its own */
        ck_assert_uint_eq(mine.n, 1);
        tell(&s, "a", mine.rows[0].number, "c", 1);
    }
    ck_assert_int_gt(failures, 0);
}
END_TEST

START_TEST(a_deleted_sweep_is_an_answer)
{
    struct suggestion_list list;
    struct sweep_changed changed;
    const sweep_state gone = SWEEP_CANCELLED;
    const struct sweep_patch cancel = {.state = &gone};
    make_learner(&s, "a", "'max_trials': 20", "");
    start(1, -1, 0);
    list = try_ask("c", 1, 0);
    ck_ok(sweep_change(s.db, &s.a, "a", &cancel, NULL, &changed, &err), err);
    list = wait_ask("c", 1);
    ck_assert(list.n == 0 && list.done);
    ck_ok(sweep_delete(s.db, "a", &err), err);
    const struct ask_request req = {.sweep = "a", .client = "c", .count = 1, .lease_ms = 600000};
    ck_fails(ask_trials(s.db, sg, &s.a, &req, &list, &err), AS_E_NOT_FOUND, err, "no sweep 'a'");
}
END_TEST

START_TEST(what_does_not_fit_is_forgotten)
{
    struct suggester_figures f;
    make_learner(&s, "a", "'max_trials': 20", "");
    for (int bound = 0; bound < 2; bound++) {
        start(0, 0, (size_t)bound);
        for (int i = 0; i < 4; i++)
            tell(&s, "a", wait_ask("c", 1).rows[0].number, "c", 1);
        suggester_figures_get(sg, &f);
        ck_assert_int_eq(f.computed, 4);
        ck_assert_int_eq(f.sweeps, 1 - bound);
        ck_assert((f.bytes == 0) == (bound == 1));
        stop();
    }
}
END_TEST

/* More jobs than are kept, all of them queued, of sweeps that were deleted meanwhile. */
START_TEST(many_sweeps_at_once)
{
    struct suggester_figures f;
    start(1, -1, 0);
    for (int64_t key = 1000; key < 1600; key++) {
        const struct search_place place = {.key = key, .arrived_ns = clock_mono_ns()};
        (void)suggester_want(sg, &place, 1, false);
    }
    do
        suggester_figures_get(sg, &f);
    while (f.waiting > 0);
    ck_assert_int_gt(f.failed, 0);
    ck_assert_int_eq(f.computed, 0);
}
END_TEST

/* 40 results over the square: loss = x and, if there are two objectives, gain = y. */
static void add_results(bool has_gain)
{
    for (int i = 0; i < 40; i++) {
        char gain[40] = "", body[160];
        struct trial_row added;
        double x = (i * 7 % 40) / 40.0, y = (i * 13 % 40) / 40.0;
        if (has_gain)
            snprintf(gain, sizeof gain, ", 'gain': %g", y);
        snprintf(body, sizeof body, "{'params': {'x': %g, 'y': %g}, 'metrics': {'loss': %g%s}}", x,
                 y, x, gain);
        JSON_AUTO doc = json_of(body);
        ck_ok(trial_add(s.db, &s.a, "a", doc, NULL, &added, &err), err);
    }
}

static void check_importance(struct result_cache *keeper, const char *metric, const char *matters)
{
    struct importance_row row;
    ck_ok(sweep_importance(s.db, keeper, &s.a, "a", metric, 0, &row, &err), err);
    ck_assert_str_eq(row.metric, metric ? metric : "loss");
    ck_assert_uint_eq(row.n, 2);
    ck_assert_ptr_null(row.reason);
    ck_assert_int_eq(row.trials, 40);
    ck_assert_int_eq(row.every, 1);
    ck_assert_str_eq(row.params[0].name, matters);
    ck_assert_double_gt(row.params[0].total, 0.8);
    ck_assert_double_lt(row.params[1].total, 0.2);
    ck_assert_double_gt(row.params[0].top, row.params[1].top);
    ck_assert(!row.params[0].is_conditional);
    ck_assert_double_gt(row.r2, 0.5);
}

/* loss = x: y explains nothing. */
START_TEST(importance_is_told)
{
    struct importance_row row;
    make_learner(&s, "a", "'max_trials': 2", "");
    start(0, 0, 0);
    ck_ok(sweep_importance(s.db, &results, &s.a, "a", NULL, 0, &row, &err), err);
    ck_assert_uint_eq(row.n, 0);
    ck_assert_ptr_nonnull(row.reason);
    add_results(false);
    check_importance(NULL, NULL, "x");
    check_importance(&results, NULL, "x");
    ck_fails(sweep_importance(s.db, &results, &s.a, "b", NULL, 0, &row, &err), AS_E_NOT_FOUND, err,
             "'b'");
}
END_TEST

/* A request that takes an older answer gets it while it will do, and others get the newest. */
START_TEST(an_older_importance_will_do)
{
    struct importance_row row;
    make_learner(&s, "a", "'max_trials': 2", "");
    start(0, 0, 0);
    add_results(false);
    check_importance(&results, NULL, "x");
    add_results(false);
    results.entries[0].cost_ns = INT64_MAX; /* as if it had taken long */
    ck_ok(sweep_importance(s.db, &results, &s.a, "a", NULL, 3600000, &row, &err), err);
    ck_assert(row.is_stale);
    ck_assert_int_eq(row.trials, 40);
    ck_ok(sweep_importance(s.db, &results, &s.a, "a", NULL, 0, &row, &err), err);
    ck_assert(!row.is_stale);
    ck_assert_int_eq(row.trials, 80);
}
END_TEST

/* Each objective has its own answer, also from the cache. */
START_TEST(importance_of_each_objective)
{
    struct sweep_row made;
    struct importance_row row;
    JSON_AUTO doc = json_of("{'name': 'a', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, "
                            "{'name': 'gain', 'goal': 'maximize'}], 'parameters': "
                            "{'x': {'type': 'float', 'min': 0, 'max': 1}, "
                            "'y': {'type': 'float', 'min': 0, 'max': 1}}, "
                            "'limits': {'max_trials': 2}}");
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &made, &err), err);
    start(0, 0, 0);
    add_results(true);
    for (int again = 0; again < 2; again++) {
        check_importance(&results, NULL, "x");
        check_importance(&results, "gain", "y");
        check_importance(&results, "loss", "x");
    }
    ck_fails(sweep_importance(s.db, &results, &s.a, "a", "los", 0, &row, &err), AS_E_INVAL, err,
             "'los', expected a metric of the sweep: loss, gain");
    ck_fails(sweep_importance(s.db, &results, &s.a, "a", "", 0, &row, &err), AS_E_INVAL, err,
             "loss, gain");
}
END_TEST

/* Two servers, each with threads that ask, on one database. */
#define ASKERS 6

struct asker {
    int id;
    struct store *db;
    struct suggester *sg;
    int got, failed;
};

static void *asker_thread(void *p)
{
    struct asker *me = p;
    struct arena a = {0};
    char name[16];
    snprintf(name, sizeof name, "c%d", me->id);
    struct suggestion_list list = {0};
    while (!list.done && me->failed == 0) {
        struct as_err e = {0};
        const struct ask_request req = {
            .sweep = "a", .client = name, .count = 2, .lease_ms = 600000};
        if (ask_trials(me->db, me->sg, &a, &req, &list, &e) != AS_OK) {
            fprintf(stderr, "%s\n", e.msg);
            me->failed++;
        }
        for (size_t i = 0; i < list.n && me->failed == 0; i++) {
            const struct ask_ref ref = {
                .sweep = "a", .number = list.rows[i].number, .client = name};
            const struct measurement m = {-1, "loss", 0.5};
            const struct completion c = {
                .outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
            struct trial_row row;
            me->failed += ask_complete(me->db, &a, &ref, &c, &row, &e) != AS_OK;
            me->got++;
        }
    }
    arena_done(&a);
    return NULL;
}

START_TEST(servers_share_a_sweep)
{
    struct store *dbs[2];
    struct suggester *sgs[2];
    struct asker askers[ASKERS];
    pthread_t threads[ASKERS];
    make_learner(&s, "a", "'max_trials': 60", "");
    for (int i = 0; i < 2; i++) {
        const struct store_opts opts = {.url = s.url, .max_connections = 6};
        const struct suggester_opts sopts = {.threads = 2, .patience_ms = i == 0 ? 0 : -1};
        ck_ok(store_open(&opts, &dbs[i], &err), err);
        ck_ok(suggester_create(dbs[i], &sopts, &sgs[i], &err), err);
    }
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = (struct asker){.id = i, .db = dbs[i % 2], .sg = sgs[i % 2]};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, asker_thread, &askers[i]), 0);
    }
    int got = 0;
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(askers[i].failed, 0);
        got += askers[i].got;
    }
    for (int i = 0; i < 2; i++) {
        suggester_free(sgs[i]);
        store_close(dbs[i]);
    }
    ck_assert_int_eq(got, 60);
    ck_assert_int_eq(pg_fixture_i64(s.url,
                                    "select count(distinct params::text) from trial where origin = "
                                    "'suggested'"),
                     60);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("suggester");
    TCase *c = service_case(su, "suggester", &s, 0);
    tcase_add_checked_fixture(c, begin, stop_and_destroy);
    tcase_add_test(c, a_request_waits_for_its_suggestion);
    tcase_add_test(c, suggestions_say_what_they_saw);
    tcase_add_test(c, stale_suggestions_are_for_those_who_waited);
    tcase_add_test(c, a_loser_computes_again);
    tcase_add_test(c, suggestions_are_prepared_ahead);
    tcase_add_test(c, runners_get_what_is_ready);
    tcase_add_test(c, pending_counts_what_is_ready);
    tcase_add_test(c, a_sweep_suggests_the_same_whatever_is_cached);
    tcase_add_test(c, out_of_memory_is_an_answer);
    tcase_add_test(c, a_deleted_sweep_is_an_answer);
    tcase_add_test(c, what_does_not_fit_is_forgotten);
    tcase_add_test(c, many_sweeps_at_once);
    tcase_add_test(c, importance_is_told);
    tcase_add_test(c, an_older_importance_will_do);
    tcase_add_test(c, importance_of_each_objective);
    tcase_add_test(c, servers_share_a_sweep);
    return su;
}
