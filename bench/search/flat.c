/* Problems whose spaces say nothing about themselves: every parameter is always there, and the
 * search has to find out which one means something where.
 *
 * First, every problem with conditions of the families `real` and `table`, without them (a
 * parameter that does not apply is accepted and has no effect): boosting, networks, support vector
 * machines, and real runs of 15 to 20 parameters (learners.h). Then kinds of
 * this file, each a family of instances whose number keys the hash that draws their places and
 * weights:
 *   crowd    28 or 31 parameters, of which one category decides, and the best value of it looks
 *            worst until three numbers are right
 *   kernel   a table of cells as a support vector machine has it: numbers that are dead under one
 *            value of the category, which is nearly the best, and flat
 *   basins   a broad basin in a corner, and a better one two parameters away at medium range
 *   peaks    mixed integers with three peaks; the best is the narrowest
 *   absurd   a smooth function, of whose results some are beyond any credible range
 *   pinhole  a region of 1.2% of the space, outside of which trials fail
 *   niche    the same, a disc in a whole number and a real, under one value of a category
 * Of these kinds the instances 1 and 2 are for tuning, 3 and 4 for reports. A problem without its
 * conditions is for what the declared one is for. The functions are this benchmark's own. */
#include <math.h>

#include "bench/search/problems_priv.h"

/* ---- crowd ---- */

#define CROWD_VALUES 5

/* From 0, the best, to the worst. */
static unsigned crowd_role(const struct problem *p, unsigned v)
{
    return (v + instance_of(p)) % CROWD_VALUES;
}

/* Where the three numbers of a value are best: those of the best value far from the middle. */
static double crowd_place(const struct problem *p, unsigned v, unsigned i)
{
    double u = instance_draw(p, 10 + v, i);
    if (crowd_role(p, v) == 0)
        return u < 0.5 ? 0.06 + 0.16 * u : 0.78 + 0.16 * u;
    return 0.35 + 0.3 * u;
}

/* Parameters: the category, then numbers in [0, 1]. Three of them matter; which ones depends on the
 * instance. */
static unsigned crowd_number(const struct problem *p, unsigned i)
{
    unsigned n = (unsigned)p->space->n - 1;
    return 1 + ((unsigned)(instance_draw(p, 1, 0) * n) + i * (n / 3)) % n;
}

static double crowd(const struct problem *p, const double *x)
{
    static const double base[CROWD_VALUES] = {0, 0.14, 0.2, 0.24, 0.3},
                        depth[CROWD_VALUES] = {0.8, 0.3, 0.25, 0.3, 0.2};
    unsigned v = (unsigned)x[0], role = crowd_role(p, v);
    double sum = 0, rest = 0;
    for (unsigned i = 1; i < p->space->n; i++)
        rest += 0.004 * square(x[i] - 0.5);
    for (unsigned i = 0; i < 3; i++) {
        unsigned j = crowd_number(p, i);
        sum += square(x[j] - crowd_place(p, v, i));
        rest -= 0.004 * square(x[j] - 0.5);
    }
    return base[role] + depth[role] * (1 - exp(-3 * sum)) + fmax(0, rest);
}

static void best_crowd(const struct problem *p, double *x)
{
    for (unsigned i = 1; i < p->space->n; i++)
        x[i] = 0.5;
    for (unsigned v = 0; v < CROWD_VALUES; v++)
        if (crowd_role(p, v) == 0)
            x[0] = v;
    for (unsigned i = 0; i < 3; i++)
        x[crowd_number(p, i)] = crowd_place(p, (unsigned)x[0], i);
}

/* ---- kernel ---- */

/* Where a radial kernel is best: log2_cost, log2_gamma. */
static double kernel_place(const struct problem *p, unsigned i)
{
    return floor((i == 0 ? 2 : -6) + 8 * instance_draw(p, 20, i));
}

/* Parameters: kernel (linear, rbf, poly), log2_cost, log2_gamma, degree. */
static double kernel(const struct problem *p, const double *x)
{
    double cost = x[1] - kernel_place(p, 0), gamma = x[2] - kernel_place(p, 1);
    double degree = x[3] - (2 + floor(3 * instance_draw(p, 20, 2)));
    switch ((unsigned)x[0]) {
    case 0: /* flat over its best half */
        return 0.012 + 0.03 * square(fmax(0, fabs(cost) - 3) / 4);
    case 1:
        return 0.35 * (1 - exp(-(square(cost) + 2 * square(gamma)) / 18));
    default:
        return 0.03 +
               0.25 * (1 - exp(-(square(cost + 2) + square(gamma - 1) + square(degree)) / 14));
    }
}

static void best_kernel(const struct problem *p, double *x)
{
    x[0] = 1;
    x[1] = kernel_place(p, 0);
    x[2] = kernel_place(p, 1);
    x[3] = 2;
}

/* ---- basins ---- */

static double basins_place(const struct problem *p, unsigned i)
{
    return i < 2 ? 0.3 + 0.3 * instance_draw(p, 30, i) : 0.2 + 0.6 * instance_draw(p, 30, i);
}

