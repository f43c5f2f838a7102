/* More problems whose spaces say nothing about themselves (flat.c), of kinds that people bring from
 * other tools. Each is a family of instances whose number keys the hash that draws its places:
 *   scales   learning rates, decays and counts whose effect is by their logarithm, or by that of
 *            their distance from the upper end (a momentum), on linear ranges
 *   gate     numbers that mean something only above a threshold of another number, where the
 *            best is; below it is a broad basin that needs none of them
 *   twins    two choices of 24 and 9 values, most of which nearly do the same, and numbers whose
 *            best place depends on what the value does
 *   order    which of six steps comes first, second, …: six choices that should be a permutation,
 *            whose pairs have an order
 *   stairs   a metric of fifty steps that falls up to a cliff, behind which it is far worse
 * Instances 1 and 2 are for tuning, 3 and 4 for reports. The functions are this benchmark's own. */
#include <math.h>

#include "bench/search/problems_priv.h"

/* Between two ends. */
static double between(const struct problem *p, unsigned a, unsigned b, double low, double high)
{
    return low + (high - low) * instance_draw(p, a, b);
}

/* ---- scales ---- */

/* Decimal logarithms: rate, decay, one less the momentum, trees. */
static double scales_place(const struct problem *p, unsigned i)
{
    static const double low[] = {-3.3, -4.8, -2.5, 1.5}, high[] = {-2.1, -3.4, -1.2, 2.3};
    return between(p, 90, i, low[i], high[i]);
}

static double scales_linear(const struct problem *p, unsigned i)
{
    return i == 0 ? round(between(p, 91, 0, 5, 15)) : between(p, 91, 1, 0.2, 0.9);
}

/* Parameters: rate, decay, momentum, trees, depth, share. Fewer trees want a higher rate. */
static double scales(const struct problem *p, const double *x)
{
    double rate = log10(x[0] + 1e-6) - log10(pow(10, scales_place(p, 0)) + 1e-6);
    double decay = log10(x[1] + 1e-7) - log10(pow(10, scales_place(p, 1)) + 1e-7);
    double momentum = log10(1 - x[2]) - scales_place(p, 2);
    double trees = log10(x[3]) - log10(round(pow(10, scales_place(p, 3))));
    double q = 0.5 * square(rate) + square(trees + 0.6 * rate) + 0.2 * square(decay) +
               0.5 * square(momentum) + square((x[4] - scales_linear(p, 0)) / 20) +
               0.5 * square(x[5] - scales_linear(p, 1));
    return 0.5 * q / (1 + q);
}

static void best_scales(const struct problem *p, double *x)
{
    x[0] = pow(10, scales_place(p, 0));
    x[1] = pow(10, scales_place(p, 1));
    x[2] = 1 - pow(10, scales_place(p, 2));
    x[3] = round(pow(10, scales_place(p, 3)));
    x[4] = scales_linear(p, 0);
    x[5] = scales_linear(p, 1);
}

/* ---- gate ---- */

static double gate_threshold(const struct problem *p)
{
    return between(p, 100, 0, 0.62, 0.75);
}

static double gate_place(const struct problem *p, unsigned i)
{
    return i == 0 ? 0.5 * (1 + gate_threshold(p)) : between(p, 101, i, 0.1, 0.9);
}

/* Parameters: the gate, five numbers in [0, 1]. The last two always have a small effect. */
static double gate(const struct problem *p, const double *x)
{
    double sum = 0, rest = 0, low = 0.5 * gate_threshold(p);
    for (unsigned i = 1; i < 4; i++)
        sum += square(x[i] - gate_place(p, i));
    for (unsigned i = 4; i < 6; i++)
        rest += 0.05 * square(x[i] - gate_place(p, i));
    if (x[0] < gate_threshold(p))
        return 0.1 + 0.4 * square(x[0] - low) + rest;
    return 0.6 * (1 - exp(-4 * sum)) + 0.3 * square(x[0] - gate_place(p, 0)) + rest;
}

static void best_gate(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 6; i++)
        x[i] = gate_place(p, i);
}

/* ---- twins ---- */

#define TWINS_KINDS 6 /* of the first choice; its values are four of each */

/* What value v of the first choice does, from 0, the best. */
static unsigned twins_kind(const struct problem *p, unsigned v)
{
    return (v * 7 + 5 * instance_of(p)) % 24 % TWINS_KINDS;
}

static double twins_place(const struct problem *p, unsigned kind, unsigned i)
{
    return between(p, 110 + kind, i, 0.1, 0.9);
}

/* A little worse than the best of its kind; 0 for one value of each. */
static double twins_lag(const struct problem *p, unsigned v)
{
    unsigned ahead = 0;
    for (unsigned w = 0; w < v; w++)
        ahead += twins_kind(p, w) == twins_kind(p, v);
    return 0.002 * ahead;
}

/* Parameters: two choices, four numbers in [0, 1]. */
static double twins(const struct problem *p, const double *x)
{
    static const double base[TWINS_KINDS] = {0, 0.05, 0.12, 0.15, 0.25, 0.3};
    unsigned v = (unsigned)x[0], kind = twins_kind(p, v);
    double f = base[kind] + twins_lag(p, v), sum = 0;
    f += 0.06 * (((unsigned)x[1] + instance_of(p)) % 3) + 0.001 * ((unsigned)x[1] / 3);
    for (unsigned i = 0; i < 4; i++)
        sum += square(x[2 + i] - twins_place(p, kind, i));
    return f + 0.3 * (1 - exp(-2 * sum));
}

