#include "search/regression/apart.h"

#define MOST_GOOD 3 /* a third of the values */
#define MOST_BAD 2  /* half of them */

size_t apart_lowest(const double *v, size_t n, double known)
{
    size_t ret = 0;
    if (n < APART_LEAST)
        return 0;
    double high = v[3 * (n - 1) / 4];
    for (size_t g = 1; g <= n / MOST_GOOD && v[g] <= known; g++) {
        double range = high - v[g];
        if (range > 0 && (v[g] - v[g - 1]) / APART_GAP_GOOD > range)
            ret = g;
    }
    return ret;
}

size_t apart_highest(const double *v, size_t n)
{
    size_t ret = 0;
    if (n < APART_LEAST)
        return 0;
    double low = v[(n - 1) / 4];
    for (size_t g = 1; g <= n / MOST_BAD; g++) {
        double range = v[n - g - 1] - low;
        if (range > 0 && (v[n - g] - v[n - g - 1]) / APART_GAP_BAD > range)
            ret = g;
    }
    return ret;
}
