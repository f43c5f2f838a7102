/* A row's duals move towards u = -gradient of its loss at z = W^T x, by the part s of the way that
 * is best for a lower bound of the dual: with losses that are 1/g-smooth, and q = |u - a|^2
 *
 *   s = (loss(z) + conjugate(-a) + z a + g/2 q) / (q (g + workers |x|^2 / (lambda n)))
 *
 * but at most 1. For squares the bound is the dual itself. Softmax is 1/2-smooth (g = 2), because
 * the largest eigenvalue of diag(p) - p p^T is at most 1/2; the mean over m squares is 2/m-smooth
 * (g = m/2). The duals of a row of softmax are y - u' with u' in the simplex, and stay so, because
 * they move along a line within it. */
#include "trial-runner/distributed/sdca.h"

#include <math.h>

/* z = W^T x; returns |x|^2. Both with the constant 1. */
static double product(const struct sdca_problem *p, const float *x, const double *w, double *z)
{
    const double *bias = w + p->in * p->out;
    double square = 1;
    for (size_t o = 0; o < p->out; o++)
        z[o] = bias[o];
    for (size_t i = 0; i < p->in; i++, w += p->out) {
        double v = (double)x[i];
        square += v * v;
        for (size_t o = 0; v != 0 && o < p->out; o++)
            z[o] += v * w[o];
    }
    return square;
}

/* w += scale x change^T. */
static void add_outer(const struct sdca_problem *p, const float *x, const double *change,
                      double scale, double *w)
{
    for (size_t i = 0; i <= p->in; i++, w += p->out) {
        double v = i < p->in ? scale * (double)x[i] : scale;
        for (size_t o = 0; v != 0 && o < p->out; o++)
            w[o] += v * change[o];
    }
}

static double largest(const double *z, size_t n)
{
    double most = z[0];
    for (size_t o = 1; o < n; o++)
        most = z[o] > most ? z[o] : most;
    return most;
}

/* The loss at z, and z = u. */
static double softmax_loss(size_t n, const float *y, double *z)
{
    double most = largest(z, n), sum = 0, own = 0;
    for (size_t o = 0; o < n; o++) {
        own += (double)y[o] * (z[o] - most);
        z[o] = exp(z[o] - most);
        sum += z[o];
    }
    for (size_t o = 0; o < n; o++)
        z[o] = (double)y[o] - z[o] / sum;
    return log(sum) - own;
}

static double squares_loss(size_t n, const float *y, double *z)
{
    double sum = 0;
    for (size_t o = 0; o < n; o++) {
        double e = (double)y[o] - z[o];
        sum += e * e;
        z[o] = 2 * e / (double)n;
    }
    return sum / (double)n;
}

static double loss_of(const struct sdca_problem *p, const float *y, double *z)
{
    return p->loss == SDCA_SOFTMAX ? softmax_loss(p->out, y, z) : squares_loss(p->out, y, z);
}

static double conjugate_of(const struct sdca_problem *p, const float *y, const float *alpha)
{
    double sum = 0;
    for (size_t o = 0; o < p->out; o++) {
        double a = (double)alpha[o], rest = (double)y[o] - a;
        if (p->loss == SDCA_SQUARES)
            sum += (double)p->out / 4 * a * a - a * (double)y[o];
        else if (rest > 0)
            sum += rest * log(rest);
    }
    return sum;
}

void sdca_row(const struct sdca_problem *p, const float *x, const float *y, const double *w,
              const float *alpha, double *change)
{
    double g = p->loss == SDCA_SOFTMAX ? 2 : (double)p->out / 2, z_a = 0, square = 0;
    double x_square = product(p, x, w, change);
    for (size_t o = 0; o < p->out; o++)
        z_a += change[o] * (double)alpha[o];
    double fall = loss_of(p, y, change) + conjugate_of(p, y, alpha) + z_a;
    for (size_t o = 0; o < p->out; o++) {
        change[o] -= (double)alpha[o];
        square += change[o] * change[o];
    }
    double s = (fall + g / 2 * square) / (square * (g + p->workers * x_square / p->lambda_n));
    s = !(s > 0) ? 0 : s > 1 ? 1 : s; /* 0 / 0: there already */
    for (size_t o = 0; o < p->out; o++)
        change[o] *= s;
}

void sdca_pass(const struct sdca_problem *p, const struct sdca_rows *rows, const int32_t *order,
               double *w, float *alpha, double *change)
{
    for (size_t k = 0; k < rows->n; k++) {
        size_t i = (size_t)order[k];
        const float *x = rows->x + i * p->in;
        float *a = alpha + i * p->out;
        sdca_row(p, x, rows->y + i * p->out, w, a, change);
        for (size_t o = 0; o < p->out; o++) {
            float before = a[o];
            a[o] = (float)((double)before + change[o]);
            change[o] = (double)a[o] - (double)before;
        }
        add_outer(p, x, change, p->workers / p->lambda_n, w);
    }
}

void sdca_add_weights(const struct sdca_problem *p, const struct sdca_rows *rows,
                      const float *alpha, double *w)
{
    for (size_t i = 0; i < rows->n; i++) {
        const float *x = rows->x + i * p->in, *a = alpha + i * p->out;
        for (size_t k = 0; k <= p->in; k++) {
            double v = (k < p->in ? (double)x[k] : 1) / p->lambda_n;
            for (size_t o = 0; v != 0 && o < p->out; o++)
                w[k * p->out + o] += v * (double)a[o];
        }
    }
}

struct sdca_values sdca_values(const struct sdca_problem *p, const struct sdca_rows *rows,
                               const double *w, const float *alpha, double *z)
{
    struct sdca_values sum = {0};
    for (size_t i = 0; i < rows->n; i++) {
        (void)product(p, rows->x + i * p->in, w, z);
        sum.loss += loss_of(p, rows->y + i * p->out, z);
        sum.conjugate += conjugate_of(p, rows->y + i * p->out, alpha + i * p->out);
    }
    return sum;
}
