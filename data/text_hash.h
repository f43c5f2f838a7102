/* A text as numbers: its words and pairs of neighbouring words, hashed into a fixed number of
 * buckets, with signs (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning",
 * 2009).
 *
 * A word is a longest run of ASCII letters and digits and of bytes from 128 on; ASCII letters count
 * as small. Its hash is 64-bit FNV-1a of its bytes (offset basis 14695981039346656037, prime
 * 1099511628211); that of a pair is over both words with one blank between. The hash is mixed by
 * the finaliser of MurmurHash3 (x ^= x >> 33, x *= 0xff51afd7ed558ccd, x ^= x >> 33, x *=
 * 0xc4ceb9fe1a85ec53, x ^= x >> 33). The bucket is x mod n; the term is -1 if the highest bit of x
 * is set, else +1. The sums of the buckets are divided by their Euclidean norm, so that a text of
 * any length is as long as a one-hot category. A text without words is all 0.
 *
 * Models depend on every step of it: it never changes. */
#ifndef ASSAY_DATA_TEXT_HASH_H
#define ASSAY_DATA_TEXT_HASH_H

#include <stddef.h>

/* Write the n numbers of a text. */
void text_hash(const char *s, size_t len, size_t n, float *ret);

#endif
