/* A buffer that drops its oldest bytes. Text is repaired when it is read and not when it arrives,
 * because a character may come in two pieces; a bad byte becomes U+FFFD, which is longer, so the
 * text is cut to the limit once more. */
#include "trial-runner/collect/tail.h"

#include <string.h>

void tail_add(struct tail *t, const char *bytes, size_t len)
{
    if (len == 0)
        return;
    t->version++;
    if (len > TAIL_BYTES) {
        bytes += len - TAIL_BYTES;
        len = TAIL_BYTES;
        t->truncated = true;
    }
    if (t->len + len > TAIL_BYTES) { /* drop the oldest */
        size_t drop = t->len + len - TAIL_BYTES;
        t->start = (t->start + drop) % TAIL_BYTES;
        t->len -= drop;
        t->truncated = true;
    }
    size_t at = (t->start + t->len) % TAIL_BYTES;
    size_t first = len < TAIL_BYTES - at ? len : TAIL_BYTES - at;
    memcpy(t->ring + at, bytes, first);
    memcpy(t->ring, bytes + first, len - first);
    t->len += len;
}

/* Returns the length of the UTF-8 sequence at s, where n bytes are readable, or 0 if it is not
 * valid. */
static size_t utf8_sequence_length(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];
    size_t want = c < 0x80                ? 1
                  : c >= 0xC2 && c < 0xE0 ? 2
                  : c >= 0xE0 && c < 0xF0 ? 3
                  : c >= 0xF0 && c < 0xF5 ? 4
                                          : 0;
    return c && want && want <= n && as_utf8_valid(s, want) ? want : 0;
}

bool tail_text(const struct tail *t, struct str *b)
{
    AS_AUTO(str_done) struct str raw = {0}, text = {0};
    size_t first = t->len < TAIL_BYTES - t->start ? t->len : TAIL_BYTES - t->start;
    str_add(&raw, t->ring + t->start, first);
    str_add(&raw, t->ring, t->len - first);
    for (size_t i = 0; !raw.failed && i < raw.len;) {
        size_t n = utf8_sequence_length(raw.s + i, raw.len - i);
        if (n)
            str_add(&text, raw.s + i, n);
        else
            str_puts(&text, "\xEF\xBF\xBD");
        i += n ? n : 1;
    }
    if (raw.failed || text.failed) {
        b->failed = true;
        return t->truncated;
    }
    size_t from =
        text.len > TAIL_BYTES ? text.len - TAIL_BYTES : 0; /* U+FFFD is longer than a bad byte */
    bool dropped = t->truncated || from > 0;
    while (from < text.len && ((unsigned char)text.s[from] & 0xC0) == 0x80)
        from++;
    const char *nl = dropped && text.len ? memchr(text.s + from, '\n', text.len - from) : NULL;
    if (nl && nl + 1 < text.s + text.len)
        from = (size_t)(nl + 1 - text.s);
    if (text.len)
        str_add(b, text.s + from, text.len - from);
    return dropped;
}

/* A line of at most max bytes, not cut inside a character, with spaces for control characters. */
static void add_line(const char *line, size_t n, size_t max, struct str *b)
{
    if (n > max) {
        n = max;
        while (n > 0 && ((unsigned char)line[n] & 0xC0) == 0x80)
            n--;
    }
    for (size_t i = 0; i < n; i++)
        str_putc(b, (unsigned char)line[i] < ' ' || line[i] == 0x7f ? ' ' : line[i]);
}

void tail_last_lines(const struct tail *t, size_t lines, size_t max, struct str *b)
{
    struct {
        const char *at;
        size_t len;
    } found[TAIL_LINES_MAX];
    AS_AUTO(str_done) struct str text = {0};
    size_t n = 0, total = 0;
    tail_text(t, &text);
    char *end = text.s + text.len;
    while (!text.failed && text.len && n < lines && n < TAIL_LINES_MAX) {
        while (end > text.s && (unsigned char)end[-1] <= ' ')
            end--;
        if (end == text.s)
            break;
        char *before = memrchr(text.s, '\n', (size_t)(end - text.s));
        const char *line = before ? before + 1 : text.s;
        total += (size_t)(end - line) + (n ? strlen(TAIL_BETWEEN) : 0);
        if (n > 0 && total > max)
            break;
        found[n].at = line;
        found[n++].len = (size_t)(end - line);
        end = before ? before : text.s;
    }
    while (n-- > 0) {
        add_line(found[n].at, found[n].len, max, b);
        str_puts(b, n ? TAIL_BETWEEN : "");
    }
}

void tail_last_line(const struct tail *t, size_t max, struct str *b)
{
    tail_last_lines(t, 1, max, b);
}
