/* Claims: exactly as many trials as asked for, and never more at once, with any number of
 * runners. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

START_TEST(limits_hold)
{
    make_sweep(&s, "a", "'max_trials': 3, 'max_concurrent_trials': 2", "");
    int64_t e = make_runner(&s, "r", 10);
    struct claim_list list = claim(&s, "r", e, 10);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_uint_eq(claim(&s, "r", e, 10).n, 0);
    finish(&s, ref_of(&list.rows[0]), 1);
    ck_assert_uint_eq(claim(&s, "r", e, 10).n, 1);
    finish(&s, ref_of(&list.rows[1]), 1);
    ck_assert_uint_eq(claim(&s, "r", e, 10).n, 0);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 3);
}
END_TEST

START_TEST(slots_bound_a_runner)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 2);
    ck_assert_uint_eq(claim(&s, "r", e, 5).n, 2);
    ck_assert_uint_eq(claim(&s, "r", e, 5).n, 0);
}
END_TEST

/* A claim while the results of ended attempts are on their way. */
static struct claim_list claim_beside(const char *runner, int64_t epoch, int64_t max,
                                      const struct attempt_ref *ending, size_t n)
{
    static int counter;
    char id[40];
    struct claim_list list;
    (void)snprintf(id, sizeof id, "beside-%d", counter++);
    struct claim_request req = {.runner = runner,
                                .epoch = epoch,
                                .claim_id = id,
                                .max_trials = max,
                                .ending = ending,
                                .n_ending = n};
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &list, &err), err);
    return list;
}

START_TEST(what_is_ending_leaves_its_slot)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 2), other = make_runner(&s, "o", 1);
    struct claim_list list = claim(&s, "r", e, 2), beside;
    struct attempt_ref ending[] = {ref_of(&list.rows[0]), ref_of(&list.rows[0])};
    struct attempt_ref old = {ending[0].sweep, ending[0].number, 7};
    ck_assert_uint_eq(claim_beside("r", e, 2, NULL, 0).n, 0);
    ck_assert_uint_eq(claim_beside("r", e, 2, &old, 1).n, 0); /* of another attempt */
    beside = claim_beside("r", e, 2, ending, 2);              /* listed twice: one slot */
    ck_assert_uint_eq(beside.n, 1);
    ck_assert_uint_eq(claim_beside("r", e, 2, ending, 2).n, 0);
    finish(&s, ending[0], 1);
    ck_assert_uint_eq(claim_beside("r", e, 2, ending, 2).n, 0); /* it has ended: nothing is left */
    claim_one(&s, "o", other);
    ending[0] = ref_of(&list.rows[1]);
    ck_assert_uint_eq(claim_beside("o", other, 1, ending, 1).n, 0); /* another runner's */
    ck_assert_uint_eq(claim_beside("r", e, 2, ending, 1).n, 1);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 5);
}
END_TEST

START_TEST(what_is_ending_counts_for_limits_and_not_for_turns)
{
    make_sweep(&s, "older", "'max_trials': 9, 'max_concurrent_trials': 2", "");
    make_sweep(&s, "younger", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claimed_row one = claim_one(&s, "r", e);
    ck_assert_str_eq(one.sweep, "older");
    struct attempt_ref ending[4] = {ref_of(&one)};
    struct claim_list next = claim_beside("r", e, 1, ending, 1);
    ck_assert_uint_eq(next.n, 1);
    ck_assert_str_eq(next.rows[0].sweep,
                     "younger"); /* as if the first had ended: it waited longer */
    for (size_t n = 1; n < 4; n++) {
        static const char *const turns[] = {NULL, "older", "younger", "younger"};
        ending[n] = ref_of(&next.rows[0]);
        next = claim_beside("r", e, 1, ending, n + 1);
        ck_assert_uint_eq(next.n, 1);
        ck_assert_str_eq(next.rows[0].sweep,
                         turns[n]); /* at last, two of the older one still run */
    }
}
END_TEST

/* A sweep that learns gives a runner nothing before it knows the runner's results. */
START_TEST(a_sweep_that_learns_awaits_the_results)
{
    make_learner(&s, "a", "'max_trials': 9", ", 'trial': {'command': ['true']}");
    int64_t e = make_runner(&s, "r", 1), other = make_runner(&s, "o", 1);
    struct claimed_row one = claim_one(&s, "r", e);
    struct attempt_ref ending = ref_of(&one);
    struct claim_list none = claim_beside("r", e, 1, &ending, 1);
    ck_assert_uint_eq(none.n, 0);
    ck_assert(none.awaits_ends);
    ck_assert(!claim(&s, "o", other, 1).awaits_ends); /* others get theirs */
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 2);
    finish(&s, ending, 1);
    struct claim_list next = claim_beside("r", e, 1, &ending, 1);
    ck_assert_uint_eq(next.n, 1);
    ck_assert(!next.awaits_ends);
    ck_assert_int_eq(trial_of(&s, "a", next.rows[0].number).seen, 1);
}
END_TEST

