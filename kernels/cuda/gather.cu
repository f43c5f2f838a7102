#include "kernels/cuda/cuda.cuh"

#include <cmath>

struct sizes {
    size_t members, rows, batch, width;
    int64_t at_rows, index_len;
};

/* A warp per row; rows are moved as 32-bit words, whatever their kind. */
__global__ static void gather(struct dev_i32 dst, struct dev_i32 src, struct dev_i32 index,
                              struct dev_i32 at, struct sizes n, int32_t missing)
{
    size_t rows = n.rows, width = n.width;
    FOR_MEMBERS(k, n.members)
    {
        int64_t first = at.p != nullptr ? (int64_t)*at.at(k) * n.at_rows : 0;
        FOR_ROWS(r, n.batch)
        {
            int64_t place = first + (int64_t)r;
            int32_t from = place >= 0 && place < n.index_len ? index.at(k)[place] : -1;
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
    struct sizes n = {a->members,
                      a->rows,
                      a->batch,
                      a->width,
                      (int64_t)a->at_rows,
                      (int64_t)(a->at.buf != NULL ? a->index_len : a->batch)};
    int32_t missing = a->src.buf->kind == BUF_F32 ? 0x7fc00000 /* NaN */ : -1;
    LAUNCH(gather, grid_over_rows(a->batch, a->members), THREADS, 0, cuda_of(be)->stream,
           i32_of(a->dst), i32_of(a->src), i32_of(a->index), i32_of(a->at), n, missing);
    return cuda_launched("gather", err);
}

/* A warp per row. */
__global__ static void gather_bytes(struct dev_f32 dst, struct dev_i32 src, struct dev_i32 index,
                                    struct dev_i32 at, struct dev_f32 mean, struct dev_f32 scale,
                                    struct sizes n)
{
    size_t rows = n.rows, width = n.width;
    FOR_MEMBERS(k, n.members)
    {
        int64_t first = at.p != nullptr ? (int64_t)*at.at(k) * n.at_rows : 0;
        const unsigned char *bytes = (const unsigned char *)src.at(k);
        FOR_ROWS(r, n.batch)
        {
            int64_t place = first + (int64_t)r;
            int32_t from = place >= 0 && place < n.index_len ? index.at(k)[place] : -1;
            bool inside = from >= 0 && (size_t)from < rows;
            for (size_t d = threadIdx.x % WARP; d < width; d += WARP) {
                float raw = inside ? (float)bytes[(size_t)from * width + d] : NAN;
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
    struct sizes n = {a->members,
                      a->rows,
                      a->batch,
                      a->width,
                      (int64_t)a->at_rows,
                      (int64_t)(a->at.buf != NULL ? a->index_len : a->batch)};
    LAUNCH(gather_bytes, grid_over_rows(a->batch, a->members), THREADS, 0, cuda_of(be)->stream,
           f32_of(a->dst), i32_of(a->src), i32_of(a->index), i32_of(a->at), f32_of(a->mean),
           f32_of(a->scale), n);
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
