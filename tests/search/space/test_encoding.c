/* Configurations to points to features, and back.
 *
 * The round trips must be exact, because the search finds tried configurations by comparing them.
 * Further tests check the neighbours of discrete places, the jumps of features when a parameter
 * becomes active, and the chain rule by differences. */
#include "search/space/encoding.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/sampling/sampler.h"
#include "search/sampling/sobol.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define MAX_PARAMS SPACE_MAX_PARAMS

static struct encoding *encoding_of(const struct space *s)
{
    struct encoding *e = NULL;
    struct as_err err = {0};
    ck_ok(encoding_create(s, &e, &err), err);
    return e;
}

static void random_point(const struct encoding *e, struct rng *r, double *point)
{
    for (size_t i = 0; i < e->n; i++)
        point[i] = e->params[i].kind == ENCODED_CHOICE ? (double)rng_below(r, e->params[i].levels)
                                                       : rng_uniform(r);
}

static void check_same_config(const struct space *s, const struct config *a, const struct config *b)
{
    if (config_equal(s, a, b))
        return;
    JSON_AUTO x = config_to_json(s, a);
    JSON_AUTO y = config_to_json(s, b);
    AS_AUTO(as_freep) char *ax = json_format(x);
    AS_AUTO(as_freep) char *by = json_format(y);
    ck_abort_msg("%s is not %s", ax, by);
}

/* config -> point -> config gives the same bits for configurations from the encoding and from the
 * sampler. */
static void check_round_trips(const struct space *s, uint64_t seed, int rounds)
{
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    AS_AUTO(config_freep) struct config *a = config_create(s);
    AS_AUTO(config_freep) struct config *b = config_create(s);
    double point[MAX_PARAMS], back[MAX_PARAMS], snapped[MAX_PARAMS];
    bool active[MAX_PARAMS];
    struct rng r;
    rng_init(&r, seed, 1);
    for (int k = 0; k < rounds; k++) {
        random_point(e, &r, point);
        encoding_to_config(e, point, a);
        encoding_active(e, point, active);
        for (size_t i = 0; i < s->n; i++) {
            ck_assert_int_eq(active[i], a->entries[i].active);
            ck_assert(!active[i] || param_contains(&s->params[i], a->entries[i].value));
        }
        encoding_from_config(e, a, back);
        encoding_to_config(e, back, b);
        check_same_config(s, a, b);
        memcpy(snapped, point, sizeof snapped);
        encoding_snap(e, snapped);
        encoding_to_config(e, snapped, b);
        check_same_config(s, a, b);
        ck_assert(encoding_same(e, back, snapped, 1e-9)); /* a narrow range has few doubles */
        memcpy(point, snapped, sizeof snapped);
        encoding_snap(e, snapped);
        ck_assert_mem_eq(point, snapped, e->n * sizeof *point);
    }
}

START_TEST(random_spaces_round_trip)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        check_round_trips(s, seed, 40);
    }
}
END_TEST

static const char *const domains[] = {
    "{type: float, min: 0, max: 1}",
    "{type: float, min: -3, max: 17.3}",
    "{type: float, min: 1e-300, max: 1e300, scale: log}",
    "{type: float, min: 1e-6, max: 1, scale: log}",
    "{type: float, min: 1000000, max: 1000001}",
    "{type: float, min: 1000000, max: 1000001, scale: log}",
    "{type: float, min: 1000000, max: 1000000.5}",
    "{type: float, min: 0.1, max: 0.30000000000000004}",
    "{type: float, min: -1e300, max: 1e300}",
    "{type: float, min: 2, max: 2}",
    "{type: float, min: 0, max: 1, step: 0.1}",
    "{type: float, min: 0.1, max: 7.35, step: 0.25, scale: log}",
    "{type: float, min: 1e-12, max: 1, step: 1e-12, scale: log}",
    "{type: int, min: 0, max: 1}",
    "{type: int, min: -7, max: 1000000}",
    "{type: int, min: 1, max: 1000000, scale: log}",
    "{type: int, min: 3, max: 1000000000000, scale: log}",
    "{type: int, min: 4611686018427387904, max: 4611686018427388904, scale: log}",
    "{type: int, min: -9223372036854775807, max: -9223372036854775000}",
    "{type: int, min: 8, max: 8}",
    "{type: int, min: 16, max: 512, step: 16, scale: log}",
    "{type: categorical, values: [only]}",
    "{type: categorical, values: [a, 1, true, 2.5]}",
    "{type: ordinal, values: [xs, s, m, l, xl]}",
    "{type: ordinal, values: [1, 10, 100]}",
    "{type: bool}",
    "{type: constant, value: 3}",
};

