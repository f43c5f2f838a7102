#include "search/sampling/sobol.h"

#include <assert.h>

#include "base/rng.h"
#include "search/problem/draw.h"
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

static uint32_t reverse_bits(uint32_t x)
{
    x = __builtin_bswap32(x);
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    return (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
}

/* Each step changes only bits above a given bit. On reversed bits this is a nested permutation of
 * the unit interval's halves, quarters, … (S. Laine, T. Karras, EGSR 2011; constants by N. Vegdahl,
 * 2021). */
static uint32_t laine_karras(uint32_t x, uint32_t seed)
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

void sobol_column(uint64_t seed, uint64_t first, size_t n, unsigned dim, double *ret, size_t stride)
{
    uint32_t v[BITS], under = 0;
    set_directions(dim, v);
    for (size_t k = 0; k < n; k++) {
        uint64_t index = first + k;
        if (k == 0 || (uint32_t)index == 0)
            under = scrambling_seed(seed, index, dim);
        ret[k * stride] = scrambled_fraction(combine_directions(v, (uint32_t)index), under);
    }
}
