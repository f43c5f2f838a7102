/* Problems whose spaces say nothing about themselves (flat.c), as strangers might write them:
 *   angles   three angles whose ends are one place, where the best is, and two numbers
 *   flags    twenty switches in groups that want to change together, and two numbers
 *   sizes    numbers and sizes given as choices without an order, which have one
 *   labels   numbers given as choices that are labels, so that their order means nothing
 *   ridge    a plateau, and in it a narrow curved valley that falls along its length
 *   wide     ranges of ten decades and more, of which one or two are any good
 *   rows     the share of fifty rows that are wrong, each by a margin of its own
 * Instances 1 and 2 are for tuning, 3 and 4 for reports. The functions are this benchmark's own. */
#include <math.h>

#include "bench/search/problems_priv.h"

/* Between two ends. */
static double between(const struct problem *p, unsigned a, unsigned b, double low, double high)
{
    return low + (high - low) * instance_draw(p, a, b);
}

/* ---- angles ---- */

#define DEGREES 57.29577951308232

/* Within 25 degrees of the place where 0 and 360 meet. */
static double angles_place(const struct problem *p, unsigned i)
{
    double at = between(p, 200, i, -25, 25);
    return i >= 3 ? between(p, 200, i, 0.1, 0.9) : at < 0 ? at + 360 : at;
}

/* Parameters: three angles in [0, 360], two numbers in [0, 1]. */
static double angles(const struct problem *p, const double *x)
{
    double sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        double apart = (x[i] - angles_place(p, i)) / DEGREES;
        sum += 0.15 * (1 - cos(apart)) + 0.05 * (1 - cos(2 * apart));
    }
    for (unsigned i = 3; i < 5; i++)
        sum += 0.4 *
               square(x[i] - angles_place(p, i) - 0.1 * sin((x[0] - angles_place(p, 0)) / DEGREES));
    return sum;
}

static void best_angles(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 5; i++)
        x[i] = angles_place(p, i);
}

/* ---- flags ---- */

#define FLAGS 20
#define FLAGS_GROUP 4 /* switches that want to change together */

static bool flags_place(const struct problem *p, unsigned i)
{
    return instance_draw(p, 210, i) < 0.5;
}

/* Parameters: twenty switches, two numbers in [0, 1]. A switch costs where it is wrong, and where
 * only one of two of its group is. */
static double flags(const struct problem *p, const double *x)
{
    bool wrong[FLAGS];
    double sum = 0;
    for (unsigned i = 0; i < FLAGS; i++) {
        wrong[i] = (x[i] > 0) != flags_place(p, i);
        sum += wrong[i] ? 0.02 * square(square(instance_draw(p, 211, i))) + 0.004 : 0;
        for (unsigned j = i - i % FLAGS_GROUP; j < i; j++)
            sum += wrong[i] != wrong[j] ? 0.012 * instance_draw(p, 212, i * FLAGS + j) : 0;
    }
    for (unsigned i = 0; i < 2; i++)
        sum += 0.2 * square(x[FLAGS + i] - between(p, 213 + wrong[i], i, 0.1, 0.9));
    return sum;
}

static void best_flags(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < FLAGS; i++)
        x[i] = flags_place(p, i);
    for (unsigned i = 0; i < 2; i++)
        x[FLAGS + i] = between(p, 213, i, 0.1, 0.9);
}

/* ---- sizes ---- */

static const unsigned sizes_counts[] = {8, 5, 7, 9, 6};

static unsigned sizes_place(const struct problem *p, unsigned i)
{
    return 1 + (unsigned)(instance_draw(p, 220, i) * (sizes_counts[i] - 2));
}

/* Parameters: width, depth, batch, rate, dropout, as choices; optimizer, which has no order. A
 * larger network wants a lower rate and more dropout, a larger batch a higher rate. */
static double sizes(const struct problem *p, const double *x)
{
    double off[5], sum = 0.03 * (((unsigned)x[5] + instance_of(p)) % 3);
    for (unsigned i = 0; i < 5; i++)
        off[i] = (x[i] - sizes_place(p, i)) / sizes_counts[i];
    double size = off[0] + off[1], rate = off[3] + 0.5 * size - 0.5 * off[2];
    sum += 0.5 * square(rate) + 0.15 * square(size) + 0.05 * square(off[0]) + 0.05 * square(off[2]);
    sum += 0.15 * square(off[4] - 0.5 * size) + 0.02 * square(off[3]);
    return 0.5 * sum / (0.3 + sum);
}

