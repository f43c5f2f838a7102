#include "search/regression/neighbour_test.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"

#define MUTUAL 1.5 /* the factor of the variance */

/* Its nearest neighbour among the rows from `first` on, without those that `except` marks (NULL:
 * none); the row itself where there is none. *ret_distance: squared. */
static size_t nearest(const struct gp_columns *c, const struct gp_rows *rows, size_t first,
                      size_t row, const bool *except, double *ret_distance)
{
    size_t ret = row;
    *ret_distance = INFINITY;
    for (size_t i = first; i < rows->n; i++) {
        double r = i == row || (except && except[i]) ? INFINITY : gp_row_distance(c, rows, row, i);
        if (r < *ret_distance) {
            *ret_distance = r;
            ret = i;
        }
    }
    return ret;
}

bool scatter_is_local(const struct gp_columns *c, const struct gp_rows *rows, const bool *marked)
{
    size_t first = rows->n > SCATTER_ROWS ? rows->n - SCATTER_ROWS : 0;
    double n = (double)(rows->n - first), k = 0, agree = 0, distance;
    for (size_t i = first; i < rows->n; i++) {
        k += marked[i];
        agree += marked[nearest(c, rows, first, i, NULL, &distance)] == marked[i];
    }
    if (n < 2 || k == 0 || k == n)
        return false;
    double chance = (k * (k - 1) + (n - k) * (n - k - 1)) / (n * (n - 1));
    return agree - n * chance > SCATTER_DEVIATIONS * sqrt(MUTUAL * n * chance * (1 - chance));
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, as_order_f64);
    return v[n / 2];
}

bool scatter_is_amid(const struct gp_columns *c, const struct gp_rows *rows, const bool *marked)
{
    double near[2][SCATTER_ROWS];
    size_t n[2] = {0, 0}, first = rows->n > SCATTER_ROWS ? rows->n - SCATTER_ROWS : 0;
    for (size_t i = first; i < rows->n; i++) {
        double *distance = near[marked[i]] + n[marked[i]]++;
        (void)nearest(c, rows, first, i, marked, distance);
    }
    return n[0] > 1 && n[1] > 0 && median(near[1], n[1]) <= SCATTER_AMID * median(near[0], n[0]);
}
