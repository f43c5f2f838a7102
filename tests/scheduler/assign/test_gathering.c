/* Gathering: seats are kept, lapse, and become gangs, all or none. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tests/scheduler/assign/ranks.h"
#include "tests/support/check_main.h"

static const char *make_gang(const char *name, const char *limits, const char *resources)
{
    char more[200];
    snprintf(more, sizeof more, ", 'resources': {%s}", resources);
    return make_train(name, "random", "8, 16", limits, more);
}

static int64_t kept(const char *runner)
{
    char sql[200];
    snprintf(sql, sizeof sql, "select count(*) from gathering_seat where runner = '%s'", runner);
    return pg_fixture_i64(s.url, sql);
}

static int64_t gathers(void)
{
    return pg_fixture_i64(s.url, "select count(sweep_key) from gathering");
}

START_TEST(all_or_none)
{
    make_gang("g", "'max_trials': 1", "'ranks': 4");
    int64_t a = make_runner(&s, "a", 2), b = make_runner(&s, "b", 2);
    (void)claim_ranks("b", b, 1); /* both can be counted on */
    struct claim_list first = claim_ranks("a", a, 2), again = claim_ranks("a", a, 2);
    ck_assert(first.n == 0 && first.has_kept && !first.has_begun); /* others are to look at once */
    ck_assert(again.n == 0 && !again.has_kept);
    ck_assert_int_eq(kept("a"), 2);
    ck_assert_int_eq(count("true"), 0); /* a seat that is kept makes no trial */
    struct claim_list list = claim_ranks("b", b, 2);
    ck_assert_uint_eq(list.n, 2);
    ck_assert(list.has_begun);
    ck_assert_int_eq(count("state = 'running' and gang and runner is null and client is null"), 1);
    ck_assert_int_eq(gathers(), 0);
    const struct claim_request repeated = {.runner = "a",
                                           .epoch = a,
                                           .claim_id = "the same",
                                           .max_trials = 2,
                                           .seats = 2,
                                           .is_last = true};
    for (int i = 0; i < 2; i++) {
        ck_ok(claim_trials(s.db, NULL, &s.a, &repeated, &list, &err), err);
        ck_assert_uint_eq(list.n, 2);
        for (int64_t k = 0; k < 2; k++) {
            const struct claimed_row *row = &list.rows[k];
            ck_assert(row->is_rank && row->elastic);
            ck_assert_int_eq(row->seat, 2 * i - 2 * i + k);
            ck_assert_int_eq(row->ranks, 4);
            ck_assert_int_eq(row->min_ranks, 1);
            ck_assert_str_eq(row->launch, "all");
            ck_assert_str_eq(row->sweep, "g");
            ck_assert_int_eq(row->attempt, 1);
            ck_assert_ptr_nonnull(row->dataset);
        }
    }
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0); /* its slots are used */
    struct runner_page page;
    ck_ok(runner_list(s.db, &s.a, &(struct page_req){0}, &page, &err), err);
    ck_assert_int_eq(page.rows[0].used, 2);
    ck_assert_int_eq(page.rows[0].running, 2);
}
END_TEST

START_TEST(older_runners_get_no_ranks)
{
    make_gang("g", "'max_trials': 1", "'ranks': 2");
    int64_t a = make_runner(&s, "a", 4);
    ck_assert_uint_eq(claim(&s, "a", a, 4).n, 0);
    ck_assert_int_eq(gathers(), 0);
    ck_assert_uint_eq(claim_ranks("a", a, 4).n, 2);
    ck_assert_int_eq(count("gang"), 1);
}
END_TEST

/* One of the slots may not hold ranks. */
START_TEST(a_claim_says_how_many_seats)
{
    make_gang("g", "'max_trials': 1", "'ranks': 2");
    int64_t a = make_runner(&s, "a", 2);
    const struct claim_request one = {.runner = "a", .epoch = a, .max_trials = 2, .seats = 1};
    ck_assert_uint_eq(take(&one).n, 0);
    ck_assert_int_eq(kept("a"), 1);
    const struct claim_request many = {.runner = "a", .epoch = a, .max_trials = 2, .seats = 3};
    ck_assert_uint_eq(claim_as(&s, &many, &err).n, SIZE_MAX);
    ck_assert_int_eq(err.code, AS_E_INVAL);
    ck_assert_str_eq(err.pointer, "/seats");
}
END_TEST

