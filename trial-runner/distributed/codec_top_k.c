/* top_k: the values that are largest by magnitude, and their places.
 *
 * Aji and Heafield 2017; Lin et al. 2018. In a block of n values the k = ceil(fraction n) largest
 * are sent exactly; the others wait in the residual until they have grown. Among equal magnitudes
 * the earlier values are sent. A NaN is larger than all numbers, so it is sent.
 *
 * The threshold is found by counting: magnitudes order like their bits, so a histogram over the
 * upper 11 bits finds the bin of the k-th largest value, and two more, over the few values in that
 * bin, its other 20 bits. That is exact and never slow.
 *
 * A block: k uint16 places, ascending, then k float32 values. Blocks have fewer than 65536 values
 * so that a place needs two bytes. */
#include "trial-runner/distributed/gradient_codec_priv.h"

#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"

#define BINS 2048
#define GROUP 32 /* values */

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

CPU_INLINE uint32_t magnitude(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u & 0x7fffffff;
}

/* The bin of the k-th largest, counted from the highest bin down; *k becomes its rank in the
 * bin. */
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

/* How many magnitudes have each value of their upper 11 bits. Neighbouring values are often in the
 * same bin: four tables, so that an addition need not wait for the one before it. */
static void count_upper(const float *v, size_t n, uint32_t count[BINS])
{
    uint32_t more[3][BINS] = {{0}};
    size_t whole = n / 4 * 4;
    memset(count, 0, BINS * sizeof *count);
    for (size_t i = 0; i < whole; i += 4) {
        count[magnitude(v[i]) >> 20]++;
        more[0][magnitude(v[i + 1]) >> 20]++;
        more[1][magnitude(v[i + 2]) >> 20]++;
        more[2][magnitude(v[i + 3]) >> 20]++;
    }
    for (size_t i = whole; i < n; i++)
        count[magnitude(v[i]) >> 20]++;
    for (size_t i = 0; i < BINS; i++)
        count[i] += more[0][i] + more[1][i] + more[2][i];
}

/* Among the m picks whose magnitudes begin with `upper` (their bits from shift + bits on), how many
 * have each value of the next lower `bits` bits. */
static void count_lower(const float *v, const uint32_t *picks, size_t m, uint32_t upper,
                        unsigned shift, unsigned bits, uint32_t count[BINS])
{
    memset(count, 0, BINS * sizeof *count);
    for (size_t i = 0; i < m; i++) {
        uint32_t mag = magnitude(v[picks[i]]);
        if (mag >> (shift + bits) == upper)
            count[mag >> shift & ((1U << bits) - 1)]++;
    }
}

/* The places of the values with at least this magnitude. Most groups have none: that is found by
 * vectors. */
CPU_CLONES static size_t pick(const float *v, size_t n, uint32_t least, uint32_t *picks)
{
    size_t m = 0, whole = n / GROUP * GROUP;
    for (size_t i = 0; i < whole; i += GROUP) {
        uint32_t any = 0;
        for (size_t k = 0; k < GROUP; k++)
            any |= magnitude(v[i + k]) >= least;
        for (size_t k = 0; any && k < GROUP; k++) {
            picks[m] = (uint32_t)(i + k);
            m += magnitude(v[i + k]) >= least;
        }
    }
    for (size_t i = whole; i < n; i++) {
        picks[m] = (uint32_t)i;
        m += magnitude(v[i]) >= least;
    }
    return m;
}

/* The k-th largest magnitude. picks: the *ret_m places of all values that are as large, and of some
 * others. *ret_ties: how many values of just this magnitude are sent. */
static uint32_t threshold(const float *v, size_t n, size_t k, uint32_t *picks, size_t *ret_m,
                          size_t *ret_ties)
{
    uint32_t count[BINS];
    count_upper(v, n, count);
    uint32_t upper = bin_of(count, BINS, &k);
    size_t m = pick(v, n, upper << 20, picks);
    count_lower(v, picks, m, upper, 9, 11, count);
    upper = upper << 11 | bin_of(count, BINS, &k);
    count_lower(v, picks, m, upper, 0, 9, count);
    upper = upper << 9 | bin_of(count, 512, &k);
    *ret_m = m;
    *ret_ties = k;
    return upper;
}

static void top_k_encode(struct codec *c, const float *v, size_t n, uint8_t *out, float *after)
{
    size_t k = count_sent(c, n), m, ties, sent = 0;
    uint32_t least = threshold(v, n, k, c->picks, &m, &ties);
    uint8_t *values = out + k * sizeof(uint16_t);
    if (after)
        memcpy(after, v, n * sizeof *v);
    for (size_t i = 0; i < m && sent < k; i++) {
        uint16_t place = (uint16_t)c->picks[i];
        uint32_t mag = magnitude(v[place]);
        if (mag < least || (mag == least && ties == 0))
            continue;
        ties -= mag == least;
        memcpy(out + sent * sizeof place, &place, sizeof place);
        memcpy(values + sent * sizeof *v, &v[place], sizeof *v);
        sent++;
        if (after)
            after[place] = 0;
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
