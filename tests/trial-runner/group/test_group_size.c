/* The number of members doubles while the throughput rises. */
#include "trial-runner/group/group_size.h"

#include <stdio.h>

#include "base/json.h"
#include "tests/support/check_main.h"

static void note(struct group_sizes *s, const char *shape, int64_t members, double rate)
{
    struct as_err err;
    ck_ok(group_sizes_note(s, shape, members, rate, &err), err);
}

START_TEST(doubles_while_it_pays)
{
    struct group_sizes s = {0};
    ck_assert_int_eq(group_sizes_next(&s, "a"), GROUP_SIZE_FIRST);
    note(&s, "a", 3, 900); /* fewer than asked: the sweep had no more */
    ck_assert_int_eq(group_sizes_next(&s, "a"), 8);
    note(&s, "a", 8, 1000);
    ck_assert_int_eq(group_sizes_next(&s, "a"), 16);
    note(&s, "a", 17, 1500);
    ck_assert_int_eq(group_sizes_next(&s, "a"), 32);
    note(&s, "a", 32, 1600); /* not a tenth more: once may be chance */
    ck_assert_int_eq(group_sizes_next(&s, "a"), 64);
    note(&s, "a", 32, 1590);
    ck_assert_int_eq(group_sizes_next(&s, "a"), 16);
    note(&s, "a", 33, 1700); /* the machine was busy before */
    ck_assert_int_eq(group_sizes_next(&s, "a"), 64);
    note(&s, "a", 64, 9000);
    ck_assert_int_eq(group_sizes_next(&s, "a"), GROUP_SIZE_MOST);
    ck_assert_int_eq(group_sizes_next(&s, "b"), GROUP_SIZE_FIRST);
    group_sizes_done(&s);
}
END_TEST

/* A device that is full bounds every later group of the shape. */
START_TEST(a_bound_holds)
{
    struct group_sizes s = {0};
    struct as_err err;
    ck_ok(group_sizes_bound(&s, "a", 12, &err), err);
    ck_assert_int_eq(group_sizes_next(&s, "a"), 8);
    note(&s, "a", 8, 1000);
    ck_assert_int_eq(group_sizes_next(&s, "a"), 12);
    note(&s, "a", 12, 9000);
    ck_ok(group_sizes_bound(&s, "a", 3, &err), err);
    ck_ok(group_sizes_bound(&s, "a", 5, &err), err);
    ck_assert_int_eq(group_sizes_next(&s, "a"), 3);
    JSON_AUTO list = group_sizes_json(&s);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(list, 0), "members")), 3);
    ck_assert_int_eq(group_sizes_next(&s, "b"), GROUP_SIZE_FIRST);
    group_sizes_done(&s);
}
END_TEST

START_TEST(worse_figures_and_nonsense_change_nothing)
{
    struct group_sizes s = {0};
    note(&s, "a", 8, 1000);
    note(&s, "a", 16, 1500);
    note(&s, "a", 16, 10);
    note(&s, "a", 0, 1e9);
    note(&s, "a", 16, -1);
    ck_assert_int_eq(group_sizes_next(&s, "a"), 32);
    JSON_AUTO list = group_sizes_json(&s);
    ck_assert_uint_eq(json_array_size(list), 1);
    json_t *first = json_array_get(list, 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "shape")), "a");
    ck_assert_int_eq(json_integer_value(json_object_get(first, "members")), 32);
    group_sizes_done(&s);
}
END_TEST

START_TEST(the_shape_not_seen_for_longest_makes_room)
{
    struct group_sizes s = {0};
    char shape[16];
    for (int i = 0; i < GROUP_SIZE_SHAPES; i++) {
        snprintf(shape, sizeof shape, "s%d", i);
        note(&s, shape, 8, 1000);
    }
    note(&s, "s0", 16, 2000); /* seen again */
    note(&s, "new", 8, 1000);
    ck_assert_uint_eq(s.n, GROUP_SIZE_SHAPES);
    ck_assert_int_eq(group_sizes_next(&s, "new"), 16);
    ck_assert_int_eq(group_sizes_next(&s, "s0"), 32);
    ck_assert_int_eq(group_sizes_next(&s, "s1"), GROUP_SIZE_FIRST); /* forgotten */
    ck_assert_int_eq(group_sizes_next(&s, "s2"), 16);
    group_sizes_done(&s);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("group_size");
    TCase *t = tcase_create("group_size");
    tcase_add_test(t, doubles_while_it_pays);
    tcase_add_test(t, a_bound_holds);
    tcase_add_test(t, worse_figures_and_nonsense_change_nothing);
    tcase_add_test(t, the_shape_not_seen_for_longest_makes_room);
    suite_add_tcase(s, t);
    return s;
}