/* A claim that has waited was made when fewer slots were free: those that are free now are kept
 * too, and the next claims get them. */
START_TEST(slots_that_came_free_are_kept)
{
    make_gang("g", "'max_trials': 1", "'ranks': 4");
    int64_t a = make_runner(&s, "a", 4);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
    ck_assert_int_eq(count("gang"), 1);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
    ck_assert_uint_eq(claim_ranks("a", a, 1).n, 0);
}
END_TEST

/* Slots that the gang does not need go to others while it gathers, also on the same runner. */
START_TEST(others_fill_what_it_does_not_need)
{
    make_gang("g", "'max_trials': 1", "'ranks': 4");
    int64_t a = make_runner(&s, "a", 2), b = make_runner(&s, "b", 3);
    (void)claim_ranks("b", b, 1);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0);
    make_sweep(&s, "small", "'max_trials': 9", "");
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0); /* both slots stay with the gang */
    const struct claim_request one = {.runner = "b", .epoch = b, .max_trials = 2, .seats = 1};
    struct claim_list list =
        take(&one); /* it needs one more, which is kept; the other slot is free */
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.rows[0].sweep, "small");
    ck_assert_int_eq(kept("b"), 1);
    ck_assert_uint_eq(claim_ranks("b", b, 2).n, 2); /* with its last seat */
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
}
END_TEST

/* More ranks than all runners could hold: others get the slots at once. */
START_TEST(a_gang_that_never_fits_keeps_nothing)
{
    make_gang("g", "'max_trials': 1", "'ranks': 5");
    make_sweep(&s, "small", "'max_trials': 9", "");
    int64_t a = make_runner(&s, "a", 4);
    struct claim_list list = claim_ranks("a", a, 4);
    ck_assert_uint_eq(list.n, 4);
    ck_assert_str_eq(list.rows[0].sweep, "small");
    ck_assert_int_eq(gathers(), 0);
    /* another runner comes */
    int64_t b = make_runner(&s, "b", 1);
    ck_assert_uint_eq(claim_ranks("b", b, 1).n, 0);
    ck_assert_int_eq(kept("b"), 1);
    /* and is lost: after a lease without a seat, nothing is kept */
    pg_fixture_exec(s.url, "update runner set slots = 2 where name = 'a'; update gathering set "
                           "progress_at = now() - interval '1 h'");
    ck_assert_uint_eq(claim_ranks("b", b, 1).n, 1);
    ck_assert_int_eq(gathers(), 0);
}
END_TEST

START_TEST(gpus_are_per_rank)
{
    make_gang("g", "'max_trials': 1", "'ranks': 2, 'gpus': 1");
    struct registration reg;
    static const char *const gpus[] = {"x", "y"};
    struct runner_register req = {.name = "a", .slots = 4, .gpus = gpus, .n_gpus = 2};
    ck_ok(runner_register(s.db, &s.a, &req, &reg, &err), err);
    struct claim_request like = {
        .runner = "a", .epoch = reg.epoch, .max_trials = 4, .seats = 4, .gpus = 1};
    ck_assert_uint_eq(take(&like).n, 0);
    ck_assert_int_eq(kept("a"), 1);
    like.gpus = 2;
    struct claim_list list = take(&like);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[0].gpus, 1);
}
END_TEST

