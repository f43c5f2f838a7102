/* Projected L-BFGS on several starts at once (lbfgs.h).
 *
 * Each start is a small state machine: it has a trial point, and a value at that point either
 * accepts the step or shortens it. A round collects the trial points of all running starts,
 * evaluates them in one call of the objective, and advances each state. The objective is a batched
 * prediction of a Gaussian process, so one call for many points is far cheaper than many calls.
 *
 * Variables are scaled to u = x / scale, so that steps in all variables have similar lengths. A
 * variable is held if it lies at a bound and the gradient points out of the box. Only pairs with
 * positive curvature are stored, so that the direction is always one of descent. */
#include "search/regression/lbfgs.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"

#define MEMORY 8          /* pairs of steps and gradient changes kept */
#define ARMIJO 1e-4       /* the part of the predicted gain that a step must reach */
#define MAX_BACKTRACKS 25 /* of one line search */

/* One start. Vectors are in scaled variables, u = x / scale. */
struct descent {
    double *u, *g;         /* the best point and its gradient */
    double *lower, *upper; /* the box */
    double *dir, *u_trial; /* the direction of the line search, and its trial point */
    double *free;          /* 1 for a variable that may move in this step, 0 for one that is held */
    double *s, *y;         /* MEMORY x n rings of steps and gradient changes */
    double sy[MEMORY], yy[MEMORY]; /* s'y and y'y over the free variables, */
    bool is_measured[MEMORY];      /* where they are known */
    double f, step;
    size_t pairs, backtracks;
    size_t iters, evals;
    bool active, begun;
    lbfgs_end end;
};

struct lbfgs_work {
    size_t max_n, max_starts;
    double *numbers; /* everything below, in one piece */
    double *batch_x, *batch_g, *batch_f;
    size_t *batch_start;
    struct descent *descents;
};

as_status lbfgs_work_create(size_t max_n, size_t max_starts, struct lbfgs_work **ret,
                            struct as_err *err)
{
    AS_AUTO(lbfgs_work_freep) struct lbfgs_work *w = as_calloc(1, sizeof(*w));
    size_t vectors = 7 + 2 * MEMORY + 2, row, all;
    if (__builtin_mul_overflow(max_n, vectors, &row) ||
        __builtin_mul_overflow(row + 1, max_starts, &all))
        return as_fail(err, AS_E_NOMEM, "%zu starts of %zu variables do not fit in memory",
                       max_starts, max_n);
    if (w) {
        w->max_n = max_n;
        w->max_starts = max_starts;
        w->numbers = as_calloc(all, sizeof(double));
        w->batch_start = as_calloc(max_starts, sizeof(size_t));
        w->descents = as_calloc(max_starts, sizeof(struct descent));
    }
    if (!w || !w->numbers || !w->batch_start || !w->descents)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu starts of %zu variables", max_starts,
                       max_n);
    double *p = w->numbers;
    w->batch_x = p, p += max_starts * max_n;
    w->batch_g = p, p += max_starts * max_n;
    w->batch_f = p, p += max_starts;
    for (size_t i = 0; i < max_starts; i++) {
        struct descent *d = &w->descents[i];
        d->u = p, p += max_n;
        d->g = p, p += max_n;
        d->lower = p, p += max_n;
        d->upper = p, p += max_n;
        d->dir = p, p += max_n;
        d->u_trial = p, p += max_n;
        d->free = p, p += max_n;
        d->s = p, p += MEMORY * max_n;
        d->y = p, p += MEMORY * max_n;
    }
    *ret = as_steal(w);
    return AS_OK;
}

void lbfgs_work_free(struct lbfgs_work *w)
{
    if (!w)
        return;
    free(w->numbers);
    free(w->batch_start);
    free(w->descents);
    free(w);
}

/* The part of the problem that one start needs: its box and the scale. */
struct box {
    const double *lower, *upper, *scale;
    size_t n;
};

static double scale_of(const struct box *b, size_t i)
{
    return b->scale ? b->scale[i] : 1;
}

static double clamp(const struct descent *d, size_t i, double u)
{
    return u < d->lower[i] ? d->lower[i] : u > d->upper[i] ? d->upper[i] : u;
}

