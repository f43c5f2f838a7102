/* Heartbeats that are written together, beside the same one after the other. */
#include "scheduler/commit/beats.h"

#include <pthread.h>
#include <stdio.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define MANY 40
/* SHA-256 of secrets */
#define RIGHT "0000000000000000000000000000000000000000000000000000000000000001"
#define WRONG "0000000000000000000000000000000000000000000000000000000000000002"

static struct service s;
static struct as_err err;
static struct beats *beats;

static void start(void)
{
    ck_ok(beats_create(s.db, &beats, &err), err);
}

static void stop(void)
{
    beats_free(beats);
    beats = NULL;
}

/* ---- members, and who waits for them ---- */

static struct {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    int n_done;
    bool is_shut; /* `done` waits */
} gate = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_done(struct beat_member *m)
{
    (void)m;
    pthread_mutex_lock(&gate.mu);
    gate.n_done++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.is_shut)
        pthread_cond_wait(&gate.changed, &gate.mu);
    pthread_mutex_unlock(&gate.mu);
}

static void shut(bool is_shut)
{
    pthread_mutex_lock(&gate.mu);
    gate.is_shut = is_shut;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mu);
}

static void await_done(int n)
{
    pthread_mutex_lock(&gate.mu);
    while (gate.n_done < n)
        pthread_cond_wait(&gate.changed, &gate.mu);
    pthread_mutex_unlock(&gate.mu);
}

/* Submit members as one set: one before them holds the thread meanwhile. */
static void beat_together(struct beat_member *members, size_t n)
{
    struct beat_member first = {.ask = {.id = {"nobody", 1, NULL}}, .done = on_done};
    gate.n_done = 0;
    shut(true);
    beats_submit(beats, &first);
    await_done(1);
    for (size_t i = 0; i < n; i++) {
        members[i].done = on_done;
        beats_submit(beats, &members[i]);
    }
    shut(false);
    await_done((int)n + 1);
    ck_assert(first.status == AS_OK && !first.fact.is_plain); /* there is no such runner */
}

static struct beat_member idle(const char *name, int64_t epoch)
{
    return (struct beat_member){.ask = {.id = {name, epoch, NULL}}};
}

/* A runner that lists one attempt. */
static struct beat_member busy(const char *name, int64_t epoch, const struct attempt_ref *ref)
{
    struct beat_member m = idle(name, epoch);
    m.ask.attempts = ref;
    m.ask.n = 1;
    return m;
}

static struct attempt_ref claimed(const char *runner, int64_t epoch)
{
    struct claimed_row c = claim_one(&s, runner, epoch);
    return ref_of(&c);
}

/* ---- leases ---- */

/* All leases end in a second. */
static void age_leases(void)
{
    pg_fixture_exec(s.url, "update runner set expires_at = clock_timestamp() + interval '1 s'");
}

/* Has its lease been extended since? */
static bool is_fresh(const char *name)
{
    char sql[200];
    (void)snprintf(sql, sizeof sql,
                   "select (expires_at > clock_timestamp() + interval '5 s')::int from runner "
                   "where name = '%s'",
                   name);
    return pg_fixture_i64(s.url, sql) == 1;
}

START_TEST(a_set_settles_what_needs_no_decision)
{
    make_sweep(&s, "a", "'max_trials': 20", "");
    int64_t e = make_runner(&s, "rests", 1), w = make_runner(&s, "works", 2);
    int64_t d = make_runner(&s, "drains", 1), f = make_runner(&s, "forgets", 1);
    int64_t o = make_runner(&s, "old", 1), l = make_runner(&s, "lost", 1);
    int64_t p = make_runner(&s, "pruned", 1);
    struct attempt_ref own = claimed("works", w), pruned = claimed("pruned", p);
    struct attempt_ref gone = claimed("forgets", f), past = {own.sweep, own.number, 7};
    ck_ok(runner_drain(s.db, "drains", true, &err), err);
    pg_fixture_exec(s.url, "update runner set state = 'lost' where name = 'lost'");
    pg_fixture_exec(s.url, "update trial set decision = 'prune' where runner = 'pruned'");
    age_leases();
    struct beat_member m[] = {
        idle("rests", e),           busy("works", w, &own),  idle("drains", d),
        idle("forgets", f),         idle("old", o - 1),      idle("lost", l),
        busy("pruned", p, &pruned), busy("rests", e, &gone), busy("works", w, &past)};
    beat_together(m, AS_ARRAY_LEN(m));
    for (size_t i = 0; i < AS_ARRAY_LEN(m); i++)
        ck_assert_msg(m[i].status == AS_OK && (i > 6 || m[i].fact.is_plain == (i < 3)),
                      "heartbeat %zu", i);
    ck_assert(!m[0].fact.is_draining && !m[1].fact.is_draining && m[2].fact.is_draining);
    /* a runner is in a set once: the other one is looked at alone, or lists what is not its own */
    ck_assert(!m[7].fact.is_plain && !m[8].fact.is_plain);
    ck_assert(is_fresh("rests") && is_fresh("works") && is_fresh("drains"));
    ck_assert(!is_fresh("old") && !is_fresh("lost"));
    /* what the single path says of those that are plain */
    struct directive_list alone;
    ck_ok(heartbeat(&s, "works", w, &own, 1, &alone, &err), err);
    ck_assert(alone.n == 0 && !alone.drain);
    ck_ok(heartbeat(&s, "drains", d, NULL, 0, &alone, &err), err);
    ck_assert(alone.n == 0 && alone.drain);
    /* and of the others */
    ck_ok(heartbeat(&s, "pruned", p, &pruned, 1, &alone, &err), err);
    ck_assert_uint_eq(alone.n, 1);
    ck_ok(heartbeat(&s, "rests", e, &gone, 1, &alone, &err), err);
    ck_assert_uint_eq(alone.n, 1);
    ck_assert_int_eq(heartbeat(&s, "old", o - 1, NULL, 0, &alone, &err), AS_E_STALE);
}
END_TEST

