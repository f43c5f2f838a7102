/* `trial.train.distributed`: how the ranks of one large trial work together.
 *
 *   strategy: allreduce            allreduce, local_sgd, server, groups, gossip, model_parallel;
 *                                  default: that of the section below that is given, else allreduce
 *   allreduce: tree                ring, halving_doubling, tree, auto: how sums over ranks are made
 *   sufficient_factors: never      never, auto, always: gradients of layers travel as factors
 *   compress: none                 none, fp16, one_bit, top_k, powersgd, or an object:
 *                                  {kind: top_k, fraction: 0.01},
 *                                  {kind: powersgd, rank: 2, half: true},
 *                                  {kind: one_bit, warmup_steps: 500}
 *   error_feedback: true           what compressing has lost is added to the next value
 *   local_sgd: {steps: 16, moments: average, block_momentum: 0.5}
 *                                  or outer: {kind: nesterov, lr: 0.7, momentum: 0.3}
 *   server: {mode: sync, staleness: 3, shards: 0, backup: 0, backup_copies: false, warm_start: 0,
 *           significance: 0, rows: dense}
 *   groups: 0                      all-reduce inside a group, a server between groups
 *   gossip: {peers: 1, staleness: 4}
 *   model_parallel: auto           or a list of blocks, each a list of layers: ranks hold blocks
 *   shard_state: false             the optimizer's moments are divided among the ranks
 *   partitions: none               none, lineage: ranks hold all training rows, or some alone
 *   encrypt: false                 what ranks send to other hosts is encrypted
 *   state_copies: 2                so many ranks hold each of them; 1: a death restarts the trial
 *                                  from its checkpoint
 *
 * The parser is train_spec_distributed.c. Sections of a strategy that is not the chosen one are
 * checked and then unused, if `strategy` is given: a sweep may search over strategies. Without
 * it, two such sections are refused. */
#ifndef ASSAY_MODEL_DOCUMENT_DISTRIBUTED_SPEC_H
#define ASSAY_MODEL_DOCUMENT_DISTRIBUTED_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

#define DISTRIBUTED_MAX_STEPS 1000000 /* of local SGD, between two exchanges */
#define DISTRIBUTED_MAX_WARMUP 1000000000
#define DISTRIBUTED_MAX_STALENESS 63 /* each step ahead needs room for a gradient */
#define DISTRIBUTED_MAX_RANKS 4096   /* also of groups, slices of a server, peers */
#define DISTRIBUTED_MAX_POWERSGD_RANK 64
#define DISTRIBUTED_MAX_BLOCKS 1024 /* of model_parallel; also layers of a block */

typedef enum distributed_strategy {
    DISTRIBUTED_ALLREDUCE,
    DISTRIBUTED_LOCAL_SGD,
    DISTRIBUTED_SERVER,
    DISTRIBUTED_GOSSIP,
    DISTRIBUTED_MODEL_PARALLEL
} distributed_strategy;

typedef enum distributed_sum {
    DISTRIBUTED_TREE, /* equal bits for any number of ranks */
    DISTRIBUTED_RING,
    DISTRIBUTED_HALVING_DOUBLING,
    DISTRIBUTED_AUTO /* ring or halving_doubling, whichever is faster for the size */
} distributed_sum;

typedef enum distributed_factors {
    DISTRIBUTED_FACTORS_NEVER,
    DISTRIBUTED_FACTORS_AUTO, /* of each layer for which that is cheaper */
    DISTRIBUTED_FACTORS_ALWAYS
} distributed_factors;

typedef enum distributed_codec {
    DISTRIBUTED_PLAIN,
    DISTRIBUTED_FP16,
    DISTRIBUTED_ONE_BIT,
    DISTRIBUTED_TOP_K,
    DISTRIBUTED_POWERSGD
} distributed_codec;

