/* Output transforms (warp.h).
 *
 * The transform is stored as knots: the distinct observed values and their transformed values. Both
 * directions interpolate between neighbouring knots, so that every finite value has a place. Values
 * are scaled by a power of two first: this is exact, and keeps sums and squares from overflowing
 * even at 1e308. The half-rank keeps the good half as it is, because distances matter there, and
 * replaces the bad half by normal scores, because a diverged value should count as bad but not as
 * far. */
#include "search/regression/warp.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/number.h"

#include "search/regression/special.h"

#define FIRST 20 /* values; they limit the cut when they are at most half of all */
#define FIRST_WIDE 20.0
#define SCALED_MOST 0x1p400 /* of a value divided by 2^exponent: squares do not overflow */

/* A distinct observed value and its transformed value. */
struct knot {
    double y; /* divided by 2^exponent, so that no sum of them overflows */
    double v; /* transformed and standardised */
};

struct gp_warp {
    gp_warp_kind kind;
    int exponent;
    double *values;     /* n */
    struct knot *knots; /* distinct finite values, ascending; v ascends with y */
    size_t n, n_knots;
    double least, mean, sd; /* of the plain kind: v = (y - least - mean) / sd */
};

void gp_warp_free(struct gp_warp *w)
{
    if (!w)
        return;
    free(w->values);
    free(w->knots);
    free(w);
}

const double *gp_warp_values(const struct gp_warp *w)
{
    return w->values;
}

bool gp_standardise(double *v, size_t n, double *ret_mean, double *ret_deviation)
{
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (v[i] - mean) * (v[i] - mean) / (double)n;
    double deviation = sqrt(square);
    if (!isfinite(square) || !(deviation > 0))
        return false;
    for (size_t i = 0; i < n; i++)
        v[i] = (v[i] - mean) / deviation;
    *ret_mean = mean;
    *ret_deviation = deviation;
    return true;
}

/* The quantile of n > 0 ascending values, by linear interpolation. */
static double quantile(const double *sorted, size_t n, double p)
{
    double place = p * (double)(n - 1);
    size_t i = (size_t)place;
    double rest = place - (double)i;
    return i + 1 < n ? sorted[i] + rest * (sorted[i + 1] - sorted[i]) : sorted[i];
}

static double scale_value(const struct gp_warp *w, double y)
{
    return fmin(ldexp(y, -w->exponent), SCALED_MOST);
}

/* Collect the finite values, scaled and ascending. Returns how many. The better half sets the
 * scale, so that a diverged trial of 1e308 does not press all others below the least double. */
static size_t sort_finite(struct gp_warp *w, const double *y, double *ret_sorted)
{
    double most = 0;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (isfinite(y[i]))
            ret_sorted[n++] = y[i];
    qsort(ret_sorted, n, sizeof(double), as_order_f64);
    for (size_t i = 0; i < n && (i <= n / 2 || most == 0); i++)
        most = fmax(most, fabs(ret_sorted[i]));
    frexp(most, &w->exponent);
    for (size_t i = 0; i < n; i++)
        ret_sorted[i] = scale_value(w, ret_sorted[i]);
    return n;
}

/* Index of the knot with this y, or of the last one below it; knot 0 if all are above. */
static size_t knot_before(const struct gp_warp *w, double y)
{
    size_t lo = 0, hi = w->n_knots;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->knots[mid].y <= y)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* The spread of the good half, up to the median: the root mean square distance of its distinct
 * values from the median. If it has only one distinct value, all distinct values count. */
static double good_half_sd(const struct gp_warp *w, double median)
{
    for (int all = 0; all < 2; all++) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = 0; i < w->n_knots; i++) {
            double y = w->knots[i].y - median;
            if (all || y <= 0) {
                sum += y * y;
                count++;
            }
        }
        if (count > 0 && sum > 0)
            return sqrt(sum / (double)count);
    }
    return 0;
}

/* Values worse than the median become normal scores of the dense rank, on the scale of the good
 * half. Then the logarithm is applied. knots[].v is y on entry. On exit it is from -0.5 (best) to
 * 0.5, not yet standardised. */
