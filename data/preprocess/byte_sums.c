/* Exact sums of pixels that are bytes. Integer sums are exact in any order, so the caller sums all
 * rows in the order of memory and then subtracts the held-out rows, which are few and scattered. */
#if !defined(__clang__)
#pragma GCC optimize("O3") /* the loop runs over 47 MB and must use vector instructions */
#endif

#include "data/preprocess/byte_sums.h"

#include "base/cpu_clones.h"
#include "base/mem.h"

#define LEAST_LANES ((size_t)192)
#define MOST_ADDED ((size_t)65536) /* the sum of so many squares of bytes is below 2^32 */

/* For n rows of `lanes` bytes: sum[i] += v, squares[i] += v * v. Independent lanes give the
 * compiler vectors without a sum across a vector. */
CPU_CLONES static void sum_lanes(const unsigned char *restrict bytes, size_t n, size_t lanes,
                                 uint32_t *restrict sum, uint32_t *restrict squares)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < lanes; i++) {
            uint32_t v = bytes[r * lanes + i];
            sum[i] += v;
            squares[i] += v * v;
        }
}

static void add_lanes(size_t lanes, size_t channels, uint32_t *sum, uint32_t *squares,
                      struct byte_sums *sums)
{
    for (size_t i = 0; i < lanes; i++) {
        sums[i % channels].sum += sum[i];
        sums[i % channels].squares += squares[i];
        sum[i] = squares[i] = 0;
    }
}

as_status byte_sums_add(const unsigned char *bytes, size_t n, size_t channels,
                        struct byte_sums *sums, struct as_err *err)
{
    size_t lanes = (LEAST_LANES + channels - 1) / channels * channels;
    AS_AUTO(as_freep) uint32_t *work = as_calloc(2 * lanes, sizeof *work);
    if (!work)
        return as_fail(err, AS_E_NOMEM, "out of memory for sums of %zu channels", channels);
    while (n >= lanes) {
        size_t some = n / lanes < MOST_ADDED ? n / lanes : MOST_ADDED;
        sum_lanes(bytes, some, lanes, work, work + lanes);
        add_lanes(lanes, channels, work, work + lanes, sums);
        bytes += some * lanes;
        n -= some * lanes;
    }
    sum_lanes(bytes, 1, n, work, work + lanes);
    add_lanes(lanes, channels, work, work + lanes, sums);
    return AS_OK;
}
