#include "trial-runner/reports/near_lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define OWN_LINE "[assay-runner]"
#define TEXT_MIN 3

static char folded(char c)
{
    return strchr("_-./ ", c) && c ? ' ' : (char)tolower((unsigned char)c);
}

static bool has_name(const char *line, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; n && i + n <= len; i++) {
        size_t k = 0;
        while (k < n && folded(line[i + k]) == folded(name[k]))
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static bool has_digit(const char *line, size_t len)
{
    while (len--)
        if (isdigit((unsigned char)*line++))
            return true;
    return false;
}

static bool is_near(const char *line, size_t len, const char *metric, const char *const *texts,
                    size_t n, bool digits)
{
    if (as_starts_with(line, OWN_LINE) || (digits && !has_digit(line, len)))
        return false;
    if (has_name(line, len, metric))
        return true;
    for (size_t i = 0; digits && i < n; i++)
        if (strlen(texts[i]) >= TEXT_MIN && memmem(line, len, texts[i], strlen(texts[i])))
            return true;
    return false;
}

static void add_line(const char *line, size_t len, struct str *b)
{
    size_t n = len < NEAR_MAX_BYTES ? len : NEAR_MAX_BYTES;
    while (n && n < len && ((unsigned char)line[n] & 0xC0) == 0x80)
        n--;
    str_puts(b, b->len ? ", '" : "'");
    for (size_t i = 0; i < n; i++)
        str_putc(b, (unsigned char)line[i] < ' ' || line[i] == 0x7f ? ' ' : line[i]);
    str_puts(b, n < len ? "…'" : "'");
}

static void add_near(const char *log, const char *metric, const char *const *texts, size_t n,
                     bool digits, struct str *b)
{
    struct {
        const char *at;
        size_t len;
    } last[NEAR_MAX_LINES];
    size_t found = 0;
    while (*log) {
        log += strspn(log, " \t\r\n");
        size_t len = strcspn(log, "\r\n");
        if (len && is_near(log, len, metric, texts, n, digits)) {
            last[found % NEAR_MAX_LINES].at = log;
            last[found++ % NEAR_MAX_LINES].len = len;
        }
        log += len;
    }
    for (size_t i = found < NEAR_MAX_LINES ? 0 : found - NEAR_MAX_LINES; i < found; i++)
        add_line(last[i % NEAR_MAX_LINES].at, last[i % NEAR_MAX_LINES].len, b);
}

void near_lines(const char *log, const char *metric, const char *const *texts, size_t n,
                struct str *b)
{
    size_t before = b->len;
    add_near(log, metric, texts, n, true, b);
    if (b->len == before)
        add_near(log, metric, texts, n, false, b);
}
