/* Problems with categories, ints and conditional parameters. func2C and func3C: Ru, Alvi, Nguyen,
 * Osborne, Roberts, "Bayesian optimisation over multiple continuous and categorical inputs", ICML
 * 2020. The others are this benchmark's own. */
#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "bench/search/problems_priv.h"

typedef double plane_fn(const double *x);

static double plane_rosenbrock(const double *x)
{
    return (100 * square(x[1] - x[0] * x[0]) + square(x[0] - 1)) / 300;
}

static double plane_camel(const double *x)
{
    return fn_camel(NULL, x) / 10;
}

static double plane_beale(const double *x)
{
    double a = x[0] * x[1], b = a * x[1], c = b * x[1];
    return (square(1.5 - x[0] + a) + square(2.25 - x[0] + b) + square(2.625 - x[0] + c)) / 50;
}

static plane_fn *const planes[3] = {plane_rosenbrock, plane_camel, plane_beale};

/* The terms that h1 and h2 choose: h2 has beale three times. x: h1, h2, …, x1, x2. */
static double two_terms(const double *h, const double *x)
{
    return planes[(int)h[0]](x) + planes[(int)fmin(h[1], 2)](x);
}

static double func2c(const struct problem *p, const double *x)
{
    (void)p;
    return two_terms(x, x + 2);
}

static double func3c(const struct problem *p, const double *x)
{
    static const struct {
        double weight;
        plane_fn *fn;
    } third[4] = {{5, plane_camel}, {2, plane_rosenbrock}, {2, plane_beale}, {3, plane_beale}};
    (void)p;
    int h = (int)x[2];
    return two_terms(x, x + 3) + third[h].weight * third[h].fn(x + 3);
}

/* Ackley's function of five switches and three reals, its bottom at 1 0 1 1 0 and off the centre.
 */
static double ackley_mixed(const struct problem *p, const double *x)
{
    static const double bottom[8] = {1, 0, 1, 1, 0, 0.31, -0.42, 0.17};
    double z[8];
    for (size_t i = 0; i < 8; i++)
        z[i] = x[i] - bottom[i];
    return fn_ackley(p, z);
}

/* A hash of (a, b, c) in [0,1): the effects of categories without order. */
static double effect(unsigned a, unsigned b, unsigned c)
{
    uint32_t w[4];
    philox4x32(2026, a, (uint64_t)b << 32 | c, w);
    return w[0] / 4294967296.0;
}

/* Three categories of 10, 10 and 6 values with main effects and a pairwise one, and two reals whose
 * best place depends on the first category. Each effect is 0 at exactly one value: (7, 2, 4) is
 * best. */
static double cat10(const struct problem *p, const double *x)
{
    (void)p;
    unsigned a = (unsigned)x[0], b = (unsigned)x[1], c = (unsigned)x[2];
    double f = a == 7 ? 0 : 0.2 + effect(1, 0, a);
    f += b == 2 ? 0 : 0.2 + effect(2, 0, b);
    f += c == 4 ? 0 : 0.1 + 0.5 * effect(3, 0, c);
    f += a == 7 && b == 2 ? 0 : 0.3 * effect(4, a, b);
    return f + 2 * square(x[3] - (0.2 + 0.6 * effect(5, 0, a))) +
           2 * square(x[4] - (0.2 + 0.6 * effect(6, 0, a)));
}

/* Hartmann6 with three of its axes on grids of 10, 20 and 40 steps. */
static double hartmann6_int(const struct problem *p, const double *x)
{
    double z[6] = {x[0] / 10, x[1] / 20, x[2], x[3] / 40, x[4], x[5]};
    return fn_hartmann6(p, z);
}

/* A loss that resembles training: the best learning rate depends on the batch size, too high a rate
 * diverges, decay and dropout interact, width saturates. The best value is 0. */
static double training(const struct problem *p, const double *x)
{
    static const double activation[3] = {0, 0.05, 0.2};
    (void)p;
    double lr = log10(x[0]) + 2.5 - 0.5 * (log2(x[1]) - 6) * M_LN2 / M_LN10;
    double width = log2(x[5]) - 7, decay = log10(x[2]) + 4, dropout = x[4] - 0.2;
    double f = 0.25 * lr * lr + (lr > 0.7 ? 3 * square(lr - 0.7) : 0);
    f += 0.02 * square(log2(x[1]) - 6) + 0.6 * square(x[3] - 0.9);
    f += 0.03 * square(decay + 6 * dropout) + 0.8 * square(dropout);
    f += width < 0 ? 0.04 * square(width) : 0.01 * square(width);
    f += activation[(int)x[6]];
    return 2.3 * (1 - exp(-f));
}

