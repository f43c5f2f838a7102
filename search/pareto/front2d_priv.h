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

/* Insert (a, b), and take out what it dominates. False when a point that is there is as good in
 * both: nothing changes then.
 *   ret_area  NULL, or the area that is dominated by (a, b), up to (ref_a, ref_b), and was not
 *             before; all points are better than the reference
 * O(log n) and a move of the points behind. */
bool front2d_insert(struct front2d *f, double a, double b, double ref_a, double ref_b,
                    double *ret_area);

#endif
