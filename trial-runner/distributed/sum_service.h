/* The part of a parameter server that adds gradients: a rank that holds slices of the sum collects,
 * for each step, what the ranks have computed, and answers with the sum.
 *
 * Every rank asks once for each slice of each step, and is answered when the sum is complete: when
 * all ranks have given theirs, or with `backup` b, all but b of them. A late gift is not added; its
 * rank gets the sum of the others. Sums are in the order of the tree over shards, and divided by
 * the share of the rows that is in them if some are missing. Encoded gradients are decoded and
 * added in the order of the shards. Called by the mailbox's thread alone. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SUM_SERVICE_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SUM_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/collective/mailbox.h"
#include "trial-runner/distributed/push_form.h"

/* Kinds of requests. */
enum {
    SUM_GIVE =
        1, /* struct sum_head, then for each node of the run the slice's numbers; with a codec,
                   * for each shard of the run a message about the slice (push_form.h) */
    SUM_PEEK = 2 /* struct sum_head alone: the sum if it is complete, else AS_E_NOT_FOUND at once */
};

/* Begins each request. In the byte order of the machine, as all numbers between ranks. */
struct sum_head {
    uint32_t slice;
    uint32_t first, count, total; /* the run, and the shards of the batch */
    float share;                  /* of the run's rows in the batch */
    uint32_t n_slices;
    uint32_t plain; /* with a codec: 1: the numbers are not encoded, for it is the warm-up */
    uint32_t unused;
};

/* Begins each answer; the slice's numbers follow. */
struct sum_answer {
    uint32_t late; /* the gift came after the sum was complete */
    uint32_t unused;
};

struct sum_service;

/* For ranks [first, first + n_ranks) of a world; vectors have form->n numbers. form: borrowed until
 * the service is freed, for the mailbox's thread alone. AS_E_NOMEM; owned by the caller. */
AS_MUST_CHECK as_status sum_service_create(int32_t first, int32_t n_ranks,
                                           const struct push_form *form, uint32_t backup,
                                           struct sum_service **ret, struct as_err *err);
/* Requests that wait are not answered: the mailbox is to be freed before. */
void sum_service_free(struct sum_service *s);
AS_DEFINE_FREEP(struct sum_service, sum_service_free)

/* As mailbox_opts.on_request and on_lost; arg is the service. After a loss that backup does not
 * make up for, all that wait are answered with AS_E_UNAVAILABLE. */
void sum_service_request(void *arg, struct mailbox *b, struct mail *m);
void sum_service_lost(void *arg, struct mailbox *b, int32_t rank);

#endif