static struct box box_of(const struct lbfgs_problem *p, size_t start)
{
    return (struct box){p->lower + start * p->bounds_stride, p->upper + start * p->bounds_stride,
                        p->scale, p->n};
}

/* Is the variable held at a bound, because the gradient points out of the box? */
static bool is_held(const struct descent *d, size_t i)
{
    double lo = d->lower[i], hi = d->upper[i];
    return !(lo < hi) || (d->u[i] <= lo && d->g[i] > 0) || (d->u[i] >= hi && d->g[i] < 0);
}

/* The largest entry of the projected gradient: how far a unit step could go, at most |g|. */
static double projected_gradient(const struct descent *d, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double move = fabs(clamp(d, i, d->u[i] - d->g[i]) - d->u[i]);
        most = move > most ? move : most;
    }
    return most;
}

/* Inner product over the variables that may move. Four partial sums, because each addition waits
 * for the one before. */
CPU_INLINE double dot_free(const struct descent *d, const double *a, const double *b, size_t n)
{
    double sum[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += d->free[i + k] * a[i + k] * b[i + k];
    for (; i < n; i++)
        sum[0] += d->free[i] * a[i] * b[i];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static void forget_products(struct descent *d)
{
    memset(d->is_measured, 0, sizeof d->is_measured);
}

/* The products of pair k over the free variables; they stay until those change. */
CPU_INLINE void measure_pair(struct descent *d, size_t k, size_t n)
{
    if (d->is_measured[k])
        return;
    const double *s = d->s + k * n, *y = d->y + k * n;
    d->sy[k] = dot_free(d, s, y, n);
    d->yy[k] = dot_free(d, y, y, n);
    d->is_measured[k] = true;
}

/* The two-loop recursion: dir <- H dir over the free variables, with the pairs whose curvature
 * there is positive. */
CPU_CLONES static void apply_inverse_hessian(struct descent *d, size_t n)
{
    double a[MEMORY] = {0}, rho[MEMORY];
    size_t have = d->pairs < MEMORY ? d->pairs : MEMORY;
    double gamma = 0;
    for (size_t back = 1; back <= have; back++) {
        size_t k = (d->pairs - back) % MEMORY;
        const double *s = d->s + k * n, *y = d->y + k * n;
        measure_pair(d, k, n);
        double sy = d->sy[k], yy = d->yy[k];
        rho[k] = sy > 1e-10 * yy ? 1 / sy : 0;
        if (rho[k] == 0)
            continue;
        if (gamma == 0)
            gamma = sy / yy;
        a[k] = rho[k] * dot_free(d, s, d->dir, n);
        for (size_t i = 0; i < n; i++)
            d->dir[i] -= a[k] * y[i];
    }
    for (size_t i = 0; i < n; i++)
        d->dir[i] *= gamma == 0 ? 1 : gamma;
    for (size_t back = have; back > 0; back--) {
        size_t k = (d->pairs - back) % MEMORY;
        if (rho[k] == 0)
            continue;
        double b = rho[k] * dot_free(d, d->y + k * n, d->dir, n);
        for (size_t i = 0; i < n; i++)
            d->dir[i] += (a[k] - b) * d->s[k * n + i];
    }
    if (gamma == 0)
        d->pairs = 0; /* no usable pair: take the careful first step again */
}

/* The steepest descent direction, no longer than 1, because the first gradient may have any
 * size. */
static void set_steepest(struct descent *d, size_t n)
{
    double norm = sqrt(dot_free(d, d->g, d->g, n));
    for (size_t i = 0; i < n; i++)
        d->dir[i] = -d->free[i] * d->g[i] / fmax(1, norm);
    d->pairs = 0;
}

static void set_trial(struct descent *d, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d->u_trial[i] = clamp(d, i, d->u[i] + d->step * d->dir[i]);
}

static void set_direction(const struct box *b, struct descent *d)
{
    size_t n = b->n;
    bool is_same = true;
    for (size_t i = 0; i < n; i++) {
        double is_free = is_held(d, i) ? 0 : 1;
        is_same &= d->free[i] == is_free;
        d->free[i] = is_free;
        d->dir[i] = -is_free * d->g[i];
    }
    if (!is_same)
        forget_products(d);
    if (d->pairs > 0)
        apply_inverse_hessian(d, n);
    for (size_t i = 0; i < n; i++)
        d->dir[i] *= d->free[i];
    double slope = dot_free(d, d->dir, d->g, n), gg = dot_free(d, d->g, d->g, n);
    double dd = dot_free(d, d->dir, d->dir, n);
    if (d->pairs == 0 || !(slope < -1e-10 * sqrt(gg * dd)))
        set_steepest(d, n);
    d->step = 1;
    d->backtracks = 0;
    set_trial(d, b->n);
}

static void finish_start(struct descent *d, lbfgs_end end)
{
    d->active = false;
    d->end = end;
}

/* After a step: stop, or choose a new direction. `gain` is the decrease of the step. */
static void go_on(const struct box *b, const struct lbfgs_opts *o, struct descent *d, double gain)
{
    if (projected_gradient(d, b->n) <= o->pg_tol)
        finish_start(d, LBFGS_GRADIENT);
    else if (d->iters > 0 && gain < o->f_tol * fmax(1, fabs(d->f)))
        finish_start(d, LBFGS_VALUE);
    else if (d->iters >= o->max_iters || d->evals >= o->max_evals)
        finish_start(d, LBFGS_LIMIT);
    else
        set_direction(b, d);
}

static bool all_finite(double f, const double *g, size_t n)
{
    bool ok = isfinite(f);
    for (size_t i = 0; i < n; i++)
        ok = ok && isfinite(g[i]);
    return ok;
}

static void remember_pair(struct descent *d, const double *g, size_t n)
{
    double *s = d->s + d->pairs % MEMORY * n, *y = d->y + d->pairs % MEMORY * n, sy = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        s[i] = d->u_trial[i] - d->u[i];
        y[i] = g[i] - d->g[i];
        sy += s[i] * y[i];
        yy += y[i] * y[i];
    }
    d->is_measured[d->pairs % MEMORY] = false;
    if (sy > 1e-10 * yy)
        d->pairs++;
}

/* The trial point was not good enough. Take a shorter step, to the minimum of the interpolating
 * parabola if that is sensible. */
static void step_back(const struct box *b, const struct lbfgs_opts *o, struct descent *d, double f,
                      double slope)
{
    double shrink = 0.5;
    if (isfinite(f) && slope < 0)
        shrink = fmin(0.5, fmax(0.1, -slope / (2 * (f - d->f - slope))));
    d->step *= isfinite(f) ? shrink : 0.1;
    if (d->evals >= o->max_evals) {
        finish_start(d, LBFGS_LIMIT);
    } else if (++d->backtracks > MAX_BACKTRACKS) {
        finish_start(d, LBFGS_STUCK);
    } else if (d->backtracks == 8 && d->pairs > 0) {
        set_steepest(d, b->n); /* the model of the curvature misleads */
        d->step = 1;
        set_trial(d, b->n);
    } else {
        set_trial(d, b->n);
    }
}

static void take_value(const struct box *b, const struct lbfgs_opts *o, struct descent *d, double f,
                       const double *g)
{
    bool ok = all_finite(f, g, b->n);
    d->evals++;
    if (!d->begun) {
        d->begun = true;
        if (!ok) {
            finish_start(d, LBFGS_BAD_START);
            return;
        }
        d->f = f;
        memcpy(d->g, g, b->n * sizeof(*g));
        go_on(b, o, d, INFINITY);
        return;
    }
    double slope = 0, moved = 0; /* along the part of the step inside the box */
    for (size_t i = 0; i < b->n; i++) {
        double move = d->u_trial[i] - d->u[i];
        slope += d->g[i] * move;
        moved = fabs(move) > moved ? fabs(move) : moved;
    }
    if (moved == 0) {
        finish_start(d, LBFGS_STUCK);
    } else if (ok && slope < 0 && f <= d->f + ARMIJO * slope) {
        double gain = d->f - f;
        remember_pair(d, g, b->n);
        memcpy(d->u, d->u_trial, b->n * sizeof(*g));
        memcpy(d->g, g, b->n * sizeof(*g));
        d->f = f;
        d->iters++;
        go_on(b, o, d, gain);
    } else {
        step_back(b, o, d, ok ? f : INFINITY, slope);
    }
}

static void begin_start(const struct box *b, struct descent *d, const double *x)
{
    d->f = INFINITY;
    d->pairs = d->backtracks = d->iters = d->evals = 0;
    d->active = true;
    d->begun = false;
    forget_products(d);
    for (size_t i = 0; i < b->n; i++) {
        d->lower[i] = b->lower[i] / scale_of(b, i);
        d->upper[i] = b->upper[i] / scale_of(b, i);
        d->u[i] = d->u_trial[i] = clamp(d, i, x[i] / scale_of(b, i));
    }
}

/* A trial point in the problem's variables. Rounding must not move it out of the box, nor away from
 * a side that it touches: 1, not 0.9999999999999999. */
static void unscale_point(const struct box *b, const struct descent *d, const double *u, double *x)
{
    for (size_t i = 0; i < b->n; i++) {
        if (u[i] <= d->lower[i])
            x[i] = b->lower[i];
        else if (u[i] >= d->upper[i])
            x[i] = b->upper[i];
        else
            x[i] = fmin(fmax(u[i] * scale_of(b, i), b->lower[i]), b->upper[i]);
    }
}

/* Call the objective once with the trial points of all starts that still run. */
static void advance_starts(const struct lbfgs_problem *p, const struct lbfgs_opts *o, size_t starts,
                           struct lbfgs_work *w, size_t m)
{
    size_t row = 0, n = p->n;
    for (size_t s = 0; s < starts; s++) {
        struct box b = box_of(p, s);
        if (!w->descents[s].active)
            continue;
        unscale_point(&b, &w->descents[s], w->descents[s].u_trial, w->batch_x + row * n);
        w->batch_start[row++] = s;
    }
    p->fn(p->ctx, w->batch_x, w->batch_start, m, w->batch_f, w->batch_g);
    for (row = 0; row < m; row++) {
        struct box b = box_of(p, w->batch_start[row]);
        double *g = w->batch_g + row * n;
        for (size_t i = 0; i < n; i++)
            g[i] *= scale_of(&b, i);
        take_value(&b, o, &w->descents[w->batch_start[row]], w->batch_f[row], g);
    }
}

void lbfgs_minimize(const struct lbfgs_problem *p, const struct lbfgs_opts *opts, double *x,
                    size_t starts, struct lbfgs_result *results, struct lbfgs_work *w)
{
    assert(p->n <= w->max_n && starts <= w->max_starts);
    for (size_t s = 0; s < starts; s++) {
        struct box b = box_of(p, s);
        begin_start(&b, &w->descents[s], x + s * p->n);
    }
    for (;;) {
        size_t m = 0;
        for (size_t s = 0; s < starts; s++)
            m += w->descents[s].active ? 1 : 0;
        if (m == 0)
            break;
        advance_starts(p, opts, starts, w, m);
    }
    for (size_t s = 0; s < starts; s++) {
        struct box b = box_of(p, s);
        const struct descent *d = &w->descents[s];
        unscale_point(&b, d, d->u, x + s * p->n);
        results[s] = (struct lbfgs_result){d->f, d->iters, d->evals, d->end};
    }
}

size_t lbfgs_inverse_hessian(const struct lbfgs_problem *p, struct lbfgs_work *w, size_t start,
                             double *ret_diagonal)
{
    struct descent *d = &w->descents[start];
    struct box b = box_of(p, start);
    if (d->pairs == 0)
        return 0;
    for (size_t i = 0; i < p->n; i++)
        d->free[i] = 1;
    forget_products(d);
    for (size_t i = 0; i < p->n; i++) {
        memset(d->dir, 0, p->n * sizeof(double));
        d->dir[i] = 1;
        apply_inverse_hessian(d, p->n);
        ret_diagonal[i] = d->dir[i] * scale_of(&b, i) * scale_of(&b, i);
    }
    return d->pairs < MEMORY ? d->pairs : MEMORY;
}
