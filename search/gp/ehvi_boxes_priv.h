/* The part of objective space that a front does not dominate, as disjoint boxes. */
#ifndef ASSAY_SEARCH_GP_EHVI_BOXES_PRIV_H
#define ASSAY_SEARCH_GP_EHVI_BOXES_PRIV_H

#include <stddef.h>

#include "base/status.h"

#define EHVI_MAX_M 4

/* lower may be -INFINITY; unused objectives are [0, 0]. */
struct ehvi_box {
    double lower[EHVI_MAX_M], upper[EHVI_MAX_M];
};

struct ehvi_boxes {
    struct ehvi_box *boxes; /* owned */
    size_t n, cap;
};

struct ehvi_point {
    double c[EHVI_MAX_M];
};

/* Cover all y <= reference that none of the n points dominates (each point is below the reference
 * in all m objectives). The boxes are disjoint except for their faces. Sorts the points. `ret`
 * starts zeroed; the caller frees ret->boxes, also after a failure. m is 2..4. AS_E_NOMEM. */
AS_MUST_CHECK as_status ehvi_boxes_build(struct ehvi_point *points, size_t n, size_t m,
                                         const double *reference, struct ehvi_boxes *ret,
                                         struct as_err *err);

#endif
