/* top_k: the values that are largest by magnitude, and their places.
 *
 * Aji and Heafield 2017; Lin et al. 2018. Of a block of n values the k = ceil(fraction n) largest
 * are sent exactly; the others wait in the residual until they have grown. Of equal magnitudes the
 * earlier values are sent. A NaN is larger than all numbers, so it is sent.
 *
 * The threshold is found by counting: magnitudes order like their bits, so a histogram over the
 * upper 11 bits finds the bin of the k-th largest value, and two more, over the few values in that
 * bin, its other 20 bits. That is exact, and its order of work does not depend on the values' order.
 *
 * A block: k uint16 places, ascending, then k float32 values. Blocks have fewer than 65536 values
 * so that a place needs two bytes. */
#include "trial-runner/distributed/codec_priv.h"

#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"

#define BINS 2048

static size_t count_sent(const struct codec *c, size_t n)
{
    /* 0.07 * 100 is 7.000000000000001 */
    double k = ceil(c->fraction * (double)n * (1 - 1e-12));
    return k < 1 ? 1 : k > (double)n ? n : (size_t)k;
}

static size_t top_k_bytes(const struct codec *c, size_t n)
{
    return count_sent(c, n) * (sizeof(uint16_t) + sizeof(float));
}

static uint32_t magnitude(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u & 0x7fffffff;
}

/* The bin of the k-th largest, counted from the highest bin down; *k becomes its rank in the bin. */
static uint32_t bin_of(const uint32_t *count, size_t bins, size_t *k)
{
    size_t bin = bins;
    while (bin-- > 0) {
        if (*k <= count[bin])
            break;
        *k -= count[bin];
    }
    return (uint32_t)bin;
}

/* Keeps the m picks whose bits from `shift` on are `upper`; returns how many these are. */
static size_t keep_picks(uint32_t *picks, size_t m, unsigned shift, uint32_t upper)
{
    size_t kept = 0;
    for (size_t i = 0; i < m; i++)
        if (picks[i] >> shift == upper)
            picks[kept++] = picks[i];
    return kept;
}

/* The k-th largest magnitude. *ret_ties: how many values of just this magnitude are sent. */
static uint32_t threshold(struct codec *c, const float *v, size_t n, size_t k, size_t *ret_ties)
{
    uint32_t count[BINS] = {0};
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        count[magnitude(v[i]) >> 20]++;
    uint32_t upper = bin_of(count, BINS, &k);
    for (size_t i = 0; i < n; i++) {
        c->picks[m] = magnitude(v[i]);
        m += c->picks[m] >> 20 == upper;
    }
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < m; i++)
        count[c->picks[i] >> 9 & (BINS - 1)]++;
    upper = upper << 11 | bin_of(count, BINS, &k);
    m = keep_picks(c->picks, m, 9, upper);
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < m; i++)
        count[c->picks[i] & 511]++;
    upper = upper << 9 | bin_of(count, 512, &k);
    *ret_ties = k;
    return upper;
}

static void top_k_encode(struct codec *c, const float *v, size_t n, uint8_t *out, float *after)
{
    size_t k = count_sent(c, n), ties, sent = 0;
    uint32_t least = threshold(c, v, n, k, &ties);
    uint8_t *values = out + k * sizeof(uint16_t);
    if (after)
        memcpy(after, v, n * sizeof *v);
    for (size_t i = 0; i < n && sent < k; i++) {
        uint32_t mag = magnitude(v[i]);
        if (mag < least || (mag == least && ties == 0))
            continue;
        ties -= mag == least;
        uint16_t place = (uint16_t)i;
        memcpy(out + sent * sizeof place, &place, sizeof place);
        memcpy(values + sent * sizeof *v, &v[i], sizeof *v);
        sent++;
        if (after)
            after[i] = 0;
    }
}

static uint16_t place_at(const uint8_t *in, size_t i)
{
    uint16_t place;
    memcpy(&place, in + i * sizeof place, sizeof place);
    return place;
}

static const char *top_k_check(const struct codec *c, const uint8_t *in, size_t n)
{
    size_t k = count_sent(c, n);
    for (size_t i = 0; i < k; i++) {
        if (place_at(in, i) >= n)
            return "a place is behind the last value";
        if (i && place_at(in, i) <= place_at(in, i - 1))
            return "its places are not in order";
    }
    return NULL;
}

static void top_k_decode_add(const struct codec *c, const uint8_t *in, size_t n, float *sum)
{
    size_t k = count_sent(c, n);
    const uint8_t *values = in + k * sizeof(uint16_t);
    for (size_t i = 0; i < k; i++) {
        float value;
        memcpy(&value, values + i * sizeof value, sizeof value);
        sum[place_at(in, i)] += value;
    }
}

const struct block_ops block_top_k = {
    .name = "top_k",
    .rule = {.at_least = 32768},
    .bytes = top_k_bytes,
    .encode = top_k_encode,
    .check = top_k_check,
    .decode_add = top_k_decode_add,
};
