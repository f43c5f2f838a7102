#include "trial-runner/distributed/significant.h"

#include <math.h>
#include <string.h>

static size_t places_of(size_t count, size_t n)
{
    return count == 0 || count == n ? 0 : (n + 7) / 8;
}

size_t significant_most(size_t n)
{
    return sizeof(uint32_t) + (n + 7) / 8 + n * sizeof(float);
}

/* One that is not a number matters: then all see that the training has diverged. */
static bool matters(float value, const float *limits, size_t n_limits, size_t i)
{
    if (i >= n_limits)
        return true;
    return value != 0 && !(limits && fabsf(value) < limits[i]);
}

size_t significant_encode(const float *x, const float *before, float *after, const float *limits,
                          size_t n_limits, size_t n, uint8_t *out)
{
    size_t places = (n + 7) / 8;
    uint8_t *bits = out + sizeof(uint32_t), *values = bits + places;
    uint32_t count = 0;
    memset(bits, 0, places);
    for (size_t i = 0; i < n; i++) {
        float value = before && i < n_limits ? x[i] + before[i] : x[i];
        bool there = matters(value, limits, n_limits, i);
        if (after && i < n_limits)
            after[i] = there ? 0 : value;
        if (!there)
            continue;
        bits[i / 8] |= (uint8_t)(1U << i % 8);
        memcpy(values + count++ * sizeof value, &value, sizeof value);
    }
    memcpy(out, &count, sizeof count);
    if (places_of(count, n) == 0)
        memmove(bits, values, count * sizeof(float));
    return sizeof count + places_of(count, n) + count * sizeof(float);
}

bool significant_measure(const uint8_t *in, size_t left, size_t n, size_t *ret_bytes)
{
    uint32_t count, found = 0;
    if (left < sizeof count)
        return false;
    memcpy(&count, in, sizeof count);
    if (count > n)
        return false;
    size_t places = places_of(count, n), bytes = sizeof count + places + count * sizeof(float);
    if (bytes > left)
        return false;
    for (size_t i = 0; places > 0 && i < places * 8; i++) {
        uint32_t bit = in[sizeof count + i / 8] >> i % 8 & 1;
        if (bit && i >= n)
            return false;
        found += bit;
    }
    *ret_bytes = bytes;
    return places == 0 || found == count;
}

void significant_add(const uint8_t *in, size_t n, float *sum)
{
    uint32_t count;
    memcpy(&count, in, sizeof count);
    size_t places = places_of(count, n);
    const uint8_t *bits = in + sizeof count, *values = bits + places;
    for (size_t i = 0; count > 0 && i < n; i++) {
        float value;
        if (places > 0 && !(bits[i / 8] >> i % 8 & 1))
            continue;
        memcpy(&value, values, sizeof value);
        values += sizeof value;
        sum[i] += value;
    }
}
