/* Branches: the values of choices, of switches and of the parameters that open others.
 *
 * A model that compares a branch whose own parameters are untuned with one that is tuned leaves it
 * too early. So some suggestions are made inside one branch, as if it were the whole space. Which
 * branch, and when it is left for good, follows Y. Li et al., "Efficient automatic CASH via rising
 * bandits", AAAI 2020: the curve of a branch's best cost over its own trials, continued with its
 * last slope for as long as the sweep has lasted, gives an optimistic cost. The branch is left
 * while the best trial of the sweep is ahead of it. Unlike theirs, the optimistic cost also falls
 * by a share of the branch's deviation, as in bandits with upper confidence bounds, because a short
 * curve is often flat. A branch that was left is looked at again after every 0.6 times the results
 * that the sweep had before: what the sweep has learned of the other parameters may serve there
 * (crossing.h). */
#ifndef ASSAY_SEARCH_GP_BRANCH_H
#define ASSAY_SEARCH_GP_BRANCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/regression/training_set.h"

/* One value of a choice, of a switch of two levels, or of a parent of at most 16 levels. */
struct branch {
    size_t param;
    uint64_t level;
    size_t n_ended, n_pending; /* its trials; ended ones may have failed */
    size_t n_missing;          /* trials that it gets whatever they show */
    size_t best;               /* its best feasible trial, TRAINING_SET_NONE without one */
    bool is_own;       /* a value of the leading choice, which has trials for a model of its own */
    bool is_revisit;   /* it was left, and its time for another look has come */
    double optimistic; /* the cost that its best trial may still reach; INFINITY: none of its
                                  trials has a cost */
};

/* The branch that most deserves a trial, among those that do not hold the best trial: first the one
 * that misses most trials, then the one of the lowest optimistic cost. *ret_found is false if none
 * deserves one. For one objective. lead: the choice whose values are tuned whether the sweep
 * stalls or not (leading_choice.h), or TRAINING_SET_NONE. O(n d (branches + d)). AS_E_NOMEM. */
AS_MUST_CHECK as_status branch_choose(const struct training_set *s, size_t lead, bool *ret_found,
                                      struct branch *ret, struct as_err *err);

/* Is the point's configuration in the branch? Always, if b is NULL. */
bool branch_holds(const struct encoding *e, const struct branch *b, const double *point);

#endif