/* Three optimisers with parameters of their own: the easy one (adamw) is not the best one (lbfgs
 * with wolfe). */
static double optimizers(const struct problem *p, const double *x)
{
    (void)p;
    double f = 0.5 * square(x[1] - 0.15); /* dropout */
    switch ((int)x[0]) {
    case 0: /* sgd: lr and momentum act together */
        return 0.05 + f + 0.15 * square(log10(x[2] / (1 - x[3])) - 0.3) + 0.1 * square(x[3] - 0.8);
    case 1: /* adamw */
        return 0.02 + f + 0.04 * square(log10(x[4]) + 3) + 0.02 * square(log10(x[5]) + 2);
    default: /* lbfgs: history, and c2 when the line search is wolfe */
        f += 0.3 * square(log2(x[6]) - 4.321928094887363) / 4;
        return x[7] < 0.5 ? f + 0.08 : f + 1.5 * square(x[8] - 0.9);
    }
}

/* A pipeline with three levels of conditions: a linear model, trees, or a network whose widths
 * depend on its depth. The best is a network of three layers, 64, 128, 32 wide. */
static double pipeline(const struct problem *p, const double *x)
{
    static const double wanted[4] = {6, 7, 5, 5};
    (void)p;
    double f = x[1] > 0.5 ? 0 : 0.1; /* scaled inputs */
    switch ((int)x[0]) {
    case 0: /* linear */
        return f + 0.35 + 0.02 * square(log10(x[2]) + 1);
    case 1: /* trees */
        return 0.12 + 0.006 * square(x[3] - 7) + 0.03 * square(log10(x[4]) + 1);
    default:
        f += 0.04 * square(x[5] - 3) + 0.06 * square(log10(x[6]) + 2.5);
        for (int i = 0; i < (int)x[5]; i++)
            f += 0.02 * square(log2(x[7 + i]) - wanted[i]);
        return f;
    }
}

const struct problem_def mixed_problems[] = {
    {"func2c",
     "h1: {type: categorical, values: [ros, cam, bea]}\n"
     "h2: {type: categorical, values: [ros, cam, bea, bea2, bea3]}\n"
     "x1: {type: float, min: -2, max: 2}\n"
     "x2: {type: float, min: -2, max: 2}\n",
     func2c, -0.20632569069797548, "{h1: cam, h2: cam, x1: 0.0898420089, x2: -0.712656403}", 0,
     NULL},
    {"func3c",
     "h1: {type: categorical, values: [ros, cam, bea]}\n"
     "h2: {type: categorical, values: [ros, cam, bea, bea2, bea3]}\n"
     "h3: {type: categorical, values: [cam5, ros2, bea2, bea3]}\n"
     "x1: {type: float, min: -2, max: 2}\n"
     "x2: {type: float, min: -2, max: 2}\n",
     func3c, -0.72213991744291417,
     "{h1: cam, h2: cam, h3: cam5, x1: 0.0898420089, x2: -0.712656403}", 0, NULL},
    {"ackley-mixed",
     "b1: {type: int, min: 0, max: 1}\nb2: {type: int, min: 0, max: 1}\n"
     "b3: {type: int, min: 0, max: 1}\nb4: {type: int, min: 0, max: 1}\n"
     "b5: {type: int, min: 0, max: 1}\n"
     "x1: {type: float, min: -1, max: 1}\nx2: {type: float, min: -1, max: 1}\n"
     "x3: {type: float, min: -1, max: 1}\n",
     ackley_mixed, 0, "{b1: 1, b2: 0, b3: 1, b4: 1, b5: 0, x1: 0.31, x2: -0.42, x3: 0.17}", 0,
     NULL},
    {"cat10",
     "a: {type: categorical, values: [a0, a1, a2, a3, a4, a5, a6, a7, a8, a9]}\n"
     "b: {type: categorical, values: [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9]}\n"
     "c: {type: categorical, values: [c0, c1, c2, c3, c4, c5]}\n"
     "x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n",
     cat10, 0, "{a: a7, b: b2, c: c4, x: 0.21817995682358743, y: 0.79224975928664199}", 0, NULL},
    {"hartmann6-int",
     "x1: {type: int, min: 0, max: 10}\nx2: {type: int, min: 0, max: 20}\n"
     "x3: {type: float, min: 0, max: 1}\nx4: {type: int, min: 0, max: 40}\n"
     "x5: {type: float, min: 0, max: 1}\nx6: {type: float, min: 0, max: 1}\n",
     hartmann6_int, -3.322330612199368,
     "{x1: 2, x2: 3, x3: 0.47707656185436464, x4: 11, x5: 0.31168044318696153, x6: "
     "0.6572701839271008}",
     0, NULL},
    {"training7",
     "lr: {type: float, min: 1.0e-6, max: 1.0, scale: log}\n"
     "batch: {type: int, min: 16, max: 1024, scale: log}\n"
     "decay: {type: float, min: 1.0e-8, max: 0.1, scale: log}\n"
     "momentum: {type: float, min: 0, max: 0.99}\n"
     "dropout: {type: float, min: 0, max: 0.7}\n"
     "width: {type: int, min: 32, max: 2048, scale: log}\n"
     "activation: {type: categorical, values: [relu, tanh, sigmoid]}\n",
     training, 0,
     "{lr: 0.0031622776601683794, batch: 64, decay: 1.0e-4, momentum: 0.9, dropout: 0.2, width: "
     "128, "
     "activation: relu}",
     0, NULL},
    {0},
};

