/* Groups: trials of one shape in one slot, filled, filled again, and never past the others. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/datasets.h"
#include "scheduler/grouping.h"
#include "search/replay.h"
#include "tests/check_main.h"
#include "tests/scheduler/service.h"

static struct service s;
static struct as_err err;

static void open_service(void)
{
    char hex[SHA256_HEX_SIZE], text[300];
    struct dataset_row d;
    bool created;
    service_open(&s, 0);
    put_blob(&s, "x,y,class\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n1,3,a\n2,5,b\n", hex);
    snprintf(text, sizeof text,
             "{'name': 'toy', 'format': 'csv', 'files': {'table': '%s'}, 'target': 'class'}", hex);
    json_t *doc = json_of(text);
    ck_ok(dataset_create(s.db, &s.a, doc, &d, &created, &err), err);
    json_decref(doc);
}

static void close_service(void)
{
    check_invariants(&s);
    service_close(&s);
}

/* A sweep of the built-in trainer over a learning rate and the width of its layer, one of
 * `widths`. */
static const char *make_train(const char *name, const char *method, const char *widths,
                              const char *limits, const char *more)
{
    char text[2000];
    struct sweep_row row;
    snprintf(text, sizeof text,
             "{'name': '%s', 'metric': {'name': 'val_loss', 'goal': 'minimize'}, 'parameters': "
             "{'lr': {'type': 'float', 'min': 0.1, 'max': 1, 'points': 30}, 'width': {'type': "
             "'categorical', "
             "'values': [%s]}}, 'search': {'method': '%s', 'seed': 7}, 'limits': {%s}, 'trial': "
             "{'train': {'dataset': 'toy', 'epochs': 2, 'batch_size': 2, 'model': {'layers': "
             "['${width}']}, 'optimizer': {'kind': 'sgd', 'lr': '${lr}'}}}, 'ensemble': false%s}",
             name, widths, method, limits, more);
    json_t *doc = json_of(text);
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    return row.id;
}

static struct claim_list claim_as(struct service *sv, const struct claim_request *like,
                                  struct as_err *e)
{
    static atomic_int counter;
    struct claim_list list = {0};
    struct claim_request req = *like;
    char id[40];
    snprintf(id, sizeof id, "claim-%d", atomic_fetch_add(&counter, 1));
    req.claim_id = id;
    req.is_last = true;
    if (claim_trials(sv->db, NULL, &sv->a, &req, &list, e) != AS_OK)
        list.n = SIZE_MAX;
    return list;
}

static struct claim_list take(const struct claim_request *like)
{
    struct claim_list list = claim_as(&s, like, &err);
    ck_assert_msg(list.n != SIZE_MAX, "%s", err.msg);
    return list;
}

static struct claim_list take_group(const char *runner, int64_t epoch, int64_t slots, int64_t k)
{
    return take(&(struct claim_request){
        .runner = runner, .epoch = epoch, .max_trials = slots, .members = k});
}

static struct claim_list refill(const char *runner, int64_t epoch, const char *group, int64_t n)
{
    return take(&(struct claim_request){.runner = runner,
                                        .epoch = epoch,
                                        .max_trials = 1,
                                        .members = 1,
                                        .fit_group = group,
                                        .fit_members = n});
}

/* Complete with that loss. */
static void done(const struct claimed_row *c, double loss)
{
    measure(&s, ref_of(c), "val_loss", 1, loss);
    end(&s, ref_of(c), OUTCOME_COMPLETED);
}

static void enqueue(const char *sweep, int width)
{
    char text[100];
    struct trial_row row;
    snprintf(text, sizeof text, "{'params': {'lr': 0.5, 'width': %d}}", width);
    json_t *body = json_of(text);
    ck_ok(trial_add(s.db, &s.a, sweep, body, NULL, &row, &err), err);
    json_decref(body);
    ck_assert_ptr_nonnull(row.shape);
}

