/* EHVI is a sum over boxes of products over sides (ehvi.h). Boxes share sides, so each distinct
 * side is evaluated once: the logarithm of a difference of two H, with its slopes. A second pass
 * adds the logs of the boxes. Logarithms keep the value and its gradient useful where the
 * improvement itself underflows. A front with too many points is thinned first, because the number
 * of boxes grows with it. */
#include "search/gp/ehvi.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/gp/ehvi_boxes_priv.h"
#include "search/pareto/pareto.h"
#include "search/regression/special.h"

#define MAX_M EHVI_MAX_M

/* Beyond this many deviations the squares in a logarithm would overflow. */
#define MAX_Z 1e150
#define MAX_SLOPE 1e300

/* One side of one or more boxes. */
struct side {
    double lower, upper;
    double log_gain;    /* ln (H(upper) - H(lower)) at the last evaluated point */
    double dmu, dsigma; /* its slopes */
    double weight;      /* the share of its boxes in the total */
};

struct gp_ehvi {
    size_t m, n_front, n_boxes;
    struct side *sides[MAX_M]; /* owned */
    size_t n_sides[MAX_M];
    uint32_t *side_of; /* owned: n_boxes x m */
    double *log_box;   /* owned: n_boxes */
};

void gp_ehvi_free(struct gp_ehvi *e)
{
    if (!e)
        return;
    for (size_t k = 0; k < MAX_M; k++)
        free(e->sides[k]);
    free(e->side_of);
    free(e->log_box);
    free(e);
}

size_t gp_ehvi_boxes(const struct gp_ehvi *e)
{
    return e->n_boxes;
}

size_t gp_ehvi_front(const struct gp_ehvi *e)
{
    return e->n_front;
}

size_t gp_ehvi_objectives(const struct gp_ehvi *e)
{
    return e->m;
}

/* ---- the front ---- */

/* Distance in units of the front's ranges, squared. */
static double squared_distance(const struct ehvi_point *a, const struct ehvi_point *b, size_t m,
                               const double *scale)
{
    double sum = 0;
    for (size_t k = 0; k < m; k++)
        sum += (a->c[k] - b->c[k]) * scale[k] * ((a->c[k] - b->c[k]) * scale[k]);
    return sum;
}

static void swap_points(struct ehvi_point *a, struct ehvi_point *b)
{
    struct ehvi_point t = *a;
    *a = *b;
    *b = t;
}

/* Move the best point of each objective to the front of the array. Returns how many those are. */
static size_t pick_extremes(struct ehvi_point *points, size_t n, size_t m)
{
    size_t picked = 0;
    for (size_t k = 0; k < m; k++) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
            best = points[i].c[k] < points[best].c[k] ? i : best;
        if (best >= picked)
            swap_points(&points[picked++], &points[best]);
    }
    return picked;
}

/* Keep `limit` points. Each next one is the farthest from those already kept. `near` is scratch
 * [n]. */
static void thin_front(struct ehvi_point *points, size_t n, size_t m, size_t limit, double *near)
{
    double scale[MAX_M];
    for (size_t k = 0; k < m; k++) {
        double lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            lo = fmin(lo, points[i].c[k]);
            hi = fmax(hi, points[i].c[k]);
        }
        scale[k] = hi > lo ? 1 / (hi - lo) : 0;
    }
    size_t picked = pick_extremes(points, n, m);
    for (size_t i = 0; i < n; i++) {
        near[i] = INFINITY;
        for (size_t j = 0; j < picked; j++)
            near[i] = fmin(near[i], squared_distance(&points[i], &points[j], m, scale));
    }
    for (; picked < limit; picked++) {
        size_t far = picked;
        for (size_t i = picked + 1; i < n; i++)
            far = near[i] > near[far] ? i : far;
        swap_points(&points[picked], &points[far]);
        near[far] = near[picked];
        for (size_t i = picked + 1; i < n; i++)
            near[i] = fmin(near[i], squared_distance(&points[i], &points[picked], m, scale));
    }
}

