/* The shift of a guide: by how much the good values of an earlier sweep have moved.
 *
 * Where an earlier sweep had its best learning rate at 0.1, the next one may have it at 0.05 and
 * resemble it otherwise. So the prediction is taken at x + shift: a column for each number that is
 * always active, with a normal prior. Given a shift, weight and constant are profiled out. The
 * energy that is left of the values is minimised by Gauss-Newton steps, from no shift and from the
 * best of a few drawn ones. The shift is taken only if it explains more than its freedom would by
 * chance, by Laplace's approximation of the evidence: ln det(1 + t^2 J'K^-1 J), with the prior's
 * deviation t and the Jacobian J. */
#include "search/gp/guide_priv.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/problem/draw.h"

#define SHIFT_DEVIATION 0.07 /* of a range */
#define SHIFT_LIMIT 0.25
#define SHIFT_MOST 64 /* columns */
#define SHIFT_STEPS 8
#define SHIFT_DRAWS 24
#define HALVINGS 4
#define LEAST_GAIN 1e-3 /* of the energy, for another step */

/* A shift's work. m moving columns. */
struct shifting {
    size_t m;
    double *slope;  /* [n x n_real] */
    double *jacobi; /* [m x n]: a times the slopes by the columns that move */
    double *solved; /* [(m + 1) x n]: K^-1 of them */
    double *hess;   /* [m x m] */
    double *step;   /* [m] */
    double *before; /* [n_real] */
    double *found;  /* [n_real] */
};

static void shifting_done(struct shifting *q)
{
    free(q->slope);
    free(q->jacobi);
    free(q->solved);
    free(q->hess);
    free(q->step);
    free(q->before);
    free(q->found);
}

/* In place, lower triangle, row-major; false: not positive definite. */
static bool factor(double *a, size_t m)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j <= i; j++) {
            double v = a[i * m + j] - guide_dot(a + i * m, a + j * m, j);
            if (i == j && !(v > 0))
                return false;
            a[i * m + j] = i == j ? sqrt(v) : v / a[j * m + j];
        }
    return true;
}

static void solve(const double *l, size_t m, double *b)
{
    for (size_t i = 0; i < m; i++)
        b[i] = (b[i] - guide_dot(l + i * m, b, i)) / l[i * m + i];
    for (size_t i = m; i-- > 0;) {
        for (size_t j = i + 1; j < m; j++)
            b[i] -= l[j * m + i] * b[j];
        b[i] /= l[i * m + i];
    }
}

/* Twice the energy that is left of y when guide k has the best weight, with the shift's prior; and
 * the weight. scratch: [n]. */
static double energy(const struct guides *g, size_t k, const struct whitening *w, double *scratch,
                     double *ret_weight)
{
    const double *v = g->values + k * w->n;
    memcpy(scratch, v, w->n * sizeof(double));
    gp_model_solve(w->model, scratch, 1, w->n);
    double own = guide_product(w, scratch, v, v), with = guide_product(w, scratch, v, w->y);
    double sum = guide_product(w, w->solved_y, w->y, w->y);
    *ret_weight = own > 1e-12 && with > 0 ? with / own : 0;
    for (size_t j = 0; j < w->c->n_real; j++)
        sum += g->shift[k][j] * g->shift[k][j] / (SHIFT_DEVIATION * SHIFT_DEVIATION);
    return sum - *ret_weight * with;
}

/* The Gauss-Newton step from here, and what the columns' freedom costs: ln det(1 + t^2 J'K^-1
 * J). */
static bool newton_step(const struct guides *g, size_t k, const struct whitening *w, double weight,
                        struct shifting *q, double *ret_freedom)
{
    size_t n = w->n, n_real = w->c->n_real, at = 0;
    double precision = 1 / (SHIFT_DEVIATION * SHIFT_DEVIATION);
    for (size_t j = 0; j < n_real; j++)
        if (g->shifts[j]) {
            for (size_t i = 0; i < n; i++)
                q->jacobi[at * n + i] = weight * q->slope[i * n_real + j];
            at++;
        }
    memcpy(q->solved, q->jacobi, q->m * n * sizeof(double));
    gp_model_solve(w->model, q->solved, q->m, n);
    const double *v = g->values + k * n;
    at = 0;
    for (size_t j = 0; j < n_real; j++) {
        if (!g->shifts[j])
            continue;
        const double *solved = q->solved + at * n, *own = q->jacobi + at * n;
        q->step[at] = guide_product(w, solved, own, w->y) -
                      weight * guide_product(w, solved, own, v) - precision * g->shift[k][j];
        for (size_t i = 0; i <= at; i++)
            q->hess[at * q->m + i] =
                guide_product(w, solved, own, q->jacobi + i * n) + (i == at ? precision : 0);
        at++;
    }
    if (!factor(q->hess, q->m))
        return false;
    solve(q->hess, q->m, q->step);
    *ret_freedom = 0;
    for (size_t i = 0; i < q->m; i++)
        *ret_freedom += 2 * log(q->hess[i * q->m + i] * SHIFT_DEVIATION);
    return true;
}

