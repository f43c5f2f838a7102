/* Problems like the searches that people run: ten to thirty parameters, several of them
 * categorical, switches that open branches, many that hardly matter, optima at the bounds, a branch
 * that looks bad until its own parameters are tuned, regions where trials fail.
 *
 * Each kind is a family of instances. An instance's number keys the hash that draws its centres,
 * weights and best values. `gp` was tuned on the instances 1 and 2; 3 is for reports. The functions
 * are this benchmark's own. */
#include <math.h>

#include "bench/search/problems_priv.h"

static unsigned pick(const struct problem *p, unsigned a, unsigned n)
{
    return (unsigned)(instance_draw(p, a, 0) * n);
}

/* The place of a value on a range, linear or logarithmic. */
static double linear(double v, double min, double max)
{
    return (v - min) / (max - min);
}

static double logarithmic(double v, double min, double max)
{
    return log(v / min) / log(max / min);
}

/* The place of the whole number nearest to place u of a logarithmic range: what an int can
 * reach. */
static double reachable(double u, double min, double max)
{
    return logarithmic(round(min * pow(max / min, u)), min, max);
}

/* ---- methods: three methods with parameters of their own ---- */

/* Parameters: method, shared, then four for each method: a rate (log), a share, a count (log), a
 * share. The deeper a method's best place, the narrower its funnel: untuned, the best looks worst.
 */
static double methods(const struct problem *p, const double *x)
{
    static const double base[3] = {0.20, 0.12, 0.03}, height[3] = {0.15, 0.35, 0.70},
                        width[3] = {0.9, 0.6, 0.5};
    unsigned role = ((unsigned)x[0] + instance_of(p)) % 3, first = 2 + 4 * (unsigned)x[0];
    double u[4] = {logarithmic(x[first], 1e-4, 1), x[first + 1], logarithmic(x[first + 2], 4, 512),
                   x[first + 3]};
    double sum = 0;
    for (unsigned i = 0; i < 4; i++) {
        double best = 0.1 + 0.8 * instance_draw(p, first, i);
        sum += square(u[i] - (i == 2 ? reachable(best, 4, 512) : best));
    }
    return base[role] + height[role] * (1 - exp(-sqrt(sum) / width[role])) +
           0.02 * square(x[1] - instance_draw(p, 1, 0));
}

static void best_methods(const struct problem *p, double *x)
{
    unsigned m = 0;
    while ((m + instance_of(p)) % 3 != 2)
        m++;
    unsigned first = 2 + 4 * m;
    double u[4];
    for (unsigned i = 0; i < 4; i++)
        u[i] = 0.1 + 0.8 * instance_draw(p, first, i);
    x[0] = m;
    x[1] = instance_draw(p, 1, 0);
    x[first] = 1e-4 * pow(1e4, u[0]);
    x[first + 1] = u[1];
    x[first + 2] = round(4 * pow(128, u[2]));
    x[first + 3] = u[3];
}

/* ---- switches: twenty parameters, of which a few matter ---- */

/* Parameters: f1..f8, c1..c4 of three to six values, b1..b4, i1, i2 (log), g1, g2 when b1. */
static double switches(const struct problem *p, const double *x)
{
    static const unsigned values[4] = {3, 4, 5, 6};
    static const double float_weight[8] = {1, 0.6, 0.2, 0.05, 0, 0, 0, 0};
    double f = 0;
    for (unsigned i = 0; i < 8; i++) {
        double best =
            i == 1 ? (double)(pick(p, 20, 2)) : instance_draw(p, 21, i); /* f2: at a bound */
        f += float_weight[(i + instance_of(p)) % 8] * square(x[i] - best);
    }
    for (unsigned i = 0; i < 4; i++) {
        unsigned best = pick(p, 30 + i, values[i]), v = (unsigned)x[8 + i];
        double weight = i == instance_of(p) % 4 ? 0.3 : i == (instance_of(p) + 1) % 4 ? 0.1 : 0;
        f += v == best ? 0 : weight * (0.3 + 0.7 * instance_draw(p, 40 + i, v));
    }
    f += 0.15 * (x[13] > 0.5 ? instance_draw(p, 50, 0) > 0.5 : instance_draw(p, 50, 0) <= 0.5);
    f += 0.3 * square(logarithmic(x[16], 8, 1024) - reachable(instance_draw(p, 51, 0), 8, 1024));
    if (x[12] < 0.5) /* b1 opens a branch that is good only where g1 and g2 are right */
        return 0.12 + f;
    return f +
           0.5 * (1 - exp(-6 * (square(x[18] - instance_draw(p, 52, 0)) +
                                square(logarithmic(x[19], 1e-3, 10) - instance_draw(p, 52, 1)))));
}