START_TEST(every_domain_round_trips)
{
    AS_AUTO(str_done) struct str yaml = {0};
    str_printf(&yaml, "p: %s\nq: {type: bool}\nc: %.*s, when: {q: true}}\n", domains[_i],
               (int)strlen(domains[_i]) - 1, domains[_i]);
    AS_AUTO(space_freep) struct space *s = space_of_yaml(str_cstr(&yaml));
    check_round_trips(s, (uint64_t)_i, 2000);
    /* both ends, exactly */
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    AS_AUTO(config_freep) struct config *c = config_create(s);
    AS_AUTO(config_freep) struct config *d = config_create(s);
    double point[3];
    for (int end = 0; end < 2; end++) {
        for (size_t i = 0; i < s->n; i++)
            c->entries[i].value = param_decode(&s->params[i], end);
        config_settle(s, c);
        encoding_from_config(e, c, point);
        encoding_to_config(e, point, d);
        check_same_config(s, c, d);
        if (e->params[0].kind == ENCODED_LEVELS || e->params[0].kind == ENCODED_CONTINUOUS)
            ck_assert(point[0] == end);
    }
}
END_TEST

/* Places near short numbers give those numbers, as people write them. */
START_TEST(round_numbers_are_round)
{
    static const struct {
        const char *range;
        double place, want;
    } rows[] = {{"min: 1e-4, max: 1, scale: log", 0.5, 0.01},
                {"min: 1e-4, max: 1, scale: log", 0.75, 0.1},
                {"min: 1e-6, max: 1, scale: log", 0.5, 0.001},
                {"min: 1e-8, max: 1e4, scale: log", 0.75, 10},
                {"min: 1e-12, max: 1e12, scale: log", 0.5, 1},
                {"min: 1e-12, max: 1e12, scale: log", 0.75, 1e6},
                {"min: 0.001, max: 0.1, scale: log", 0.5, 0.01},
                {"min: 1e-5, max: 1e-1, scale: log", 0.5, 0.001},
                {"min: -1, max: 1", 0.55, 0.1},
                {"min: 0, max: 3", 0.1, 0.3},
                {"min: 0.1, max: 0.7", 0.5, 0.4}};
    AS_AUTO(str_done) struct str yaml = {0};
    str_printf(&yaml, "p: {type: float, %s}\n", rows[_i].range);
    AS_AUTO(space_freep) struct space *s = space_of_yaml(str_cstr(&yaml));
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    AS_AUTO(config_freep) struct config *c = config_create(s);
    encoding_to_config(e, &rows[_i].place, c);
    ck_assert_msg(c->entries[0].value.real == rows[_i].want, "%.17g is not %.17g",
                  c->entries[0].value.real, rows[_i].want);
}
END_TEST

