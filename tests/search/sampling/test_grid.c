/* Grids.
 *
 * The oracle enumerates every combination, settles its conditions and removes repetitions; the grid
 * must give exactly these cells, in the order of grid.h. Large spaces check that counting ends in
 * time and that the limits are reported. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/sampling/grid.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static struct grid *grid_of(const struct space *s)
{
    struct grid *g = NULL;
    struct as_err err = {0};
    ck_ok(grid_create(s, "/parameters", &g, &err), err);
    return g;
}

static char *cell_text(const struct space *s, const struct grid *g, uint64_t index)
{
    struct as_err err = {0};
    AS_AUTO(config_freep) struct config *c = NULL;
    ck_ok(grid_cell(g, index, &c, &err), err);
    for (size_t i = 0; i < s->n; i++) {
        ck_assert_int_eq(c->entries[i].active, config_wants(s, c, i));
        ck_assert(!c->entries[i].active || param_contains(&s->params[i], c->entries[i].value));
    }
    uint64_t back = UINT64_MAX;
    ck_ok(grid_index(g, c, &back, &err), err);
    ck_assert_uint_eq(back, index);
    JSON_AUTO j = config_to_json(s, c);
    return json_format(j);
}

START_TEST(first_parameter_changes_slowest)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("b: {type: categorical, values: [x, y]}\n"
                                    "a: {type: int, min: 1, max: 3}\n");
    AS_AUTO(grid_freep) struct grid *g = grid_of(s);
    const char *want[] = {"{\"a\":1,\"b\":\"x\"}", "{\"a\":2,\"b\":\"x\"}",
                          "{\"a\":3,\"b\":\"x\"}", "{\"a\":1,\"b\":\"y\"}",
                          "{\"a\":2,\"b\":\"y\"}", "{\"a\":3,\"b\":\"y\"}"};
    ck_assert_uint_eq(grid_cells(g), 6);
    for (size_t i = 0; i < 6; i++) {
        AS_AUTO(as_freep) char *text = cell_text(s, g, i);
        ck_assert_str_eq(text, want[i]);
    }
    struct config *c = NULL;
    struct as_err err = {0};
    ck_fails(grid_cell(g, 6, &c, &err), AS_E_EXHAUSTED, err, "6 cells");
}
END_TEST

START_TEST(a_child_multiplies_only_where_it_is_active)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml(
        "opt: {type: categorical, values: [sgd, adamw, lion]}\n"
        "momentum: {type: float, min: 0, max: 0.9, step: 0.3, when: {opt: sgd}}\n"
        "nesterov: {type: bool, when: {opt: sgd}}\n"
        "beta: {type: float, min: 0.9, max: 0.99, points: 2, when: {opt: [adamw, lion]}}\n"
        "width: {type: int, min: 8, max: 128, scale: log, points: 5}\n");
    AS_AUTO(grid_freep) struct grid *g = grid_of(s);
    ck_assert_uint_eq(grid_cells(g), (4 * 2 + 2 + 2) * 5);
    AS_AUTO(as_freep) char *first = cell_text(s, g, 0);
    ck_assert_str_eq(first, "{\"momentum\":0.0,\"nesterov\":false,\"opt\":\"sgd\",\"width\":8}");
    AS_AUTO(as_freep) char *last = cell_text(s, g, grid_cells(g) - 1);
    ck_assert_str_eq(last, "{\"beta\":0.99,\"opt\":\"lion\",\"width\":128}");
}
END_TEST

START_TEST(points_follow_the_scale)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml(
        "lr: {type: float, min: 1e-4, max: 1, scale: log, points: 5}\n"
        "n: {type: int, min: 1, max: 5, scale: log, points: 9}\n"); /* rounding leaves 1 to 5 */
    AS_AUTO(grid_freep) struct grid *g = grid_of(s);
    ck_assert_uint_eq(grid_cells(g), 25);
    const double want[] = {1e-4, 1e-3, 1e-2, 0.1, 1};
    struct as_err err = {0};
    for (uint64_t i = 0; i < 25; i++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(grid_cell(g, i, &c, &err), err);
        ck_assert(c->entries[0].value.real == want[i / 5]);
        ck_assert_int_eq(c->entries[1].value.integer, (int64_t)(i % 5) + 1);
    }
}
END_TEST

