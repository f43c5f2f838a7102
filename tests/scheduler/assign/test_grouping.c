/* Grouping: which trials share a slot, by shape, members, memory and measurements, and in which
 * order. Pure: no database. */
#include "scheduler/assign/grouping.h"

#include <string.h>

#include "tests/support/check_main.h"

static struct arena a;
static struct as_err err;

static void close_arena(void)
{
    arena_done(&a);
}

static struct group_rule rule_of(int64_t max, bool is_given)
{
    return (struct group_rule){.max = max, .is_given = is_given};
}

/* Queued trials with numbers from 0 and their shapes as letters; '-' has no shape, an upper-case
 * letter may not share. */
static size_t queue_of(const char *shapes, struct queued_trial *ret)
{
    static const char *const texts[] = {"a", "b", "c", "d", "e", "f", "g"};
    size_t n = strlen(shapes);
    for (size_t i = 0; i < n; i++) {
        char c = shapes[i];
        bool alone = c >= 'A' && c <= 'Z';
        ret[i] = (struct queued_trial){
            .number = (int64_t)i, .attempt = 0, .bytes_per_member = 10, .may_share = !alone};
        if (c != '-')
            ret[i].shape = texts[alone ? c - 'A' : c - 'a'];
    }
    return n;
}

/* A look at a sweep "s" with that many free slots and room for that many trials. Suggestions are
 * plentiful. */
static struct grouping look(const struct group_limits *limits, struct group_rule rule,
                            int64_t slots, int64_t room)
{
    struct grouping g = {.limits = limits, .sweep = "s", .rule = rule, .reach = INT64_MAX};
    grouping_begin(&g, slots, room, 1000);
    return g;
}

/* The trials that began, as "number:group number:- …", in the order in which they were chosen. */
static const char *chosen(struct grouping *g, const char *shapes)
{
    struct queued_trial queue[64];
    struct begun_trial begun[64];
    size_t n = queue_of(shapes, queue), n_begun = 0;
    const char *text = "";
    ck_ok(grouping_queue(g, &a, queue, n, begun, &n_begun, &err), err);
    for (size_t i = 0; i < n_begun; i++)
        text = arena_printf(&a, "%s%s%lld:%s", text, i ? " " : "", (long long)begun[i].number,
                            begun[i].group ? begun[i].group : "-");
    return text;
}

static grouping_decision suggest_shape(struct grouping *g, int64_t number, const char *shape,
                                       const char **ret_group)
{
    const struct trial_shape x = {shape, 10};
    grouping_decision v = GROUPING_ENOUGH;
    ck_ok(grouping_suggestion(g, &a, number, &x, &v, ret_group, &err), err);
    return v;
}

/* ---- how many ---- */

START_TEST(members_and_the_rule_bound)
{
    const struct group_limits limits = {.members = 5};
    ck_assert_int_eq(group_places(&limits, rule_of(9, true), "a", 1), 5);
    ck_assert_int_eq(group_places(&limits, rule_of(5, true), "a", 1), 5);
    ck_assert_int_eq(group_places(&limits, rule_of(4, true), "a", 1), 4);
    ck_assert_int_eq(group_places(&limits, rule_of(1, true), "a", 1), 1);
    ck_assert_int_eq(group_places(&limits, rule_of(0, true), "a", 1), 1);
    const struct group_limits none = {0};
    ck_assert_int_eq(group_places(&none, rule_of(9, true), "a", 1), 1);
}
END_TEST

START_TEST(memory_bounds)
{
    struct group_limits limits = {.members = 64};
    const struct {
        int64_t bytes, places;
    } cases[] = {{0, 9}, {1, 1}, {19, 1}, {20, 2}, {29, 2}, {89, 8}, {90, 9}, {INT64_MAX, 9}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        limits.memory_bytes = cases[i].bytes;
        ck_assert_int_eq(group_places(&limits, rule_of(9, true), "a", 10), cases[i].places);
    }
}
END_TEST

