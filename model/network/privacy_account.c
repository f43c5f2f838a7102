#include "model/network/privacy_account.h"

#include <math.h>

/* log(e^a + e^b) */
static double log_add(double a, double b)
{
    double most = a > b ? a : b, least = a > b ? b : a;
    return most + log1p(exp(least - most));
}

static double log_binomial(int n, int k)
{
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
}

double privacy_divergence(double q, double noise, int order)
{
    double per_square = 1 / (2 * noise * noise);
    if (q >= 1)
        return order * per_square;
    double sum = order * log1p(-q);
    for (int k = 1; k <= order; k++)
        sum = log_add(sum, log_binomial(order, k) + (order - k) * log1p(-q) + k * log(q) +
                               (double)k * (k - 1) * per_square);
    return sum / (order - 1);
}

void privacy_account_add(struct privacy_account *a, double q, double noise, double steps)
{
    for (int order = 2; steps > 0 && order <= PRIVACY_MAX_ORDER; order++)
        a->divergence[order] += steps * privacy_divergence(q, noise, order);
}

double privacy_account_epsilon(const struct privacy_account *a, double delta)
{
    double least = INFINITY;
    for (int order = 2; order <= PRIVACY_MAX_ORDER; order++) {
        double e = a->divergence[order] + log1p(-1.0 / order) -
                   (log(delta) + log((double)order)) / (order - 1);
        least = e < least ? e : least;
    }
    return least > 0 ? least : 0;
}

double privacy_epsilon(const struct train_privacy_spec *p, size_t n_train, size_t batch_rows,
                       int64_t epochs)
{
    struct privacy_account a = {0};
    size_t rows = batch_rows < n_train ? batch_rows : n_train;
    size_t whole = n_train / rows, left = n_train % rows;
    privacy_account_add(&a, (double)rows / (double)n_train, p->noise,
                        (double)epochs * (double)whole);
    if (left > 0)
        privacy_account_add(&a, (double)left / (double)n_train, p->noise, (double)epochs);
    return privacy_account_epsilon(&a, p->delta);
}
