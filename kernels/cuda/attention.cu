/* Causal attention without the T x T matrix (Dao et al. 2022). attention_tile.cu has the kernels
 * for the usual heads; the kernels here take heads of up to 256 elements, and little shared memory.
 *
 * A block owns 32 positions of one head and passes over the others tile by tile in shared memory.
 * In forward and dq the block owns queries. In dk and dv it owns keys, so that no two blocks add to
 * one place. A warp has four owned positions, and a lane for each position of the tile. Sums run in
 * the order of the positions. Backward computes the scores again from lse. */
#include "kernels/cuda/attention.cuh"

#include <cmath>

#define OWN 4              /* positions of a warp */
#define TILE (WARPS * OWN) /* positions of a block */
#define HEAD_DIM_MAX 256   /* 8 columns in each lane */
#define FULL 0xffffffffu

/* One head of one sequence of one member, and the tile that a block owns. */
struct job {
    size_t k, row; /* row: of [B, H] */
    size_t first;  /* the first owned position */
    const float *q, *key, *value;
    size_t stride, out_stride; /* from position to position, in qkv and in out */
    size_t at_q, at_out;       /* offset of position 0 */
};

__device__ static struct job job_of(const struct attention &a, size_t number)
{
    size_t tiles = (a.seq + TILE - 1) / TILE, row = number / tiles % (a.batch * a.heads);
    size_t b = row / a.heads, h = row % a.heads, width = a.heads * a.dim;
    struct job j;
    j.k = number / tiles / (a.batch * a.heads);
    j.row = row;
    j.first = number % tiles * TILE;
    j.stride = 3 * width; /* [B, T, 3, H, D] */
    j.out_stride = width; /* [B, T, H, D] */
    j.at_q = b * a.seq * j.stride + h * a.dim;
    j.at_out = b * a.seq * width + h * a.dim;
    j.q = a.qkv.at(j.k) + j.at_q;
    j.key = j.q + width;
    j.value = j.key + width;
    return j;
}

/* Positions first to first + n of a matrix into shared memory; 0 past the sequence. */
__device__ static void load(const struct attention &a, float *to, size_t row, const float *from,
                            size_t stride, size_t first, size_t n)
{
    for (size_t i = threadIdx.x; i < n * a.dim; i += THREADS) {
        size_t t = first + i / a.dim, d = i % a.dim;
        to[i / a.dim * row + d] = t < a.seq ? from[t * stride + d] : 0.0f;
    }
}

/* products[r] = own[r] . row; own: the warp's four rows. */
__device__ static void dots(const float *own, const float *row, size_t dim, float products[OWN])
{
    for (int r = 0; r < OWN; r++)
        products[r] = 0.0f;
    for (size_t d = 0; d < dim; d++)
        for (int r = 0; r < OWN; r++)
            products[r] += own[(size_t)r * dim + d] * row[d];
}

/* sum[i] += by (of lane j) * rows[j][lane + 32 i], for j in [from, to). */
template <int COLS>
__device__ static void add_rows(float sum[COLS], float by, const float *rows, size_t row,
                                size_t dim, size_t from, size_t to)
{
    size_t lane = threadIdx.x % WARP;
    for (size_t j = from; j < to; j++) {
        float share = __shfl_sync(FULL, by, (int)j);
        for (size_t i = 0, d = lane; i < COLS; i++, d += WARP)
            sum[i] += d < dim ? share * rows[j * row + d] : 0.0f;
    }
}

template <int COLS>
__device__ static void store(float *to, const float sum[COLS], float by, size_t dim)
{
    for (size_t i = 0, d = threadIdx.x % WARP; i < COLS; i++, d += WARP)
        if (d < dim)
            to[d] = sum[i] * by;
}

__device__ static float warp_max(float v)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        v = fmaxf(v, __shfl_xor_sync(FULL, v, step));
    return v;
}

/* The number of positions, in the tile that begins at `first`, that position t may read. */
__device__ static size_t visible(const struct attention &a, size_t t, size_t first)
{
    if (t >= a.seq || t < first)
        return 0;
    return t - first + 1 < a.tile ? t - first + 1 : a.tile;
}

/* The running softmax of one query. */
template <int COLS> struct query {
    float max, sum, out[COLS];
};

template <int COLS>
__device__ static void look(const struct attention &a, struct query<COLS> &q, float score,
                            const float *values, size_t seen)
{
    bool mine = threadIdx.x % WARP < seen;
    float max = fmaxf(q.max, warp_max(mine ? score : -INFINITY));
    float p = mine ? expf(score - max) : 0.0f; /* NaN stays NaN: fmaxf ignores it in max only */
    float fade = expf(q.max - max);
    q.sum = q.sum * fade + warp_sum(p);
    for (int i = 0; i < COLS; i++)
        q.out[i] *= fade;
    add_rows<COLS>(q.out, p, values, a.dim + 1, a.dim, 0, seen);
    q.max = max;
}

