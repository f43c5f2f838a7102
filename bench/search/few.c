/* Spaces of 33 to 38 parameters of which few matter, and which say nothing about themselves:
 *   few     one choice among five decides, and the best value looks worst until its numbers are
 *           right; which two to four numbers matter depends on the value, and one of them is common
 *           to all values; all others have a small effect
 *   ledge   a metric of steps; two choices decide together, three numbers matter under all values,
 *           and nothing else has any effect
 * Instances 1 and 2 are for tuning, 3 and 4 for reports. The functions are this benchmark's own. */
#include <math.h>

#include "bench/search/problems_priv.h"

/* A number's kind follows from its index among the numbers, modulo 4. */
enum scale { UNIT_SCALE, RATE_SCALE, COUNT_SCALE, SIZE_SCALE, SCALES };

#define RATE_LEAST 1e-5
#define COUNT_MOST 20.0
#define SIZE_MOST 1024.0

/* The place of a number in [0, 1]. */
static double place_of(unsigned number, double v)
{
    switch (number % SCALES) {
    case RATE_SCALE:
        return 1 - log(v) / log(RATE_LEAST);
    case COUNT_SCALE:
        return v / COUNT_MOST;
    case SIZE_SCALE:
        return log(v) / log(SIZE_MOST);
    default:
        return v;
    }
}

/* The number whose place is nearest to u. */
static double value_at(unsigned number, double u)
{
    switch (number % SCALES) {
    case RATE_SCALE:
        return pow(RATE_LEAST, 1 - u);
    case COUNT_SCALE:
        return round(COUNT_MOST * u);
    case SIZE_SCALE:
        return round(pow(SIZE_MOST, u));
    default:
        return u;
    }
}

static double reachable(unsigned number, double u)
{
    return place_of(number, value_at(number, u));
}

/* Far from the middle, or near it. */
static double place_by(double u, bool is_far)
{
    if (is_far)
        return u < 0.5 ? 0.05 + 0.3 * u : 0.65 + 0.3 * u;
    return 0.3 + 0.4 * u;
}

/* ---- few ---- */

#define FEW_VALUES 5
#define FEW_CHOICES 3 /* then the numbers */
#define FEW_NUMBERS 31

static unsigned few_role(const struct problem *p, unsigned v)
{
    return (v + 2 * instance_of(p)) % FEW_VALUES;
}

static unsigned few_count(unsigned role)
{
    return role == 0 ? 3 : 2 + role % 3;
}

/* The i-th number that matters under value v: the first is the same under all values. */
static unsigned few_number(const struct problem *p, unsigned v, unsigned i)
{
    unsigned first = (unsigned)(instance_draw(p, 140, 0) * FEW_NUMBERS);
    unsigned own = 1 + (unsigned)(instance_draw(p, 141, v) * 9);
    return i == 0 ? first : (first + own + 10 * (i - 1)) % FEW_NUMBERS;
}

static double few_place(const struct problem *p, unsigned v, unsigned i)
{
    double u = place_by(instance_draw(p, 142 + v, i), few_role(p, v) == 0);
    return reachable(few_number(p, v, i), u);
}

static double few(const struct problem *p, const double *x)
{
    static const double base[FEW_VALUES] = {0, 0.12, 0.17, 0.22, 0.3},
                        depth[FEW_VALUES] = {0.7, 0.3, 0.25, 0.3, 0.2};
    unsigned v = (unsigned)x[0], role = few_role(p, v);
    const double *numbers = x + FEW_CHOICES;
    double sum = 0, rest = 0.02 * (((unsigned)x[1] + instance_of(p)) % 3);
    for (unsigned j = 0; j < FEW_NUMBERS; j++)
        rest += 0.003 * square(place_of(j, numbers[j]) - reachable(j, 0.5));
    for (unsigned i = 0; i < few_count(role); i++) {
        unsigned j = few_number(p, v, i);
        double u = place_of(j, numbers[j]);
        sum += square(u - few_place(p, v, i));
        rest -= 0.003 * square(u - reachable(j, 0.5));
    }
    return base[role] + depth[role] * (1 - exp(-3 * sum)) + fmax(0, rest);
}

