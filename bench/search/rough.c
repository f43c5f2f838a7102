/* Problems with many local optima, with bent valleys, and with regions that fail behind curved
 * borders.
 *
 * Each kind is a family of instances. An instance's number keys the hash that draws its places and
 * weights. `gp` was tuned on the instances 1 and 2; the others are for reports. The functions are
 * this benchmark's own, except for Rastrigin's, Rosenbrock's and Schwefel's inside. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "bench/search/problems_priv.h"

struct rough {
    unsigned instance;
    unsigned n; /* parameters that the region is defined by */
};

static const struct rough *rough_of(const struct problem *p)
{
    return p->def->arg;
}

static double draw(const struct problem *p, unsigned a, unsigned b)
{
    return problem_draw(rough_of(p)->instance, a, b);
}

/* ---- waves: Rastrigin's function of five ints and five reals; two ints have long waves ---- */

/* i1, i2: 0..60 in steps of 0.15; i3..i5: 0..10 in steps of 1. */
static double waves_best(const struct problem *p, unsigned i)
{
    if (i < 2)
        return 5 + floor(50 * draw(p, 1, i));
    return i < 5 ? 1 + floor(9 * draw(p, 1, i)) : -2.5 + 5 * draw(p, 1, i);
}

static double waves(const struct problem *p, const double *x)
{
    double f = 0;
    for (unsigned i = 0; i < 10; i++) {
        double z = (i < 2 ? 0.15 : 1) * (x[i] - waves_best(p, i));
        f += z * z + 5 * (1 - cos(2 * M_PI * z));
    }
    return f;
}

static void best_waves(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 10; i++)
        x[i] = waves_best(p, i);
}

/* ---- valley: Rosenbrock's function in two dimensions, moved ---- */

/* Parameters in [0,1], which stand for a box of `size` around a place near the optimum. */
static void valley_box(const struct problem *p, double *low, double *size)
{
    for (unsigned i = 0; i < 2; i++) {
        size[i] = 3 + 9 * draw(p, 10, i);
        low[i] = 1 - size[i] * (0.15 + 0.7 * draw(p, 11, i));
    }
}

static double valley(const struct problem *p, const double *x)
{
    double low[2], size[2];
    valley_box(p, low, size);
    double a = low[0] + size[0] * x[0], b = low[1] + size[1] * x[1];
    return 100 * square(b - a * a) + square(a - 1);
}

static void best_valley(const struct problem *p, double *x)
{
    double low[2], size[2];
    valley_box(p, low, size);
    for (unsigned i = 0; i < 2; i++)
        x[i] = (1 - low[i]) / size[i];
}

/* ---- schwefel: the best place is near a bound, far from the second best ---- */

#define SCHWEFEL_AT 420.96874635998
#define SCHWEFEL_LOW 418.98288727243373

/* Each axis is mirrored or not, and reaches to 450 or 500 on the side of the optimum. */
static double schwefel_place(const struct problem *p, unsigned i, double u)
{
    double high = 450 + 50 * draw(p, 20, i), low = -500 + 150 * draw(p, 21, i);
    return low + (high - low) * (draw(p, 22, i) < 0.5 ? u : 1 - u);
}

static double deceptive(const struct problem *p, const double *x)
{
    double f = 0;
    for (unsigned i = 0; i < p->space->n; i++) {
        double z = schwefel_place(p, i, x[i]);
        f += SCHWEFEL_LOW - z * sin(sqrt(fabs(z)));
    }
    return f;
}

static void best_deceptive(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < p->space->n; i++) {
        double from = schwefel_place(p, i, 0), to = schwefel_place(p, i, 1);
        x[i] = (SCHWEFEL_AT - from) / (to - from);
    }
}

/* ---- regions that fail ---- */

/* What the parameters outside of the region's n add; the last one is a category of three values if
 * there are more than n. */
static double others(const struct problem *p, const double *x)
{
    unsigned n = rough_of(p)->n, d = (unsigned)p->space->n;
    double f = 0;
    for (unsigned i = n; i + 1 < d; i++)
        f += 0.3 * square(x[i] - draw(p, 30, i));
    if (d > n)
        f += (unsigned)x[d - 1] == (unsigned)(3 * draw(p, 31, 0))
                 ? 0
                 : 0.05 + 0.1 * draw(p, 32, (unsigned)x[d - 1]);
    return f;
}

static void best_others(const struct problem *p, double *x)
{
    unsigned n = rough_of(p)->n, d = (unsigned)p->space->n;
    for (unsigned i = n; i + 1 < d; i++)
        x[i] = draw(p, 30, i);
    if (d > n)
        x[d - 1] = floor(3 * draw(p, 31, 0));
}

