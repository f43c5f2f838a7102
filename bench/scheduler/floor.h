/* What a floor reached. */
#ifndef ASSAY_BENCH_SCHEDULER_FLOOR_H
#define ASSAY_BENCH_SCHEDULER_FLOOR_H

struct floor {
    double per_s; /* NaN: it cannot be measured here */
    double us;    /* processor time of PostgreSQL for each */
};

#endif
