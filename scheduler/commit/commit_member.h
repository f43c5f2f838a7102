/* One operation that waits for its commit. */
#ifndef ASSAY_SCHEDULER_COMMIT_COMMIT_MEMBER_H
#define ASSAY_SCHEDULER_COMMIT_COMMIT_MEMBER_H

#include "base/arena.h"
#include "scheduler/assign/asks.h"
#include "scheduler/assign/claims.h"
#include "scheduler/lifecycle/attempts.h"

typedef enum commit_kind {
    COMMIT_RECORD, /* attempt_record(); of a client: ask_measure() */
    COMMIT_END,    /* attempt_complete(); of a client: ask_complete() */
    COMMIT_CLAIM,  /* claim_trials() */
    COMMIT_ASK     /* ask_trials() */
} commit_kind;

/* What became of a member in a batch. */
typedef enum commit_fate {
    COMMIT_DONE,  /* it has its answer */
    COMMIT_LATER, /* another transaction holds one of its rows */
    COMMIT_ALONE  /* transactions of its own decide it */
} commit_fate;

/* One operation that waits for its commit; embedded in a request. The caller's until `done`. */
struct commit_member {
    commit_kind kind;
    struct arena *arena;      /* answers live here; of this member alone until `done` */
    struct attempt_ref ref;   /* RECORD, END; of a client attempt 0: its latest one */
    struct attempt_writer by; /* RECORD, END */
    const char *token;        /* of by.client: as ask_ref.token */
    union {
        struct attempt_report report;
        struct completion end;
        const struct claim_request *claim;
        const struct ask_request *ask;
    } in;          /* borrowed until `done` */
    bool is_brief; /* END: of the trial the answer may have the state alone */
    union {
        int64_t recorded;
        struct trial_row trial;
        struct claim_list claim;
        struct suggestion_list asked;
    } out; /* set if status is AS_OK */
    /* RECORD, with status AS_OK: what early stopping asks of the attempt; in the arena. NULL: that
     * it goes on. */
    const struct directive_row *directive;
    as_status status;
    struct as_err err;
    /* Called once, by a thread of the committer, when the answer is on disk. Must not block. */
    void (*done)(struct commit_member *m);
    void *owner; /* for `done` */

    commit_fate fate; /* of the latest batch that had it */
    int64_t
        busy_key; /* CLAIM, COMMIT_LATER: the sweep whose row another transaction holds; 0: none */

    /* private to committer.c */
    struct commit_member *next, *prev; /* in the queue, or among those that wait for the disk */
    struct commit_member *next_job;
    int place; /* where it is on its way */
    /* The member of the same trial that comes before it in its batch; only compared. NULL: none. */
    const struct commit_member *follows;
    bool follows_notes; /* one of those before it has notes */
    int rounds;         /* in which it was postponed */
    int64_t not_before_ns;
};

#endif
