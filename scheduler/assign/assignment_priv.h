/* Handing trials out: the one path from a sweep whose row is held to trials that run, for claims
 * and asks alike. First what is queued (trials that people enqueued among it, in the order of
 * numbers), then suggestions. Which of them share a slot says grouping.h.
 *
 *   assignment_open()   before: what the sweep's search needs
 *   assignment_take()   in the transaction that holds the row; may run again
 *   assignment_done()   after the commit: asks the suggester for what was lacking */
#ifndef ASSAY_SCHEDULER_ASSIGNMENT_PRIV_H
#define ASSAY_SCHEDULER_ASSIGNMENT_PRIV_H

#include "base/arena.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/assign/shape.h"
#include "scheduler/store/assignment_store.h"
#include "scheduler/store/store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/suggester/suggester_priv.h"

#define ASSIGNMENT_LOOKS 8 /* at most so often is a sweep looked at again at once */

struct assignment {
    struct store *db;
    struct arena *a;
    struct suggester *sg; /* NULL: one of its own is made when it is needed */
    const struct owner *owner;
    int64_t arrived_ns;
    bool is_hasty;                     /* do not wait at all for what is being computed */
    bool is_whole;                     /* no suggestions unless all that are wanted are there */
    const struct group_limits *groups; /* trials may share a slot; NULL: each alone */
    bool is_patient;       /* rather wait a little for the suggestions of a whole group */
    struct open_group fit; /* fill this group, take no slot; id NULL: no such wish */

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

/* The trial's own seed: 31 bits, because that is what every library's generator takes. */
int64_t trial_seed_of(int64_t sweep_seed, int64_t number);

#endif
