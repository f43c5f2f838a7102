/* What a batch of the committer (scheduler/commit/) reads and writes, as rows and a table of
 * functions. The real functions are those of batch_store.h; a simulation has others.
 *
 * A batch is one transaction: run() calls its body, which calls read(), decides, and calls write()
 * at most once. The body may run several times. It is durable only when a sync() that began after
 * run() has returned AS_OK; nobody may be answered before. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_OPS_H
#define ASSAY_SCHEDULER_STORE_BATCH_OPS_H

#include "base/arena.h"
#include "scheduler/rows/assignment_row.h"
#include "scheduler/rows/file_row.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/note_store.h"
#include "scheduler/store/rung_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_move_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"

/* ---- read ---- */

/* Which rows a member needs. Several members of a trial stand in their order. */
struct batch_ask {
    struct attempt_ref ref; /* attempt 0: the latest one of `client` */
    const char *client;     /* NULL: a runner, or a gang */
    const char *token;      /* of the client: the id of the token that it shows; NULL: any */
    bool has_seat;          /* it names a rank of a gang */
    int64_t seat;
    bool extends;    /* the lease of the client is extended */
    bool ends;       /* it ends its attempt: the row of the sweep is locked too */
    bool wants_step; /* the latest step of the attempt */
    /* Of a report; or final values of an end, as struct completion has them. */
    const struct measurement *points;
    size_t n_points;
};

/* What the tables hold for it. The row of its trial is locked, that of its sweep too if it ends or
 * may reach a rung, and that of its gang is shared. */
struct batch_fact {
    bool has_sweep, has_trial;
    bool is_busy; /* another transaction holds one of its rows */
    struct attempt_holder holder;
    int64_t
        attempt;    /* the attempt that is meant. Of a client with attempt 0: its latest; 0: none */
    int64_t latest; /* of a client: its latest attempt; 0: none */
    bool is_anothers;           /* of a client: it has attempts, all with other tokens */
    bool has_seat;              /* the seat that it names is there */
    const char *seat_secret;    /* what its writer must show; NULL: nothing */
    struct sweep_locked *sweep; /* set if its row is locked; members of one sweep share it. Its
                                   board is set if one of them may reach a rung */
    struct trial_head trial;
    int64_t epoch, leader; /* of its gang; leader -1: nobody leads */
    const char *reported;  /* the outcome that was reported for the attempt; NULL: none. Read if it
                              ends, or if the trial is queued */
    const char *metrics;   /* JSON: the latest values of the trial; read if it ends */
    int64_t latest_step;   /* that the attempt measured, -1: none; read if it is wanted */
    struct measured_other other; /* of its points; read if an outcome was reported */
    /* Values at its steps that were recorded before, and its points lack; read if it may reach a
     * rung with a report. */
    const struct measurement *stored;
    size_t n_stored;
};

/* ---- write ---- */

/* Points and notes of an attempt. */
struct batch_record {
    struct trial_points points; /* .ret is set by write() */
    struct trial_notes notes;
    bool has_value; /* of the trial, afterwards; if points.keeps_row */
    double value;
    bool is_report;    /* new points are an event, with the trial's value: */
    const char *sweep; /* id */
    trial_state state;
};

/* A trial that changes its state, its attempt that ends, and the event. */
struct batch_end {
    struct trial_moved trial;
    struct attempt_end attempt;
    struct event_new event;
    bool is_plain; /* no fork, and not added with its result: trial.spent is set */
};

/* A trial as it is afterwards. */
struct batch_row {
    struct trial_key key;
    struct arena *arena;
    struct trial_row row; /* set by write(), in its arena */
};

struct batch_changes {
    struct batch_record *records;
    size_t n_records;
    struct rung_changes rungs;
    struct batch_end *ends;
    size_t n_ends;
    struct batch_row *rows;
    size_t n_rows;
};

/* ---- claims ---- */

/* A runner that claims. */
struct batch_claimer {
    const char *runner, *claim_id;
    const struct attempt_ref *ending; /* as in struct claim_request */
    size_t n_ending;
};

/* What the tables hold for it. Its row is locked; no two of a batch are of one runner. */
struct batch_runner {
    bool is_there; /* false: there is no such runner, or another transaction holds its row */
    int64_t epoch;
    const char *state, *secret;
    int64_t slots, gpus;   /* that it has; without GPUs that are set aside */
    int64_t running, used; /* attempts; slots that are taken by what does not end */
    const int64_t *ending; /* the sweeps of its attempts that end */
    size_t n_ending;
    bool takes_seats; /* as its latest claim said */
    bool has_seats;   /* seats of gangs wait for it */
    bool is_repeated; /* the claim has attempts already */
    bool is_due;      /* its lease was not extended for a while */
};

