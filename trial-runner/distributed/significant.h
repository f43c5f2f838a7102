/* Messages that have only the values that matter: with `server.significance` (Gaia: Hsieh et al.,
 * NSDI 2017).
 *
 * A value is significant if it is not 0 and its magnitude is at least its limit. Values without a
 * limit always travel. What does not travel is added to the next message's values by who sends it.
 * A message about n values is
 *
 *   uint32_t count           of the values that it has; native byte order, as all between ranks
 *   uint8_t places[]         (n + 7) / 8: bit i says that value i is there; none if count is 0 or n
 *   float values[count]      in their order
 *
 * so its length is its own: 4 bytes if nothing matters, n / 8 more than the values else. Pure. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SIGNIFICANT_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SIGNIFICANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest message about n values. */
size_t significant_most(size_t n);

/* Encode x + before (NULL: x), n values, of which the first n_limits have limits; the others always
 * travel. limits NULL: all that is not 0 travels.
 *   after   [n_limits] = what does not travel, else 0; may be `before`; NULL: not kept
 *   out     of significant_most(n) bytes
 * Returns the length of the message. */
size_t significant_encode(const float *x, const float *before, float *after, const float *limits,
                          size_t n_limits, size_t n, uint8_t *out);

/* Is there a message about n values at the beginning of these `left` bytes? Then *ret_bytes is its
 * length. False: no; nothing else looks at what came from another rank. */
bool significant_measure(const uint8_t *in, size_t left, size_t n, size_t *ret_bytes);

/* sum [n] += the message, which was measured. */
void significant_add(const uint8_t *in, size_t n, float *sum);

#endif
