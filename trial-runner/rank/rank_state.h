/* What a rank of a gang does when something happens: a table of states and events. Pure.
 *
 *   seated      its process does not listen yet
 *   announced   the server is told where; not in a world yet
 *   member      in the newest world, with others
 *   alone       in the newest world, the only one
 *   short       in the newest world, which waits for more ranks; with others
 *   short alone in the newest world, which waits for more ranks; the only one
 *   leaving     a member that has asked to leave
 *   stopping    its process was asked for a checkpoint and its end: it is the only one, or it leads
 *               and all stop together
 *   out         no member any more, or the gang is over: its process must not run
 *   gone        its process has ended */
#ifndef ASSAY_TRIAL_RUNNER_RANK_RANK_STATE_H
#define ASSAY_TRIAL_RUNNER_RANK_RANK_STATE_H

#include "trial-runner/rank/rank_world.h"
#include "trial-runner/process/verdict.h"

typedef enum rank_state {
    RANK_SEATED,
    RANK_ANNOUNCED,
    RANK_MEMBER,
    RANK_ALONE,
    RANK_SHORT,
    RANK_SHORT_ALONE,
    RANK_LEAVING,
    RANK_STOPPING,
    RANK_OUT,
    RANK_GONE,
    RANK_STATES
} rank_state;

typedef enum rank_happens {
    RANK_LISTENS,     /* it is known where */
    RANK_IN,          /* a new world: it and others */
    RANK_IN_ALONE,    /* a new world: it is the only one */
    RANK_WAITS,       /* a new world that is too small, with it and others */
    RANK_WAITS_ALONE, /* a new world that is too small: it alone */
    RANK_NOT_IN,      /* a new world without it */
    RANK_IS_OVER,     /* the gang is over */
    RANK_DRAINS,      /* its runner leaves */
    RANK_ENDS_EARLY,  /* early stopping ends the attempt, and this rank leads */
    RANK_ENDS,        /* its process has ended */
    RANK_HAPPENINGS
} rank_happens;

/* What is to be done: a set. */
typedef enum rank_action {
    RANK_TELL = 1,   /* tell the server where it listens */
    RANK_MEET = 2,   /* tell its process the world (an elastic gang), or start it (a fixed one) */
    RANK_LEAVE = 4,  /* ask the server for a world without it */
    RANK_FINISH = 8, /* ask its process for a checkpoint and its end */
    RANK_DROP = 16,  /* end its process; the server expects nothing of it any more */
    RANK_QUIT = 32,  /* end its process; the server is told its end */
} rank_action;

/* Returns the actions; *state is the next state. */
unsigned rank_step(rank_state *state, rank_happens happens);

/* What a newer world is for the rank of this seat. */
rank_happens rank_meaning(const struct rank_world *w, int64_t seat);

const char *rank_state_word(rank_state s); /* for logs */

/* How the end of a rank reaches the server. */
typedef enum rank_way {
    RANK_WAY_NOTHING,  /* not at all: it is out, or the gang is over */
    RANK_WAY_END,      /* at once, as the end of this rank */
    RANK_WAY_COMPLETE, /* after its measurements and files, as the end of the attempt */
} rank_way;

/* The leader's end is the end of the attempt, unless the gang is elastic, others live, and the
 * process was killed or has to be tried again: then the others go on.
 *   rank, n    in the newest world; rank -1: no member
 *   by_signal  what ended the process */
rank_way rank_way_of(bool elastic, int64_t rank, size_t n, rank_state state, outcome o,
                     bool by_signal);

#endif
