#include "kernels/cuda/loss.cuh"

__global__ static void weigh_rows(struct dev_f32 weights, struct dev_f32 row_loss,
                                  struct dev_f32 gradient, size_t members, size_t batch,
                                  size_t width)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ELEMENTS(r, batch)
        {
            float w = weights.at(k)[r];
            row_loss.at(k)[r] = w > 0 ? w * row_loss.at(k)[r] : 0.0f;
            for (size_t c = 0; gradient.p != nullptr && c < width; c++) {
                float *g = &gradient.at(k)[r * width + c]; /* [B, D] */
                *g = w > 0 ? w * *g : 0.0f;
            }
        }
    }
}

as_status cuda_weigh_rows(struct backend *be, const struct weigh_rows_args *a, struct as_err *err)
{
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    if (a->batch > 0)
        LAUNCH(weigh_rows, grid_over(a->batch, a->members), THREADS, 0, cuda_of(be)->stream,
               f32_of(a->weights), f32_of(a->out.row_loss), f32_of(a->gradient), a->members,
               a->batch, a->width);
    return cuda_reduce_rows(be, &a->out, a->members, a->batch, "weights of rows", err);
}
