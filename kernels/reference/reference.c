/* The oracle: every operation as plain loops, with sums and functions in double. It is slow,
 * because a reader must be able to compare each loop with the formula. */
#include "kernels/reference/reference.h"

#include <string.h>

#include "base/mem.h"
#include "kernels/host_buf.h"

static const struct backend_ops ops = {
    .name = "reference",
    HOST_BUF_OPS,
    .close = host_close,
    .gather = ref_gather,
    .gather_bytes = ref_gather_bytes,
    .columns = ref_columns,
    .linear_forward = ref_linear_forward,
    .linear_backward = ref_linear_backward,
    .act_backward = ref_act_backward,
    .dropout = ref_dropout,
    .softmax_ce = ref_softmax_ce,
    .mse = ref_mse,
    .grad_stats = ref_grad_stats,
    .grad_clip = ref_grad_clip,
    .tick = ref_tick,
    .augment = ref_augment,
    .add = ref_add,
    .layer_norm_forward = ref_layer_norm_forward,
    .layer_norm_backward = ref_layer_norm_backward,
    .embedding_forward = ref_embedding_forward,
    .embedding_backward = ref_embedding_backward,
    .attention_work = ref_attention_work,
    .attention_forward = ref_attention_forward,
    .attention_backward = ref_attention_backward,
    .huber = ref_huber,
    .bce = ref_bce,
    .weigh_rows = ref_weigh_rows,
    .grad_accumulate = ref_grad_accumulate,
    .optimize = ref_optimize,
    .ema = ref_ema,
    .conv_work = ref_conv_work,
    .conv_forward = ref_conv_forward,
    .conv_backward = ref_conv_backward,
    .pool_forward = ref_pool_forward,
    .pool_backward = ref_pool_backward,
    .batch_norm_train = ref_batch_norm_train,
    .batch_norm_eval = ref_batch_norm_eval,
    .batch_norm_backward = ref_batch_norm_backward,
};

as_status reference_open(const struct backend_opts *opts, struct backend **ret, struct as_err *err)
{
    (void)opts;
    struct backend *be = as_calloc(1, sizeof(*be));
    if (be == NULL)
        return as_fail(err, AS_E_NOMEM, "back end reference: out of memory");
    be->ops = &ops;
    strncpy(be->device, "plain C, 1 thread", sizeof(be->device) - 1);
    *ret = be;
    return AS_OK;
}
