/* What a batch of the committer (scheduler/commit/) reads and writes, as rows and a table of
 * functions. The real functions are those of batch_store.h; a simulation has others.
 *
 * A batch is one transaction: run() calls its body, which calls read(), decides, and calls write()
 * at most once. The body may run several times. It is durable only when a sync() that began after
 * run() has returned AS_OK; nobody may be answered before. */
#ifndef ASSAY_SCHEDULER_STORE_BATCH_OPS_H
#define ASSAY_SCHEDULER_STORE_BATCH_OPS_H

#include "base/arena.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/note_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"

/* ---- read ---- */

/* Which rows a member needs. */
struct batch_ask {
    struct attempt_ref ref; /* attempt 0: the latest one of `client` */
    const char *client;     /* NULL: a runner, or a gang */
    const char *token;      /* of the client: the id of the token that it shows; NULL: any */
    bool has_seat;          /* it names a rank of a gang */
    int64_t seat;
    bool extends; /* the lease of the client is extended */
    bool ends;    /* it ends its attempt: the row of the sweep is locked too */
    /* Final values of an end, as struct completion has them. */
    const struct measurement *points;
    size_t n_points;
};

/* What the tables hold for it. The rows of its sweep (if it ends) and of its trial are locked, and
 * the row of its gang is shared. */
struct batch_fact {
    bool has_sweep, has_trial;
    bool is_busy; /* another transaction holds one of its rows: nothing below but `holder` is set */
    struct attempt_holder holder;
    int64_t attempt;          /* the attempt that is meant; 0: the client had none */
    bool is_anothers;         /* the client had attempts, all with other tokens */
    struct sweep_head *sweep; /* only if it ends; members of one sweep share it */
    bool has_target;          /* of the sweep */
    double target;
    struct trial_head trial;
    const char *metrics; /* JSON: the latest values of the trial; only if it ends, and the sweep has
                             several objectives or constraints */
    const char *reported; /* the outcome that was reported for the attempt; NULL: none */
    int64_t latest_step;  /* that the attempt measured; -1: none */
    /* Of `points`: the first one of which another value is recorded, place -1: none. has_value is
     * set. `is_new`: some point is not recorded. */
    struct measured_other other;
    bool is_new;
    /* of a gang */
    bool has_seat;
    const char *seat_secret; /* of the seat that it names; NULL: none is asked for */
    int64_t epoch, leader;   /* of the world; leader -1: none */
};

/* ---- write ---- */

/* Points and notes of an attempt. */
struct batch_record {
    struct trial_points points; /* .ret is set by write() */
    struct trial_notes notes;
    bool is_report; /* new points are an event, with the trial's value */
    const char *sweep;
    trial_state state;
};

/* A trial that changes its state, and its attempt that ends. The guards are those of
 * store_trial_move() and store_attempt_end(). */
struct batch_end {
    int64_t sweep_key, number;
    struct trial_move move;
    int64_t finish_seq; /* of a trial that ends; 0: it does not end */
    struct attempt_end end;
    struct event_new event;
};

struct batch_changes {
    struct batch_record *records;
    size_t n_records;
    struct batch_end *ends;
    size_t n_ends;
    struct trial_row *rows;  /* trials as they are afterwards: sweep (id) and number are set */
    const int64_t *row_keys; /* the key of the sweep of each */
    size_t n_rows;
};

typedef as_status batch_body(void *arg, struct tx *t, struct as_err *err);

struct batch_ops {
    /* Run the body in a transaction, again if it failed without effect. Returns how it ended.
     * AS_E_UNAVAILABLE: it may be committed nevertheless. is_patient: it may wait for rows that
     * others hold. */
    as_status (*run)(void *ctx, bool is_patient, batch_body *body, void *arg, struct as_err *err);
    /* Read and lock, in the order of locks. Rows that others hold are skipped unless the batch is
     * patient. ret: n facts. */
    as_status (*read)(struct tx *t, struct arena *a, const struct batch_ask *asks, size_t n,
                      struct batch_fact *ret, struct as_err *err);
    /* Write all. A row that is not as its guard says is an error. */
    as_status (*write)(struct tx *t, struct arena *a, struct batch_changes *c, struct as_err *err);
    /* Wait until everything that run() committed before this call is on disk. */
    as_status (*sync)(void *ctx, struct as_err *err);
};

#endif
