/* Functions of the normal distribution that stay accurate far into the tails.
 *
 * log h and its derivatives are those of the logarithm of expected improvement: S. Ament, S.
 * Daulton, D. Eriksson, M. Balandat, E. Bakshy, "Unexpected improvements to expected improvement
 * for Bayesian optimization", NeurIPS 2023. Checked against 60 digits in
 * tests/search/regression/test_special.c. All pure; NaN gives NaN. */
#ifndef ASSAY_SEARCH_REGRESSION_SPECIAL_H
#define ASSAY_SEARCH_REGRESSION_SPECIAL_H

#include <stddef.h>

/* exp(x^2) erfc(x), relative error below 1e-14 for x >= -20; infinite below about -26.6. */
double gp_erfcx(double x);

/* Standard normal density, distribution, log distribution and quantile. gp_norm_quantile(p) is for
 * 0 < p < 1; 0 gives -infinity and 1 infinity. */
double gp_norm_pdf(double x);
double gp_norm_cdf(double x);
double gp_norm_log_cdf(double x);
double gp_norm_quantile(double p);

/* log Phi(x), and *ret_slope = phi(x) / Phi(x), its derivative. */
double gp_norm_log_cdf_slope(double x, double *ret_slope);

/* log h(u), h(u) = phi(u) + u Phi(u): expected improvement is sigma h((best - mean) / sigma) where
 * small is good. *ret_pdf_h = phi(u) / h(u) and *ret_cdf_h = Phi(u) / h(u), which is d log h / du;
 * with them d log EI = (pdf_h d sigma - cdf_h d mean) / sigma. */
double gp_log_h(double u, double *ret_pdf_h, double *ret_cdf_h);

/* ret[i] = exp(x[i]) for x[i] <= 0, within 2 units in the last place; below -708 it is 0. The two
 * may be the same array. NaN gives NaN. */
void gp_vec_exp(const double *x, size_t n, double *ret);

#endif
