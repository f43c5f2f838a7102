/* What the codecs share: blocks of values, and the functions of one codec over one block. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_GRADIENT_CODEC_PRIV_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_GRADIENT_CODEC_PRIV_H

#include "trial-runner/distributed/gradient_codec.h"

/* A message begins with the CRC-32C of what follows, continued from codec_seed(). */
#define CODEC_HEAD_BYTES 4

/* How the values of the tensors are cut into blocks. */
struct block_rule {
    size_t at_least; /* values of a block, unless the tensors around it are smaller */
    bool by_rows;    /* a block has whole rows, unless one is longer than BLOCK_ROW_MAX */
    bool merges;     /* neighbouring tensors of fewer values share a block */
};

#define BLOCK_ROW_MAX 4096

struct block {
    size_t first, n; /* values */
    size_t at;       /* its bytes begin here, behind the head of a message about all */
};

struct blocks {
    struct block *of; /* [n + 1]; the last is empty and ends the bytes */
    size_t n;
    size_t values;
    size_t largest; /* values of the largest block */
};

/* at: filled by the caller. AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status blocks_plan(const struct codec_tensor *tensors, size_t n_tensors,
                                    const struct block_rule *rule, struct blocks *ret,
                                    struct as_err *err);
void blocks_done(struct blocks *b);

/* The run of blocks of a slice: first and one past the last. */
void blocks_slice(const struct blocks *b, struct codec_slice slice, size_t *ret_first,
                  size_t *ret_end);

/* A codec over one block of n values. */
struct block_ops {
    const char *name;
    struct block_rule rule;
    size_t (*bytes)(const struct codec *c, size_t n);
    /* Encode v. after: v - decoded; NULL: not wanted. v and after do not overlap. */
    void (*encode)(struct codec *c, const float *v, size_t n, uint8_t *out, float *after);
    /* NULL if `in` can be decoded, else what is wrong with it. */
    const char *(*check)(const struct codec *c, const uint8_t *in, size_t n);
    void (*decode_add)(const struct codec *c, const uint8_t *in, size_t n, float *sum);
};

extern const struct block_ops block_fp16, block_one_bit, block_top_k;

struct low_rank;

struct codec {
    const struct block_ops *ops; /* NULL: powersgd */
    struct low_rank *low_rank;   /* NULL: the others */
    struct blocks blocks;
    double fraction;
    uint32_t seed;   /* of checksums: codec, parameters, tensors */
    float *v;        /* [blocks.largest] */
    uint32_t *picks; /* [blocks.largest], top_k */
};

/* What the checksum of a slice's message begins from. */
uint32_t codec_seed(const struct codec *c, struct codec_slice slice);

/* powersgd */
AS_MUST_CHECK as_status low_rank_create(const struct codec_opts *opts,
                                        const struct codec_tensor *tensors, size_t n_tensors,
                                        struct low_rank **ret, struct as_err *err);
void low_rank_free(struct low_rank *l);
size_t low_rank_values(const struct low_rank *l);

#endif
