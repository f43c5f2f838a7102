/* The step to the minimum of a quadratic (quadratic.h).
 *
 * The quadratic is a Gaussian process with the kernel (1 + u'v)^2, so the work is: choose the best
 * trials as rows, scale them, factor the kernel matrix for each of a few shares of noise, and keep
 * the share with the best leave-one-out predictions. These predictions cost nothing beyond the
 * inverse. They are compared with those of the rival model on the same trials; the step is taken
 * only if the quadratic's error is clearly smaller. The minimum in the widened box comes from
 * L-BFGS, because the fitted quadratic may have negative curvature and its stationary point may lie
 * outside. */
#include "search/gp/quadratic.h"

#include <math.h>
#include <string.h>

#include "base/blas.h"
#include "search/regression/buf.h"
#include "search/gp/candidates.h"
#include "search/regression/cholesky.h"
#include "search/population/design.h"
#include "search/regression/lbfgs.h"

/* MARGIN was chosen among 1, 4 and 16 on rotated ellipsoids and on problems with many basins or
 * noise: 1 loses there, 16 gains less (decision 4006). */
#define MOST_ROWS 256
#define ROWS_SHARE 1.5  /* number of rows, relative to the number of coefficients */
#define MARGIN 4.0      /* the factor by which its mean squared error must be smaller */
#define LEAST_GAIN 1e-3 /* relative to the difference between the best and the median of its rows */
#define WIDER 0.5       /* how far beyond its rows' box it is followed, relative to the sides */
#define NEAR_PENDING 0.01

/* The noise, relative to the kernel's scale. */
static const double shares[] = {1e-10, 1e-8, 1e-6, 1e-4, 1e-2};

/* The state of one step. Row i is the i-th best trial. */
struct step {
    const struct training_set *s;
    const struct surrogate *rival;
    size_t d, m, n_better, ld, ldu; /* n_better: rows on which errors are measured */
    size_t trial[MOST_ROWS];
    double y[MOST_ROWS];     /* costs above the best, in units of `unit` */
    double noise[MOST_ROWS]; /* variances, in units of the share */
    double alpha[MOST_ROWS];
    double left_out[MOST_ROWS]; /* y as predicted by the other rows */
    double best, unit;
    struct gp_buf u, k, a, inverse, numbers;
    double *centre, *spread, *lower, *upper, *place; /* d each */
    double *slope, *curve, *product; /* d, d x d, d: y = constant + slope'u + u'curve u */
    struct lbfgs_work *lbfgs;
};

static void step_done(struct step *q)
{
    gp_buf_done(&q->u);
    gp_buf_done(&q->k);
    gp_buf_done(&q->a);
    gp_buf_done(&q->inverse);
    gp_buf_done(&q->numbers);
    lbfgs_work_free(q->lbfgs);
}

/* How many parameters vary; 0 if one of them has no place on an axis. */
static size_t count_axes(const struct encoding *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        const struct encoded_param *p = &e->params[i];
        if (p->is_conditional || p->kind == ENCODED_CHOICE)
            return 0;
        n += p->kind != ENCODED_CONSTANT;
    }
    return n;
}

static as_status allocate_step(struct step *q, struct as_err *err)
{
    size_t d = q->d;
    as_status st;
    q->ld = gp_ld(q->m);
    q->ldu = gp_ld(d);
    if ((st = gp_buf_reserve(&q->u, q->m, q->ldu, err)) < 0 ||
        (st = gp_buf_reserve(&q->k, q->m, q->ld, err)) < 0 ||
        (st = gp_buf_reserve(&q->a, q->m, q->ld, err)) < 0 ||
        (st = gp_buf_reserve(&q->inverse, 1, gp_inverse_size(q->m), err)) < 0 ||
        (st = gp_buf_reserve(&q->numbers, d + 7, d, err)) < 0 ||
        (st = lbfgs_work_create(d, 1, &q->lbfgs, err)) < 0)
        return st;
    double **rows[] = {&q->centre, &q->spread, &q->lower,   &q->upper,
                       &q->place,  &q->slope,  &q->product, &q->curve};
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++)
        *rows[i] = q->numbers.p + i * d;
    return AS_OK;
}

/* ---- rows ---- */

static const double *point_of(const struct step *q, size_t row)
{
    return training_set_point(q->s, q->trial[row]);
}

/* False: half of the rows have the best value, so there is no scale. */
static bool set_values(struct step *q)
{
    const double *costs = q->s->costs;
    q->best = costs[q->trial[0]];
    q->unit = costs[q->trial[q->m / 2]] - q->best;
    for (size_t i = 0; i < q->m && q->unit > 0; i++) {
        q->y[i] = (costs[q->trial[i]] - q->best) / q->unit;
        q->noise[i] = (1 + q->y[i]) * (1 + q->y[i]);
    }
    return q->unit > 0;
}

