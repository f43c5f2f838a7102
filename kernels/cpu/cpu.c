/* The fast back end of the host: OpenBLAS for products, vectorised loops for the rest. */
#include "kernels/cpu/cpu.h"

#include <cblas.h>
#include <stdio.h>

#include "base/mem.h"
#include "kernels/host_buf.h"

static const struct backend_ops ops = {
    .name = "cpu",
    HOST_BUF_OPS,
    .gather = cpu_gather,
    .linear_forward = cpu_linear_forward,
    .linear_backward = cpu_linear_backward,
    .act_backward = cpu_act_backward,
    .dropout = cpu_dropout,
    .softmax_ce = cpu_softmax_ce,
    .mse = cpu_mse,
    .softmax = cpu_softmax,
    .grad_stats = cpu_grad_stats,
    .grad_clip = cpu_grad_clip,
    .sgd = cpu_sgd,
    .adamw = cpu_adamw,
    .conv_work = cpu_conv_work,
    .conv_forward = cpu_conv_forward,
    .conv_backward = cpu_conv_backward,
    .pool_forward = cpu_pool_forward,
    .pool_backward = cpu_pool_backward,
    .batch_norm_train = cpu_batch_norm_train,
    .batch_norm_eval = cpu_batch_norm_eval,
    .batch_norm_backward = cpu_batch_norm_backward,
};

as_status cpu_open(const struct backend_opts *opts, struct backend **ret, struct as_err *err)
{
    struct backend *be = as_calloc(1, sizeof(*be));
    if (be == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cpu: out of memory");
    be->ops = &ops;
    /* One thread unless asked: a second one makes small products slower (TRAINING.md 5). */
    int threads = opts->threads > 0 ? opts->threads : 1;
    openblas_set_num_threads(threads);
    snprintf(be->device, sizeof(be->device), "OpenBLAS %s, %d thread%s", openblas_get_corename(),
             threads, threads == 1 ? "" : "s");
    *ret = be;
    return AS_OK;
}
