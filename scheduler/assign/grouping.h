/* Which trials share a process: decided from the queue, and from suggestions as they arrive. Pure.
 *
 * A slot holds one trial alone or one group. The first trial of a slot is always the next one in
 * the sweep's order: the oldest queued trial, else the next suggestion. Trials of the same shape
 * join it, queued trials first. A suggestion of another shape goes to the next free slot. Without a
 * free slot it waits in the queue. Only GROUP_AHEAD groups' worth may wait: each of them was
 * suggested before it could run, so a method that learns knows fewer results for it.
 *
 * An open group that is filled again takes queued trials past older ones of other shapes only while
 * the oldest of those is at most GROUP_REACH * max_members numbers older. Past that it gets
 * nothing, ends with its members, and the oldest trial gets its slot. */
#ifndef ASSAY_SCHEDULER_ASSIGN_GROUPING_H
#define ASSAY_SCHEDULER_ASSIGN_GROUPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/assignment_row.h"

#define GROUP_SLOTS_MAX 64
#define GROUP_ID_MAX 128
#define GROUP_REACH 2
#define GROUP_UNMEASURED 8 /* members, if neither the document nor the runner gives a number */
#define GROUP_LEARNS 4     /* at most, for methods that learn, if the document gives no number */
#define GROUP_LOOK 256     /* how many of the oldest queued trials are read; more than any reach */
/* Suggestions that may wait in the queue, in groups' worth, by whether the method learns. With two
 * shapes in equal parts, one group's worth fills a group. Methods that do not learn lose nothing if
 * they draw further, and fill groups of up to five shapes. */
#define GROUP_AHEAD(learns) ((learns) ? 1 : 4)

/* The shape of a trial decides whether it may share a process (shape.h computes it). */
struct trial_shape {
    const char *text;         /* trials of equal texts may be members of one group; NULL: no
                                 shape */
    int64_t bytes_per_member; /* > 0 if there is a text */
};

/* The number of members that a runner wants in groups of that shape, by the throughput that it
 * measured. */
struct measured_shape {
    const char *shape;
    int64_t members; /* 1..64 */
};

/* A group that a runner still runs and wants to fill again. */
struct group_fit {
    const char *group; /* its id; NULL: no group is to be filled */
    int64_t members;   /* 1..64: the most new members */
};

/* The limits of a runner for the groups that it gets. Strings and rows are borrowed. */
struct group_limits {
    int64_t members;          /* 1..64: trials of one shape that may share a slot; 0 is 1 */
    int64_t memory_bytes;     /* limit of a group's memory; 0: no limit */
    int64_t gpu_memory_bytes; /* the same where trials have GPUs, in its place; 0: not known */
    struct group_fit fit;     /* only trials for this group */
    const struct measured_shape *measured; /* each shape at most once */
    size_t n_measured;
};

/* How many trials of a sweep may share one process. */
struct group_rule {
    int64_t max;   /* max_group of the sweep's row */
    bool is_given; /* the document gives max: then exactly so many, else what the runner measured */
    bool on_gpu;   /* its trials have GPUs */
};

/* How many trials of that shape may share one process of this runner: the rule's max, within the
 * limits' members and their memory / bytes_per_member. If the document does not give the rule, also
 * within what the runner measured for that shape, else GROUP_UNMEASURED. At least 1. A fit gives
 * its own number of new members, so only the rule and the memory limit it. */
int64_t group_places(const struct group_limits *limits, struct group_rule rule, const char *shape,
                     int64_t bytes_per_member);

/* The most members of a group of any shape, without regard to memory. At least 1. */
int64_t group_most(const struct group_limits *limits, struct group_rule rule);

struct open_group {
    const char *id, *shape; /* views */
    int64_t places;         /* max_members */
    int64_t free;           /* places that can still be filled now */
};

struct grouping {
    const struct group_limits *limits; /* borrowed; NULL: each trial alone */
    const char *sweep;                 /* id */
    struct group_rule rule;
    int64_t slots; /* free slots */
    int64_t room;  /* trials that may begin */
    int64_t ahead; /* suggestions that may be queued */
    int64_t even;  /* the most members of a new group, so that every slot gets some */
    int64_t reach; /* the highest trial number that open groups take */
    struct open_group groups[GROUP_SLOTS_MAX];
    size_t n_groups;
};

/* Set slots and room, and compute `even` from the available trials (queued trials and
 * suggestions). */
void grouping_begin(struct grouping *g, int64_t slots, int64_t room, int64_t there_is);

/* How far the open group may overtake the oldest queued trial that does not fit it. */
void grouping_limit_reach(struct grouping *g, const struct queued_trial *queue, size_t n);

/* Choose from the queue. ret[*ret_n] gets the trials that begin, with ids in the arena; it has room
 * for n rows. Suggestions that go on waiting (is_ahead) take places of g->ahead. AS_E_NOMEM. */
AS_MUST_CHECK as_status grouping_queue(struct grouping *g, struct arena *a,
                                       const struct queued_trial *queue, size_t n,
                                       struct begun_trial *ret, size_t *ret_n, struct as_err *err);

/* How many more suggestions have a place now. */
int64_t grouping_wants(const struct grouping *g);

typedef enum grouping_decision {
    GROUPING_RUNS,  /* it runs in *ret_group, or alone (NULL) */
    GROUPING_WAITS, /* it waits in the queue */
    GROUPING_ENOUGH /* it must not become a trial now */
} grouping_decision;

/* Decide the place of the next suggestion. AS_E_NOMEM. */
AS_MUST_CHECK as_status grouping_suggestion(struct grouping *g, struct arena *a, int64_t number,
                                            const struct trial_shape *shape, grouping_decision *ret,
                                            const char **ret_group, struct as_err *err);

#endif