static void change(const char *sweep, const char *patch)
{
    struct sweep_patch p;
    struct sweep_row row;
    json_t *doc = json_of(patch);
    ck_ok(sweep_patch_parse(doc, &p, &err), err);
    ck_ok(sweep_change(s.db, &s.a, sweep, &p, &row, &err), err);
    json_decref(doc);
}

static int64_t count(const char *what)
{
    char sql[400];
    snprintf(sql, sizeof sql, "select count(*) from trial where %s", what);
    return pg_fixture_i64(s.url, sql);
}

START_TEST(one_shape_shares_a_slot)
{
    make_train("a", "random", "8", "'max_trials': 20", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claim_list list = take_group("r", e, 1, 8);
    ck_assert_uint_eq(list.n, 8);
    for (size_t i = 0; i < list.n; i++) {
        ck_assert_int_eq(list.rows[i].number, (int64_t)i);
        ck_assert_str_eq(list.rows[i].group, "a.g0.1");
        ck_assert_str_eq(list.rows[i].shape, list.rows[0].shape);
        ck_assert_int_eq(list.rows[i].max_members, 8);
        ck_assert_int_gt(list.rows[i].bytes_per_member, 0);
        ck_assert_str_eq(list.rows[i].dataset->name, "toy");
        ck_assert_str_eq(trial_of(&s, "a", (int64_t)i).group, "a.g0.1");
    }
    /* the group takes one slot, and all of the runner's */
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_RUNNING], 8);
    ck_assert_uint_eq(take_group("r", e, 1, 8).n, 0);
    struct runner_page page;
    ck_ok(runner_list(s.db, &s.a, &(struct page_req){0}, &page, &err), err);
    ck_assert_int_eq(page.rows[0].running, 8);
    ck_assert_int_eq(page.rows[0].used, 1);
    struct trial_detail d;
    done(&list.rows[3], 1);
    ck_ok(trial_get(s.db, &s.a, "a", 3, &d, &err), err);
    ck_assert_str_eq(d.attempts[0].group, "a.g0.1");
    const struct trial_query all = {.group = "a.g0.1", .page = {.size = 5}};
    struct trial_page trials;
    ck_ok(trial_list(s.db, &s.a, "a", &all, &trials, &err), err);
    ck_assert_uint_eq(trials.n, 5);
    ck_assert_ptr_nonnull(trials.next_cursor);
    for (int sort = TRIAL_BY_NUMBER; sort <= TRIAL_BY_DURATION; sort++) {
        struct trial_query q = {.group = "a.g0.1",
                                .sort = (trial_sort)sort,
                                .descending = sort % 2,
                                .page = {.size = 50}};
        ck_ok(trial_list(s.db, &s.a, "a", &q, &trials, &err), err);
        ck_assert_uint_eq(trials.n, 8);
        q.group = "a.g1.1";
        ck_ok(trial_list(s.db, &s.a, "a", &q, &trials, &err), err);
        ck_assert_uint_eq(trials.n, 0);
    }
}
END_TEST

/* Who does not ask for members, and sweeps that do not want them, get trials alone. */
START_TEST(alone_when_nobody_asks)
{
    make_train("a", "random", "8", "'max_trials': 20", "");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_list list = take_group("r", e, 2, 1);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_ptr_null(list.rows[0].group);
    ck_assert_ptr_nonnull(trial_of(&s, "a", 0).shape);
    change("a", "{'state': 'cancelled'}");
    make_train("b", "random", "8", "'max_trials': 20", ", 'resources': {'group': 1}");
    list = take_group("r", e, 2, 8);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_ptr_null(list.rows[1].group);
    change("b", "{'state': 'cancelled'}");
    make_sweep(&s, "c", "'max_trials': 20", "");
    list = take_group("r", e, 2, 8);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_ptr_null(list.rows[1].group);
    ck_assert_ptr_null(trial_of(&s, "c", 0).shape);
}
END_TEST

