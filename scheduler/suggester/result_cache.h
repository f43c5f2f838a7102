/* Texts computed from the results of sweeps, kept until there are later results: what is costly to
 * tell and asked for often. A bounded number of them; the least recently used goes first. All
 * functions but the first two: any thread. The lock is held for copies alone. */
#ifndef ASSAY_SCHEDULER_RESULT_CACHE_H
#define ASSAY_SCHEDULER_RESULT_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define NOTES_MAX 32

struct note {
    int64_t key, finish_seq;
    size_t subject;
    char *text;            /* owned; NULL: none yet */
    int64_t computing_seq; /* somebody computes the one for this; 0: nobody */
    int64_t used_ns;
};

struct notes {
    pthread_mutex_t mu; /* guards all below; nothing is locked while it is held */
    struct note notes[NOTES_MAX];
};

void notes_init(struct notes *x); /* of zeroed memory */
void notes_done(struct notes *x);

/* The note about one subject of a sweep (the caller's number for it). *ret is NULL when there is
 * none, else a copy in the arena. *ret_mine: the caller is to compute the one for the results up to
 * finish_seq and to put it (NULL: it could not); meanwhile others get the older one (*ret_stale),
 * or when there is none are to compute it too. AS_E_NOMEM. */
AS_MUST_CHECK as_status notes_get(struct notes *x, struct arena *a, int64_t key, size_t subject,
                                  int64_t finish_seq, const char **ret, bool *ret_mine,
                                  bool *ret_stale, struct as_err *err);
void notes_put(struct notes *x, int64_t key, size_t subject, int64_t finish_seq, const char *text);

#endif
