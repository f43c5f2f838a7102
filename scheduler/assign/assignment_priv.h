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
#include "scheduler/assign/drawn.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/sweep/doc_cache.h"
#include "scheduler/assign/shape.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/suggester/prepared.h"

#define ASSIGNMENT_LOOKS 8 /* most looks at a sweep in a row */
/* An idle slot costs more than a smaller group; the limit itself is not from a measurement
 * (decision 5003). */
#define GROUP_PATIENCE_MS 300 /* wait for the rest of a group */

/* Which of the wanted suggestions are enough, and whether the request's thread waits for the
 * others. The policy matters only for methods that learn: other methods draw all wanted suggestions
 * at once. Queued trials are always taken.
 *
 *   policy                     takes                               waits in the thread
 *   ASSIGN_READY               what is ready                       no
 *   ASSIGN_BRIEF_WAIT          what is ready                       the suggester's patience
 *   ASSIGN_WHOLE_GROUP_READY   all, or after GROUP_PATIENCE_MS     no
 *                              what is ready
 *   ASSIGN_WHOLE_GROUP         as ASSIGN_WHOLE_GROUP_READY         the suggester's patience
 *   ASSIGN_ALL                 all wanted ones, or none            the suggester's patience
 *
 * GROUP_PATIENCE_MS begins when the history was read from which the first suggestion was computed.
 * A sweep that gave queued trials does not wait for the rest of a group. The suggester's patience
 * (struct suggester_opts) is short, because it holds a thread. A request waits only once: a claim
 * that has waited for one sweep asks the other sweeps by the two policies that do not wait. */
typedef enum assign_policy {
    ASSIGN_READY,             /* claims without groups; the last try of a claim with groups; fits */
    ASSIGN_BRIEF_WAIT,        /* the same, if the request has not waited yet */
    ASSIGN_WHOLE_GROUP_READY, /* claims with groups that are tried again later */
    ASSIGN_WHOLE_GROUP,       /* the same, if the request has not waited yet */
    ASSIGN_ALL                /* asks that are tried again later: a batch comes whole */
} assign_policy;

struct assignment {
    struct store *db;
    struct arena *a;
    struct suggester *sg; /* NULL: a private one is created if needed */
    const struct owner *owner;
    int64_t arrived_ns;
    assign_policy policy;
    const struct group_limits *groups; /* trials may share a slot; NULL: each alone */
    struct open_group fit;             /* fill this group, take no slot; id NULL: none */
    bool queues;                       /* suggestions are only put into the queue */

    /* set by assignment_open */
    bool is_there;         /* false: the sweep was deleted */
    struct doc_ref doc;    /* its `doc` is NULL if the sweep learns */
    struct suggester *own; /* owned */
    struct shaper *shaper; /* owned; NULL: its trials have no shape */

    /* set by assignment_take */
    struct grouping grouping, next; /* as committed; as in the latest transaction */
    int64_t got;                    /* trials that began, or with `queues` were made */
    int64_t slots;                  /* slots that these trials took */
    size_t lacking;                 /* wanted suggestions that are not ready */
    struct search_place place;      /* of the first lacking suggestion */
    bool has_ended;                 /* the sweep has ended: nothing is left */
    bool search_failed;             /* an error came from the search, not from the database */
    int64_t n_taken;                /* prepared suggestions that became trials */
};

/* Read what the sweep's search and shapes need. AS_E_INTERNAL: the document cannot be read.
 * AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status assignment_open(struct assignment *asg, int64_t sweep_key,
                                        struct as_err *err);
void assignment_close(struct assignment *asg);

/* Begin trials of the sweep, each as an attempt of the owner: at most `room` trials, in at most
 * `slots` new slots and in the groups that earlier looks opened. The caller holds the sweep's row.
 * If no trial could begin, the error is the reason why the next suggestion cannot be computed. */
AS_MUST_CHECK as_status assignment_take(struct tx *t, struct assignment *asg,
                                        const struct sweep_head *s, int64_t slots, int64_t room,
                                        struct as_err *err);

/* Make the latest look final after its commit, and request the lacking suggestions. True: another
 * look is worth it now. False: the lacking suggestions are being computed, or none is lacking. */
bool assignment_done(struct assignment *asg);

#endif
