/* Small products: a block of 16 x 16 threads computes a tile of 32 x 32, four elements in each
 * thread, from slices of both factors in shared memory. Rows of a slice are one float longer, so
 * that a column has no bank conflicts, transposed or not. */
#include "kernels/cuda/product.cuh"

#define TILE 32
#define SIDE 16 /* threads; an element of each thread in each quarter of the tile */

struct small_args {
    size_t members, m, n, inner;
    struct dev_f32 a, b, c, bias;
    size_t a_row, b_row;
    bool a_turned, b_turned;
    unsigned fused;
    float beta;
};

/* Element (r, l) of the slice at (from, at) of a factor [rows, inner], which is transposed in
 * memory if `turned`; 0 outside. Neighbouring threads read neighbouring places. */
struct slice {
    size_t rows, inner, from, at, row;
    bool turned;
    __device__ void load(const float *p, float (*to)[TILE + 1]) const
    {
        for (unsigned e = threadIdx.y * SIDE + threadIdx.x; e < TILE * TILE; e += SIDE * SIDE) {
            unsigned r = turned ? e % TILE : e / TILE, l = turned ? e / TILE : e % TILE;
            size_t i = from + r, k = at + l;
            bool inside = i < rows && k < inner;
            to[l][r] = !inside ? 0.0f : turned ? p[k * row + i] : p[i * row + k];
        }
    }
};

__device__ static void store(const struct small_args &s, size_t k, size_t i, size_t j, float v)
{
    if (i >= s.m || j >= s.n)
        return;
    float *to = s.c.at(k) + i * s.n + j; /* [m, n] */
    if (s.beta != 0.0f)
        v += s.beta * *to;
    if ((s.fused & FUSE_BIAS) != 0)
        v += s.bias.at(k)[j];
    if ((s.fused & FUSE_RELU) != 0)
        v = v < 0.0f ? 0.0f : v;
    *to = v;
}

/* Tiles of columns in x, of rows in y, members in z. */
__global__ static void __launch_bounds__(SIDE *SIDE) multiply(struct small_args s)
{
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
    unsigned x = threadIdx.x, y = threadIdx.y;
    size_t i = blockIdx.y * (size_t)TILE, j = blockIdx.x * (size_t)TILE;
    bool adds_up = (s.fused & FUSE_BIAS_GRAD) != 0 && blockIdx.y == 0 && y < TILE / SIDE;
    for (size_t k = blockIdx.z; k < s.members; k += gridDim.z) {
        float sum[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        double column = 0.0; /* y * SIDE + x of the tile, where adds_up */
        for (size_t at = 0; at < s.inner; at += TILE) {
            unsigned here = s.inner - at < TILE ? (unsigned)(s.inner - at) : TILE;
            struct slice rows = {s.m, s.inner, i, at, s.a_row, s.a_turned};
            struct slice cols = {s.n, s.inner, j, at, s.b_row, !s.b_turned};
            rows.load(s.a.at(k), a);
            cols.load(s.b.at(k), b);
            __syncthreads();
            for (unsigned l = 0; l < here; l++)
                for (unsigned q = 0; q < 4; q++)
                    sum[q / 2][q % 2] =
                        fmaf(a[l][y + q / 2 * SIDE], b[l][x + q % 2 * SIDE], sum[q / 2][q % 2]);
            for (unsigned l = 0; adds_up && l < here; l++)
                column += (double)b[l][y * SIDE + x];
            __syncthreads(); /* all threads have read the slices */
        }
        for (unsigned q = 0; q < 4; q++)
            store(s, k, i + y + q / 2 * SIDE, j + x + q % 2 * SIDE, sum[q / 2][q % 2]);
        if (adds_up && j + y * SIDE + x < s.n)
            s.bias.at(k)[j + y * SIDE + x] = (float)column;
    }
}

static bool is_small(const struct cuda_backend *c, const struct product *p)
{
    if (p->members == 0 || p->m == 0 || p->n == 0 || p->inner == 0)
        return false;
    size_t most = c->small_products, tiles = (p->m + TILE - 1) / TILE;
    return c->compute == CUBLAS_COMPUTE_32F && tiles <= GRID_YZ_MAX && p->n <= most &&
           p->m <= most / p->n && p->inner <= most / p->n / p->m;
}

as_status small_product(struct backend *be, const struct product *p, unsigned fused, bool *ret_done,
                        struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    *ret_done = is_small(c, p);
    if (!*ret_done)
        return AS_OK;
    struct small_args s = {p->members,
                           p->m,
                           p->n,
                           p->inner,
                           f32_of(p->a.t),
                           f32_of(p->b.t),
                           f32_of(p->c),
                           f32_of(p->bias),
                           p->a.row,
                           p->b.row,
                           p->a.transposed,
                           p->b.transposed,
                           fused,
                           p->beta};
    dim3 grid((unsigned)((p->n + TILE - 1) / TILE), (unsigned)((p->m + TILE - 1) / TILE),
              blocks_for(p->members, 1, GRID_YZ_MAX));
    LAUNCH(multiply, grid, dim3(SIDE, SIDE), 0, c->stream, s);
    c->count.small++;
    return cuda_launched("small product", err);
}
