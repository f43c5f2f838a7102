/* What a sweep says when its early stopping does nothing.
 *
 * A rule that never compares anything is a mistake that nobody notices: the metric is reported at
 * other steps, or too few trials reach a rung. These are functions of counts and of the index of
 * rung results; the caller stores and shows the text. */
#ifndef ASSAY_SEARCH_STOPPING_STOP_WARNING_H
#define ASSAY_SEARCH_STOPPING_STOP_WARNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/stopping/stopping.h"

#define STOP_WARNING_MAX 2400 /* fits four metrics, and eight steps of each */
#define STOP_WARNING_AFTER 20 /* ended trials without a decision */
#define STOP_STEPS_SHOWN 8

/* The steps at which the first ended trial without a result below the last rung reported a metric,
 * ascending. Borrowed. */
struct stop_reported {
    const char *metric;
    const int64_t *steps;
    size_t n;
};

struct stop_progress {
    const struct stop_reported *reported; /* of each metric that is compared; borrowed */
    size_t n_metrics;                     /* 1..SEARCH_MAX_OBJECTIVES */
    uint64_t n_ended;       /* trials that completed, or were pruned or stopped; not failed ones */
    uint64_t n_with_result; /* of these, those with a result at some rung */
    uint64_t n_completed;   /* of n_ended */
    int64_t furthest;       /* the latest step that one of these reported; -1: none did */
};

/* Is there something to say? ret_text is written if so: a sentence without a full stop.
 *   no result  one trial at least has ended, and none has a value at a rung, or at the last one
 *              only, where nobody is compared (with `strict` the sweep fails with this text)
 *   no end     one trial at least has completed, and none has a value at the last rung: what runs
 *              in full is not known there, and the search asks for values that never come
 *   nothing    STOP_WARNING_AFTER trials have ended, and no trial was paused or pruned at a rung */
bool stop_warning(const struct stopping *s, const struct stop_progress *p,
                  char ret_text[STOP_WARNING_MAX]);

#endif
