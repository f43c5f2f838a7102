/* Two versions of one sum: tables of eight bytes at a time (Kounavis and Berry 2005), and the
 * instruction of SSE 4.2 on three streams side by side, which reads 15 GB/s in the cache. Tables
 * are filled once, when first needed, so that a program that never checks a file pays nothing. */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

#define REFLECTED 0x82f63b78U

/* table[k][b]: what byte b contributes when k more bytes follow (Kounavis and Berry 2005). */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int i = 0; i < 8; i++)
            c = (c >> 1) ^ (c & 1 ? REFLECTED : 0);
        table[0][b] = c;
    }
    for (uint32_t b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++)
            table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
}

uint32_t crc32c_plain(uint32_t before, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint32_t c = ~before;
    (void)pthread_once(&table_once, fill_table);
    for (; len >= 8; p += 8, len -= 8) {
        uint32_t lo = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                           (uint32_t)p[3] << 24);
        c = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^ table[5][lo >> 16 & 0xff] ^
            table[4][lo >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; len > 0; p++, len--)
        c = (c >> 8) ^ table[0][(c ^ *p) & 0xff];
    return ~c;
}

#ifdef __x86_64__

#define SSE42 __attribute__((target("sse4.2")))
#define BLOCK ((size_t)1024) /* bytes of each of three streams */

/* The instruction takes three cycles, and a new one can begin in each cycle. So three streams run
 * side by side and are joined. Joining needs the state that a stream has after BLOCK more zero
 * bytes. That state is linear in the state before: it is the XOR of what each of its four bytes
 * becomes, zeros[k][byte]. */
static uint32_t zeros[4][256];
static pthread_once_t zeros_once = PTHREAD_ONCE_INIT;

SSE42 static void fill_zeros(void)
{
    for (int k = 0; k < 4; k++)
        for (uint32_t b = 0; b < 256; b++) {
            uint64_t c = b << 8 * k;
            for (size_t i = 0; i < BLOCK; i += 8)
                c = __builtin_ia32_crc32di(c, 0);
            zeros[k][b] = (uint32_t)c;
        }
}

static uint32_t state_after_zeros(uint64_t c)
{
    return zeros[0][c & 0xff] ^ zeros[1][c >> 8 & 0xff] ^ zeros[2][c >> 16 & 0xff] ^
           zeros[3][c >> 24 & 0xff];
}

static uint64_t word_at(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

SSE42 static uint32_t crc_by_instruction(uint32_t before, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t c = ~before;
    if (len >= 3 * BLOCK)
        (void)pthread_once(&zeros_once, fill_zeros);
    for (; len >= 3 * BLOCK; p += 3 * BLOCK, len -= 3 * BLOCK) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < BLOCK; i += 8) {
            c = __builtin_ia32_crc32di(c, word_at(p + i));
            second = __builtin_ia32_crc32di(second, word_at(p + BLOCK + i));
            third = __builtin_ia32_crc32di(third, word_at(p + 2 * BLOCK + i));
        }
        c = state_after_zeros(state_after_zeros(c) ^ second) ^ third;
    }
    for (; len >= 8; p += 8, len -= 8)
        c = __builtin_ia32_crc32di(c, word_at(p));
    for (; len > 0; p++, len--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p);
    return ~(uint32_t)c;
}

uint32_t crc32c(uint32_t before, const void *bytes, size_t len)
{
    return __builtin_cpu_supports("sse4.2") ? crc_by_instruction(before, bytes, len)
                                            : crc32c_plain(before, bytes, len);
}

#else

uint32_t crc32c(uint32_t before, const void *bytes, size_t len)
{
    return crc32c_plain(before, bytes, len);
}

#endif