/* A ball fails; the values fall towards a place inside of it, so that the best are on its
 * border. */
static double ball_axis(const struct problem *p, unsigned i, double *ret_centre)
{
    *ret_centre = 0.4 + 0.2 * draw(p, 40, i);
    return (draw(p, 41, i) < 0.5 ? -1 : 1) * (0.3 + 0.7 * draw(p, 42, i));
}

/* Its radius, and the length of the direction from its centre to the lowest values. */
static double ball_radius(const struct problem *p, double *ret_length)
{
    double length = 0, centre;
    for (unsigned i = 0; i < rough_of(p)->n; i++)
        length += square(ball_axis(p, i, &centre));
    *ret_length = sqrt(length);
    return 0.3 + 0.05 * draw(p, 43, 0);
}

static double ball(const struct problem *p, const double *x)
{
    double length, radius = ball_radius(p, &length), r2 = 0, off = 0;
    for (unsigned i = 0; i < rough_of(p)->n; i++) {
        double centre, way = ball_axis(p, i, &centre) / length;
        r2 += square(x[i] - centre);
        off += square(x[i] - (centre + 0.5 * radius * way));
    }
    return r2 < square(radius) ? NAN : off - square(0.5 * radius) + others(p, x);
}

static void best_ball(const struct problem *p, double *x)
{
    double length, radius = ball_radius(p, &length);
    best_others(p, x);
    for (unsigned i = 0; i < rough_of(p)->n; i++) {
        double centre, way = ball_axis(p, i, &centre) / length;
        x[i] = centre + radius * (1 + 1e-12) * way;
    }
}

/* Everything outside a ball fails; the values fall towards a place outside. */
static double disc(const struct problem *p, const double *x)
{
    double length, radius = ball_radius(p, &length) + 0.1, r2 = 0, off = 0;
    for (unsigned i = 0; i < rough_of(p)->n; i++) {
        double centre, way = ball_axis(p, i, &centre) / length;
        r2 += square(x[i] - centre);
        off += square(x[i] - (centre + 1.5 * radius * way));
    }
    return r2 > square(radius) ? NAN : off - square(0.5 * radius) + others(p, x);
}

static void best_disc(const struct problem *p, double *x)
{
    double length, radius = ball_radius(p, &length) + 0.1;
    best_others(p, x);
    for (unsigned i = 0; i < rough_of(p)->n; i++) {
        double centre, way = ball_axis(p, i, &centre) / length;
        x[i] = centre + radius * (1 - 1e-12) * way;
    }
}

/* A half space across the axes fails: sum w x > limit. The values fall towards a place behind. */
static double slope_weight(const struct problem *p, unsigned i)
{
    return 0.3 + 0.7 * draw(p, 50, i);
}

static double slope_limit(const struct problem *p, double *ret_square)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < rough_of(p)->n; i++) {
        sum += slope_weight(p, i) * (0.45 + 0.2 * draw(p, 51, i));
        squares += square(slope_weight(p, i));
    }
    *ret_square = squares;
    return sum;
}

static double slope(const struct problem *p, const double *x)
{
    double squares, limit = slope_limit(p, &squares), sum = 0, off = 0;
    for (unsigned i = 0; i < rough_of(p)->n; i++) {
        double w = slope_weight(p, i), best = 0.45 + 0.2 * draw(p, 51, i);
        sum += w * x[i];
        off += square(x[i] - (best + 0.2 * w / sqrt(squares)));
    }
    return sum > limit ? NAN : off - square(0.2) + others(p, x);
}

static void best_slope(const struct problem *p, double *x)
{
    best_others(p, x);
    for (unsigned i = 0; i < rough_of(p)->n; i++)
        x[i] = (0.45 + 0.2 * draw(p, 51, i)) * (1 - 1e-12);
}

/* The banana: a band around a parabola fails, and the values fall towards the parabola. */
static double banana_middle(const struct problem *p, double x)
{
    double bend = 1 + draw(p, 60, 0), at = 0.3 + 0.4 * draw(p, 60, 1);
    return 0.25 + 0.1 * draw(p, 60, 2) + bend * square(x - at);
}

static double banana(const struct problem *p, const double *x)
{
    const double half = 0.12;
    double off = x[1] - banana_middle(p, x[0]);
    if (fabs(off) < half)
        return NAN;
    return square(x[0] - (0.2 + 0.6 * draw(p, 61, 0))) + 2 * (square(off) - square(half)) +
           others(p, x);
}

