/* Sums down the columns of a matrix [rows, cols] of each member, in a fixed order that depends on
 * the matrix's shape alone.
 *
 * Few columns and many rows are the common case (a bias gradient, a channel's mean), so the rows
 * are cut into parts: a block sums 32 columns of one part, its 8 warps taking every eighth row; a
 * second launch adds the parts in order. A functor F says what is summed and where the sum goes:
 *
 *   void add(size_t k, size_t r, size_t c, struct pair &sum) const    two sums at once
 *   void put(size_t k, size_t c, struct pair sum) const               called once per column */
#ifndef ASSAY_KERNELS_CUDA_SUMS_CUH
#define ASSAY_KERNELS_CUDA_SUMS_CUH

#include "kernels/cuda/cuda.cuh"

#ifndef ROWS_PER_PART /* the emulated build has small parts, so that tests cross their ends */
#define ROWS_PER_PART 64
#endif
#define ROW_PARTS_MAX 128

/* Members [first, first + members). */
struct columns_cut {
    size_t first, members, rows, cols, parts;
};

template <typename F>
__global__ static void column_parts(F f, struct columns_cut n, struct pair *parts)
{
    __shared__ struct pair lanes[WARPS][WARP];
    size_t each = (n.rows + n.parts - 1) / n.parts;
    size_t c = blockIdx.x * (size_t)WARP + threadIdx.x;
    size_t from = blockIdx.y * each, to = from + each < n.rows ? from + each : n.rows;
    for (size_t k = blockIdx.z; k < n.members; k += gridDim.z) {
        struct pair sum = {0, 0};
        for (size_t r = from + threadIdx.y; c < n.cols && r < to; r += WARPS)
            f.add(n.first + k, r, c, sum);
        lanes[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && c < n.cols) {
            for (int w = 1; w < WARPS; w++) {
                sum.a += lanes[w][threadIdx.x].a;
                sum.b += lanes[w][threadIdx.x].b;
            }
            if (n.parts == 1)
                f.put(n.first + k, c, sum);
            else
                parts[(k * n.parts + blockIdx.y) * n.cols + c] = sum; /* [K, parts, cols] */
        }
        __syncthreads();
    }
}

template <typename F>
__global__ static void column_merge(F f, struct columns_cut n, const struct pair *parts)
{
    FOR_MEMBERS(k, n.members)
    {
        FOR_ELEMENTS(c, n.cols)
        {
            struct pair sum = {0, 0};
            for (size_t p = 0; p < n.parts; p++) {
                sum.a += parts[(k * n.parts + p) * n.cols + c].a;
                sum.b += parts[(k * n.parts + p) * n.cols + c].b;
            }
            f.put(n.first + k, c, sum);
        }
    }
}

template <typename F>
static as_status sum_columns(struct backend *be, size_t members, size_t rows, size_t cols, F f,
                             const char *what, struct as_err *err)
{
    if (members == 0 || cols == 0)
        return AS_OK;
    struct cuda_backend *c = cuda_of(be);
    size_t parts = blocks_for(rows, ROWS_PER_PART, ROW_PARTS_MAX);
    if (parts * cols > ROOM_PAIRS)
        parts = cols < ROOM_PAIRS ? ROOM_PAIRS / cols : 1;
    size_t most = parts == 1 ? members : ROOM_PAIRS / (parts * cols); /* members per launch */
    for (size_t first = 0; first < members; first += most) {
        size_t here = members - first < most ? members - first : most;
        struct columns_cut n = {first, here, rows, cols, parts};
        dim3 grid((unsigned)((cols + WARP - 1) / WARP), (unsigned)parts,
                  blocks_for(here, 1, GRID_YZ_MAX));
        LAUNCH(column_parts<F>, grid, dim3(WARP, WARPS), 0, c->stream, f, n, c->room);
        if (parts > 1)
            LAUNCH(column_merge<F>, grid_over(cols, here), THREADS, 0, c->stream, f, n, c->room);
    }
    return cuda_launched(what, err);
}

#endif
