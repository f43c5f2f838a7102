/* How many members a group of a shape should have on this runner. The number doubles from group to
 * group, as long as the measured throughput of all members together rises by a tenth. HFTA's dry
 * run finds its limit in the same way (Wang et al. 2021). A size is given up only after two
 * measurements against it, because measurements of members that end within a second are rough.
 * Pure. */
#ifndef ASSAY_TRIAL_RUNNER_GROUP_GROUP_SIZE_H
#define ASSAY_TRIAL_RUNNER_GROUP_GROUP_SIZE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define GROUP_SIZE_FIRST 8 /* for a shape that was never measured */
#define GROUP_SIZE_MOST 64
#define GROUP_SIZE_SHAPES 64

struct group_sizes {
    struct group_size {
        char *shape; /* owned */
        double
            per_size[7]; /* rows per second of groups of 1, 2, 4, … 64 members; 0: not measured */
        unsigned figures[7]; /* measurements of each size */
        int64_t most;        /* that a device had room for; 0: no limit was met */
        uint64_t used;       /* value of `notes` at its last use: the oldest shape is replaced */
    } v[GROUP_SIZE_SHAPES];
    size_t n;
    uint64_t notes;
};

void group_sizes_done(struct group_sizes *s);

/* Record a measurement: a group of so many members trained so many rows per second, all members
 * together. The best measurement of a size counts, because a busy machine gives slow ones. A size
 * between two powers of two counts as the lower one. AS_E_NOMEM. */
AS_MUST_CHECK as_status group_sizes_note(struct group_sizes *s, const char *shape, int64_t members,
                                         double rows_per_second, struct as_err *err);

/* Record that a device had room for so many members only, at least 1. Groups of this shape are not
 * larger from then on. AS_E_NOMEM. */
AS_MUST_CHECK as_status group_sizes_bound(struct group_sizes *s, const char *shape, int64_t members,
                                          struct as_err *err);

/* Returns how many members the next group of the shape should have. */
int64_t group_sizes_next(const struct group_sizes *s, const char *shape);

/* Returns [{"shape", "members"}…] for a claim: a new reference, or NULL if memory is out. */
json_t *group_sizes_json(const struct group_sizes *s);

#endif
