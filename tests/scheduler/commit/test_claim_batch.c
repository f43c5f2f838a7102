/* Batches of claims against claims one after another: the same schedule on two databases gives the
 * same trials to the same claims, and leaves the same tables. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/scheduler/commit/members.h"
#include "tests/support/check_main.h"

#define RUNNERS 6
#define CLAIMS 6 /* of a round */

static struct service s, alone; /* in batches; one after another */
static struct as_err err;
static int64_t epochs[RUNNERS];
static struct committer *committer;
static int serial;

static const char *runner_name(int i)
{
    static const char *const names[RUNNERS] = {"r0", "r1", "r2", "r3", "r4", "r5"};
    return names[i];
}

static void begin(void)
{
    ck_ok(committer_create(s.db, NULL, &(struct committer_opts){0}, &committer, &err), err);
    service_begin(&alone, 0);
    for (int i = 0; i < RUNNERS; i++) {
        epochs[i] = make_runner(&s, runner_name(i), 4 + i);
        ck_assert_int_eq(make_runner(&alone, runner_name(i), 4 + i), epochs[i]);
    }
}

static void end_both(void)
{
    committer_free(committer);
    check_invariants(&alone);
    service_end(&alone);
}

static void make_both(const char *name, const char *limits, const char *more)
{
    make_sweep(&s, name, limits, more);
    make_sweep(&alone, name, limits, more);
}

static struct member *claim_of(int runner, int64_t max)
{
    char id[16];
    (void)snprintf(id, sizeof id, "c%d", serial++);
    return member_claim(runner_name(runner), epochs[runner], id, max);
}

static void same_text(const char *a, const char *b)
{
    ck_assert_str_eq(a ? a : "(null)", b ? b : "(null)");
}

static void same_claim(const struct member *l, const struct member *r)
{
    const struct claim_list *a = &l->m.out.claim, *b = &r->m.out.claim;
    ck_assert_msg(l->m.status == r->m.status, "%d (%s) and %d (%s)", l->m.status, l->m.err.msg,
                  r->m.status, r->m.err.msg);
    same_text(l->m.err.msg, r->m.err.msg);
    if (l->m.status != AS_OK)
        return;
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_int_eq(a->awaits_ends, b->awaits_ends);
    for (size_t i = 0; i < a->n; i++) {
        const struct claimed_row *x = NULL, *y = &b->rows[i];
        for (size_t k = 0; k < a->n && !x; k++)
            if (as_streq(a->rows[k].sweep, y->sweep) && a->rows[k].number == y->number)
                x = &a->rows[k];
        ck_assert_msg(x, "%s/%lld is missing", y->sweep, (long long)y->number);
        ck_assert_int_eq(x->attempt, y->attempt);
        ck_assert_int_eq(x->seed, y->seed);
        same_text(x->params, y->params);
        same_text(x->trial, y->trial);
        same_text(x->metric, y->metric);
        ck_assert_int_eq(x->maximize, y->maximize);
        ck_assert_int_eq(x->gpus, y->gpus);
        ck_assert_int_eq(x->cpus, y->cpus);
        ck_assert_int_eq(x->timeout_ms, y->timeout_ms);
        ck_assert_int_eq(x->grace_ms, y->grace_ms);
        ck_assert_int_eq(x->early_stopping, y->early_stopping);
        ck_assert_int_eq(x->gives_ahead, y->gives_ahead);
        ck_assert_uint_eq(x->n_inactive, y->n_inactive);
        ck_assert_uint_eq(x->files.n, y->files.n);
        for (size_t k = 0; k < x->files.n; k++) {
            same_text(x->files.rows[k].path, y->files.rows[k].path);
            same_text(x->files.rows[k].sha256, y->files.rows[k].sha256);
            ck_assert_int_eq(x->files.rows[k].size, y->files.rows[k].size);
        }
        ck_assert_ptr_eq(x->group, NULL);
    }
}

