/* Events, points and notes of many trials in one statement: the same rows and answers as one after
 * the other, in plans that do not depend on statistics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/store/event_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/note_store.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

/* Two sweeps of `n` running trials each: the sets go to one, the single calls to the other. */
static int64_t key_of_sets, key_of_singles;

static void make_pair(int n)
{
    char limits[40];
    snprintf(limits, sizeof limits, "'max_trials': %d", n);
    make_sweep(&s, "sets", limits, "");
    make_sweep(&s, "singles", limits, "");
    int64_t epoch = make_runner(&s, "r", 2 * n);
    for (int got = 0; got < 2 * n;)
        got += (int)claim(&s, "r", epoch, 2 * n).n;
    key_of_sets = pg_fixture_i64(s.url, "select key from sweep where id = 'sets'");
    key_of_singles = pg_fixture_i64(s.url, "select key from sweep where id = 'singles'");
}

/* Rows of one sweep that the other lacks. */
static int64_t differing(const char *columns, const char *table)
{
    char sql[1000];
    snprintf(sql, sizeof sql,
             "with a as (select %s from %s where sweep_key = %lld), b as (select %s from %s where "
             "sweep_key = %lld) select (select count(*) from (table a except all table b) x) + "
             "(select count(*) from (table b except all table a) y)",
             columns, table, (long long)key_of_sets, columns, table, (long long)key_of_singles);
    return pg_fixture_i64(s.url, sql);
}

static void add_points(struct trial_points *sets, size_t n)
{
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        run.status = store_measurement_add_many(run.tx, sets, n, &err);
        for (size_t i = 0; i < n && run.status == AS_OK; i++) {
            struct measured one;
            run.status =
                store_measurement_add(run.tx, key_of_singles, sets[i].number, sets[i].attempt,
                                      sets[i].points, sets[i].n, &one, &err);
            ck_assert_int_eq(one.recorded, sets[i].ret.recorded);
        }
    }
    ck_ok(run.status, err);
}

START_TEST(sets_of_points_are_like_single_ones)
{
    make_pair(3);
    static const struct measurement p0[] = {{0, "loss", 4}, {1, "loss", 3}, {1, "acc", NAN}},
                                    p1[] = {{5, "loss", 2}, {5, "loss", 9}, {4, "we\"ird", 1}},
                                    again[] = {{1, "loss", 8}, {2, "loss", INFINITY}, {0, "b", 1}};
    struct trial_points sets[] = {
        {.sweep_key = key_of_sets, .number = 2, .attempt = 1, .points = p0, .n = 3},
        {.sweep_key = key_of_sets, .number = 0, .attempt = 1, .points = p1, .n = 3},
        {.sweep_key = key_of_sets, .number = 1, .attempt = 1},
        {.sweep_key = key_of_sets, .number = 2, .attempt = 1, .points = again, .n = 3}};
    add_points(sets, 4);
    ck_assert_int_eq(sets[0].ret.recorded, 3);
    ck_assert_int_eq(sets[1].ret.recorded, 2); /* a point has one value: the first */
    ck_assert_int_eq(sets[2].ret.recorded, 0);
    ck_assert_int_eq(sets[3].ret.recorded, 2);
    ck_assert(sets[1].ret.has_value && sets[1].ret.value == 2);
    ck_assert(sets[3].ret.has_value && isinf(sets[3].ret.value));
    ck_assert(!sets[2].ret.has_value);
    add_points(sets, 4); /* repeated */
    for (int i = 0; i < 4; i++)
        ck_assert(sets[i].ret.recorded == 0 && !sets[i].ret.has_value);
    ck_assert_int_eq(differing("number, metric, attempt, step, value", "measurement"), 0);
    ck_assert_int_eq(differing("number, value, step, metrics::text", "trial"), 0);
}
END_TEST

/* The oracle: a row for each point, of which the first one stays. */
static void plain_add(const struct trial_points *set)
{
    AS_AUTO(str_done) struct str sql = {0};
    for (size_t i = 0; i < set->n; i++) {
        const struct measurement *p = &set->points[i];
        str_printf(&sql, "%s(%lld, %lld, '%s', %lld, %lld, %.17g)",
                   i == 0 ? "insert into plain values " : ", ", (long long)set->sweep_key,
                   (long long)set->number, p->metric, (long long)set->attempt, (long long)p->step,
                   p->value);
    }
    str_printf(&sql, " on conflict do nothing");
    pg_fixture_exec(s.url, str_cstr(&sql));
}

