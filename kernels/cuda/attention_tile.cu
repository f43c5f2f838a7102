/* Causal attention in register tiles, for heads of up to 128 elements.
 *
 * A block of four warps owns positions of one head and passes over the others, tile by tile, in
 * shared memory. In forward and in dq it owns queries and passes over keys. In dk and dv it owns
 * keys and passes over queries, so that no two blocks add to one place and every sum has one order.
 *
 *                 passing positions (8 C)
 *               0 1 2 3 4 5 6 7   0 1 ..         the number is the lane's column: 8 columns,
 *             +-----------------+------          C of each in a thread
 *      owned  | lane's row 0    |
 *  positions  |            1    |                4 rows, R of each in a thread:
 *  of a warp  |            2    |                a thread holds R x C scores
 *     (4 R)   |            3    |
 *             +-----------------+
 *             | lane's row 0    |
 *
 * Both products of a tile read shared memory in pieces of 16 bytes and use each piece R or C times:
 *
 *   scores   s[r][c] = own[r] . pass[c]              4 elements of the rows at a time
 *   sums     out[r]  += sum over c of s[r][c] pass[c]   4 columns c at a time; a thread holds D / 8
 *                                                    elements of each of its R rows
 *
 * In between a warp passes its scores through shared memory, CHUNK columns at a time, since the
 * sums need all scores of a row. A warp owns whole rows, so this needs no barrier of the block.
 *
 * While one tile is read, the next is on its way (async.cuh): the two matrices that pass (keys and
 * values, or queries and dout) are used one after the other, and each is fetched while the other
 * is used. A warp skips a tile that lies wholly in the future of its positions.
 *
 * Lanes: shared memory serves the 16-byte reads of a half warp at once if lanes 2i and 2i + 1, or
 * lanes i and i + 2, read the same place. So bit 0 of the lane belongs to the column and bit 1 to
 * the row. Rows in shared memory are 4 floats longer than D, so that 8 rows begin in 8 different
 * groups of banks. */
#include "kernels/cuda/attention.cuh"

#include <climits>
#include <cmath>

#include "kernels/cuda/async.cuh"

#define TILE_THREADS ATTENTION_THREADS
#define TILE_WARPS (TILE_THREADS / WARP)
#define ROWS 4 /* of lanes in a warp */
#define COLS 8
#define CHUNK 16
#define CHUNK_ROW                                                                                  \
    (CHUNK + 8)            /* four rows begin 8 banks apart, so that scores are written at once */
#define LOG2_E 1.44269504f /* exp(x) is exp2(x LOG2_E), which the device computes itself */
#define LN_2 0.693147181f

/* Sizes for heads of up to D elements, with R x C scores in a thread. */
template <int D_, int R_, int C_> struct tile {
    static constexpr int D = D_, R = R_, C = C_;
    static constexpr int OWNED = TILE_WARPS * ROWS * R, PASSING = COLS * C;
    static constexpr int ROW = D + 4;             /* of a matrix in shared memory */
    static constexpr int SUMS = D / COLS;         /* elements of a row in a thread */
    static constexpr int W = SUMS < 4 ? SUMS : 4; /* of which so many are neighbours */
    static constexpr int BLOCKS =
        R * (C + SUMS) > 64 ? 2 : 3; /* that a multiprocessor should hold */
    static constexpr size_t floats(int owned, int passing)
    {
        return (size_t)(owned * OWNED + passing * PASSING) * ROW + OWNED * CHUNK_ROW + 2 * PASSING;
    }
};

template <int W> struct alignas(W * sizeof(float)) pack {
    float at[W];
};

template <int W> __device__ static inline struct pack<W> read(const float *from) {
    return *(const struct pack<W> *)from;
}

template <int W>
__device__ static inline void write(float *to, struct pack<W> p)
{
    *(struct pack<W> *)to = p;
}

/* ---- where a thread is ---- */

__device__ static inline int lane_row(void)
{
    return (int)(threadIdx.x >> 1 & 1) | (int)(threadIdx.x >> 3 & 2);
}

