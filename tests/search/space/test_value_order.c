/* Which choices have an order by value, and the places of their values in it. */
#include "search/space/value_order.h"

#include <stdlib.h>

#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const struct {
    const char *parameter;
    bool exists;
} kinds[] = {
    {"c: {type: categorical, values: [16, 64, 32]}", true},
    {"c: {type: categorical, values: [0.5, 1, -2, 1.0e+3]}", true},
    {"c: {type: categorical, values: [16, 64]}", false},
    {"c: {type: categorical, values: [16, 64, none]}", false},
    {"c: {type: categorical, values: [16, 64, null]}", false},
    {"c: {type: categorical, values: [16, 64, true]}", false},
    {"c: {type: categorical, values: ['16', '32', '64']}", false},
    {"c: {type: ordinal, values: [16, 32, 64]}", false},
    {"c: {type: int, min: 1, max: 3}", false},
    {"c: {type: bool}", false},
};

START_TEST(numbers_of_a_categorical_have_one)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(kinds[_i].parameter);
    ck_assert_int_eq(value_order_exists(&s->params[0]), kinds[_i].exists);
}
END_TEST

START_TEST(places_are_by_value_at_equal_distances)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("c: {type: categorical, values: [256, 16, 0.5, 64, -3]}");
    AS_AUTO(as_freep) double *places = NULL;
    struct as_err err;
    static const double expected[] = {1, 0.5, 0.25, 0.75, 0};
    ck_ok(value_order_places(&s->params[0], &places, &err), err);
    for (size_t k = 0; k < 5; k++)
        ck_assert(places[k] == expected[k]);
}
END_TEST

/* 2^53 and 2^53 + 1 are one double. */
START_TEST(numbers_that_a_double_does_not_tell_apart_keep_their_order)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("c: {type: categorical, values: [9007199254740993, 9007199254740992, 1]}");
    AS_AUTO(as_freep) double *places = NULL;
    struct as_err err;
    ck_ok(value_order_places(&s->params[0], &places, &err), err);
    ck_assert(places[0] == 0.5 && places[1] == 1 && places[2] == 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/value_order");
    TCase *t = tcase_create("value_order");
    tcase_add_loop_test(t, numbers_of_a_categorical_have_one, 0, AS_ARRAY_LEN(kinds));
    tcase_add_test(t, places_are_by_value_at_equal_distances);
    tcase_add_test(t, numbers_that_a_double_does_not_tell_apart_keep_their_order);
    suite_add_tcase(s, t);
    return s;
}