START_TEST(a_repeat_gets_the_same)
{
    struct claim_list one, two;
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_request req = {.runner = "r", .epoch = e, .claim_id = "same", .max_trials = 3};
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &one, &err), err);
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &two, &err), err);
    ck_assert_uint_eq(one.n, 3);
    ck_assert_uint_eq(two.n, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(one.rows[i].number, two.rows[i].number);
        ck_assert_int_eq(one.rows[i].attempt, two.rows[i].attempt);
        ck_assert_str_eq(one.rows[i].params, two.rows[i].params);
    }
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 3);
    finish(&s, ref_of(&one.rows[1]), 1);
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &two, &err), err);
    ck_assert_uint_eq(two.n, 2);
}
END_TEST

/* Another server may have committed the claim in a batch that waits for the disk. */
START_TEST(a_repeat_waits_for_the_disk)
{
    struct claim_list one, two;
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_request req = {.runner = "r", .epoch = e, .claim_id = "same", .max_trials = 3};
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &one, &err), err);
    int64_t log_end = commit_unsynced(&s);
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &two, &err), err);
    ck_assert_uint_eq(two.n, 3);
    check_synced(&s, log_end);
}
END_TEST

START_TEST(gpus_are_counted)
{
    struct claim_list list;
    make_sweep(&s, "a", "'max_trials': 9", ", 'resources': {'gpus': 2}");
    int64_t e = make_runner(&s, "r", 8);
    ck_assert_uint_eq(claim(&s, "r", e, 8).n, 0); /* has no GPU */
    struct claim_request req = {
        .runner = "r", .epoch = e, .claim_id = "g", .max_trials = 8, .gpus = 5};
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &list, &err), err);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[0].gpus, 2);
}
END_TEST

/* The sweep with the fewest running goes first, among equals the one that was served least
 * recently. */
START_TEST(sweeps_share)
{
    make_sweep(&s, "a", "'max_trials': 100", "");
    make_sweep(&s, "b", "'max_trials': 100", "");
    int64_t e = make_runner(&s, "r", 64);
    struct claim_list list = claim(&s, "r", e, 6);
    ck_assert_uint_eq(list.n, 6);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_RUNNING], 3);
    ck_assert_int_eq(sweep_of_id(&s, "b").counts.by_state[TRIAL_RUNNING], 3);
    finish(&s, ref_of(&list.rows[5]), 1); /* of b */
    ck_assert_str_eq(claim_one(&s, "r", e).sweep, "b");
    ck_assert_str_eq(claim_one(&s, "r", e).sweep, "a");
    make_sweep(&s, "c", "'max_trials': 2", "");
    list = claim(&s, "r", e, 9); /* c has only two left: the others fill the rest */
    ck_assert_uint_eq(list.n, 9);
    ck_assert_int_eq(sweep_of_id(&s, "c").counts.by_state[TRIAL_RUNNING], 2);
}
END_TEST

START_TEST(requeued_trials_come_first)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_list list = claim(&s, "r", e, 3);
    end(&s, ref_of(&list.rows[1]), OUTCOME_RELEASED);
    struct claimed_row c = claim_one(&s, "r", e);
    ck_assert_int_eq(c.number, 1);
    ck_assert_int_eq(c.attempt, 2);
    ck_assert_str_eq(c.params, list.rows[1].params);
    ck_assert_int_eq(c.seed, list.rows[1].seed);
}
END_TEST

START_TEST(strangers_are_refused)
{
    struct claim_list list;
    struct claim_request req = {.runner = "r", .epoch = 1, .claim_id = "x", .max_trials = 1};
    ck_fails(claim_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_NOT_FOUND, err,
             "register first");
    make_runner(&s, "r", 1);
    make_runner(&s, "r", 1);
    ck_fails(claim_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_STALE, err, "not current");
    req.claim_id = "";
    ck_fails(claim_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_INVAL, err, "1 to 64");
    ck_ok(runner_leave(s.db, &(struct runner_id){"r", 2, NULL}, &err), err);
    req = (struct claim_request){.runner = "r", .epoch = 2, .claim_id = "x", .max_trials = 1};
    ck_fails(claim_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_STALE, err, "register again");
}
END_TEST

START_TEST(conditional_parameters_are_named)
{
    json_t *doc = json_of(
        "{'name': 'c', 'metric': {'name': 'm', 'goal': 'maximize'}, 'parameters': {'k': {'type': "
        "'categorical', 'values': ['p', 'q']}, 'z': {'type': 'float', 'min': 0, 'max': 1, "
        "'points': "
        "2, 'when': {'k': 'p'}}}, 'search': {'method': 'grid'}, 'trial': {'command': ['true']}}");
    struct sweep_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    ck_assert_int_eq(row.planned, 3);
    int64_t e = make_runner(&s, "r", 8), pending = 0;
    ck_ok(claims_pending(s.db, NULL, &pending, &err), err);
    ck_assert_int_eq(pending, 3);
    struct claim_list list = claim(&s, "r", e, 8);
    ck_assert_uint_eq(list.n, 3);
    size_t inactive = 0;
    for (size_t i = 0; i < 3; i++) {
        bool has_z = strstr(list.rows[i].params, "\"z\"") != NULL;
        ck_assert_uint_eq(list.rows[i].n_inactive, !has_z);
        if (!has_z)
            ck_assert_str_eq(list.rows[i].inactive[0], "z");
        inactive += list.rows[i].n_inactive;
    }
    ck_assert_uint_eq(inactive, 1);
    ck_ok(claims_pending(s.db, NULL, &pending, &err), err);
    ck_assert_int_eq(pending, 0);
}
END_TEST