/* Every level, or a thousand of them, comes back from its place; places ascend from 0 to 1. */
START_TEST(levels_stand_in_order)
{
    AS_AUTO(str_done) struct str yaml = {0};
    str_printf(&yaml, "p: %s\n", domains[_i]);
    AS_AUTO(space_freep) struct space *s = space_of_yaml(str_cstr(&yaml));
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    const struct encoded_param *p = &e->params[0];
    if (p->kind != ENCODED_LEVELS && p->kind != ENCODED_CHOICE)
        return;
    uint64_t stride = p->levels > 1000 ? p->levels / 1000 : 1;
    double last = -1;
    for (uint64_t k = 0; k < p->levels; k += stride) {
        double u = encoding_place(e, 0, k);
        ck_assert_uint_eq(encoding_level(e, 0, u), k);
        ck_assert(u > last);
        last = u;
    }
    ck_assert(encoding_place(e, 0, 0) == 0);
    if (p->kind == ENCODED_LEVELS)
        ck_assert(encoding_place(e, 0, p->levels - 1) == 1);
    const double odd[] = {NAN, -INFINITY, INFINITY, -1, 1e300};
    for (size_t i = 0; i < AS_ARRAY_LEN(odd); i++)
        ck_assert_uint_eq(encoding_level(e, 0, odd[i]), odd[i] > 0 ? p->levels - 1 : 0);
}
END_TEST

START_TEST(log_levels_are_nearest_on_the_scale)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("n: {type: int, min: 1, max: 1024, scale: log}");
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    ck_assert_double_eq_tol(encoding_place(e, 0, 31), 0.5, 1e-15); /* 32 = 1024^0.5 */
    for (double u = 0; u <= 1; u += 1.0 / 97) {
        double near = fabs(encoding_place(e, 0, encoding_level(e, 0, u)) - u);
        for (uint64_t k = 0; k < 1024; k++)
            ck_assert(near <= fabs(encoding_place(e, 0, k) - u));
    }
}
END_TEST

START_TEST(layout)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("lr: {type: float, min: 0.001, max: 1, scale: log}\n"
                                    "k: {type: constant, value: 1}\n"
                                    "opt: {type: categorical, values: [sgd, adamw, lion]}\n"
                                    "mom: {type: float, min: 0, max: 1, when: {opt: sgd}}\n"
                                    "nest: {type: bool, when: {mom: {min: 0.5}}}\n"
                                    "size: {type: ordinal, values: [s, m, l]}\n"
                                    "one: {type: int, min: 4, max: 4}\n");
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    ck_assert_uint_eq(e->n, 7);
    ck_assert_uint_eq(e->n_real, 4);
    ck_assert_uint_eq(e->n_category, 2);
    ck_assert_uint_eq(e->n_numeric, 3);
    ck_assert_uint_eq(e->n_lengths, 5);
    ck_assert_uint_eq(e->n_continuous, 2);
    const size_t lengths[] = {0, 1, 1, 2};
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(e->real_length[i], lengths[i]);
    ck_assert_int_eq(e->params[3].real, 1);
    ck_assert_int_eq(e->params[5].real, 3);
    ck_assert_int_eq(e->params[2].length, 3);
    ck_assert_int_eq(e->params[4].length, 4);
    ck_assert_int_eq(e->params[6].kind, ENCODED_CONSTANT);
    ck_assert(e->params[3].is_conditional && e->params[3].is_parent && e->is_conditional);
    double x[4];
    int32_t z[2];
    encoding_features(e, (const double[]){0.5, 0, 0, 1.0 / 3, 1, 0.5, 0}, x, z);
    ck_assert(x[0] == 0.5);
    ck_assert_double_eq_tol(x[1], 0.5, 1e-15); /* sin 30° */
    ck_assert_double_eq_tol(x[2], sqrt(0.75), 1e-15);
    ck_assert(x[3] == 0.5);
    ck_assert(z[0] == 0 && z[1] == -1); /* mom is below 0.5 */
    encoding_features(e, (const double[]){0.5, 0, 0, 0.7, 1, 0.5, 0}, x, z);
    ck_assert(z[0] == 0 && z[1] == 1);
    encoding_features(e, (const double[]){0.5, 0, 2, 0.7, 1, 0.5, 0}, x, z);
    ck_assert(z[0] == 2 && z[1] == -1 && x[1] == 0 && x[2] == 0);
}
END_TEST

