/* PED-ANOVA: the divergence between the best trials and all trials (ped_anova.h).
 *
 * For each parameter the trials are counted twice: all of them, and the best tenth. Numeric places
 * are counted in cells and smoothed with a normal kernel, because a sample has too few trials for
 * each cell; choices are counted directly. The divergence that chance alone would give is
 * subtracted, so that a parameter with many values does not look important because of noise. What
 * remains is divided by its sum. */
#include "search/importance/ped_anova.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CELLS 50
#define TOP 0.1
#define MIN_TOP 5 /* trials */

struct ranked {
    double cost;
    size_t row;
};

static int compare_ranked(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Counts of one parameter's values: in cells, or by choice. */
struct counts {
    double *all, *top; /* owned; CELLS or as many as the widest choice has */
    double n_all, n_top;
};

static void counts_done(struct counts *c)
{
    free(c->all);
    free(c->top);
}

/* Standard deviation of the places that were counted. */
static double deviation(const double *count, size_t cells, double n)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < cells; i++) {
        double at = ((double)i + 0.5) / (double)cells;
        sum += count[i] * at / n;
        square += count[i] * at * at / n;
    }
    return sqrt(fmax(square - sum * sum, 0));
}

/* Turn counts into a smooth density, in place. The kernel's mass stays within [0,1]. */
static void smooth_counts(double *count, double n)
{
    double width = fmax(1.06 * deviation(count, CELLS, n) * pow(n, -0.2), 1.0 / CELLS);
    double ret[CELLS] = {0};
    for (size_t i = 0; i < CELLS; i++) {
        double kernel[CELLS] = {0}, mass = 0;
        for (size_t k = 0; k < CELLS; k++) {
            double z = ((double)k - (double)i) / CELLS / width;
            mass += kernel[k] = exp(-z * z / 2);
        }
        for (size_t k = 0; k < CELLS; k++)
            ret[k] += count[i] * kernel[k] / mass;
    }
    memcpy(count, ret, sizeof ret);
}

/* Divergence of the counts, minus the divergence that chance alone would give. For n_top trials
 * drawn without replacement from n_all its expected value is (effective cells - 1) (n_all - n_top)
 * / (n_top (n_all - 1)). A smooth density has about one effective cell for each width of a kernel;
 * the remaining effect of chance is small there. */
static double divergence(const struct counts *c, size_t cells, double effective)
{
    double sum = 0;
    for (size_t i = 0; i < cells; i++) {
        if (c->all[i] <= 0)
            continue;
        double all = c->all[i] / c->n_all, top = c->top[i] / c->n_top;
        sum += (top - all) * (top - all) / all;
    }
    double chance = (effective - 1) * (c->n_all - c->n_top) / (c->n_top * fmax(c->n_all - 1, 1));
    return fmax(sum - chance, 0);
}

static void count_values(const struct encoding *e, size_t i, const double *points,
                         const bool *active, const struct ranked *order, size_t n, size_t n_top,
                         struct counts *c)
{
    const struct encoded_param *p = &e->params[i];
    size_t cells = p->kind == ENCODED_CHOICE ? (size_t)p->levels : CELLS;
    memset(c->all, 0, cells * sizeof *c->all);
    memset(c->top, 0, cells * sizeof *c->top);
    c->n_all = c->n_top = 0;
    for (size_t k = 0; k < n; k++) {
        size_t row = order[k].row;
        double at = points[row * e->n + i];
        if (!active[row * e->n + i])
            continue;
        size_t cell = p->kind == ENCODED_CHOICE ? (size_t)at : (size_t)fmin(at * CELLS, CELLS - 1);
        c->all[cell]++;
        c->n_all++;
        c->top[cell] += k < n_top;
        c->n_top += k < n_top;
    }
}

static double measure_parameter(const struct encoding *e, size_t i, struct counts *c)
{
    const struct encoded_param *p = &e->params[i];
    if (c->n_top < 1 || c->n_all <= c->n_top)
        return 0;
    if (p->kind == ENCODED_CHOICE) {
        size_t used = 0;
        for (size_t k = 0; k < p->levels; k++)
            used += c->all[k] > 0;
        return divergence(c, (size_t)p->levels, (double)used);
    }
    double width =
        fmax(1.06 * deviation(c->top, CELLS, c->n_top) * pow(c->n_top, -0.2), 1.0 / CELLS);
    double effective = 1 + 1 / (2 * sqrt(3.14159265358979323846) * width);
    smooth_counts(c->all, c->n_all);
    smooth_counts(c->top, c->n_top);
    return divergence(c, CELLS, effective);
}

/* The widest row of counts that any parameter needs. */
static size_t widest_counts(const struct encoding *e)
{
    size_t cells = CELLS;
    for (size_t i = 0; i < e->n; i++)
        if (e->params[i].kind == ENCODED_CHOICE && e->params[i].levels > cells)
            cells = (size_t)e->params[i].levels;
    return cells;
}

as_status ped_anova(const struct encoding *e, const double *points, const double *costs, size_t n,
                    double *ret, struct as_err *err)
{
    size_t cells = widest_counts(e), n_top = (size_t)fmax(ceil(TOP * (double)n), MIN_TOP);
    AS_AUTO(as_freep) struct ranked *order = as_calloc(n, sizeof *order);
    AS_AUTO(as_freep) bool *active = as_calloc(n, e->n * sizeof *active);
    AS_AUTO(counts_done)
    struct counts c = {.all = as_calloc(cells, sizeof *c.all),
                       .top = as_calloc(cells, sizeof *c.top)};
    if (!order || !active || !c.all || !c.top)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu trials", n);
    for (size_t k = 0; k < n; k++) {
        order[k] = (struct ranked){costs[k], k};
        encoding_active(e, points + k * e->n, active + k * e->n);
    }
    qsort(order, n, sizeof *order, compare_ranked);
    double total = 0;
    for (size_t i = 0; i < e->n; i++) {
        ret[i] = 0;
        if (e->params[i].kind == ENCODED_CONSTANT)
            continue;
        count_values(e, i, points, active, order, n, n_top, &c);
        ret[i] = measure_parameter(e, i, &c);
        total += ret[i];
    }
    for (size_t i = 0; i < e->n && total > 0; i++)
        ret[i] /= total;
    return AS_OK;
}