template <int COLS> __global__ static void forward(struct attention a, size_t jobs)
{
    DYNAMIC_SHARED(float, own); /* [32, D]; then keys and values [tile, D + 1]: no bank conflict */
    float *keys = own + TILE * a.dim, *values = keys + a.tile * (a.dim + 1);
    size_t lane = threadIdx.x % WARP, mine = threadIdx.x / WARP * OWN;
    for (size_t number = blockIdx.x; number < jobs; number += gridDim.x) {
        struct job j = job_of(a, number);
        struct query<COLS> q[OWN];
        UNROLLED for (int r = 0; r < OWN; r++) q[r] = {-INFINITY, 0.0f, {}};
        __syncthreads();
        load(a, own, a.dim, j.q, j.stride, j.first, TILE);
        for (size_t s = 0; s < a.seq && s < j.first + TILE; s += a.tile) {
            __syncthreads();
            load(a, keys, a.dim + 1, j.key, j.stride, s, a.tile);
            load(a, values, a.dim + 1, j.value, j.stride, s, a.tile);
            __syncthreads();
            float score[OWN] = {};
            if (lane < a.tile)
                dots(own + mine * a.dim, keys + lane * (a.dim + 1), a.dim, score);
            UNROLLED for (int r = 0; r < OWN; r++)
            {
                size_t seen = visible(a, j.first + mine + r, s);
                if (seen > 0) /* the same for the whole warp */
                    look<COLS>(a, q[r], score[r] * a.scale, values, seen);
            }
        }
        UNROLLED for (int r = 0; r < OWN; r++)
        {
            size_t t = j.first + mine + r;
            if (t >= a.seq)
                continue;
            store<COLS>(a.out.at(j.k) + j.at_out + t * j.out_stride, q[r].out, 1.0f / q[r].sum,
                        a.dim);
            if (lane == 0)
                a.lse.at(j.k)[j.row * a.seq + t] = q[r].max + logf(q[r].sum);
        }
    }
}

/* delta [B, H, T]: dout . out, which is the sum of p dp over a row. */
__global__ static void row_products(struct attention a)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ROWS(r, a.batch * a.heads * a.seq)
        {
            size_t t = r % a.seq, h = r / a.seq % a.heads, b = r / a.seq / a.heads;
            size_t at = ((b * a.seq + t) * a.heads + h) * a.dim;
            float sum = 0.0f;
            for (size_t d = threadIdx.x % WARP; d < a.dim; d += WARP)
                sum += a.dout.at(k)[at + d] * a.out.at(k)[at + d];
            sum = warp_sum(sum);
            if (threadIdx.x % WARP == 0)
                a.delta.at(k)[r] = sum;
        }
    }
}

/* Shared memory of a backward pass: two matrices of owned positions, two of a tile. */
struct room {
    float *own[2], *pass[2];
};

__device__ static struct room room_of(const struct attention &a, float *at)
{
    struct room m;
    m.own[0] = at;
    m.own[1] = at + TILE * a.dim;
    m.pass[0] = at + 2 * TILE * a.dim;
    m.pass[1] = m.pass[0] + a.tile * (a.dim + 1);
    return m;
}

/* Gradient of the scores: p (dp - delta) scale. */
__device__ static float score_slope(const struct attention &a, float score, float lse, float dp,
                                    float delta, float *ret_p)
{
    *ret_p = expf(score * a.scale - lse);
    return *ret_p * (dp - delta) * a.scale;
}

template <int COLS> __global__ static void backward_q(struct attention a, size_t jobs)
{
    DYNAMIC_SHARED(float, shared);
    struct room m = room_of(a, shared);
    size_t lane = threadIdx.x % WARP, mine = threadIdx.x / WARP * OWN;
    for (size_t number = blockIdx.x; number < jobs; number += gridDim.x) {
        struct job j = job_of(a, number);
        const float *lse = a.lse.at(j.k) + j.row * a.seq, *delta = a.delta.at(j.k) + j.row * a.seq;
        float dq[OWN][COLS] = {};
        __syncthreads();
        load(a, m.own[0], a.dim, j.q, j.stride, j.first, TILE);
        load(a, m.own[1], a.dim, a.dout.at(j.k) + j.at_out, j.out_stride, j.first, TILE);
        for (size_t s = 0; s < a.seq && s < j.first + TILE; s += a.tile) {
            __syncthreads();
            load(a, m.pass[0], a.dim + 1, j.key, j.stride, s, a.tile);
            load(a, m.pass[1], a.dim + 1, j.value, j.stride, s, a.tile);
            __syncthreads();
            float score[OWN] = {}, dp[OWN] = {};
            if (lane < a.tile) {
                dots(m.own[0] + mine * a.dim, m.pass[0] + lane * (a.dim + 1), a.dim, score);
                dots(m.own[1] + mine * a.dim, m.pass[1] + lane * (a.dim + 1), a.dim, dp);
            }
            for (int r = 0; r < OWN; r++) {
                size_t t = j.first + mine + r, seen = visible(a, t, s);
                if (seen == 0) /* the same for the whole warp */
                    continue;
                float p, ds = score_slope(a, score[r], lse[t], dp[r], delta[t], &p);
                add_rows<COLS>(dq[r], ds, m.pass[0], a.dim + 1, a.dim, 0, seen);
            }
        }
        for (int r = 0; r < OWN && j.first + mine + r < a.seq; r++)
            store<COLS>(a.dqkv.at(j.k) + j.at_q + (j.first + mine + r) * j.stride, dq[r], 1.0f,
                        a.dim);
    }
}