/* A choice of numbers has its place in their order beside its category. */
START_TEST(a_choice_of_numbers_has_a_column_of_its_order)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("batch: {type: categorical, values: [64, 16, 256, 1024, 4]}\n"
                      "lr: {type: float, min: 0, max: 1}\n"
                      "opt: {type: categorical, values: [sgd, adam, lion]}\n"
                      "k: {type: categorical, values: [1, 5, 3], when: {opt: sgd}}\n");
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    ck_assert_int_eq(e->params[0].kind, ENCODED_CHOICE);
    ck_assert_uint_eq(e->n_real, 4); /* batch's order, lr, two of k's order */
    ck_assert_uint_eq(e->n_category, 3);
    ck_assert_uint_eq(e->n_numeric, 1);
    ck_assert_uint_eq(e->n_varied, 4);
    ck_assert_uint_eq(e->n_groups, 3);
    ck_assert_uint_eq(e->n_lengths, 6);
    ck_assert(e->params[0].order_real == 0 && e->params[0].real == -1 && e->params[0].length == 3);
    ck_assert(e->params[1].real == 1 && e->params[1].length == 1);
    ck_assert(e->params[2].order_real == -1 && e->params[3].order_real == 2);
    double x[4], du[4];
    int32_t z[3];
    static const double places[] = {0.5, 0.25, 0.75, 1, 0};
    for (int k = 0; k < 5; k++) {
        encoding_features(e, (const double[]){k, 0.3, 0, 2}, x, z);
        ck_assert(x[0] == places[k] && x[1] == 0.3);
        ck_assert(z[0] == k && z[1] == 0 && z[2] == 2);
    }
    ck_assert_double_eq_tol(x[2], sqrt(0.5), 1e-15); /* sin 45 degrees: 3 is the middle */
    ck_assert_double_eq_tol(x[3], sqrt(0.5), 1e-15);
    encoding_features(e, (const double[]){0, 0.3, 1, 2}, x, z);
    ck_assert(x[2] == 0 && x[3] == 0 && z[2] == -1);
    encoding_pull_gradient(e, (const double[]){0, 0.3, 0, 2}, (const double[]){5, 7, 9, 11}, du);
    ck_assert(du[0] == 0 && du[1] == 7 && du[2] == 0 && du[3] == 0);
}
END_TEST

/* du against central differences of f = sum w_j x_j^2 over the features. */
START_TEST(gradients_by_finite_differences)
{
    const double h = 1e-6;
    for (uint64_t seed = 0; seed < 200; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
        double point[8], x[16], dx[16], du[8];
        int32_t z[8];
        bool active[8];
        struct rng r;
        rng_init(&r, seed, 2);
        random_point(e, &r, point);
        for (size_t i = 0; i < e->n; i++)
            if (e->params[i].kind != ENCODED_CHOICE)
                point[i] = 0.1 + 0.8 * point[i];
        encoding_active(e, point, active);
        encoding_features(e, point, x, z);
        for (size_t j = 0; j < e->n_real; j++)
            dx[j] = 2 * (double)(j + 1) * x[j];
        encoding_pull_gradient(e, point, dx, du);
        for (size_t i = 0; i < e->n; i++) {
            if (e->params[i].real < 0 || !active[i]) {
                ck_assert(du[i] == 0);
                continue;
            }
            if (e->params[i].is_parent)
                continue; /* a step may cross the end of a range, where features jump */
            double f[2];
            for (int side = 0; side < 2; side++) {
                double moved[8];
                memcpy(moved, point, sizeof moved);
                moved[i] += side ? h : -h;
                encoding_features(e, moved, x, z);
                f[side] = 0;
                for (size_t j = 0; j < e->n_real; j++)
                    f[side] += (double)(j + 1) * x[j] * x[j];
            }
            ck_assert_double_eq_tol(du[i], (f[1] - f[0]) / (2 * h), 1e-7);
        }
    }
}
END_TEST