/* A sweep that has something to hand out, as it was read without a lock. */
struct batch_turn {
    int64_t key, priority, running, turns, served, gpus;
    int64_t queued, left;   /* trials that are queued; that may still be made */
    int64_t max_concurrent; /* 0: no limit */
    int64_t steps_room;     /* trials that limits.max_steps lets begin; INT64_MAX: no limit */
    int64_t grace_ms;
    bool is_gang, has_needs, has_shapes,
        learns;         /* has_needs: cores, memory, or its machine alone */
    bool gives_ahead;   /* its trials may be claimed ahead (has_work_priv.h) … */
    int64_t ahead_room; /* … and so many of them now */
};

#define BATCH_TURNS_MAX 128

/* Sweeps in the order of turns (turn_store.h), and what else concerns all claims. */
struct batch_turns {
    struct batch_turn *rows;
    size_t n;
    int64_t max_turns; /* of all sweeps that run */
    bool has_waits;    /* some sweep waits for room on a runner, or has a machine to itself */
    bool has_gangs;    /* a gang gathers, or may take more ranks */
};

/* A sweep that claims take trials of. */
struct batch_source {
    int64_t key;
    int64_t n_wanted;         /* queued trials that may be needed */
    struct sweep_locked *row; /* set by take(); NULL: another transaction holds it */
    int64_t steps_room;       /* as in batch_turn, and exact: set by take() */
    struct batch_queued {
        int64_t number, attempt, seed;
        const char *params;
        bool is_fork;           /* it may have a checkpoint, though it never ran */
        struct file_list files; /* of its checkpoint */
    } * queue;                  /* the oldest queued trials */
    size_t n_queue;
};

/* A trial that begins. */
struct batch_begun {
    int64_t sweep_key;
    const char *sweep; /* id */
    bool is_made;      /* `made` is inserted; else the queued trial made.number begins */
    struct made_trial made;
    int64_t attempt;
    const struct owner *owner;
};

/* The search of a sweep goes on after suggestions became trials. */
struct batch_searched {
    int64_t key, mark;
    const char *state; /* JSON; NULL: none */
};

struct batch_claims {
    const struct batch_begun *begun;
    size_t n_begun;
    const char *const *runners; /* whose lease is extended */
    size_t n_runners;
    const struct batch_searched *searched;
    size_t n_searched;
    const int64_t *started; /* sweeps whose first trial begins */
    size_t n_started;
    /* Sweeps that had turns, in the order of their latest ones; none if it is one sweep: then its
     * turns go on from what its row says. */
    const struct batch_turned {
        int64_t key, turns;
    } * turned;
    size_t n_turned;
};

/* ---- the table ---- */

/* How a batch is run. */
struct batch_end_of_run {
    bool is_away; /* the database could not be reached, or the answer to COMMIT was lost: it
                             may be committed */
    int64_t
        sent_ns; /* monotonic: a time before COMMIT was sent, after the connection that waits for
                        the disk was open */
};

typedef as_status batch_body(void *arg, struct tx *t, struct as_err *err);

struct batch_ops {
    /* Run the body in a transaction, again if it failed without effect. Returns how it ended. */
    as_status (*run)(void *ctx, batch_body *body, void *arg, struct batch_end_of_run *ret,
                     struct as_err *err);
    /* Read and lock, in the order of locks. Rows that others hold are skipped, unless is_patient is
     * set. ret: n facts, zeroed before. */
    as_status (*read)(struct tx *t, struct arena *a, const struct batch_ask *asks, size_t n,
                      bool is_patient, struct batch_fact *ret, struct as_err *err);
    /* Write all. A row that is not as its guard says is an error. */
    as_status (*write)(struct tx *t, struct arena *a, struct batch_changes *c, struct as_err *err);
    /* For claims: lock the rows of runners that nobody else holds, and read what can be handed
     * out. ret: n rows, zeroed before. */
    as_status (*look)(struct tx *t, struct arena *a, const struct batch_claimer *claimers, size_t n,
                      struct batch_runner *ret, struct batch_turns *ret_turns, struct as_err *err);
    /* Lock the rows of these sweeps (by key, ascending) that nobody else holds, or, if is_patient
     * is set, wait for them; and read their queues. */
    as_status (*take)(struct tx *t, struct arena *a, struct batch_source *sources, size_t n,
                      bool is_patient, struct as_err *err);
    /* The documents of these sweeps; NULL: it was deleted. */
    as_status (*documents)(struct tx *t, struct arena *a, const int64_t *keys, size_t n,
                           const char **ret, struct as_err *err);
    as_status (*begin)(struct tx *t, struct arena *a, const struct batch_claims *c,
                       struct as_err *err);
    /* Wait until everything that run() committed before this call is on disk. sent_ns: of the
     * oldest of it. AS_E_UNAVAILABLE: nobody knows whether it is. One thread. */
    as_status (*sync)(void *ctx, int64_t sent_ns, struct as_err *err);
};

#endif
