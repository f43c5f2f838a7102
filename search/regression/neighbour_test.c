#include "search/regression/neighbour_test.h"

#include <math.h>

#define MUTUAL 1.5 /* the factor of the variance */

static size_t nearest(const struct gp_columns *c, const struct gp_rows *rows, size_t first,
                      size_t row)
{
    size_t ret = row;
    double least = INFINITY;
    for (size_t i = first; i < rows->n; i++) {
        double r = i == row ? INFINITY : gp_row_distance(c, rows, row, i);
        if (r < least) {
            least = r;
            ret = i;
        }
    }
    return ret;
}

bool scatter_is_local(const struct gp_columns *c, const struct gp_rows *rows, const bool *marked)
{
    size_t first = rows->n > SCATTER_ROWS ? rows->n - SCATTER_ROWS : 0;
    double n = (double)(rows->n - first), k = 0, agree = 0;
    for (size_t i = first; i < rows->n; i++) {
        k += marked[i];
        agree += marked[nearest(c, rows, first, i)] == marked[i];
    }
    if (n < 2 || k == 0 || k == n)
        return false;
    double chance = (k * (k - 1) + (n - k) * (n - k - 1)) / (n * (n - 1));
    return agree - n * chance > SCATTER_DEVIATIONS * sqrt(MUTUAL * n * chance * (1 - chance));
}