START_TEST(float_of_one_value)
{
    struct as_err err = {0};
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 2.5, max: 2.5}\nk: {type: int, min: 1, max: 3}");
    AS_AUTO(grid_freep) struct grid *g = NULL;
    ck_ok(grid_create(s, "/parameters", &g, &err), err);
    ck_assert_uint_eq(grid_cells(g), 3);
    for (uint64_t i = 0; i < 3; i++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        uint64_t cell = 9;
        ck_ok(grid_cell(g, i, &c, &err), err);
        ck_assert(c->entries[0].value.real == 2.5);
        ck_ok(grid_index(g, c, &cell, &err), err);
        ck_assert_uint_eq(cell, i);
    }
}
END_TEST

START_TEST(refuses)
{
    struct grid *g = NULL;
    struct as_err err = {0};
    AS_AUTO(space_freep) struct space *open = space_of_yaml("lr: {type: float, min: 0, max: 1}");
    ck_fails(grid_create(open, "/parameters", &g, &err), AS_E_INVAL, err,
             "grid search needs 'step' or 'points' on float parameter lr");
    ck_assert_str_eq(err.pointer, "/parameters/lr");
    AS_AUTO(space_freep)
    struct space *large =
        space_of_yaml("a: {type: int, min: 1, max: 1000}\nb: {type: int, min: 1, max: 1001}");
    ck_fails(grid_create(large, "/parameters", &g, &err), AS_E_TOO_LARGE, err,
             "the grid has 1001000 cells, at most 1000000");
    AS_AUTO(space_freep)
    struct space *huge = space_of_yaml("a: {type: int, min: 0, max: 9223372036854775807}\n"
                                       "b: {type: int, min: 0, max: 9223372036854775807}");
    ck_fails(grid_create(huge, "/parameters", &g, &err), AS_E_TOO_LARGE, err, "8.51e+37 cells");
    AS_AUTO(space_freep)
    struct space *full =
        space_of_yaml("a: {type: int, min: 1, max: 1000}\nb: {type: int, min: 1, max: 1000}");
    AS_AUTO(grid_freep) struct grid *ok = grid_of(full);
    ck_assert_uint_eq(grid_cells(ok), 1000000);
}
END_TEST

/* A block whose number of branches exceeds the limit: one parameter depends on 40 switches. */
START_TEST(entangled_conditions_end_in_time)
{
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "s0: {type: bool}\n");
    for (int i = 1; i < 40; i++)
        str_printf(&b, "s%d: {type: bool, when: {s0: true}}\n", i);
    str_puts(&b,
             "x: {type: bool, when: {s1: true, s2: true, s3: true, s4: true, s5: true, s6: true, "
             "s7: true, s8: true, s9: true, s10: true, s11: true, s12: true}}\n"
             "y: {type: bool, when: {s13: true, s14: true, s15: true, s16: true, s17: true, s18: "
             "true, s19: true, s20: true, s21: true, s22: true}}\n");
    AS_AUTO(space_freep) struct space *s = space_of_yaml(str_cstr(&b));
    struct grid *g = NULL;
    struct as_err err = {0};
    ck_fails(grid_create(s, "/parameters", &g, &err), AS_E_TOO_LARGE, err, "at least");
}
END_TEST

/* Brute force: every combination of all axes, settled, without repetitions. */
struct texts {
    char **s;
    size_t n, cap;
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void texts_done(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->s[i]);
    free(t->s);
}

static void texts_add(struct texts *t, char *text)
{
    struct as_err err = {0};
    ck_assert_ptr_nonnull(text);
    ck_ok(as_reserve_one(&t->s, t->n, &t->cap, sizeof *t->s, &err), err);
    t->s[t->n++] = text;
}

/* The values of parameter i on the grid, taken from a grid over that parameter alone. */
static size_t axis_of(const struct space *s, size_t i, union param_value *ret, size_t max)
{
    struct space_param alone = s->params[i];
    size_t order = 0, n = 0;
    alone.n_conds = 0; /* the parameters around it are not there */
    struct space one = {.params = &alone, .n = 1, .order = &order};
    AS_AUTO(grid_freep) struct grid *g = grid_of(&one);
    for (; n < grid_cells(g); n++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        struct as_err err = {0};
        ck_assert_uint_lt(n, max);
        ck_ok(grid_cell(g, n, &c, &err), err);
        ret[n] = c->entries[0].value;
    }
    return n;
}

