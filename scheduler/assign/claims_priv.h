/* A claim in progress: what the files of claims share. Private to this folder. */
#ifndef ASSAY_SCHEDULER_ASSIGN_CLAIMS_PRIV_H
#define ASSAY_SCHEDULER_ASSIGN_CLAIMS_PRIV_H

#include "scheduler/assign/assignment_priv.h"
#include "scheduler/assign/claims.h"
#include "scheduler/assign/gathering.h"
#include "scheduler/store/turn_store.h"

/* A claim in progress. */
struct claiming {
    struct store *db;
    struct suggester *sg;
    struct arena *a;
    const struct claim_request *req;
    int64_t arrived_ns;
    struct owner owner;
    int64_t want, gpus;             /* slots (for a fit: members) and GPUs that are still wanted */
    struct claimable_sweep *sweeps; /* sweeps with work, in the order of asking */
    size_t n_sweeps;
    struct gathering_news news;
    struct seats_taken seats;
    struct claim_list list;

    /* the sweep that is being asked */
    struct claimable_sweep *turn;
    int64_t key, share;
    bool lacks_room; /* something else runs on the machine that it needs to itself */
    int64_t gpus_each;
    int64_t fit_key; /* claim_list.sweep_key */
    bool awaits_ends;
    struct assignment assignment;
};

struct runner_id claiming_runner(const struct claim_request *req);
/* AS_E_STALE: what a runner is told whose epoch is not current. */
AS_MUST_CHECK as_status claiming_stale_epoch(const struct claim_request *req, struct as_err *err);

/* Ask the sweep c->key for c->share trials (claim_take.c). *ret_got: trials that began. */
AS_MUST_CHECK as_status claiming_take(struct claiming *c, int64_t *ret_got, struct as_err *err);

#endif