static double basins(const struct problem *p, const double *x)
{
    double broad = 0.05, narrow = 0, rest = 0;
    for (unsigned i = 0; i < 2; i++) {
        broad += 0.25 * square(x[i] - (instance_draw(p, 31, i) < 0.5));
        narrow += 7 * square(x[i] - basins_place(p, i));
    }
    for (unsigned i = 2; i < p->space->n; i++)
        rest += 0.3 * square(x[i] - basins_place(p, i)) / (double)(p->space->n - 2);
    return fmin(broad, narrow) + rest;
}

static void best_basins(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < p->space->n; i++)
        x[i] = basins_place(p, i);
}

/* ---- peaks ---- */

/* Parameters: four whole numbers from 0 to 20, three reals in [0, 1]. */
static double peaks_place(const struct problem *p, unsigned peak, unsigned i)
{
    double u = 0.06 + fmod(0.88 * instance_draw(p, 40, i) + 0.29 * peak, 0.88);
    return i < 4 ? round(20 * u) / 20 : u;
}

static double peaks(const struct problem *p, const double *x)
{
    static const double height[3] = {1, 0.93, 0.86}, width[3] = {0.22, 0.45, 0.6};
    double best = 0;
    for (unsigned k = 0; k < 3; k++) {
        double sum = 0;
        for (unsigned i = 0; i < 7; i++)
            sum += square((i < 4 ? x[i] / 20 : x[i]) - peaks_place(p, k, i));
        best = fmax(best, height[k] * exp(-sum / (2 * square(width[k]))));
    }
    return 1 - best;
}

static void best_peaks(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 7; i++)
        x[i] = i < 4 ? round(20 * peaks_place(p, 0, i)) : peaks_place(p, 0, i);
}

/* ---- absurd ---- */

/* Parameters: a category of three values, then five reals in [0, 1]. */
static unsigned absurd_kind(const struct problem *p)
{
    return (unsigned)(3 * instance_draw(p, 60, 0));
}

static double absurd(const struct problem *p, const double *x)
{
    unsigned v = (unsigned)x[0];
    double f = v == absurd_kind(p) ? 0 : 0.1 + 0.2 * instance_draw(p, 61, v);
    for (unsigned i = 1; i < p->space->n; i++)
        f += pow(0.6, i - 1) * square(x[i] - instance_draw(p, 62, i));
    return f;
}

static double absurd_observe(const struct problem *p, const double *x, double value, uint64_t seed,
                             uint64_t trial)
{
    (void)x;
    switch (instance_of(p)) {
    case 1: /* one, early, that looks best */
        return trial == seed % 7 ? -1e300 : value;
    case 2: /* every second */
        return trial % 2 ? 1e300 : value;
    case 3: /* one in the middle, and some that look worst */
        return trial == 30 + seed % 7 ? -1e300 : trial % 11 == 5 ? 1e200 : value;
    default: /* two of three, either */
        return trial % 3 == 0 ? value : trial % 2 ? -1e250 : 1e250;
    }
}

static void best_absurd(const struct problem *p, double *x)
{
    x[0] = absurd_kind(p);
    for (unsigned i = 1; i < p->space->n; i++)
        x[i] = instance_draw(p, 62, i);
}

/* ---- pinhole ---- */

#define PINHOLE_HALF 0.1145 /* in three parameters: (2 x 0.1145)^3 = 0.012 */

static double pinhole_centre(const struct problem *p, unsigned i)
{
    return 0.15 + 0.7 * instance_draw(p, 70, i);
}

/* The best place: inside of the region, and anywhere in the parameters that have no part in it. */
static double pinhole_place(const struct problem *p, unsigned i)
{
    double u = instance_draw(p, 71, i);
    return i < 3 ? pinhole_centre(p, i) + PINHOLE_HALF * 0.8 * (2 * u - 1) : u;
}

static double pinhole(const struct problem *p, const double *x)
{
    double f = 0;
    for (unsigned i = 0; i < 3; i++)
        if (fabs(x[i] - pinhole_centre(p, i)) > PINHOLE_HALF)
            return NAN;
    for (unsigned i = 0; i < p->space->n; i++)
        f += (i < 3 ? 20 : 1) * square(x[i] - pinhole_place(p, i));
    return f;
}

static void best_pinhole(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < p->space->n; i++)
        x[i] = pinhole_place(p, i);
}

/* ---- niche ---- */

#define NICHE_RADIUS 0.107 /* under one of three values: pi 0.107^2 / 3 = 0.012 */

static unsigned niche_kind(const struct problem *p)
{
    return (unsigned)(3 * instance_draw(p, 80, 0));
}

static double niche_centre(const struct problem *p, unsigned i)
{
    return 0.15 + 0.7 * instance_draw(p, 81, i);
}

/* The best place: half a radius from the centre of the disc, which a whole number can only be near
 * to, and anywhere in the parameters that have no part in it. */
