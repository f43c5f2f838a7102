/* The part of a parameter server that holds weights: slices with their moments, and on rank 0 the
 * list of the batches that are to be done.
 *
 * A request with a gradient updates a slice at once, whatever others do meanwhile, and is answered
 * with the slice as it is then (Downpour: Dean et al. 2012). Workers take batches from the list, so
 * a quick one does more of them; those of a lost worker are given to others.
 *
 * Requests are handled by the mailbox's thread; the functions below may be called by another. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SLICE_SERVICE_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SLICE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/collective/mailbox.h"
#include "trial-runner/distributed/push_form.h"

/* Kinds of requests. The mail's step is the position at which the phase began. */
enum {
    SLICE_PUSH = 16, /* struct slice_push, then a message about the slice's gradient (push_form.h);
                      * statistics as they are now. Answer: the slice */
    SLICE_TAKE =
        17 /* struct slice_take; answer: struct slice_taken, at the end of the phase followed
                      * by the loss of each batch (float) */
};

struct slice_push {
    uint32_t slice;
    uint32_t plain; /* with a codec: 1: not encoded, for it is the warm-up */
};

struct slice_take {
    int64_t done; /* the batch that the worker has done, or -1 */
    float loss;
    uint32_t wishes;
};

struct slice_taken {
    int64_t batch; /* counted from the position of the phase; -1: the phase is over */
    int64_t count; /* then: so many batches of the phase are done */
    uint32_t agreed, unused;
};

/* Where a slice's numbers are: views of the whole vectors below. */
struct slice_values {
    float *weights;           /* [n_params] and behind them [n_state] statistics */
    float *moment1, *moment2; /* [n_params]; moment2 may be NULL */
};

struct slice_service;

/* For rank `rank` of a world of n_ranks: slice k of n_slices is held by rank k mod n_ranks.
 *   updater, form   borrowed; form->n is the numbers of parameters and statistics
 * AS_E_NOMEM. Owned by the caller; free it after the mailbox. */
AS_MUST_CHECK as_status slice_service_create(int32_t rank, int32_t n_ranks, uint32_t n_slices,
                                             const struct replica *r, struct slice_updater *updater,
                                             const struct push_form *form,
                                             struct slice_service **ret, struct as_err *err);
void slice_service_free(struct slice_service *s);
AS_DEFINE_FREEP(struct slice_service, slice_service_free)

/* What a phase begins with: batches 0 to n-1 after the position. */
struct slice_phase {
    int64_t position;
    int32_t steps_done; /* of the optimizer */
    int64_t n;
    const double *losses; /* [n]: of the batches that are done already, else -INFINITY; borrowed */
    int64_t most_ms;      /* so long are batches handed out; 0: without limit */
    bool sole;            /* rank 0 alone gets batches */
};

/* Begins a phase with these values, of which this rank keeps its slices. AS_E_NOMEM. */
AS_MUST_CHECK as_status slice_service_begin(struct slice_service *s,
                                            const struct slice_phase *phase,
                                            const struct slice_values *values, struct as_err *err);
/* Copies the slices of this rank to their places in `ret`. */
void slice_service_read(struct slice_service *s, uint32_t slice, const struct slice_values *ret);
/* The losses of the batches that this rank's list knows to be done [n], else -INFINITY. */
void slice_service_done(struct slice_service *s, double *ret, int64_t n);

/* As mailbox_opts.on_request and on_lost. */
void slice_service_request(void *arg, struct mailbox *b, struct mail *m);
void slice_service_lost(void *arg, struct mailbox *b, int32_t rank);

#endif