__device__ static inline int lane_col(void)
{
    return (int)(threadIdx.x & 1) | (int)(threadIdx.x >> 1 & 6);
}

/* The first owned position of the warp; the thread's first is lane_row() after it, and the others
 * follow at a distance of ROWS. */
template <class T> __device__ static inline int warp_first(void)
{
    return (int)(threadIdx.x / WARP) * ROWS * T::R;
}

/* The largest of a row's values, in all its lanes: they differ in the bits of lane_col(). */
__device__ static inline float row_max(float v)
{
    for (int step : {1, 4, 8})
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
    return v;
}

__device__ static inline float row_sum(float v)
{
    for (int step : {1, 4, 8})
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* ---- the work of a block ---- */

/* Positions [first, first + OWNED) of one head of one sequence of one member. */
struct job {
    unsigned k, row; /* row: of [B, H] */
    int first;
};

enum job_order { LAST_FIRST, FIRST_FIRST };

/* Long jobs come first, so that the device ends with short ones: the last queries read the most
 * keys, and the first keys are read by the most queries. */
__device__ static inline struct job job_of(const struct attention &a, int owned,
                                           enum job_order order)
{
    unsigned rows = (unsigned)(a.batch * a.heads), all = (unsigned)a.members * rows;
    unsigned tile = blockIdx.x / all, tiles = gridDim.x / all;
    struct job j;
    j.k = blockIdx.x % all / rows;
    j.row = blockIdx.x % rows;
    j.first = (int)(order == LAST_FIRST ? tiles - 1 - tile : tile) * owned;
    return j;
}

enum part { QUERY, KEY, VALUE };

/* Where the head begins in [B, T, 3, H, D] and in [B, T, H, D]; from position to position there
 * are qkv_row and out_row. */
__device__ static inline size_t at_qkv(const struct attention &a, struct job j, enum part part)
{
    size_t b = j.row / (unsigned)a.heads, h = j.row % (unsigned)a.heads;
    return (b * a.seq * 3 + part) * a.heads * a.dim + h * a.dim;
}

__device__ static inline size_t at_out(const struct attention &a, struct job j)
{
    size_t b = j.row / (unsigned)a.heads, h = j.row % (unsigned)a.heads;
    return (b * a.seq * a.heads + h) * a.dim;
}

__device__ static inline int qkv_row(const struct attention &a)
{
    return 3 * (int)(a.heads * a.dim);
}

__device__ static inline int out_row(const struct attention &a)
{
    return (int)(a.heads * a.dim);
}

/* ---- shared memory ---- */

struct room {
    float *own[2], *pass[2];
    float *chunk; /* [OWNED, CHUNK_ROW] */
    float *stats; /* [2, PASSING]: lse and delta of passing queries */
};

template <class T> __device__ static inline struct room room_of(float *at, int owned)
{
    struct room m;
    m.own[0] = at;
    m.own[1] = at + (owned - 1) * T::OWNED * T::ROW;
    m.pass[0] = at + owned * T::OWNED * T::ROW;
    m.pass[1] = m.pass[0] + T::PASSING * T::ROW;
    m.chunk = m.pass[1] + T::PASSING * T::ROW;
    m.stats = m.chunk + T::OWNED * CHUNK_ROW;
    return m;
}

template <int N, int D, int W>
__device__ static inline void fetch_by(const struct attention &a, float *to, const float *from,
                                       int stride, int first)
{
    constexpr int ACROSS = D / W, STEP = TILE_THREADS / ACROSS; /* threads in a row; rows at once */
    static_assert(TILE_THREADS % ACROSS == 0 && N % STEP == 0, "all threads copy the same number");
    int d = (int)threadIdx.x % ACROSS * W, r = (int)threadIdx.x / ACROSS;
    int left = d < (int)a.dim ? (int)a.seq - first : 0;
    from += (int64_t)(first + r) * stride + d;
    to += r * (D + 4) + d;
    _Pragma("unroll 4") for (; r < N; r += STEP)
    {
        copy_async<W>(to, r < left ? from : a.qkv.p, r < left);
        from += (int64_t)STEP * stride;
        to += STEP * (D + 4);
    }
}

/* Begin to copy positions [first, first + N) of a matrix; 0 past the sequence and the head. */
template <int N, int D>
__device__ static inline void fetch(const struct attention &a, float *to, const float *from,
                                    int stride, int first)
{
    if (a.wide)
        fetch_by<N, D, 4>(a, to, from, stride, first);
    else
        fetch_by<N, D, 1>(a, to, from, stride, first);
}

/* ---- the two products of a tile ---- */

/* s[i][j] = own row i . passing row j, of this thread. */
template <class T>
__device__ static inline void dots(const float *own, const float *pass, float s[T::R][T::C])
{
    own += (warp_first<T>() + lane_row()) * T::ROW;
    pass += lane_col() * T::ROW;
    UNROLLED for (int i = 0; i < T::R; i++) UNROLLED for (int j = 0; j < T::C; j++) s[i][j] = 0.0f;
    _Pragma("unroll 2") for (int d = 0; d < T::D; d += 4)
    {
        struct pack<4> x[T::R];
        UNROLLED for (int i = 0; i < T::R; i++) x[i] = read<4>(own + i * ROWS * T::ROW + d);
        UNROLLED for (int j = 0; j < T::C; j++)
        {
            struct pack<4> y = read<4>(pass + j * COLS * T::ROW + d);
            UNROLLED for (int e = 0; e < 4; e++) UNROLLED for (int i = 0; i < T::R; i++) s[i][j] +=
                x[i].at[e] * y.at[e];
        }
    }
}

/* sums[i] += the sum over the CHUNK columns of chunk[i][c] pass[c]. */
template <class T>
__device__ static inline void add_chunk(const float *chunk, const float *pass,
                                        float sums[T::R][T::SUMS])
{
    chunk += (warp_first<T>() + lane_row()) * CHUNK_ROW;
    pass += lane_col() * T::W;
    _Pragma("unroll 2") for (int c = 0; c < CHUNK; c += 4)
    {
        struct pack<4> x[T::R];
        UNROLLED for (int i = 0; i < T::R; i++) x[i] = read<4>(chunk + i * ROWS * CHUNK_ROW + c);
        UNROLLED for (int e = 0; e < 4; e++) UNROLLED for (int d = 0; d < T::SUMS; d += T::W)
        {
            struct pack<T::W> y = read<T::W>(pass + (c + e) * T::ROW + d * COLS);
            UNROLLED for (int w = 0; w < T::W; w++) UNROLLED for (int i = 0; i < T::R; i++)
                sums[i][d + w] += x[i].at[e] * y.at[w];
        }
    }
}

/* sums[i] += the sum over all columns c of the tile of s[i][c] pass[c]. */
template <class T>
__device__ static inline void add_rows(const float s[T::R][T::C], float *chunk, const float *pass,
                                       float sums[T::R][T::SUMS])
{
    float *mine = chunk + (warp_first<T>() + lane_row()) * CHUNK_ROW + lane_col();
    UNROLLED for (int first = 0; first < T::C; first += CHUNK / COLS)
    {
        __syncwarp(); /* the last chunk has been read */
        UNROLLED for (int i = 0; i < T::R; i++) UNROLLED for (int j = 0; j < CHUNK / COLS; j++)
            mine[i * ROWS * CHUNK_ROW + j * COLS] = s[i][first + j];
        __syncwarp();
        add_chunk<T>(chunk, pass + first * COLS * T::ROW, sums);
    }
}

/* The thread's elements of position t. */
template <class T>
__device__ static inline void store(const struct attention &a, float *to, const float sums[T::SUMS],
                                    float by)
{
    UNROLLED for (int d = 0; d < T::SUMS; d += T::W)
    {
        size_t at = (size_t)(d * COLS + lane_col() * T::W);
        struct pack<T::W> p;
        UNROLLED for (int w = 0; w < T::W; w++) p.at[w] = sums[d + w] * by;
        if (a.wide && at < a.dim)
            write<T::W>(to + at, p);
        UNROLLED for (int w = 0; w < T::W; w++) if (!a.wide && at + (size_t)w < a.dim)
            to[at + (size_t)w] = p.at[w];
    }
}

/* ---- forward ---- */

/* The running softmax of the thread's rows, which begins with zeros. `sum` is that of the thread's
 * own columns. */
template <class T> struct softmax {
    float max[T::R], sum[T::R], out[T::R][T::SUMS];
};

/* Scores become weights. The thread's first row sees the columns up to `reach` from the thread's
 * first. */
template <class T>
__device__ static inline void look(struct softmax<T> &q, float s[T::R][T::C], float scale,
                                   int reach, bool is_first)
{
    UNROLLED for (int i = 0; i < T::R; i++)
    {
        float old = is_first ? -INFINITY : q.max[i], max = old, sum = 0.0f;
        UNROLLED for (int j = 0; j < T::C; j++)
        {
            s[i][j] = j * COLS <= reach + i * ROWS ? s[i][j] * scale : -INFINITY;
            max = fmaxf(max, s[i][j]); /* without NaN, which stays in the score */
        }
        max = row_max(max);
        float fade = exp2f(old - max);
        UNROLLED for (int j = 0; j < T::C; j++)
        {
            s[i][j] = exp2f(s[i][j] - max);
            sum += s[i][j];
        }
        q.sum[i] = q.sum[i] * fade + sum;
        q.max[i] = max;
        UNROLLED for (int d = 0; d < T::SUMS; d++) q.out[i][d] *= fade;
    }
}

template <class T>
__device__ static inline void finish(const struct attention &a, struct job j,
                                     const struct softmax<T> &q)
{
    float *out = a.out.at(j.k) + at_out(a, j), *lse = a.lse.at(j.k) + j.row * a.seq;
    UNROLLED for (int i = 0; i < T::R; i++)
    {
        int t = j.first + warp_first<T>() + lane_row() + i * ROWS;
        float sum = row_sum(q.sum[i]);
        if (t >= (int)a.seq)
            continue;
        store<T>(a, out + (int64_t)t * out_row(a), q.out[i], 1.0f / sum);
        if (lane_col() == 0)
            lse[t] = (q.max[i] + log2f(sum)) * LN_2;
    }
}

template <class T>
__global__ static void __launch_bounds__(TILE_THREADS, T::BLOCKS) forward(struct attention a)
{
    DYNAMIC_SHARED(float, shared);
    struct room m = room_of<T>(shared, 1);
    struct job j = job_of(a, T::OWNED, LAST_FIRST);
    const float *qkv = a.qkv.at(j.k), *key = qkv + at_qkv(a, j, KEY);
    const float *value = qkv + at_qkv(a, j, VALUE);
    float *keys = m.pass[0], *values = m.pass[1];
    int mine = j.first + warp_first<T>();
    int end = min(j.first + T::OWNED, (int)a.seq);
    struct softmax<T> q = {
    };
    fetch<T::OWNED, T::D>(a, m.own[0], qkv + at_qkv(a, j, QUERY), qkv_row(a), j.first);
    fetch<T::PASSING, T::D>(a, keys, key, qkv_row(a), 0);
    for (int s = 0; s < end; s += T::PASSING) {
        bool sees = s < mine + ROWS * T::R && mine < end; /* the same for the whole warp */
        float score[T::R][T::C];
        copies_arrive();
        fetch<T::PASSING, T::D>(a, values, value, qkv_row(a), s);
        if (sees) {
            dots<T>(m.own[0], keys, score);
            look<T>(q, score, a.scale * LOG2_E, mine - s + lane_row() - lane_col(), s == 0);
        }
        copies_arrive();
        if (s + T::PASSING < end)
            fetch<T::PASSING, T::D>(a, keys, key, qkv_row(a), s + T::PASSING);
        if (sees)
            add_rows<T>(score, m.chunk, values, q.out);
    }
    if (mine < end)
        finish<T>(a, j, q);
}

/* ---- backward ---- */

/* With a score s and p = exp(s scale - lse): s becomes p, and dp becomes p (dp - delta), which is
 * the gradient of s scale. `scale` and `lse` are those of exp2. */
__device__ static inline void score_slope(float &s, float &dp, float scale, float lse, float delta,
                                          bool seen)
{
    s = seen ? exp2f(s * scale - lse) : 0.0f;
    dp = s * (dp - delta);
}

template <class T>
__global__ static void __launch_bounds__(TILE_THREADS, T::BLOCKS) backward_q(struct attention a)
{
    DYNAMIC_SHARED(float, shared);
    struct room m = room_of<T>(shared, 2);
    struct job j = job_of(a, T::OWNED, LAST_FIRST);
    const float *qkv = a.qkv.at(j.k), *key = qkv + at_qkv(a, j, KEY);
    const float *value = qkv + at_qkv(a, j, VALUE);
    const float *lse = a.lse.at(j.k) + j.row * a.seq, *delta = a.delta.at(j.k) + j.row * a.seq;
    float *keys = m.pass[0], *values = m.pass[1];
    int mine = j.first + warp_first<T>();
    int end = min(j.first + T::OWNED, (int)a.seq);
    float dq[T::R][T::SUMS] = {};
    fetch<T::OWNED, T::D>(a, m.own[0], qkv + at_qkv(a, j, QUERY), qkv_row(a), j.first);
    fetch<T::OWNED, T::D>(a, m.own[1], a.dout.at(j.k) + at_out(a, j), out_row(a), j.first);
    fetch<T::PASSING, T::D>(a, values, value, qkv_row(a), 0);
    for (int s = 0; s < end; s += T::PASSING) {
        bool sees = s < mine + ROWS * T::R && mine < end; /* the same for the whole warp */
        float score[T::R][T::C], dp[T::R][T::C];
        copies_arrive();
        fetch<T::PASSING, T::D>(a, keys, key, qkv_row(a), s);
        if (sees)
            dots<T>(m.own[1], values, dp);
        copies_arrive();
        if (s + T::PASSING < end)
            fetch<T::PASSING, T::D>(a, values, value, qkv_row(a), s + T::PASSING);
        if (!sees)
            continue;
        dots<T>(m.own[0], keys, score);
        int reach = mine - s + lane_row() - lane_col();
        UNROLLED for (int i = 0; i < T::R; i++)
        {
            int t = min(mine + lane_row() + i * ROWS, (int)a.seq - 1); /* past the end: any value */
            float lse_2 = lse[t] * LOG2_E, delta_t = delta[t];
            UNROLLED for (int c = 0; c < T::C; c++)
                score_slope(score[i][c], dp[i][c], a.scale * LOG2_E, lse_2, delta_t,
                            c * COLS <= reach + i * ROWS);
        }
        add_rows<T>(dp, m.chunk, keys, dq);
    }
    float *to = a.dqkv.at(j.k) + at_qkv(a, j, QUERY);
    UNROLLED for (int i = 0; i < T::R; i++)
    {
        int t = mine + lane_row() + i * ROWS;
        if (t < (int)a.seq)
            store<T>(a, to + (int64_t)t * qkv_row(a), dq[i], a.scale);
    }
}

/* lse and delta of passing queries [s, s + PASSING). Past the sequence they are 0, as the queries
 * and dout are, so that these queries add 0. */
template <class T>
__device__ static inline void fetch_stats(const struct attention &a, float *to, struct job j, int s)
{
    int i = (int)threadIdx.x, t = s + i % T::PASSING;
    const struct dev_f32 &from = i < T::PASSING ? a.lse : a.delta;
    bool present = t < (int)a.seq;
    if (i < 2 * T::PASSING)
        copy_async<1>(to + i, from.at(j.k) + j.row * a.seq + (present ? t : 0), present);
}

template <class T>
__global__ static void __launch_bounds__(TILE_THREADS, 2) backward_kv(struct attention a)
{
    DYNAMIC_SHARED(float, shared);
    struct room m = room_of<T>(shared, 2);
    struct job j = job_of(a, T::OWNED, FIRST_FIRST);
    const float *qkv = a.qkv.at(j.k), *query = qkv + at_qkv(a, j, QUERY);
    const float *dout = a.dout.at(j.k) + at_out(a, j);
    float *queries = m.pass[0], *douts = m.pass[1];
    int mine = j.first + warp_first<T>(), end = (int)a.seq;
    float dk[T::R][T::SUMS] = {}, dv[T::R][T::SUMS] = {};
    fetch<T::OWNED, T::D>(a, m.own[0], qkv + at_qkv(a, j, KEY), qkv_row(a), j.first);
    fetch<T::OWNED, T::D>(a, m.own[1], qkv + at_qkv(a, j, VALUE), qkv_row(a), j.first);
    fetch<T::PASSING, T::D>(a, douts, dout, out_row(a), j.first);
    for (int s = j.first; s < end; s += T::PASSING) {
        bool seen = mine < s + T::PASSING && mine < end; /* the same for the whole warp */
        float score[T::R][T::C], dp[T::R][T::C];
        copies_arrive();
        fetch<T::PASSING, T::D>(a, queries, query, qkv_row(a), s);
        fetch_stats<T>(a, m.stats, j, s);
        if (seen)
            dots<T>(m.own[1], douts, dp);
        copies_arrive();
        if (seen) {
            dots<T>(m.own[0], queries, score);
            int reach = mine - s + lane_row() - lane_col();
            UNROLLED for (int c = 0; c < T::C; c++)
            {
                float lse = m.stats[c * COLS + lane_col()] * LOG2_E;
                float delta = m.stats[T::PASSING + c * COLS + lane_col()];
                UNROLLED for (int i = 0; i < T::R; i++)
                    score_slope(score[i][c], dp[i][c], a.scale * LOG2_E, lse, delta,
                                c * COLS >= reach + i * ROWS);
            }
            add_rows<T>(score, m.chunk, douts, dv);
        }
        __syncthreads(); /* dout has been read */
        if (s + T::PASSING < end)
            fetch<T::PASSING, T::D>(a, douts, dout, out_row(a), s + T::PASSING);
        if (seen)
            add_rows<T>(dp, m.chunk, queries, dk);
    }
    float *to = a.dqkv.at(j.k);
    UNROLLED for (int i = 0; i < T::R; i++)
    {
        int t = mine + lane_row() + i * ROWS;
        if (t >= end)
            continue;
        store<T>(a, to + at_qkv(a, j, KEY) + (int64_t)t * qkv_row(a), dk[i], a.scale);
        store<T>(a, to + at_qkv(a, j, VALUE) + (int64_t)t * qkv_row(a), dv[i], 1.0f);
    }
}

/* ---- the choice ---- */

/* F: forward; B: backward. */
template <class F, class B> static struct attention_ways ways_of(void)
{
    struct attention_ways w;
    w.forward = {forward<F>, F::OWNED, F::floats(1, 2) * sizeof(float)};
    w.backward_q = {backward_q<B>, B::OWNED, B::floats(2, 2) * sizeof(float)};
    w.backward_kv = {backward_kv<B>, B::OWNED, B::floats(2, 2) * sizeof(float)};
    return w;
}

/* With 8 x 8 scores in a thread a multiply-add needs half as many bytes of shared memory as with
 * 4 x 4, but a block then owns 128 positions. Backward has room for 4 x 8: it holds two tiles of
 * scores, and sums for both dk and dv. */
template <int D> static struct attention_ways ways_for(size_t seq)
{
    if constexpr (D > 64)
        return ways_of<tile<D, 4, 8>, tile<D, 4, 4>>();
    else
        return seq <= tile<D, 4, 8>::OWNED ? ways_of<tile<D, 4, 8>, tile<D, 4, 8>>()
                                           : ways_of<tile<D, 8, 8>, tile<D, 4, 8>>();
}

bool attention_tiles(const struct attention_args *a, struct attention_ways *ret)
{
    size_t dim = a->head_dim;
    if (dim == 0 || dim > 128 || a->seq > INT_MAX / 2 || 3 * a->heads * dim > INT_MAX)
        return false;
    *ret = dim <= 16   ? ways_for<16>(a->seq)
           : dim <= 32 ? ways_for<32>(a->seq)
           : dim <= 64 ? ways_for<64>(a->seq)
                       : ways_for<128>(a->seq);
    return true;
}
