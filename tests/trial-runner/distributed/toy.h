/* A replica without a trainer: minimise the mean over shards of |x - target of the shard|^2 / 2, by
 * plain gradient steps. Its ranks are processes; what they tell the test lies in shared memory. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_DISTRIBUTED_TOY_H
#define ASSAY_TESTS_TRIAL_RUNNER_DISTRIBUTED_TOY_H

#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/distributed/strategy.h"

#define TOY_N 1003
#define TOY_SHARDS 8
#define TOY_EPOCHS 3
#define TOY_STEPS 20 /* of an epoch, unless a test says otherwise */

/* What the processes of a test tell each other. */
struct toy_board {
    _Atomic int32_t done[RANKS_MAX];  /* gradients of so many batches are computed */
    _Atomic int32_t steps[RANKS_MAX]; /* steps that run() has done */
    _Atomic int32_t widest;           /* by how many steps a rank was ahead of the slowest */
    _Atomic int32_t ends[RANKS_MAX];  /* 1: well; 2: a rank was lost */
    _Atomic int32_t
        dead[RANKS_MAX]; /* set by a rank that ends in the middle: nobody waits for its end */
    _Atomic int32_t flags;
    _Atomic int32_t pushes;    /* updates of slices, of all ranks */
    _Atomic int32_t after;     /* what a test counts */
    _Atomic int32_t met;       /* see toy_meet */
    float x[RANKS_MAX][TOY_N]; /* the weights at the end */
    double seen[RANKS_MAX];    /* what a test measures */
};

struct toy {
    struct replica replica;
    struct train_spec spec;
    int32_t rank, n_ranks;
    struct toy_board *board;
    int64_t epoch, at; /* at: step of the epoch */
    int64_t epoch_steps;
    int32_t steps_done;
    float x[TOY_N], moment[TOY_N], loss, rate;
    /* Called before each gradient; NULL: not. */
    void (*before)(struct toy *t, int64_t step, uint32_t shard);
    struct replica_tensor tensor;
};

struct toy_board *toy_board_create(void);
void toy_board_free(struct toy_board *b);

void toy_init(struct toy *t, int32_t rank, int32_t n_ranks, struct toy_board *board);
float toy_target(size_t i, uint32_t shard);
/* The mean of the targets: where the sum of all gradients is 0. */
float toy_optimum(size_t i);
/* The largest distance of x to the optimum. */
double toy_distance(const float *x);

/* Trains all epochs with the strategy of t->spec; 0, or 1 with a message. A lost rank is an end:
 * the board's `ends` says so. */
int toy_train(struct toy *t, const struct ranks *r);

/* What each rank of a run trains with. */
struct toy_plan {
    struct distributed_spec spec;
    struct toy_board *board;
    void (*before)(struct toy *t, int64_t step, uint32_t shard); /* of struct toy */
};
/* A rank of ranks_run() that trains by a struct toy_plan. */
int toy_run_rank(const struct ranks *r, int32_t rank, void *plan);

/* Trains on n ranks; all end well, and with equal weights. Returns the board: toy_board_free(). */
struct toy_board *toy_run_equal(int32_t n, struct distributed_spec spec,
                                void (*before)(struct toy *t, int64_t step, uint32_t shard));

/* Waits until all ranks have called it for the `nth` time (from 1). */
void toy_meet(struct toy *t, int32_t nth);

/* True once the counter has come so far; false when the patience is over. */
bool toy_wait(const _Atomic int32_t *counter, int32_t at_least, int64_t patience_ms);

#endif