/* What ends or pauses the sweep, and a runner that leaves, give the slots back. */
START_TEST(seats_lapse)
{
    make_gang("g", "'max_trials': 1", "'ranks': 3");
    int64_t a = make_runner(&s, "a", 1), b = make_runner(&s, "b", 1), c = make_runner(&s, "c", 1);
    (void)claim_ranks("b", b, 1);
    (void)claim_ranks("c", c, 1);
    ck_assert_uint_eq(claim_ranks("a", a, 1).n, 0);
    const struct runner_id leaver = {"a", a, NULL};
    ck_ok(runner_leave(s.db, &leaver, &err), err);
    ck_assert_uint_eq(claim_ranks("b", b, 1).n, 0);
    ck_assert_int_eq(kept("a"), 0);
    a = make_runner(&s, "a", 1);
    ck_assert_uint_eq(claim_ranks("a", a, 1).n, 0);
    /* a runner that stops claiming: it drains */
    pg_fixture_exec(s.url, "update gathering_seat set until_at = now() where runner = 'a'");
    ck_assert_uint_eq(claim_ranks("c", c, 1).n, 0);
    ck_assert_int_eq(kept("a"), 0);
    make_sweep(&s, "small", "'max_trials': 9", "");
    pause_sweep("g");
    struct claim_list list = claim_ranks("a", a, 1);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.rows[0].sweep, "small");
    ck_assert_int_eq(gathers(), 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gathering_seat"), 0);
}
END_TEST

/* A runner that dies while a gang gathers, and a sweep that is deleted then. */
START_TEST(nothing_is_kept_for_who_is_gone)
{
    make_gang("g", "'max_trials': 1", "'ranks': 3");
    int64_t a = make_runner(&s, "a", 2), b = make_runner(&s, "b", 2);
    (void)claim_ranks("b", b, 1);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0);
    pg_fixture_exec(s.url,
                    "update runner set expires_at = now() - interval '1 s' where name = 'a'");
    ck_assert_uint_eq(claim_ranks("b", b, 2).n, 0); /* two of three */
    ck_assert_int_eq(kept("a"), 0);
    ck_assert_int_eq(kept("b"), 2);
    ck_assert_int_eq(count("true"), 0);
    cancel_sweep("g");
    ck_ok(sweep_delete(s.db, "g", &err), err);
    make_sweep(&s, "small", "'max_trials': 9", "");
    ck_assert_uint_eq(claim(&s, "b", b, 2).n, 2);
    a = make_runner(&s, "a", 3);
    make_gang("h", "'max_trials': 1", "'ranks': 3");
    ck_assert_uint_eq(claim_ranks("a", a, 3).n, 3); /* and the next gang counts none of them */
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gang_seat where runner = 'a'"), 3);
}
END_TEST