START_TEST(slots_are_filled_evenly)
{
    make_train("a", "random", "8", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 2);
    ck_assert_uint_eq(take_group("r", e, 2, 32).n, 9);
    ck_assert_int_eq(count("group_id = 'a.g0.1'"), 5);
    ck_assert_int_eq(count("group_id = 'a.g5.1'"), 4);
}
END_TEST

START_TEST(memory_measurements_and_the_document_bound)
{
    make_train("a", "random", "8", "'max_trials': 99", ", 'resources': {'group': 6}");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_request req = {.runner = "r", .epoch = e, .max_trials = 1, .members = 8};
    struct claim_list list = take(&req);
    ck_assert_uint_eq(list.n, 6);
    ck_assert_int_eq(list.rows[0].max_members, 6);
    req.memory_bytes = 4 * list.rows[0].bytes_per_member + 1;
    list = take(&req);
    ck_assert_uint_eq(list.n, 4);
    ck_assert_int_eq(list.rows[0].max_members, 4);
    const struct measured_shape measured[] = {{"another", 1}, {list.rows[0].shape, 3}};
    req.measured = measured;
    req.n_measured = 2;
    ck_assert_uint_eq(take(&req).n, 3);
    req.memory_bytes = 1; /* not even one has room: it is tried, alone */
    list = take(&req);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_ptr_null(list.rows[0].group);
}
END_TEST

START_TEST(limits_hold_within_a_group)
{
    make_train("a", "random", "8", "'max_trials': 5, 'max_concurrent_trials': 3", "");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_list list = take_group("r", e, 1, 8);
    ck_assert_uint_eq(list.n, 3);
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 8).n, 0);
    done(&list.rows[0], 1);
    done(&list.rows[1], 1);
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 1).n, 1);
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 8).n, 1);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 5);
    done(&list.rows[2], 1);
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 8).n, 0); /* max_trials */
}
END_TEST

/* A group uses the GPUs of one trial. */
START_TEST(gpus_count_once)
{
    make_train("a", "random", "8", "'max_trials': 99", ", 'resources': {'gpus': 2, 'group': 4}");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_request req = {
        .runner = "r", .epoch = e, .max_trials = 9, .members = 8, .gpus = 5};
    struct claim_list list = take(&req);
    ck_assert_uint_eq(list.n, 8);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(distinct group_id) from trial"), 2);
    done(&list.rows[0], 1);
    ck_assert_uint_eq(refill("r", e, list.rows[0].group, 1).n, 1); /* with no GPU free */
}
END_TEST

/* What has another shape waits, comes first later, and only so much of it is drawn ahead. */
START_TEST(other_shapes_wait_in_the_queue)
{
    make_train("a", "random", "8, 16", "'max_trials': 60", "");
    int64_t e = make_runner(&s, "r", 9), taken = 0;
    struct claim_list list = take_group("r", e, 1, 4);
    ck_assert_uint_eq(list.n, 4);
    int64_t queued = count("state = 'queued'");
    ck_assert_int_gt(queued, 0);
    ck_assert_int_eq(count("state = 'queued' and suggestion_index is not null and runner is null "
                           "and attempt = 0"),
                     queued);
    ck_assert_int_eq(
        pg_fixture_i64(s.url, "select count(*) from event where state = 'queued' and attempt is "
                              "null"),
        queued);
    char first[SHAPE_MAX];
    snprintf(first, sizeof first, "%s", list.rows[0].shape);
    int64_t oldest = pg_fixture_i64(s.url, "select min(number) from trial where state = 'queued'");
    list = take_group("r", e, 1, 4);
    ck_assert_int_eq(list.rows[0].number, oldest);
    ck_assert_str_ne(list.rows[0].shape, first);
    for (size_t i = 0; i < list.n; i++)
        ck_assert_str_eq(list.rows[i].shape, list.rows[0].shape);
    for (int i = 0; i < 40 && taken < 60; i++) {
        list = claim(&s, "r", e, 1);
        for (size_t k = 0; k < list.n; k++)
            done(&list.rows[k], 0.5);
        taken = count("state <> 'queued'");
    }
    ck_assert_int_le(count("true"), 60);
}
END_TEST