static void best_switches(const struct problem *p, double *x)
{
    static const unsigned values[4] = {3, 4, 5, 6};
    for (unsigned i = 0; i < 8; i++)
        x[i] = i == 1 ? (double)pick(p, 20, 2) : instance_draw(p, 21, i);
    for (unsigned i = 0; i < 4; i++)
        x[8 + i] = pick(p, 30 + i, values[i]);
    x[12] = 1;
    x[13] = instance_draw(p, 50, 0) <= 0.5;
    x[14] = x[15] = 0;
    x[16] = round(8 * pow(128, instance_draw(p, 51, 0)));
    x[17] = 1;
    x[18] = instance_draw(p, 52, 0);
    x[19] = 1e-3 * pow(1e4, instance_draw(p, 52, 1));
}

/* ---- additive30: thirty mixed parameters, weights from large to nothing ---- */

static double additive30(const struct problem *p, const double *x)
{
    double f = 0;
    for (unsigned i = 0; i < 30; i++) {
        double weight = pow(0.75, (double)((i * 7 + instance_of(p) * 3) % 30));
        double best = fmin(1, fmax(0, -0.15 + 1.3 * instance_draw(p, 60, i))), u;
        if (i < 12)
            u = x[i];
        else if (i < 18) {
            u = linear(x[i], 1, 20);
            best = round(best * 19) / 19;
        } else if (i < 24) {
            unsigned v = (unsigned)x[i];
            f += v == pick(p, 70 + i, 4) ? 0
                                         : 0.5 * weight * (0.4 + 0.6 * instance_draw(p, 90 + i, v));
            continue;
        } else {
            f +=
                0.4 * weight * (x[i] > 0.5 ? instance_draw(p, 61, i) : 1 - instance_draw(p, 61, i));
            continue;
        }
        f += weight * square(u - best);
    }
    return f;
}

static double additive30_lowest(const struct problem *p)
{
    double f = 0;
    for (unsigned i = 24; i < 30; i++)
        f += 0.4 * pow(0.75, (double)((i * 7 + instance_of(p) * 3) % 30)) *
             fmin(instance_draw(p, 61, i), 1 - instance_draw(p, 61, i));
    return f;
}

static void best_additive30(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 30; i++) {
        double best = fmin(1, fmax(0, -0.15 + 1.3 * instance_draw(p, 60, i)));
        x[i] = i < 12   ? best
               : i < 18 ? 1 + round(best * 19)
               : i < 24 ? (double)pick(p, 70 + i, 4)
                        : instance_draw(p, 61, i) < 0.5;
    }
}

static double additive30_regret(const struct problem *p, const double *x)
{
    return additive30(p, x) - additive30_lowest(p);
}

/* ---- network: a depth that opens widths, an optimizer that opens its parameters ---- */

/* Parameters: depth, optimizer, activation, batch, lr, decay, dropout, schedule, momentum (sgd),
 * beta2 (adam), eps (adam), width1..width5. Deeper is better, and its best rate is lower, so that
 * with a rate that suits one layer the deep ones look bad. */
static double best_rate(const struct problem *p, unsigned depth, unsigned optimizer, double batch)
{
    static const double of_optimizer[3] = {0, 0.25, -0.2};
    return -1.3 - 0.45 * (depth - 1) + of_optimizer[optimizer] + 0.15 * (log2(batch) - 6) +
           0.6 * (instance_draw(p, 101, 0) - 0.5);
}

