/* assay fit: which model of an ended sweep is kept. */
#ifndef ASSAY_CLI_COMMANDS_FIT_CHOICE_H
#define ASSAY_CLI_COMMANDS_FIT_CHOICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/commands/fit_trained.h"
#include "cli/session/session.h"

/* A model that may be kept, as the server measured it. */
struct fit_choice {
    /* The ensemble of the API that has its figures; NULL: the best trial, of a sweep without an
     * ensemble. Owned. */
    json_t *ensemble;
    int64_t asked; /* the number of an ensemble that was asked for; 0: the sweep's own */
    bool single;   /* the best single trial of `ensemble` */
    double value;  /* cross-fitted; NaN without `ensemble` */
    int64_t bytes; /* of its trials' models together, about what its file has */
    /* What was better and too large, if anything was. */
    bool costs;
    double larger_value;
    int64_t larger_bytes;
};

void fit_choice_done(struct fit_choice *c);

/* Choose the best by the sweep's metric of: the sweep's own ensemble, a stacked one, smaller
 * ones, the best trial; if all are larger than `size_bytes`, the smallest.
 *   until_ns  a time of clock_mono_ns(): no further ensemble is asked for, or waited for, after it
 *   ret       owned by the caller, fit_choice_done()
 * AS_E_NOT_FOUND: no trial has completed. Errors of the client. */
AS_MUST_CHECK as_status fit_choice_make(const struct session *s, const struct fit_trained *of,
                                        int64_t size_bytes, int64_t until_ns,
                                        struct fit_choice *ret, struct as_err *err);

/* The sweep that the best trial of the choice is of: `sweep`, or the other one. A view of
 * either. */
const char *fit_choice_sweep(const struct fit_choice *c, const struct trial_ref *sweep);

/* Keep it as a version of the model `name`. *ret is the version, owned by the caller. */
AS_MUST_CHECK as_status fit_choice_keep(const struct session *s, const struct trial_ref *sweep,
                                        const struct fit_choice *c, const char *name, json_t **ret,
                                        struct as_err *err);

#endif
