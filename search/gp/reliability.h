/* Whether the models' predictions hold: what came, against what they predicted.
 *
 * A model that is overconfident suggests the same corner again and again. Each prediction that a
 * model of the objective makes of a trial is kept until the trial ends: the interval of three
 * deviations around the mean, noise included, in the unit of the metric (so the map between that
 * unit and the model's may change meanwhile). A normal model misses one in 370. A model that missed
 * nearly half of its newest predictions loses its turns until the results have grown by half; then
 * it begins anew, with nothing known against it. The warped model, which has most of them, loses
 * them only to a plain one whose predictions hold.
 *
 * All this is carried by the state of the method, so that a suggestion stays a pure function of the
 * history and the state. The constants are of decision 4025. */
#ifndef ASSAY_SEARCH_GP_RELIABILITY_H
#define ASSAY_SEARCH_GP_RELIABILITY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/gp/surrogate.h"
#include "search/regression/training_set.h"

#define RELIABILITY_MODELS 3  /* SURROGATE_WARPED, _PLAIN and _SMOOTH of the first objective */
#define RELIABILITY_NEWEST 12 /* predictions that a model is judged by, */
#define RELIABILITY_LEAST 8   /* from so many on */
#define RELIABILITY_OPEN 64   /* predictions whose trials have not ended; more are not kept */

/* A prediction: the trial is to end within [lowest, highest]. */
struct reliability_interval {
    uint64_t number; /* of the trial */
    surrogate_target target;
    double lowest, highest; /* costs */
};

struct reliability_record {
    size_t n;                        /* newest predictions of which the results are known */
    bool missed[RELIABILITY_NEWEST]; /* oldest first */
    size_t lost_missed, lost_n;      /* what it lost its turns by; 0: it has not */
    uint64_t lost_until;             /* so many results */
};

struct reliability {
    struct reliability_record of[RELIABILITY_MODELS]; /* by surrogate_target */
    struct reliability_interval open[RELIABILITY_OPEN];
    size_t n_open;
};

/* What an earlier suggestion knew; anything that is not a valid state counts as nothing. */
void reliability_read(const json_t *state, struct reliability *ret);

/* Compare the open predictions with the trials that have ended since, and take and give back turns.
 * One objective. Predictions of trials that failed or were cancelled are dropped. O(open n). */
void reliability_check(struct reliability *c, const struct training_set *s);

/* Keep a prediction of trial `number` by a model: mean and deviation of the function in the model's
 * own unit. */
void reliability_watch(struct reliability *c, uint64_t number, const struct surrogate *m,
                       double mean, double deviation);

static inline bool reliability_has_lost(const struct reliability *c, surrogate_target t)
{
    return c->of[t].lost_n > 0;
}

/* The models that have lost their turns, as bits 1 << target. */
unsigned reliability_lost(const struct reliability *c);

size_t reliability_misses(const struct reliability_record *r);

/* A new reference, null if nothing is known; NULL: out of memory. */
json_t *reliability_write(const struct reliability *c);

#endif
