/* Problems whose noise differs from place to place. Each is a family of instances whose number keys
 * the hash that draws its places:
 *   decoy    little noise at the optimum, much at a worse place, whose lucky results look better
 *   rising   a bowl, and a noise that grows with one number from 0.01 to 0.3
 *   kinds    a choice of four values with a bowl each; one that is nearly the best is noisy
 *   calm     much noise at the optimum, hardly any at a worse place
 *   tails    noise with heavy tails in one half of the space, hardly any in the other, where the
 *            optimum is
 *   decoys   three worse places with much noise, and the optimum with little
 * Instances 1 and 2 are for tuning, 3 and 4 for reports. The functions are this benchmark's own. */
#include <math.h>

#include "bench/search/problems_priv.h"

#define QUIET 0.01 /* deviation where there is hardly any noise */

/* The number i of the place of this key. */
static double at(const struct problem *p, unsigned key, unsigned i)
{
    return 0.15 + 0.7 * instance_draw(p, key, i);
}

/* Squared, of n numbers from x on to the place of this key. */
static double distance(const struct problem *p, const double *x, unsigned n, unsigned key)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += square(x[i] - at(p, key, i));
    return sum;
}

static void place(const struct problem *p, double *x, unsigned n, unsigned key)
{
    for (unsigned i = 0; i < n; i++)
        x[i] = at(p, key, i);
}

/* ---- rising: five numbers ---- */

static double rising(const struct problem *p, const double *x)
{
    return distance(p, x, 5, 120);
}

static double rising_observe(const struct problem *p, const double *x, double value, uint64_t seed,
                             uint64_t trial)
{
    unsigned by = (unsigned)(5 * instance_draw(p, 121, 0));
    return value + QUIET * pow(30, x[by]) * observe_normal(seed, trial, OBSERVE_UNEVEN);
}

static void best_rising(const struct problem *p, double *x)
{
    place(p, x, 5, 120);
}

/* ---- kinds: a choice of four values, four numbers ---- */

#define KINDS 4

/* 0: the best; 1: nearly the best, and noisy. */
static unsigned kinds_role(const struct problem *p, unsigned v)
{
    return (v + instance_of(p)) % KINDS;
}

static double kinds(const struct problem *p, const double *x)
{
    static const double base[KINDS] = {0, 0.08, 0.15, 0.25};
    unsigned role = kinds_role(p, (unsigned)x[0]);
    return base[role] + distance(p, x + 1, 4, 130 + role);
}

static double kinds_observe(const struct problem *p, const double *x, double value, uint64_t seed,
                            uint64_t trial)
{
    double noise = kinds_role(p, (unsigned)x[0]) == 1 ? 0.3 : QUIET;
    return value + noise * observe_normal(seed, trial, OBSERVE_UNEVEN);
}

static void best_kinds(const struct problem *p, double *x)
{
    x[0] = (KINDS - instance_of(p) % KINDS) % KINDS;
    place(p, x + 1, 4, 130);
}

/* ---- decoy and calm: five numbers ---- */

/* Two places that are APART in each number, with noise around the upper one. One is the optimum;
 * the other is worse by 0.12. */
struct pair {
    unsigned key; /* of the hash */
    bool is_best_noisy;
    double noise; /* its deviation at the upper place, beside QUIET */
    enum observe_purpose purpose;
};
#define APART 0.45
static const struct pair decoy_pair = {50, false, 0.4, OBSERVE_FLAT};
static const struct pair calm_pair = {140, true, 0.1, OBSERVE_UNEVEN};

static double pair_place(const struct problem *p, const struct pair *d, unsigned i, bool is_upper)
{
    return 0.15 + 0.3 * instance_draw(p, d->key, i) + (is_upper ? APART : 0);
}

static double pair_distance(const struct problem *p, const struct pair *d, const double *x,
                            bool is_upper)
{
    double sum = 0;
    for (unsigned i = 0; i < 5; i++)
        sum += square(x[i] - pair_place(p, d, i, is_upper));
    return sum;
}

static double pair_value(const struct problem *p, const struct pair *d, const double *x)
{
    return fmin(1.2 * pair_distance(p, d, x, d->is_best_noisy),
                0.12 + 0.6 * pair_distance(p, d, x, !d->is_best_noisy));
}

