/* The suggester as those see it who hand trials out. All functions: any thread, sg not NULL. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_PREPARED_H
#define ASSAY_SCHEDULER_SUGGESTER_PREPARED_H

#include <stdbool.h>

#include "base/arena.h"
#include "scheduler/suggester/suggester.h"

#define SUGGESTER_AHEAD_MAX 64 /* suggestions of a sweep that are ready at once */

/* Where a sweep stands, as the transaction that holds its row found it, and since when somebody
 * waits. */
struct search_place {
    int64_t key;
    int64_t number;     /* of the next trial */
    int64_t mark;       /* of the last suggestion */
    int64_t finish_seq; /* of the trial that ended last */
    int64_t arrived_ns; /* monotonic */
};

/* A computed suggestion; views of an arena. */
struct prepared {
    int64_t index, seen, mark;
    const char *params, *reason; /* JSON */
    const char *state;           /* JSON to be stored with the sweep; NULL: none */
};

/* How many suggestions in a row, from place->number on and at most `max`, are good for that place:
 * they follow each other and the last one, and know every result that ended before now or before
 * the request arrived. `max` when the next of them cannot be computed: peeking says why. */
size_t suggester_ready(struct suggester *sg, const struct search_place *place, size_t max);

/* When the look at the results began (monotonic) that the suggestion for that place was computed
 * from; now, when it is not ready. */
int64_t suggester_since(struct suggester *sg, const struct search_place *place);

/* The suggestion for that place, copied. *ret_ready is false when there is none; it stays there
 * until it is no longer the next one. Errors: what kept it from being computed.
 * AS_E_EXHAUSTED: there is nothing left to suggest. */
AS_MUST_CHECK as_status suggester_peek(struct suggester *sg, struct arena *a,
                                       const struct search_place *place, bool *ret_ready,
                                       struct prepared *ret, struct as_err *err);

/* Ask for `count` suggestions from there on, and, when the caller may wait, wait for them a little
 * (the patience of suggester_opts). True when it is worth another look now; false: on_ready will be
 * called. Without search threads they are computed here. */
bool suggester_want(struct suggester *sg, const struct search_place *place, size_t count,
                    bool may_wait);

/* Suggestions became trials. */
void suggester_taken(struct suggester *sg, int64_t n);

/* Of `room` trials that the sweep has to hand out, `queued` of them waiting ones: how many may be
 * had now? All, unless suggestions are being computed: then what is ready. */
int64_t suggester_room(struct suggester *sg, int64_t key, int64_t queued, int64_t room);

#endif