/* Trials with GPUs lie in the device's memory, not in the host's. */
START_TEST(device_memory_bounds_trials_with_gpus)
{
    struct group_rule on_gpu = rule_of(9, true);
    on_gpu.on_gpu = true;
    struct group_limits limits = {.members = 64, .memory_bytes = 20, .gpu_memory_bytes = 50};
    ck_assert_int_eq(group_places(&limits, on_gpu, "a", 10), 5);
    ck_assert_int_eq(group_places(&limits, rule_of(9, true), "a", 10), 2);
    limits.gpu_memory_bytes = 0;
    ck_assert_int_eq(group_places(&limits, on_gpu, "a", 10), 2);
    limits = (struct group_limits){.members = 64, .gpu_memory_bytes = 9};
    ck_assert_int_eq(group_places(&limits, on_gpu, "a", 10), 1);
    ck_assert_int_eq(group_places(&limits, rule_of(9, true), "a", 10), 9);
}
END_TEST

START_TEST(measurements_bound_where_the_document_does_not)
{
    const struct measured_shape measured[] = {{"a", 3}, {"b", 64}};
    struct group_limits limits = {.members = 64, .measured = measured, .n_measured = 2};
    ck_assert_int_eq(group_places(&limits, rule_of(50, false), "a", 1), 3);
    ck_assert_int_eq(group_places(&limits, rule_of(50, false), "b", 1), 50);
    ck_assert_int_eq(group_places(&limits, rule_of(50, false), "c", 1), GROUP_UNMEASURED);
    ck_assert_int_eq(group_places(&limits, rule_of(50, true), "a", 1), 50);
    ck_assert_int_eq(group_places(&limits, rule_of(2, false), "a", 1), 2);
    limits.members = 20;
    ck_assert_int_eq(group_places(&limits, rule_of(50, false), "b", 1), 20);
}
END_TEST

/* A fit gives its own number of new members. */
START_TEST(a_fit_is_bounded_by_the_rule_and_the_memory)
{
    const struct measured_shape measured[] = {{"a", 3}};
    struct group_limits limits = {
        .members = 1, .fit = {"g", 2}, .measured = measured, .n_measured = 1};
    ck_assert_int_eq(group_places(&limits, rule_of(12, false), "a", 10), 12);
    limits.memory_bytes = 70;
    ck_assert_int_eq(group_places(&limits, rule_of(12, false), "a", 10), 7);
}
END_TEST

START_TEST(the_most_of_any_shape)
{
    const struct measured_shape measured[] = {{"a", 3}, {"b", 20}};
    struct group_limits limits = {.members = 64};
    ck_assert_int_eq(group_most(&limits, rule_of(50, false)), GROUP_UNMEASURED);
    ck_assert_int_eq(group_most(&limits, rule_of(50, true)), 50);
    limits.measured = measured;
    limits.n_measured = 1; /* no less than what an unmeasured shape gets */
    ck_assert_int_eq(group_most(&limits, rule_of(50, false)), GROUP_UNMEASURED);
    limits.n_measured = 2;
    ck_assert_int_eq(group_most(&limits, rule_of(50, false)), 20);
    ck_assert_int_eq(group_most(&limits, rule_of(6, false)), 6);
    limits.members = 4;
    ck_assert_int_eq(group_most(&limits, rule_of(50, false)), 4);
    limits.members = 0;
    ck_assert_int_eq(group_most(&limits, rule_of(50, false)), 1);
}
END_TEST

/* ---- the queue ---- */

START_TEST(without_limits_each_is_alone)
{
    struct grouping g = look(NULL, rule_of(9, true), 3, 9);
    ck_assert_int_eq(grouping_wants(&g), 3);
    ck_assert_str_eq(chosen(&g, "aaaa"), "0:- 1:- 2:-");
    ck_assert_int_eq(grouping_wants(&g), 0);
    ck_assert_int_eq(g.slots, 0);
    ck_assert_int_eq(g.room, 6);
}
END_TEST

START_TEST(one_slot_takes_one_shape)
{
    const struct group_limits limits = {.members = 8};
    struct grouping g = look(&limits, rule_of(9, true), 1, 99);
    ck_assert_str_eq(chosen(&g, "abaab"), "0:s.g0.1 2:s.g0.1 3:s.g0.1");
    ck_assert_int_eq(g.slots, 0);
    ck_assert_int_eq(grouping_wants(&g), 5);
}
END_TEST

/* The group id names the trial that opened it and the attempt that it runs as. */
START_TEST(a_group_is_named_after_its_first_trial)
{
    const struct group_limits limits = {.members = 8};
    struct grouping g = look(&limits, rule_of(9, true), 1, 99);
    struct queued_trial queue[] = {
        {.number = 7, .attempt = 2, .shape = "a", .bytes_per_member = 1, .may_share = true}};
    struct begun_trial begun[1];
    size_t n = 0;
    ck_ok(grouping_queue(&g, &a, queue, 1, begun, &n, &err), err);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(begun[0].group, "s.g7.3");
}
END_TEST