static double network(const struct problem *p, const double *x)
{
    unsigned depth = (unsigned)x[0], optimizer = (unsigned)x[1];
    unsigned wanted = 3 + pick(p, 100, 3);
    double best_lr = best_rate(p, depth, optimizer, x[3]);
    double f = 0.05 * abs((int)depth - (int)wanted) + 0.30 * square(log10(x[4]) - best_lr);
    f += 0.02 * square(log10(x[5]) + 4 + instance_draw(p, 102, 0)) * 0.3;
    f += 0.4 * square(x[6] - 0.5 * instance_draw(p, 103, 0));
    f += (unsigned)x[2] == pick(p, 104, 3) ? 0
                                           : 0.06 * (0.5 + instance_draw(p, 105, (unsigned)x[2]));
    f += 0.01 * square(log2(x[3] / round(pow(2, 5 + 2 * instance_draw(p, 106, 0)))));
    if (optimizer == 0)
        f += 0.03 + 0.3 * square(x[8] - 0.9);
    else if (optimizer == 1)
        f += 0.01 * square(log10(1 - x[9]) + 2.5);
    else
        f += 0.06;
    for (unsigned i = 0; i < depth; i++)
        f += 0.012 * square(log2(x[11 + i] / round(pow(2, 5 + 3 * instance_draw(p, 107, i)))));
    return 1 - exp(-f);
}

static void best_network(const struct problem *p, double *x)
{
    unsigned depth = 3 + pick(p, 100, 3);
    x[0] = depth;
    x[1] = 1;
    x[2] = pick(p, 104, 3);
    x[3] = round(pow(2, 5 + 2 * instance_draw(p, 106, 0)));
    x[4] = pow(10, best_rate(p, depth, 1, x[3]));
    x[5] = pow(10, -4 - instance_draw(p, 102, 0));
    x[6] = 0.5 * instance_draw(p, 103, 0);
    x[7] = 0;
    x[9] = 1 - pow(10, -2.5);
    x[10] = 1e-6;
    for (unsigned i = 0; i < depth; i++)
        x[11 + i] = round(pow(2, 5 + 3 * instance_draw(p, 107, i)));
}

/* ---- cliff: the best values lie beside a region that fails ---- */

/* Parameters: lr (log), width (log), batch (log), depth, three floats, kind. A trial fails when its
 * memory is too large or its rate diverges. */
static double cliff(const struct problem *p, const double *x)
{
    double lr = logarithmic(x[0], 1e-5, 1), width = logarithmic(x[1], 16, 4096);
    double batch = logarithmic(x[2], 8, 1024), depth = linear(x[3], 1, 12);
    double memory = width + batch + 0.7 * depth, limit = 1.6 + 0.3 * instance_draw(p, 110, 0);
    double rate = lr + 0.4 * depth, most = 0.8 + 0.3 * instance_draw(p, 111, 0);
    if (memory > limit || rate > most)
        return NAN;
    double f = 0.5 * (limit - memory) + 0.7 * square(rate - most);
    f += 0.3 * square(batch - reachable(0.3 + 0.2 * instance_draw(p, 112, 0), 8, 1024));
    for (unsigned i = 0; i < 3; i++)
        f += 0.2 * square(x[4 + i] - instance_draw(p, 113, i));
    return f + ((unsigned)x[7] == pick(p, 114, 3)
                    ? 0
                    : 0.05 + 0.1 * instance_draw(p, 115, (unsigned)x[7]));
}

