/* Hand trials out: the one path from a locked sweep to running trials, for claims and asks alike.
 * It takes the queue first (which includes trials that people enqueued, in the order of numbers),
 * then suggestions. grouping.h decides which of them share a slot.
 *
 *   assignment_open()   before the transaction: reads what the sweep's search needs
 *   assignment_take()   in the transaction that holds the row; may run again
 *   assignment_done()   after the commit: requests the lacking suggestions */
#ifndef ASSAY_SCHEDULER_ASSIGN_ASSIGNMENT_PRIV_H
#define ASSAY_SCHEDULER_ASSIGN_ASSIGNMENT_PRIV_H

#include "base/arena.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/assign/shape.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/suggester/prepared.h"

#define ASSIGNMENT_LOOKS 8    /* at most so often is a sweep looked at again at once */
#define GROUP_PATIENCE_MS 300 /* for the rest of a group, when its first suggestion is ready */

/* Which of the suggestions that a sweep wants are enough, and whether the request's thread waits
 * for the others. It matters for methods that learn alone: other methods draw what is wanted at
 * once, and what is queued is always taken.
 *
 *   policy                     takes                               waits in the thread
 *   ASSIGN_READY               what is ready                       no
 *   ASSIGN_BRIEF_WAIT          what is ready                       the suggester's patience
 *   ASSIGN_WHOLE_GROUP_READY   all, or after GROUP_PATIENCE_MS     no
 *                              what is ready
 *   ASSIGN_WHOLE_GROUP         as ASSIGN_WHOLE_GROUP_READY         the suggester's patience
 *   ASSIGN_ALL                 all that are wanted, or none        the suggester's patience
 *
 * GROUP_PATIENCE_MS counts from the look at the results that the first suggestion was computed
 * from; a sweep that gave queued trials does not wait for the rest of a group. The suggester's
 * patience (struct suggester_opts) is short, because the thread is held. One wait is enough for a
 * request: a claim that waited for a sweep in vain asks the other sweeps by the two policies that
 * do not wait. */
typedef enum assign_policy {
    ASSIGN_READY,             /* a claim without groups, the last try of one with groups, a fit */
    ASSIGN_BRIEF_WAIT,        /* the same, before it has waited */
    ASSIGN_WHOLE_GROUP_READY, /* a claim with groups that is tried again later */
    ASSIGN_WHOLE_GROUP,       /* the same, before it has waited */
    ASSIGN_ALL                /* an ask that is tried again later: a batch comes whole */
} assign_policy;

struct assignment {
    struct store *db;
    struct arena *a;
    struct suggester *sg; /* NULL: one of its own is made when it is needed */
    const struct owner *owner;
    int64_t arrived_ns;
    assign_policy policy;
    const struct group_limits *groups; /* trials may share a slot; NULL: each alone */
    struct open_group fit;             /* fill this group, take no slot; id NULL: no such wish */

    /* set by assignment_open */
    bool is_there;         /* false: the sweep was deleted */
    struct sweep_doc *doc; /* owned; of a sweep that does not learn */
    struct suggester *own; /* owned */
    struct shaper *shaper; /* owned; NULL: its trials have no shape */

    /* set by assignment_take */
    struct grouping grouping, next; /* as committed; as in the transaction that was the latest */
    int64_t got;                    /* trials that began */
    int64_t slots;                  /* that they took */
    size_t lacking;                 /* suggestions that were wanted and not ready */
    struct search_place place;      /* of the first of them */
    bool has_ended;                 /* it settled: nothing is left */
    bool search_failed;             /* an error came from the search, not from the database */
    int64_t n_taken;                /* prepared suggestions that became trials */
};

/* AS_E_INTERNAL: the document cannot be read. AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status assignment_open(struct assignment *asg, int64_t sweep_key,
                                        struct as_err *err);
void assignment_close(struct assignment *asg);

/* Trials of the sweep begin to run, each as an attempt of the holder: at most `room` of them, in at
 * most so many slots (and in the groups that looks before opened). The caller holds the sweep's
 * row. Errors: what keeps the next suggestion from being computed, when there was nothing else. */
AS_MUST_CHECK as_status assignment_take(struct tx *t, struct assignment *asg,
                                        const struct sweep_head *s, int64_t slots, int64_t room,
                                        struct as_err *err);

/* True when it is worth taking again now, false when what is lacking is being computed, or nothing
 * is. */
bool assignment_done(struct assignment *asg);

/* Names of the document's parameters that these do not have. */
AS_MUST_CHECK as_status inactive_names(struct arena *a, const json_t *doc, const json_t *params,
                                       const char ***ret, size_t *ret_n, struct as_err *err);

#endif