static void brute_force(const struct space *s, size_t i, struct config *raw, struct texts *t)
{
    if (i < s->n) {
        union param_value axis[64];
        size_t n = axis_of(s, i, axis, AS_ARRAY_LEN(axis));
        for (size_t k = 0; k < n; k++) {
            raw->entries[i].value = axis[k];
            brute_force(s, i + 1, raw, t);
        }
        return;
    }
    AS_AUTO(config_freep) struct config *c = config_copy(raw);
    config_settle(s, c);
    if (!space_allows(s, c))
        return;
    JSON_AUTO j = config_to_json(s, c);
    texts_add(t, json_format(j));
}

static size_t unique(struct texts *t)
{
    qsort(t->s, t->n, sizeof *t->s, compare_texts);
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += i == 0 || strcmp(t->s[i], t->s[i - 1]) != 0;
    return n;
}

/* The cells are exactly what brute force finds, each once. */
static void check_against_brute_force(const struct space *s)
{
    struct as_err err = {0};
    AS_AUTO(grid_freep) struct grid *g = NULL;
    AS_AUTO(texts_done) struct texts all = {0};
    AS_AUTO(texts_done) struct texts cells = {0};
    AS_AUTO(config_freep) struct config *raw = config_create(s);
    brute_force(s, 0, raw, &all);
    as_status st = grid_create(s, "/parameters", &g, &err);
    if (all.n == 0) {
        ck_fails(st, AS_E_UNSUPPORTED, err, "no cell of the grid is allowed");
        return;
    }
    ck_ok(st, err);
    for (uint64_t i = 0; i < grid_cells(g); i++)
        texts_add(&cells, cell_text(s, g, i));
    ck_assert_uint_eq(unique(&cells), cells.n);
    ck_assert_uint_eq(unique(&all), cells.n);
    size_t k = 0;
    for (size_t i = 0; i < all.n; i++) {
        if (i && strcmp(all.s[i], all.s[i - 1]) == 0)
            continue;
        ck_assert_str_eq(all.s[i], cells.s[k]);
        k++;
    }
}

START_TEST(random_grids_hold_every_cell_once)
{
    for (uint64_t seed = 0; seed < 250; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        if (s->n <= 5) /* brute force is exponential */
            check_against_brute_force(s);
    }
}
END_TEST

START_TEST(random_constrained_grids_hold_every_allowed_cell_once)
{
    size_t constrained = 0;
    for (uint64_t seed = 0; seed < 250; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        space_constrain_at_random(s, seed);
        if (s->n > 5 || !space_is_constrained(s))
            continue;
        constrained++;
        check_against_brute_force(s);
    }
    ck_assert_uint_gt(constrained, 50);
}
END_TEST

static void constrain(struct space *s, const char *constraint)
{
    struct as_err err = {0};
    JSON_AUTO list = json_pack("[s]", constraint);
    ck_ok(space_parse_constraints(s, list, "/parameter_constraints", &err), err);
}

START_TEST(allowed_cells_keep_their_order)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: int, min: 1, max: 3}\n"
                                    "b: {type: categorical, values: [x, y]}\n"
                                    "c: {type: int, min: 1, max: 3}\n");
    constrain(s, "a + c == 4");
    AS_AUTO(grid_freep) struct grid *g = grid_of(s);
    ck_assert_uint_eq(grid_cells(g), 6);
    /* a and c form a block at the place of a; b is free and changes fastest */
    const char *want[] = {"{\"a\":1,\"b\":\"x\",\"c\":3}", "{\"a\":1,\"b\":\"y\",\"c\":3}",
                          "{\"a\":2,\"b\":\"x\",\"c\":2}"};
    for (size_t i = 0; i < AS_ARRAY_LEN(want); i++) {
        AS_AUTO(as_freep) char *text = cell_text(s, g, i);
        ck_assert_str_eq(text, want[i]);
    }
    struct as_err err = {0};
    struct config *none = NULL;
    ck_fails(grid_cell(g, 6, &none, &err), AS_E_EXHAUSTED, err, "6 cells");
    AS_AUTO(config_freep) struct config *c = config_create(s);
    for (size_t i = 0; i < 3; i++)
        c->entries[i].value = param_level(&s->params[i], 0);
    config_settle(s, c);
    uint64_t index;
    ck_fails(grid_index(g, c, &index, &err), AS_E_NOT_FOUND, err, "not allowed");
}
END_TEST

