/* What an attempt uses of its machine over time, in a bounded number of samples of equal length:
 * when they are full, each two become one, of twice the length. Pure. Not thread-safe: the
 * attempt's lock guards it. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_USAGE_H
#define ASSAY_TRIAL_RUNNER_COLLECT_USAGE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define USAGE_SAMPLES 240
#define USAGE_FIRST_MS 1000 /* the length of a sample at first */

typedef enum usage_kind {
    USAGE_CPU,        /* cores; the mean */
    USAGE_MEMORY,     /* bytes; the most */
    USAGE_GPU,        /* busy GPUs; the mean */
    USAGE_GPU_MEMORY, /* bytes; the most */
    USAGE_KINDS
} usage_kind;

/* What was measured of a time; below 0: not known. */
struct usage_reading {
    double v[USAGE_KINDS];
};

struct usage_sample {
    double ms[USAGE_KINDS]; /* of this time something is known */
    double v[USAGE_KINDS];
};

struct usage {
    int64_t every_ms; /* the length of a sample; 0: there is none yet */
    size_t n;
    struct usage_sample samples[USAGE_SAMPLES];
};

/* Add what was measured of the `for_ms` milliseconds before `at_ms`, which count from the begin of
 * the process. It belongs to the sample in which the middle of that time lies. */
void usage_add(struct usage *u, int64_t at_ms, int64_t for_ms, const struct usage_reading *r);

/* The body of putUsage (api/openapi.yaml): a new reference, or NULL if memory is out. Kinds of
 * which nothing is known are absent, but cpu. */
json_t *usage_json(const struct usage *u);

#endif