/* A runner that no longer lists an attempt gives it up: the second heartbeat without it counts. */
START_TEST(what_is_not_listed_is_not_plain)
{
    make_sweep(&s, "a", "'max_trials': 20", "");
    int64_t e = make_runner(&s, "r", 2);
    struct attempt_ref refs[] = {claimed("r", e), claimed("r", e)};
    struct directive_list alone;
    struct beat_member m = busy("r", e, &refs[0]);
    beat_together(&m, 1);
    ck_assert(!m.fact.is_plain);
    ck_ok(heartbeat(&s, "r", e, refs, 1, &alone, &err), err);
    m.ask.attempts = refs;
    m.ask.n = 2;
    beat_together(&m, 1); /* one was missing before: that is taken back alone */
    ck_assert(!m.fact.is_plain);
    ck_ok(heartbeat(&s, "r", e, refs, 2, &alone, &err), err);
    beat_together(&m, 1);
    ck_assert(m.fact.is_plain);
    struct attempt_ref twice[] = {refs[0], refs[0]};
    m.ask.attempts = twice;
    ck_assert(!beats_takes(&m.ask));
    m.ask.attempts = refs;
    ck_assert(beats_takes(&m.ask));
}
END_TEST

START_TEST(what_runners_say_is_recorded)
{
    make_sweep(&s, "a", "'max_trials': 20", "");
    int64_t e = make_runner(&s, "r", 1), f = make_runner(&s, "q", 1), old = make_runner(&s, "o", 1);
    struct attempt_ref mine = claimed("r", e), other = claimed("q", f), third = claimed("o", old);
    struct attempt_said said[] = {{.ref = mine, .phase = RUN_RUNNING, .ran_ms = 1234},
                                  {.ref = other, .phase = RUN_ENDED, .ran_ms = 77},
                                  {.ref = third, .phase = RUN_RUNNING, .ran_ms = 5}};
    struct beat_member m[] = {busy("r", e, &mine), busy("q", f, &other),
                              busy("o", old - 1, &third)};
    for (int i = 0; i < 3; i++) {
        m[i].ask.said = &said[i];
        m[i].ask.n_said = 1;
    }
    beat_together(m, 3);
    ck_assert(m[0].fact.is_plain && m[1].fact.is_plain && !m[2].fact.is_plain);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select ran_ms from attempt where runner = 'r' and "
                                           "phase = 'running'"),
                     1234);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select ran_ms from attempt where runner = 'q' and "
                                           "phase = 'ended'"),
                     77);
    /* an old epoch says nothing */
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from attempt where runner = 'o' and "
                                           "phase is not null"),
                     0);
}
END_TEST

START_TEST(a_secret_is_asked_for)
{
    struct registration r;
    struct runner_register req = {.name = "r", .slots = 1, .secret = RIGHT};
    ck_ok(runner_register(s.db, &s.a, &req, &r, &err), err);
    struct beat_member m[] = {idle("r", r.epoch), idle("r", r.epoch)};
    m[1].ask.id.secret = WRONG;
    beat_together(m, 2);
    ck_assert(!m[0].fact.is_plain && !m[1].fact.is_plain);
    m[0].ask.id.secret = RIGHT;
    beat_together(m, 1);
    ck_assert(m[0].fact.is_plain);
}
END_TEST

/* Many at once are one transaction, and a row that is locked holds nobody up. */
START_TEST(many_share_a_transaction_and_wait_for_no_row)
{
    char names[MANY][16];
    struct beat_member m[MANY];
    struct beats_figures before, after;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "r%d", i);
        m[i] = idle(names[i], make_runner(&s, names[i], 1));
    }
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        bool same = false;
        run.status = store_runner_is_same(run.tx, "r7", NULL, &same, &err); /* locks it */
        beats_figures_get(beats, &before);
        beat_together(m, MANY);
        beats_figures_get(beats, &after);
    }
    ck_ok(run.status, err);
    ck_assert_int_eq(after.sets - before.sets, 2); /* the first is beat_together()'s own */
    ck_assert_int_eq(after.plain - before.plain, MANY - 1);
    for (int i = 0; i < MANY; i++)
        ck_assert_msg(m[i].fact.is_plain == (i != 7), "runner %d", i);
}
END_TEST

START_TEST(without_a_database_it_is_said)
{
    struct store *db = NULL;
    struct beats *away = NULL;
    struct store_opts opts = {.url = "postgresql://127.0.0.1:1/none"};
    struct beat_member m = idle("r", 1);
    ck_ok(store_open(&opts, &db, &err), err);
    ck_ok(beats_create(db, &away, &err), err);
    m.done = on_done;
    gate.n_done = 0;
    beats_submit(away, &m);
    await_done(1);
    ck_assert(m.status == AS_E_UNAVAILABLE && !m.fact.is_plain);
    beats_free(away);
    store_close(db);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("commit_beats");
    TCase *t = service_case(suite, "beats", &s, 0);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, a_set_settles_what_needs_no_decision);
    tcase_add_test(t, what_is_not_listed_is_not_plain);
    tcase_add_test(t, what_runners_say_is_recorded);
    tcase_add_test(t, a_secret_is_asked_for);
    tcase_add_test(t, many_share_a_transaction_and_wait_for_no_row);
    tcase_add_test(t, without_a_database_it_is_said);
    return suite;
}