START_TEST(drawing_ahead_has_a_bound)
{
    make_train("a", "random", "8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19", "'max_trials': 900",
               "");
    make_train("b", "gp", "8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19", "'max_trials': 900", "");
    int64_t e = make_runner(&s, "r", 64);
    take_group("r", e, 64, 8);
    ck_assert_int_le(count("state = 'queued' and sweep_key = 1"), 4 * 8);
    ck_assert_int_le(count("state = 'queued' and sweep_key = 2"), 8);
    for (int i = 0; i < 30; i++)
        take_group("r", e, 1, 8);
    ck_assert_int_le(count("state = 'queued' and sweep_key = 1"), 4 * 8);
    ck_assert_int_le(count("state = 'queued' and sweep_key = 2"), 8);
}
END_TEST

/* The second of twelve has another width than all others: it is passed by six numbers, then the
 * group gets nothing more, and it is the next one. */
START_TEST(nobody_starves_behind_a_group)
{
    make_train("a", "random", "8, 16", "'max_trials': 12", "");
    for (int i = 0; i < 12; i++)
        enqueue("a", i == 2 ? 16 : 8);
    int64_t e = make_runner(&s, "r", 1);
    struct claim_list list = take_group("r", e, 1, 2);
    ck_assert_uint_eq(list.n, 2);
    struct claimed_row left = list.rows[1];
    struct claimed_row last = list.rows[0];
    for (int64_t number = 3; number <= 6; number++) {
        done(&last, 1);
        list = refill("r", e, "a.g0.1", 1);
        ck_assert_uint_eq(list.n, 1);
        ck_assert_int_eq(list.rows[0].number, number);
        ck_assert_str_eq(list.rows[0].group, "a.g0.1");
        last = list.rows[0];
    }
    done(&last, 1);
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 1).n, 0);
    ck_assert_uint_eq(take_group("r", e, 1, 2).n, 0); /* it still has the slot */
    done(&left, 1);
    list = take_group("r", e, 1, 2);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].number, 2);
    ck_assert_str_eq(list.rows[0].group, "a.g2.1");
}
END_TEST

/* A group ends when its slot would go to another sweep, and only then. */
START_TEST(no_sweep_starves_behind_a_group)
{
    make_train("a", "random", "8", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 2);
    struct claim_list one = take_group("r", e, 1, 2), two = take_group("r", e, 1, 2);
    make_train("b", "random", "8", "'max_trials': 99", "");
    done(&one.rows[0], 1);
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 1).n, 0);
    done(&one.rows[1], 1);
    one = take_group("r", e, 1, 2);
    ck_assert_uint_eq(one.n, 2);
    ck_assert_str_eq(one.rows[0].sweep, "b");
    /* a group each: both go on */
    done(&one.rows[0], 1);
    ck_assert_uint_eq(refill("r", e, one.rows[0].group, 1).n, 1);
    done(&two.rows[0], 1);
    ck_assert_uint_eq(refill("r", e, "a.g2.1", 1).n, 1);
    /* with a free slot nobody has to end */
    make_train("c", "random", "8", "'max_trials': 99", "");
    make_runner(&s, "q", 2);
    two = take_group("q", 1, 1, 2);
    ck_assert_str_eq(two.rows[0].sweep, "c");
    make_train("d", "random", "8", "'max_trials': 99", "");
    done(&two.rows[0], 1);
    ck_assert_uint_eq(refill("q", 1, two.rows[0].group, 1).n, 1);
}
END_TEST

