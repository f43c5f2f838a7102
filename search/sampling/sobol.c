/* Single points, and columns of many points for one dimension. In a column the directions of the
 * lowest RUN_BITS bits are combined once for 256 indices and scrambled side by side in vectors;
 * both ways give the same bits. A dimension belongs to the parameter's place in the document
 * (decision 4002). */
#include "search/sampling/sobol.h"

#include <assert.h>

#include "base/cpu_clones.h"
#include "base/rng.h"
#include "search/problem/random_stream.h"
#include "search/sampling/sobol_table_priv.h"

_Static_assert(SOBOL_TABLE_ROWS == SOBOL_MAX_DIMS - 1, "every dimension but the first has a row");

#define BITS 32

static unsigned polynomial_degree(uint32_t poly)
{
    return 31u - (unsigned)__builtin_clz(poly);
}

/* v[k], k = 0 the highest bit: m_k / 2^(k+1) as 32 bits of fraction (Bratley and Fox, TOMS 14,
 * 1988). */
static void set_directions(unsigned dim, uint32_t v[BITS])
{
    if (dim == 0) {
        for (unsigned k = 0; k < BITS; k++)
            v[k] = UINT32_C(1) << (31 - k);
        return;
    }
    const struct sobol_row *row = &sobol_rows[dim - 1];
    unsigned s = polynomial_degree(row->poly);
    assert(s >= 1 && s <= SOBOL_MAX_DEGREE);
    for (unsigned k = 0; k < s; k++)
        v[k] = (uint32_t)row->m[k] << (31 - k);
    for (unsigned k = s; k < BITS; k++) {
        v[k] = v[k - s] ^ (v[k - s] >> s);
        for (unsigned j = 1; j < s; j++)
            if (row->poly >> (s - j) & 1)
                v[k] ^= v[k - j];
    }
}

static uint32_t combine_directions(const uint32_t v[BITS], uint32_t index)
{
    uint32_t x = 0;
    for (; index; index &= index - 1)
        x ^= v[__builtin_ctz(index)];
    return x;
}

uint32_t sobol_bits(uint32_t index, unsigned dim)
{
    uint32_t v[BITS];
    set_directions(dim, v);
    return combine_directions(v, index);
}

CPU_INLINE uint32_t reverse_bits(uint32_t x)
{
    x = __builtin_bswap32(x);
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    return (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
}

/* Each step changes only bits above a given bit. On reversed bits this is a nested permutation of
 * the unit interval's halves, quarters, … (S. Laine, T. Karras, EGSR 2011; constants by N. Vegdahl,
 * 2021). */
CPU_INLINE uint32_t laine_karras(uint32_t x, uint32_t seed)
{
    x ^= x * 0x3d20adeau;
    x += seed;
    x *= (seed >> 16) | 1;
    x ^= x * 0x05526c56u;
    x ^= x * 0x53a22864u;
    return x;
}

static uint32_t scrambling_seed(uint64_t seed, uint64_t index, unsigned dim)
{
    uint32_t draw[4];
    philox4x32(seed, (index >> 32) << 8 | SEARCH_DRAW_SCRAMBLE, dim, draw);
    return draw[0];
}

static double scrambled_fraction(uint32_t bits, uint32_t scrambling)
{
    return ((double)reverse_bits(laine_karras(reverse_bits(bits), scrambling)) + 0.5) * 0x1p-32;
}

double sobol_point(uint64_t seed, uint64_t index, unsigned dim)
{
    return scrambled_fraction(sobol_bits((uint32_t)index, dim), scrambling_seed(seed, index, dim));
}

/* The bits of a run of indices that differ in the lowest RUN_BITS bits alone: index ^ base. */
#define RUN_BITS 8
#define RUN (1 << RUN_BITS)

/* ret[i]: the directions of the bits of i, reversed, combined. */
static void combine_low(const uint32_t v[BITS], uint32_t ret[RUN])
{
    ret[0] = 0;
    for (uint32_t i = 1; i < RUN; i++)
        ret[i] = ret[i & (i - 1)] ^ reverse_bits(v[__builtin_ctz(i)]);
}

CPU_CLONES static void scramble_run(const uint32_t *restrict low, uint32_t high, uint32_t seed,
                                    size_t n, uint32_t *restrict ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = reverse_bits(laine_karras(low[i] ^ high, seed));
}

void sobol_column(uint64_t seed, uint64_t first, size_t n, unsigned dim, double *ret, size_t stride)
{
    uint32_t v[BITS], low[RUN], run[RUN];
    set_directions(dim, v);
    combine_low(v, low);
    for (size_t k = 0, more; k < n; k += more) {
        uint64_t index = first + k;
        size_t at = index % RUN;
        more = n - k < RUN - at ? n - k : RUN - at;
        uint32_t high = reverse_bits(combine_directions(v, (uint32_t)(index - at)));
        scramble_run(low + at, high, scrambling_seed(seed, index, dim), more, run);
        for (size_t i = 0; i < more; i++)
            ret[(k + i) * stride] = ((double)run[i] + 0.5) * 0x1p-32;
    }
}