static double niche_place(const struct problem *p, unsigned i)
{
    if (i >= 2)
        return instance_draw(p, 82, i);
    double u = niche_centre(p, i) + (i == 0 ? 0.5 : -0.5) * NICHE_RADIUS;
    return i == 0 ? round(30 * u) / 30 : u;
}

/* Parameters: the category, a whole number from 0 to 30, three reals in [0, 1]. */
static double niche(const struct problem *p, const double *x)
{
    double away = 0, f = 0;
    for (unsigned i = 0; i < 4; i++) {
        double u = i == 0 ? x[1] / 30 : x[1 + i];
        away += i < 2 ? square(u - niche_centre(p, i)) : 0;
        f += (i < 2 ? 20 : 1) * square(u - niche_place(p, i));
    }
    return (unsigned)x[0] != niche_kind(p) || away > square(NICHE_RADIUS) ? NAN : f;
}

static void best_niche(const struct problem *p, double *x)
{
    x[0] = niche_kind(p);
    for (unsigned i = 0; i < 4; i++)
        x[1 + i] = i == 0 ? round(30 * niche_place(p, i)) : niche_place(p, i);
}

/* ---- the list ---- */

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define COUNT(name) name ": {type: int, min: 0, max: 20}\n"
#define NINE(letter)                                                                               \
    UNIT(letter "1")                                                                               \
    UNIT(letter "2")                                                                               \
    UNIT(letter "3")                                                                               \
    UNIT(letter "4")                                                                               \
    UNIT(letter "5") UNIT(letter "6") UNIT(letter "7") UNIT(letter "8") UNIT(letter "9")
#define CATEGORY "kind: {type: categorical, values: [a, b, c, d, e]}\n"
#define FIVE UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4") UNIT("x5")

static const char crowd28[] = CATEGORY NINE("f") NINE("g") NINE("h");
static const char crowd31[] =
    CATEGORY NINE("f") NINE("g") NINE("h") UNIT("j1") UNIT("j2") UNIT("j3");
static const char kernels[] = "kernel: {type: categorical, values: [linear, rbf, poly]}\n"
                              "log2_cost: {type: int, min: -4, max: 12}\n"
                              "log2_gamma: {type: int, min: -8, max: 5}\n"
                              "degree: {type: int, min: 2, max: 4}\n";
static const char six[] = FIVE UNIT("x6");
static const char seven[] = FIVE UNIT("x6") UNIT("x7");
static const char counts[] =
    COUNT("i1") COUNT("i2") COUNT("i3") COUNT("i4") UNIT("x1") UNIT("x2") UNIT("x3");
static const char kind_and_count[] =
    "kind: {type: categorical, values: [a, b, c]}\n"
    "count: {type: int, min: 0, max: 30}\n" UNIT("x1") UNIT("x2") UNIT("x3");
static const char three_kinds[] = "kind: {type: categorical, values: [a, b, c]}\n" FIVE;

#define FLAT(of)                                                                                   \
    {                                                                                              \
        .name = "flat-" of, .flat_of = of                                                          \
    }

const struct problem_def flat_problems[] = {
    /* tuned on */
    FLAT("methods-1"),
    FLAT("methods-2"),
    FLAT("switches-1"),
    FLAT("switches-2"),
    FLAT("network-1"),
    FLAT("network-2"),
    FLAT("xgboost-3"),
    FLAT("xgboost-11"),
    FLAT("xgboost-1464"),
    FLAT("xgboost-18"),
    FLAT("learners-adult"),
    FLAT("learners-letter"),
    FLAT("optimisers-letter"),
    FLAT("optimisers-adult"),
    FLAT("pipelines-adult"),
    FLAT("pipelines-letter"),
    FLAT("texts-licences"),
    /* for reports */
    FLAT("methods-3"),
    FLAT("switches-3"),
    FLAT("network-3"),
    FLAT("xgboost-14"),
    FLAT("xgboost-15"),
    FLAT("xgboost-1063"),
    FLAT("xgboost-1049"),
    FLAT("xgboost-1462"),
    FLAT("svm-letter"),
    FLAT("learners-california"),
    FLAT("learners-digits"),
    FLAT("optimisers-california"),
    FLAT("pipelines-california"),
    FLAT("pipelines-digits"),
    FLAT("texts-versions"),
    /* of each kind 1 and 2 tuned on, 3 and 4 for reports */
    INSTANCE_ROW(crowd, 1, crowd28),
    INSTANCE_ROW(crowd, 2, crowd31),
    INSTANCE_ROW(crowd, 3, crowd28),
    INSTANCE_ROW(crowd, 4, crowd31),
    INSTANCE_ROWS(kernel, kernels),
    INSTANCE_ROWS(basins, seven),
    INSTANCE_ROWS(peaks, counts),
    INSTANCE_ROWS(absurd, three_kinds, .fn_observe = absurd_observe),
    INSTANCE_ROWS(pinhole, six),
    INSTANCE_ROWS(niche, kind_and_count),
    {0},
};
