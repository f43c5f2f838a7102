/* The section `early_stopping` of a sweep document, checked and typed: at which steps trials are
 * compared, and what happens to those that are behind.
 *
 * A rung is a number of steps. The rungs are min_steps, min_steps * eta, min_steps * eta^2 … as
 * far as they are below max_steps, and then max_steps itself, where a trial has run in full. Those
 * of pbt are multiples of its period instead. */
#ifndef ASSAY_SEARCH_STOPPING_STOP_SPEC_H
#define ASSAY_SEARCH_STOPPING_STOP_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"
#include "search/problem/problem.h"
#include "search/stopping/pbt_spec.h"

#define STOP_RUNGS_MAX 32
#define STOP_MAX_STEPS (INT64_C(1) << 53)
#define STOP_MIN_ETA 2
#define STOP_MAX_ETA 64

typedef enum stop_method {
    STOP_NONE, /* the document has no early_stopping */
    STOP_ASHA,
    STOP_HYPERBAND,
    STOP_PASHA,
    STOP_MEDIAN,
    STOP_CURVE,
    STOP_PBT
} stop_method;

/* What happens to a trial that is behind at a rung. */
typedef enum stop_mode {
    STOP_MODE_PAUSE, /* it waits there and may be promoted later */
    STOP_MODE_STOP   /* it ends for good */
} stop_mode;

/* How many trials a method that learns spreads over the space first: with early stopping most of
 * them cost little, and a wide design finds the right region more often. */
#define STOP_DESIGN 24

struct stop_spec {
    stop_method method;
    stop_mode mode;      /* `auto` is resolved */
    size_t n_objectives; /* of the sweep: so many values has a rung result */
    bool maximize[SEARCH_MAX_OBJECTIVES];
    bool has_metric;   /* one objective alone decides the rank; else all, by dominance */
    size_t metric;     /* its index among the objectives; 0 if has_metric is false */
    bool is_min_auto;  /* min_steps: auto. The rungs are the whole ladder, and decisions begin at
                          the rung from which the ranks agree with those at the end */
    int64_t min_steps; /* steps[0] */
    int64_t max_steps; /* steps[n_rungs - 1] */
    int64_t eta;       /* STOP_MIN_ETA..STOP_MAX_ETA: one in so many goes on */
    size_t n_rungs;    /* 2..STOP_RUNGS_MAX; 0 for STOP_NONE */
    int64_t steps[STOP_RUNGS_MAX]; /* strictly ascending; the last one decides nothing */
    double chance; /* curve: a trial whose chance to beat the best is below it is behind */
    bool late;     /* the first report past a rung counts for it; else only one of the same step */
    bool strict; /* a sweep fails when a trial ends and none has a value at a rung that compares */
    uint64_t seed; /* of the sweep; hyperband draws the brackets of trials with it, pbt its forks */
    struct pbt_spec pbt; /* of this method; else zeroed, and eta is */
};

/* What the rest of the document says, for stop_spec_parse(). */
struct stop_context {
    size_t n_objectives;                        /* 1..SEARCH_MAX_OBJECTIVES */
    const char *metrics[SEARCH_MAX_OBJECTIVES]; /* their names; borrowed */
    bool maximize[SEARCH_MAX_OBJECTIVES];
    uint64_t seed;
    bool can_pause;    /* its trials leave checkpoints: `auto` is pause */
    int64_t all_steps; /* the steps of a full trial, where the document fixes them: the default of
                           max_steps; 0: not fixed, and max_steps is required */
    const struct space *space; /* borrowed for the call; NULL: not known, and pbt is refused */
    int64_t first_step; /* the first step that is reported, where `auto` begins; at least 1 */
};

/* Read the fields of `early_stopping` and end `f`.
 *   ret  untouched on failure
 * AS_E_INVAL with the pointer of the field: a value out of its range, an unknown method or metric,
 * what pbt_spec_parse() refuses,
 * fewer than two rungs, a method that cannot take several metrics. AS_E_TOO_LARGE: more than
 * STOP_RUNGS_MAX rungs. AS_E_UNSUPPORTED: a method that this version does not offer. Faults are
 * noted in f->faults. */
AS_MUST_CHECK as_status stop_spec_parse(struct json_fields *f, const struct stop_context *c,
                                        struct stop_spec *ret, struct as_err *err);

/* The canonical section, with every default written out; `metrics` are the objectives' names, and
 * `space` is that of the context. New reference; NULL when memory is out. */
json_t *stop_spec_to_json(const struct stop_spec *s, const char *const *metrics,
                          const struct space *space);

const char *stop_method_name(stop_method m); /* as in documents; "none" for STOP_NONE */

/* Which rung does a report reach?
 *   before  the last step that the trial had reported; 0: none
 *   step    of the report
 * False: none. With `late`, the highest rung in (before, step]; else the rung at `step`, whatever
 * `before` is. Whether the trial has a result at that rung already is the caller's to know. */
bool stop_spec_rung(const struct stop_spec *s, int64_t before, int64_t step, uint32_t *ret_rung);

#endif
