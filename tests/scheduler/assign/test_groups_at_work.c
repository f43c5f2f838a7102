/* Groups of a search that learns, and its replay; groups of many runners and servers at once. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "search/replay.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"
#include "tests/scheduler/assign/grouped.h"

/* ---- a search that learns, and its replay ---- */

static json_t *trial_json(const struct trial_row *t)
{
    return json_pack("{s:I, s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:o}", "number",
                     (json_int_t)t->number, "state", trial_state_format(t->state), "origin",
                     trial_origin_words[t->origin], "params", json_plain(t->params), "suggestion",
                     json_plain(t->suggestion), "index", (json_int_t)t->index, "seen",
                     (json_int_t)t->seen, "finish_seq",
                     t->finish_seq ? json_integer(t->finish_seq) : json_null(), "metrics",
                     json_plain(t->metrics));
}

/* Compute every suggestion again and compare it bit by bit. */
static void check_replay(const char *sweep)
{
    struct sweep_row row = sweep_of_id(&s, sweep);
    JSON_AUTO items = json_array();
    char seed[24];
    snprintf(seed, sizeof seed, "%lld", (long long)row.seed);
    for (int64_t i = 0; i < row.counts.total; i++) {
        struct trial_row t = trial_of(&s, sweep, i);
        json_array_append_new(items, trial_json(&t));
    }
    JSON_AUTO j = json_pack("{s:o, s:s, s:s, s:[{s:s, s:s}], s:[], s:{s:I}}", "document",
                            json_plain(row.document), "method", row.method, "seed", seed, "metrics",
                            "name", row.metric, "goal", "minimize", "constraints", "counts",
                            "total", (json_int_t)row.counts.total);
    ck_assert_ptr_nonnull(j);
    AS_AUTO(replay_freep) struct replay *r = NULL;
    ck_ok(replay_create(j, items, &r, &err), err);
    ck_assert_uint_eq(replay_suggested(r), (size_t)row.counts.total);
    struct replay_step step;
    as_status st;
    while ((st = replay_next(r, &step, &err)) == AS_OK)
        ck_assert_msg(step.is_same, "trial %llu is another one", (unsigned long long)step.number);
    ck_assert_int_eq(st, AS_E_EXHAUSTED);
}

/* Groups of two shapes whose members end in another order than they began; refills. */
static void drive_learner(struct suggester *sg)
{
    make_train("a", "gp", "8, 16", "'max_trials': 30", "");
    int64_t e = make_runner(&s, "r", 3);
    struct claimed_row held[64];
    size_t n = 0, most = 0;
    for (int round = 0; round < 200; round++) {
        char id[40];
        struct claim_request req = {.runner = "r",
                                    .epoch = e,
                                    .claim_id = id,
                                    .max_trials = 1,
                                    .groups.members = 4,
                                    .is_last = true};
        struct claim_list list;
        snprintf(id, sizeof id, "round-%d", round);
        if (round % 3 == 2 && n > 0) {
            req.groups.fit.group = held[0].group;
            req.groups.fit.members = 2;
        }
        ck_ok(claim_trials(s.db, sg, &s.a, &req, &list, &err), err);
        for (size_t i = 0; i < list.n; i++)
            held[n++] = list.rows[i];
        most = list.n > most ? list.n : most;
        if (n == 0 && count("true") == 30)
            break;
        for (int k = 0; k < 2 && n > 0; k++) {
            size_t last = (size_t)(round + k) % n;
            done(&held[last], 0.1 * (double)held[last].number + 1.0 / (round + 1));
            held[last] = held[--n];
        }
    }
    ck_assert_int_eq(count("state = 'completed'"), 30);
    ck_assert_uint_eq(most, 4);
    ck_assert_int_gt(
        pg_fixture_i64(s.url, "select count(*) from event_each where state = 'queued'"), 0);
    check_replay("a");
}

START_TEST(a_learning_search_is_replayed)
{
    drive_learner(NULL);
}
END_TEST

START_TEST(with_search_threads_too)
{
    struct suggester *sg = NULL;
    const struct suggester_opts opts = {.threads = 2, .patience_ms = 2000};
    ck_ok(suggester_create(s.db, &opts, &sg, &err), err);
    drive_learner(sg);
    suggester_free(sg);
}
END_TEST

