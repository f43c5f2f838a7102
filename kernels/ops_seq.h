/* Operations on sequences: layer normalisation, embedding, attention. backend.h states the rules
 * of all operations. */
#ifndef ASSAY_KERNELS_OPS_SEQ_H
#define ASSAY_KERNELS_OPS_SEQ_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layer normalisation (Ba et al. 2016) ---- */

struct layer_norm_args {
    size_t members, rows, width; /* K, R, D */
    struct tensor x;             /* [K or shared, R, D] */
    struct tensor gamma, beta;   /* [K or shared, D] */
    struct tensor mean, inv_std; /* [K, R]: forward writes, backward reads */
    float eps;                   /* >= 0, finite */
};

/* y [K, R, D] = (x - mean) / sqrt(var + eps) * gamma + beta over the D elements of each row, var
 * biased. y may be x only where no backward pass follows. */
AS_MUST_CHECK as_status backend_layer_norm_forward(struct backend *be,
                                                   const struct layer_norm_args *a, struct tensor y,
                                                   struct as_err *err);

/* dx [K, R, D] may be dy. dgamma, dbeta [K, D], overwritten: sums in the order of the rows. */
AS_MUST_CHECK as_status backend_layer_norm_backward(struct backend *be,
                                                    const struct layer_norm_args *a,
                                                    struct tensor dy, struct tensor dx,
                                                    struct tensor dgamma, struct tensor dbeta,
                                                    struct as_err *err);

/* ---- embedding ---- */

struct embedding_args {
    size_t members, batch, seq, vocab, width; /* K, B, T, V, D */
    struct tensor tokens;                     /* [K or shared, B, T], I32, in [0, V) */
    struct tensor table;                      /* [K or shared, V, D] */
    struct tensor positions; /* [K or shared, T, D], learned positions; absent: none */
};

/* y [K, B, T, D] = table[token] + positions[t]. A token out of range fills its row with NaN. */
AS_MUST_CHECK as_status backend_embedding_forward(struct backend *be,
                                                  const struct embedding_args *a, struct tensor y,
                                                  struct as_err *err);

/* dtable [K, V, D] and dpositions [K, T, D] (absent exactly if positions is), overwritten; sums
 * in the order of the rows. A token out of range adds to no row of dtable. */
AS_MUST_CHECK as_status backend_embedding_backward(struct backend *be,
                                                   const struct embedding_args *a, struct tensor dy,
                                                   struct tensor dtable, struct tensor dpositions,
                                                   struct as_err *err);

/* ---- causal self-attention (Vaswani et al. 2017) ---- */

struct attention_args {
    size_t members, batch, heads, seq, head_dim; /* K, B, H, T, D */
    struct tensor qkv;  /* [K or shared, B, T, 3, H, D]: queries, keys, values of each position */
    struct tensor out;  /* [K, B, T, H, D]: forward writes, backward reads */
    struct tensor lse;  /* [K, B, H, T]: log of the sum of exp of each row's scores; forward writes,
                         * backward reads. So no T x T matrix is kept (Dao et al. 2022) */
    struct tensor work; /* [K, backend_attention_work()] F32 */
};

/* Elements of workspace per member: linear in T, and in the threads of cpu; 0 on a back end that
 * needs none (then `work` may be absent). Its contents before and after mean nothing. A lane needs
 * the same number as its back end. The call does not read the tensors. */
size_t backend_attention_work(const struct backend *be, const struct attention_args *a);

/* out_t = sum over s <= t of softmax_s(q_t . k_s / sqrt(D)) v_s, for each head. A NaN or
 * infinity may spread to all positions of its sequence and head, but to no other. */
AS_MUST_CHECK as_status backend_attention_forward(struct backend *be,
                                                  const struct attention_args *a,
                                                  struct as_err *err);

/* dqkv [K, B, T, 3, H, D], overwritten, from dout [K, B, T, H, D]; it must not overlap qkv. */
AS_MUST_CHECK as_status backend_attention_backward(struct backend *be,
                                                   const struct attention_args *a,
                                                   struct tensor dout, struct tensor dqkv,
                                                   struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
