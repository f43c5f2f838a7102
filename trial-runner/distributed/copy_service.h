/* The part of a parameter server that adds gradients where a shard may be computed by more than
 * one rank: a rank that holds slices of the sum takes each shard of a step from who sends it
 * first.
 *
 * All that compute a shard get the same bits, so it does not matter whose count. The sum has the
 * order of the tree over shards, and goes to all ranks when the last shard has come. What comes
 * later is not used, but for the wishes in it: they are in the next sum. A sum is kept until all
 * ranks have it; while those of ranks that are behind are more than 64 MiB, no other is made.
 * Called by the mailbox's thread alone. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_COPY_SERVICE_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_COPY_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/collective/mailbox.h"

/* Kinds of requests; each begins with struct copy_head. */
enum {
    COPY_GIVE = 1,   /* then the slice's numbers, of a shard; answered at once */
    COPY_ASK = 2,    /* answered with the numbers of the sum when it is complete */
    COPY_MISSING = 3 /* answered at once: a byte for each shard, 1: it has not come */
};

/* In the byte order of the machine, as all numbers between ranks. */
struct copy_head {
    uint32_t slice, n_slices; /* coll_slice() of the vector */
    uint32_t shard, total;    /* shard: of COPY_GIVE */
};

struct copy_service;

/* For the ranks of a world, vectors of n numbers whose last n_wishes are wishes, and n_slices
 * slices. ret: owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status copy_service_create(int32_t n_ranks, size_t n, size_t n_wishes,
                                            uint32_t n_slices, struct copy_service **ret,
                                            struct as_err *err);
/* Requests that wait are not answered: the mailbox is to be freed before. */
void copy_service_free(struct copy_service *s);
AS_DEFINE_FREEP(struct copy_service, copy_service_free)

/* As mailbox_opts.on_request and on_lost; arg is the service. After a loss all that wait are
 * answered with AS_E_UNAVAILABLE. */
void copy_service_request(void *arg, struct mailbox *b, struct mail *m);
void copy_service_lost(void *arg, struct mailbox *b, int32_t rank);

#endif