/* A claim that may wait gets the whole group, not only what is ready first. */
START_TEST(a_patient_claim_gets_a_whole_group)
{
    struct suggester *sg = NULL;
    const struct suggester_opts opts = {.threads = 1, .patience_ms = -1};
    ck_ok(suggester_create(s.db, &opts, &sg, &err), err);
    make_train("a", "gp", "8", "'max_trials': 30", ", 'resources': {'group': 6}");
    int64_t e = make_runner(&s, "r", 3);
    struct claim_list list = {0};
    struct claim_request req = {
        .runner = "r", .epoch = e, .claim_id = "p", .max_trials = 1, .groups.members = 6};
    do
        ck_ok(claim_trials(s.db, sg, &s.a, &req, &list, &err), err);
    while (list.n == 0);
    ck_assert_uint_eq(list.n, 6);
    suggester_free(sg);
}
END_TEST

/* ---- many at once ---- */

#define CLAIMERS 6

struct claimer {
    int id, finished, failed;
};

static bool finish_all(struct service *own, const struct claim_list *list, struct claimer *me)
{
    struct as_err e = {0};
    for (size_t i = 0; i < list->n; i++) {
        struct attempt_ref ref = ref_of(&list->rows[i]);
        struct measurement m = {1, "val_loss", 0.5};
        struct completion c = {.outcome = OUTCOME_COMPLETED};
        struct trial_row row;
        int64_t recorded;
        if (attempt_measure(own->db, &ref, NULL, &m, 1, &recorded, &e) != AS_OK ||
            attempt_complete(own->db, &own->a, &ref, NULL, &c, &row, &e) != AS_OK)
            return false;
        me->finished++;
    }
    return true;
}

/* Each thread has its own store, as a server would, and two runners. */
static void *claimer_thread(void *p)
{
    struct claimer *me = p;
    struct service own = {0};
    struct as_err e = {0};
    struct registration reg;
    char name[16];
    snprintf(name, sizeof name, "r%d", me->id);
    struct store_opts opts = {.url = s.url, .max_connections = 2};
    struct runner_register r = {.name = name, .slots = 2};
    bool fine = store_open(&opts, &own.db, &e) == AS_OK &&
                runner_register(own.db, &own.a, &r, &reg, &e) == AS_OK;
    for (int round = 0, idle = 0; fine && idle < 3; round++) {
        struct claim_request req = {.runner = name,
                                    .epoch = reg.epoch,
                                    .max_trials = 1 + round % 2,
                                    .groups.members = 1 + round % 7};
        struct claim_list list = claim_as(&own, &req, &e), more = {0};
        fine = list.n != SIZE_MAX;
        if (fine && list.n > 0 && list.rows[0].group && round % 3 == 0) {
            req.groups.members = 9;
            req.groups.fit.group = list.rows[0].group;
            req.groups.fit.members = 3;
            more = claim_as(&own, &req, &e);
            fine = more.n != SIZE_MAX;
        }
        int64_t pending = 1;
        fine = fine && finish_all(&own, &list, me) && finish_all(&own, &more, me);
        if (fine && list.n == 0 && claims_pending(own.db, NULL, &pending, &e) == AS_OK)
            idle += pending == 0;
    }
    me->failed = !fine;
    service_close(&own);
    return NULL;
}

START_TEST(many_servers_take_each_trial_once)
{
    make_train("a", "random", "8, 16, 24", "'max_trials': 150", "");
    make_train("b", "random", "8, 16", "'max_trials': 60, 'max_concurrent_trials': 5", "");
    make_train("c", "grid", "8, 16", "'max_trials': 60", "");
    struct claimer claimers[CLAIMERS] = {0};
    pthread_t threads[CLAIMERS];
    int finished = 0;
    for (int i = 0; i < CLAIMERS; i++) {
        claimers[i].id = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, claimer_thread, &claimers[i]), 0);
    }
    for (int i = 0; i < CLAIMERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(claimers[i].failed, 0);
        finished += claimers[i].finished;
    }
    int64_t planned = pg_fixture_i64(s.url, "select sum(planned) from sweep");
    ck_assert_int_eq(finished, planned);
    ck_assert_int_eq(count("state = 'completed' and attempt = 1"), planned);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from (select group_id from trial where "
                                           "group_id is not null group by group_id having "
                                           "count(distinct shape) > 1 or count(distinct runner) > "
                                           "1 or count(distinct sweep_key) > 1) x"),
                     0);
    ck_assert_int_gt(count("group_id is not null"), planned / 2);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("groups_at_work");
    TCase *c = tcase_create("groups_at_work");
    pg_fixture_start();
    tcase_add_checked_fixture(c, open_grouped, close_grouped);
    tcase_add_test(c, a_learning_search_is_replayed);
    tcase_add_test(c, with_search_threads_too);
    tcase_add_test(c, a_patient_claim_gets_a_whole_group);
    tcase_add_test(c, many_servers_take_each_trial_once);
    suite_add_tcase(su, c);
    return su;
}
