/* Which trials share a process: decided from the queue, and from suggestions as they come. Pure.
 *
 * A slot holds one trial alone or one group. The first trial of a slot is always what comes next in
 * the sweep's order: the oldest that is queued, else the next suggestion. Trials of the same shape
 * join it, queued ones first. A suggestion of another shape goes to the next free slot; without one
 * it waits in the queue, and only so many may (GROUP_AHEAD): each of them was suggested before it
 * could run, so a method that learns pays for them with knowledge.
 *
 * An open group that is filled again takes queued trials past older ones of other shapes only while
 * the oldest of those is at most GROUP_REACH * max_members numbers older: then it gets nothing,
 * ends with its members, and the oldest gets its slot. */
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
#define GROUP_UNMEASURED 8 /* members of a shape that neither the document nor the runner knows */
#define GROUP_LEARNS 4     /* at most, of methods that learn, where the document does not say */
#define GROUP_LOOK 256     /* of the queue, the oldest so many; more than any reach */
/* Suggestions that may wait in the queue, in groups' worth, by whether the method learns. With two
 * shapes in equal parts one group's worth fills a group; methods that do not learn lose nothing by
 * drawing further, and make full groups of up to five shapes. */
#define GROUP_AHEAD(learns) ((learns) ? 1 : 4)

/* What decides whether a trial may share a process (shape.h makes it). */
struct trial_shape {
    const char *text;         /* trials of equal texts may be members of one group; NULL: none */
    int64_t bytes_per_member; /* > 0 where there is a text */
};

/* How many members a runner wants in groups of that shape, by the throughput that it measured. */
struct measured_shape {
    const char *shape;
    int64_t members; /* 1..64 */
};

/* A group that a runner still runs and wants to fill again. */
struct group_fit {
    const char *group; /* its id; NULL: no such wish */
    int64_t members;   /* 1..64: new ones at most */
};

/* What a runner allows of the groups that it gets. Strings and rows are borrowed. */
struct group_limits {
    int64_t members;      /* 1..64: trials of one shape that may share a slot; 0 is 1 */
    int64_t memory_bytes; /* that a group may use; 0: no bound */
    struct group_fit fit; /* only trials for this group */
    const struct measured_shape *measured; /* each shape at most once */
    size_t n_measured;
};

/* How many trials of a sweep may share one process. */
struct group_rule {
    int64_t max;   /* as in the sweep's row (max_group) */
    bool is_given; /* by the document: then exactly so many, else as the runner measured */
};

/* How many trials of that shape may share one process of this runner: the rule's max, within the
 * limits' members and memory_bytes / bytes_per_member; where the rule is not given, within what the
 * runner measured of that shape, else GROUP_UNMEASURED. At least 1. With a fit, which says how many
 * more it wants, only the rule and the memory bound it. */
int64_t group_places(const struct group_limits *limits, struct group_rule rule, const char *shape,
                     int64_t bytes_per_member);

/* The most members of a group of any shape, the memory left aside. At least 1. */
int64_t group_most(const struct group_limits *limits, struct group_rule rule);

struct open_group {
    const char *id, *shape; /* views */
    int64_t places;         /* max_members */
    int64_t free;           /* of them, still to be filled now */
};

struct grouping {
    const struct group_limits *limits; /* borrowed; NULL: each trial alone */
    const char *sweep;                 /* id */
    struct group_rule rule;
    int64_t slots; /* free */
    int64_t room;  /* trials that may begin */
    int64_t ahead; /* suggestions that may be queued */
    int64_t even;  /* members of a new group at most, so that all slots get some */
    int64_t reach; /* the highest number that open groups take */
    struct open_group groups[GROUP_SLOTS_MAX];
    size_t n_groups;
};

/* Set slots, room, and from what there is (trials queued and suggestions to come) `even`. */
void grouping_begin(struct grouping *g, int64_t slots, int64_t room, int64_t there_is);

/* How far the one open group may reach past the oldest queued trial that does not fit it. */
void grouping_limit_reach(struct grouping *g, const struct queued_trial *queue, size_t n);

/* Choose from the queue. ret[*ret_n] gets what begins, ids in the arena; it has room for n rows.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status grouping_queue(struct grouping *g, struct arena *a,
                                       const struct queued_trial *queue, size_t n,
                                       struct begun_trial *ret, size_t *ret_n, struct as_err *err);

/* How many further suggestions would have a place now. */
int64_t grouping_wants(const struct grouping *g);

typedef enum grouping_verdict {
    GROUPING_RUNS,  /* in *ret_group, or alone (NULL) */
    GROUPING_WAITS, /* in the queue */
    GROUPING_ENOUGH /* it is not to become a trial now */
} grouping_verdict;

/* What becomes of the next suggestion. AS_E_NOMEM. */
AS_MUST_CHECK as_status grouping_suggestion(struct grouping *g, struct arena *a, int64_t number,
                                            const struct trial_shape *shape, grouping_verdict *ret,
                                            const char **ret_group, struct as_err *err);

#endif