/* Points of one metric: `n` steps from `first`, `by` apart; every step in one of the sets before
 * has another value than here. */
static struct trial_points some_points(int64_t first, int64_t by, size_t n, const char *metric,
                                       double value)
{
    struct measurement *p = arena_alloc(&s.a, n + 1, sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct measurement){first + by * (int64_t)i, metric, value + (double)i};
    return (struct trial_points){
        .sweep_key = key_of_sets, .attempt = 1, .points = p, .n = n, .keeps_row = true};
}

#define CUTS 60

/* However points are cut, repeated and ordered, the table has those that a row for each would. */
START_TEST(chunks_have_the_points_that_rows_would_have)
{
    static const struct {
        int64_t first, by;
        size_t n;
    } first[] = {{0, 1, 1},  {1, 1, 62},  {63, 1, 1},  {64, 1, 1},   {65, 1, 200},
                 {63, 1, 3}, {500, 2, 9}, {501, 2, 4}, {400, 1, 2},  {5000, 1, 1},
                 {0, 7, 90}, {516, 1, 1}, {0, 1, 700}, {6000, 1, 64}};
    struct trial_points sets[CUTS];
    uint64_t state = 12345;
    make_pair(1);
    pg_fixture_exec(s.url, "create table plain (sweep_key bigint, number int, metric text, attempt "
                           "int, step bigint, value float8, primary key (sweep_key, number, "
                           "metric, attempt, step))");
    for (size_t i = 0; i < CUTS; i++) {
        uint64_t r = state = state * 6364136223846793005u + 1442695040888963407u;
        sets[i] = i < AS_ARRAY_LEN(first)
                      ? some_points(first[i].first, first[i].by, first[i].n, "loss", 1000.0 * i)
                      : some_points((int64_t)(r >> 54), (int64_t)(r >> 40) % 3 + 1,
                                    (size_t)((r >> 20) % 80 + 1), r >> 63 ? "loss" : "we\"ird",
                                    1000.0 * i);
        sets[i].attempt = i < AS_ARRAY_LEN(first) ? 1 : 1 + (int64_t)(r >> 33) % 2;
        plain_add(&sets[i]);
    }
    for (size_t i = 0; i < CUTS;) {
        size_t n = i < 8 ? 1 : AS_ARRAY_LEN(first) - 1; /* one by one, then many at once */
        struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
        n = i + n > CUTS ? CUTS - i : n;
        while (tx_run_again(&run))
            run.status = store_measurement_add_many(run.tx, sets + i, n, &err);
        ck_ok(run.status, err);
        i += n;
    }
    size_t recorded = 0;
    for (size_t i = 0; i < CUTS; i++)
        recorded += (size_t)sets[i].ret.recorded;
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from plain"), (int64_t)recorded);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from (select sweep_key, number, "
                                           "metric, attempt, step, value from measurement except "
                                           "all select * from plain) x"),
                     0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement"), (int64_t)recorded);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement where recorded_at is "
                                           "null or recorded_at > now()"),
                     0);
    /* Chunks do not overlap, and steps ascend in them. */
    ck_assert_int_eq(
        pg_fixture_i64(s.url,
                       "select count(*) from (select first_step, steps, lag(steps[cardinality"
                       "(steps)]) over (partition by metric, attempt order by first_step) "
                       "as before from measurement_chunk) c where before >= first_step or "
                       "steps <> (select array_agg(u order by u) from unnest(steps) u)"),
        0);
    ck_assert_int_lt(pg_fixture_i64(s.url, "select count(*) from measurement_chunk where metric = "
                                           "'loss' and attempt = 1"),
                     60);
}
END_TEST

