/* Values and derivatives of the acquisitions, from the means and variances of the models. logEI
 * is a logarithm and UCB a warped value, so what is known beside the objective (probabilities of
 * constraints and failures, priors) is added as a logarithm and not multiplied (decisions 4007
 * and 4010). Tails are computed by regression/special.c without cancellation. */
#include "search/gp/acquisition.h"

#include <math.h>
#include <string.h>

#include "search/regression/special.h"

/* The penalty outside the region that may still hold a good value, and the number of deviations
 * that define that region (X. Song et al., "The Vizier Gaussian process bandit algorithm", arXiv
 * 2408.11527). */
#define PE_PENALTY 10.0
#define PE_MARGIN 0.5

/* Where a failure is likelier than not, it counts so many times more. logEI has no lower bound:
 * late in a sweep it is so low everywhere near the best trials that no weight keeps it from places
 * that it does not know, where most trials fail: a weight of 330 did not (decision 4007). */
#define LIKELY_FAILURE 30.0

/* Narrower than this many deviations, the mass between two ends is density times width. */
#define NARROW 1e-5

const char *acquisition_name(acquisition_kind k)
{
    static const char *const names[] = {"ucb", "logei", "pe", "ehvi", "feasibility"};
    return names[k];
}

static double ln_pdf(double x)
{
    return -0.5 * x * x - 0.91893853320467274178; /* ln sqrt(2 pi) */
}

/* ln (Phi(b) - Phi(a)) for a <= b, and its slopes by both. */
static double ln_between(double a, double b, double *da, double *db)
{
    if (a > 0) { /* use the mirror image, which avoids the cancellation 1 - 1 */
        double v = ln_between(-b, -a, db, da);
        *da = -*da;
        *db = -*db;
        return v;
    }
    double v;
    if (b - a < NARROW) {
        double mid = 0.5 * (a + b), width = fmax(b - a, 1e-300);
        v = ln_pdf(mid) + log(width);
        *da = -0.5 * mid - 1 / width;
        *db = -0.5 * mid + 1 / width;
        return v;
    }
    double lb = gp_norm_log_cdf(b), la = gp_norm_log_cdf(a);
    v = lb + log(-expm1(la - lb));
    *da = -exp(ln_pdf(a) - v);
    *db = exp(ln_pdf(b) - v);
    return v;
}

double acquisition_log_within(const struct outcome_bound *b, double mean, double sd, double *d_mean,
                              double *d_sd)
{
    double lo = (b->min - mean) / sd, hi = (b->max - mean) / sd, slope_lo = 0, slope_hi = 0, v = 0;
    *d_mean = *d_sd = 0;
    if (isfinite(lo) && isfinite(hi)) {
        v = ln_between(lo, hi, &slope_lo, &slope_hi);
    } else if (isfinite(hi)) {
        v = gp_norm_log_cdf_slope(hi, &slope_hi);
    } else if (isfinite(lo)) {
        v = gp_norm_log_cdf_slope(-lo, &slope_lo);
        slope_lo = -slope_lo;
    }
    *d_mean = -(slope_lo + slope_hi) / sd;
    if (isfinite(lo))
        *d_sd -= slope_lo * lo / sd;
    if (isfinite(hi))
        *d_sd -= slope_hi * hi / sd;
    return v;
}

static double log_ei(double best, double mean, double sd, double *d_mean, double *d_sd)
{
    double pdf_h, cdf_h, v = gp_log_h((best - mean) / sd, &pdf_h, &cdf_h) + log(sd);
    *d_mean = -cdf_h / sd;
    *d_sd = pdf_h / sd;
    return v;
}

static double exploration_value(double threshold, double mean, double sd, double *d_mean,
                                double *d_sd)
{
    double short_of = threshold - (mean - PE_MARGIN * sd);
    *d_mean = short_of < 0 ? -PE_PENALTY : 0;
    *d_sd = short_of < 0 ? 1 + PE_PENALTY * PE_MARGIN : 1;
    return sd + PE_PENALTY * fmin(0, short_of);
}

/* The acquisition's part for the objectives; the caller zeroes d_mean and d_sd. */
static double of_objectives(const struct acquisition *a, const double *mean, const double *sd,
                            double *d_mean, double *d_sd)
{
    switch (a->kind) {
    case ACQUISITION_UCB:
        d_mean[0] = -1;
        d_sd[0] = a->beta;
        return -mean[0] + a->beta * sd[0];
    case ACQUISITION_LOGEI:
        return log_ei(a->best, mean[0], sd[0], d_mean, d_sd);
    case ACQUISITION_PE:
        return exploration_value(a->threshold, mean[0], sd[0], d_mean, d_sd);
    case ACQUISITION_EHVI:
        return gp_ehvi_log(a->ehvi, mean, sd, d_mean, d_sd);
    case ACQUISITION_FEASIBILITY:
        break;
    }
    return 0;
}

/* What the probability that the trial completes adds, with its slopes. */
static double of_failures(const struct acquisition *a, const struct outcome_bound *limit,
                          double mean, double sd, double *d_mean, double *d_sd)
{
    double v = acquisition_log_within(limit, mean, sd, d_mean, d_sd), weight = a->failure_weight;
    double steep = LIKELY_FAILURE * (weight - 1), past = fmin(0, v + M_LN2), slope = weight;
    slope += past < 0 ? steep : 0;
    *d_mean *= slope;
    *d_sd *= slope;
    return weight * v + steep * past;
}

double acquisition_value(const struct acquisition *a, const double *mean, const double *sd,
                         double *d_mean, double *d_sd)
{
    double by_mean[ACQUISITION_MAX_MODELS] = {0}, by_sd[ACQUISITION_MAX_MODELS] = {0};
    size_t n = a->n_objectives + a->n_limits;
    double v = of_objectives(a, mean, sd, by_mean, by_sd);
    for (size_t i = 0, k = a->n_objectives; i < a->n_limits; i++, k++) {
        const struct outcome_bound *limit = &a->limits[i];
        bool is_of_failures = i + 1 == a->n_limits && a->failure_weight > 0;
        v += is_of_failures ? of_failures(a, limit, mean[k], sd[k], &by_mean[k], &by_sd[k])
                            : acquisition_log_within(limit, mean[k], sd[k], &by_mean[k], &by_sd[k]);
    }
    if (d_mean) {
        memcpy(d_mean, by_mean, n * sizeof *d_mean);
        memcpy(d_sd, by_sd, n * sizeof *d_sd);
    }
    return v;
}
