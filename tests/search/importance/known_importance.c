/* Functions with known Sobol indices, and trials of them.
 *
 * The comments derive the indices of the mixed and the conditional function by hand. Trials are
 * Sobol points, or mostly moves of the best point, as after a search: an estimate must hold for
 * both. */
#include "tests/search/importance/known_importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/yaml_reader.h"
#include "search/space/encoding.h"
#include "search/sampling/sobol.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define PI 3.14159265358979323846
#define FLOAT "{type: float, min: 0, max: 1}"
#define LOG "{type: float, min: 1e-4, max: 1, scale: log}"

static double ishigami(const double *u, const bool *active)
{
    (void)active;
    double a = PI * (2 * u[0] - 1), b = PI * (2 * u[1] - 1), c = PI * (2 * u[2] - 1);
    return sin(a) + 7 * sin(b) * sin(b) + 0.1 * c * c * c * c * sin(a);
}

/* Sobol's g with a = 0, 1, 4.5, 9, 99, 99. */
static double g_function(const double *u, const bool *active)
{
    (void)active;
    const double a[] = {0, 1, 4.5, 9, 99, 99};
    double product = 1;
    for (size_t k = 0; k < 6; k++)
        product *= (fabs(4 * u[k] - 2) + a[k]) / (1 + a[k]);
    return product;
}

static double linear(const double *u, const bool *active)
{
    (void)active;
    return -40 + 3 * u[0] + 2 * u[1] + u[2] - 0.5 * u[3];
}

/* c in {0, 1, 2}, x, k in {0, 1/3, 2/3, 1}: c + [c = 2] 3 (x - 1/2) + 3 k / 2. Var c = 2/3. The
 * middle term has mean 0 given c, variance 1/4; its mean given x is x - 1/2, of variance 1/12. The
 * last has 5/16. In all 59/48. */
static double mixed(const double *u, const bool *active)
{
    (void)active;
    return u[0] + (u[0] == 2 ? 3 * (u[1] - 0.5) : 0) + 1.5 * u[2];
}

/* 2 u + [sgd] (1/2 + 3/2 m). Given sgd: 1/3 + 3/16. The bracket is 0 or 5/4 on average: variance
 * 25/64 between, 7/4 / 2 - 25/64 = 31/64 in all; given m, E (1/2 + 3/2 m)^2 / 4 = 7/16. */
static double conditional(const double *u, const bool *active)
{
    ck_assert(active[2] == (u[1] == 0));
    return 2 * u[0] + (u[1] == 0 ? 0.5 + 1.5 * u[2] : 0);
}

static double two_of_four(const double *u, const bool *active)
{
    (void)active;
    return 3 * u[0] + 2 * u[1];
}

/* On x + y <= 1: see test_sensitivity.c. */
static double first_place(const double *u, const bool *active)
{
    (void)active;
    return u[0];
}

const struct known_problem known_problems[] = {
    {.name = "ishigami",
     .space = "{a: " FLOAT ", b: " FLOAT ", c: " FLOAT "}",
     .f = ishigami,
     .d = 3,
     .first = {0.3139, 0.4424, 0},
     .total = {0.5576, 0.4424, 0.2437}},
    {.name = "g",
     .space =
         "{a: " FLOAT ", b: " FLOAT ", c: " FLOAT ", d: " FLOAT ", e: " FLOAT ", f: " FLOAT "}",
     .f = g_function,
     .d = 6,
     .first = {0.71634, 0.17909, 0.02368, 0.00716, 0.00007, 0.00007},
     .total = {0.78726, 0.24223, 0.03432, 0.01046, 0.00010, 0.00010}},
    {.name = "linear",
     .space = "{a: " FLOAT ", b: " LOG ", c: " FLOAT ", d: " FLOAT ", e: " FLOAT
              ", k: {type: constant, value: 3}}",
     .f = linear,
     .d = 5,
     .first = {9 / 14.25, 4 / 14.25, 1 / 14.25, 0.25 / 14.25, 0},
     .total = {9 / 14.25, 4 / 14.25, 1 / 14.25, 0.25 / 14.25, 0}},
    {.name = "mixed",
     .space = "{c: {type: categorical, values: [r, s, t]}, x: " FLOAT
              ", k: {type: int, min: 1, max: 4}}",
     .f = mixed,
     .d = 3,
     .first = {32.0 / 59, 4.0 / 59, 15.0 / 59},
     .total = {40.0 / 59, 12.0 / 59, 15.0 / 59}},
    {.name = "conditional",
     .space = "{lr: " LOG ", opt: {type: categorical, values: [sgd, adamw]}, m: {type: float, min: "
              "0, max: 0.9, when: {opt: sgd}}}",
     .f = conditional,
     .d = 3,
     .first = {64.0 / 157, 75.0 / 157, 9.0 / 25},
     .total = {64.0 / 157, 84.0 / 157, 9.0 / 25}},
    {.name = "noisy",
     .space = "{a: " FLOAT ", b: " FLOAT ", c: " FLOAT ", d: " FLOAT "}",
     .f = two_of_four,
     .noise = 0.5,
     .d = 4,
     .first = {9 / 13.0, 4 / 13.0, 0, 0},
     .total = {9 / 13.0, 4 / 13.0, 0, 0}},
    {.name = "triangle",
     .space = "{x: " FLOAT ", y: " FLOAT ", z: " FLOAT "}",
     .rules = "[x + y <= 1]",
     .f = first_place,
     .d = 3,
     .first = {1, 0.25, 0},
     .total = {0.75, 0, 0}},
};
const size_t n_known_problems = AS_ARRAY_LEN(known_problems);