/* A server of the version before inserts through the view. */
START_TEST(rows_of_an_old_server_become_chunks)
{
    const char *const insert =
        "with added as (insert into measurement (sweep_key, number, metric, attempt, step, value) "
        "select key, 0, 'loss', 1, i, %d + i from sweep, generate_series(%d, %d) i where id = "
        "'sets' "
        "on conflict do nothing returning step) insert into counted select count(*) from added";
    static const int ranges[][2] = {{10, 20}, {15, 25}, {5, 12}, {0, 40}};
    static const int64_t counted[] = {11, 5, 5, 20};
    char sql[500];
    make_pair(1);
    struct trial_points set = some_points(30, 1, 3, "loss", 0);
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run))
        run.status = store_measurement_add_many(run.tx, &set, 1, &err);
    ck_ok(run.status, err);
    pg_fixture_exec(s.url, "create table counted (n bigint)");
    for (size_t i = 0; i < AS_ARRAY_LEN(ranges); i++) {
        snprintf(sql, sizeof sql, insert, 100 * (int)i, ranges[i][0], ranges[i][1]);
        pg_fixture_exec(s.url, sql);
        snprintf(sql, sizeof sql, "select n from counted offset %zu", i);
        int64_t already = i == 3 ? 3 : 0; /* those of this server */
        ck_assert_int_eq(pg_fixture_i64(s.url, sql), counted[i] - already);
    }
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement"), 41);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement where value = step + "
                                           "case when step between 10 and 20 then 0 when step "
                                           "between 21 and 25 then 100 when step between 5 and 9 "
                                           "then 200 when step between 30 and 32 then -30 else 300 "
                                           "end"),
                     41);
}
END_TEST

START_TEST(latest_values_are_those_of_later_attempts)
{
    make_pair(1);
    static const struct measurement old = {9, "loss", 1}, later = {2, "loss", 5},
                                    other = {3, "acc", 7};
    struct trial_points sets[] = {
        {.sweep_key = key_of_sets, .attempt = 2, .points = &later, .n = 1},
        {.sweep_key = key_of_sets, .attempt = 1, .points = &old, .n = 1},
        {.sweep_key = key_of_sets, .attempt = 2, .points = &other, .n = 1}};
    add_points(sets, 3);
    ck_assert(sets[1].ret.value == 5);
    ck_assert_int_eq(differing("number, value, metrics::text", "trial"), 0);
}
END_TEST

START_TEST(sets_of_points_that_differ_are_found)
{
    make_pair(2);
    static const struct measurement there[] = {{1, "loss", 4}, {2, "loss", NAN}, {1, "acc", 6}},
                                    same[] = {{1, "acc", 6}, {-1, "loss", NAN}, {1, "loss", 4}},
                                    other[] = {{1, "loss", 4}, {1, "acc", 7}, {9, "acc", 7}},
                                    missing[] = {{-1, "b", 4}};
    struct trial_points put = {
        .sweep_key = key_of_sets, .number = 1, .attempt = 1, .points = there, .n = 3};
    struct trial_points ask[] = {
        {.sweep_key = key_of_sets, .number = 1, .attempt = 1, .points = same, .n = 3},
        {.sweep_key = key_of_sets, .number = 1, .attempt = 1},
        {.sweep_key = key_of_sets, .number = 1, .attempt = 1, .points = other, .n = 3},
        {.sweep_key = key_of_sets, .number = 1, .attempt = 1, .points = missing, .n = 1},
        {.sweep_key = key_of_sets, .number = 0, .attempt = 1, .points = other + 1, .n = 2}};
    struct measured_other got[5], one;
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        run.status = store_measurement_add_many(run.tx, &put, 1, &err);
        if (run.status == AS_OK)
            run.status = store_measurement_other_many(run.tx, ask, 5, got, &err);
        for (int i = 0; i < 5 && run.status == AS_OK; i++) {
            run.status = store_measurement_other(run.tx, key_of_sets, ask[i].number, 1,
                                                 ask[i].points, ask[i].n, &one, &err);
            ck_assert(one.place == got[i].place && one.has_value == got[i].has_value &&
                      one.value == got[i].value);
        }
    }
    ck_ok(run.status, err);
    ck_assert(got[0].place == -1 && got[1].place == -1);
    ck_assert(got[2].place == 1 && got[2].has_value && got[2].value == 6);
    ck_assert(got[3].place == 0 && !got[3].has_value);
    ck_assert(got[4].place == 0 && !got[4].has_value);
}
END_TEST

static void put_notes(const struct trial_notes *sets, size_t n)
{
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        run.status = store_note_put_many(run.tx, sets, n, &err);
        for (size_t i = 0; i < n && run.status == AS_OK; i++)
            run.status = store_note_put(run.tx, key_of_singles, sets[i].number, sets[i].notes,
                                        sets[i].n, &err);
    }
    ck_ok(run.status, err);
    ck_assert_int_eq(differing("number, name, text", "trial_note"), 0);
}

