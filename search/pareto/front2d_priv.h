/* The non-dominated points of two minimised objectives, kept sorted while points arrive. */
#ifndef ASSAY_SEARCH_PARETO_FRONT2D_PRIV_H
#define ASSAY_SEARCH_PARETO_FRONT2D_PRIV_H

#include <stdbool.h>
#include <stddef.h>

struct front2d_point {
    double a, b;
};

/* a rises and b falls, both strictly. `points` is the caller's, with room for every point that will
 * be inserted. */
struct front2d {
    struct front2d_point *points;
    size_t n;
};

/* Insert (a, b) and remove the points that it dominates. Returns false, and changes nothing, if a
 * present point is as good in both objectives.
 *   ret_area  NULL, or the area up to (ref_a, ref_b) that (a, b) dominates and no point did before;
 *             all points are better than the reference
 * O(log n), and one memmove of the points after it. */
bool front2d_insert(struct front2d *f, double a, double b, double ref_a, double ref_b,
                    double *ret_area);

#endif
