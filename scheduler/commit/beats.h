/* Heartbeats of runners that arrive together are written together (scheduler/store/beat_store.h).
 *
 * One thread takes what has queued. The first heartbeat after a pause is written at once; the next
 * set is not begun before BEATS_PAUSE_MS have passed, so that the more runners there are, the more
 * share a transaction. No heartbeat waits for the disk, and none for a row that is locked. What a
 * set does not settle is for runner_heartbeat() (scheduler/services/runners.h). */
#ifndef ASSAY_SCHEDULER_COMMIT_BEATS_H
#define ASSAY_SCHEDULER_COMMIT_BEATS_H

#include "base/mem.h"
#include "scheduler/store/beat_store.h"

#define BEATS_PAUSE_MS 20
#define BEATS_MAX 512 /* heartbeats of a set */

/* One heartbeat on its way; embedded in a request. The caller's until `done`. */
struct beat_member {
    struct beat_ask ask;   /* borrowed until `done` */
    struct beat_fact fact; /* set when `done` is called */
    /* AS_OK. AS_E_UNAVAILABLE: the database is away, or the answer to COMMIT was lost; with err. A
     * set that failed for another reason settles nothing. */
    as_status status;
    struct as_err err;
    /* Called once, by the thread of the heartbeats. Must not block. */
    void (*done)(struct beat_member *m);
    void *owner; /* for `done` */

    struct beat_member *next; /* private to beats.c */
};

/* Counts since it started. */
struct beats_figures {
    int64_t sets;    /* transactions */
    int64_t members; /* heartbeats in them */
    int64_t plain;   /* of these, settled by their set */
};

struct beats;

/* `db` is borrowed for its life. AS_E_NOMEM. */
AS_MUST_CHECK as_status beats_create(struct store *db, struct beats **ret, struct as_err *err);

/* May a set settle it: does it list no attempt twice? Otherwise do not submit it. */
bool beats_takes(const struct beat_ask *ask);

/* Queue a heartbeat. */
void beats_submit(struct beats *b, struct beat_member *m);

/* Any thread. */
void beats_figures_get(struct beats *b, struct beats_figures *ret);

/* Answers what has queued, and ends the thread. NULL is fine. */
void beats_free(struct beats *b);
AS_DEFINE_FREEP(struct beats, beats_free)

#endif