/* Select the points from which boxes are built. `points` is [n]. */
static as_status read_front(const double *costs, size_t n, size_t m, const double *reference,
                            struct ehvi_point *points, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *front = as_calloc(n, sizeof *front);
    AS_AUTO(as_freep) double *near = as_calloc(n, sizeof *near);
    if (!front || !near)
        return as_fail(err, AS_E_NOMEM, "out of memory for a front of %zu points", n);
    size_t n_front, kept = 0;
    as_status st = gp_pareto_front(costs, n, m, NULL, front, &n_front, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n_front; i++) {
        const double *c = costs + front[i] * m;
        bool counts = true;
        for (size_t k = 0; k < m; k++)
            counts = counts && c[k] < reference[k];
        if (counts)
            memcpy(points[kept++].c, c, m * sizeof *c);
    }
    size_t limit = m == 4 ? GP_EHVI_MAX_FRONT_4 : GP_EHVI_MAX_FRONT;
    if (kept > limit)
        thin_front(points, kept, m, limit, near);
    *ret_n = kept < limit ? kept : limit;
    return AS_OK;
}

/* ---- from boxes to their distinct sides ---- */

static int compare_sides(const void *pa, const void *pb)
{
    const struct side *a = pa, *b = pb;
    if (a->lower != b->lower)
        return a->lower < b->lower ? -1 : 1;
    return (a->upper > b->upper) - (a->upper < b->upper);
}

static as_status index_sides(struct gp_ehvi *e, const struct ehvi_boxes *boxes, size_t k,
                             struct as_err *err)
{
    struct side *sides = e->sides[k] = as_calloc(boxes->n, sizeof *sides);
    if (!sides)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu boxes", boxes->n);
    for (size_t b = 0; b < boxes->n; b++)
        sides[b] =
            (struct side){.lower = boxes->boxes[b].lower[k], .upper = boxes->boxes[b].upper[k]};
    qsort(sides, boxes->n, sizeof *sides, compare_sides);
    size_t n = 0;
    for (size_t b = 0; b < boxes->n; b++)
        if (n == 0 || compare_sides(&sides[n - 1], &sides[b]) != 0)
            sides[n++] = sides[b];
    e->n_sides[k] = n;
    for (size_t b = 0; b < boxes->n; b++) {
        struct side key = {.lower = boxes->boxes[b].lower[k], .upper = boxes->boxes[b].upper[k]};
        const struct side *at = bsearch(&key, sides, n, sizeof *sides, compare_sides);
        e->side_of[b * e->m + k] = (uint32_t)(at - sides);
    }
    return AS_OK;
}

static void boxes_done(struct ehvi_boxes *b)
{
    free(b->boxes);
}

as_status gp_ehvi_create(const double *costs, size_t n, size_t m, const double *reference,
                         struct gp_ehvi **ret, struct as_err *err)
{
    if (m < 2 || m > MAX_M)
        return as_fail(err, AS_E_INVAL, "%zu objectives, expected 2 to %d", m, MAX_M);
    for (size_t k = 0; k < m; k++)
        if (!isfinite(reference[k]))
            return as_fail(err, AS_E_INVAL,
                           "objective %zu of the reference point is %g, expected a finite number",
                           k, reference[k]);
    AS_AUTO(gp_ehvi_freep) struct gp_ehvi *e = as_calloc(1, sizeof *e);
    AS_AUTO(as_freep) struct ehvi_point *points = as_calloc(n, sizeof *points);
    AS_AUTO(boxes_done) struct ehvi_boxes boxes = {0};
    if (!e || !points)
        return as_fail(err, AS_E_NOMEM, "out of memory for a front of %zu points", n);
    e->m = m;
    as_status st = read_front(costs, n, m, reference, points, &e->n_front, err);
    if (st < 0)
        return st;
    st = ehvi_boxes_build(points, e->n_front, m, reference, &boxes, err);
    if (st < 0)
        return st;
    e->n_boxes = boxes.n;
    e->side_of = as_calloc(boxes.n, m * sizeof *e->side_of);
    e->log_box = as_calloc(boxes.n, sizeof *e->log_box);
    if (!e->side_of || !e->log_box)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu boxes", boxes.n);
    for (size_t k = 0; k < m; k++)
        if ((st = index_sides(e, &boxes, k, err)) < 0)
            return st;
    *ret = as_steal(e);
    return AS_OK;
}

/* ---- the value ---- */

static double clamp(double v, double limit)
{
    return fmax(fmin(v, limit), -limit);
}

