/* What the claims of a batch get, as if they came one after another: turns, shares and limits are
 * those of assign/claims.c. Pure, but for the suggestions, which are drawn or looked up. */
#ifndef ASSAY_SCHEDULER_COMMIT_CLAIM_PLAN_H
#define ASSAY_SCHEDULER_COMMIT_CLAIM_PLAN_H

#include "scheduler/commit/claim_docs.h"
#include "scheduler/commit/commit_member.h"
#include "scheduler/store/batch_ops.h"

/* What a claim gets. */
struct claim_decision {
    commit_fate fate;
    struct owner owner;
    size_t first, n;  /* its trials: places in claims_plan.begun, one after another */
    bool awaits_ends; /* claim_list.awaits_ends */
    bool extends;     /* the lease of its runner, if it gets trials */
    int64_t busy_key; /* COMMIT_LATER: a sweep whose row is held or gone; 0: the runner's is */
};

/* A sweep that has something to hand out, while it hands out. */
struct claim_side;

struct claims_plan {
    struct arena *a;
    struct suggester *sg; /* NULL: claims of methods that learn run alone */
    struct claim_docs *docs;
    const struct batch_turns *turns;
    struct claim_side *sides; /* one for each of turns->rows */
    struct claim_decision *decisions;
    struct batch_begun *begun;
    const struct batch_queued **queued; /* of each place in `begun`: its row; NULL: made */
    size_t n_begun, cap_begun;
    int64_t max_turns, next_served;
    int64_t n_learned; /* suggestions of methods that learn */
};

/* Begin a plan for n claims. AS_E_NOMEM. */
AS_MUST_CHECK as_status claims_plan_init(struct claims_plan *p, const struct batch_turns *turns,
                                         struct commit_member *const *members, size_t n,
                                         struct as_err *err);

/* For qsort(): struct batch_source by key. */
int claims_source_order(const void *pa, const void *pb);

/* Which sweeps will the claims take trials of? Changes nothing that claims_plan_take() uses.
 * ret: sources, by key, each once; the rest of their fields is not set. */
AS_MUST_CHECK as_status claims_plan_sources(struct claims_plan *p,
                                            struct commit_member *const *members,
                                            const struct batch_runner *runners, size_t n,
                                            struct batch_source **ret, size_t *ret_n,
                                            struct as_err *err);

/* Decide all claims, from the rows of the sources. Sweeps that are not among them, or whose row is
 * held by another transaction, make a claim that needs them come later. */
AS_MUST_CHECK as_status claims_plan_take(struct claims_plan *p,
                                         struct commit_member *const *members,
                                         const struct batch_runner *runners, size_t n,
                                         const struct batch_source *sources, size_t n_sources,
                                         struct as_err *err);

/* What is to be written for the decisions. */
AS_MUST_CHECK as_status claims_plan_changes(const struct claims_plan *p, size_t n,
                                            struct batch_claims *ret, struct as_err *err);

/* The rows of the sweep of a trial that begins, for answers. */
const struct sweep_head *claims_plan_sweep(const struct claims_plan *p, int64_t key,
                                           const struct batch_turn **ret_turn);

#endif