/* A move of one active discrete parameter changes the features to those of the moved point. */
START_TEST(features_move_with_a_parameter)
{
    size_t n_moves = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
        double point[8], places[16];
        bool active[8];
        struct rng r;
        rng_init(&r, seed, 3);
        random_point(e, &r, point);
        encoding_active(e, point, active);
        for (size_t i = 0; i < e->n; i++) {
            size_t n = active[i] ? encoding_neighbours(e, i, point[i], places, 16) : 0;
            for (size_t q = 0; q < n; q++, n_moves++) {
                double moved[8], x[16] = {0}, want_x[16] = {0};
                int32_t z[8] = {0}, want_z[8] = {0};
                memcpy(moved, point, sizeof moved);
                moved[i] = places[q];
                encoding_features(e, point, x, z);
                encoding_move_feature(e, moved, i, x, z);
                encoding_features(e, moved, want_x, want_z);
                ck_assert_mem_eq(x, want_x, sizeof x);
                ck_assert_mem_eq(z, want_z, sizeof z);
            }
        }
    }
    ck_assert_uint_gt(n_moves, 200);
}
END_TEST

static void check_nearly_same_config(const struct space *s, const struct config *a,
                                     const struct config *b)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct space_param *p = &s->params[i];
        const struct config_entry *x = &a->entries[i], *y = &b->entries[i];
        ck_assert_int_eq(x->active, y->active);
        if (x->active && param_levels(p) == 0)
            ck_assert(fabs(x->value.real - y->value.real) <=
                      1e-14 * fmax(fabs(p->real.max), fabs(p->real.min)));
        else if (x->active)
            ck_assert_int_eq(param_compare(p, x->value, y->value), 0);
    }
}

/* The same unit numbers give the same configuration as the sampler. */
START_TEST(unit_numbers_are_the_samplers)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
        AS_AUTO(config_freep) struct config *a = NULL;
        AS_AUTO(config_freep) struct config *b = config_create(s);
        struct as_err err = {0};
        double u[MAX_PARAMS];
        for (uint64_t t = 0; t < 10; t++) {
            ck_ok(sampler_draw(s, SAMPLER_SOBOL, 5, t, &a, NULL, &err), err);
            for (size_t i = 0; i < s->n; i++)
                u[i] = sobol_point(5, t, (unsigned)i);
            encoding_from_unit(e, u, u);
            encoding_to_config(e, u, b);
            check_nearly_same_config(s, a, b);
            config_free(as_steal(a));
        }
    }
}
END_TEST

START_TEST(neighbours)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("n: {type: int, min: 0, max: 99}\n"
                                    "c: {type: categorical, values: [a, b, c, d]}\n"
                                    "x: {type: float, min: 0, max: 1}\n"
                                    "o: {type: ordinal, values: [a, b, c]}\n");
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    double ret[16];
    size_t n = encoding_neighbours(e, 0, encoding_place(e, 0, 5), ret, 16);
    const uint64_t want[] = {4, 6, 3, 7, 1, 9, 13, 21, 37, 69};
    ck_assert_uint_eq(n, AS_ARRAY_LEN(want));
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(encoding_level(e, 0, ret[i]), want[i]);
    ck_assert_uint_eq(encoding_neighbours(e, 0, 0.5, ret, 3), 3);
    ck_assert_uint_eq(encoding_neighbours(e, 1, 2, ret, 16), 3);
    ck_assert(ret[0] == 3 && ret[1] == 0 && ret[2] == 1);
    ck_assert_uint_eq(encoding_neighbours(e, 1, 2, ret, 2), 2);
    ck_assert_uint_eq(encoding_neighbours(e, 2, 0.5, ret, 16), 0);
    ck_assert_uint_eq(encoding_neighbours(e, 3, 0, ret, 16), 2);
    ck_assert(ret[0] == 0.5 && ret[1] == 1);
}
END_TEST