static void half_rank(struct gp_warp *w, double median)
{
    double sd = good_half_sd(w, median);
    size_t worse = 0;
    bool has_median = false;
    for (size_t i = 0; i < w->n_knots; i++) {
        worse += w->knots[i].y > median ? 1 : 0;
        has_median = has_median || w->knots[i].y == median;
    }
    double below = (double)worse + (has_median ? 0.5 : 0);
    for (size_t i = w->n_knots - worse; i < w->n_knots; i++) {
        double rank = (double)(w->n_knots - i); /* 1 = worst */
        w->knots[i].v = median - sd * gp_norm_quantile(0.5 * (rank - 0.5) / below);
    }
    double lowest = w->knots[0].v, range = w->knots[w->n_knots - 1].v - lowest;
    for (size_t i = 0; i < w->n_knots; i++) {
        double place = range > 0 ? (w->knots[i].v - lowest) / range : 0;
        w->knots[i].v = range > 0 ? log1p(place * 0.5) / log(1.5) - 0.5 : 0;
    }
}

/* The value at which the plain kind cuts. If the quarter from the first quartile to the median is
 * empty, the whole better half measures the spread. If that is empty too, there is no cut. */
static double cut_above(const double *sorted, size_t n, double median)
{
    double spread = median - quantile(sorted, n, 0.25);
    if (!(spread > 0))
        spread = median - sorted[0];
    return spread > 0 ? median + 5 * spread : INFINITY;
}

/* The lowest place of a cut. When a sweep stands still, more than half of its values lie within a
 * hair of the best, and a cut above them would make all others equal. So the first values, which
 * came before, count: their first quartile, and 20 times its distance from the best. */
static double least_cut(const struct gp_warp *w, const double *y, double best)
{
    double first[FIRST];
    size_t n = 0;
    for (size_t i = 0; i < FIRST && w->n >= 2 * FIRST; i++)
        if (isfinite(y[i]))
            first[n++] = scale_value(w, y[i]);
    if (n == 0)
        return -INFINITY;
    qsort(first, n, sizeof *first, as_order_f64);
    double quartile = quantile(first, n, 0.25);
    return quartile + FIRST_WIDE * (quartile - best);
}

/* Shift and scale to mean 0, deviation 1; the knots as well. It first subtracts the least value,
 * because these differences are exact if all values lie close together, far from 0. */
static void standardize_knots(struct gp_warp *w)
{
    double least = w->n > 0 ? w->values[0] : 0, mean = 0, square = 0;
    for (size_t i = 1; i < w->n; i++)
        least = fmin(least, w->values[i]);
    for (size_t i = 0; i < w->n; i++)
        mean += (w->values[i] - least) / (double)w->n;
    for (size_t i = 0; i < w->n; i++) {
        double off = w->values[i] - least - mean;
        square += off * off / (double)w->n;
    }
    double sd = sqrt(square);
    for (size_t i = 0; i < w->n; i++)
        w->values[i] = sd > 0 ? (w->values[i] - least - mean) / sd : 0;
    for (size_t i = 0; i < w->n_knots; i++)
        w->knots[i].v = sd > 0 ? (w->knots[i].v - least - mean) / sd : 0;
    w->least = least;
    w->mean = mean;
    w->sd = sd;
}

static void transform_knots(struct gp_warp *w, const double *y, const double *sorted, size_t finite)
{
    double median = finite > 0 ? quantile(sorted, finite, 0.5) : 0, bad = 0;
    for (size_t i = 0; i < finite; i++)
        if (w->n_knots == 0 || sorted[i] != w->knots[w->n_knots - 1].y)
            w->knots[w->n_knots++] = (struct knot){sorted[i], sorted[i]};
    double cut = INFINITY;
    if (finite > 0 && w->kind == WARP_HALF_RANK) {
        half_rank(w, median);
        double best = w->knots[0].v, worst = w->knots[w->n_knots - 1].v;
        bad = worst + 0.5 * (worst - best) + 1;
    } else if (finite > 0) {
        cut = cut_above(sorted, finite, median);
        if (w->kind == WARP_PLAIN_WIDE)
            cut = fmax(cut, least_cut(w, y, sorted[0]));
        bad = fmin(sorted[finite - 1], cut);
    }
    for (size_t i = 0; i < w->n; i++) {
        double at = scale_value(w, y[i]);
        w->values[i] = isfinite(y[i]) ? fmin(w->knots[knot_before(w, at)].v, cut) : bad;
    }
    standardize_knots(w);
}

