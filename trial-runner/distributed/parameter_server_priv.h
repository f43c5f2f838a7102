/* A parameter server with a common step: what its files share (parameter_server.c says how it
 * works). Private to this folder. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_PARAMETER_SERVER_PRIV_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_PARAMETER_SERVER_PRIV_H

#include "trial-runner/distributed/own_writes.h"
#include "trial-runner/distributed/residuals.h"
#include "trial-runner/distributed/strategy.h"
#include "trial-runner/distributed/sum_service.h"

/* The requests of one step: one for each slice. */
struct flight {
    bool begun;              /* the gradient has been given */
    struct mail_call *calls; /* [n_slices]; one with an answer has the sum of its slice */
    uint8_t *message;        /* all slices' heads and numbers */
    size_t *used;            /* [n_slices]: bytes of each slice's message */
    /* Stays until the flight is used again: */
    float **after; /* [max_shards] of n_params: what the messages of `run` have lost; NULL rows
                           * were not needed yet */
    struct shard_run run; /* the shards that were encoded */
    uint32_t total;       /* of so many that the step has */
    int64_t step;         /* for this step; -1: none */
    float *own;           /* [n_params]: this rank's part of the sum; NULL: not kept */
};

struct server {
    struct replica *replica;
    size_t n; /* of a vector: the gradient's numbers and the wishes */
    int64_t bound, slices_wanted;
    uint32_t backup;
    struct push_form form, holder; /* this rank's, and that of its service */
    struct residuals kept;         /* zeroed without error feedback */
    struct own_writes writes;      /* ssp: what it reads when it is ahead; else zeroed */
    /* What has been computed for step `step`: */
    int64_t step;
    float **partials; /* [max_shards] */
    bool *has;        /* [max_shards] */
    float *sum, *node;
    struct shard_run *runs;

    /* For the current world: */
    uint32_t epoch; /* 0: none */
    int32_t rank, n_ranks;
    uint32_t n_slices;
    struct mailbox *box;
    struct sum_service *service;
    struct flight *flights; /* [bound + 1], by step modulo that */
    int64_t next;           /* the first step that this rank has not computed */
    bool behind;            /* its last gift was late */
};

static inline struct flight *server_flight(struct server *s, int64_t step)
{
    return &s->flights[step % (s->bound + 1)];
}

static inline bool server_has_feedback(const struct server *s)
{
    return s->kept.n > 0;
}

/* ---- what this rank gives (server_give.c) ---- */

/* The number of values of slice k, and the index of the first. */
size_t server_slice(const struct server *s, uint32_t k, size_t *ret_first);

/* Compute this rank's part of the next step, and give it. ahead: steps from the replica's step
 * to it. */
AS_MUST_CHECK as_status server_give(struct server *s, struct backend *lane, int64_t ahead,
                                    unsigned wishes, struct as_err *err);

/* Make room for a call for each slice. AS_E_NOMEM. */
AS_MUST_CHECK as_status server_make_calls(struct server *s, struct flight *f, struct as_err *err);

/* Send a message for each slice whose sum is not here yet, of `items` vectors each, which are in
 * f->message. `head` is that of the first slice. */
void server_send_all(struct server *s, struct flight *f, int kind, int64_t step,
                     struct sum_head head, size_t items);

/* ---- what its messages have lost (server_feedback.c) ---- */

/* What the messages before those of `step` have lost, also if their sums are not here yet:
 * [kept.n]. */
const float *server_lost_before(struct server *s, int64_t step, uint32_t shard);

/* What the messages of `step` have lost is about to become the residual: another rank may have the
 * step's sum, and this one not. Nothing without error feedback. AS_E_NOMEM. */
AS_MUST_CHECK as_status server_stage(struct server *s, int64_t step, struct as_err *err);

/* The slice [first, first + n) of a step that was staged was not added: it is owed as before. */
void server_take_back(struct server *s, const struct flight *f, size_t first, size_t n);

/* After catching up to step `at`: others may have had the sums of several steps that this rank has
 * given and not got. What their messages have lost is the residual of all but the last, which is
 * staged: residuals_meet() decides. AS_E_NOMEM. */
AS_MUST_CHECK as_status server_stage_missed(struct server *s, int64_t at, struct as_err *err);

#endif
