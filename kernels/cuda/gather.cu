#include "kernels/cuda/cuda.cuh"

#include <cmath>

/* A warp per row; rows are moved as 32-bit words, whatever their kind. */
__global__ static void gather(struct dev_i32 dst, struct dev_i32 src, struct dev_i32 index,
                              size_t members, size_t rows, size_t batch, size_t width,
                              int32_t missing)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ROWS(r, batch)
        {
            int32_t from = index.at(k)[r];
            bool inside = from >= 0 && (size_t)from < rows;
            for (size_t d = threadIdx.x % WARP; d < width; d += WARP)
                dst.at(k)[r * width + d] = inside ? src.at(k)[(size_t)from * width + d] : missing;
        }
    }
}

as_status cuda_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    if (a->members == 0 || a->batch == 0 || a->width == 0)
        return AS_OK;
    cuda_use(be);
    int32_t missing = a->src.buf->kind == BUF_F32 ? 0x7fc00000 /* NaN */ : -1;
    gather<<<grid_over_rows(a->batch, a->members), THREADS, 0, cuda_of(be)->stream>>>(
        i32_of(a->dst), i32_of(a->src), i32_of(a->index), a->members, a->rows, a->batch, a->width,
        missing);
    return cuda_launched("gather", err);
}