/* A gang counts as one trial. */
START_TEST(limits_count_a_gang_as_one)
{
    make_gang("g", "'max_trials': 2, 'max_concurrent_trials': 1", "'ranks': 2");
    int64_t a = make_runner(&s, "a", 6);
    ck_assert_uint_eq(claim_ranks("a", a, 6).n, 2);
    ck_assert_uint_eq(claim_ranks("a", a, 4).n, 0);
    ck_assert_int_eq(gathers(), 0);
    struct sweep_row row = sweep_of_id(&s, "g");
    ck_assert_int_eq(row.counts.by_state[TRIAL_RUNNING], 1);
    ck_assert_int_eq(row.counts.total, 1);
    trial_state state;
    for (int64_t i = 0; i < 2; i++)
        ck_ok(listens(seat_of("g", 0, 1, i), NULL), err);
    ck_ok(writes(seat_of("g", 0, 1, 0), 1, 1), err);
    ck_ok(completes(seat_of("g", 0, 1, 0), 1, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_COMPLETED);
    ck_assert_uint_eq(claim_ranks("a", a, 6).n, 2);
    ck_assert_int_eq(sweep_of_id(&s, "g").counts.total, 2);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select max_concurrent from sweep"), 1);
}
END_TEST

/* Clients run such a trial whole, in their own way. */
START_TEST(clients_get_whole_trials)
{
    make_gang("g", "'max_trials': 2", "'ranks': 2");
    struct suggestion_row row = ask_one(&s, "g", "me");
    ck_assert_int_eq(row.number, 0);
    ck_assert_int_eq(count("state = 'running' and client = 'me' and not gang"), 1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gang"), 0);
    int64_t a = make_runner(&s, "a", 2);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
    ck_assert_int_eq(count("gang"), 1);
}
END_TEST

START_TEST(its_trials_have_no_shape)
{
    make_gang("g", "'max_trials': 2", "'ranks': 2");
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from sweep where max_group is null"),
                     1);
    int64_t a = make_runner(&s, "a", 2);
    const struct claim_request like = {
        .runner = "a", .epoch = a, .max_trials = 2, .seats = 2, .groups.members = 8};
    struct claim_list list = take(&like);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_ptr_null(list.rows[0].group);
}
END_TEST

START_TEST(a_method_that_learns)
{
    make_train("g", "gp", "8, 16", "'max_trials': 2", ", 'resources': {'ranks': 2}");
    int64_t a = make_runner(&s, "a", 2);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
    ck_assert_int_eq(count("gang and state = 'running' and suggestion_index = 0"), 1);
}
END_TEST

/* ---- ranks that the search chooses ---- */

/* A sweep of a grid over the ranks: trial 0 has the first value, and so on. */
static const char *make_searched(const char *name, const char *ranks)
{
    char text[1000];
    struct sweep_row row;
    snprintf(text, sizeof text,
             "{'name': '%s', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'n': "
             "{'type': 'categorical', 'values': %s}}, 'search': {'method': 'grid'}, 'trial': "
             "{'command': ['a']}, 'resources': {'ranks': '${n}'}, 'ensemble': false}",
             name, ranks);
    json_t *doc = json_of(text);
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    return row.id;
}

static int64_t ranks_of(int64_t number)
{
    char sql[100];
    snprintf(sql, sizeof sql, "select max(ranks) from gang where number = %lld and state <> 'over'",
             (long long)number);
    return pg_fixture_i64(s.url, sql);
}

/* Each trial gathers the ranks of its own, and keeps no slot more. */
START_TEST(each_trial_has_its_own_ranks)
{
    make_searched("g", "[3, 1, 2]");
    int64_t a = make_runner(&s, "a", 2), b = make_runner(&s, "b", 2);
    (void)claim_ranks("b", b, 2); /* trial 0 is made, and has more ranks than there is room for */
    ck_assert_int_eq(count("state = 'queued' and number = 0"), 1);
    ck_assert_int_eq(kept("b"), 0);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0);
    ck_assert_int_eq(kept("a"), 2);
    struct claim_list list = claim_ranks("b", b, 2); /* one seat of trial 0 */
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].ranks, 3);
    ck_assert_int_eq(list.rows[0].min_ranks, 3);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
    ck_assert_int_eq(ranks_of(0), 3);
    list = claim_ranks("b", b, 1); /* trial 1, alone */
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].ranks, 1);
    int64_t c = make_runner(&s, "c", 2);
    list = claim_ranks("c", c, 2); /* trial 2 */
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(ranks_of(2), 2);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gang_seat"), 6);
    ck_assert_int_eq(count("state = 'running' and gang"), 3);
}
END_TEST

/* A trial with more ranks than the runners have waits for runners and holds nobody up. */
START_TEST(ranks_that_never_fit_keep_nothing)
{
    make_searched("g", "[5, 1]");
    make_sweep(&s, "small", "'max_trials': 9", "");
    int64_t a = make_runner(&s, "a", 4);
    struct claim_list list = claim_ranks("a", a, 4);
    ck_assert_uint_eq(list.n, 4);
    ck_assert_str_eq(list.rows[0].sweep, "small");
    ck_assert_int_eq(gathers(), 0);
    struct sweep_row row = sweep_of_id(&s, "g");
    ck_assert_int_eq(row.counts.by_state[TRIAL_QUEUED], 1);
    ck_assert_ptr_nonnull(
        strstr(row.note, "a trial has 5 ranks, and the runners have slots for 4"));
}
END_TEST

/* The trial that was next is cancelled while its ranks gather: the following one has fewer, and the
 * slots that it does not need are free. */
