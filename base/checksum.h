/* A checksum that is as fast as memory: for bytes of which every one is summed on its way, where
 * CRC-32C would cost as much as the transport. It finds damage, not forgery.
 *
 * Eight lanes of 128 bits take a block of 16 bytes in turn: lane = round(lane) ^ block, where the
 * round is that of AES (FIPS 197), which processors have as an instruction. It is a bijection, so a
 * change within one block always changes the 1,024 bits of state, and blocks that moved do too.
 * The state and the length are then mixed to 32 bits, so a change is not seen with a chance of
 * 2^-32. */
#ifndef ASSAY_BASE_CHECKSUM_H
#define ASSAY_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Equal bytes have equal checksums on every machine. Uses the instruction for a round of AES where
 * the processor has it, as all server processors since 2012 do. */
uint32_t checksum32(const void *bytes, size_t len);

/* The same in plain C, two hundred times slower: the reference, on any processor. */
uint32_t checksum32_plain(const void *bytes, size_t len);

#endif
