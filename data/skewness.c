#include "data/skewness.h"

#include <math.h>

#define SKEWED 1.0     /* of an exponential distribution it is 2 */
#define LEFT 0.5       /* of the skewness, at most */
#define FEW_VALUES 3.0 /* of which the skewness says something */

static void add(struct skewness_sums *s, double value)
{
    double n = ++s->n, d = value - s->mean, step = d / n, square = d * step * (n - 1);
    s->mean += step;
    s->m3 += square * step * (n - 2) - 3 * step * s->m2;
    s->m2 += square;
}

void skewness_add(struct skewness *s, double value)
{
    add(&s->own, value);
    if (value > 0)
        add(&s->log, log(value));
    if (value >= 0)
        add(&s->log1p, log1p(value));
}

double skewness_of(const struct skewness_sums *sums)
{
    if (sums->n < FEW_VALUES || !(sums->m2 > 0))
        return 0;
    return sqrt(sums->n) * sums->m3 / (sums->m2 * sqrt(sums->m2));
}

target_transform skewness_transform(const struct skewness *s, double *ret_left)
{
    double own = skewness_of(&s->own), log_left = fabs(skewness_of(&s->log)),
           left = fabs(skewness_of(&s->log1p));
    bool all_above = s->log.n == s->own.n, none_below = s->log1p.n == s->own.n;
    target_transform t = TARGET_LOG1P;
    if (all_above && log_left <= left) {
        t = TARGET_LOG;
        left = log_left;
    }
    *ret_left = left;
    return none_below && own > SKEWED && left <= LEFT * own ? t : TARGET_AS_IS;
}
