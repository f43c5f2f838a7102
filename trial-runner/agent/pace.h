/* Which sweeps have short trials on this runner, by their latest ones. Pure. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_PACE_H
#define ASSAY_TRIAL_RUNNER_AGENT_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE_SWEEPS 8
#define PACE_NAME_SIZE 81 /* of a sweep's id (claimed_name_safe()) */

/* So many in a row make a sweep short: one long trial among a few is likely to be followed by
 * another. */
#define PACE_SHORT_TRIALS 4

struct pace {
    struct pace_sweep {
        char sweep[PACE_NAME_SIZE]; /* "": none */
        int64_t n_short;            /* its latest trials that were short, up to a long one */
    } v[PACE_SWEEPS];
    size_t next; /* the place that the next sweep takes */
};

/* A trial of the sweep has run, and was short or not. */
void pace_note(struct pace *p, const char *sweep, bool is_short);

/* Were the latest trials of the sweep short? */
bool pace_is_short(const struct pace *p, const char *sweep);

/* Forget what was noted: it takes PACE_SHORT_TRIALS trials until a sweep is short again. */
void pace_forget(struct pace *p);

#endif
