/* Which acquisition chooses which suggestion. */
#ifndef ASSAY_SEARCH_GP_ACQUISITION_SCHEDULE_H
#define ASSAY_SEARCH_GP_ACQUISITION_SCHEDULE_H

#include <stdint.h>

#include "search/gp/acquisition.h"
#include "search/gp/surrogate.h"
#include "search/regression/training_set.h"

/* Facts about a sweep that the schedule reads, as bits. */
enum schedule_fact {
    FACT_NONE_FEASIBLE = 1 << 0,      /* outcomes are constrained, and no trial meets them yet */
    FACT_SEVERAL_OBJECTIVES = 1 << 1, /* more than one metric */
    FACT_CATEGORIES = 1 << 2,         /* a parameter is a category, or a switch of two levels */
    FACT_STAGNANT = 1 << 3,           /* recent trials improved almost nothing */
    FACT_PENDING = 1 << 4,            /* at least one trial is pending */
    FACT_NONE_PENDING = 1 << 5,       /* no trial is pending */
    FACT_BRANCH = 1 << 6,             /* a branch deserves a trial (branch.h) */
    FACT_CROWDED = 1 << 7,            /* the trials crowd around the best (training_set.h) */
    FACT_LEVELS = 1 << 8,             /* no categories, but a parameter is not continuous */
    FACT_TRENDS = 1 << 9,             /* so many results that a trend may be followed */
    FACT_DOUBT = 1 << 10,             /* it is not known whether the best value is luck */
    FACT_FEW_SUCCEED = 1 << 11,       /* nearly all trials fail (nearby.h) */
    FACT_BASIN = 1 << 12,       /* the trials crowd, and another basin is hardly known (basin.h) */
    FACT_PART = 1 << 13,        /* a part of the space was written off too early (left_part.h) */
    FACT_VALUE = 1 << 14,       /* the sweep stalls, and that branch is one of the leading choice */
    FACT_ONE_SUCCEEDS = 1 << 15 /* one trial alone, while many are pending (nearby.h) */
};

/* How a row finds its point. */
enum schedule_point {
    POINT_BEST,      /* of the acquisition */
    POINT_QUADRATIC, /* the minimum of a quadratic, where that predicts best (quadratic.h) */
    POINT_BRANCH,    /* inside the branch that deserves a trial (branch.h) */
    POINT_REPEAT,    /* the best trial once more */
    POINT_NEARBY,    /* near one of the few trials that have succeeded (nearby.h) */
    POINT_BASIN,     /* in a basin that is not the best trial's (basin.h) */
    POINT_PART       /* in a part of the space, as if it were all of it (left_part.h) */
};

/* One row: it matches when all of its facts hold and index % period == phase. */
struct schedule_row {
    unsigned facts; /* of schedule_fact */
    unsigned period, phase;
    acquisition_kind kind;
    surrogate_target target; /* which models of the objectives */
    enum schedule_point point;
};

unsigned schedule_facts(const struct training_set *s);

/* The row for the suggestion of this index (its number among the method's suggestions); static.
 * lost: models that have lost their turns (reliability.h), as bits 1 << target; rows that look for
 * the acquisition's best point or the quadratic's are not theirs while another model is left. */
const struct schedule_row *schedule_at(unsigned facts, unsigned lost, uint64_t index);

/* The models that have no turn at this index, as bits 1 << target: those of `lost`, and the
 * warped one at three of four turns where values are noisy and it holds most for noise (decision
 * 4043): ranks keep lucky results far ahead of all others, and the plain model sees by how little.
 *   share  of the variance of its values that the warped model holds for noise; 0: not known */
unsigned schedule_lost(unsigned lost, noise_verdict noise, double share, uint64_t index);

#endif
