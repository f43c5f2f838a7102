/* The functions of the normal distribution that log h and its slope need, without cancellation.
 *
 * erfc is accurate near 0. Far in the tail it underflows, and differences of such values lose all
 * digits. There the continued fraction of Mills' ratio is used, whose leading terms cancel on
 * paper, so that only its rest T is computed. */
#include "search/regression/special.h"

#include <math.h>

#include "search/regression/vec_exp.h"

#define SQRT_2 1.4142135623730950488
#define SQRT_HALF_PI 1.2533141373155002512
#define INV_SQRT_2PI 0.39894228040143267794
#define HALF_LN_2PI 0.91893853320467274178

/* T(x) = 1/(x + 2/(x + 3/(x + ...))) of the continued fraction of Mills' ratio, M = Phi(-x)/phi(x)
 * = 1/(x + T) (Laplace; NIST DLMF 7.9.3). The number of terms was found by computing with 50
 * digits: from x = 2.8 on the rest is below rounding. */
static double mills_tail(double x)
{
    double t = 0;
    for (int k = 11 + (int)(560 / (x * x)); k > 1; k--)
        t = k / (x + t);
    return 1 / (x + t);
}

/* exp(x^2) to the last place. The rounding error of x^2 is multiplied by x^2, so it is
 * corrected. */
static double exp_square(double x)
{
    double s = x * x, low = fma(x, x, -s);
    return exp(s) * (1 + low);
}

double gp_erfcx(double x)
{
    if (x < -27)
        return INFINITY;
    if (!(x >= 2))
        return exp_square(x) * erfc(x);
    double u = x * SQRT_2;
    return 1 / (u + mills_tail(u)) / SQRT_HALF_PI;
}

double gp_norm_pdf(double x)
{
    return INV_SQRT_2PI * exp(-0.5 * x * x);
}

double gp_norm_cdf(double x)
{
    return 0.5 * erfc(-x / SQRT_2);
}

double gp_norm_log_cdf_slope(double x, double *ret_slope)
{
    if (x > -1) {
        double tail = 0.5 * erfc(x / SQRT_2); /* 1 - Phi */
        double value = x > 1 ? log1p(-tail) : log(gp_norm_cdf(x));
        *ret_slope = gp_norm_pdf(x) / gp_norm_cdf(x);
        return value;
    }
    double mills = SQRT_HALF_PI * gp_erfcx(-x / SQRT_2); /* Phi / phi */
    *ret_slope = 1 / mills;
    return -0.5 * x * x - HALF_LN_2PI + log(mills);
}

double gp_norm_log_cdf(double x)
{
    double slope;
    return gp_norm_log_cdf_slope(x, &slope);
}

double gp_log_h(double u, double *ret_pdf_h, double *ret_cdf_h)
{
    if (isnan(u)) {
        *ret_pdf_h = *ret_cdf_h = u;
        return u;
    }
    if (u > -1) {
        double pdf = gp_norm_pdf(u), cdf = gp_norm_cdf(u), h = pdf + u * cdf;
        *ret_pdf_h = pdf / h;
        *ret_cdf_h = isinf(u) ? 0 : cdf / h;
        return log(h);
    }
    /* h = phi q with q = 1 - |u| M(|u|). Far out the difference cancels, so it is computed as 1 - x
     * M = M T, which does not cancel.
     */
    double x = -u, mills, q;
    if (x < 3) {
        mills = SQRT_HALF_PI * gp_erfcx(x / SQRT_2);
        q = 1 - x * mills;
    } else {
        double t = mills_tail(x);
        mills = 1 / (x + t);
        q = mills * t;
    }
    *ret_pdf_h = 1 / q;
    *ret_cdf_h = mills / q;
    return -0.5 * u * u - HALF_LN_2PI + log(q);
}

/* One of the three rational approximations of AS 241: num(r) / den(r), highest power first. */
static double rational_ratio(const double num[8], const double den[8], double r)
{
    double n = num[0], d = den[0];
    for (int i = 1; i < 8; i++) {
        n = n * r + num[i];
        d = d * r + den[i];
    }
    return n / d;
}

/* M. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Appl. Statist.
 * 37 (1988), routine PPND16: relative error about 1e-16. */
double gp_norm_quantile(double p)
{
    static const double centre_num[8] = {
        2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080};
    static const double centre_den[8] = {
        5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
        5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0};
    static const double middle_num[8] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                         0.241780725177450611770,   1.27045825245236838258,
                                         3.64784832476320460504,    5.76949722146069140550,
                                         4.63033784615654529590,    1.42343711074968357734};
    static const double middle_den[8] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                         1.51986665636164571966e-2, 0.148103976427480074590,
                                         0.689767334985100004550,   1.67638483018380384940,
                                         2.05319162663775882187,    1.0};
    static const double tail_num[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                       1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                       0.296560571828504891230,   1.78482653991729133580,
                                       5.46378491116411436990,    6.65790464350110377720};
    static const double tail_den[8] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                       1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                       1.48753612908506148525e-2,  0.136929880922735805310,
                                       0.599832206555887937690,    1.0};
    if (!(p > 0 && p < 1))
        return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    double q = p - 0.5;
    if (fabs(q) <= 0.425)
        return q * rational_ratio(centre_num, centre_den, 0.180625 - q * q);
    double r = sqrt(-log(q < 0 ? p : 1 - p));
    double x = r <= 5 ? rational_ratio(middle_num, middle_den, r - 1.6)
                      : rational_ratio(tail_num, tail_den, r - 5);
    return q < 0 ? -x : x;
}

CPU_CLONES void gp_vec_exp(const double *x, size_t n, double *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = vec_exp_nonpos(x[i]);
}