/* Eight claimers, each with its own store as on eight servers. */
#define CLAIMERS 8

struct claimer {
    int id;
    int finished, failed;
    int64_t most; /* the most trials of the bounded sweep that ran at once */
};

static void *claimer_thread(void *p)
{
    struct claimer *me = p;
    struct service own = {0};
    struct as_err e = {0};
    struct registration reg;
    char name[16], id[32];
    snprintf(name, sizeof name, "r%d", me->id);
    struct store_opts opts = {.url = s.url, .max_connections = 2};
    struct runner_register r = {.name = name, .slots = 4};
    if (store_open(&opts, &own.db, &e) != AS_OK ||
        runner_register(own.db, &own.a, &r, &reg, &e) != AS_OK) {
        me->failed++;
        return NULL;
    }
    for (int round = 0, idle = 0; idle < 3; round++) {
        struct claim_list list = {0};
        snprintf(id, sizeof id, "c%d-%d", me->id, round);
        struct claim_request req = {
            .runner = name, .epoch = reg.epoch, .claim_id = id, .max_trials = 1 + round % 3};
        if (claim_trials(own.db, NULL, &own.a, &req, &list, &e) != AS_OK) {
            me->failed++;
            break;
        }
        int64_t n = pg_fixture_i64(s.url, "select n_running from sweep where id = 'bounded'");
        me->most = n > me->most ? n : me->most;
        for (size_t i = 0; i < list.n; i++) {
            struct attempt_ref ref = ref_of(&list.rows[i]);
            struct measurement m = {1, "loss", 0.5};
            struct completion c = {.outcome = OUTCOME_COMPLETED};
            struct trial_row row;
            int64_t recorded;
            if (attempt_measure(own.db, &ref, NULL, &m, 1, &recorded, &e) != AS_OK ||
                attempt_complete(own.db, &own.a, &ref, NULL, &c, &row, &e) != AS_OK)
                me->failed++;
            else
                me->finished++;
        }
        int64_t pending = 1;
        if (list.n == 0 && claims_pending(own.db, NULL, &pending, &e) == AS_OK)
            idle += pending == 0;
    }
    service_close(&own);
    return NULL;
}

START_TEST(many_claimers_take_each_trial_once)
{
    make_grid(&s, "grid", 60, "");
    make_grid(&s, "short", 1000, "'max_trials': 25");
    make_sweep(&s, "bounded", "'max_trials': 40, 'max_concurrent_trials': 3", "");
    struct claimer claimers[CLAIMERS] = {0};
    pthread_t threads[CLAIMERS];
    for (int i = 0; i < CLAIMERS; i++) {
        claimers[i].id = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, claimer_thread, &claimers[i]), 0);
    }
    int finished = 0;
    for (int i = 0; i < CLAIMERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(claimers[i].failed, 0);
        ck_assert_int_le(claimers[i].most, 3);
        finished += claimers[i].finished;
    }
    ck_assert_int_eq(finished, 125);
    ck_assert_int_eq(sweep_of_id(&s, "grid").counts.by_state[TRIAL_COMPLETED], 60);
    ck_assert_int_eq(sweep_of_id(&s, "short").counts.by_state[TRIAL_COMPLETED], 25);
    ck_assert_int_eq(sweep_of_id(&s, "bounded").counts.by_state[TRIAL_COMPLETED], 40);
    ck_assert_int_eq(
        pg_fixture_i64(s.url, "select count(distinct params::text) from trial t join sweep s on "
                              "s.key = t.sweep_key where s.id = 'grid'"),
        60);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select max(attempt) from trial"), 1);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("claims");
    TCase *c = service_case(su, "claims", &s, 0);
    tcase_add_test(c, limits_hold);
    tcase_add_test(c, slots_bound_a_runner);
    tcase_add_test(c, what_is_ending_leaves_its_slot);
    tcase_add_test(c, what_is_ending_counts_for_limits_and_not_for_turns);
    tcase_add_test(c, a_sweep_that_learns_awaits_the_results);
    tcase_add_test(c, a_repeat_gets_the_same);
    tcase_add_test(c, a_repeat_waits_for_the_disk);
    tcase_add_test(c, gpus_are_counted);
    tcase_add_test(c, sweeps_share);
    tcase_add_test(c, requeued_trials_come_first);
    tcase_add_test(c, strangers_are_refused);
    tcase_add_test(c, conditional_parameters_are_named);
    tcase_add_test(c, many_claimers_take_each_trial_once);
    return su;
}
