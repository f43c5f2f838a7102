/* Rows of the data set into a batch. The index's row is read from device memory (`at`), so a
 * recorded graph takes the next rows each time that it runs (decision 3002). Rows are copied as
 * 32-bit words whatever they hold; bytes are unpacked and scaled on the way. A bad index gives NaN
 * or -1. */
#include "kernels/cuda/cuda.cuh"

#include <cmath>

struct sizes {
    size_t members, rows, batch, width;
    int64_t at_rows, index_len;
};

/* Both gathers' arguments have these fields. */
template <typename args> static struct sizes sizes_of(const args *a)
{
    return {a->members,
            a->rows,
            a->batch,
            a->width,
            (int64_t)a->at_rows,
            (int64_t)(a->at.buf != NULL ? a->index_len : a->batch)};
}

/* The row of the source that becomes row r of member k; -1: none. */
__device__ static int32_t row_for(const struct sizes &n, const struct dev_i32 &index,
                                  const struct dev_i32 &at, size_t k, size_t r)
{
    int64_t place = (at.p != nullptr ? (int64_t)*at.at(k) * n.at_rows : 0) + (int64_t)r;
    int32_t from = place >= 0 && place < n.index_len ? index.at(k)[place] : -1;
    return from >= 0 && (size_t)from < n.rows ? from : -1;
}

/* A warp copies a row as 32-bit words, for either kind. */
__global__ static void gather(struct dev_i32 dst, struct dev_i32 src, struct dev_i32 index,
                              struct dev_i32 at, struct sizes n, int32_t missing)
{
    size_t width = n.width;
    FOR_MEMBERS(k, n.members)
    {
        FOR_ROWS(r, n.batch)
        {
            int32_t from = row_for(n, index, at, k, r);
            for (size_t d = threadIdx.x % WARP; d < width; d += WARP)
                dst.at(k)[r * width + d] =
                    from >= 0 ? src.at(k)[(size_t)from * width + d] : missing;
        }
    }
}

as_status cuda_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    if (a->members == 0 || a->batch == 0 || a->width == 0)
        return AS_OK;
    cuda_use(be);
    int32_t missing = a->src.buf->kind == BUF_F32 ? 0x7fc00000 /* NaN */ : -1;
    LAUNCH(gather, grid_over_rows(a->batch, a->members), THREADS, 0, cuda_of(be)->stream,
           i32_of(a->dst), i32_of(a->src), i32_of(a->index), i32_of(a->at), sizes_of(a), missing);
    return cuda_launched("gather", err);
}

/* A warp per row. */
__global__ static void gather_bytes(struct dev_f32 dst, struct dev_i32 src, struct dev_i32 index,
                                    struct dev_i32 at, struct dev_f32 mean, struct dev_f32 scale,
                                    struct sizes n)
{
    size_t width = n.width;
    FOR_MEMBERS(k, n.members)
    {
        const unsigned char *bytes = (const unsigned char *)src.at(k);
        FOR_ROWS(r, n.batch)
        {
            int32_t from = row_for(n, index, at, k, r);
            for (size_t d = threadIdx.x % WARP; d < width; d += WARP) {
                float raw = from >= 0 ? (float)bytes[(size_t)from * width + d] : NAN;
                dst.at(k)[r * width + d] = (raw - mean.at(k)[d]) / scale.at(k)[d];
            }
        }
    }
}

as_status cuda_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                            struct as_err *err)
{
    if (a->members == 0 || a->batch == 0 || a->width == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(gather_bytes, grid_over_rows(a->batch, a->members), THREADS, 0, cuda_of(be)->stream,
           f32_of(a->dst), i32_of(a->src), i32_of(a->index), i32_of(a->at), f32_of(a->mean),
           f32_of(a->scale), sizes_of(a));
    return cuda_launched("gather of bytes", err);
}

struct sides {
    size_t members, rows, width, src_width, src_at, dst_width, dst_at;
};

/* A warp per row. */
__global__ static void columns(struct dev_f32 dst, struct dev_f32 src, struct sides n)
{
    FOR_MEMBERS(k, n.members)
    {
        FOR_ROWS(r, n.rows)
        {
            for (size_t c = threadIdx.x % WARP; c < n.width; c += WARP)
                dst.at(k)[r * n.dst_width + n.dst_at + c] =
                    src.at(k)[r * n.src_width + n.src_at + c];
        }
    }
}

as_status cuda_columns(struct backend *be, const struct columns_args *a, struct as_err *err)
{
    if (a->members == 0 || a->rows == 0 || a->width == 0)
        return AS_OK;
    cuda_use(be);
    struct sides n = {a->members, a->rows,      a->width, a->src_width,
                      a->src_at,  a->dst_width, a->dst_at};
    LAUNCH(columns, grid_over_rows(a->rows, a->members), THREADS, 0, cuda_of(be)->stream,
           f32_of(a->dst), f32_of(a->src), n);
    return cuda_launched("columns", err);
}
