/* Windows along one axis of an image, for pooling and depthwise convolution. */
#ifndef ASSAY_KERNELS_CPU_WINDOW_H
#define ASSAY_KERNELS_CPU_WINDOW_H

#include <stddef.h>

#include "base/cpu_clones.h"

/* Windows first to last - 1. */
struct range {
    size_t first, last;
};

/* Move *r to the windows, of n, that contain row (or column) `at` of the padded image. `at` must
 * grow from call to call; begin with {0, 0}. */
CPU_INLINE void range_move(struct range *r, size_t at, size_t stride, size_t kernel, size_t n)
{
    while (r->first < n && r->first * stride + kernel <= at)
        r->first++;
    while (r->last < n && r->last * stride <= at)
        r->last++;
}

#endif
