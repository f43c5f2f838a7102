/* What the model of an objective predicts along one parameter, or over two: the mean and the
 * deviation of the function on a grid, in the metric's own unit.
 *
 * All other parameters have the values of one trial, the base: the best trial in which the
 * parameters of the axes are active. So the picture is a cut through the space where a user would
 * go on from, and not an average over places that nobody would choose. A parameter that the base
 * does not have, because its condition does not hold there, has the middle of its range where the
 * axes make it active. The band is that of the function: a trial scatters about it by its noise. */
#ifndef ASSAY_SEARCH_IMPORTANCE_SURFACE_H
#define ASSAY_SEARCH_IMPORTANCE_SURFACE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/importance/objective_model.h"

#define SURFACE_MAX_CELLS 4096
#define SURFACE_NONE SIZE_MAX

struct surface_axis {
    size_t param;   /* index in the space; SURFACE_NONE: there is no such axis */
    size_t n;       /* values; 1 without an axis */
    double *places; /* owned: n, as in a point (encoding.h) */
    json_t *values; /* owned: the list of the values, ascending; of choices in their order */
};

struct surface {
    struct surface_axis x, y;
    struct config *base; /* owned; NULL with a reason */
    uint64_t base_number;
    double *mean,
        *deviation;   /* owned: y.n x x.n, row-major. NaN: the constraints do not allow it, or
                                 a parameter of the axes is not active there. NULL with a reason */
    char reason[200]; /* why there is none; "" otherwise */
};

/* Can parameter i have an axis? One with a single value cannot. */
bool surface_has_axis(const struct objective_model *m, size_t i);

/* The number of values on an axis of parameter i: all choices of a categorical one; of a number n
 * places on its scale, or all its levels if they are not more. */
size_t surface_axis_length(const struct objective_model *m, size_t i, size_t n);

/* The surface over parameters x and y, or along x if y is SURFACE_NONE.
 *   m    has a model
 *   n    places on an axis of a number, at least 2
 *   ret  owned by the caller; untouched on failure
 * AS_E_INVAL: a parameter has no axis, x is y, or more than SURFACE_MAX_CELLS.
 * AS_E_NOMEM. O(cells m->n^2). */
AS_MUST_CHECK as_status surface_compute(const struct objective_model *m, size_t x, size_t y,
                                        size_t n, struct surface **ret, struct as_err *err);
void surface_free(struct surface *s);
AS_DEFINE_FREEP(struct surface, surface_free)

#endif
