/* One batch of the committer: requests of many, decided and written in one transaction. No threads;
 * what it reads and writes goes through a table of functions (scheduler/store/batch_ops.h). */
#ifndef ASSAY_SCHEDULER_COMMIT_BATCH_H
#define ASSAY_SCHEDULER_COMMIT_BATCH_H

#include "base/arena.h"
#include "scheduler/assign/asks.h"
#include "scheduler/assign/claims.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/store/batch_ops.h"

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
    } in; /* borrowed until `done` */
    union {
        int64_t recorded;
        struct trial_row trial;
        struct claim_list claim;
        struct suggestion_list asked;
    } out; /* set if status is AS_OK */
    as_status status;
    struct as_err err;
    /* Called once, by a thread of the committer, when the answer is on disk. Must not block. */
    void (*done)(struct commit_member *m);
    void *owner; /* for `done` */

    commit_fate fate; /* of the latest batch that had it */

    /* private to committer.c */
    struct commit_member *next, *prev; /* in the queue, or among those that wait for the disk */
    struct commit_member *next_job;
    int place;  /* where it is on its way */
    int rounds; /* in which it was postponed */
    int64_t not_before_ns;
};

/* How a batch ended. */
struct batch_result {
    bool is_away;    /* after an error: the database is away, or the answer to COMMIT was lost. The
                        members may be recorded: they are AS_E_UNAVAILABLE, and may repeat */
    int64_t sent_ns; /* for batch_ops.sync */
    /* of the members that are done: */
    int64_t recorded;  /* points */
    int64_t completed; /* ends that changed a trial */
    int64_t late;      /* of these, after the attempt was declared lost */
    int64_t stale;     /* refused for that */
    int64_t claimed;   /* trials that began */
};

/* Decide these members (RECORD and END) in one transaction. No two of them may concern one trial.
 * Sets the fate of each; of those that are done, status, err and out. Their answers are not on disk
 * yet: see batch_ops.sync. After an error nothing is set, and, unless result->is_away, nothing is
 * written: each member may run alone. */
AS_MUST_CHECK as_status batch_commit(const struct batch_ops *ops, void *ctx, bool is_patient,
                                     struct commit_member *const *members, size_t n,
                                     struct batch_result *ret, struct as_err *err);

/* Run one member of any kind in transactions of its own, until its answer is on disk; sets status,
 * err and out. These are the functions that batch_commit() is compared with. */
void commit_alone(struct store *db, struct suggester *sg, struct commit_member *m);

#endif