START_TEST(a_full_group_leaves_the_rest_to_the_next_slot)
{
    const struct group_limits limits = {.members = 3};
    struct grouping g = look(&limits, rule_of(9, true), 2, 99);
    ck_assert_str_eq(chosen(&g, "aaaaaaa"), "0:s.g0.1 1:s.g0.1 2:s.g0.1 "
                                            "3:s.g3.1 4:s.g3.1 5:s.g3.1");
    ck_assert_int_eq(grouping_wants(&g), 0);
    const char *group = NULL;
    g.ahead = 5;
    ck_assert_int_eq(suggest_shape(&g, 7, "a", &group), GROUPING_ENOUGH);
}
END_TEST

START_TEST(what_fits_nowhere_waits_its_turn)
{
    const struct group_limits limits = {.members = 8};
    struct grouping g = look(&limits, rule_of(9, true), 2, 99);
    /* c and the trial without a shape find both slots taken; the members of a and b come in
     * order */
    ck_assert_str_eq(chosen(&g, "abc-ab"), "0:s.g0.1 4:s.g0.1 1:s.g1.1 5:s.g1.1");
}
END_TEST

START_TEST(what_may_not_share_gets_a_slot_alone)
{
    const struct group_limits limits = {.members = 8};
    struct grouping g = look(&limits, rule_of(9, true), 3, 99);
    ck_assert_str_eq(chosen(&g, "A-aaA"), "0:- 1:- 2:s.g2.1 3:s.g2.1");
}
END_TEST

/* A group with one place is no group, also if the memory has room for one member, or for none. */
START_TEST(one_place_is_no_group)
{
    struct group_limits limits = {.members = 8, .memory_bytes = 19};
    struct grouping g = look(&limits, rule_of(9, true), 2, 99);
    ck_assert_str_eq(chosen(&g, "aaa"), "0:- 1:-");
    limits.memory_bytes = 9;
    g = look(&limits, rule_of(9, true), 2, 99);
    ck_assert_str_eq(chosen(&g, "aaa"), "0:- 1:-");
    limits.memory_bytes = 20;
    g = look(&limits, rule_of(9, true), 2, 99);
    ck_assert_str_eq(chosen(&g, "aaa"), "0:s.g0.1 1:s.g0.1 2:s.g2.1");
}
END_TEST

START_TEST(each_shape_has_its_measured_size)
{
    const struct measured_shape measured[] = {{"a", 2}, {"b", 3}};
    const struct group_limits limits = {.members = 64, .measured = measured, .n_measured = 2};
    struct grouping g = look(&limits, rule_of(50, false), 2, 99);
    ck_assert_str_eq(chosen(&g, "aaabbbb"), "0:s.g0.1 1:s.g0.1 2:s.g2.1");
    g = look(&limits, rule_of(50, false), 2, 99);
    ck_assert_str_eq(chosen(&g, "abbbba"), "0:s.g0.1 5:s.g0.1 1:s.g1.1 2:s.g1.1 3:s.g1.1");
}
END_TEST

START_TEST(the_room_bounds_all_groups)
{
    const struct group_limits limits = {.members = 8};
    struct grouping g = look(&limits, rule_of(9, true), 1, 3);
    ck_assert_int_eq(grouping_wants(&g), 3);
    ck_assert_str_eq(chosen(&g, "aaaaa"), "0:s.g0.1 1:s.g0.1 2:s.g0.1");
    g = look(&limits, rule_of(9, true), 2, 0);
    ck_assert_int_eq(grouping_wants(&g), 0);
    ck_assert_str_eq(chosen(&g, "aaaaa"), "");
    g = look(&limits, rule_of(9, true), 0, 9);
    ck_assert_int_eq(grouping_wants(&g), 0);
    ck_assert_str_eq(chosen(&g, "aaaaa"), "");
}
END_TEST

