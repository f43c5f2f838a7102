/* Tables of the scheduler in memory, with transactions, locks of rows, and a log that a power cut
 * may shorten: what the functions of scheduler/store/ read and write in a simulation.
 *
 * A row is changed in a copy of the transaction, which must hold its lock; others see what was
 * committed. Each function of the store is a round trip: it lets other fibers run, and it may fail
 * by the rates of struct sim_faults. After each commit the invariants of the rows that it changed
 * are checked (scheduler/README.md). */
#ifndef ASSAY_TESTS_SIMULATION_TABLES_H
#define ASSAY_TESTS_SIMULATION_TABLES_H

#include "base/arena.h"
#include "scheduler/commit/commit_member.h"
#include "scheduler/store/batch_ops.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/tx.h"
#include "tests/simulation/rows.h"

/* ---- what a transaction did, for the run one at a time ---- */

typedef enum sim_deed_kind {
    DEED_MEMBER, /* a report or an end changed something */
    DEED_BEGUN,  /* a trial began */
    DEED_LOST    /* attempts were lost */
} sim_deed_kind;

struct sim_deed {
    sim_deed_kind kind;
    const struct commit_member *member; /* MEMBER */
    int64_t sweep_key;                  /* BEGUN, as the next five */
    bool is_made;
    struct made_trial made;
    char params[64], suggestion[160];
    char runner[8], claim_id[24];
    struct trial_key lost[16]; /* LOST, as the next two */
    size_t n_lost;
    char reason[64];
};

/* ---- faults ---- */

/* Errors that the check must find. */
typedef enum sim_plant {
    PLANT_NONE,
    PLANT_EARLY,    /* a batch is answered before its COMMIT */
    PLANT_NO_WAIT,  /* … before it is on the disk */
    PLANT_NO_FENCE, /* the attempt of a write is not compared */
    PLANT_TWICE,    /* a batch that runs again applies its ends twice */
    PLANT_CARRY,    /* values of a lost attempt stay when the next one begins */
    PLANT_NO_LOCK,  /* a batch takes rows that others hold */
    PLANT_UNSEEN,   /* a repeat is answered before what it found is on the disk */
    PLANTS
} sim_plant;
extern const char *const sim_plant_words[];

/* How often things fail: of each statement, or of each COMMIT. */
struct sim_faults {
    double lost;       /* the connection is lost: the transaction runs again */
    double deadlock;   /* it runs again */
    double fails;      /* a statement of a batch fails for no such reason */
    double lost_reply; /* of a COMMIT that took effect; as many did not */
    double round_trip_ms;
    bool only_batches; /* the rates are of TX_BATCH alone */
};

/* ---- the database ---- */

struct sim_commit;

struct sim_db {
    struct sim_tables *t;
    struct sim_faults faults;
    sim_plant plant;
    int64_t started_ns; /* when it came back last: connections that are older are lost */
    bool is_away;
    int64_t last_served;
    struct sim_commit *commits;
    size_t n_commits, n_durable, cap_commits;
    struct sim_event *events;
    size_t n_events, cap_events;
    struct sim_deed *deeds;
    size_t n_deeds, cap_deeds;
    int64_t n_reruns, n_batches, n_failed, n_waits; /* for the test that all of it happens */
};

/* A server's connections. */
struct store {
    struct sim_db *db;
    struct sched_config config;
    struct store_counters counters;
    struct doc_cache *docs;
    int64_t disk_since_ns; /* when the connection that waits for the disk was opened */
    bool is_dead;          /* the process was killed: nothing of it takes effect any more */
};

struct sim_edit {
    struct sim_row *row;
    void *copy;
    size_t size;
};

struct sim_tx {
    struct tx base; /* what statements get */
    struct store *store;
    int64_t began_ns;
    bool retry, is_broken;
    int runs;
    struct arena a;
    struct sim_edit *edits;
    size_t n_edits, cap_edits;
    struct sim_row **locks;
    size_t n_locks, cap_locks;
    const struct sim_row *waits_for;
    struct sim_event *events;
    size_t n_events, cap_events;
    struct sim_deed *deeds;
    size_t n_deeds, cap_deeds;
    const struct commit_member *alone; /* the member that this transaction runs for */
    const struct batch_ask *asks;      /* of a batch */
    size_t n_asks;
};