template <int COLS> __global__ static void backward_kv(struct attention a, size_t jobs)
{
    DYNAMIC_SHARED(float, shared);
    struct room m = room_of(a, shared);
    size_t lane = threadIdx.x % WARP, mine = threadIdx.x / WARP * OWN;
    for (size_t number = blockIdx.x; number < jobs; number += gridDim.x) {
        struct job j = job_of(a, number);
        const float *lse = a.lse.at(j.k) + j.row * a.seq, *delta = a.delta.at(j.k) + j.row * a.seq;
        float dk[OWN][COLS] = {}, dv[OWN][COLS] = {};
        __syncthreads();
        load(a, m.own[0], a.dim, j.key, j.stride, j.first, TILE);
        load(a, m.own[1], a.dim, j.value, j.stride, j.first, TILE);
        for (size_t s = j.first; s < a.seq; s += a.tile) {
            __syncthreads();
            load(a, m.pass[0], a.dim + 1, j.q, j.stride, s, a.tile);
            load(a, m.pass[1], a.dim + 1, a.dout.at(j.k) + j.at_out, j.out_stride, s, a.tile);
            __syncthreads();
            size_t t = s + lane, end = a.seq - s < a.tile ? a.seq - s : a.tile;
            float score[OWN] = {}, dp[OWN] = {};
            if (lane < a.tile) {
                dots(m.own[0] + mine * a.dim, m.pass[0] + lane * (a.dim + 1), a.dim, score);
                dots(m.own[1] + mine * a.dim, m.pass[1] + lane * (a.dim + 1), a.dim, dp);
            }
            for (int r = 0; r < OWN; r++) {
                size_t key = j.first + mine + r, from = key > s ? key - s : 0;
                float p = 0.0f, ds = 0.0f;
                if (lane < end && t >= key)
                    ds = score_slope(a, score[r], lse[t], dp[r], delta[t], &p);
                add_rows<COLS>(dk[r], ds, m.pass[0], a.dim + 1, a.dim, from, end);
                add_rows<COLS>(dv[r], p, m.pass[1], a.dim + 1, a.dim, from, end);
            }
        }
        for (int r = 0; r < OWN && j.first + mine + r < a.seq; r++) {
            float *to = a.dqkv.at(j.k) + j.at_q + (j.first + mine + r) * j.stride;
            store<COLS>(to + j.out_stride, dk[r], 1.0f, a.dim);
            store<COLS>(to + 2 * j.out_stride, dv[r], 1.0f, a.dim);
        }
    }
}

/* ---- launches ---- */

size_t cuda_attention_work(const struct backend *be, const struct attention_args *a)
{
    (void)be;
    return a->batch * a->heads * a->seq;
}

/* dout and dqkv: absent in forward. */
static struct attention attention_of(const struct attention_args *a, struct tensor dout,
                                     struct tensor dqkv)
{
    struct attention t = {};
    t.members = a->members;
    t.batch = a->batch;
    t.heads = a->heads;
    t.seq = a->seq;
    t.dim = a->head_dim;
    t.scale = a->head_dim > 0 ? (float)(1 / sqrt((double)a->head_dim)) : 0.0f;
    t.qkv = f32_of(a->qkv);
    t.out = f32_of(a->out);
    t.lse = f32_of(a->lse);
    t.delta = f32_of(a->work);
    t.dout = f32_of(dout);
    t.dqkv = f32_of(dqkv);
    t.wide = a->head_dim % 4 == 0;
    for (const struct dev_f32 &m : {t.qkv, t.out, t.dout, t.dqkv})
        t.wide = t.wide && (uintptr_t)m.p % 16 == 0 && m.stride % 4 == 0;
    return t;
}

