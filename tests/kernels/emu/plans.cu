#include "tests/kernels/emu/plans.h"

#include "kernels/cuda/cudnn.cuh"

static struct dnn_api api;
static struct dnn_where where;

as_status plans_open(const char *device, struct as_err *err)
{
    as_status st = dnn_load(&api, err);
    if (st < 0)
        return st;
    where = {&api, NULL, NULL};
    cudnnStatus_t s = api.create_descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &where.device);
    if (s == CUDNN_STATUS_SUCCESS)
        s = api.set_attribute(where.device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                              CUDNN_TYPE_CHAR, (int64_t)strlen(device), device);
    if (s == CUDNN_STATUS_SUCCESS)
        s = api.finalize(where.device);
    if (s == CUDNN_STATUS_SUCCESS)
        return AS_OK;
    plans_close();
    return as_fail(err, AS_E_UNAVAILABLE, "cuDNN %zu takes no description of a device: %s",
                   api.version, api.error_string(s));
}

void plans_close(void)
{
    if (where.device != NULL)
        (void)api.destroy_descriptor(where.device);
    where.device = NULL;
}

as_status plans_ask(int op, const struct plans_shape *s, bool tensor_cores,
                    struct plans_answer *ret, struct as_err *err)
{
    int64_t out = (s->side + 2 * s->pad - s->kernel) / s->stride + 1;
    struct dnn_conv c = {(conv_op)op, s->batch,  s->side,   s->side, s->channels, s->out, out, out,
                         s->kernel,   s->kernel, s->stride, s->pad,  tensor_cores};
    struct dnn_plan plan = {};
    as_status st = dnn_plan_make(&where, &c, DNN_WORKSPACE_BYTES, &plan, err);
    if (st < 0)
        return st;
    *ret = {plan.engine, plan.workspace, DNN_WORKSPACE_BYTES};
    dnn_plan_done(&api, &plan);
    return AS_OK;
}
