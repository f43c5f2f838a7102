/* The ranges in which `assay fit` searches, and how they widen where the best trial stands at an
 * end of one. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_RANGES_H
#define ASSAY_CLI_FIT_FIT_RANGES_H

#include <jansson.h>
#include <stddef.h>

#include "base/str.h"

/* The parameters that have ranges. */
typedef enum fit_parameter {
    FIT_RATE,
    FIT_LEAVES,
    FIT_ROWS,
    FIT_COLUMNS,
    FIT_LEAF_WEIGHT,
    FIT_PER_SPLIT,
    FIT_WIDTH,
    FIT_DROPOUT,
    FIT_LR,
    FIT_PARAMETERS
} fit_parameter;

struct fit_range {
    double min, max;
    double least, most; /* as far as it may ever widen; least <= min, max <= most */
};

/* Append the range as a line of a sweep's parameters, up to its condition:
 * "  rate: {type: float, min: 0.02, max: 0.3, scale: log". */
void fit_range_write(fit_parameter which, const struct fit_range *r, struct str *b);

/* The value itself, or the end of the range that it lies beyond. */
double fit_range_clamp(const struct fit_range *r, double value);

/* Widen each range at whose end a configuration lies: within a twentieth of it, on its scale.
 *   params  of the best trial; those that it lacks are of other kinds of model
 *   says    a line is appended for each range that has become wider
 * Returns how many have. */
size_t fit_ranges_widen(struct fit_range ranges[FIT_PARAMETERS], const json_t *params,
                        struct str *says);

#endif