/* The rows of both databases, as texts. */
static void same_tables(void)
{
    static const char *const queries[] = {
        "select string_agg(concat_ws('|', s.id, number, t.state, attempt, params, suggestion, "
        "t.seed, origin, suggestion_index, seen, runner, t.epoch, decision, value, metrics), "
        "',' order by s.id, number) from trial t join sweep s on s.key = t.sweep_key",
        "select string_agg(concat_ws('|', s.id, number, attempt, runner, epoch, claim_id, "
        "outcome), "
        "',' order by s.id, number, attempt) from attempt t join sweep s on s.key = t.sweep_key",
        "select string_agg(concat_ws('|', id, state, planned, n_total, n_running, n_queued, "
        "n_completed, n_suggested, turns, started_at is null), ',' order by id) from sweep",
        "select string_agg(id, ',' order by served) from sweep",
        "select string_agg(concat_ws('|', type, sweep, number, state, attempt, runner), ',' order "
        "by sweep, number, attempt, type, state) from event_each where type = 'trial.changed'"};
    for (size_t i = 0; i < AS_ARRAY_LEN(queries); i++) {
        static char l[400000], r[400000];
        pg_fixture_text(s.url, queries[i], l, sizeof l);
        pg_fixture_text(alone.url, queries[i], r, sizeof r);
        ck_assert_msg(strcmp(l, r) == 0, "query %zu:\n%.3000s\n%.3000s", i, l, r);
    }
}

/* Give the trial back to the queue, with a checkpoint of two files or without one. */
static void release_both(struct attempt_ref ref, bool has_checkpoint)
{
    struct service *const both[] = {&s, &alone};
    char hex[SHA256_HEX_SIZE], sql[400];
    for (size_t i = 0; i < 2; i++) {
        put_blob(both[i], "state", hex);
        (void)snprintf(
            sql, sizeof sql,
            "insert into trial_file (sweep_key, number, kind, path, size, sha256) select "
            "s.key, %lld, 'checkpoint', p, 5, '%s' from sweep s, (values ('b'), ('a')) "
            "as v(p) where s.id = '%s' on conflict do nothing",
            (long long)ref.number, hex, ref.sweep);
        if (has_checkpoint)
            pg_fixture_exec(both[i]->url, sql);
    }
    struct member *back = member_end(ref, OUTCOME_RELEASED);
    members_commit(committer, &back, 1);
    ck_ok(back->m.status, back->m.err);
    member_free(back);
    end(&alone, ref, OUTCOME_RELEASED);
}

/* Some of the runners claim; then some of their trials end. */
static void run_round(struct rng *rng)
{
    struct member *l[CLAIMS], *r[CLAIMS];
    size_t n = 1 + rng_below(rng, CLAIMS), offset = rng_below(rng, RUNNERS);
    for (size_t i = 0; i < n; i++) {
        int runner = (int)((i + offset) % RUNNERS), at = serial;
        int64_t max = 1 + (int64_t)rng_below(rng, 5);
        bool is_ahead = rng_below(rng, 3) == 0; /* it gets less, although slots are free */
        l[i] = claim_of(runner, max);
        serial = at;
        r[i] = claim_of(runner, max);
        ((struct claim_request *)l[i]->m.in.claim)->is_ahead = is_ahead;
        ((struct claim_request *)r[i]->m.in.claim)->is_ahead = is_ahead;
        commit_alone(alone.db, NULL, &r[i]->m);
    }
    members_commit(committer, l, n);
    for (size_t i = 0; i < n; i++)
        same_claim(l[i], r[i]);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < r[i]->m.out.claim.n; k++) {
            if (rng_below(rng, 3) == 0)
                continue;
            struct attempt_ref ref = ref_of(&r[i]->m.out.claim.rows[k]);
            if (rng_below(rng, 4) == 0) {
                release_both(ref, rng_below(rng, 2));
                continue;
            }
            double loss = (double)rng_below(rng, 100);
            struct member *end = member_end(ref, OUTCOME_COMPLETED);
            member_final(end, loss);
            members_commit(committer, &end, 1);
            ck_ok(end->m.status, end->m.err);
            finish(&alone, ref, loss);
            member_free(end);
        }
        member_free(l[i]);
        member_free(r[i]);
    }
}

static struct committer_figures run_rounds(uint64_t seed, int rounds)
{
    struct rng rng;
    struct committer_figures f;
    rng_init(&rng, seed, 0);
    for (int i = 0; i < rounds; i++)
        run_round(&rng);
    same_tables();
    committer_figures_get(committer, &f);
    ck_assert_int_eq(f.fallbacks, 0);
    return f;
}

START_TEST(turns_are_as_one_after_another)
{
    make_both("a", "'max_trials': 60", ", 'ensemble': false");
    make_both("b", "'max_trials': 40, 'max_concurrent_trials': 3", ", 'ensemble': false");
    make_both("c", "'max_trials': 50", ", 'ensemble': false, 'priority': 2");
    make_both("d", "'max_trials': 12", ", 'ensemble': false");
    struct committer_figures f = run_rounds((uint64_t)_i + 1, 14);
    ck_assert_int_eq(f.alone, 0);
}
END_TEST

