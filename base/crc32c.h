/* CRC-32C (Castagnoli's polynomial 0x1EDC6F41, reflected; RFC 3720, B.4): finds damage, not
 * forgery. It uses the instruction of SSE 4.2 where the processor has it, else tables. */
#ifndef ASSAY_BASE_CRC32C_H
#define ASSAY_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continue a checksum: `before` is that of the bytes so far (0 for none); returns that of the bytes
 * so far followed by these. */
uint32_t crc32c(uint32_t before, const void *bytes, size_t len);

/* The same with tables: the reference, on any processor. */
uint32_t crc32c_plain(uint32_t before, const void *bytes, size_t len);

#endif