/* In one slot the older sweep is always first, as it is without groups. */
START_TEST(the_older_sweep_goes_first)
{
    make_train("a", "random", "8", "'max_trials': 99", "");
    change("a", "{'state': 'paused'}");
    make_train("b", "random", "8", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claim_list list = take_group("r", e, 1, 2);
    ck_assert_str_eq(list.rows[0].sweep, "b");
    done(&list.rows[0], 1);
    ck_assert_uint_eq(refill("r", e, "b.g0.1", 1).n, 1);
    change("a", "{'state': 'running'}");
    done(&list.rows[1], 1);
    ck_assert_uint_eq(refill("r", e, "b.g0.1", 1).n, 0);
}
END_TEST

START_TEST(groups_of_others_are_not_filled)
{
    make_train("a", "random", "8", "'max_trials': 99", ", 'resources': {'group': 5}");
    int64_t e = make_runner(&s, "r", 1), q = make_runner(&s, "q", 1);
    struct claim_list list = take_group("r", e, 1, 5);
    struct claim_list full = refill("r", e, "a.g0.1", 1);
    ck_assert(full.n == 0 && full.sweep_key == 1); /* it may get one later */
    for (int i = 0; i < 3; i++)
        done(&list.rows[i], 1);
    ck_assert_uint_eq(refill("q", q, "a.g0.1", 1).n, 0);
    ck_assert_uint_eq(refill("r", e, "a.g1.1", 1).n, 0);
    struct claim_request req = {.runner = "r",
                                .epoch = e,
                                .max_trials = 1,
                                .members = 1,
                                .memory_bytes = 2 * list.rows[0].bytes_per_member,
                                .fit_group = "a.g0.1",
                                .fit_members = 3};
    ck_assert_uint_eq(take(&req).n, 0); /* two of its members fill the memory */
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 9).n, 3);
    change("a", "{'state': 'cancelled'}");
    struct claim_list none = refill("r", e, "a.g0.1", 2);
    ck_assert(none.n == 0 && none.sweep_key == 0); /* nothing to wait for there */
}
END_TEST

START_TEST(an_empty_group_is_filled_again)
{
    make_train("a", "random", "8", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claim_list list = take_group("r", e, 1, 3);
    for (size_t i = 0; i < list.n; i++)
        done(&list.rows[i], 1);
    list = refill("r", e, "a.g0.1", 3);
    ck_assert_uint_eq(list.n, 3);
    ck_assert_uint_eq(take_group("r", e, 1, 3).n, 0);
    for (size_t i = 0; i < list.n; i++)
        done(&list.rows[i], 1);
    list = take_group("r", e, 1, 3); /* its slot goes to another group */
    ck_assert_uint_eq(list.n, 3);
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 3).n, 0);
}
END_TEST

/* What crashed or lost its runner runs alone; what was released may share again. */
START_TEST(a_crash_makes_lonely)
{
    make_train("a", "random", "8", "'max_trials': 4", "");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_list list = take_group("r", e, 1, 4);
    ck_assert_uint_eq(list.n, 4);
    end(&s, ref_of(&list.rows[0]), OUTCOME_RETRY);
    end(&s, ref_of(&list.rows[1]), OUTCOME_RELEASED);
    end(&s, ref_of(&list.rows[3]), OUTCOME_RELEASED);
    ck_assert_str_eq(trial_of(&s, "a", 0).group, "a.g0.1"); /* of its latest attempt */
    list = take_group("r", e, 1, 4);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].number, 0);
    ck_assert_int_eq(list.rows[0].attempt, 2);
    ck_assert_ptr_null(list.rows[0].group);
    ck_assert_ptr_null(trial_of(&s, "a", 0).group);
    list = take_group("r", e, 1, 4);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[1].number, 3);
    ck_assert_str_eq(list.rows[1].group, "a.g1.2");
    e = make_runner(&s, "r", 9); /* it lost them all */
    for (int i = 0; i < 4; i++) {
        list = take_group("r", e, 1, 4);
        ck_assert_uint_eq(list.n, 1);
        ck_assert_int_eq(list.rows[0].number, i);
        ck_assert_ptr_null(list.rows[0].group);
    }
    ck_assert_int_eq(pg_fixture_i64(s.url, "select sum(restarts) from trial"), 5);
}
END_TEST