static void best_cliff(const struct problem *p, double *x)
{
    const double inside = 1 - 1e-12; /* on the border, rounding decides */
    double limit = 1.6 + 0.3 * instance_draw(p, 110, 0),
           most = 0.8 + 0.3 * instance_draw(p, 111, 0);
    double batch = reachable(0.3 + 0.2 * instance_draw(p, 112, 0), 8, 1024);
    x[0] = 1e-5 * pow(1e5, (most - 0.4) * inside);
    x[1] = 16 * pow(256, (limit - batch - 0.7) * inside);
    x[2] = round(8 * pow(128, batch));
    x[3] = 12;
    for (unsigned i = 0; i < 3; i++)
        x[4 + i] = instance_draw(p, 113, i);
    x[7] = pick(p, 114, 3);
}

/* ---- rastrigin-mixed: five ints and five reals, many local optima ---- */

static double rastrigin_mixed(const struct problem *p, const double *x)
{
    double f = 0;
    for (unsigned i = 0; i < 10; i++) {
        double z = i < 5 ? x[i] - (2 + (double)pick(p, 120 + i, 6))
                         : x[i] - (-1.5 + 3 * instance_draw(p, 130, i));
        f += z * z + 4 * (1 - cos(2 * M_PI * z));
    }
    return f;
}

static void best_rastrigin(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < 10; i++)
        x[i] = i < 5 ? 2 + (double)pick(p, 120 + i, 6) : -1.5 + 3 * instance_draw(p, 130, i);
}

#define FOUR(letter, value)                                                                        \
    letter "_rate: {type: float, min: 1.0e-4, max: 1, scale: log, when: {method: " value           \
           "}}\n" letter "_share: {type: float, min: 0, max: 1, when: {method: " value             \
           "}}\n" letter "_count: {type: int, min: 4, max: 512, scale: log, when: {method: " value \
           "}}\n" letter "_mix: {type: float, min: 0, max: 1, when: {method: " value "}}\n"

static const char methods_space[] =
    "method: {type: categorical, values: [forest, boosting, network]}\n"
    "shared: {type: float, min: 0, max: 1}\n" FOUR("f", "forest") FOUR("b", "boosting")
        FOUR("n", "network");

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define COUNT(name) name ": {type: int, min: 1, max: 20}\n"
#define CHOICE(name) name ": {type: categorical, values: [k, l, m, n]}\n"
#define BOOL(name) name ": {type: bool}\n"

static const char switches_space[] =
    UNIT("f1") UNIT("f2") UNIT("f3") UNIT("f4") UNIT("f5") UNIT("f6") UNIT("f7")
        UNIT("f8") "c1: {type: categorical, values: [a, b, c]}\n"
                   "c2: {type: categorical, values: [a, b, c, d]}\n"
                   "c3: {type: categorical, values: [a, b, c, d, e]}\n"
                   "c4: {type: categorical, values: [a, b, c, d, e, f]}\n" BOOL("b1") BOOL("b2")
                       BOOL("b3") BOOL("b4") "i1: {type: int, min: 8, max: 1024, scale: log}\n"
                                             "i2: {type: int, min: 1, max: 100, scale: log}\n"
                                             "g1: {type: float, min: 0, max: 1, when: {b1: true}}\n"
                                             "g2: {type: float, min: 1.0e-3, max: 10, scale: log, "
                                             "when: {b1: true}}\n";

static const char additive_space[] = UNIT("f01") UNIT("f02") UNIT("f03") UNIT("f04") UNIT("f05")
    UNIT("f06") UNIT("f07") UNIT("f08") UNIT("f09") UNIT("f10") UNIT("f11") UNIT("f12") COUNT("i1")
        COUNT("i2") COUNT("i3") COUNT("i4") COUNT("i5") COUNT("i6") CHOICE("c1") CHOICE("c2")
            CHOICE("c3") CHOICE("c4") CHOICE("c5") CHOICE("c6") BOOL("b1") BOOL("b2") BOOL("b3")
                BOOL("b4") BOOL("b5") BOOL("b6");

#define WIDTH(name, depths)                                                                        \
    name ": {type: int, min: 8, max: 1024, scale: log, when: {depth: " depths "}}\n"

