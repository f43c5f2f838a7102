/* Batches of claims that take prepared suggestions: what a batch may take, what it leaves to the
 * single path, and that a sweep is replayed bit for bit. */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/suggester/prepared.h"
#include "tests/scheduler/commit/members.h"
#include "tests/support/check_main.h"

#define RUNNERS 3

static struct service s;
static struct as_err err;
static struct committer *committer;
static struct suggester *sg;
static sem_t ready;
static int64_t epochs[RUNNERS];
static int serial;

static const char *const names[RUNNERS] = {"r0", "r1", "r2"};

static void on_ready(void *ctx)
{
    (void)sem_post(ctx);
}

static void begin(void)
{
    const struct suggester_opts opts = {
        .threads = 1, .patience_ms = -1, .ahead_ms = 600000, .on_ready = on_ready, .ctx = &ready};
    (void)sem_init(&ready, 0, 0);
    ck_ok(suggester_create(s.db, &opts, &sg, &err), err);
    ck_ok(committer_create(s.db, sg, &(struct committer_opts){0}, &committer, &err), err);
    for (int i = 0; i < RUNNERS; i++)
        epochs[i] = make_runner(&s, names[i], 8);
}

static void end_all(void)
{
    committer_free(committer);
    suggester_free(sg);
    (void)sem_destroy(&ready);
}

static void make_sweeps(void)
{
    make_learner(&s, "a", "'max_trials': 40",
                 ", 'trial': {'command': ['true']}, 'ensemble': false");
}

static struct member *claim_of(int runner, int64_t max, int64_t arrived_ns)
{
    struct member *x = member_record((struct attempt_ref){"-", 0, 0}, 0, 0);
    struct claim_request *req = arena_alloc(&x->a, 1, sizeof *req);
    ck_assert_ptr_nonnull(req);
    *req = (struct claim_request){.runner = names[runner],
                                  .epoch = epochs[runner],
                                  .claim_id = arena_printf(&x->a, "c%d", serial++),
                                  .max_trials = max,
                                  .arrived_ns = arrived_ns};
    x->m.kind = COMMIT_CLAIM;
    x->m.in.claim = req;
    return x;
}

static int64_t mark(void)
{
    return pg_fixture_i64(s.url, "select search_mark from sweep");
}

/* Wait until that many suggestions in a row can be taken. */
static void await_prepared(int64_t n)
{
    struct sweep_row row = sweep_of_id(&s, "a");
    struct search_place place = {.key = pg_fixture_i64(s.url, "select key from sweep"),
                                 .number = row.counts.total,
                                 .mark = mark(),
                                 .finish_seq =
                                     pg_fixture_i64(s.url, "select finish_seq from sweep"),
                                 .arrived_ns = clock_mono_ns()};
    while (suggester_ready(sg, &place, (size_t)n) < (size_t)n) {
        (void)suggester_want(sg, &place, (size_t)n, false);
        while (sem_wait(&ready) != 0 && errno == EINTR)
            ;
    }
}

static struct committer_figures figures(void)
{
    struct committer_figures f;
    committer_figures_get(committer, &f);
    return f;
}

/* Trials of two claims of one batch follow each other, and nothing was computed for them. */
START_TEST(a_batch_takes_what_is_prepared)
{
    struct suggester_figures taken;
    make_sweeps();
    await_prepared(5);
    struct member *list[2] = {claim_of(0, 3, 0), claim_of(1, 2, 0)};
    members_commit(committer, list, 2);
    bool seen[5] = {false};
    for (int i = 0; i < 2; i++) {
        ck_ok(list[i]->m.status, list[i]->m.err);
        ck_assert_uint_eq(list[i]->m.out.claim.n, i == 0 ? 3 : 2);
        for (size_t k = 0; k < list[i]->m.out.claim.n; k++) {
            const struct claimed_row *x = &list[i]->m.out.claim.rows[k];
            struct trial_row row = trial_of(&s, "a", x->number);
            ck_assert_int_lt(x->number, 5);
            ck_assert(!seen[x->number]);
            seen[x->number] = true;
            ck_assert_str_eq(x->params, row.params);
            ck_assert_int_eq(row.index, x->number);
            ck_assert_int_eq(row.seen, 0);
        }
        member_free(list[i]);
    }
    ck_assert_int_eq(figures().alone, 0);
    ck_assert_int_eq(figures().fallbacks, 0);
    suggester_figures_get(sg, &taken);
    ck_assert_int_eq(taken.taken, 5);
    ck_assert_int_gt(mark(), 0);
}
END_TEST