static void best_sizes(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 5; i++)
        x[i] = sizes_place(p, i);
    x[5] = (3 - instance_of(p) % 3) % 3;
}

/* ---- labels ---- */

static const unsigned labels_counts[] = {8, 12};

/* The best label of each choice. */
static unsigned labels_place(const struct problem *p, unsigned i)
{
    return (unsigned)(instance_draw(p, 260, i) * labels_counts[i]);
}

/* Where a number is best, under the first choice's label. */
static double labels_number(const struct problem *p, unsigned label, unsigned i)
{
    return between(p, 261 + label % 3, i, 0.1, 0.9);
}

/* Parameters: two choices of numbers, four numbers in [0, 1]. */
static double labels(const struct problem *p, const double *x)
{
    double sum = 0;
    for (unsigned i = 0; i < 2; i++)
        sum += (unsigned)x[i] == labels_place(p, i)
                   ? 0
                   : between(p, 270 + i, (unsigned)x[i], 0.02, 0.3);
    for (unsigned i = 0; i < 4; i++)
        sum += 0.3 * square(x[2 + i] - labels_number(p, (unsigned)x[0], i));
    return sum;
}

static void best_labels(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 2; i++)
        x[i] = labels_place(p, i);
    for (unsigned i = 0; i < 4; i++)
        x[2 + i] = labels_number(p, labels_place(p, 0), i);
}

/* ---- ridge ---- */

/* Where the valley is, at t of its length. */
static double ridge_at(const struct problem *p, unsigned i, double t)
{
    return 0.5 + 0.3 * sin(between(p, 230, i, 2, 4) * t + between(p, 231, i, 0, 6));
}

static double ridge_best(const struct problem *p)
{
    return between(p, 232, 0, 0.1, 0.9);
}

/* Parameters: the length, then three numbers, all in [0, 1]; the last matters little. */
static double ridge(const struct problem *p, const double *x)
{
    double apart = square(x[1] - ridge_at(p, 1, x[0])) + square(x[2] - ridge_at(p, 2, x[0]));
    double depth = 1 - 1.2 * square(x[0] - ridge_best(p)) - 0.1 * square(x[3] - 0.3);
    return 1 - fmax(0, depth) * exp(-apart / (2 * square(0.09)));
}

static void best_ridge(const struct problem *p, double *x)
{
    x[0] = ridge_best(p);
    x[1] = ridge_at(p, 1, x[0]);
    x[2] = ridge_at(p, 2, x[0]);
    x[3] = 0.3;
}

/* ---- wide ---- */

/* Decimal logarithms: rate, decay, trees, width, margin. */
static double wide_place(const struct problem *p, unsigned i)
{
    static const double low[] = {-4, -6, 2, 1.3, -2}, high[] = {-1.5, -3, 3, 3, 1};
    double v = between(p, 240, i, low[i], high[i]);
    return i == 2 || i == 3 ? log10(round(pow(10, v))) : v;
}

/* Parameters: rate, decay and margin on logarithmic scales, trees and width from 1 to a million,
 * linear and logarithmic, and a choice. A rate that is far too high or low leaves chance. */
static double wide(const struct problem *p, const double *x)
{
    double off[5], sum = 0.06 * (((unsigned)x[5] + instance_of(p)) % 4);
    for (unsigned i = 0; i < 5; i++)
        off[i] = log10(x[i]) - wide_place(p, i);
    off[2] += 0.6 * off[0]; /* fewer trees want a higher rate */
    sum +=
        0.6 * square(off[0]) + square(off[2]) * 0.3 + 0.2 * square(off[3]) + 0.05 * square(off[4]);
    sum += 0.08 * square(fmax(0, off[1])) + 0.01 * square(fmin(0, off[1])); /* little is no harm */
    return 0.5 * sum / (1 + sum);
}