START_TEST(a_repeat_gets_the_same_group)
{
    make_train("a", "random", "8, 16", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_request req = {
        .runner = "r", .epoch = e, .claim_id = "same", .max_trials = 2, .members = 5};
    struct claim_list one, two;
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &one, &err), err);
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &two, &err), err);
    ck_assert_uint_eq(one.n, 10);
    ck_assert_uint_eq(two.n, one.n);
    for (size_t i = 0; i < one.n; i++) {
        ck_assert_int_eq(one.rows[i].number, two.rows[i].number);
        ck_assert_str_eq(one.rows[i].group, two.rows[i].group);
        ck_assert_int_eq(two.rows[i].max_members, 5);
    }
    done(&one.rows[4], 1);
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &two, &err), err);
    ck_assert_uint_eq(two.n, 9);
    struct claim_request fit = {.runner = "r",
                                .epoch = e,
                                .claim_id = "fit",
                                .max_trials = 1,
                                .members = 1,
                                .fit_group = one.rows[4].group,
                                .fit_members = 1};
    ck_ok(claim_trials(s.db, NULL, &s.a, &fit, &one, &err), err);
    ck_assert_uint_eq(one.n, 1);
    ck_ok(claim_trials(s.db, NULL, &s.a, &fit, &two, &err), err);
    ck_assert_uint_eq(two.n, 1);
    ck_assert_int_eq(one.rows[0].number, two.rows[0].number);
}
END_TEST

/* A runner that comes again with its processes alive keeps its groups. */
START_TEST(groups_outlive_an_epoch)
{
    make_train("a", "random", "8", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claim_list list = take_group("r", e, 1, 3);
    struct attempt_ref held[2] = {ref_of(&list.rows[0]), ref_of(&list.rows[1])};
    struct runner_register req = {.name = "r", .slots = 1, .resume = held, .n_resume = 2};
    struct registration reg;
    ck_ok(runner_register(s.db, &s.a, &req, &reg, &err), err);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_RUNNING], 2);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_QUEUED], 1);
    /* the third lost its runner: it does not fit, but a new suggestion does */
    list = refill("r", reg.epoch, "a.g0.1", 1);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].number, 3);
    ck_ok(runner_leave(s.db, "r", reg.epoch, &err), err); /* released: they may share again */
    e = make_runner(&s, "q", 2);
    ck_assert_uint_eq(take_group("q", e, 1, 9).n, 3 + 6);
    list = take_group("q", e, 1, 9);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].number, 2);
    ck_assert_ptr_null(list.rows[0].group);
}
END_TEST

START_TEST(pause_and_cancel_reach_members)
{
    make_train("a", "random", "8", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claim_list list = take_group("r", e, 1, 4);
    struct trial_row row;
    ck_ok(trial_cancel(s.db, &s.a, "a", 1, &row, &err), err);
    ck_assert_str_eq(row.group, "a.g0.1");
    change("a", "{'state': 'paused'}");
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 4).n, 0);
    change("a", "{'state': 'running'}");
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 1).n, 1);
    done(&list.rows[0], 1);
    change("a", "{'state': 'cancelled'}");
    ck_assert_int_eq(count("state = 'cancelled' and group_id is not null"), 4);
}
END_TEST

/* Clients get the same trials, alone; what waits for a group is handed to them too. */
START_TEST(clients_are_alone)
{
    make_train("a", "random", "8, 16", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 9);
    take_group("r", e, 1, 4);
    int64_t queued = count("state = 'queued'");
    ck_assert_int_gt(queued, 0);
    struct suggestion_list list = ask(&s, "a", "me", queued + 1);
    ck_assert_uint_eq(list.n, (size_t)queued + 1);
    ck_assert_int_eq(count("state = 'queued'"), 0);
    ck_assert_int_eq(count("client = 'me' and group_id is null and shape is not null"), queued + 1);
}
END_TEST

/* ---- a search that learns, and its replay ---- */

static json_t *parsed(const char *text)
{
    json_t *j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return j;
}

