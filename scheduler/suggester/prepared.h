/* The suggester's interface for claims and asks. All functions: any thread, sg not NULL. */
#ifndef ASSAY_SCHEDULER_SUGGESTER_PREPARED_H
#define ASSAY_SCHEDULER_SUGGESTER_PREPARED_H

#include <stdbool.h>

#include "base/arena.h"
#include "scheduler/suggester/suggester.h"

#define SUGGESTER_AHEAD_MAX 64 /* most prepared suggestions of a sweep */

/* Where a sweep stands, as the transaction that holds its row read it, and since when the request
 * waits. */
struct search_place {
    int64_t key;
    int64_t number;     /* the number of the next trial */
    int64_t mark;       /* the mark of the last suggestion */
    int64_t finish_seq; /* the finish_seq of the trial that ended last */
    int64_t arrived_ns; /* monotonic */
};

/* A computed suggestion; views of an arena. */
struct prepared {
    int64_t index, seen, mark;
    const char *params, *reason; /* JSON */
    const char *state;           /* JSON that is stored with the sweep; NULL: none */
};

/* How many prepared suggestions in a row, from place->number and at most `max`, can be taken at
 * that place. They follow each other and the last suggestion, and they know every result that ended
 * before now or before the request arrived. Returns `max` if the next one cannot be computed;
 * suggester_peek() then returns the reason. */
size_t suggester_ready(struct suggester *sg, const struct search_place *place, size_t max);

/* When (monotonic) the history was read from which the suggestion for that place was computed; now,
 * if it is not ready. */
int64_t suggester_since(struct suggester *sg, const struct search_place *place);

/* The suggestion for that place, copied. *ret_ready is false if there is none. It stays prepared
 * until it is no longer the next one. Errors: the reason why it could not be computed.
 * AS_E_EXHAUSTED: there is nothing left to suggest. */
AS_MUST_CHECK as_status suggester_peek(struct suggester *sg, struct arena *a,
                                       const struct search_place *place, bool *ret_ready,
                                       struct prepared *ret, struct as_err *err);

/* Ask for `count` suggestions from that place on. If the caller may wait, wait for them briefly
 * (the patience of suggester_opts). True: another look is worth it now. False: on_ready will be
 * called. Without search threads they are computed here. */
bool suggester_want(struct suggester *sg, const struct search_place *place, size_t count,
                    bool may_wait);

/* Count suggestions that became trials. */
void suggester_taken(struct suggester *sg, int64_t n);

/* The sweep can hand out `room` trials, and `queued` of them are waiting trials: how many can be
 * had now? All, unless suggestions are being computed; then only what is ready. */
int64_t suggester_capacity(struct suggester *sg, int64_t key, int64_t queued, int64_t room);

#endif