START_TEST(sets_of_notes_are_like_single_ones)
{
    char names[TRIAL_NOTES_MAX + 8][8];
    struct trial_note many[TRIAL_NOTES_MAX + 8];
    for (size_t i = 0; i < AS_ARRAY_LEN(many); i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        many[i] = (struct trial_note){names[i], "text"};
    }
    make_pair(3);
    static const struct trial_note first[] = {{"a", "1"}, {"b", "\"{}'\\"}},
                                   second[] = {{"b", "2"}, {"c", ""}};
    const struct trial_notes sets[] = {
        {key_of_sets, 1, first, 2},  {key_of_sets, 0, many, TRIAL_NOTES_MAX - 1},
        {key_of_sets, 2, NULL, 0},   {key_of_sets, 1, second, 2},
        {key_of_sets, 0, second, 2}, {key_of_sets, 0, many + 60, 12}};
    put_notes(sets, 6);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from trial_note where number = 0 group "
                                           "by sweep_key limit 1"),
                     TRIAL_NOTES_MAX);
    put_notes(sets, 6);
    put_notes((struct trial_notes[]){{key_of_sets, 0, many + 40, 32}, {key_of_sets, 1, many, 72}},
              2);
}
END_TEST

START_TEST(sets_of_events_keep_their_order_and_nulls)
{
    struct event_list list;
    const struct event_new odd[] = {
        {.type = "sweep.changed", .sweep_key = 7, .sweep = "a", .reason = "NULL"},
        {.type = "trial.measured",
         .sweep_key = 7,
         .sweep = "q\"u\\o{t},e'",
         .has_number = true,
         .attempt = 3,
         .has_value = true,
         .value = -INFINITY},
        {.type = "gang.changed", .has_epoch = true, .has_seat = true, .seat = 4, .runner = "r"}};
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        run.status = store_event_add(run.tx, &odd[1], &err);
        if (run.status == AS_OK)
            run.status = store_event_add_many(run.tx, odd, 3, &err);
        if (run.status == AS_OK)
            run.status = store_event_add_many(run.tx, odd, 0, &err);
        if (run.status == AS_OK)
            run.status = store_event_add_many(run.tx, odd + 1, 2, &err);
    }
    ck_ok(run.status, err);
    run = tx_run_start(s.db, TX_READ, &err);
    while (tx_run_again(&run))
        run.status = store_event_after(run.tx, &s.a, 0, 0, 100, &list, &err);
    ck_ok(run.status, err);
    ck_assert_uint_eq(list.n, 6);
    static const int order[] = {1, 0, 1, 2, 1, 2};
    for (size_t i = 0; i < 6; i++) {
        const struct event_row *e = &list.rows[i];
        const struct event_new *x = &odd[order[i]];
        ck_assert_int_eq(e->id, list.rows[0].id + (int64_t)i);
        ck_assert_str_eq(e->type, x->type);
        ck_assert(as_streq(e->sweep, x->sweep) && as_streq(e->reason, x->reason));
        ck_assert(e->has_number == x->has_number && e->attempt == x->attempt);
        ck_assert(e->has_value == x->has_value && e->value == x->value);
        ck_assert(e->has_seat == x->has_seat && e->seat == x->seat && !e->state && !e->model);
        ck_assert_pstr_eq(e->runner, x->runner);
    }
}
END_TEST

/* Events of trials of two sweeps, by turns; from the 40th on of another type. */
#define N_EVENTS 100

static void trial_events(struct event_new *ret, struct arena *a)
{
    for (int i = 0; i < N_EVENTS; i++)
        ret[i] = (struct event_new){.type = i < 40 ? "trial.measured" : "trial.changed",
                                    .sweep_key = 7 + i % 2,
                                    .sweep = i % 2 ? "b" : "a",
                                    .has_number = true,
                                    .number = i,
                                    .state = i % 3 ? "run\"ning\\" : NULL,
                                    .attempt = i % 4,
                                    .has_value = i % 5 > 0,
                                    .value = i / 3.0,
                                    .reason = i % 7 ? NULL : "null, {it} \"was\" lost",
                                    .runner = i % 2 ? arena_printf(a, "r-%d", i) : NULL};
}