static json_t *trial_json(const struct trial_row *t)
{
    return json_pack(
        "{s:I, s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:o}", "number", (json_int_t)t->number, "state",
        trial_state_format(t->state), "origin", trial_origin_words[t->origin], "params",
        parsed(t->params), "suggestion", parsed(t->suggestion), "index", (json_int_t)t->index,
        "seen", (json_int_t)t->seen, "finish_seq",
        t->finish_seq ? json_integer(t->finish_seq) : json_null(), "metrics", parsed(t->metrics));
}

/* Every suggestion again, to the bit. */
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
                            parsed(row.document), "method", row.method, "seed", seed, "metrics",
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

/* Groups of two shapes, whose members end in another order than they began; refills. */
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
                                    .members = 4,
                                    .is_last = true};
        struct claim_list list;
        snprintf(id, sizeof id, "round-%d", round);
        if (round % 3 == 2 && n > 0) {
            req.fit_group = held[0].group;
            req.fit_members = 2;
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
    ck_assert_int_gt(pg_fixture_i64(s.url, "select count(*) from event where state = 'queued'"), 0);
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

/* A claim that may wait gets the whole group, not what is ready first. */
START_TEST(a_patient_claim_gets_a_whole_group)
{
    struct suggester *sg = NULL;
    const struct suggester_opts opts = {.threads = 1, .patience_ms = -1};
    ck_ok(suggester_create(s.db, &opts, &sg, &err), err);
    make_train("a", "gp", "8", "'max_trials': 30", "");
    int64_t e = make_runner(&s, "r", 3);
    struct claim_list list = {0};
    struct claim_request req = {
        .runner = "r", .epoch = e, .claim_id = "p", .max_trials = 1, .members = 6};
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
        if (attempt_measure(own->db, &ref, &m, 1, &recorded, &e) != AS_OK ||
            attempt_complete(own->db, &own->a, &ref, &c, &row, &e) != AS_OK)
            return false;
        me->finished++;
    }
    return true;
}

/* Each has a store of its own, as a server would; two runners each. */
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
                                    .members = 1 + round % 7};
        struct claim_list list = claim_as(&own, &req, &e), more = {0};
        fine = list.n != SIZE_MAX;
        if (fine && list.n > 0 && list.rows[0].group && round % 3 == 0) {
            req.members = 9;
            req.fit_group = list.rows[0].group;
            req.fit_members = 3;
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

Suite *test_suite(void)
{
    Suite *su = suite_create("groups");
    TCase *c = tcase_create("groups");
    pg_fixture_start();
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, open_service, close_service);
    tcase_add_test(c, one_shape_shares_a_slot);
    tcase_add_test(c, alone_when_nobody_asks);
    tcase_add_test(c, slots_are_filled_evenly);
    tcase_add_test(c, memory_measurements_and_the_document_bound);
    tcase_add_test(c, limits_hold_within_a_group);
    tcase_add_test(c, gpus_count_once);
    tcase_add_test(c, other_shapes_wait_in_the_queue);
    tcase_add_test(c, drawing_ahead_has_a_bound);
    tcase_add_test(c, nobody_starves_behind_a_group);
    tcase_add_test(c, no_sweep_starves_behind_a_group);
    tcase_add_test(c, the_older_sweep_goes_first);
    tcase_add_test(c, groups_of_others_are_not_filled);
    tcase_add_test(c, an_empty_group_is_filled_again);
    tcase_add_test(c, a_crash_makes_lonely);
    tcase_add_test(c, a_repeat_gets_the_same_group);
    tcase_add_test(c, groups_outlive_an_epoch);
    tcase_add_test(c, pause_and_cancel_reach_members);
    tcase_add_test(c, clients_are_alone);
    tcase_add_test(c, a_learning_search_is_replayed);
    tcase_add_test(c, with_search_threads_too);
    tcase_add_test(c, a_patient_claim_gets_a_whole_group);
    tcase_add_test(c, many_servers_take_each_trial_once);
    suite_add_tcase(su, c);
    return su;
}
