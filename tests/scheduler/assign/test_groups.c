/* Groups: trials of one shape in one slot, filled and refilled, without overtaking other trials too
 * far. */
#include <stdio.h>
#include <string.h>

#include "scheduler/assign/shape.h"
#include "tests/support/check_main.h"
#include "tests/scheduler/assign/grouped.h"

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
    struct sweep_changed changed;
    json_t *doc = json_of(patch);
    ck_ok(sweep_patch_parse(doc, &p, &err), err);
    ck_ok(sweep_change(s.db, &s.a, sweep, &p, NULL, &changed, &err), err);
    json_decref(doc);
}

/* Its members leave one by one. Its slot is free when none of them runs. */
START_TEST(a_group_whose_members_are_all_ending_leaves_its_slot)
{
    make_train("a", "random", "8", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 1);
    struct claim_list list = take_group("r", e, 1, 2);
    ck_assert_uint_eq(list.n, 2);
    struct attempt_ref ending[] = {ref_of(&list.rows[0]), ref_of(&list.rows[1])};
    struct claim_request req = {.runner = "r",
                                .epoch = e,
                                .max_trials = 1,
                                .groups.members = 2,
                                .ending = ending,
                                .n_ending = 1};
    ck_assert_uint_eq(take(&req).n, 0);
    req.n_ending = 2;
    ck_assert_uint_eq(take(&req).n, 2);
    ck_assert_uint_eq(take(&req).n, 0);
    struct runner_page page;
    ck_ok(runner_list(s.db, &s.a, &(struct page_req){0}, &page, &err), err);
    ck_assert_int_eq(page.rows[0].running, 4);
    ck_assert_int_eq(page.rows[0].used, 1);
}
END_TEST

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
    ck_ok(trial_list(s.db, s.orders, &s.a, "a", &all, &trials, &err), err);
    ck_assert_uint_eq(trials.n, 5);
    ck_assert_ptr_nonnull(trials.next_cursor);
    for (int sort = TRIAL_BY_NUMBER; sort <= TRIAL_BY_DURATION; sort++) {
        struct trial_query q = {.group = "a.g0.1",
                                .sort = (trial_sort)sort,
                                .descending = sort % 2,
                                .page = {.size = 50}};
        ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &trials, &err), err);
        ck_assert_uint_eq(trials.n, 8);
        q.group = "a.g1.1";
        ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &trials, &err), err);
        ck_assert_uint_eq(trials.n, 0);
    }
}
END_TEST

/* Runners that do not ask for members, and sweeps that do not want them, get trials alone. */
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
    struct claim_request req = {.runner = "r", .epoch = e, .max_trials = 1, .groups.members = 8};
    struct claim_list list = take(&req);
    ck_assert_uint_eq(list.n, 6);
    ck_assert_int_eq(list.rows[0].max_members, 6);
    req.groups.memory_bytes = 4 * list.rows[0].bytes_per_member + 1;
    list = take(&req);
    ck_assert_uint_eq(list.n, 4);
    ck_assert_int_eq(list.rows[0].max_members, 4);
    const struct measured_shape measured[] = {{"another", 1}, {list.rows[0].shape, 3}};
    req.groups.memory_bytes = 0;
    req.groups.measured = measured;
    req.groups.n_measured = 2;
    ck_assert_uint_eq(take(&req).n, 6); /* the document's number overrides the measurement */
    req.groups.memory_bytes = 1;        /* not even one member fits: it is tried, alone */
    list = take(&req);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_ptr_null(list.rows[0].group);
}
END_TEST

/* If the document gives no number, the runner does. It wants 8 of an unmeasured shape. */
START_TEST(the_runner_chooses_where_the_document_does_not)
{
    make_train("a", "random", "8", "'max_trials': 400", "");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_request req = {.runner = "r", .epoch = e, .max_trials = 1, .groups.members = 64};
    struct claim_list list = take(&req);
    ck_assert_uint_eq(list.n, 8);
    ck_assert_int_eq(list.rows[0].max_members, 8);
    char shape[SHAPE_MAX];
    snprintf(shape, sizeof shape, "%s", list.rows[0].shape);
    struct measured_shape measured[] = {{"another", 64}, {shape, 3}};
    req.groups.measured = measured;
    req.groups.n_measured = 2;
    ck_assert_uint_eq(take(&req).n, 3);
    measured[1].members = 32;
    list = take(&req);
    ck_assert_uint_eq(list.n, 32);
    ck_assert_int_eq(list.rows[31].max_members, 32);
    req.groups.members = 20; /* --group */
    ck_assert_uint_eq(take(&req).n, 20);
    for (int i = 0; i < 12; i++)
        done(&list.rows[i], 1);
    ck_assert_uint_eq(refill("r", e, list.rows[0].group, 12).n, 12); /* the refill gives its own
                                                                        number */
}
END_TEST