static struct space *space_of(const struct known_problem *p)
{
    struct space *s = NULL;
    struct as_err err;
    ck_ok(space_from_yaml(p->space, &s, &err), err);
    if (p->rules) {
        JSON_AUTO list = NULL;
        ck_ok(yaml_parse(p->rules, strlen(p->rules), &list, &err), err);
        ck_ok(space_parse_constraints(s, list, "/parameter_constraints", &err), err);
    }
    return s;
}

/* Move from the best point: half of the places a little, choices sometimes. */
static void move(const struct encoding *e, const double *best, struct rng *r, double *point)
{
    for (size_t k = 0; k < e->n; k++) {
        point[k] = best[k];
        if (rng_below(r, 2))
            continue;
        if (e->params[k].kind == ENCODED_CHOICE)
            point[k] = rng_below(r, 4) ? best[k] : (double)rng_below(r, e->params[k].levels);
        else
            point[k] = fmin(fmax(best[k] + 0.1 * rng_normal(r), 0), 1);
    }
    encoding_snap(e, point);
}

void known_trials_make(const struct known_problem *p, size_t n, bool clustered, uint64_t seed,
                       struct known_trials *ret)
{
    struct as_err err;
    struct rng r;
    struct encoding *e = NULL;
    double point[16], best[16], lowest = INFINITY;
    bool active[16];
    rng_init(&r, seed, 1);
    *ret = (struct known_trials){.space = space_of(p)};
    ck_ok(encoding_create(ret->space, &e, &err), err);
    ret->spec = (struct search_spec){.space = ret->space, .seed = seed, .n_objectives = 1};
    ret->trials = calloc(n + 1, sizeof *ret->trials);
    ck_assert_ptr_nonnull(ret->trials);
    struct config *scratch = config_create(ret->space);
    size_t made = 0, n_sobol = clustered ? n / 5 : n;
    for (size_t i = 0; made < n; i++) {
        if (made < n_sobol) {
            for (size_t k = 0; k < e->n; k++)
                point[k] = sobol_point(seed, i, (unsigned)k);
            encoding_from_unit(e, point, point);
        } else {
            move(e, best, &r, point);
        }
        if (!encoding_allows(e, point, scratch))
            continue;
        struct config *c = config_create(ret->space);
        encoding_to_config(e, point, c);
        encoding_active(e, point, active);
        double value = p->f(point, active);
        value += p->noise > 0 ? p->noise * rng_normal(&r) : 0;
        ret->trials[made] = (struct observation){.number = made,
                                                 .config = c,
                                                 .state = OBSERVED_COMPLETED,
                                                 .is_suggested = true,
                                                 .values = {value}};
        if (value < lowest) {
            lowest = value;
            memcpy(best, point, e->n * sizeof *best);
        }
        made++;
    }
    ret->history = (struct history){ret->trials, n};
    config_free(scratch);
    encoding_free(e);
}

void known_trials_done(struct known_trials *t)
{
    for (size_t i = 0; i < t->history.n; i++)
        config_free((struct config *)t->trials[i].config);
    free(t->trials);
    space_free(t->space);
}
