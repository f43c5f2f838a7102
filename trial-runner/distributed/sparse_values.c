/* One pass over the values finds gaps of zeros that are longer than the head of another run. What
 * came from another rank is measured before it is read: then its numbers are known to fit. */
#include "trial-runner/distributed/sparse_values.h"

#include <string.h>

#define MOST_HEAD 20 /* two numbers of 64 bits */

/* A run of one value leaves out SPARSE_GAP or more before it, so heads are no longer than what they
 * save, but for the first and the last one. */
size_t sparse_most(size_t n)
{
    return n * sizeof(float) + n / (SPARSE_GAP + 1) * 2 + 4 * MOST_HEAD;
}

static uint8_t *put_number(uint8_t *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *out++ = (uint8_t)(v | 0x80);
    *out++ = (uint8_t)v;
    return out;
}

/* NULL: there is none. */
static const uint8_t *get_number(const uint8_t *in, const uint8_t *end, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; in < end && shift < 63; shift += 7) {
        uint8_t b = *in++;
        v |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) {
            *ret = v;
            return in;
        }
    }
    return NULL;
}

static bool is_left_out(const float *x)
{
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits == 0;
}

static size_t zeros_from(const float *x, size_t at, size_t n)
{
    size_t end = at;
    while (end < n && is_left_out(x + end))
        end++;
    return end - at;
}

/* Where the run ends that begins at `at`: at SPARSE_GAP zeros, or at the end. */
static size_t run_end(const float *x, size_t at, size_t n)
{
    size_t end = at;
    while (end < n) {
        size_t zeros = zeros_from(x, end, n);
        if (zeros >= SPARSE_GAP || end + zeros == n)
            break;
        end += zeros + 1;
    }
    return end;
}

size_t sparse_encode(const float *x, size_t n, uint8_t *out)
{
    uint8_t *to = out;
    size_t at = 0;
    for (;;) {
        size_t zeros = zeros_from(x, at, n), first = at + zeros, end = run_end(x, first, n);
        to = put_number(to, zeros);
        to = put_number(to, end - first);
        memcpy(to, x + first, (end - first) * sizeof *x);
        to += (end - first) * sizeof *x;
        if (end == first)
            return (size_t)(to - out);
        at = end;
    }
}

bool sparse_measure(const uint8_t *in, size_t left, size_t n, size_t *ret_bytes)
{
    const uint8_t *at = in, *end = in + left;
    uint64_t zeros = 0, count = 0;
    size_t seen = 0;
    do {
        if (!(at = get_number(at, end, &zeros)) || !(at = get_number(at, end, &count)) ||
            zeros > n - seen || count > n - seen - zeros ||
            count > (size_t)(end - at) / sizeof(float))
            return false;
        seen += zeros + count;
        at += count * sizeof(float);
    } while (count > 0);
    *ret_bytes = (size_t)(at - in);
    return seen == n;
}

void sparse_decode(const uint8_t *in, size_t n, float *to)
{
    const uint8_t *end = in + sparse_most(n);
    uint64_t zeros = 0, count = 0;
    do {
        if (!(in = get_number(in, end, &zeros)) || !(in = get_number(in, end, &count)))
            return; /* never: sparse_measure() has seen it whole */
        memset(to, 0, zeros * sizeof *to);
        memcpy(to + zeros, in, count * sizeof *to);
        to += zeros + count;
        in += count * sizeof *to;
    } while (count > 0);
}