static struct event_list events_from(int64_t sweep_key, int64_t after, int64_t limit)
{
    struct event_list list;
    struct tx_run run = tx_run_start(s.db, TX_READ, &err);
    while (tx_run_again(&run))
        run.status = store_event_after(run.tx, &s.a, sweep_key, after, limit, &list, &err);
    ck_ok(run.status, err);
    return list;
}

/* The event is that of the trial with its number. */
static void check_trial_event(const struct event_row *e, const struct event_new *all)
{
    const struct event_new *x = &all[e->number];
    ck_assert(as_streq(e->type, x->type) && as_streq(e->sweep, x->sweep));
    ck_assert(as_streq(e->state, x->state) && as_streq(e->reason, x->reason));
    ck_assert(as_streq(e->runner, x->runner) && e->attempt == x->attempt && e->has_number);
    ck_assert(e->has_value == x->has_value && (!x->has_value || e->value == x->value));
    ck_assert(!e->has_epoch && !e->has_seat && !e->model && e->time_ms > 0);
}

/* Read in pages of each size: the ids have no gap, and those of one sweep keep their order. */
static void check_pages(const struct event_new *all, int64_t sweep_key, int64_t first, size_t n)
{
    for (int64_t limit = 1; limit <= N_EVENTS + 3; limit += limit < 9 ? 1 : 17) {
        int64_t after = 0, numbers[2] = {-1, -1};
        size_t got = 0;
        for (;;) {
            const struct event_list l = events_from(sweep_key, after, limit);
            ck_assert_uint_le(l.n, (size_t)limit);
            for (size_t i = 0; i < l.n; i++) {
                const struct event_row *e = &l.rows[i];
                ck_assert_int_gt(e->id, after);
                after = e->id;
                if (sweep_key == 0)
                    ck_assert_int_eq(e->id, first + (int64_t)got);
                got++;
                if (!e->has_number)
                    continue;
                check_trial_event(e, all);
                ck_assert_int_gt(e->number, numbers[e->number % 2]);
                numbers[e->number % 2] = e->number;
            }
            if (l.n == 0)
                break;
        }
        ck_assert_uint_eq(got, n);
    }
}

START_TEST(events_of_trials_share_rows)
{
    struct event_new all[N_EVENTS];
    const struct event_new other = {.type = "sweep.changed", .sweep_key = 7, .sweep = "a"};
    trial_events(all, &s.a);
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        run.status = store_event_add(run.tx, &other, &err);
        if (run.status == AS_OK)
            run.status = store_event_add_many(run.tx, all, N_EVENTS, &err);
        if (run.status == AS_OK)
            run.status = store_event_add(run.tx, &other, &err);
    }
    ck_ok(run.status, err);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event"), 2);
    /* of each sweep 20 measured and 30 changed */
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event_set"), 4);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(distinct id) from event_each"),
                     N_EVENTS + 2);
    int64_t first = pg_fixture_i64(s.url, "select min(id) from event_each");
    check_pages(all, 0, first, N_EVENTS + 2);
    check_pages(all, 7, first, N_EVENTS / 2 + 2);
    check_pages(all, 8, first, N_EVENTS / 2);
    int64_t removed = 0;
    pg_fixture_exec(s.url, "update event_set set time = now() - interval '8 days' where sweep_key "
                           "= 7");
    run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run))
        run.status = store_event_prune(run.tx, INT64_C(7) * 86400 * 1000, &removed, &err);
    ck_ok(run.status, err);
    ck_assert_int_eq(removed, N_EVENTS / 2);
}
END_TEST

/* The plans of the statements that take sets join by index, whatever the tables look like: nobody
 * has analysed them, and they are empty, which invites to read them whole. */