/* Columns that a lane holds: 1, 2, 4 or 8. */
static int columns_of(size_t dim)
{
    return dim <= WARP ? 0 : dim <= 2 * WARP ? 1 : dim <= 4 * WARP ? 2 : 3;
}

/* Bytes of shared memory for `own` matrices of 32 positions and two matrices of a tile. */
static size_t room_bytes(const struct attention &t, size_t own)
{
    return (own * TILE * t.dim + 2 * t.tile * (t.dim + 1)) * sizeof(float);
}

typedef void any_kernel(struct attention a, size_t jobs);

static as_status allow_shared(const void *kernel, size_t bytes, struct as_err *err)
{
    return cuda_status(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
        "attention", err);
}

static as_status launch_any(struct backend *be, any_kernel *kernel, struct attention t, size_t own,
                            struct as_err *err)
{
    size_t jobs = t.members * t.batch * t.heads * ((t.seq + TILE - 1) / TILE);
    size_t most = cuda_of(be)->shared_bytes;
    for (t.tile = WARP; t.tile > 1 && room_bytes(t, own) > most;)
        t.tile /= 2;
    size_t bytes = room_bytes(t, own);
    as_status st = allow_shared((const void *)kernel, bytes, err);
    if (st < 0)
        return st;
    LAUNCH(kernel, dim3(blocks_for(jobs, 1, 1u << 30)), THREADS, bytes, cuda_of(be)->stream, t,
           jobs);
    return cuda_launched("attention", err);
}

/* More blocks than a grid has would need terabytes of positions. */
static as_status launch_tiles(struct backend *be, const struct attention_way &w,
                              const struct attention &t, struct as_err *err)
{
    size_t blocks = t.members * t.batch * t.heads * ((t.seq + w.owned - 1) / w.owned);
    as_status st = allow_shared((const void *)w.kernel, w.bytes, err);
    if (st < 0)
        return st;
    LAUNCH(w.kernel, dim3((unsigned)blocks), ATTENTION_THREADS, w.bytes, cuda_of(be)->stream, t);
    return cuda_launched("attention", err);
}

/* Whether the fast kernels take these sizes, and the device has the shared memory for them. */
static bool has_tiles(struct backend *be, const struct attention_args *a,
                      struct attention_ways *ret)
{
    size_t most = cuda_of(be)->shared_bytes;
    return attention_tiles(a, ret) && ret->forward.bytes <= most && ret->backward_q.bytes <= most &&
           ret->backward_kv.bytes <= most;
}

static as_status check_dim(const struct attention_args *a, struct as_err *err)
{
    if (a->head_dim <= HEAD_DIM_MAX)
        return AS_OK;
    return as_fail(err, AS_E_UNSUPPORTED,
                   "attention: head_dim is %zu, back end cuda takes up to %d", a->head_dim,
                   HEAD_DIM_MAX);
}

static bool is_empty(const struct attention_args *a)
{
    return a->members == 0 || a->batch == 0 || a->heads == 0 || a->seq == 0;
}

as_status cuda_attention_forward(struct backend *be, const struct attention_args *a,
                                 struct as_err *err)
{
    static any_kernel *const kernels[] = {forward<1>, forward<2>, forward<4>, forward<8>};
    as_status st = check_dim(a, err);
    if (st < 0 || is_empty(a))
        return st;
    cuda_use(be);
    struct attention t = attention_of(a, tensor_none(), tensor_none());
    struct attention_ways ways;
    if (has_tiles(be, a, &ways))
        return launch_tiles(be, ways.forward, t, err);
    return launch_any(be, kernels[columns_of(a->head_dim)], t, 1, err);
}

as_status cuda_attention_backward(struct backend *be, const struct attention_args *a,
                                  struct tensor dout, struct tensor dqkv, struct as_err *err)
{
    static any_kernel *const for_q[] = {backward_q<1>, backward_q<2>, backward_q<4>, backward_q<8>};
    static any_kernel *const for_kv[] = {backward_kv<1>, backward_kv<2>, backward_kv<4>,
                                         backward_kv<8>};
    as_status st = check_dim(a, err);
    if (st < 0 || is_empty(a))
        return st;
    cuda_use(be);
    struct attention t = attention_of(a, dout, dqkv);
    LAUNCH(row_products, grid_over_rows(t.batch * t.heads * t.seq, t.members), THREADS, 0,
           cuda_of(be)->stream, t);
    struct attention_ways ways;
    if (has_tiles(be, a, &ways)) {
        st = launch_tiles(be, ways.backward_q, t, err);
        return st < 0 ? st : launch_tiles(be, ways.backward_kv, t, err);
    }
    st = launch_any(be, for_q[columns_of(t.dim)], t, 2, err);
    return st < 0 ? st : launch_any(be, for_kv[columns_of(t.dim)], t, 2, err);
}
