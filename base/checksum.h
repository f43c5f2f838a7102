/* A checksum that is as fast as memory: for bytes of which every one is summed on its way, where
 * CRC-32C would cost as much as the transport. It finds damage, not forgery.
 *
 * It is the accumulation of XXH3 (Collet 2019, "long" inputs) with keys that count up: in each
 * stripe of 64 bytes, lane i gets the product of the two halves of word i under its key, and its
 * neighbour gets the word itself. So a change of one word always changes the 512 bits of state; the
 * state is then mixed to 32 bits, so a change that is not seen has a chance of 2^-32. */
#ifndef ASSAY_BASE_CHECKSUM_H
#define ASSAY_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The words are little endian: equal bytes have equal checksums on every machine. Uses AVX2 where
 * the processor has it. */
uint32_t checksum32(const void *bytes, size_t len);

/* The same in plain C: the reference, on any processor. */
uint32_t checksum32_plain(const void *bytes, size_t len);

#endif