START_TEST(a_grid_without_allowed_cells_is_refused)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: int, min: 1, max: 3}\nb: {type: bool}\n");
    constrain(s, "a > 3 and b");
    struct grid *g = NULL;
    struct as_err err = {0};
    ck_fails(grid_create(s, "/parameters", &g, &err), AS_E_UNSUPPORTED, err,
             "/parameter_constraints/0: no cell of the grid is allowed");
    ck_assert_str_eq(err.pointer, "/parameter_constraints/0");
}
END_TEST

/* Ranges on every kind of parent; for a float its values on the grid count. */
START_TEST(ranges_open_branches)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("lr: {type: float, min: 0.001, max: 1, scale: log, points: 4}\n"
                                    "warm: {type: bool, when: {lr: {min: 0.05}}}\n"
                                    "size: {type: ordinal, values: [s, m, l]}\n"
                                    "n: {type: int, min: 1, max: 9, when: {size: {max: m}}}\n"
                                    "k: {type: bool, when: {n: {min: 3, max: 4}}}\n");
    AS_AUTO(grid_freep) struct grid *g = grid_of(s);
    ck_assert_uint_eq(grid_cells(g), (2 + 2 * 2) * (1 + 2 * (7 + 2 * 2)));
    check_against_brute_force(s);
}
END_TEST

/* A million cells and one rule over all of them. */
START_TEST(large_constrained_grids_are_counted)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("a: {type: int, min: 1, max: 1000}\nb: {type: int, min: 1, max: 1000}");
    constrain(s, "a <= b");
    AS_AUTO(grid_freep) struct grid *g = grid_of(s);
    ck_assert_uint_eq(grid_cells(g), 500500);
    AS_AUTO(as_freep) char *last = cell_text(s, g, 500499);
    ck_assert_str_eq(last, "{\"a\":1000,\"b\":1000}");
    AS_AUTO(as_freep) char *some = cell_text(s, g, 1000);
    ck_assert_str_eq(some, "{\"a\":2,\"b\":2}");
}
END_TEST

START_TEST(a_full_grid_has_every_value)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: int, min: 1, max: 100, points: 3}\nb: {type: bool}");
    AS_AUTO(grid_freep) struct grid *g = NULL;
    struct as_err err = {0};
    ck_ok(grid_create_full(s, "", &g, &err), err);
    ck_assert_uint_eq(grid_cells(g), 200);
    AS_AUTO(space_freep)
    struct space *open = space_of_yaml("a: {type: float, min: 1, max: 2, points: 3}");
    struct grid *none = NULL;
    ck_fails(grid_create_full(open, "", &none, &err), AS_E_INVAL, err, "float parameter a");
}
END_TEST

START_TEST(values_off_the_grid_have_no_index)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1, points: 3}\ny: {type: bool}");
    AS_AUTO(grid_freep) struct grid *g = grid_of(s);
    AS_AUTO(config_freep) struct config *c = config_create(s);
    struct as_err err = {0};
    uint64_t index = 0;
    c->entries[0].value.real = 0.25;
    config_settle(s, c);
    ck_fails(grid_index(g, c, &index, &err), AS_E_NOT_FOUND, err, "no cell");
    c->entries[0].value.real = 0.5;
    ck_ok(grid_index(g, c, &index, &err), err);
    ck_assert_uint_eq(index, 2);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/grid");
    TCase *t = tcase_create("grid");
    tcase_add_test(t, first_parameter_changes_slowest);
    tcase_add_test(t, a_child_multiplies_only_where_it_is_active);
    tcase_add_test(t, points_follow_the_scale);
    tcase_add_test(t, float_of_one_value);
    tcase_add_test(t, refuses);
    tcase_add_test(t, entangled_conditions_end_in_time);
    tcase_add_test(t, random_grids_hold_every_cell_once);
    tcase_add_test(t, random_constrained_grids_hold_every_allowed_cell_once);
    tcase_add_test(t, allowed_cells_keep_their_order);
    tcase_add_test(t, a_grid_without_allowed_cells_is_refused);
    tcase_add_test(t, ranges_open_branches);
    tcase_add_test(t, large_constrained_grids_are_counted);
    tcase_add_test(t, a_full_grid_has_every_value);
    tcase_add_test(t, values_off_the_grid_have_no_index);
    suite_add_tcase(s, t);
    return s;
}