START_TEST(plans_of_sets_do_not_depend_on_statistics)
{
    static const char *const sets[] = {"chunk_add", "chunk_stored",       "chunk_drop",
                                       "chunk_put", "measurement_latest", "measurement_other",
                                       "note_put",  "event_add",          "event_add_sets"};
    static const char *const arguments[] = {
        "'{1,1}','{1,2}','{1,1}','{a,b}','{1,1}','{1,2}','{1,2}','{1,2}','{1,2}'",
        "'{1,1}','{1,2}','{1,1}','{a,b}','{1,1}','{1,2}'",
        "'{1,1}','{1,2}','{1,1}','{a,b}','{1,1}'",
        "'{1,1}','{1,2}','{1,1}','{a,b}','{1,1}','{1,2}','{1,2}','{1,2}','{1,2}','{1,2}'",
        "'{1,1}','{1,2}','{1,2}','{a,b}'",
        "'{1,1}','{1,2}','{1,1}','{1,2}','{1,1}','{a,b}','{1,2}'",
        "'{1,1}','{1,2}','{1,2}','{a,b}','{c,d}',64",
        "0,'{trial.measured}','{1}','{a}','{1}','{b}','{1}',"
        "'{1}','{c}','{d}','{1}','{1}','{e}','{f}'",
        "'{0}','{1}','{trial.measured}','{1}','{a}','{\"{1,2}\"}','{\"{a,b}\"}','{\"{1,2}\"}',"
        "'{\"{1,2}\"}','{\"{a,b}\"}','{\"{a,b}\"}'"};
    PGconn *c = PQconnectdb(s.url);
    PQclear(PQexec(c, "set enable_seqscan = off")); /* as the store's connections have it */
    for (int mode = 0; mode < 2; mode++) {
        PQclear(PQexec(c, mode ? "set plan_cache_mode = force_generic_plan"
                               : "set plan_cache_mode = force_custom_plan"));
        for (const struct stmt_set *const *set = store_stmt_sets; *set; set++) {
            for (size_t i = 0; i < (*set)->n; i++) {
                const struct stmt *st = &(*set)->stmts[i];
                size_t k = 0;
                while (k < AS_ARRAY_LEN(sets) && !as_streq(sets[k], st->name))
                    k++;
                if (k == AS_ARRAY_LEN(sets))
                    continue;
                char sql[600];
                if (mode == 0)
                    PQclear(PQprepare(c, st->name, st->sql, 0, NULL));
                snprintf(sql, sizeof sql, "explain execute %s(%s)", st->name, arguments[k]);
                PGresult *r = PQexec(c, sql);
                ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(c));
                for (int row = 0; row < PQntuples(r); row++) {
                    const char *line = PQgetvalue(r, row, 0);
                    ck_assert_msg(!strstr(line, "Hash Join") && !strstr(line, "Merge Join") &&
                                      !strstr(line, "Hash Left") && !strstr(line, "Seq Scan"),
                                  "%s: %s", st->name, line);
                }
                PQclear(r);
            }
        }
    }
    PQfinish(c);
}
END_TEST

static void session_run(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK,
                  "%s: %s", sql, PQerrorMessage(c));
    PQclear(r);
}

static bool is_word_of(const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (as_streq(words[i], word))
            return true;
    return false;
}

/* Explain a statement; its arguments are null. */
static PGresult *explain(PGconn *c, const struct stmt *st)
{
    char count[200], sql[400];
    PQclear(PQprepare(c, st->name, st->sql, 0, NULL));
    snprintf(count, sizeof count,
             "select cardinality(parameter_types) from pg_prepared_statements where name = '%s'",
             st->name);
    PGresult *r = PQexec(c, count);
    int64_t n = -1;
    ck_assert_msg(PQntuples(r) == 1, "%s: %s", st->name, PQerrorMessage(c));
    ck_ok(as_parse_i64(PQgetvalue(r, 0, 0), &n, &err), err);
    PQclear(r);
    int len =
        snprintf(sql, sizeof sql, "explain (verbose) execute %s%s", st->name, n > 0 ? "(" : "");
    for (int64_t i = 0; i < n; i++)
        len += snprintf(sql + len, sizeof sql - (size_t)len, "null%s", i + 1 < n ? ", " : ")");
    r = PQexec(c, sql);
    ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s", st->name, PQerrorMessage(c));
    return r;
}

/* Is it a scan of a whole table that grows? */
static bool reads_whole(const char *line)
{
    static const char *const large[] = {"trial ",      "attempt ",     "measurement ",
                                        "event ",      "event_set ",   "trial_note ",
                                        "sweep_base ", "sweep_count ", "client "};
    const char *at = strstr(line, "Seq Scan on public.");
    for (size_t i = 0; at && i < AS_ARRAY_LEN(large); i++)
        if (as_starts_with(at + strlen("Seq Scan on public."), large[i]))
            return true;
    return false;
}

