/* What the ranks of gangs write, in batches: only the rank that leads the current epoch may, and
 * what it may not is refused as on the single path. */
#include "tests/scheduler/assign/ranks.h"
#include "tests/scheduler/commit/members.h"
#include "tests/support/check_main.h"

#define PLAIN 3

static struct committer *committer;
static struct committer_figures figures;

static void begin(void)
{
    open_grouped();
    ck_ok(committer_create(s.db, NULL, &(struct committer_opts){0}, &committer, &err), err);
}

static void end_committer(void)
{
    committer_free(committer);
    close_grouped();
}

/* What a rank records as member of the epoch that it says. */
static struct member *record_of(struct seat_ref ref, int64_t epoch, int64_t step)
{
    struct member *x = member_record(ref.attempt, step, 0.5);
    x->m.by = (struct attempt_writer){.has_seat = true, .seat = ref.seat, .epoch = epoch};
    return x;
}

static int64_t count_points(void)
{
    return pg_fixture_i64(s.url, "select count(*) from measurement");
}

/* A gang of 3 that runs, and a sweep of single trials, of which PLAIN run. */
static void start_both(bool is_elastic)
{
    if (is_elastic)
        make_elastic("g", "'max_trials': 1", 1);
    else
        make_fixed("g", "'max_trials': 1");
    start_gang("g", "a", 3);
    make_sweep(&s, "p", "'max_trials': 9", "");
    int64_t epoch = make_runner(&s, "b", PLAIN);
    ck_assert_uint_eq(claim(&s, "b", epoch, PLAIN).n, PLAIN);
}

/* Every answer is that of the single path, and the writes of others are not disturbed. */
START_TEST(the_leader_writes_and_others_are_refused)
{
    start_both(true);
    ck_ok(calls_lost(seat(1), 1, 0), err); /* from now on epoch 2, and seat 1 leads */
    struct seat_ref nobody = seat(7);
    struct member *list[PLAIN + 6] = {record_of(seat(0), 1, 1),
                                      record_of(seat(2), 2, 2),
                                      record_of(seat(1), 2, 3),
                                      record_of(seat(1), 1, 4),
                                      member_record(seat(1).attempt, 5, 0.5),
                                      record_of(nobody, 2, 6)};
    for (int i = 0; i < PLAIN; i++)
        list[6 + i] = member_record((struct attempt_ref){"p", i, 1}, 1, i);
    for (size_t i = 0; i < AS_ARRAY_LEN(list); i++) { /* a round for each: they are of one trial */
        struct member *alone = record_of(seat(1), 2, 0);
        alone->m.ref = list[i]->m.ref;
        alone->m.by = list[i]->m.by;
        members_commit(committer, &list[i], 1);
        commit_alone(s.db, NULL, &alone->m);
        ck_assert_int_eq(list[i]->m.status, alone->m.status);
        ck_assert_str_eq(list[i]->m.err.msg, alone->m.err.msg);
        ck_assert_str_eq(list[i]->m.err.pointer, alone->m.err.pointer);
        member_free(alone);
    }
    ck_fails(list[0]->m.status, AS_E_STALE, list[0]->m.err, "epoch 1 is not current");
    ck_fails(list[1]->m.status, AS_E_STALE, list[1]->m.err, "does not lead");
    ck_ok(list[2]->m.status, list[2]->m.err);
    ck_fails(list[3]->m.status, AS_E_STALE, list[3]->m.err, "epoch 1 is not current");
    ck_assert_int_eq(list[4]->m.status, AS_E_UNSUPPORTED);
    ck_assert_int_ne(list[5]->m.status, AS_OK);
    for (size_t i = 0; i < AS_ARRAY_LEN(list); i++)
        member_free(list[i]);
}
END_TEST

/* The leader's reports and those of single trials are one batch. Its end runs alone, after them. */
START_TEST(a_leader_shares_its_batch)
{
    struct member *list[PLAIN + 2] = {NULL};
    start_both(false);
    int64_t before = count_points();
    list[0] = record_of(seat(0), 1, 1);
    for (int i = 0; i < PLAIN; i++)
        list[1 + i] = member_record((struct attempt_ref){"p", i, 1}, 1, i);
    list[PLAIN + 1] = member_end(seat(0).attempt, OUTCOME_RETRY);
    list[PLAIN + 1]->m.by = list[0]->m.by;
    members_commit(committer, list, PLAIN + 2);
    for (size_t i = 0; i < AS_ARRAY_LEN(list); i++)
        ck_ok(list[i]->m.status, list[i]->m.err);
    ck_assert_int_eq(count_points(), before + PLAIN + 1);
    committer_figures_get(committer, &figures);
    ck_assert_int_eq(figures.fallbacks, 0);
    ck_assert_int_ge(figures.members, PLAIN + 1);
    ck_assert_int_ge(figures.alone, 1);
    ck_assert_int_eq(trial_of(&s, "g", 0).attempt, 1);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_QUEUED);
    for (size_t i = 0; i < AS_ARRAY_LEN(list); i++)
        member_free(list[i]);
}
END_TEST

/* While somebody changes the world, the leader's report waits; no other does. */
START_TEST(a_world_that_changes_delays_its_leader_alone)
{
    start_both(false);
    struct member *led = record_of(seat(0), 1, 1),
                  *other = member_record((struct attempt_ref){"p", 0, 1}, 1, 1);
    struct pg_session *p = pg_fixture_session(s.url, "begin; update gang set deaths = deaths");
    ck_ok(members_submit(committer, &led, 1, &err), err);
    members_commit(committer, &other, 1);
    ck_ok(other->m.status, other->m.err);
    ck_assert(!member_is_done(led));
    pg_fixture_session_end(p);
    members_wait(&led, 1);
    ck_ok(led->m.status, led->m.err);
    committer_figures_get(committer, &figures);
    ck_assert_int_ge(figures.postponed, 1);
    ck_assert_int_eq(figures.fallbacks, 0);
    member_free(led);
    member_free(other);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("commit_gang_batch");
    TCase *t = tcase_create("gangs");
    pg_fixture_start();
    suite_add_tcase(suite, t);
    tcase_add_checked_fixture(t, begin, end_committer);
    tcase_add_test(t, the_leader_writes_and_others_are_refused);
    tcase_add_test(t, a_leader_shares_its_batch);
    tcase_add_test(t, a_world_that_changes_delays_its_leader_alone);
    return suite;
}
