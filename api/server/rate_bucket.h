/* What somebody has spent of a rate: it flows out at the rate, so a limit is a burst. */
#ifndef ASSAY_API_SERVER_RATE_BUCKET_H
#define ASSAY_API_SERVER_RATE_BUCKET_H

#include <stdint.h>

#include "base/clock.h"

struct rate_bucket {
    double spent;
    int64_t at_ns; /* when it was last looked at */
};

/* Let out what has flowed since then. A time before it changes nothing. */
static inline void rate_bucket_flow(struct rate_bucket *b, double per_second, int64_t now_ns)
{
    if (now_ns <= b->at_ns)
        return;
    double flowed = (double)(now_ns - b->at_ns) / (double)NS_PER_S * per_second;
    b->spent = b->spent > flowed ? b->spent - flowed : 0;
    b->at_ns = now_ns;
}

#endif
