/* Events: written inside the transaction of their change. */
#ifndef ASSAY_SCHEDULER_STORE_EVENT_STORE_H
#define ASSAY_SCHEDULER_STORE_EVENT_STORE_H

#include "base/arena.h"
#include "scheduler/rows/event_row.h"
#include "scheduler/store/tx.h"

/* The fields of an event; zero and NULL become null. The strings are borrowed. */
struct event_new {
    const char *type;
    int64_t sweep_key; /* 0: none */
    const char *sweep;
    bool has_number;
    int64_t number;
    const char *state;
    int64_t attempt;
    bool has_value;
    double value;
    const char *reason;
    const char *runner;
    bool has_epoch, has_seat;
    int64_t epoch, seat;
    const char *model, *dataset;
};

AS_MUST_CHECK as_status store_event_add(struct tx *t, const struct event_new *e,
                                        struct as_err *err);

/* The same for n events, in one statement. Those of one sweep keep their order. */
AS_MUST_CHECK as_status store_event_add_many(struct tx *t, const struct event_new *events, size_t n,
                                             struct as_err *err);

/* sweep_key 0: events of all sweeps. See events_after(). */
AS_MUST_CHECK as_status store_event_after(struct tx *t, struct arena *a, int64_t sweep_key,
                                          int64_t after, int64_t limit, struct event_list *ret,
                                          struct as_err *err);

/* The id up to which no new event can appear. */
AS_MUST_CHECK as_status store_event_horizon(struct tx *t, int64_t *ret, struct as_err *err);

/* Remove the oldest events, some thousand at most. */
AS_MUST_CHECK as_status store_event_prune(struct tx *t, int64_t keep_ms, int64_t *ret_removed,
                                          struct as_err *err);

#endif
