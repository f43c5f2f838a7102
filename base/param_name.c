#include "base/param_name.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#define FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define BARE FIRST "0123456789.-/"
#define ALL BARE "@()[] "

/* Characters beyond ASCII that cannot be seen, or look like a blank: controls, blanks, joiners,
 * marks of direction, variation selectors, noncharacters, tags. */
static const struct {
    uint32_t first, last;
} unseen[] = {{0x80, 0xa0},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},
              {0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
              {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800},
              {0x3000, 0x3000}, {0x3164, 0x3164}, {0xfdd0, 0xfdef}, {0xfe00, 0xfe0f},
              {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xffff}, {0xe0000, 0x10ffff}};

static bool is_beyond_ascii(char c)
{
    return (unsigned char)c >= 0x80;
}

/* The code point of valid UTF-8 at s, and its bytes. */
static uint32_t read_character(const char *s, size_t *ret_len)
{
    unsigned char c = (unsigned char)*s;
    size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    uint32_t v = len == 1 ? c : c & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        v = v << 6 | ((unsigned char)s[i] & 0x3f);
    *ret_len = len;
    return v;
}

static bool is_seen(uint32_t character)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(unseen); i++)
        if (character >= unseen[i].first && character <= unseen[i].last)
            return false;
    return true;
}

size_t param_name_span(const char *s)
{
    size_t n = 0;
    while (s[n] && (is_beyond_ascii(s[n]) || strchr(ALL, s[n])))
        n++;
    return n;
}

bool param_name_valid(const char *name)
{
    size_t n = strlen(name), len;
    if (n == 0 || n > PARAM_NAME_BYTES || param_name_span(name) != n || !as_utf8_valid(name, n) ||
        as_utf8_length(name) > PARAM_NAME_MAX)
        return false;
    if ((!is_beyond_ascii(*name) && !strchr(FIRST, *name)) || name[n - 1] == ' ' ||
        strstr(name, "  "))
        return false;
    for (size_t i = 0; i < n; i += len)
        if (!is_seen(read_character(name + i, &len)))
            return false;
    return true;
}

bool param_name_is_bare(const char *name)
{
    for (; *name; name++)
        if (!is_beyond_ascii(*name) && !strchr(BARE, *name))
            return false;
    return true;
}

void param_name_variable(const char *name, struct str *ret)
{
    for (const char *c = name; *c; c++)
        if (is_beyond_ascii(*c))
            return;
    str_puts(ret, PARAM_VARIABLE_PREFIX);
    for (; *name; name++)
        str_putc(ret, strchr(FIRST "0123456789", *name) ? *name : '_');
}