START_TEST(with_gpus_that_nobody_has)
{
    make_both("g", "'max_trials': 9, 'max_concurrent_trials': 4", ", 'ensemble': false");
    make_both("p", "'max_trials': 9", ", 'ensemble': false, 'resources': {'gpus': 1}");
    run_rounds((uint64_t)_i + 20, 10);
}
END_TEST

START_TEST(early_stopping_is_said)
{
    make_both("a", "'max_trials': 8",
              ", 'ensemble': false, 'early_stopping': {'method': 'asha', 'min_steps': 1, "
              "'max_steps': 4, 'eta': 2}");
    make_both("b", "'max_trials': 8", ", 'ensemble': false");
    int at = serial;
    struct member *l = claim_of(0, 4);
    serial = at;
    struct member *r = claim_of(0, 4);
    commit_alone(alone.db, NULL, &r->m);
    members_commit(committer, &l, 1);
    size_t stops = 0;
    for (size_t i = 0; i < r->m.out.claim.n; i++) {
        const struct claimed_row *row = &r->m.out.claim.rows[i];
        ck_assert_int_eq(row->early_stopping, strcmp(row->sweep, "a") == 0);
        stops += row->early_stopping;
    }
    ck_assert_uint_gt(stops, 0);
    ck_assert_uint_lt(stops, r->m.out.claim.n);
    same_claim(l, r);
    member_free(l);
    member_free(r);
}
END_TEST

/* Repeats, and claims that are refused, run alone. */
START_TEST(the_rest_runs_alone)
{
    make_both("a", "'max_trials': 8", ", 'ensemble': false");
    struct member *l = claim_of(0, 2), *again = claim_of(0, 2);
    members_commit(committer, &l, 1);
    ck_ok(l->m.status, l->m.err);
    ck_assert_uint_eq(l->m.out.claim.n, 2);
    /* a repeat */
    ((struct claim_request *)again->m.in.claim)->claim_id = l->m.in.claim->claim_id;
    members_commit(committer, &again, 1);
    ck_ok(again->m.status, again->m.err);
    ck_assert_uint_eq(again->m.out.claim.n, 2);
    ck_assert_int_eq(again->m.out.claim.rows[0].number, l->m.out.claim.rows[0].number);
    /* another epoch, a runner that is not there, a request that is wrong */
    struct member *bad[3] = {claim_of(2, 1), claim_of(3, 1), claim_of(4, 70)};
    ((struct claim_request *)bad[0]->m.in.claim)->epoch = 99;
    ((struct claim_request *)bad[1]->m.in.claim)->runner = "nobody";
    members_commit(committer, bad, 3);
    ck_fails(bad[0]->m.status, AS_E_STALE, bad[0]->m.err, "register again");
    ck_assert_int_eq(bad[1]->m.status, AS_E_NOT_FOUND);
    ck_assert_int_eq(bad[2]->m.status, AS_E_INVAL);
    struct committer_figures f;
    committer_figures_get(committer, &f);
    ck_assert_int_eq(f.alone, 4);
    ck_assert_int_eq(f.fallbacks, 0);
    struct member *all[5] = {l, again, bad[0], bad[1], bad[2]};
    for (size_t i = 0; i < 5; i++)
        member_free(all[i]);
}
END_TEST

/* Attempts that end free their slots. */
START_TEST(ending_attempts_free_their_slots)
{
    make_both("a", "'max_trials': 20", ", 'ensemble': false");
    struct member *l = claim_of(0, 4), *full = claim_of(0, 4), *more = claim_of(0, 4);
    members_commit(committer, &l, 1);
    ck_assert_uint_eq(l->m.out.claim.n, 4);
    members_commit(committer, &full, 1);
    ck_assert_uint_eq(full->m.out.claim.n, 0);
    struct attempt_ref ending[2] = {ref_of(&l->m.out.claim.rows[1]),
                                    ref_of(&l->m.out.claim.rows[3])};
    ((struct claim_request *)more->m.in.claim)->ending = ending;
    ((struct claim_request *)more->m.in.claim)->n_ending = 2;
    members_commit(committer, &more, 1);
    ck_assert_uint_eq(more->m.out.claim.n, 2);
    struct committer_figures f;
    committer_figures_get(committer, &f);
    ck_assert_int_eq(f.alone, 0);
    member_free(l);
    member_free(full);
    member_free(more);
}
END_TEST