START_TEST(methods_that_learn_have_small_groups)
{
    make_train("a", "gp", "8", "'max_trials': 99", "");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_list list = take_group("r", e, 1, 32);
    ck_assert_uint_eq(list.n, 4);
    const struct measured_shape measured[] = {{list.rows[0].shape, 32}};
    struct claim_request req = {.runner = "r",
                                .epoch = e,
                                .max_trials = 1,
                                .groups.members = 32,
                                .groups.measured = measured,
                                .groups.n_measured = 1};
    ck_assert_uint_eq(take(&req).n, 4);
    change("a", "{'state': 'cancelled'}");
    make_train("b", "gp", "8", "'max_trials': 99", ", 'resources': {'group': 7}");
    ck_assert_uint_eq(take_group("r", e, 1, 32).n, 7);
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
    make_train("a", "random", "8", "'max_trials': 99", ", 'resources': {'gpus': 1, 'group': 4}");
    int64_t e = make_runner(&s, "r", 9);
    struct claim_request req = {
        .runner = "r", .epoch = e, .max_trials = 9, .groups.members = 8, .gpus = 2};
    struct claim_list list = take(&req);
    ck_assert_uint_eq(list.n, 8);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(distinct group_id) from trial"), 2);
    done(&list.rows[0], 1);
    ck_assert_uint_eq(refill("r", e, list.rows[0].group, 1).n, 1); /* although no GPU is free */
}
END_TEST

/* Trials of another shape wait and come first later, and only a limited number is drawn ahead. */
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
        pg_fixture_i64(s.url,
                       "select count(*) from event_each where state = 'queued' and attempt is "
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

/* The second of twelve has another width than all others. Six numbers overtake it; then the group
 * gets nothing more, and it is the next one. */
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
    /* with a free slot no group has to end */
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
                                .groups.members = 1,
                                .groups.memory_bytes = 2 * list.rows[0].bytes_per_member,
                                .groups.fit.group = "a.g0.1",
                                .groups.fit.members = 3};
    ck_assert_uint_eq(take(&req).n, 0); /* two of its members fill the memory */
    ck_assert_uint_eq(refill("r", e, "a.g0.1", 9).n, 3);
    change("a", "{'state': 'cancelled'}");
    struct claim_list none = refill("r", e, "a.g0.1", 2);
    ck_assert(none.n == 0 && none.sweep_key == 0); /* it can get no more */
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

/* A trial that crashed or lost its runner runs alone. A released one may share again. */
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
    e = make_runner(&s, "r", 9); /* it lost all of them */
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
        .runner = "r", .epoch = e, .claim_id = "same", .max_trials = 2, .groups.members = 5};
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
                                .groups.members = 1,
                                .groups.fit.group = one.rows[4].group,
                                .groups.fit.members = 1};
    ck_ok(claim_trials(s.db, NULL, &s.a, &fit, &one, &err), err);
    ck_assert_uint_eq(one.n, 1);
    ck_ok(claim_trials(s.db, NULL, &s.a, &fit, &two, &err), err);
    ck_assert_uint_eq(two.n, 1);
    ck_assert_int_eq(one.rows[0].number, two.rows[0].number);
}
END_TEST

/* A runner that registers again while its processes are alive keeps its groups. */
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
    ck_ok(runner_leave(s.db, &(struct runner_id){"r", reg.epoch, NULL}, &err),
          err); /* released: they may share again */
    e = make_runner(&s, "q", 2);
    ck_assert_uint_eq(take_group("q", e, 1, 9).n, 3 + 5);
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

/* Clients get the same trials, alone. Trials that wait for a group are handed to them too. */
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

TEST_SUITE()
{
    Suite *su = suite_create("groups");
    TCase *c = tcase_create("groups");
    pg_fixture_start();
    tcase_add_checked_fixture(c, open_grouped, close_grouped);
    tcase_add_test(c, one_shape_shares_a_slot);
    tcase_add_test(c, a_group_whose_members_are_all_ending_leaves_its_slot);
    tcase_add_test(c, alone_when_nobody_asks);
    tcase_add_test(c, slots_are_filled_evenly);
    tcase_add_test(c, memory_measurements_and_the_document_bound);
    tcase_add_test(c, the_runner_chooses_where_the_document_does_not);
    tcase_add_test(c, methods_that_learn_have_small_groups);
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
    suite_add_tcase(su, c);
    return su;
}