void sim_db_init(struct sim_db *db);
void sim_db_done(struct sim_db *db);
/* What was not on disk is gone, but for a random part, and all connections are lost. */
void sim_db_cut_power(struct sim_db *db, int64_t away_ms);

struct store *sim_store_create(struct sim_db *db);
/* SIGKILL: its transactions are rolled back, and nothing of it takes effect any more. */
void sim_store_kill(struct store *s);
void sim_store_free(struct store *s);

/* ---- for the functions of the store ---- */

static inline struct sim_tx *sim_tx_of(struct tx *t)
{
    return (struct sim_tx *)(void *)t;
}

/* A round trip. Anything but AS_OK ends the transaction. */
AS_MUST_CHECK as_status sim_statement(struct tx *t, struct as_err *err);
/* Lock a row. AS_E_CONFLICT: another transaction holds it, and it must not wait. */
AS_MUST_CHECK as_status sim_lock(struct tx *t, struct sim_row *row, bool waits, struct as_err *err);
bool sim_holds(struct tx *t, const struct sim_row *row);

/* The row as this transaction sees it. */
const void *sim_see(struct tx *t, const struct sim_row *row);
#define SIM_SEE(t, p) ((const __typeof__(*(p)) *)sim_see((t), &(p)->row))
/* The same, to be changed: it holds the lock. */
void *sim_edit(struct tx *t, struct sim_row *row, size_t size);
#define SIM_EDIT(t, p) ((__typeof__(p))sim_edit((t), &(p)->row, sizeof *(p)))

/* batch_ops.run, with a struct store. */
as_status sim_run_batch(void *ctx, batch_body *body, void *arg, struct batch_end_of_run *ret,
                        struct as_err *err);
extern const struct batch_ops sim_batch_ops;

void sim_add_event(struct tx *t, const struct event_new *e);
struct sim_deed *sim_add_deed(struct tx *t, sim_deed_kind kind);

struct sim_tables *sim_tables_of(struct tx *t);

/* How many trials the sweep may give before there are slots for them (AHEAD_ROOM_OF of
 * store/has_work_priv.h). */
int64_t sim_ahead_room(const struct sim_sweep *s);
/* NULL: there is none. */
struct sim_sweep *sim_sweep_of(struct tx *t, int64_t key);
struct sim_trial *sim_trial_of(struct tx *t, int64_t key, int64_t number);
struct sim_runner *sim_runner_of(struct tx *t, const char *name);

/* ---- shared by the two halves of the fake store ---- */

void sim_fill_sweep(struct tx *t, struct arena *a, struct sim_sweep *s, struct sweep_locked *ret);
struct trial_head sim_head_of(struct tx *t, struct arena *a, int64_t key, int64_t number);
void sim_fill_trial(struct tx *t, struct arena *a, int64_t key, int64_t number,
                    struct trial_row *ret);
/* JSON of the latest values. */
const char *sim_metrics_of(struct arena *a, const struct sim_trial *x);
struct measured sim_add_points(struct tx *t, const struct trial_points *p);
struct measured_other sim_compare_points(struct tx *t, const struct trial_points *p);
void sim_put_notes(struct tx *t, const struct trial_notes *n);
AS_MUST_CHECK as_status sim_move_trial(struct tx *t, const struct trial_moved *m, bool is_guarded,
                                       struct as_err *err);
void sim_end_attempt(struct tx *t, const struct attempt_ended *e);
/* The trial begins its next attempt for this owner; `made` if it is new, else its number. */
AS_MUST_CHECK as_status sim_begin_trial(struct tx *t, int64_t key, const struct made_trial *made,
                                        bool is_made, const struct owner *o, struct as_err *err);
int64_t sim_latest_step(const struct sim_attempt *x);
/* The member whose name of a sweep is at this address; NULL: it is not known. Of world.c. */
const struct commit_member *sim_member_at(const char *sweep);
/* How many attempts a runner holds, and how many of them are in the list; keys: their sweeps. */
int64_t sim_held(struct tx *t, const char *runner, const struct attempt_ref *ending, size_t n,
                 int64_t *ret_ending, int64_t *keys);
/* Turns as they are counted when n trials begin. */
void sim_count_turns(struct tx *t, int64_t key, int64_t n);

#endif