static double pair_observe(const struct problem *p, const struct pair *d, const double *x,
                           double value, uint64_t seed, uint64_t trial)
{
    double near = exp(-pair_distance(p, d, x, true) / (2 * square(0.25)));
    return value + (QUIET + d->noise * near) * observe_normal(seed, trial, d->purpose);
}

static void pair_best(const struct problem *p, const struct pair *d, double *x)
{
    for (unsigned i = 0; i < 5; i++)
        x[i] = pair_place(p, d, i, d->is_best_noisy);
}

/* What the rows of a family of pairs name. */
#define PAIR_FUNCTIONS(kind)                                                                       \
    static double kind(const struct problem *p, const double *x)                                   \
    {                                                                                              \
        return pair_value(p, &kind##_pair, x);                                                     \
    }                                                                                              \
    static double kind##_observe(const struct problem *p, const double *x, double value,           \
                                 uint64_t seed, uint64_t trial)                                    \
    {                                                                                              \
        return pair_observe(p, &kind##_pair, x, value, seed, trial);                               \
    }                                                                                              \
    static void best_##kind(const struct problem *p, double *x)                                    \
    {                                                                                              \
        pair_best(p, &kind##_pair, x);                                                             \
    }
PAIR_FUNCTIONS(decoy)
PAIR_FUNCTIONS(calm)

/* ---- tails: six numbers; the first says how heavy ---- */

static double tails(const struct problem *p, const double *x)
{
    double good = distance(p, x + 1, 5, 150) + square(x[0] - 0.25);
    double other = 0.1 + 0.5 * distance(p, x + 1, 5, 151) + 0.5 * square(x[0] - 0.8);
    return fmin(good, other);
}

/* Student's t of two degrees of freedom, from two normals' sum of squares. */
static double tails_observe(const struct problem *p, const double *x, double value, uint64_t seed,
                            uint64_t trial)
{
    (void)p;
    struct rng r;
    rng_init(&r, seed, trial << 8 | OBSERVE_UNEVEN);
    double z = rng_normal(&r), chi = (square(rng_normal(&r)) + square(rng_normal(&r))) / 2;
    return value + (x[0] > 0.5 ? 0.1 : QUIET) * z / sqrt(fmax(chi, 0.02));
}

static void best_tails(const struct problem *p, double *x)
{
    x[0] = 0.25;
    place(p, x + 1, 5, 150);
}

/* ---- decoys: five numbers ---- */

#define DECOYS 3

static double decoys(const struct problem *p, const double *x)
{
    double best = 1.2 * distance(p, x, 5, 160);
    for (unsigned k = 1; k <= DECOYS; k++)
        best = fmin(best, 0.1 + 0.02 * k + 0.6 * distance(p, x, 5, 160 + k));
    return best;
}

static double decoys_observe(const struct problem *p, const double *x, double value, uint64_t seed,
                             uint64_t trial)
{
    double near = 0;
    for (unsigned k = 1; k <= DECOYS; k++)
        near = fmax(near, exp(-distance(p, x, 5, 160 + k) / (2 * square(0.25))));
    near *= 1 - exp(-distance(p, x, 5, 160) / (2 * square(0.25)));
    return value + (QUIET + 0.4 * near) * observe_normal(seed, trial, OBSERVE_UNEVEN);
}

static void best_decoys(const struct problem *p, double *x)
{
    place(p, x, 5, 160);
}

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define FOUR UNIT("x1") UNIT("x2") UNIT("x3") UNIT("x4")
static const char five[] = FOUR UNIT("x5");
static const char six[] = FOUR UNIT("x5") UNIT("x6");
static const char kind_and_four[] = "kind: {type: categorical, values: [a, b, c, d]}\n" FOUR;

const struct problem_def uneven_problems[] = {
    INSTANCE_ROWS(decoy, five, .fn_observe = decoy_observe),
    INSTANCE_ROWS(rising, five, .fn_observe = rising_observe),
    INSTANCE_ROWS(kinds, kind_and_four, .fn_observe = kinds_observe),
    INSTANCE_ROWS(calm, five, .fn_observe = calm_observe),
    INSTANCE_ROWS(tails, six, .fn_observe = tails_observe),
    INSTANCE_ROWS(decoys, five, .fn_observe = decoys_observe),
    {0},
};
