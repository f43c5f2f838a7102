/* Rows of a table by token, and the table's gradient. The gradient of a row is gathered: a warp
 * owns the row and adds what belongs to it in the order of the batch. Atomic additions would be in
 * an order that changes from run to run, and a sort needs memory; reading all tokens for each row
 * is cheap, because they stay in the cache. An unknown token gives NaN (decision 3001). */
#include "kernels/cuda/sums.cuh"

#include <cmath>

struct words {
    size_t members, rows, seq, vocab, width; /* rows: B * T */
    struct dev_i32 tokens;
    struct dev_f32 table, positions;
};

static struct words words_of(const struct embedding_args *a)
{
    return {a->members, a->batch * a->seq, a->seq,           a->vocab,
            a->width,   i32_of(a->tokens), f32_of(a->table), f32_of(a->positions)};
}

/* A warp per row. */
__global__ static void embed(struct words a, struct dev_f32 y)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ROWS(r, a.rows)
        {
            int32_t token = a.tokens.at(k)[r];
            bool known = token >= 0 && (size_t)token < a.vocab;
            const float *from = a.table.at(k) + (known ? (size_t)token * a.width : 0); /* [V, D] */
            const float *place =
                a.positions.p != nullptr ? a.positions.at(k) + r % a.seq * a.width : nullptr;
            for (size_t d = threadIdx.x % WARP; d < a.width; d += WARP) {
                float at = place != nullptr ? place[d] : 0.0f;
                y.at(k)[r * a.width + d] = known ? from[d] + at : NAN;
            }
        }
    }
}

as_status cuda_embedding_forward(struct backend *be, const struct embedding_args *a,
                                 struct tensor y, struct as_err *err)
{
    size_t rows = a->batch * a->seq;
    if (a->members == 0 || rows == 0 || a->width == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(embed, grid_over_rows(rows, a->members), THREADS, 0, cuda_of(be)->stream, words_of(a),
           f32_of(y));
    return cuda_launched("embedding", err);
}

#define HELD 4 /* columns that a lane sums at once */

/* The sum of dy over the rows whose token is v, for columns first + lane + 32 i: the lanes
 * compare 32 tokens, then add the rows that match in their order. */
__device__ static void gather_rows(const struct words &a, size_t k, size_t v, size_t first,
                                   const float *dy, float sum[HELD])
{
    size_t lane = threadIdx.x % WARP;
    const int32_t *tokens = a.tokens.at(k);
    for (size_t r = 0; r < a.rows; r += WARP) {
        int here = r + lane < a.rows && tokens[r + lane] == (int32_t)v;
        for (unsigned left = __ballot_sync(0xffffffffu, here); left != 0; left &= left - 1) {
            const float *row = dy + (r + (size_t)__ffs((int)left) - 1) * a.width;
            for (size_t i = 0, d = first + lane; i < HELD; i++, d += WARP)
                sum[i] += d < a.width ? row[d] : 0.0f;
        }
    }
}

/* A warp per row of the table and 128 of its columns. No sort, no atomics; every row of the table
 * reads all tokens, which stay in the cache. */
__global__ static void embed_backward(struct words a, struct dev_f32 dy, struct dev_f32 dtable)
{
    size_t lane = threadIdx.x % WARP, pieces = (a.width + HELD * WARP - 1) / (HELD * WARP);
    FOR_MEMBERS(k, a.members)
    {
        FOR_ROWS(job, a.vocab * pieces)
        {
            size_t v = job / pieces, first = job % pieces * HELD * WARP;
            float sum[HELD] = {0.0f};
            gather_rows(a, k, v, first, dy.at(k), sum);
            for (size_t i = 0, d = first + lane; i < HELD; i++, d += WARP)
                if (d < a.width)
                    dtable.at(k)[v * a.width + d] = sum[i]; /* [V, D] */
        }
    }
}

/* dpositions [T, D]: the sum over the batch. */
struct position_sum {
    size_t size; /* T D */
    struct dev_f32 dy, out;
    __device__ void add(size_t k, size_t r, size_t c, struct pair &sum) const
    {
        sum.a += (double)dy.at(k)[r * size + c];
    }
    __device__ void put(size_t k, size_t c, struct pair sum) const
    {
        out.at(k)[c] = (float)sum.a;
    }
};

as_status cuda_embedding_backward(struct backend *be, const struct embedding_args *a,
                                  struct tensor dy, struct tensor dtable, struct tensor dpositions,
                                  struct as_err *err)
{
    if (a->members == 0 || a->width == 0)
        return AS_OK;
    cuda_use(be);
    size_t pieces = (a->width + HELD * WARP - 1) / (HELD * WARP);
    if (a->vocab > 0)
        LAUNCH(embed_backward, grid_over_rows(a->vocab * pieces, a->members), THREADS, 0,
               cuda_of(be)->stream, words_of(a), f32_of(dy), f32_of(dtable));
    as_status st = cuda_launched("embedding backward", err);
    if (st < 0 || dpositions.buf == NULL)
        return st;
    struct position_sum sum = {a->seq * a->width, f32_of(dy), f32_of(dpositions)};
    return sum_columns(be, a->members, a->batch, sum.size, sum, "embedding backward", err);
}