/* A server plans on tables that are nearly empty, and keeps the plans while they grow. With a
 * hashed subplan, which `exists` in a select list may become, each claim would read all attempts.
 * */
START_TEST(plans_of_batches_hold_when_tables_grow)
{
    static const char *const others[] = {
        "trial_move",       "attempt_end", "trial_lock_each", "trial_lock_free",
        "trial_get_many",   "trial_count", "sweep_judged",    "sweep_lock_free",
        "event_add",        "note_put",    "sweep_documents", "chunk_add",
        "chunk_stored",     "chunk_drop",  "chunk_put",       "measurement_latest",
        "measurement_other"};
    struct tx_run run = tx_run_start(s.db, TX_BATCH, &err);
    while (tx_run_again(&run)) {
        PGconn *c = run.tx->conn->pg;
        ck_ok(conn_exec(run.tx->conn, "select 1", &err), err); /* nothing is deferred after it */
        session_run(c, "insert into attempt (sweep_key, number, attempt, runner, epoch, claim_id) "
                       "select 1, n, 1, 'r', 1, 'c' from generate_series(1, 64) n");
        run.status = as_fail(&err, AS_E_INVAL, "nothing of it stays");
        for (const struct stmt_set *const *set = store_stmt_sets; *set; set++) {
            bool is_of_batches = *set == &batch_find_stmts || *set == &batch_read_stmts ||
                                 *set == &batch_look_stmts || *set == &batch_take_stmts ||
                                 *set == &batch_begin_stmts || *set == &beat_stmts;
            for (size_t i = 0; i < (*set)->n; i++) {
                const struct stmt *st = &(*set)->stmts[i];
                if (!is_of_batches && !is_word_of(others, AS_ARRAY_LEN(others), st->name))
                    continue;
                PGresult *r = explain(c, st);
                for (int row = 0; row < PQntuples(r); row++) {
                    const char *line = PQgetvalue(r, row, 0);
                    ck_assert_msg(!strstr(line, "hashed SubPlan") && !reads_whole(line), "%s: %s",
                                  st->name, line);
                }
                PQclear(r);
            }
        }
    }
    ck_assert_int_eq(run.status, AS_E_INVAL);
}
END_TEST

/* Rows of a table that the open transaction of a session has updated. */
static int64_t updated(PGconn *c, const char *table, bool in_place)
{
    char sql[200];
    snprintf(sql, sizeof sql, "select pg_stat_get_xact_tuples_%supdated('%s'::regclass)",
             in_place ? "hot_" : "", table);
    PGresult *r = PQexec(c, sql);
    int64_t n = -1;
    ck_ok(as_parse_i64(PQgetvalue(r, 0, 0), &n, &err), err);
    PQclear(r);
    return n;
}

/* A statement that moves many trials changes the counts of each sweep once, and no sweep's row. */
START_TEST(counts_change_once_for_each_statement)
{
    make_pair(8);
    PGconn *c = PQconnectdb(s.url);
    session_run(c, "begin");
    session_run(c, "update trial set state = 'paused' where number < 5");
    ck_assert_int_eq(updated(c, "trial", false), 10);
    ck_assert_int_eq(updated(c, "sweep_count", false), 2);
    session_run(c, "update trial set state = case when number < 2 then 'queued' else 'paused' end "
                   "where number < 4");
    session_run(c, "update trial set state = 'running', attempt = attempt + 1 where number < 1");
    ck_assert_int_eq(updated(c, "sweep_count", false), 6);
    session_run(c, "update trial set missing = 1");
    ck_assert_int_eq(updated(c, "sweep_count", false), 6);
    ck_assert_int_eq(updated(c, "sweep_base", false), 0);
    session_run(c, "rollback");
    PQfinish(c);
}
END_TEST

/* Pages that a query reads, by its plan. */
static int64_t pages_read(PGconn *c, const char *sql)
{
    char explain_sql[300];
    int64_t pages = -1;
    snprintf(explain_sql, sizeof explain_sql, "explain (analyze, buffers) %s", sql);
    PGresult *r = PQexec(c, explain_sql);
    ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(c));
    for (int row = 0; row < PQntuples(r) && pages < 0; row++) {
        const char *at = strstr(PQgetvalue(r, row, 0), "Buffers: shared hit=");
        pages = at ? strtoll(at + strlen("Buffers: shared hit="), NULL, 10) : -1;
    }
    PQclear(r);
    return pages;
}