static void best_few(const struct problem *p, double *x)
{
    x[0] = 0;
    while (few_role(p, (unsigned)x[0]) != 0)
        x[0]++;
    x[1] = (3 - instance_of(p) % 3) % 3;
    x[2] = 0;
    for (unsigned j = 0; j < FEW_NUMBERS; j++)
        x[FEW_CHOICES + j] = value_at(j, 0.5);
    for (unsigned i = 0; i < few_count(0); i++) {
        unsigned j = few_number(p, (unsigned)x[0], i);
        x[FEW_CHOICES + j] = value_at(j, few_place(p, (unsigned)x[0], i));
    }
}

/* ---- ledge ---- */

#define LEDGE_STEPS 40.0
#define LEDGE_NUMBERS 33

/* From 0, the best: of the first choice, and of the second one under a value of the first. */
static unsigned ledge_role(const struct problem *p, unsigned v)
{
    return (v + instance_of(p)) % 4;
}

static unsigned ledge_second(const struct problem *p, unsigned v, unsigned w)
{
    return (w + v + instance_of(p)) % 3;
}

static unsigned ledge_number(const struct problem *p, unsigned i)
{
    return ((unsigned)(instance_draw(p, 150, 0) * LEDGE_NUMBERS) + 11 * i + i) % LEDGE_NUMBERS;
}

static double ledge_place(const struct problem *p, unsigned v, unsigned i)
{
    double u = place_by(instance_draw(p, 151 + v, i), ledge_role(p, v) == 0);
    return reachable(ledge_number(p, i), u);
}

/* Parameters: four choices, of which the last two do nothing, a switch that does nothing, numbers.
 */
#define LEDGE_CHOICES 5

static double ledge(const struct problem *p, const double *x)
{
    static const double base[4] = {0, 0.15, 0.2, 0.25}, depth[4] = {0.6, 0.25, 0.3, 0.2};
    unsigned v = (unsigned)x[0], role = ledge_role(p, v);
    double sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        unsigned j = ledge_number(p, i);
        sum += square(place_of(j, x[LEDGE_CHOICES + j]) - ledge_place(p, v, i));
    }
    double f =
        base[role] + depth[role] * (1 - exp(-3 * sum)) + 0.06 * ledge_second(p, v, (unsigned)x[1]);
    return floor(LEDGE_STEPS * f) / LEDGE_STEPS;
}

static void best_ledge(const struct problem *p, double *x)
{
    for (unsigned i = 0; i < LEDGE_CHOICES; i++)
        x[i] = 0;
    while (ledge_role(p, (unsigned)x[0]) != 0)
        x[0]++;
    while (ledge_second(p, (unsigned)x[0], (unsigned)x[1]) != 0)
        x[1]++;
    for (unsigned j = 0; j < LEDGE_NUMBERS; j++)
        x[LEDGE_CHOICES + j] = value_at(j, 0.5);
    for (unsigned i = 0; i < 3; i++) {
        unsigned j = ledge_number(p, i);
        x[LEDGE_CHOICES + j] = value_at(j, ledge_place(p, (unsigned)x[0], i));
    }
}

/* ---- the list ---- */

#define FOUR(n)                                                                                    \
    "share" n ": {type: float, min: 0, max: 1}\n"                                                  \
    "rate" n ": {type: float, min: 1.0e-5, max: 1, scale: log}\n"                                  \
    "count" n ": {type: int, min: 0, max: 20}\n"                                                   \
    "size" n ": {type: int, min: 1, max: 1024, scale: log}\n"
#define TWENTY_EIGHT FOUR("1") FOUR("2") FOUR("3") FOUR("4") FOUR("5") FOUR("6") FOUR("7")

static const char few_space[] = "kind: {type: categorical, values: [a, b, c, d, e]}\n"
                                "mode: {type: categorical, values: [f, g, h]}\n"
                                "colour: {type: categorical, values: [red, blue]}\n" TWENTY_EIGHT
                                "share8: {type: float, min: 0, max: 1}\n"
                                "rate8: {type: float, min: 1.0e-5, max: 1, scale: log}\n"
                                "count8: {type: int, min: 0, max: 20}\n";
static const char ledge_space[] =
    "kind: {type: categorical, values: [a, b, c, d]}\n"
    "mode: {type: categorical, values: [f, g, h]}\n"
    "colour: {type: categorical, values: [red, blue, green]}\n"
    "shape: {type: categorical, values: [round, square, long, flat]}\n"
    "lit: {type: bool}\n" TWENTY_EIGHT FOUR("8") "share9: {type: float, min: 0, max: 1}\n";

const struct problem_def few_problems[] = {
    INSTANCE_ROWS(few, few_space), INSTANCE_ROWS(ledge, ledge_space), {0}};