static void best_banana(const struct problem *p, double *x)
{
    best_others(p, x);
    x[0] = 0.2 + 0.6 * draw(p, 61, 0);
    x[1] = banana_middle(p, x[0]) + 0.12 * (1 + 1e-12);
}

/* ---- chance: a fifth of the trials fail, anywhere ---- */

static double chance(const struct problem *p, const double *x)
{
    double f = 0;
    uint32_t w[4] = {rough_of(p)->instance};
    for (unsigned i = 0; i < p->space->n; i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        philox4x32(7703, bits, (uint64_t)w[0] << 32 | i, w);
        double z = 4 * (x[i] - 0.2 - 0.6 * draw(p, 70, i));
        f += z * z + 0.5 * (1 - cos(3 * z)) +
             (i ? 0.3 * z * (x[i - 1] - 0.2 - 0.6 * draw(p, 70, i - 1)) : 0);
    }
    return w[0] < 0.2 * 4294967296.0 ? NAN : f;
}

static void best_chance(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < p->space->n; i++)
        x[i] = 0.2 + 0.6 * draw(p, 70, i);
}

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define KIND "kind: {type: categorical, values: [a, b, c]}\n"
#define INT(name, max) name ": {type: int, min: 0, max: " max "}\n"
#define REAL(name) name ": {type: float, min: -5, max: 5}\n"

static const char waves_space[] = INT("i1", "60") INT("i2", "60") INT("i3", "10") INT("i4", "10")
    INT("i5", "10") REAL("x1") REAL("x2") REAL("x3") REAL("x4") REAL("x5");
static const char two_space[] = UNIT("x1") UNIT("x2");
static const char three_space[] = UNIT("x1") UNIT("x2") UNIT("x3");
static const char four_space[] = UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4");
static const char six_space[] = UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4") UNIT("x5") UNIT("x6");
static const char four_kind_space[] = UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4") KIND;
static const char six_kind_space[] =
    UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4") UNIT("x5") UNIT("x6") KIND;

#define ROW(name, space, fn, best, ...)                                                            \
    {                                                                                              \
        name, space, fn, 0, NULL, 0, &(const struct rough){__VA_ARGS__}, best                      \
    }

const struct problem_def rough_problems[] = {
    ROW("waves-1", waves_space, waves, best_waves, 1, 0),
    ROW("waves-2", waves_space, waves, best_waves, 2, 0),
    ROW("waves-3", waves_space, waves, best_waves, 3, 0),
    ROW("waves-4", waves_space, waves, best_waves, 4, 0),
    ROW("valley-1", two_space, valley, best_valley, 1, 0),
    ROW("valley-2", two_space, valley, best_valley, 2, 0),
    ROW("valley-3", two_space, valley, best_valley, 3, 0),
    ROW("valley-4", two_space, valley, best_valley, 4, 0),
    ROW("deceptive-1", two_space, deceptive, best_deceptive, 1, 0),
    ROW("deceptive-2", four_space, deceptive, best_deceptive, 2, 0),
    ROW("deceptive-3", three_space, deceptive, best_deceptive, 3, 0),
    ROW("deceptive-4", six_space, deceptive, best_deceptive, 4, 0),
    ROW("ball-1", two_space, ball, best_ball, 1, 2),
    ROW("ball-2", four_kind_space, ball, best_ball, 2, 4),
    ROW("ball-3", three_space, ball, best_ball, 3, 3),
    ROW("ball-4", six_kind_space, ball, best_ball, 4, 4),
    ROW("disc-1", three_space, disc, best_disc, 1, 3),
    ROW("disc-2", six_kind_space, disc, best_disc, 2, 4),
    ROW("disc-3", two_space, disc, best_disc, 3, 2),
    ROW("disc-4", four_kind_space, disc, best_disc, 4, 3),
    ROW("slope-1", four_space, slope, best_slope, 1, 4),
    ROW("slope-2", six_kind_space, slope, best_slope, 2, 3),
    ROW("slope-3", six_space, slope, best_slope, 3, 6),
    ROW("slope-4", four_kind_space, slope, best_slope, 4, 4),
    ROW("banana-1", two_space, banana, best_banana, 1, 2),
    ROW("banana-2", six_kind_space, banana, best_banana, 2, 2),
    ROW("banana-3", four_kind_space, banana, best_banana, 3, 2),
    ROW("banana-4", six_kind_space, banana, best_banana, 4, 2),
    ROW("chance-1", two_space, chance, best_chance, 1, 2),
    ROW("chance-2", four_space, chance, best_chance, 2, 4),
    ROW("chance-3", six_space, chance, best_chance, 3, 6),
    ROW("chance-4", three_space, chance, best_chance, 4, 3),
    {0},
};