START_TEST(the_next_trial_may_need_fewer)
{
    make_searched("g", "[4, 2, 1]");
    int64_t a = make_runner(&s, "a", 3), b = make_runner(&s, "b", 1);
    (void)claim_ranks("b", b, 1);
    ck_assert_uint_eq(claim_ranks("a", a, 3).n, 0);
    pg_fixture_exec(s.url, "delete from gathering_seat where runner = 'b'");
    ck_assert_int_eq(kept("a"), 3);
    struct trial_row trial;
    ck_ok(trial_cancel(s.db, &s.a, "g", 0, &trial, &err), err);
    struct claim_list list = claim_ranks("a", a, 3); /* trial 1 is made */
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[0].number, 1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gathering_seat"), 0);
    list = claim_ranks("b", b, 1);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].ranks, 1);
}
END_TEST

/* A method that learns: the suggestion is taken before its ranks are known. */
START_TEST(a_learning_search_chooses_ranks)
{
    make_train("g", "gp", "8, 16", "'max_trials': 4",
               ", 'resources': {'ranks': {'min': 1, 'max': 2}}");
    int64_t a = make_runner(&s, "a", 2);
    ck_assert_uint_ge(claim_ranks("a", a, 2).n, 1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gang g join trial t on t.number = "
                                           "g.number where g.ranks = (t.params ->> 'ranks')::int "
                                           "and t.suggestion_index = 0 and g.min_ranks = 1"),
                     1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from sweep where ranks = 2 and "
                                           "least_ranks = 1 and ranks_by = 'ranks'"),
                     1);
}
END_TEST

/* ---- programs whose world begins again with who is left ---- */

START_TEST(a_program_begins_with_fewer)
{
    make_sweep(&s, "g", "'max_trials': 1, 'max_restarts': 1",
               ", 'resources': {'ranks': 3, 'min_ranks': 2}");
    int64_t a = make_runner(&s, "a", 2);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0); /* two could hold it; a third may come */
    ck_assert_int_eq(kept("a"), 2);
    int64_t b = make_runner(&s, "b", 1);
    ck_assert_uint_eq(claim_ranks("b", b, 1).n, 1);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
    ck_assert_int_eq(ranks_of(0), 3);
    for (int64_t i = 0; i < 3; i++)
        ck_ok(listens(seat(i), NULL), err);
    ck_ok(ends(seat(2), OUTCOME_RETRY, -9), err); /* of b, which is gone then */
    ck_ok(runner_leave(s.db, &(struct runner_id){"b", b, NULL}, &err), err);
    ck_assert_int_eq(count("state = 'queued' and restarts = 0 and attempt = 1"), 1);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0);
    ck_assert_int_eq(kept("a"), 2);
    pg_fixture_exec(s.url, "update gathering set progress_at = progress_at - interval '2 s'");
    struct claim_list list = claim_ranks("a", a, 2);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[0].ranks, 2);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select next_seat from gang where attempt = 2"), 2);
    struct seat_ref again = seat_of("g", 0, 2, 1);
    for (int64_t i = 0; i < 2; i++)
        ck_ok(listens(seat_of("g", 0, 2, i), NULL), err);
    ck_ok(ends(again, OUTCOME_RETRY, 75), err); /* it asks to be tried again */
    ck_assert_int_eq(count("state = 'queued' and restarts = 1 and attempt = 2"), 1);
}
END_TEST

/* A failure uses a restart, as torchrun's max_restarts, and the last one is final. */
START_TEST(failures_use_restarts)
{
    make_sweep(&s, "g", "'max_trials': 1, 'max_restarts': 1",
               ", 'resources': {'ranks': 2, 'min_ranks': 1}");
    int64_t a = make_runner(&s, "a", 2);
    for (int64_t attempt = 1; attempt <= 2; attempt++) {
        ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
        for (int64_t i = 0; i < 2; i++)
            ck_ok(listens(seat_of("g", 0, attempt, i), NULL), err);
        ck_assert_int_eq(count("restarts = 0"), attempt == 1);
        ck_ok(ends(seat_of("g", 0, attempt, 1), OUTCOME_FAILED, 1), err);
    }
    ck_assert_int_eq(count("state = 'failed' and restarts = 1"), 1);
}
END_TEST