/* Every slot gets trials: nine trials in two slots are five and four. */
START_TEST(slots_are_filled_evenly)
{
    const struct group_limits limits = {.members = 8};
    struct grouping g = {
        .limits = &limits, .sweep = "s", .rule = rule_of(9, true), .reach = INT64_MAX};
    grouping_begin(&g, 2, 99, 9);
    ck_assert_int_eq(g.even, 5);
    ck_assert_str_eq(chosen(&g, "aaaaaaaaa"), "0:s.g0.1 1:s.g0.1 2:s.g0.1 3:s.g0.1 4:s.g0.1 "
                                              "5:s.g5.1 6:s.g5.1 7:s.g5.1 8:s.g5.1");
    ck_assert_int_eq(g.groups[0].places, 8); /* later ones may still join */
    grouping_begin(&g, 2, 99, 0);
    ck_assert_int_eq(g.even, 1);
    grouping_begin(&g, 0, 99, 9);
    ck_assert_int_eq(g.even, 1);
}
END_TEST

START_TEST(only_so_many_groups_are_open)
{
    enum { N = GROUP_SLOTS_MAX + 1 };
    const struct group_limits limits = {.members = 2};
    struct grouping g = look(&limits, rule_of(9, true), N, 999);
    const char *group = NULL;
    for (int64_t i = 0; i < N; i++) {
        const char *shape = arena_printf(&a, "shape %lld", (long long)i);
        ck_assert_int_eq(suggest_shape(&g, i, shape, &group), GROUPING_RUNS);
        ck_assert((group != NULL) == (i < GROUP_SLOTS_MAX));
    }
    ck_assert_uint_eq(g.n_groups, GROUP_SLOTS_MAX);
}
END_TEST

/* ---- a group that is filled again ---- */

static struct grouping refill(const struct group_limits *limits, int64_t free)
{
    struct grouping g = {.limits = limits, .sweep = "s", .rule = rule_of(3, true)};
    g.groups[0] = (struct open_group){.id = "old", .shape = "a", .places = 3, .free = free};
    g.n_groups = 1;
    g.reach = INT64_MAX;
    grouping_begin(&g, 0, 99, 99);
    return g;
}

START_TEST(a_fit_takes_its_shape_and_no_slot)
{
    const struct group_limits limits = {.members = 1, .fit = {"old", 2}};
    struct grouping g = refill(&limits, 2);
    ck_assert_int_eq(grouping_wants(&g), 2);
    ck_assert_str_eq(chosen(&g, "bAa-aa"), "2:old 4:old");
    g = refill(&limits, 0);
    ck_assert_str_eq(chosen(&g, "aaa"), "");
}
END_TEST

/* It may overtake an older trial of another shape by GROUP_REACH times its places, and no
 * further. */
START_TEST(a_fit_reaches_so_far)
{
    const struct group_limits limits = {.members = 1, .fit = {"old", 3}};
    struct queued_trial queue[16];
    size_t n = queue_of("abbbbbbaab", queue);
    struct grouping g = refill(&limits, 3);
    grouping_limit_reach(&g, queue, n);
    ck_assert_int_eq(g.reach, 1 + GROUP_REACH * 3);
    ck_assert_str_eq(chosen(&g, "abbbbbbaab"), "0:old 7:old"); /* 8 is too far */
    const char *group = NULL;
    g.ahead = 9;
    ck_assert_int_eq(suggest_shape(&g, 8, "a", &group), GROUPING_ENOUGH);
    n = queue_of("aAa", queue); /* of its shape, but alone: passed as well */
    grouping_limit_reach(&g, queue, n);
    ck_assert_int_eq(g.reach, 1 + GROUP_REACH * 3);
    n = queue_of("aaa", queue);
    grouping_limit_reach(&g, queue, n);
    ck_assert_int_eq(g.reach, INT64_MAX);
    grouping_limit_reach(&g, queue, 0);
    ck_assert_int_eq(g.reach, INT64_MAX);
}
END_TEST

/* ---- suggestions ---- */

START_TEST(suggestions_join_open_or_wait)
{
    const struct group_limits limits = {.members = 2};
    struct grouping g = look(&limits, rule_of(9, true), 2, 99);
    const char *group = "?";
    g.ahead = 1;
    ck_assert_int_eq(suggest_shape(&g, 0, "a", &group), GROUPING_RUNS);
    ck_assert_str_eq(group, "s.g0.1");
    ck_assert_int_eq(suggest_shape(&g, 1, NULL, &group), GROUPING_RUNS);
    ck_assert_ptr_null(group); /* it has no shape: a slot of its own */
    ck_assert_int_eq(grouping_wants(&g), 1);
    ck_assert_int_eq(suggest_shape(&g, 2, "b", &group), GROUPING_WAITS);
    ck_assert_ptr_null(group);
    ck_assert_int_eq(suggest_shape(&g, 3, "b", &group), GROUPING_ENOUGH); /* one may wait */
    ck_assert_int_eq(suggest_shape(&g, 3, "a", &group), GROUPING_RUNS);
    ck_assert_str_eq(group, "s.g0.1");
    ck_assert_int_eq(grouping_wants(&g), 0);
    g.ahead = 9;
    ck_assert_int_eq(suggest_shape(&g, 4, "a", &group), GROUPING_ENOUGH);
}
END_TEST