/* While another transaction is open, no version of a row is removed. Whoever looks for a sweep does
 * not read those that its counts had. */
START_TEST(a_sweep_is_found_beside_an_idle_transaction)
{
    make_pair(2);
    struct pg_session *idle = pg_fixture_session(
        s.url, "begin isolation level repeatable read; create table idle_transaction ()");
    PGconn *c = PQconnectdb(s.url);
    session_run(c, "set enable_seqscan = off; set enable_bitmapscan = off");
    session_run(c, "do $$ begin for i in 1..400 loop update trial set state = case when state = "
                   "'running' then 'paused' else 'running' end where number = 0; commit; end loop; "
                   "end $$");
    int64_t versions = pg_fixture_i64(s.url, "select min(version) from sweep_count");
    ck_assert_int_ge(versions, 400);
    int64_t all = pages_read(c, "select sum(c.n_running) from sweep_base b join sweep_count c on "
                                "c.sweep_key = b.key where b.id = 'sets'");
    int64_t one = pages_read(c, "select n_running from sweep where id = 'sets'");
    int64_t turns = pages_read(c, "select max(turns) from sweep_count where is_running");
    ck_assert_int_ge(all, 20); /* versions stand close together */
    ck_assert_int_lt(one, 10);
    ck_assert_int_lt(turns, 15);
    PQfinish(c);
    pg_fixture_session_end(idle);
}
END_TEST

static const struct stmt *statement_of(const char *name)
{
    for (const struct stmt_set *const *set = store_stmt_sets; *set; set++) {
        for (size_t i = 0; i < (*set)->n; i++) {
            if (as_streq((*set)->stmts[i].name, name))
                return &(*set)->stmts[i];
        }
    }
    ck_abort_msg("no statement %s", name);
}

/* The rows of running trials stay in their pages, and no index is written. */
START_TEST(measurements_are_updates_in_place)
{
    static const struct measurement points[] = {{1, "loss", 4}, {1, "acc", 6}};
    make_pair(2);
    struct trial_points sets[] = {
        {.sweep_key = key_of_sets, .number = 0, .attempt = 1, .points = points, .n = 2},
        {.sweep_key = key_of_sets, .number = 1, .attempt = 1, .points = points, .n = 2}};
    add_points(sets, 2);
    char keys[60];
    snprintf(keys, sizeof keys, "{%lld,%lld}", (long long)key_of_sets, (long long)key_of_sets);
    const char *values[] = {keys, "{0,1}", "{1,1,2,2}", "{loss,acc,acc,loss}"};
    PGconn *c = PQconnectdb(s.url);
    session_run(c, "begin");
    PGresult *r =
        PQexecParams(c, statement_of("measurement_latest")->sql, 4, NULL, values, NULL, NULL, 0);
    ck_assert_int_eq(PQntuples(r), 2);
    PQclear(r);
    ck_assert_int_eq(updated(c, "trial", false), 2);
    ck_assert_int_eq(updated(c, "trial", true), 2);
    ck_assert_int_eq(updated(c, "sweep", false), 0);
    session_run(c, "rollback");
    PQfinish(c);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("sets");
    TCase *c = service_case(su, "sets", &s, 0);
    tcase_add_test(c, sets_of_points_are_like_single_ones);
    tcase_add_test(c, chunks_have_the_points_that_rows_would_have);
    tcase_add_test(c, rows_of_an_old_server_become_chunks);
    tcase_add_test(c, latest_values_are_those_of_later_attempts);
    tcase_add_test(c, sets_of_points_that_differ_are_found);
    tcase_add_test(c, sets_of_notes_are_like_single_ones);
    tcase_add_test(c, sets_of_events_keep_their_order_and_nulls);
    tcase_add_test(c, events_of_trials_share_rows);
    tcase_add_test(c, counts_change_once_for_each_statement);
    TCase *alone = service_case_alone(su, "rows in pages, and plans", &s, 0);
    tcase_add_test(alone, a_sweep_is_found_beside_an_idle_transaction);
    tcase_add_test(alone, measurements_are_updates_in_place);
    tcase_add_test(alone, plans_of_sets_do_not_depend_on_statistics);
    tcase_add_test(alone, plans_of_batches_hold_when_tables_grow);
    return su;
}
