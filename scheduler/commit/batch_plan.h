/* What a batch does with each of its members, from the rows that it has locked. Pure. */
#ifndef ASSAY_SCHEDULER_COMMIT_BATCH_PLAN_H
#define ASSAY_SCHEDULER_COMMIT_BATCH_PLAN_H

#include "scheduler/commit/commit_member.h"
#include "scheduler/store/batch_ops.h"

/* The decision about one member. */
struct batch_decision {
    commit_fate fate;
    as_status status;     /* if it is done */
    struct as_err *err;   /* why it is refused; NULL: it is not */
    size_t record;        /* its place in changes.records; SIZE_MAX: none */
    size_t row;           /* its place in changes.rows; SIZE_MAX: none */
    trial_state state;    /* of an end: that of its trial afterwards */
    bool is_end, is_late; /* it ends a trial; after the attempt was declared lost */
    struct rung_place at; /* where its trial stands after it */
    int64_t attempt;      /* the attempt that is meant */
};

/* The rows that a member needs. */
struct batch_ask batch_ask_of(const struct commit_member *m);

/* Decide every member as if they came one after another, in the order of the array.
 *   facts   of each member (batch_ops.read)
 *   ret     n decisions
 *   ret_changes   what is to be written; everything is in `a` or a view of the members
 * AS_E_NOMEM, AS_E_INTERNAL: what is stored cannot be read. */
AS_MUST_CHECK as_status batch_plan(struct arena *a, struct commit_member *const *members,
                                   const struct batch_fact *facts, size_t n,
                                   struct batch_decision *ret, struct batch_changes *ret_changes,
                                   struct as_err *err);

#endif