START_TEST(sameness)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("c: {type: bool}\n"
                                    "x: {type: float, min: 0, max: 1, when: {c: true}}\n"
                                    "n: {type: int, min: 0, max: 10}\n");
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    ck_assert(encoding_same(e, (double[]){0, 0.1, 0.5}, (double[]){0, 0.9, 0.52}, 0));
    ck_assert(!encoding_same(e, (double[]){1, 0.1, 0.5}, (double[]){1, 0.9, 0.5}, 0.5));
    ck_assert(encoding_same(e, (double[]){1, 0.1, 0.5}, (double[]){1, 0.1 + 1e-10, 0.5}, 1e-9));
    ck_assert(!encoding_same(e, (double[]){1, 0.1, 0.5}, (double[]){0, 0.1, 0.5}, 1));
    ck_assert(!encoding_same(e, (double[]){0, 0.1, 0.5}, (double[]){0, 0.1, 0.6}, 1));
}
END_TEST

START_TEST(asks_the_space_what_is_allowed)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("a: {type: int, min: 0, max: 10}\nb: {type: int, min: 0, max: 10}");
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    AS_AUTO(config_freep) struct config *scratch = config_create(s);
    ck_assert(encoding_allows(e, (double[]){1, 0}, scratch));
    JSON_AUTO list = json_pack("[s]", "a <= b");
    struct as_err err = {0};
    ck_ok(space_parse_constraints(s, list, "/parameter_constraints", &err), err);
    ck_assert(!encoding_allows(e, (double[]){1, 0}, scratch));
    ck_assert(encoding_allows(e, (double[]){0.4, 0.4}, scratch));
}
END_TEST

START_TEST(wide_spaces_and_long_lists)
{
    AS_AUTO(str_done) struct str yaml = {0};
    for (int i = 0; i < 200; i++)
        str_printf(&yaml, "p%d: %s\n", i, domains[(size_t)i % AS_ARRAY_LEN(domains)]);
    str_puts(&yaml, "long: {type: categorical, values: [");
    for (int i = 0; i < 1000; i++)
        str_printf(&yaml, "v%d,", i);
    str_puts(&yaml, "]}\n");
    for (int i = 0; i < 4; i++) /* a chain of four */
        str_printf(&yaml, "d%d: {type: int, min: 0, max: 3, when: {%s: {min: 0}}}\n", i,
                   i ? (const char *[]){"d0", "d1", "d2"}[i - 1] : "p0");
    AS_AUTO(space_freep) struct space *s = space_of_yaml(str_cstr(&yaml));
    check_round_trips(s, 3, 50);
    AS_AUTO(encoding_freep) struct encoding *e = encoding_of(s);
    for (uint64_t k = 0; k < 1000; k++)
        ck_assert_uint_eq(encoding_level(e, 200, encoding_place(e, 200, k)), k);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: categorical, values: [1, 2, 3]}\n"
                                    "b: {type: categorical, values: [4, 5, 6]}\n"
                                    "c: {type: int, min: 0, max: 9}\n");
    for (size_t nth = 1;; nth++) {
        AS_AUTO(encoding_freep) struct encoding *e = NULL;
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = encoding_create(s, &e, &err);
        as_mem_fail_nth(0);
        if (st == AS_OK)
            break;
        ck_assert_int_eq(st, AS_E_NOMEM);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/encoding");
    TCase *t = tcase_create("encoding");
    tcase_add_test(t, random_spaces_round_trip);
    tcase_add_loop_test(t, every_domain_round_trips, 0, AS_ARRAY_LEN(domains));
    tcase_add_loop_test(t, round_numbers_are_round, 0, 11);
    tcase_add_loop_test(t, levels_stand_in_order, 0, AS_ARRAY_LEN(domains));
    tcase_add_test(t, log_levels_are_nearest_on_the_scale);
    tcase_add_test(t, layout);
    tcase_add_test(t, a_choice_of_numbers_has_a_column_of_its_order);
    tcase_add_test(t, gradients_by_finite_differences);
    tcase_add_test(t, features_move_with_a_parameter);
    tcase_add_test(t, unit_numbers_are_the_samplers);
    tcase_add_test(t, neighbours);
    tcase_add_test(t, sameness);
    tcase_add_test(t, asks_the_space_what_is_allowed);
    tcase_add_test(t, wide_spaces_and_long_lists);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