/* Only suggestions that go on waiting take places of those to come: no promotion, no retry, no
 * trial of a user, and no suggestion that begins now. */
START_TEST(only_waiting_suggestions_take_places_ahead)
{
    const struct group_limits limits = {.members = 2};
    struct grouping g = look(&limits, rule_of(9, true), 1, 99);
    struct queued_trial queue[8];
    struct begun_trial begun[8];
    size_t n = queue_of("abbbaab", queue), n_begun = 0;
    for (size_t i = 0; i < n; i++)
        queue[i].is_ahead = i >= 4;
    g.ahead = 2;
    ck_ok(grouping_queue(&g, &a, queue, n, begun, &n_begun, &err), err);
    ck_assert_uint_eq(n_begun, 2);
    ck_assert_int_eq(begun[1].number, 4);
    ck_assert_int_eq(g.ahead, 0); /* 5 and 6 wait */
    g = refill(&limits, 3);
    n = queue_of("bbbb", queue); /* all promoted: the group that is filled again still finds more */
    g.ahead = 2;
    ck_ok(grouping_queue(&g, &a, queue, n, begun, &n_begun, &err), err);
    ck_assert_uint_eq(n_begun, 0);
    ck_assert_int_eq(g.ahead, 2);
    const char *group = NULL;
    ck_assert_int_eq(suggest_shape(&g, 4, "b", &group), GROUPING_WAITS);
    ck_assert_int_eq(suggest_shape(&g, 5, "a", &group), GROUPING_RUNS);
}
END_TEST

START_TEST(suggestions_stay_within_the_room)
{
    const struct group_limits limits = {.members = 8};
    struct grouping g = look(&limits, rule_of(9, true), 2, 2);
    const char *group = NULL;
    g.ahead = 9;
    ck_assert_int_eq(suggest_shape(&g, 0, "a", &group), GROUPING_RUNS);
    ck_assert_int_eq(suggest_shape(&g, 1, "b", &group), GROUPING_RUNS);
    ck_assert_int_eq(suggest_shape(&g, 2, "a", &group), GROUPING_ENOUGH);
    ck_assert_int_eq(g.ahead, 9);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("grouping");
    TCase *c = tcase_create("grouping");
    tcase_add_checked_fixture(c, NULL, close_arena);
    tcase_add_test(c, members_and_the_rule_bound);
    tcase_add_test(c, memory_bounds);
    tcase_add_test(c, device_memory_bounds_trials_with_gpus);
    tcase_add_test(c, measurements_bound_where_the_document_does_not);
    tcase_add_test(c, a_fit_is_bounded_by_the_rule_and_the_memory);
    tcase_add_test(c, the_most_of_any_shape);
    tcase_add_test(c, without_limits_each_is_alone);
    tcase_add_test(c, one_slot_takes_one_shape);
    tcase_add_test(c, a_group_is_named_after_its_first_trial);
    tcase_add_test(c, a_full_group_leaves_the_rest_to_the_next_slot);
    tcase_add_test(c, what_fits_nowhere_waits_its_turn);
    tcase_add_test(c, what_may_not_share_gets_a_slot_alone);
    tcase_add_test(c, one_place_is_no_group);
    tcase_add_test(c, each_shape_has_its_measured_size);
    tcase_add_test(c, the_room_bounds_all_groups);
    tcase_add_test(c, slots_are_filled_evenly);
    tcase_add_test(c, only_so_many_groups_are_open);
    tcase_add_test(c, a_fit_takes_its_shape_and_no_slot);
    tcase_add_test(c, a_fit_reaches_so_far);
    tcase_add_test(c, suggestions_join_open_or_wait);
    tcase_add_test(c, only_waiting_suggestions_take_places_ahead);
    tcase_add_test(c, suggestions_stay_within_the_room);
    suite_add_tcase(su, c);
    return su;
}
