/* FNV-1a of 64 bits (G. Fowler, L. C. Noll, K.-P. Vo, "The FNV Non-Cryptographic Hash Algorithm"):
 * for tables in memory, and for formats that name it. Who chooses the bytes can choose the hash. */
#ifndef ASSAY_BASE_FNV_H
#define ASSAY_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV64_BASIS UINT64_C(14695981039346656037) /* the hash of no bytes */
#define FNV64_PRIME UINT64_C(1099511628211)

/* Go on from `h`, the hash of what was before. */
static inline uint64_t fnv64(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *s = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ s[i]) * FNV64_PRIME;
    return h;
}

#endif