const struct problem_def conditional_problems[] = {
    {"optimizers",
     "optimizer: {type: categorical, values: [sgd, adamw, lbfgs]}\n"
     "dropout: {type: float, min: 0, max: 0.6}\n"
     "lr: {type: float, min: 1.0e-5, max: 1, scale: log, when: {optimizer: sgd}}\n"
     "momentum: {type: float, min: 0, max: 0.99, when: {optimizer: sgd}}\n"
     "adam_lr: {type: float, min: 1.0e-5, max: 1, scale: log, when: {optimizer: adamw}}\n"
     "decay: {type: float, min: 1.0e-6, max: 1, scale: log, when: {optimizer: adamw}}\n"
     "history: {type: int, min: 2, max: 100, scale: log, when: {optimizer: lbfgs}}\n"
     "line_search: {type: categorical, values: [armijo, wolfe], when: {optimizer: lbfgs}}\n"
     "c2: {type: float, min: 0.1, max: 0.99, when: {line_search: wolfe}}\n",
     optimizers, 0, "{optimizer: lbfgs, dropout: 0.15, history: 20, line_search: wolfe, c2: 0.9}",
     0, NULL},
    {"pipeline",
     "model: {type: categorical, values: [linear, trees, network]}\n"
     "scaled: {type: bool}\n"
     "penalty: {type: float, min: 1.0e-5, max: 10, scale: log, when: {model: linear}}\n"
     "tree_depth: {type: int, min: 1, max: 16, when: {model: trees}}\n"
     "rate: {type: float, min: 1.0e-3, max: 1, scale: log, when: {model: trees}}\n"
     "layers: {type: int, min: 1, max: 4, when: {model: network}}\n"
     "lr: {type: float, min: 1.0e-6, max: 1, scale: log, when: {model: network}}\n"
     "width1: {type: int, min: 4, max: 512, scale: log, when: {layers: [1, 2, 3, 4]}}\n"
     "width2: {type: int, min: 4, max: 512, scale: log, when: {layers: [2, 3, 4]}}\n"
     "width3: {type: int, min: 4, max: 512, scale: log, when: {layers: [3, 4]}}\n"
     "width4: {type: int, min: 4, max: 512, scale: log, when: {layers: 4}}\n",
     pipeline, 0,
     "{model: network, scaled: true, layers: 3, lr: 0.0031622776601683794, width1: 64, width2: "
     "128, "
     "width3: 32}",
     0, NULL},
    {0},
};

/* Real training runs; tables/make.py made them. */
const struct problem_def table_problems[] = {
    {"svm-letter", NULL, NULL, NAN, NULL, 0, NULL},
    {"boosting-california", NULL, NULL, NAN, NULL, 0, NULL},
    {"forest-adult", NULL, NULL, NAN, NULL, 0, NULL},
    {"mlp-digits", NULL, NULL, NAN, NULL, 0, NULL},
    {0},
};

/* The same in the family `real`: a depth that opens widths, an optimizer that opens its parameter.
 * `gp` was tuned on the first. */
const struct problem_def trainer_problems[] = {
    {"trainer-digits", NULL, NULL, NAN, NULL, 0, NULL},
    {"trainer-california", NULL, NULL, NAN, NULL, 0, NULL},
    {0},
};