/* u, scaled so that |u|^2 is 1 on average, and its box. */
static void set_places(struct step *q)
{
    size_t d = q->d;
    memcpy(q->centre, point_of(q, 0), d * sizeof(double));
    memset(q->u.p, 0, q->m * q->ldu * sizeof(double));
    for (size_t j = 0; j < d; j++) {
        double square = 0;
        for (size_t i = 0; i < q->m; i++) {
            double off = point_of(q, i)[j] - q->centre[j];
            square += off * off;
        }
        q->spread[j] = square > 0 ? sqrt(square * (double)d / (double)q->m) : 1;
        q->lower[j] = q->upper[j] = 0;
        for (size_t i = 0; i < q->m; i++) {
            double u = (point_of(q, i)[j] - q->centre[j]) / q->spread[j];
            q->u.p[i * q->ldu + j] = u;
            q->lower[j] = fmin(q->lower[j], u);
            q->upper[j] = fmax(q->upper[j], u);
        }
    }
}

static void set_kernel(struct step *q)
{
    blas_need()->dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)q->m, (int)q->d, 1, q->u.p,
                       (int)q->ldu, 0, q->k.p, (int)q->ld);
    for (size_t i = 0; i < q->m; i++)
        for (size_t j = 0; j <= i; j++) {
            double v = 1 + q->k.p[i * q->ld + j];
            q->k.p[i * q->ld + j] = v * v;
        }
}

/* ---- which share of noise, and is it good enough ---- */

/* Compute alpha and the prediction of each row by the others. False: not positive definite. */
static bool condition_on_share(struct step *q, double share)
{
    size_t m = q->m, ld = q->ld;
    for (size_t i = 0; i < m; i++) {
        memcpy(q->a.p + i * ld, q->k.p + i * ld, (i + 1) * sizeof(double));
        q->a.p[i * ld + i] += share * q->noise[i];
    }
    if (!gp_cholesky(q->a.p, m, ld, q->inverse.p))
        return false;
    memcpy(q->alpha, q->y, m * sizeof(double));
    gp_solve_lower(q->a.p, m, ld, q->inverse.p, q->alpha, 1, m);
    gp_solve_upper(q->a.p, m, ld, q->inverse.p, q->alpha, 1, m);
    gp_cholesky_invert(q->a.p, m, ld);
    for (size_t i = 0; i < m; i++)
        q->left_out[i] = q->y[i] - q->alpha[i] / q->a.p[i * ld + i];
    return true;
}

static double in_rivals_unit(const struct step *q, double y)
{
    return surrogate_forward(q->rival, q->best + q->unit * y);
}

static double mean_squared_error(const struct step *q)
{
    double sum = 0;
    for (size_t i = 0; i < q->n_better; i++) {
        double off = in_rivals_unit(q, q->left_out[i]) - in_rivals_unit(q, q->y[i]);
        sum += off * off;
    }
    return sum / (double)q->n_better;
}

/* The same for the rival: the error of row i is alpha_i / (K^-1)_ii. Trials outside the rival's
 * base have no error. */
static as_status rivals_error(const struct step *q, double *ret, struct as_err *err)
{
    const struct gp_model *m = q->rival->model;
    size_t n = gp_model_observed(m), found = 0;
    size_t rows[MOST_ROWS];
    AS_AUTO(as_freep) double *unit = as_calloc(q->n_better, n * sizeof(double));
    if (!unit)
        return as_fail(err, AS_E_NOMEM, "out of memory for the errors of %zu trials", n);
    for (size_t i = 0; i < n && found < q->n_better; i++)
        for (size_t k = 0; k < q->n_better; k++)
            if (q->rival->trials[i] == q->trial[k]) {
                unit[found * n + i] = 1;
                rows[found++] = i;
            }
    gp_model_solve(m, unit, found, n);
    double sum = 0;
    for (size_t k = 0; k < found; k++) {
        double off = gp_model_alpha(m)[rows[k]] / unit[k * n + rows[k]];
        sum += off * off;
    }
    *ret = found ? sum / (double)found : 0;
    return AS_OK;
}

/* Condition with the best share. False: no share works, or the rival is as good. */
static as_status choose_share(struct step *q, bool *ret, double *ret_error, struct as_err *err)
{
    double least = INFINITY, share = 0, rivals = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(shares); i++) {
        double e = condition_on_share(q, shares[i]) ? mean_squared_error(q) : INFINITY;
        if (e < least) {
            least = e;
            share = shares[i];
        }
    }
    as_status st = isfinite(least) ? rivals_error(q, &rivals, err) : AS_OK;
    *ret = st == AS_OK && MARGIN * least < rivals && condition_on_share(q, share);
    *ret_error = least;
    return st;
}

