/* Points in a plane, drawn with characters: a front and the trials behind it. */
#ifndef ASSAY_CLI_VIEW_SCATTER_H
#define ASSAY_CLI_VIEW_SCATTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cli/view/terminal.h"

struct scatter_point {
    double x, y;
    bool is_front; /* drawn over the others */
};

struct scatter_opts {
    const char *x_name, *y_name; /* labels of the axes; borrowed */
    size_t width, height;        /* of the plane in characters, 8 x 3 to 200 x 60 */
};

/* Append the plane with its axes, their ends and names; y grows upwards. Points that are not finite
 * are left out; if no point is left, nothing is appended. If all points have the same coordinate,
 * they are drawn in the middle of that axis. */
void scatter_draw(const struct scatter_point *points, size_t n, const struct scatter_opts *opts,
                  const struct terminal *terminal, struct str *b);

#endif