/* The results of a round come before its claims. One that arrived before a suggestion was begun
 * gets it all the same; one that arrives after the results gets none that does not know them. */
START_TEST(results_of_a_round_make_suggestions_stale)
{
    make_sweeps();
    await_prepared(1);
    struct member *first = claim_of(0, 1, 0);
    members_commit(committer, &first, 1);
    ck_assert_uint_eq(first->m.out.claim.n, 1);
    int64_t early_ns = clock_mono_ns();
    await_prepared(2);
    struct member *round[2] = {member_end(ref_of(&first->m.out.claim.rows[0]), OUTCOME_COMPLETED),
                               claim_of(1, 1, early_ns)};
    member_final(round[0], 0.5);
    members_commit(committer, round, 2); /* the result first, then the claim */
    ck_ok(round[0]->m.status, round[0]->m.err);
    ck_ok(round[1]->m.status, round[1]->m.err);
    ck_assert_uint_eq(round[1]->m.out.claim.n, 1);
    ck_assert_int_eq(trial_of(&s, "a", 1).seen, 0);
    ck_assert_int_eq(figures().alone, 0);
    /* arrives now: it gets nothing that does not know the result */
    struct member *late = claim_of(2, 1, 0);
    for (;;) {
        members_commit(committer, &late, 1);
        ck_ok(late->m.status, late->m.err);
        if (!late->m.out.claim.is_preparing)
            break;
        await_prepared(1);
    }
    ck_assert_uint_eq(late->m.out.claim.n, 1);
    ck_assert_int_eq(trial_of(&s, "a", 2).seen, 1);
    ck_assert_int_eq(figures().fallbacks, 0);
    member_free(first);
    member_free(round[0]);
    member_free(round[1]);
    member_free(late);
}
END_TEST

/* Results and claims in rounds, in batches and alone: the places, marks and configurations of the
 * trials are those of one chain. */
START_TEST(the_chain_of_suggestions_has_no_gap)
{
    make_sweeps();
    for (int round = 0; round < 8; round++) {
        struct member *list[RUNNERS];
        if (round % 2 == 0)
            await_prepared(RUNNERS);
        for (int i = 0; i < RUNNERS; i++)
            list[i] = claim_of(i, 1, 0);
        members_commit(committer, list, RUNNERS);
        for (int i = 0; i < RUNNERS; i++) {
            ck_ok(list[i]->m.status, list[i]->m.err);
            for (size_t k = 0; k < list[i]->m.out.claim.n; k++)
                finish(&s, ref_of(&list[i]->m.out.claim.rows[k]), (round * 7 + i) % 5);
            member_free(list[i]);
        }
    }
    ck_assert_int_ge(sweep_of_id(&s, "a").counts.total, RUNNERS);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from trial where suggestion_index <> "
                                           "number or seen > (select finish_seq from sweep)"),
                     0);
    /* No configuration twice, but the best one where gp repeats it to see the noise. */
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(distinct params::text) - count(*) + "
                                           "count(*) filter (where suggestion->>'acquisition' = "
                                           "'repeat') from trial"),
                     0);
    ck_assert_int_eq(figures().fallbacks, 0);
    ck_assert_int_gt(figures().members, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("commit_prepared_batch");
    TCase *t = service_case(suite, "prepared", &s, 0);
    tcase_add_checked_fixture(t, begin, end_all);
    tcase_add_test(t, a_batch_takes_what_is_prepared);
    tcase_add_test(t, results_of_a_round_make_suggestions_stale);
    tcase_add_test(t, the_chain_of_suggestions_has_no_gap);
    return suite;
}
