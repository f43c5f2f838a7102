/* The queue of the committer, its order, and what it answers when something fails. */
#include "scheduler/commit/committer.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/store/batch_store.h"
#include "tests/scheduler/commit/members.h"
#include "tests/support/check_main.h"

#define TRIALS 8

static struct service s;
static struct as_err err;
static struct committer *committer;

static void make_trials(const char *sweep)
{
    make_sweep(&s, sweep, "'max_trials': 100", ", 'ensemble': false");
    int64_t epoch = make_runner(&s, sweep, 64);
    ck_assert_uint_eq(claim(&s, sweep, epoch, TRIALS).n, TRIALS);
}

static void start(struct committer_opts o)
{
    ck_ok(committer_create(s.db, NULL, &o, &committer, &err), err);
}

static struct committer_figures figures(void)
{
    struct committer_figures f;
    committer_figures_get(committer, &f);
    return f;
}

static struct attempt_ref trial(const char *sweep, int64_t number)
{
    return (struct attempt_ref){sweep, number, 1};
}

static void free_all(struct member **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        member_free(list[i]);
}

/* ---- a table of functions that stops, and that fails ---- */

static struct {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    int began, ran;    /* calls of run() that began, that ended */
    int most;          /* so many may run; 0: all, -1: none */
    int synced;        /* calls of sync() that began */
    bool is_shut;      /* sync() waits */
    bool loses_commit; /* the answer to COMMIT is lost */
    bool loses_sync;
} gate = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static as_status gate_run(void *ctx, batch_body *body, void *arg, struct batch_end_of_run *ret,
                          struct as_err *e)
{
    pthread_mutex_lock(&gate.mu);
    int nth = ++gate.began;
    pthread_cond_broadcast(&gate.changed);
    while (gate.most && nth > gate.most)
        pthread_cond_wait(&gate.changed, &gate.mu);
    pthread_mutex_unlock(&gate.mu);
    as_status st = batch_store_ops.run(ctx, body, arg, ret, e);
    pthread_mutex_lock(&gate.mu);
    gate.ran++;
    if (gate.loses_commit) {
        gate.loses_commit = false;
        ret->is_away = true;
        st = as_fail(e, AS_E_UNAVAILABLE, "the answer was lost");
    }
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mu);
    return st;
}

static as_status gate_sync(void *ctx, int64_t sent_ns, struct as_err *e)
{
    pthread_mutex_lock(&gate.mu);
    gate.synced++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.is_shut)
        pthread_cond_wait(&gate.changed, &gate.mu);
    bool is_lost = gate.loses_sync;
    gate.loses_sync = false;
    pthread_mutex_unlock(&gate.mu);
    if (is_lost)
        return as_fail(e, AS_E_UNAVAILABLE, "the disk is away");
    return batch_store_ops.sync(ctx, sent_ns, e);
}

static void open_gate(void)
{
    pthread_mutex_lock(&gate.mu);
    gate.began = gate.ran = gate.most = gate.synced = 0;
    gate.is_shut = gate.loses_commit = gate.loses_sync = false;
    pthread_mutex_unlock(&gate.mu);
}

static void begin(void)
{
    open_gate();
    make_trials("a");
}

static void start_gated(void)
{
    static struct batch_ops ops;
    ops = batch_store_ops;
    ops.run = gate_run;
    ops.sync = gate_sync;
    start((struct committer_opts){.ops = &ops, .ops_ctx = s.db});
}

static void await(const int *count, int n)
{
    pthread_mutex_lock(&gate.mu);
    while (*count < n)
        pthread_cond_wait(&gate.changed, &gate.mu);
    pthread_mutex_unlock(&gate.mu);
}

static void set_shut(bool is_shut)
{
    pthread_mutex_lock(&gate.mu);
    gate.is_shut = is_shut;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mu);
}

static void let_run(int most)
{
    pthread_mutex_lock(&gate.mu);
    gate.most = most;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mu);
}

/* ---- the disk ---- */

/* The next batch begins while one waits for the disk, and nobody is answered before his own is
 * there. */
START_TEST(answers_come_after_the_disk)
{
    struct member *first = member_end(trial("a", 0), OUTCOME_FAILED);
    struct member *second = member_end(trial("a", 1), OUTCOME_FAILED);
    start_gated();
    set_shut(true);
    ck_ok(members_submit(committer, &first, 1, &err), err);
    await(&gate.ran, 1);
    await(&gate.synced, 1);
    ck_ok(members_submit(committer, &second, 1, &err), err);
    await(&gate.ran, 2);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_FAILED], 2);
    ck_assert(!member_is_done(first) && !member_is_done(second));
    set_shut(false);
    members_wait(&first, 1);
    members_wait(&second, 1);
    ck_ok(first->m.status, first->m.err);
    ck_ok(second->m.status, second->m.err);
    ck_assert_int_eq(figures().syncs, 2);
    committer_free(committer);
    member_free(first);
    member_free(second);
}
END_TEST

