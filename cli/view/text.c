/* Names and output come from other users and from programs, so control characters, also those that
 * change the direction of text, are written as escapes before a terminal sees them. Width is
 * counted in columns (wcwidth) and not in bytes. Invalid UTF-8 is escaped byte by byte. */
#include "cli/view/text.h"

#include <stdint.h>
#include <string.h>
#include <wchar.h>

/* Decode one character of UTF-8. Returns its length; 0 at the end; 1 with *cp = -1 for a byte that
 * is not part of a valid character. Overlong forms and surrogates are invalid: they could hide a
 * control character from is_active(). */
static size_t decode_character(const char *s, size_t len, int32_t *cp)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (len == 0)
        return 0;
    unsigned char c = (unsigned char)s[0];
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : (c & 0xf0) == 0xe0    ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
    if (n == 1) {
        *cp = c;
        return 1;
    }
    uint32_t v = n ? c & (0x7fU >> n) : 0;
    for (size_t i = 1; i < n; i++) {
        if (i >= len || ((unsigned char)s[i] & 0xc0) != 0x80)
            n = 0;
        else
            v = v << 6 | ((unsigned char)s[i] & 0x3f);
    }
    if (n == 0 || v < lowest[n] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000)) {
        *cp = -1;
        return 1;
    }
    *cp = (int32_t)v;
    return n;
}

/* Whether the character can move the cursor, change colours or change the direction of text. */
static bool is_active(int32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x202a && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069) || cp == 0x2028 || cp == 0x2029;
}

static void escape_one(struct str *b, int32_t cp, unsigned char byte)
{
    if (cp == '\n')
        str_puts(b, "\\n");
    else if (cp == '\t')
        str_puts(b, "\\t");
    else if (cp == '\r')
        str_puts(b, "\\r");
    else if (cp >= 0x100)
        str_printf(b, "\\u{%x}", (unsigned)cp);
    else
        str_printf(b, "\\x%02x", cp < 0 ? byte : (unsigned)cp);
}

void text_escape(struct str *b, const char *s, size_t len, text_lines lines)
{
    int32_t cp;
    for (size_t i = 0, n; (n = decode_character(s + i, len - i, &cp)) > 0; i += n) {
        bool kept = lines == TEXT_KEEP_LINES && (cp == '\n' || cp == '\t');
        if (kept || (cp >= 0 && !is_active(cp)))
            str_add(b, s + i, n);
        else
            escape_one(b, cp, (unsigned char)s[i]);
    }
}

static size_t columns_of(int32_t cp)
{
    if (cp < 0x80)
        return 1;
    int w = wcwidth((wchar_t)cp);
    return w < 0 ? 1 : (size_t)w;
}

size_t text_width(const char *s)
{
    size_t width = 0, len = strlen(s);
    int32_t cp;
    for (size_t i = 0, n; (n = decode_character(s + i, len - i, &cp)) > 0; i += n)
        width += columns_of(cp);
    return width;
}

void text_cut(struct str *b, const char *s, size_t width, const char *ellipsis)
{
    size_t len = strlen(s), room = text_width(s) <= width ? width : width - text_width(ellipsis);
    if (width < text_width(ellipsis)) { /* no room for an ellipsis: cut hard */
        room = width;
        ellipsis = "";
    }
    size_t used = 0, i = 0, n;
    int32_t cp;
    while ((n = decode_character(s + i, len - i, &cp)) > 0 && used + columns_of(cp) <= room) {
        used += columns_of(cp);
        i += n;
    }
    str_add(b, s, i);
    if (i < len)
        str_puts(b, ellipsis);
}

void text_pad(struct str *b, const char *s, size_t width, bool to_right, const char *ellipsis)
{
    struct str cut = {0};
    text_cut(&cut, s, width, ellipsis);
    size_t w = text_width(str_cstr(&cut));
    for (size_t i = w; to_right && i < width; i++)
        str_putc(b, ' ');
    str_puts(b, str_cstr(&cut));
    for (size_t i = w; !to_right && i < width; i++)
        str_putc(b, ' ');
    b->failed = b->failed || cut.failed;
    str_done(&cut);
}
