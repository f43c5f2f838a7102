/* CRC-32C (Castagnoli's polynomial 0x1EDC6F41, reflected; RFC 3720, B.4): finds damage, not
 * forgery. The instruction of SSE 4.2 where the processor has it, tables else. */
#ifndef ASSAY_BASE_CRC32C_H
#define ASSAY_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what `before` is the checksum of (0: of nothing) and then these bytes. */
uint32_t crc32c(uint32_t before, const void *bytes, size_t len);

/* The same by tables: the reference, on any processor. */
uint32_t crc32c_plain(uint32_t before, const void *bytes, size_t len);

#endif
