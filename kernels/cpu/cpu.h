/* The fast operations on the host, one function per row of the table; see backend.h. */
#ifndef ASSAY_KERNELS_CPU_CPU_H
#define ASSAY_KERNELS_CPU_CPU_H

#include "kernels/backend_priv.h"

#define CPU_NAME "cpu"

/* The back end itself, or a lane of it. */
struct cpu_side {
    struct backend base;      /* must be first: a struct backend * points to one of these */
    struct cpu_graph *record; /* the graph that records its calls (graph.c); NULL: none */
};

/* The table while no graph is recorded. */
extern const struct backend_ops cpu_ops;

void cpu_close(struct backend *be);
size_t cpu_lanes(const struct backend *be);

as_status cpu_graph_begin(struct backend *be, struct as_err *err);
as_status cpu_graph_end(struct backend *be, struct graph **ret, struct as_err *err);
as_status cpu_graph_run(struct backend *be, struct graph *g, struct as_err *err);
void cpu_graph_free(struct graph *g);

/* Call tile(arg, i) once for each i in [0, n): over the threads of the back end, or in the caller's
 * thread one after another when it has one thread or is a lane. A tile must not write memory that
 * another tile reads or writes. The tiles of an operation depend on its shape alone, never on the
 * number of threads, so the bits are the same with any number. */
typedef void cpu_tile(void *arg, size_t i);
void cpu_split(struct backend *be, size_t n, cpu_tile *tile, void *arg);

/* As cpu_split, for operations on single elements: chunk(arg, k,
 * first, n) for elements [first, first + n) of member k, at most CPU_CHUNK of them, a multiple of
 * CPU_CHUNK first. */
#define CPU_CHUNK 16384
typedef void cpu_chunk(void *arg, size_t k, size_t first, size_t n);
void cpu_split_elements(struct backend *be, size_t members, size_t n, cpu_chunk *chunk, void *arg);

as_status cpu_gather(struct backend *be, const struct gather_args *a, struct as_err *err);
as_status cpu_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                           struct as_err *err);
as_status cpu_columns(struct backend *be, const struct columns_args *a, struct as_err *err);
as_status cpu_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                             struct tensor y, struct tensor z, struct as_err *err);
as_status cpu_linear_backward(struct backend *be, const struct linear_args *a,
                              const struct linear_grads *g, struct as_err *err);
as_status cpu_act_backward(struct backend *be, const struct act_args *a, struct as_err *err);
as_status cpu_add(struct backend *be, const struct add_args *a, struct as_err *err);
as_status cpu_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err);
as_status cpu_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err);
as_status cpu_mse(struct backend *be, const struct mse_args *a, struct as_err *err);
as_status cpu_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err);
as_status cpu_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err);
as_status cpu_optimize(struct backend *be, const struct opt_args *a, struct as_err *err);
as_status cpu_tick(struct backend *be, const struct tick_args *a, struct as_err *err);
as_status cpu_augment(struct backend *be, const struct augment_args *a, struct as_err *err);
as_status cpu_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                 struct tensor y, struct as_err *err);
as_status cpu_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err);
as_status cpu_embedding_forward(struct backend *be, const struct embedding_args *a, struct tensor y,
                                struct as_err *err);
as_status cpu_embedding_backward(struct backend *be, const struct embedding_args *a,
                                 struct tensor dy, struct tensor dtable, struct tensor dpositions,
                                 struct as_err *err);
size_t cpu_attention_work(const struct backend *be, const struct attention_args *a);
as_status cpu_attention_forward(struct backend *be, const struct attention_args *a,
                                struct as_err *err);
as_status cpu_attention_backward(struct backend *be, const struct attention_args *a,
                                 struct tensor dout, struct tensor dqkv, struct as_err *err);
as_status cpu_huber(struct backend *be, const struct huber_args *a, struct as_err *err);
as_status cpu_bce(struct backend *be, const struct bce_args *a, struct as_err *err);
as_status cpu_weigh_rows(struct backend *be, const struct weigh_rows_args *a, struct as_err *err);
as_status cpu_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                              struct as_err *err);
as_status cpu_ema(struct backend *be, const struct ema_args *a, struct as_err *err);

/* loss[k] (+)= weight * mean of the rows, in their order: the end of every loss (loss.c). */
void cpu_reduce_rows(const struct loss_out *o, size_t k, size_t batch);

size_t cpu_conv_work(const struct backend *be, const struct conv_args *a);
as_status cpu_conv_forward(struct backend *be, const struct conv_args *a, act_kind act,
                           struct tensor y, struct tensor z, struct as_err *err);
as_status cpu_conv_backward(struct backend *be, const struct conv_args *a,
                            const struct conv_grads *g, struct as_err *err);
as_status cpu_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                           struct tensor y, struct as_err *err);
as_status cpu_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                            struct tensor dx, struct as_err *err);
as_status cpu_batch_norm_train(struct backend *be, const struct batch_norm_args *a, float momentum,
                               struct tensor running_mean, struct tensor running_var,
                               struct as_err *err);
as_status cpu_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                              struct tensor running_mean, struct tensor running_var,
                              struct as_err *err);
as_status cpu_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err);

#endif