/* Deaths are spared 3 times the ranks and the restarts; then each uses a restart. */
START_TEST(deaths_are_spared_up_to_a_limit)
{
    make_sweep(&s, "g", "'max_trials': 1, 'max_restarts': 1",
               ", 'resources': {'ranks': 2, 'min_ranks': 1}");
    int64_t a = make_runner(&s, "a", 2);
    int deaths = 0;
    while (count("state = 'failed'") == 0 && deaths < 20) {
        ck_assert_uint_eq(claim_ranks("a", a, 2).n, 2);
        deaths++;
        for (int64_t i = 0; i < 2; i++)
            ck_ok(listens(seat_of("g", 0, deaths, i), NULL), err);
        ck_ok(ends(seat_of("g", 0, deaths, 1), OUTCOME_RETRY, -9), err);
    }
    ck_assert_int_eq(deaths, 3 * 2 + 1 + 2);
    ck_assert_int_eq(count("state = 'failed' and restarts = 1"), 1);
}
END_TEST

/* ---- at work: three gangs and a stream of small trials on four slots, two servers ---- */

#define WORKERS 4
#define SMALL 40
#define GANGS 3
#define GANG_TRIALS 4

/* A runner with one slot. */
struct worker {
    int number;
    struct service *sv;
    atomic_int *left;
    struct as_err err;
    bool failed;
    int ranks, small;
};

static bool fails(struct worker *w, as_status st)
{
    if (st == AS_OK || st == AS_E_STALE) /* stale: the gang ended meanwhile */
        return false;
    w->failed = true;
    return true;
}

/* One rank: it listens, waits for epoch 1, and the one that leads completes. */
static void run_rank(struct worker *w, struct arena *a, const struct claimed_row *row)
{
    const struct gang_caller by = {.is_runner = true};
    const struct seat_ref ref = {.attempt = ref_of(row), .seat = row->seat};
    const struct seat_address at = {"e", "10.0.0.1", 1000 + row->seat};
    struct gang_detail world = {0};
    if (fails(w, gang_listen(w->sv->db, a, &ref, &by, &at, &world, &w->err)))
        return;
    while (world.gang.state == GANG_GATHERING) {
        struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
        if (fails(w, gang_world_get(w->sv->db, a, &ref.attempt, &by, &world, &w->err)))
            return;
    }
    w->ranks++;
    if (world.gang.state == GANG_OVER || world.n_seats == 0 || world.seats[0].seat != row->seat)
        return;
    const struct attempt_writer writer = {.has_seat = true, .seat = row->seat, .epoch = 1};
    const struct measurement m = {.step = 1, .metric = "val_loss", .value = 0.5};
    const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
    struct trial_row trial;
    (void)fails(w, attempt_complete(w->sv->db, a, &ref.attempt, &writer, &c, &trial, &w->err));
}

static void run_small(struct worker *w, struct arena *a, const struct claimed_row *row)
{
    const struct attempt_ref ref = ref_of(row);
    const struct measurement m = {.step = 1, .metric = "loss", .value = 0.5};
    const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
    struct trial_row trial;
    w->small++;
    (void)fails(w, attempt_complete(w->sv->db, a, &ref, NULL, &c, &trial, &w->err));
}

static void *work(void *arg)
{
    struct worker *w = arg;
    AS_AUTO(arena_done) struct arena a = {0};
    struct registration reg;
    char name[16], id[40];
    snprintf(name, sizeof name, "w%d", w->number);
    struct runner_register req = {.name = name, .slots = 1};
    if (fails(w, runner_register(w->sv->db, &a, &req, &reg, &w->err)))
        return NULL;
    int64_t until = clock_mono_ns() + 120 * NS_PER_S;
    for (int i = 0; !w->failed && atomic_load(w->left) > 0 && clock_mono_ns() < until; i++) {
        struct claim_list list = {0};
        snprintf(id, sizeof id, "w%d-%d", w->number, i);
        const struct claim_request claim = {.runner = name,
                                            .epoch = reg.epoch,
                                            .claim_id = id,
                                            .max_trials = 1,
                                            .seats = 1,
                                            .is_last = true};
        if (fails(w, claim_trials(w->sv->db, NULL, &a, &claim, &list, &w->err)))
            break;
        if (list.n == 0) {
            struct timespec pause = {.tv_nsec = 5000000};
            nanosleep(&pause, NULL);
        } else if (list.rows[0].is_rank) {
            run_rank(w, &a, &list.rows[0]);
        } else {
            run_small(w, &a, &list.rows[0]);
        }
        if (w->number == 0)
            atomic_store(w->left,
                         (int)pg_fixture_i64(s.url, "select count(*) from sweep where state in "
                                                    "('running', 'paused')"));
    }
    return NULL;
}