static void best_wide(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 5; i++)
        x[i] = pow(10, wide_place(p, i));
    x[2] = round(x[2]);
    x[3] = round(x[3]);
    x[5] = (4 - instance_of(p) % 4) % 4;
}

/* ---- rows ---- */

#define ROWS_WRONG 50

/* Parameters: six numbers in [0, 1], two choices of four. */
static double rows_place(const struct problem *p, unsigned i)
{
    return i < 6 ? between(p, 250, i, 0.1, 0.9) : floor(between(p, 250, i, 0, 4));
}

/* A row is wrong where its distance from the best, by its own weights, is above its margin. */
static double rows(const struct problem *p, const double *x)
{
    unsigned wrong = 0;
    for (unsigned r = 0; r < ROWS_WRONG; r++) {
        double margin = 0.1 + 1.2 * square(instance_draw(p, 251, r)), q = 0;
        for (unsigned i = 0; i < 6; i++) {
            double off = x[i] - rows_place(p, i), w = square(instance_draw(p, 252, 8 * r + i));
            q +=
                (i < 4 ? 2 : 0.4) * w * square(off) + 0.3 * off * between(p, 253, 8 * r + i, -1, 1);
        }
        for (unsigned i = 6; i < 8; i++)
            q += x[i] == rows_place(p, i)
                     ? 0
                     : between(p, 254, 40 * r + 8 * (unsigned)x[i] + i, -0.1, 0.4);
        wrong += q > margin;
    }
    return wrong / (double)ROWS_WRONG;
}

static void best_rows(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 8; i++)
        x[i] = rows_place(p, i);
}

/* ---- the list ---- */

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define ANGLE(name) name ": {type: float, min: 0, max: 360}\n"
#define FLAG(name) name ": {type: bool}\n"
#define FOUR(name) name ": {type: categorical, values: [a, b, c, d]}\n"
#define FLAG5(name) FLAG(name "1") FLAG(name "2") FLAG(name "3") FLAG(name "4") FLAG(name "5")

static const char turned[] = ANGLE("pan") ANGLE("tilt") ANGLE("roll") UNIT("gain") UNIT("bias");
static const char switched[] = FLAG5("a") FLAG5("b") FLAG5("c") FLAG5("d") UNIT("x1") UNIT("x2");
static const char sized[] =
    "width: {type: categorical, values: [8, 16, 32, 64, 128, 256, 512, 1024]}\n"
    "depth: {type: categorical, values: [tiny, small, medium, large, huge]}\n"
    "batch: {type: categorical, values: [8, 16, 32, 64, 128, 256, 512]}\n"
    "rate: {type: categorical, values: [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, "
    "0.03, 0.1]}\n"
    "dropout: {type: categorical, values: [0, 0.1, 0.2, 0.3, 0.4, 0.5]}\n"
    "optimizer: {type: categorical, values: [sgd, adam, lamb]}\n";
static const char labelled[] =
    "net: {type: categorical, values: [11, 13, 16, 18, 34, 50, 101, 152]}\n"
    "fold: {type: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}\n" UNIT("x1")
        UNIT("x2") UNIT("x3") UNIT("x4");
static const char four[] = UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4");
static const char far_too_wide[] = "rate: {type: float, min: 1.0e-10, max: 1000, scale: log}\n"
                                   "decay: {type: float, min: 1.0e-12, max: 10000, scale: log}\n"
                                   "trees: {type: int, min: 1, max: 1000000}\n"
                                   "width: {type: int, min: 1, max: 1000000, scale: log}\n"
                                   "margin: {type: float, min: 1.0e-8, max: 1.0e+8, scale: log}\n"
                                   "kind: {type: categorical, values: [a, b, c, d]}\n";
static const char eight[] =
    UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4") UNIT("x5") UNIT("x6") FOUR("c1") FOUR("c2");

const struct problem_def strange_problems[] = {
    INSTANCE_ROWS(angles, turned), INSTANCE_ROWS(flags, switched),
    INSTANCE_ROWS(sizes, sized),   INSTANCE_ROWS(labels, labelled),
    INSTANCE_ROWS(ridge, four),    INSTANCE_ROWS(wide, far_too_wide),
    INSTANCE_ROWS(rows, eight),    {0},
};