as_status gp_warp_create(gp_warp_kind kind, const double *y, size_t n, struct gp_warp **ret,
                         struct as_err *err)
{
    AS_AUTO(gp_warp_freep) struct gp_warp *w = as_calloc(1, sizeof(*w));
    AS_AUTO(as_freep) double *sorted = as_calloc(n, sizeof(double));
    if (w) {
        w->kind = kind;
        w->n = n;
        w->values = as_calloc(n, sizeof(double));
        w->knots = as_calloc(n, sizeof(struct knot));
    }
    if (!w || !sorted || !w->values || !w->knots)
        return as_fail(err, AS_E_NOMEM, "out of memory for the transform of %zu values", n);
    transform_knots(w, y, sorted, sort_finite(w, y, sorted));
    *ret = as_steal(w);
    return AS_OK;
}

/* The line through knots i and i+1, or the constant if there is none. */
static double interpolate_knots(const struct gp_warp *w, size_t i, double y)
{
    const struct knot *a = &w->knots[i], *b = a + 1;
    return a->v + (b->v - a->v) * ((y - a->y) / (b->y - a->y));
}

double gp_warp_forward(const struct gp_warp *w, double y)
{
    double at = scale_value(w, y);
    if (w->n_knots < 2 || w->sd == 0)
        return w->n_knots > 0 ? w->knots[0].v : 0;
    if (w->kind != WARP_HALF_RANK)
        return (at - w->least - w->mean) / w->sd;
    size_t i = knot_before(w, at);
    return w->knots[i].y == at ? w->knots[i].v
                               : interpolate_knots(w, i + 1 < w->n_knots ? i : i - 1, at);
}

double gp_warp_forward_slope(const struct gp_warp *w, double y)
{
    if (w->n_knots < 2 || w->sd == 0)
        return 0;
    if (w->kind != WARP_HALF_RANK)
        return ldexp(1 / w->sd, -w->exponent);
    size_t i = knot_before(w, scale_value(w, y));
    const struct knot *a = &w->knots[i + 1 < w->n_knots ? i : i - 1], *b = a + 1;
    return ldexp((b->v - a->v) / (b->y - a->y), -w->exponent);
}

/* The segment that v lies in or beyond: the last i with knots[i].v <= v that has a successor. */
static size_t segment_of(const struct gp_warp *w, double v)
{
    size_t lo = 0, hi = w->n_knots - 1;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->knots[mid].v <= v)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static double unscale_value(const struct gp_warp *w, double y)
{
    return fmin(fmax(ldexp(y, w->exponent), -DBL_MAX), DBL_MAX);
}

double gp_warp_inverse(const struct gp_warp *w, double v)
{
    if (w->n_knots < 2 || w->sd == 0)
        return w->n_knots > 0 ? unscale_value(w, w->knots[0].y) : 0;
    if (w->kind != WARP_HALF_RANK)
        return unscale_value(w, w->least + (w->mean + v * w->sd));
    const struct knot *a = &w->knots[segment_of(w, v)], *b = a + 1;
    if (!(b->v > a->v))
        return unscale_value(w, a->y);
    return unscale_value(w, a->y + (b->y - a->y) * ((v - a->v) / (b->v - a->v)));
}

double gp_warp_inverse_slope(const struct gp_warp *w, double v)
{
    if (w->n_knots < 2 || w->sd == 0)
        return 0;
    if (w->kind != WARP_HALF_RANK)
        return unscale_value(w, w->sd);
    const struct knot *a = &w->knots[segment_of(w, v)], *b = a + 1;
    return b->v > a->v ? unscale_value(w, (b->y - a->y) / (b->v - a->v)) : 0;
}
