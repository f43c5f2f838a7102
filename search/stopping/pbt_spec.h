/* The fields of `early_stopping: {method: pbt, …}`, population based training, checked and typed
 * (Jaderberg et al., "Population Based Training of Neural Networks", arXiv:1711.09846).
 *
 * At every `period` steps a trial that is among the last of those that reached the step is
 * replaced: a fork of one of the best goes on from that one's checkpoint, with some of its
 * parameters changed (exploit.h, explore.h). */
#ifndef ASSAY_SEARCH_STOPPING_PBT_SPEC_H
#define ASSAY_SEARCH_STOPPING_PBT_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "search/space/space.h"

#define PBT_MIN_POPULATION 2
#define PBT_MAX_POPULATION 10000
#define PBT_MAX_QUANTILE 0.5
#define PBT_MAX_PERIOD (INT64_C(1) << 53) /* as of steps (stop_spec.h) */

struct pbt_spec {
    int64_t population; /* trials that the search makes; from then on there are forks only */
    int64_t period;     /* steps between two rungs */
    double quantile;    /* (0, PBT_MAX_QUANTILE]: the share that is replaced, and that is forked */
    double down, up;    /* a number that changes is multiplied by one of them; 0 < down < 1 < up */
    double resample;    /* [0, 1]: the chance that a parameter is drawn anew instead */
    uint64_t explored[SPACE_MAX_PARAMS / 64]; /* a bit for each parameter that may change */
};

/* May parameter i change in a fork? */
bool pbt_explores(const struct pbt_spec *p, size_t i);

/* How many of n results are replaced, and as many are forked. */
size_t pbt_share(const struct pbt_spec *p, size_t n);

/* Read the fields population, period, quantile, perturb, resample and explore of `early_stopping`;
 * the caller reads the others and ends `f`. Absent fields have their defaults; `explore` is all
 * parameters that are no constants.
 *   ret  untouched on failure
 * AS_E_INVAL with the pointer of the field: a value out of its range, factors of which not one is
 * below 1 and one above it, an unknown parameter, one that is named twice or is a constant, no
 * parameter at all, nothing that can change. Faults are noted in f->faults. */
AS_MUST_CHECK as_status pbt_spec_parse(struct json_fields *f, const struct space *space,
                                       struct pbt_spec *ret, struct as_err *err);

/* Add the canonical fields to `section`. Nonzero when memory is out. */
int pbt_spec_add_json(const struct pbt_spec *p, const struct space *space, json_t *section);

#endif