/* Claims look for what their runner holds from its first trial that runs. */
START_TEST(what_a_runner_held_is_not_read_again)
{
    make_both("a", "'max_trials': 20", ", 'ensemble': false");
    struct member *first = claim_of(0, 2), *second = claim_of(0, 2);
    members_commit(committer, &first, 1);
    ck_assert_uint_eq(first->m.out.claim.n, 2);
    int64_t begun = pg_fixture_i64(s.url, "select min(begun) from trial where state = 'running'");
    finish(&s, ref_of(&first->m.out.claim.rows[0]), 1);
    finish(&s, ref_of(&first->m.out.claim.rows[1]), 1);
    pg_fixture_exec(s.url, "update runner set seen_at = seen_at - interval '1 s'");
    members_commit(committer, &second, 1);
    ck_assert_uint_eq(second->m.out.claim.n, 2);
    ck_assert_int_gt(pg_fixture_i64(s.url, "select max(begun_from) from runner"), begun);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from held"), 2);
    ck_assert_int_eq(pg_fixture_i64(s.url,
                                    "select count(*) from runner r where begun_from <> 0 and "
                                    "begun_from <> (select min(begun) from trial t where "
                                    "t.runner = r.name and t.state = 'running')"),
                     0);
    member_free(first);
    member_free(second);
}
END_TEST

/* While they wait for its row they hold no runner, whose heartbeats would wait, too. */
START_TEST(claims_wait_together_for_a_sweep_that_is_held)
{
    struct member *list[3];
    make_sweep(&s, "held", "'max_trials': 100", ", 'ensemble': false");
    struct pg_session *p =
        pg_fixture_session(s.url, "begin; update sweep_base set reason = reason where id = 'held'");
    for (int i = 0; i < 3; i++)
        list[i] = claim_of(i, 2);
    ck_ok(members_submit(committer, list, 3, &err), err);
    int64_t until_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (clock_mono_ns() < until_ns &&
           pg_fixture_i64(s.url, "select count(*) from pg_stat_activity where wait_event_type = "
                                 "'Lock' and datname = current_database()") == 0)
        clock_sleep_ms(5);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from (select 1 from runner for update "
                                           "nowait) x"),
                     RUNNERS);
    for (int i = 0; i < 3; i++)
        ck_assert(!member_is_done(list[i]));
    pg_fixture_session_end(p);
    members_wait(list, 3);
    for (int i = 0; i < 3; i++) {
        ck_ok(list[i]->m.status, list[i]->m.err);
        ck_assert_uint_eq(list[i]->m.out.claim.n, 2);
        member_free(list[i]);
    }
}
END_TEST

/* Counts and turns: a new version of each sweep's row for a batch of claims, and one for ends. */
START_TEST(a_batch_writes_the_counts_of_a_sweep_once)
{
    struct member *ends[4];
    make_both("a", "'max_trials': 20", ", 'ensemble': false");
    make_both("b", "'max_trials': 20", ", 'ensemble': false");
    const int64_t before = pg_fixture_i64(s.url, "select sum(version) from sweep_count");
    struct member *l = claim_of(0, 4);
    members_commit(committer, &l, 1);
    ck_assert_uint_eq(l->m.out.claim.n, 4);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select min(n_running) from sweep"), 2);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select sum(version) from sweep_count"), before + 2);
    for (int i = 0; i < 4; i++) {
        ends[i] = member_end(ref_of(&l->m.out.claim.rows[i]), OUTCOME_COMPLETED);
        member_final(ends[i], i);
    }
    members_commit(committer, ends, 4);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select min(n_completed) from sweep"), 2);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select sum(version) from sweep_count"), before + 4);
    for (int i = 0; i < 4; i++)
        member_free(ends[i]);
    member_free(l);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("commit_claim_batch");
    TCase *t = service_case(suite, "claims", &s, 0);
    tcase_add_checked_fixture(t, begin, end_both);
    tcase_add_loop_test(t, turns_are_as_one_after_another, 0, 4);
    tcase_add_loop_test(t, with_gpus_that_nobody_has, 0, 2);
    tcase_add_test(t, early_stopping_is_said);
    tcase_add_test(t, the_rest_runs_alone);
    tcase_add_test(t, ending_attempts_free_their_slots);
    tcase_add_test(t, what_a_runner_held_is_not_read_again);
    tcase_add_test(t, claims_wait_together_for_a_sweep_that_is_held);
    tcase_add_test(t, a_batch_writes_the_counts_of_a_sweep_once);
    return suite;
}