static void best_twins(const struct problem *p, double *x)
{
    unsigned v = 0;
    while (twins_kind(p, v) != 0)
        v++;
    x[0] = v;
    x[1] = (3 - instance_of(p) % 3) % 3;
    for (unsigned i = 0; i < 4; i++)
        x[2 + i] = twins_place(p, 0, i);
}

/* ---- order ---- */

#define ORDER_STEPS 6

/* The place of step k in the best order: steps sorted by a draw. */
static unsigned order_place(const struct problem *p, unsigned k)
{
    unsigned before = 0;
    for (unsigned j = 0; j < ORDER_STEPS; j++)
        before += instance_draw(p, 120, j) < instance_draw(p, 120, k);
    return before;
}

/* Parameters: the step at each place, then two numbers. A step that is missing costs most; a pair
 * in the wrong order by its weight; a step that comes twice counts where it comes first. */
static double order(const struct problem *p, const double *x)
{
    unsigned first[ORDER_STEPS];
    double cost = 0;
    for (unsigned k = 0; k < ORDER_STEPS; k++) {
        first[k] = ORDER_STEPS;
        for (unsigned i = ORDER_STEPS; i-- > 0;)
            if ((unsigned)x[i] == k)
                first[k] = i;
        cost += first[k] == ORDER_STEPS ? 0.15 : 0;
    }
    for (unsigned j = 0; j < ORDER_STEPS; j++)
        for (unsigned k = 0; k < ORDER_STEPS; k++)
            if (first[j] < ORDER_STEPS && first[k] < first[j] &&
                order_place(p, j) < order_place(p, k))
                cost += 0.02 + 0.08 * instance_draw(p, 121, j * ORDER_STEPS + k);
    for (unsigned i = 0; i < 2; i++)
        cost += 0.3 * square(x[ORDER_STEPS + i] - between(p, 122, i, 0.1, 0.9));
    return cost;
}

static void best_order(const struct problem *p, double *x)
{
    for (unsigned k = 0; k < ORDER_STEPS; k++)
        x[order_place(p, k)] = k;
    for (unsigned i = 0; i < 2; i++)
        x[ORDER_STEPS + i] = between(p, 122, i, 0.1, 0.9);
}

/* ---- stairs ---- */

#define STAIRS 50.0

/* The cliff is where 0.6 of the first number and 0.4 of the second are this much. */
static double stairs_edge(const struct problem *p)
{
    return between(p, 130, 0, 0.55, 0.75);
}

static double stairs_place(const struct problem *p, unsigned i)
{
    return between(p, 131, i, 0.1, 0.9);
}

/* Parameters: six numbers in [0, 1]. The value falls towards the cliff. */
static double stairs(const struct problem *p, const double *x)
{
    double load = 0.6 * x[0] + 0.4 * x[1], f = 0;
    if (load > stairs_edge(p))
        return 1;
    f = 0.5 * (stairs_edge(p) - load) + 0.5 * square(x[0] - stairs_edge(p));
    for (unsigned i = 2; i < 6; i++)
        f += (i < 4 ? 0.5 : 0.1) * square(x[i] - stairs_place(p, i));
    return fmin(1, floor(STAIRS * f) / STAIRS);
}

static void best_stairs(const struct problem *p, double *x)
{
    x[0] = x[1] = stairs_edge(p) * (1 - 1e-9);
    for (unsigned i = 2; i < 6; i++)
        x[i] = stairs_place(p, i);
}

/* ---- the list ---- */

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define STEP(name)                                                                                 \
    name ": {type: categorical, values: [scale, fill, encode, select, rotate, drop]}\n"

static const char scaled[] = "rate: {type: float, min: 0, max: 1}\n"
                             "decay: {type: float, min: 0, max: 0.1}\n"
                             "momentum: {type: float, min: 0, max: 0.9999}\n"
                             "trees: {type: int, min: 1, max: 5000}\n"
                             "depth: {type: int, min: 1, max: 20}\n"
                             "share: {type: float, min: 0, max: 1}\n";
static const char six[] = UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4") UNIT("x5") UNIT("x6");
static const char many_values[] =
    "model: {type: categorical, values: [a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5, c0, c1, "
    "c2, c3, c4, c5, d0, d1, d2, d3, d4, d5]}\n"
    "encoder: {type: categorical, values: [e0, e1, e2, f0, f1, f2, g0, g1, g2]}\n" UNIT("x1")
        UNIT("x2") UNIT("x3") UNIT("x4");
static const char steps[] = STEP("first") STEP("second") STEP("third") STEP("fourth") STEP("fifth")
    STEP("sixth") UNIT("x1") UNIT("x2");

const struct problem_def unsaid_problems[] = {
    INSTANCE_ROWS(scales, scaled), INSTANCE_ROWS(gate, six),   INSTANCE_ROWS(twins, many_values),
    INSTANCE_ROWS(order, steps),   INSTANCE_ROWS(stairs, six), {0},
};