static void losing(bool *what)
{
    struct member *list[3] = {member_end(trial("a", 0), OUTCOME_COMPLETED),
                              member_record(trial("a", 1), 3, 0.5),
                              member_end(trial("a", 2), OUTCOME_RETRY)};
    member_final(list[0], 0.25);
    start_gated();
    *what = true;
    members_commit(committer, list, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(list[i]->m.status, AS_E_UNAVAILABLE);
    members_commit(committer, list, 3);
    for (int i = 0; i < 3; i++)
        ck_ok(list[i]->m.status, list[i]->m.err);
    ck_assert_int_eq(list[0]->m.out.trial.state, TRIAL_COMPLETED);
    ck_assert(list[0]->m.out.trial.value == 0.25);
    ck_assert_int_eq(list[1]->m.out.recorded, 0); /* it was recorded before */
    ck_assert_int_eq(list[2]->m.out.trial.restarts, 1);
    ck_assert_int_eq(figures().fallbacks, 0);
    committer_free(committer);
    free_all(list, 3);
}

/* Everybody is told "unavailable", and the repeat gets the answer. */
START_TEST(a_lost_answer_to_commit)
{
    losing(&gate.loses_commit);
}
END_TEST

START_TEST(a_lost_answer_of_the_disk)
{
    losing(&gate.loses_sync);
}
END_TEST

/* The connection that waits for the disk was lost after the commit: nobody knows. */
START_TEST(a_wait_on_a_younger_connection_is_no_answer)
{
    struct member *x = member_end(trial("a", 0), OUTCOME_FAILED);
    start_gated();
    set_shut(true);
    ck_ok(members_submit(committer, &x, 1, &err), err);
    await(&gate.synced, 1);
    pg_fixture_kill_backends(s.url);
    set_shut(false);
    members_wait(&x, 1);
    ck_assert_int_eq(x->m.status, AS_E_UNAVAILABLE);
    for (int i = 0; i < 10 && x->m.status == AS_E_UNAVAILABLE; i++)
        members_commit(committer, &x, 1); /* other connections may only be dying now */
    ck_ok(x->m.status, x->m.err);
    committer_free(committer);
    member_free(x);
}
END_TEST

/* ---- poison ---- */

START_TEST(poison_hurts_nobody_else)
{
    struct member *list[5];
    pg_fixture_exec(s.url, "create function poison() returns trigger language plpgsql as $$ begin "
                           "raise exception 'poison'; end $$; create trigger poison before insert "
                           "on trial_note for each row when (new.text = 'poison') execute function "
                           "poison()");
    start((struct committer_opts){0});
    for (int i = 0; i < 4; i++)
        list[i] = member_end(trial("a", i), i == 3 ? OUTCOME_RELEASED : OUTCOME_FAILED);
    list[4] = member_record(trial("a", 4), 0, 1);
    list[4]->notes[0] = (struct trial_note){"said", "poison"};
    list[4]->m.in.report.notes = list[4]->notes;
    list[4]->m.in.report.n_notes = 1;
    members_commit(committer, list, 5);
    for (int i = 0; i < 4; i++)
        ck_ok(list[i]->m.status, list[i]->m.err);
    ck_assert_int_eq(list[3]->m.out.trial.state, TRIAL_QUEUED);
    ck_fails(list[4]->m.status, AS_E_INTERNAL, list[4]->m.err, "poison");
    ck_assert_int_eq(figures().fallbacks, 1);
    ck_assert_int_eq(figures().alone, 5);
    committer_free(committer);
    free_all(list, 5);
}
END_TEST

/* ---- rows that others hold ---- */

START_TEST(a_held_sweep_delays_no_other)
{
    struct member *held = member_end(trial("a", 0), OUTCOME_FAILED), *list[TRIALS];
    make_trials("b");
    start((struct committer_opts){0});
    struct pg_session *p =
        pg_fixture_session(s.url, "begin; update sweep_base set reason = reason where id = 'a'");
    ck_ok(members_submit(committer, &held, 1, &err), err);
    for (int i = 0; i < TRIALS; i++) {
        list[i] = member_end(trial("b", i), OUTCOME_FAILED);
        members_commit(committer, &list[i], 1);
        ck_ok(list[i]->m.status, list[i]->m.err);
    }
    ck_assert(!member_is_done(held));
    pg_fixture_session_end(p);
    members_wait(&held, 1);
    ck_ok(held->m.status, held->m.err);
    ck_assert_int_ge(figures().postponed, 1);
    ck_assert_int_eq(figures().fallbacks, 0);
    committer_free(committer);
    member_free(held);
    free_all(list, TRIALS);
}
END_TEST

START_TEST(a_full_queue_refuses)
{
    struct member *list[3], *more[2];
    start((struct committer_opts){.queue_max = 4});
    struct pg_session *p =
        pg_fixture_session(s.url, "begin; update trial set reason = reason where number < 3");
    for (int i = 0; i < 3; i++)
        list[i] = member_record(trial("a", i), 0, 1);
    ck_ok(members_submit(committer, list, 3, &err), err);
    for (int i = 0; i < 2; i++)
        more[i] = member_record(trial("a", 4 + i), 0, 1);
    ck_fails(members_submit(committer, more, 2, &err), AS_E_UNAVAILABLE, err, "3 operations wait");
    ck_assert_int_eq(figures().refused, 2);
    members_commit(committer, more, 1); /* there is room for one */
    ck_ok(more[0]->m.status, more[0]->m.err);
    pg_fixture_session_end(p);
    members_wait(list, 3);
    members_commit(committer, more, 2);
    for (int i = 0; i < 3; i++)
        ck_ok(list[i]->m.status, list[i]->m.err);
    ck_assert_int_eq(figures().queued, 0);
    committer_free(committer);
    free_all(list, 3);
    free_all(more, 2);
}
END_TEST

/* ---- order ---- */

START_TEST(members_of_a_trial_keep_their_order)
{
    struct member *list[4] = {
        member_record(trial("a", 0), 0, 0.5), member_record(trial("a", 0), 0, 0.7),
        member_end(trial("a", 0), OUTCOME_COMPLETED), member_record(trial("a", 0), 1, 0.9)};
    start((struct committer_opts){.is_single = _i == 1});
    members_commit(committer, list, 4);
    for (int i = 0; i < 3; i++)
        ck_ok(list[i]->m.status, list[i]->m.err);
    ck_assert_int_eq(list[0]->m.out.recorded, 1);
    ck_assert_int_eq(list[1]->m.out.recorded, 0);
    ck_assert(list[2]->m.out.trial.value == 0.5);
    ck_assert_int_eq(list[3]->m.status, AS_E_STALE);
    ck_assert_int_eq(figures().alone, _i == 1 ? 4 : 0);
    ck_assert_int_eq(figures().members, _i == 1 ? 0 : 4);
    ck_assert_int_eq(figures().batches, _i == 1 ? 0 : 2); /* the end with the reports before it */
    committer_free(committer);
    free_all(list, 4);
}
END_TEST

/* Of two that come while the results of a round are decided, the claim is in that round and the
 * result in the next one. */
START_TEST(a_claim_joins_the_round)
{
    struct member *first = member_end(trial("a", 0), OUTCOME_FAILED);
    struct member *next = member_end(trial("a", 1), OUTCOME_FAILED);
    struct member *claim = member_claim("joins", make_runner(&s, "joins", 4), "c1", 1);
    start_gated();
    let_run(-1);
    ck_ok(members_submit(committer, &first, 1, &err), err);
    await(&gate.began, 1);
    ck_ok(members_submit(committer, &next, 1, &err), err);
    ck_ok(members_submit(committer, &claim, 1, &err), err);
    let_run(2);
    await(&gate.began, 3);
    while (!member_is_done(claim) && !member_is_done(next))
        usleep(1000);
    ck_assert(member_is_done(claim) && !member_is_done(next));
    ck_ok(claim->m.status, claim->m.err);
    ck_assert_uint_eq(claim->m.out.claim.n, 1);
    let_run(0);
    members_wait(&next, 1);
    ck_ok(next->m.status, next->m.err);
    committer_free(committer);
    member_free(first);
    member_free(next);
    member_free(claim);
}
END_TEST

/* Drain: no new members, and all old ones have their answer. */
START_TEST(draining_answers_everybody)
{
    struct member *list[TRIALS], *late = member_record(trial("a", 0), 5, 1);
    start((struct committer_opts){0});
    for (int i = 0; i < TRIALS; i++)
        list[i] = member_record(trial("a", i), 0, i);
    ck_ok(members_submit(committer, list, TRIALS, &err), err);
    committer_drain(committer);
    for (int i = 0; i < TRIALS; i++) {
        ck_assert(member_is_done(list[i]));
        ck_ok(list[i]->m.status, list[i]->m.err);
    }
    ck_fails(members_submit(committer, &late, 1, &err), AS_E_UNAVAILABLE, err, "stopping");
    committer_free(committer);
    free_all(list, TRIALS);
    member_free(late);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("commit_committer");
    TCase *t = service_case(suite, "committer", &s, 0);
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_test(t, answers_come_after_the_disk);
    tcase_add_test(t, a_lost_answer_to_commit);
    tcase_add_test(t, a_lost_answer_of_the_disk);
    tcase_add_test(t, a_wait_on_a_younger_connection_is_no_answer);
    tcase_add_test(t, poison_hurts_nobody_else);
    tcase_add_test(t, a_held_sweep_delays_no_other);
    tcase_add_test(t, a_full_queue_refuses);
    tcase_add_test(t, a_claim_joins_the_round);
    tcase_add_loop_test(t, members_of_a_trial_keep_their_order, 0, 2);
    tcase_add_test(t, draining_answers_everybody);
    return suite;
}