/* A side so narrow that its two H are nearly the same: their difference is the integral of Phi from
 * zl to zl + width, by Gauss and Legendre with four nodes. */
static void narrow_side(struct side *s, double zl, double width, double sigma)
{
    static const double node[] = {0.069431844202973712, 0.33000947820757187, 0.66999052179242813,
                                  0.93056815579702629};
    static const double share[] = {0.17392742256872693, 0.32607257743127307, 0.32607257743127307,
                                   0.17392742256872693};
    double value[4], slope[4], z[4], most = -INFINITY;
    for (size_t i = 0; i < 4; i++) {
        z[i] = clamp(zl + width * node[i], MAX_Z);
        value[i] = gp_norm_log_cdf_slope(z[i], &slope[i]);
        most = fmax(most, value[i]);
    }
    double sum = 0, by_mu = 0, by_sigma = 0;
    for (size_t i = 0; i < 4; i++) {
        double w = share[i] * exp(value[i] - most);
        sum += w;
        by_mu -= w * slope[i];
        by_sigma -= w * slope[i] * z[i];
    }
    s->log_gain = most + log(sum) + log(fmax(width, DBL_MIN)) + log(sigma);
    s->dmu = clamp(by_mu / sum / sigma, MAX_SLOPE);
    s->dsigma = clamp(by_sigma / sum / sigma, MAX_SLOPE);
}

static void measure_side(struct side *s, double mu, double sigma)
{
    double zu = clamp((s->upper - mu) / sigma, MAX_Z), pdf_u, cdf_u;
    double log_u = gp_log_h(zu, &pdf_u, &cdf_u), ratio = 0, pdf_l = 0, cdf_l = 0;
    if (isfinite(s->lower)) {
        double zl = clamp((s->lower - mu) / sigma, MAX_Z);
        ratio = exp(gp_log_h(zl, &pdf_l, &cdf_l) - log_u); /* H(lower) / H(upper) */
        /* here the difference would lose digits, so the integral is computed instead: the slope of
         * ln H is at least that of ln Phi in size, so Phi is smooth over the side */
        if (ratio > 0.9) {
            narrow_side(s, zl, (s->upper - s->lower) / sigma, sigma);
            return;
        }
    }
    s->log_gain = log(sigma) + log_u + log1p(-ratio);
    s->dmu = -clamp((cdf_u - ratio * cdf_l) / (1 - ratio) / sigma, MAX_SLOPE);
    s->dsigma = clamp((pdf_u - ratio * pdf_l) / (1 - ratio) / sigma, MAX_SLOPE);
}

/* Fills log_box; returns the largest. */
static double add_logs(struct gp_ehvi *e)
{
    double most = -INFINITY;
    for (size_t b = 0; b < e->n_boxes; b++) {
        double sum = 0;
        for (size_t k = 0; k < e->m; k++)
            sum += e->sides[k][e->side_of[b * e->m + k]].log_gain;
        e->log_box[b] = sum;
        most = fmax(most, sum);
    }
    return most;
}

double gp_ehvi_log(struct gp_ehvi *e, const double *mu, const double *sigma, double *dmu,
                   double *dsigma)
{
    for (size_t k = 0; k < e->m; k++)
        for (size_t i = 0; i < e->n_sides[k]; i++) {
            measure_side(&e->sides[k][i], mu[k], sigma[k]);
            e->sides[k][i].weight = 0;
        }
    double most = add_logs(e), total = 0;
    for (size_t b = 0; b < e->n_boxes; b++)
        e->log_box[b] -= most;
    gp_vec_exp(e->log_box, e->n_boxes, e->log_box);
    for (size_t b = 0; b < e->n_boxes; b++)
        total += e->log_box[b];
    if (!dmu)
        return most + log(total);
    for (size_t b = 0; b < e->n_boxes; b++)
        for (size_t k = 0; k < e->m; k++)
            e->sides[k][e->side_of[b * e->m + k]].weight += e->log_box[b];
    for (size_t k = 0; k < e->m; k++) {
        dmu[k] = dsigma[k] = 0;
        for (size_t i = 0; i < e->n_sides[k]; i++) {
            const struct side *s = &e->sides[k][i];
            dmu[k] += s->weight * s->dmu / total;
            dsigma[k] += s->weight * s->dsigma / total;
        }
    }
    return most + log(total);
}
