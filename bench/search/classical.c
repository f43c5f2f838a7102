/* Classical test functions with known optima.
 *
 * Formulas: Dixon and Szego, "Towards Global Optimisation" (1978), and the collection of Surjanovic
 * and Bingham (sfu.ca/~ssurjano). Domains whose centre is the optimum are shifted. */
#include <math.h>

#include "bench/search/problems_priv.h"

/* YAML lines of one float parameter, and of several. */
#define X(name, low, high) name ": {type: float, min: " low ", max: " high "}\n"
#define X2(l, h) X("x1", l, h) X("x2", l, h)
#define X3(l, h) X2(l, h) X("x3", l, h)
#define X4(l, h) X3(l, h) X("x4", l, h)
#define X5(l, h) X4(l, h) X("x5", l, h)
#define X6(l, h) X5(l, h) X("x6", l, h)
#define TEN(p, l, h)                                                                               \
    X(p "0", l, h)                                                                                 \
    X(p "1", l, h)                                                                                 \
    X(p "2", l, h)                                                                                 \
    X(p "3", l, h)                                                                                 \
    X(p "4", l, h) X(p "5", l, h) X(p "6", l, h) X(p "7", l, h) X(p "8", l, h) X(p "9", l, h)
#define AT_TEN(p, v)                                                                               \
    p "0: " v ", " p "1: " v ", " p "2: " v ", " p "3: " v ", " p "4: " v ", " p "5: " v ", " p    \
      "6: " v ", " p "7: " v ", " p "8: " v ", " p "9: " v
#define HARTMANN6_BEST                                                                             \
    "x1: 0.2016895092, x2: 0.1500106929, x3: 0.4768739743, x4: 0.2753324309, x5: 0.311651617, "    \
    "x6: 0.6573005345"

double fn_branin(const struct problem *p, const double *x)
{
    (void)p;
    double a = x[1] - 5.1 / (4 * M_PI * M_PI) * x[0] * x[0] + 5 / M_PI * x[0] - 6;
    return a * a + 10 * (1 - 1 / (8 * M_PI)) * cos(x[0]) + 10;
}

double fn_camel(const struct problem *p, const double *x)
{
    (void)p;
    double a = x[0] * x[0], b = x[1] * x[1];
    return (4 - 2.1 * a + a * a / 3) * a + x[0] * x[1] + (4 * b - 4) * b;
}

static double goldstein(const struct problem *p, const double *v)
{
    (void)p;
    double x = v[0], y = v[1];
    double a = 1 + square(x + y + 1) * (19 - 14 * x + 3 * x * x - 14 * y + 6 * x * y + 3 * y * y);
    double b =
        30 + square(2 * x - 3 * y) * (18 - 32 * x + 12 * x * x + 48 * y - 36 * x * y + 27 * y * y);
    return a * b;
}

static const double hartmann_weights[4] = {1.0, 1.2, 3.0, 3.2};

static double hartmann3(const struct problem *p, const double *x)
{
    static const double a[4][3] = {{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}};
    static const double c[4][3] = {{0.3689, 0.1170, 0.2673},
                                   {0.4699, 0.4387, 0.7470},
                                   {0.1091, 0.8732, 0.5547},
                                   {0.0381, 0.5743, 0.8828}};
    (void)p;
    double f = 0;
    for (size_t i = 0; i < 4; i++) {
        double e = 0;
        for (size_t j = 0; j < 3; j++)
            e += a[i][j] * square(x[j] - c[i][j]);
        f -= hartmann_weights[i] * exp(-e);
    }
    return f;
}

