/* Declarations that the convolutions share: the place of a tap in the input, depthwise convolution,
 * the path through cuDNN. */
#ifndef ASSAY_KERNELS_CUDA_CONV_CUH
#define ASSAY_KERNELS_CUDA_CONV_CUH

#include "kernels/cuda/cuda.cuh"

struct conv_sizes {
    size_t members, batch, height, width, channels, out, out_h, out_w, kernel_h, kernel_w, stride,
        pad;
    __host__ __device__ size_t pixels(void) const /* of the output */
    {
        return batch * out_h * out_w;
    }
    /* The input pixel [b, h, w] that the tap (i, j) of output pixel p reads; SIZE_MAX: padding. */
    __device__ size_t tap(size_t p, size_t i, size_t j) const
    {
        size_t h = p / out_w % out_h * stride + i, w = p % out_w * stride + j;
        if (h < pad || h - pad >= height || w < pad || w - pad >= width)
            return SIZE_MAX;
        return (p / (out_h * out_w) * height + h - pad) * width + w - pad;
    }
};

static inline struct conv_sizes conv_sizes_of(const struct conv_args *a)
{
    return {a->members,
            a->batch,
            a->height,
            a->width,
            a->channels,
            a->out,
            conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
            conv_out_len(a->width, a->kernel_w, a->stride, a->pad),
            a->kernel_h,
            a->kernel_w,
            a->stride,
            a->pad};
}

/* Whether an output position reads input position `at` by tap i, and which. */
__device__ static inline bool tap_reader(size_t at, size_t i, size_t pad, size_t stride, size_t len,
                                         size_t *ret)
{
    size_t p = at + pad;
    if (p < i || (p - i) % stride != 0 || (p - i) / stride >= len)
        return false;
    *ret = (p - i) / stride;
    return true;
}

as_status cuda_depthwise_forward(struct backend *be, const struct conv_args *a, struct tensor y,
                                 struct as_err *err);
as_status cuda_depthwise_backward(struct backend *be, const struct conv_args *a,
                                  const struct conv_grads *g, struct as_err *err);

/* ---- through cuDNN (conv_cudnn.cu, or conv_cudnn_absent.cu where its header is missing) ---- */

struct conv_cudnn;

typedef enum conv_op { CONV_FORWARD, CONV_DX, CONV_DW } conv_op;
#define CONV_OPS 3

/* Nothing is opened before the first convolution. ret: owned by the caller, conv_cudnn_free()
 * before the stream is destroyed. AS_E_NOMEM. */
as_status conv_cudnn_create(struct conv_cudnn **ret, struct as_err *err);
void conv_cudnn_free(struct conv_cudnn *d);

/* The path as a text for people: a view until the next call of conv_cudnn_run(). */
const char *conv_cudnn_text(const struct conv_cudnn *d);

/* One operation of all members: CONV_FORWARD writes y = x * w (no bias, no activation), CONV_DX
 * writes x from y and w, CONV_DW writes w from x and y; the tensors as in conv_args, groups = 1.
 * *ret_done is false if our own path has to run it; then nothing was written.
 * AS_E_CONFLICT  a graph is recorded, and this operation of this shape was never called before
 * AS_E_NOMEM     no memory for the workspace */
as_status conv_cudnn_run(struct backend *be, const struct conv_args *a, conv_op op, struct tensor x,
                         struct tensor w, struct tensor y, bool *ret_done, struct as_err *err);

#endif
