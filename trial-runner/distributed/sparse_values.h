/* Messages that leave out zeros: with `server: {rows: sparse}` (DMTK Multiverso: only the rows of
 * tables that a batch has touched travel).
 *
 * A message about n values has runs of values, in their order: how many values are left out before
 * the run, how many it has, each in as few bytes of 7 bits as it needs, and the values. Zeros of
 * less than SPARSE_GAP values stay in their run. A run of none, with the values that are left out
 * behind the last run, is the end. So a row of a table that was touched costs its values and three
 * or four bytes, whatever the size of the table. Nothing is lost: only +0 is left out. Pure. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_SPARSE_VALUES_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_SPARSE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPARSE_GAP 3 /* as long as the head of another run */

/* The longest message about n values. */
size_t sparse_most(size_t n);

/* Encode x [n] into `out`, of sparse_most(n) bytes. Returns the length of the message. */
size_t sparse_encode(const float *x, size_t n, uint8_t *out);

/* Is there a message about n values at the beginning of these `left` bytes? Then *ret_bytes is its
 * length. */
bool sparse_measure(const uint8_t *in, size_t left, size_t n, size_t *ret_bytes);

/* to [n] = the message, which was measured. */
void sparse_decode(const uint8_t *in, size_t n, float *to);

#endif