/* Reads the first six parameters; further ones have no effect. */
double fn_hartmann6(const struct problem *p, const double *x)
{
    static const double a[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                   {0.05, 10, 17, 0.1, 8, 14},
                                   {3, 3.5, 1.7, 10, 17, 8},
                                   {17, 8, 0.05, 10, 0.1, 14}};
    static const double c[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                   {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                   {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                   {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    (void)p;
    double f = 0;
    for (size_t i = 0; i < 4; i++) {
        double e = 0;
        for (size_t j = 0; j < 6; j++)
            e += a[i][j] * square(x[j] - c[i][j]);
        f -= hartmann_weights[i] * exp(-e);
    }
    return f;
}

double fn_ackley(const struct problem *p, const double *x)
{
    size_t n = p->space->n;
    double squares = 0, waves = 0;
    for (size_t i = 0; i < n; i++) {
        squares += x[i] * x[i];
        waves += cos(2 * M_PI * x[i]);
    }
    return -20 * exp(-0.2 * sqrt(squares / (double)n)) - exp(waves / (double)n) + 20 + M_E;
}

double fn_levy(const struct problem *p, const double *x)
{
    size_t n = p->space->n;
    double first = 1 + (x[0] - 1) / 4, last = 1 + (x[n - 1] - 1) / 4;
    double f = square(sin(M_PI * first)) + square(last - 1) * (1 + square(sin(2 * M_PI * last)));
    for (size_t i = 0; i + 1 < n; i++) {
        double w = 1 + (x[i] - 1) / 4;
        f += square(w - 1) * (1 + 10 * square(sin(M_PI * w + 1)));
    }
    return f;
}

static double rosenbrock(const struct problem *p, const double *x)
{
    double f = 0;
    for (size_t i = 0; i + 1 < p->space->n; i++)
        f += 100 * square(x[i + 1] - x[i] * x[i]) + square(x[i] - 1);
    return f;
}

static double sphere(const struct problem *p, const double *x)
{
    double f = 0;
    for (size_t i = 0; i < p->space->n; i++)
        f += x[i] * x[i];
    return f;
}

/* Ten axes from 1 to 1000, rotated in every plane, around an asymmetric centre. */
static double ellipsoid(const struct problem *p, const double *x)
{
    static const double centre[10] = {1.3, -2.1, 0.7, 3.2, -0.4, 2.6, -3.3, 1.9, -1.2, 0.3};
    double z[10], f = 0;
    size_t n = p->space->n;
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] - centre[i];
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            double angle = 1 + 0.37 * (double)(10 * i + j);
            double a = cos(angle) * z[i] - sin(angle) * z[j];
            z[j] = sin(angle) * z[i] + cos(angle) * z[j];
            z[i] = a;
        }
    for (size_t i = 0; i < n; i++)
        f += pow(1000, (double)i / (double)(n - 1)) * z[i] * z[i];
    return f;
}

static double shekel(const struct problem *p, const double *x)
{
    static const double c[10][4] = {{4, 4, 4, 4}, {1, 1, 1, 1},    {8, 8, 8, 8}, {6, 6, 6, 6},
                                    {3, 7, 3, 7}, {2, 9, 2, 9},    {5, 5, 3, 3}, {8, 1, 8, 1},
                                    {6, 2, 6, 2}, {7, 3.6, 7, 3.6}};
    static const double b[10] = {0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5};
    (void)p;
    double f = 0;
    for (size_t i = 0; i < 10; i++) {
        double d = b[i];
        for (size_t j = 0; j < 4; j++)
            d += square(x[j] - c[i][j]);
        f -= 1 / d;
    }
    return f;
}

static double styblinski(const struct problem *p, const double *x)
{
    double f = 0;
    for (size_t i = 0; i < p->space->n; i++)
        f += x[i] * (x[i] * (x[i] * x[i] - 16) + 5);
    return f / 2;
}

static double rastrigin(const struct problem *p, const double *x)
{
    double f = 0;
    for (size_t i = 0; i < p->space->n; i++)
        f += x[i] * x[i] - 10 * cos(2 * M_PI * x[i]) + 10;
    return f;
}

static double griewank(const struct problem *p, const double *x)
{
    double squares = 0, waves = 1;
    for (size_t i = 0; i < p->space->n; i++) {
        squares += x[i] * x[i];
        waves *= cos(x[i] / sqrt((double)i + 1));
    }
    return squares / 4000 - waves + 1;
}

static double schwefel(const struct problem *p, const double *x)
{
    double f = 418.9828872724339 * (double)p->space->n;
    for (size_t i = 0; i < p->space->n; i++)
        f -= x[i] * sin(sqrt(fabs(x[i])));
    return f;
}

static double michalewicz(const struct problem *p, const double *x)
{
    double f = 0;
    for (size_t i = 0; i < p->space->n; i++)
        f -= sin(x[i]) * pow(sin(((double)i + 1) * x[i] * x[i] / M_PI), 20);
    return f;
}

const struct problem_def classical_problems[] = {
    {"branin", X("x1", "-5", "10") X("x2", "0", "15"), fn_branin, 0.39788735772973816,
     "{x1: 3.1415926535897932, x2: 2.275}", 0, NULL},
    {"six-hump-camel", X("x1", "-3", "3") X("x2", "-2", "2"), fn_camel, -1.0316284534898774,
     "{x1: 0.0898420089, x2: -0.712656403}", 0, NULL},
    {"goldstein-price", X2("-2", "2"), goldstein, 3, "{x1: 0, x2: -1}", 0, NULL},
    {"hartmann3", X3("0", "1"), hartmann3, -3.862779787332663,
     "{x1: 0.1145888766, x2: 0.5556488948, x3: 0.8525469862}", 0, NULL},
    {"hartmann6", X6("0", "1"), fn_hartmann6, -3.3223680114155156, "{" HARTMANN6_BEST "}", 0, NULL},
    {"hartmann6-10d",
     X6("0", "1") X("y1", "0", "1") X("y2", "0", "1") X("y3", "0", "1") X("y4", "0", "1"),
     fn_hartmann6, -3.3223680114155156, "{" HARTMANN6_BEST ", y1: 0, y2: 0, y3: 0, y4: 0}", 0,
     NULL},
    {"hartmann6-20d",
     X6("0", "1") X("y1", "0", "1") X("y2", "0", "1") X("y3", "0", "1") X("y4", "0", "1")
         TEN("z", "0", "1"),
     fn_hartmann6, -3.3223680114155156,
     "{" HARTMANN6_BEST ", y1: 0, y2: 0, y3: 0, y4: 0, " AT_TEN("z", "0") "}", 0, NULL},
    {"hartmann6-50d",
     X6("0", "1") X("y1", "0", "1") X("y2", "0", "1") X("y3", "0", "1") X("y4", "0", "1")
         TEN("a", "0", "1") TEN("b", "0", "1") TEN("c", "0", "1") TEN("d", "0", "1"),
     fn_hartmann6, -3.3223680114155156,
     "{" HARTMANN6_BEST ", y1: 0, y2: 0, y3: 0, y4: 0, " AT_TEN("a", "0") ", " AT_TEN(
         "b", "0") ", " AT_TEN("c", "0") ", " AT_TEN("d", "0") "}",
     0, NULL},
    {"ackley5", X5("-20", "40"), fn_ackley, 0, "0", 0, NULL},
    {"ackley20", TEN("x", "-5", "10") TEN("y", "-5", "10"), fn_ackley, 0, "0", 0, NULL},
    {"levy4", X4("-6", "14"), fn_levy, 0, "1", 0, NULL},
    {"levy10", TEN("x", "-6", "14"), fn_levy, 0, "1", 0, NULL},
    {"rosenbrock4", X4("-5", "10"), rosenbrock, 0, "1", 0, NULL},
    {"rosenbrock10", TEN("x", "-5", "10"), rosenbrock, 0, "1", 0, NULL},
    {"sphere10", TEN("x", "-4", "8"), sphere, 0, "0", 0, NULL},
    {"ellipsoid10", TEN("x", "-5", "5"), ellipsoid, 0,
     "{x0: 1.3, x1: -2.1, x2: 0.7, x3: 3.2, x4: -0.4, x5: 2.6, x6: -3.3, x7: 1.9, x8: -1.2, x9: "
     "0.3}",
     0, NULL},
    {"shekel10", X4("0", "10"), shekel, -10.536409816692046,
     "{x1: 4.0007465322, x2: 4.0005929346, x3: 3.9996633963, x4: 3.9995098005}", 0, NULL},
    {"styblinski5", X5("-5", "5"), styblinski, -195.83082851885712, "-2.9035340347", 0, NULL},
    {"rastrigin4", X4("-4", "7"), rastrigin, 0, "0", 0, NULL},
    {"griewank6", X6("-300", "600"), griewank, 0, "0", 0, NULL},
    {"schwefel4", X4("-500", "500"), schwefel, 0, "420.968746359982", 0, NULL},
    {"michalewicz5", X5("0", "3.141592653589793"), michalewicz, -4.6876581790881495,
     "{x1: 2.2029055154, x2: 1.5707963257, x3: 1.2849915736, x4: 1.923058472, x5: 1.7204697711}", 0,
     NULL},
    {0},
};

/* Deviations of about a hundredth of the range of values; Hartmann's is 3.3. */
const struct problem_def noisy_problems[] = {
    {"branin-noisy", X("x1", "-5", "10") X("x2", "0", "15"), fn_branin, 0.39788735772973816,
     "{x1: 3.1415926535897932, x2: 2.275}", 1.0, NULL},
    {"hartmann6-noisy", X6("0", "1"), fn_hartmann6, -3.3223680114155156, "{" HARTMANN6_BEST "}",
     0.1, NULL},
    {"levy4-noisy", X4("-6", "14"), fn_levy, 0, "1", 1.0, NULL},
    {"ackley5-noisy", X5("-20", "40"), fn_ackley, 0, "0", 0.3, NULL},
    {0},
};
