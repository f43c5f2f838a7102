#include "search/stopping/chance.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define CUT 5.0 /* interquartile-like distances above the median */

void chance_add(struct chance_pairs *p, double here, double last)
{
    p->here[p->next] = here;
    p->last[p->next] = last;
    p->next = (p->next + 1) % CHANCE_LATEST;
    p->n += p->n < CHANCE_LATEST;
}

/* The largest cost that counts as it is: the median plus CUT times the distance to the lower
 * quartile. INFINITY if that distance is 0. */
static double cut_of(const double *costs, size_t n)
{
    double sorted[CHANCE_LATEST];
    memcpy(sorted, costs, n * sizeof *costs);
    qsort(sorted, n, sizeof *sorted, as_order_f64);
    double median = sorted[n / 2], distance = median - sorted[n / 4];
    if (isnan(distance) || !isfinite(median))
        return INFINITY;
    return distance > 0 ? median + CUT * distance : INFINITY;
}

static double cut(double cost, double most)
{
    return isnan(cost) || cost > most ? most : cost;
}

struct line {
    double x_mean, y_mean, slope, variance, x_sum; /* variance: of the residuals */
    size_t n;
};

static bool fit_line(const struct chance_pairs *p, double x_cut, double y_cut, struct line *l)
{
    double sxx = 0, sxy = 0, syy = 0;
    *l = (struct line){.n = p->n};
    for (size_t i = 0; i < p->n; i++) {
        l->x_mean += cut(p->here[i], x_cut) / (double)p->n;
        l->y_mean += cut(p->last[i], y_cut) / (double)p->n;
    }
    if (!isfinite(l->x_mean) || !isfinite(l->y_mean))
        return false;
    for (size_t i = 0; i < p->n; i++) {
        double x = cut(p->here[i], x_cut) - l->x_mean, y = cut(p->last[i], y_cut) - l->y_mean;
        sxx += x * x;
        sxy += x * y;
        syy += y * y;
    }
    l->slope = sxx > 0 ? sxy / sxx : 0;
    l->x_sum = sxx;
    l->variance = fmax(syy - l->slope * sxy, 0) / (double)(p->n - 2);
    return true;
}

double chance_below(const struct chance_pairs *p, double here, double best)
{
    struct line l;
    if (p->n < CHANCE_ENOUGH)
        return 1;
    double x_cut = cut_of(p->here, p->n), y_cut = cut_of(p->last, p->n);
    if (!fit_line(p, x_cut, y_cut, &l))
        return 1;
    double x = cut(here, x_cut) - l.x_mean;
    if (!isfinite(x))
        return isnan(here) || here > 0 ? 0 : 1;
    double mean = l.y_mean + l.slope * x;
    double spread = 1 + 1 / (double)l.n + (l.x_sum > 0 ? x * x / l.x_sum : 0);
    double deviation = sqrt(l.variance * spread);
    if (!(deviation > 0))
        return mean < best;
    return 0.5 * erfc((mean - best) / (deviation * sqrt(2)));
}