START_TEST(gangs_and_small_trials_share_slots)
{
    char limits[60];
    struct service other = {0};
    atomic_int left = GANGS + 1;
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    memcpy(other.url, s.url, sizeof other.url);
    const struct store_opts opts = {.url = s.url, .max_connections = 8};
    ck_ok(store_open(&opts, &other.db, &err), err);
    snprintf(limits, sizeof limits, "'max_trials': %d", SMALL);
    make_sweep(&s, "small", limits, "");
    snprintf(limits, sizeof limits, "'max_trials': %d", GANG_TRIALS);
    make_gang("g2", limits, "'ranks': 2");
    make_gang("g3", limits, "'ranks': 3, 'min_ranks': 2");
    make_gang("g4", limits, "'ranks': 4, 'min_ranks': 4");
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.number = i, .sv = i % 2 ? &other : &s, .left = &left};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    int ranks = 0, small = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(!workers[i].failed, "worker %d: %s", i, workers[i].err.msg);
        ranks += workers[i].ranks;
        small += workers[i].small;
    }
    store_close(other.db);
    ck_assert_int_eq(count("state = 'completed'"), SMALL + GANGS * GANG_TRIALS);
    ck_assert_int_eq(small, SMALL);
    ck_assert_int_eq(ranks, GANG_TRIALS * (2 + 3 + 4));
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gang where state = 'over' and "
                                           "deaths = 0"),
                     GANGS * GANG_TRIALS);
    /* nobody waits for the end of the others: the first gang of each began before the small ones
     * were all done, and small ones ran between gangs */
    ck_assert_int_eq(
        pg_fixture_i64(s.url,
                       "select count(*) from (select min(started_at) as first from trial where "
                       "gang group by sweep_key) f where first < (select max(finished_at) from "
                       "trial where not gang)"),
        GANGS);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/assign/gathering");
    TCase *t = tcase_create("gathering");
    pg_fixture_start();
    tcase_add_checked_fixture(t, open_grouped, close_grouped);
    tcase_add_test(t, all_or_none);
    tcase_add_test(t, older_runners_get_no_ranks);
    tcase_add_test(t, a_claim_says_how_many_seats);
    tcase_add_test(t, slots_that_came_free_are_kept);
    tcase_add_test(t, others_fill_what_it_does_not_need);
    tcase_add_test(t, a_gang_that_never_fits_keeps_nothing);
    tcase_add_test(t, gpus_are_per_rank);
    tcase_add_test(t, seats_lapse);
    tcase_add_test(t, nothing_is_kept_for_who_is_gone);
    tcase_add_test(t, limits_count_a_gang_as_one);
    tcase_add_test(t, clients_get_whole_trials);
    tcase_add_test(t, its_trials_have_no_shape);
    tcase_add_test(t, a_method_that_learns);
    tcase_add_test(t, each_trial_has_its_own_ranks);
    tcase_add_test(t, ranks_that_never_fit_keep_nothing);
    tcase_add_test(t, the_next_trial_may_need_fewer);
    tcase_add_test(t, a_learning_search_chooses_ranks);
    tcase_add_test(t, a_program_begins_with_fewer);
    tcase_add_test(t, failures_use_restarts);
    tcase_add_test(t, deaths_are_spared_up_to_a_limit);
    tcase_add_test(t, gangs_and_small_trials_share_slots);
    suite_add_tcase(suite, t);
    return suite;
}
