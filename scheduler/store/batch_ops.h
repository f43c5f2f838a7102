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

/* Which rows a member needs. No two members of a batch concern one trial. */
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

/* What the tables hold for it. The row of its trial is locked, that of its sweep too if it ends, and
 * that of its gang is shared. */
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
    struct sweep_locked *sweep; /* set if it ends; members of one sweep share it */
    struct trial_head trial;
    int64_t epoch, leader; /* of its gang; leader -1: nobody leads */
    const char *reported;  /* the outcome that was reported for the attempt; NULL: none. Read if it
                              ends, or if the trial is queued */
    const char *metrics;   /* JSON: the latest values of the trial; read if it ends */
    int64_t latest_step;   /* that the attempt measured, -1: none; read if it has points */
    struct measured_other other; /* of its points; read if an outcome was reported */
};

/* ---- write ---- */

/* Points and notes of an attempt. */
struct batch_record {
    struct trial_points points; /* .ret is set by write() */
    struct trial_notes notes;
    bool is_report;    /* new points are an event, with the trial's value: */
    const char *sweep; /* id */
    trial_state state;
};

/* A trial that changes its state, its attempt that ends, and the event. */
struct batch_end {
    struct trial_moved trial;
    struct attempt_end attempt;
    struct event_new event;
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
    struct batch_end *ends;
    size_t n_ends;
    struct batch_row *rows;
    size_t n_rows;
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
    /* Wait until everything that run() committed before this call is on disk. sent_ns: of the
     * oldest of it. AS_E_UNAVAILABLE: nobody knows whether it is. One thread. */
    as_status (*sync)(void *ctx, int64_t sent_ns, struct as_err *err);
};

#endif