static void move(struct guides *g, size_t k, size_t n_real, const struct shifting *q, double share)
{
    size_t at = 0;
    for (size_t j = 0; j < n_real; j++)
        if (g->shifts[j])
            g->shift[k][j] =
                fmax(-SHIFT_LIMIT, fmin(SHIFT_LIMIT, q->before[j] + share * q->step[at++]));
}

/* Steps from the guide's shift to a local minimum. *ret_left: the energy there. */
static as_status descend_shift(struct guides *g, size_t k, const struct whitening *w,
                               struct shifting *q, double *ret_left, double *ret_freedom,
                               struct as_err *err)
{
    size_t n_real = w->c->n_real;
    double weight = 0, ignored;
    for (int step = 0; step < SHIFT_STEPS; step++) {
        as_status st = guide_evaluate(g, k, w, q->slope, err);
        if (st < 0)
            return st;
        double was = *ret_left = energy(g, k, w, q->solved, &weight), now = was, share = 1;
        if (!(weight > 0) || !newton_step(g, k, w, weight, q, ret_freedom))
            break;
        memcpy(q->before, g->shift[k], n_real * sizeof(double));
        for (int half = 0; half < HALVINGS && !(now < was); half++, share *= 0.5) {
            move(g, k, n_real, q, share);
            if ((st = guide_evaluate(g, k, w, NULL, err)) < 0)
                return st;
            now = energy(g, k, w, q->solved, &ignored);
        }
        if (now < was)
            *ret_left = now;
        else
            memcpy(g->shift[k], q->before, n_real * sizeof(double));
        if (!(now < was - LEAST_GAIN))
            break;
    }
    return AS_OK;
}

/* Move the guide to the best of some shifts that are drawn from the prior; the same ones at all
 * times. */
static as_status draw_shift(struct guides *g, size_t k, const struct whitening *w,
                            struct shifting *q, struct as_err *err)
{
    size_t n_real = w->c->n_real;
    double best = INFINITY, weight;
    for (uint64_t draw = 0; draw < SHIFT_DRAWS; draw++) {
        struct rng r;
        rng_init(&r, draw, SEARCH_DRAW_PRIOR);
        for (size_t j = 0; j < n_real; j++)
            g->shift[k][j] = g->shifts[j] ? SHIFT_DEVIATION * rng_normal(&r) : 0;
        as_status st = guide_evaluate(g, k, w, NULL, err);
        if (st < 0)
            return st;
        double left = energy(g, k, w, q->solved, &weight);
        if (left < best) {
            best = left;
            memcpy(q->before, g->shift[k], n_real * sizeof(double));
        }
    }
    memcpy(g->shift[k], q->before, n_real * sizeof(double));
    return AS_OK;
}

as_status guide_find_shift(struct guides *g, size_t k, const struct whitening *w,
                           double *ret_freedom, struct as_err *err)
{
    size_t n = w->n, n_real = w->c->n_real, m = g->n_shifts;
    double weight, best = INFINITY;
    *ret_freedom = 0;
    if (!m || m > SHIFT_MOST)
        return guide_evaluate(g, k, w, NULL, err);
    AS_AUTO(shifting_done)
    struct shifting q = {m,
                         as_calloc(n, n_real * sizeof(double)),
                         as_calloc(n, m * sizeof(double)),
                         as_calloc(n, (m + 1) * sizeof(double)),
                         as_calloc(m, m * sizeof(double)),
                         as_calloc(m, sizeof(double)),
                         as_calloc(n_real, sizeof(double)),
                         as_calloc(n_real, sizeof(double))};
    if (!q.slope || !q.jacobi || !q.solved || !q.hess || !q.step || !q.before || !q.found)
        return as_fail_nomem(err);
    for (int start = 0; start < 2; start++) {
        double left = INFINITY, freedom = 0;
        as_status st = start == 0 ? draw_shift(g, k, w, &q, err) : AS_OK;
        if (start == 1)
            memset(g->shift[k], 0, n_real * sizeof(double));
        if (st == AS_OK)
            st = descend_shift(g, k, w, &q, &left, &freedom, err);
        if (st < 0)
            return st;
        if (left < best) {
            best = left;
            *ret_freedom = freedom;
            memcpy(q.found, g->shift[k], n_real * sizeof(double));
        }
    }
    memset(g->shift[k], 0, n_real * sizeof(double));
    as_status st = guide_evaluate(g, k, w, NULL, err);
    if (st < 0)
        return st;
    if (energy(g, k, w, q.solved, &weight) - best <= *ret_freedom) {
        *ret_freedom = 0;
        return AS_OK;
    }
    memcpy(g->shift[k], q.found, n_real * sizeof(double));
    return guide_evaluate(g, k, w, NULL, err);
}