typedef enum distributed_moments {
    DISTRIBUTED_MOMENTS_AVERAGE, /* their mean over the workers, as of the weights; the default */
    DISTRIBUTED_MOMENTS_RESET    /* 0 at the start of each block, as CNTK does */
} distributed_moments;

typedef enum distributed_mode {
    DISTRIBUTED_SYNC,
    DISTRIBUTED_ASYNC,
    DISTRIBUTED_SSP
} distributed_mode;

/* What is done with the mean change of a block. Plain averaging: momentum 0, lr 1. A momentum m
 * adds up to 1 / (1 - m) changes, so the rate that is not given is 1 - m: then the weights move as
 * far as with plain averaging (decision 8014). */
struct distributed_outer {
    double lr;       /* (0, 100]; default 1 - momentum */
    double momentum; /* [0, 1); default 0; `outer`: 0.3 */
    bool nesterov;   /* default false; `outer`: as its kind */
    bool block;      /* v = momentum v + lr change, w += v (block momentum, CNTK); else
                      * v = momentum v + change, w += lr v (DiLoCo) */
};

struct distributed_spec {
    bool given; /* the document has the section */
    distributed_strategy strategy;
    distributed_sum sum;
    distributed_factors factors; /* allreduce; default never */
    distributed_codec codec;
    double fraction;      /* top_k: share of the values that is sent, (0, 1]; default 0.01 */
    int64_t rank;         /* powersgd; default 2 */
    bool half;            /* powersgd: factors in half precision; default false */
    int64_t warmup_steps; /* so many steps are not compressed; default 0 */
    bool error_feedback;  /* default true; false without a codec that loses something */
    int64_t local_steps;  /* local_sgd: required there, >= 1 */
    distributed_moments moments;
    struct distributed_outer outer;
    distributed_mode mode; /* server: default sync */
    int64_t staleness;     /* ssp: how many clocks a rank may lead; 0 to 63; default 3 */
    bool sparse_rows;      /* sync, ssp: zeros of gradients do not travel; default false */
    double significance; /* ssp: what moves a weight by less than this part of it is held back; 0 to
                          * 1,000; 0: nothing; default 0 */
    int64_t server_shards; /* slices of the parameters; 0: as many as ranks; default 0 */
    int64_t backup; /* sync, ssp: the last so many gradients of a step do not count; default 0 */
    bool backup_copies;       /* sync: who is done computes shards of who is not; default false */
    int64_t warm_start;       /* async, groups: so many steps are one worker's alone; default 0 */
    int64_t groups;           /* of the strategy server; 0: no groups, or another word was chosen */
    int64_t peers;            /* gossip: partners of a rank in each step; default 1 */
    int64_t gossip_staleness; /* by how many steps a rank may lead a peer to whom it gives; 1 to
                               * 1,000,000; default 4 */
    json_t *blocks;           /* owned; model_parallel: lists of names of layers; NULL: auto */
    bool shard_state;         /* allreduce: the moments are divided */
    bool lineage;             /* allreduce, sync: a rank holds the rows of its shards alone, and
                               * reads those of others when it must; default false */
    bool encrypt;             /* between hosts; default false */
    int64_t state_copies;     /* 1 or 2: on how many ranks each moment is, or each block; default
                               * 2 */
};

/* "allreduce", "local_sgd", … for messages and logs. */
const char *distributed_strategy_name(distributed_strategy s);
const char *distributed_codec_name(distributed_codec c);

struct train_spec;

/* Can a trial with `spec` run on so many ranks? Not with `patience`. Pure; the server calls it for
 * each document that it checks (resources.ranks), `at_ranks` is that field's pointer, `pointer`
 * that of the train document. AS_E_INVAL with the pointer of the field: more ranks than the batch
 * has shards (batch_size / micro_batch), or the model blocks; more groups than ranks, no rank left
 * beside `backup`. */
AS_MUST_CHECK as_status distributed_check_ranks(const struct train_spec *spec, int64_t ranks,
                                                const char *at_ranks, const char *pointer,
                                                struct as_err *err);

#endif
