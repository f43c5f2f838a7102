#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* The length of the UTF-8 sequence at s (1..4), or 0 when it is not valid. */
static size_t utf8_sequence_length(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return s[0] != 0;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* Are the eight bytes at s from 1 to 0x7f? Subtracting 1 from each sets the high bit of a zero. */
static bool is_plain_word(const unsigned char *s)
{
    uint64_t w;
    memcpy(&w, s, sizeof w);
    return (((w - UINT64_C(0x0101010101010101)) | w) & UINT64_C(0x8080808080808080)) == 0;
}

bool as_utf8_valid(const char *s, size_t len)
{
    const unsigned char *u = (const unsigned char *)s;
    for (size_t i = 0; i < len;) {
        if (len - i >= 8 && is_plain_word(u + i)) {
            i += 8;
            continue;
        }
        size_t n = utf8_sequence_length(u + i, len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

void as_utf8_repair(char *s)
{
    size_t left = strlen(s);
    while (left) {
        size_t n = utf8_sequence_length((const unsigned char *)s, left);
        if (n == 0) {
            *s = '?';
            n = 1;
        }
        s += n;
        left -= n;
    }
}

size_t as_utf8_length(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80; /* all but continuation bytes */
    return n;
}

size_t as_utf8_prefix(const char *s, size_t max)
{
    const char *p = s;
    for (size_t n = 0; *p; p++)
        if (((unsigned char)*p & 0xc0) != 0x80 && n++ == max)
            break;
    return (size_t)(p - s);
}