static const char network_space[] =
    "depth: {type: int, min: 1, max: 5}\n"
    "optimizer: {type: categorical, values: [sgd, adam, lion]}\n"
    "activation: {type: categorical, values: [relu, tanh, gelu]}\n"
    "batch: {type: int, min: 16, max: 512, scale: log}\n"
    "lr: {type: float, min: 1.0e-5, max: 1, scale: log}\n"
    "decay: {type: float, min: 1.0e-7, max: 0.1, scale: log}\n"
    "dropout: {type: float, min: 0, max: 0.7}\n"
    "schedule: {type: categorical, values: [constant, cosine]}\n"
    "momentum: {type: float, min: 0, max: 0.99, when: {optimizer: sgd}}\n"
    "beta2: {type: float, min: 0.9, max: 0.9999, when: {optimizer: adam}}\n"
    "eps: {type: float, min: 1.0e-9, max: 1.0e-3, scale: log, when: {optimizer: adam}}\n" WIDTH(
        "width1", "[1, 2, 3, 4, 5]") WIDTH("width2", "[2, 3, 4, 5]") WIDTH("width3", "[3, 4, 5]")
        WIDTH("width4", "[4, 5]") WIDTH("width5", "5");

static const char cliff_space[] = "lr: {type: float, min: 1.0e-5, max: 1, scale: log}\n"
                                  "width: {type: float, min: 16, max: 4096, scale: log}\n"
                                  "batch: {type: int, min: 8, max: 1024, scale: log}\n"
                                  "depth: {type: int, min: 1, max: 12}\n" UNIT("f1") UNIT("f2")
                                      UNIT("f3") "kind: {type: categorical, values: [a, b, c]}\n";

static const char rastrigin_space[] =
    "i1: {type: int, min: 0, max: 10}\ni2: {type: int, min: 0, max: 10}\n"
    "i3: {type: int, min: 0, max: 10}\ni4: {type: int, min: 0, max: 10}\n"
    "i5: {type: int, min: 0, max: 10}\n"
    "x1: {type: float, min: -3, max: 3}\nx2: {type: float, min: -3, max: 3}\n"
    "x3: {type: float, min: -3, max: 3}\nx4: {type: float, min: -3, max: 3}\n"
    "x5: {type: float, min: -3, max: 3}\n";

static const unsigned numbers[] = {0, 1, 2, 3, 4};

#define ROW(name, space, fn, optimum, best, i)                                                     \
    {                                                                                              \
        name, space, fn, optimum, NULL, 0, &numbers[i], best                                       \
    }

const struct problem_def real_problems[] = {
    ROW("methods-1", methods_space, methods, 0.03, best_methods, 1),
    ROW("methods-2", methods_space, methods, 0.03, best_methods, 2),
    ROW("methods-3", methods_space, methods, 0.03, best_methods, 3),
    ROW("switches-1", switches_space, switches, 0, best_switches, 1),
    ROW("switches-2", switches_space, switches, 0, best_switches, 2),
    ROW("switches-3", switches_space, switches, 0, best_switches, 3),
    ROW("additive30-1", additive_space, additive30_regret, 0, best_additive30, 1),
    ROW("additive30-2", additive_space, additive30_regret, 0, best_additive30, 2),
    ROW("additive30-3", additive_space, additive30_regret, 0, best_additive30, 3),
    ROW("network-1", network_space, network, 0, best_network, 1),
    ROW("network-2", network_space, network, 0, best_network, 2),
    ROW("network-3", network_space, network, 0, best_network, 3),
    ROW("cliff-1", cliff_space, cliff, 0, best_cliff, 1),
    ROW("cliff-2", cliff_space, cliff, 0, best_cliff, 2),
    ROW("cliff-3", cliff_space, cliff, 0, best_cliff, 3),
    ROW("rastrigin-1", rastrigin_space, rastrigin_mixed, 0, best_rastrigin, 1),
    ROW("rastrigin-2", rastrigin_space, rastrigin_mixed, 0, best_rastrigin, 2),
    ROW("rastrigin-3", rastrigin_space, rastrigin_mixed, 0, best_rastrigin, 3),
    {0},
};
