/* How models of a sweep are combined: `ensemble` of a sweep document, and what users ask for after
 * the end. */
#ifndef ASSAY_SCHEDULER_SWEEP_ENSEMBLE_OPTIONS_H
#define ASSAY_SCHEDULER_SWEEP_ENSEMBLE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/status.h"
#include "search/ensemble/ensemble.h"

#define ENSEMBLE_DEFAULT_SIZE 16

struct ensemble_options {
    ensemble_method method; /* default greedy */
    size_t size;       /* 1..ENSEMBLE_MAX_SIZE, default ENSEMBLE_DEFAULT_SIZE; 0: no ensemble */
    bool non_negative; /* stacking only; default false */
    bool calibrate;    /* of classes; default false */
};

/* Read the fields method, size, non_negative and calibrate; the caller reads further ones and ends
 * `f`. *ret is untouched on failure. AS_E_INVAL with the pointer of the field. */
AS_MUST_CHECK as_status ensemble_options_parse(struct json_fields *f, struct ensemble_options *ret,
                                               struct as_err *err);

/* The canonical form: false for none; non_negative and calibrate only where they are true. NULL:
 * out of memory. */
json_t *ensemble_options_to_json(const struct ensemble_options *o);

/* The method of this name; greedy if there is none. */
ensemble_method ensemble_method_of(const char *name);

#endif