/* ---- the minimum ---- */

/* sum_i alpha_i (1 + u'u_i)^2 by the powers of u. Returns the constant. */
static double set_coefficients(struct step *q)
{
    size_t d = q->d;
    double constant = 0;
    memset(q->slope, 0, d * sizeof(double));
    memset(q->curve, 0, d * d * sizeof(double));
    for (size_t i = 0; i < q->m; i++) {
        const double *u = q->u.p + i * q->ldu;
        constant += q->alpha[i];
        for (size_t j = 0; j < d; j++) {
            q->slope[j] += 2 * q->alpha[i] * u[j];
            for (size_t k = 0; k < d; k++)
                q->curve[j * d + k] += q->alpha[i] * u[j] * u[k];
        }
    }
    return constant;
}

/* lbfgs_fn: the quadratic without its constant. */
static void quadratic_at(void *ctx, const double *points, const size_t *start, size_t n,
                         double *ret_f, double *ret_g)
{
    struct step *q = ctx;
    size_t d = q->d;
    (void)start;
    for (size_t i = 0; i < n; i++) {
        const double *u = points + i * d;
        double *g = ret_g + i * d;
        blas_need()->dgemv(CblasRowMajor, CblasNoTrans, (int)d, (int)d, 1, q->curve, (int)d, u, 1,
                           0, q->product, 1);
        ret_f[i] = 0;
        for (size_t j = 0; j < d; j++) {
            ret_f[i] += u[j] * (q->slope[j] + q->product[j]);
            g[j] = q->slope[j] + 2 * q->product[j];
        }
    }
}

/* Find the place of the lowest value, as a snapped point in q->place. Returns the value. */
static double find_minimum(struct step *q)
{
    size_t d = q->d;
    double constant = set_coefficients(q);
    for (size_t j = 0; j < d; j++) {
        double wider = WIDER * (q->upper[j] - q->lower[j]);
        q->lower[j] = fmax(q->lower[j] - wider, (0 - q->centre[j]) / q->spread[j]);
        q->upper[j] = fmin(q->upper[j] + wider, (1 - q->centre[j]) / q->spread[j]);
        q->place[j] = 0;
    }
    struct lbfgs_problem p = {
        .fn = quadratic_at, .ctx = q, .n = d, .lower = q->lower, .upper = q->upper};
    struct lbfgs_opts o = {.max_iters = 200, .max_evals = 400, .pg_tol = 1e-12, .f_tol = 1e-15};
    struct lbfgs_result r;
    lbfgs_minimize(&p, &o, q->place, 1, &r, q->lbfgs);
    for (size_t j = 0; j < d; j++)
        q->place[j] = q->centre[j] + q->place[j] * q->spread[j];
    encoding_snap(q->s->enc, q->place);
    return constant + r.f;
}

/* A pending trial at this place already tests this step. */
static bool is_under_way(const struct training_set *s, const double *point)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->state[i] == OBSERVED_PENDING &&
            encoding_same(s->enc, point, training_set_point(s, i), NEAR_PENDING))
            return true;
    return false;
}

as_status gp_quadratic_step(const struct training_set *s, const struct surrogate *rival,
                            double *ret_point, struct gp_quadratic *ret, struct as_err *err)
{
    AS_AUTO(step_done) struct step q = {.s = s, .rival = rival, .d = s->enc->n};
    size_t axes = count_axes(s->enc), coefficients = (axes + 1) * (axes + 2) / 2;
    *ret = (struct gp_quadratic){0};
    if (!axes || s->n_avoided || s->n_feasible < 2 * axes + 1 || s->n_feasible < 5)
        return AS_OK;
    q.m = gp_candidates_top(s, (size_t)fmin(MOST_ROWS, ceil(ROWS_SHARE * (double)coefficients)),
                            q.trial);
    q.n_better = (q.m + 1) / 2;
    as_status st = allocate_step(&q, err);
    if (st < 0 || !set_values(&q))
        return st;
    set_places(&q);
    set_kernel(&q);
    bool heard = false;
    double error = 0;
    if ((st = choose_share(&q, &heard, &error, err)) < 0 || !heard)
        return st;
    double gain = -q.unit * find_minimum(&q);
    if (!(gain > LEAST_GAIN * q.unit) || !encoding_allows(s->enc, q.place, s->scratch) ||
        training_set_tried(s, q.place, DESIGN_TOLERANCE) || is_under_way(s, q.place))
        return AS_OK;
    memcpy(ret_point, q.place, q.d * sizeof(double));
    *ret = (struct gp_quadratic){true, q.best - gain, sqrt(error), gain};
    return AS_OK;
}
