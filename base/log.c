/* A line is built in a buffer on the stack: no memory is allocated, so that a program that is out
 * of memory can still say so.
 *
 * The format is read here and not by one vsnprintf(), because quoting needs to know where a value
 * begins and ends: a value may come from outside, and must not look like further pairs or lines.
 * Each directive is formatted alone, and its text is escaped as it is appended. A line that is too
 * long ends inside its last value, with that value's closing quote. */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static const char *log_program = "assay";
static log_level log_lowest = LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_setup(const char *program, log_level lowest)
{
    log_program = program;
    log_lowest = lowest;
}

as_status log_level_parse(const char *s, log_level *ret, struct as_err *err)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(s, level_names[i]) == 0) {
            *ret = (log_level)i;
            return AS_OK;
        }
    }
    return as_fail(err, AS_E_INVAL, "log level: found '%.20s', expected debug, info, warn or error",
                   s);
}

#define LINE_MAX_BYTES 2048
#define VALUE_MAX 1536 /* bytes of one value before it is escaped */
#define TAIL 2         /* room for the closing quote and the new line */

struct line {
    char s[LINE_MAX_BYTES];
    size_t len;
    bool is_full;
};

/* One value while it is read from the format. */
struct value {
    char s[VALUE_MAX];
    size_t len;
    bool is_quoted; /* the format has quotes around it */
};

static void put(struct line *l, const char *bytes, size_t n)
{
    if (l->is_full || l->len + n > sizeof l->s - TAIL) {
        l->is_full = true;
        return;
    }
    memcpy(l->s + l->len, bytes, n);
    l->len += n;
}

static void put_escaped(struct line *l, char c)
{
    char text[8];
    int n = 0;
    if (c == '"' || c == '\\')
        n = snprintf(text, sizeof text, "\\%c", c);
    else if (c == '\n' || c == '\r' || c == '\t')
        n = snprintf(text, sizeof text, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if ((unsigned char)c < 0x20 || c == 0x7f)
        n = snprintf(text, sizeof text, "\\u%04x", (unsigned char)c);
    else
        n = snprintf(text, sizeof text, "%c", c);
    put(l, text, (size_t)n);
}

static bool needs_quotes(const struct value *v)
{
    for (size_t i = 0; i < v->len; i++)
        if ((unsigned char)v->s[i] <= ' ' || strchr("\"=\\\x7f", v->s[i]))
            return true;
    return v->is_quoted || v->len == 0;
}

static void put_value(struct line *l, const struct value *v)
{
    bool quotes = needs_quotes(v);
    if (!quotes) {
        put(l, v->s, v->len);
        return;
    }
    put(l, "\"", 1);
    bool has_begun = !l->is_full;
    for (size_t i = 0; i < v->len; i++)
        put_escaped(l, v->s[i]);
    if (has_begun)
        l->s[l->len++] = '"'; /* TAIL keeps room for it */
}

static void add(struct value *v, const char *bytes, size_t n)
{
    size_t room = sizeof v->s - v->len;
    n = n < room ? n : room;
    memcpy(v->s + v->len, bytes, n);
    v->len += n;
}

/* Append the next argument as the directive `d` says: flags, width and precision in digits, then
 * d, u or x with hh, h, l, ll or z; s, c, g, f. Any other directive is a bug, and shows itself. */
static void add_directive(struct value *v, const char *d, size_t len, va_list *ap)
{
    char spec[16], buf[VALUE_MAX];
    int n = 0;
    if (len >= sizeof spec)
        return;
    (void)snprintf(spec, sizeof spec, "%.*s", (int)len, d);
    char kind = d[len - 1];
    bool is_long_long = strstr(spec, "ll") != NULL, is_long = strchr(spec, 'l') != NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* pieces of a format that was checked */
    if (kind == 's') {
        const char *s = va_arg(*ap, const char *);
        n = snprintf(buf, sizeof buf, spec, s ? s : "");
    } else if (kind == 'g' || kind == 'f') {
        n = snprintf(buf, sizeof buf, spec, va_arg(*ap, double));
    } else if (strchr(spec, 'z')) {
        n = snprintf(buf, sizeof buf, spec, va_arg(*ap, size_t));
    } else if (is_long_long) {
        n = snprintf(buf, sizeof buf, spec, va_arg(*ap, long long));
    } else if (is_long) {
        n = snprintf(buf, sizeof buf, spec, va_arg(*ap, long));
    } else {
        n = snprintf(buf, sizeof buf, spec, va_arg(*ap, int));
    }
#pragma GCC diagnostic pop
    if (n > 0)
        add(v, buf, (size_t)n < sizeof buf ? (size_t)n : sizeof buf - 1);
}

/* Read one value of the format: up to a blank, or the closing quote if it begins with one. Returns
 * where the format continues. */
static const char *read_value(const char *fmt, struct value *v, va_list *ap)
{
    v->is_quoted = *fmt == '"';
    fmt += v->is_quoted;
    while (*fmt && *fmt != (v->is_quoted ? '"' : ' ')) {
        size_t n = 1;
        if (*fmt == '%' && fmt[1] == '%') {
            add(v, fmt++, 1);
        } else if (*fmt == '%') {
            n += strspn(fmt + 1, "-+ #0123456789.hlz");
            n += fmt[n] != '\0';
            add_directive(v, fmt, n, ap);
        } else {
            add(v, fmt, 1);
        }
        fmt += n;
    }
    return fmt + (v->is_quoted && *fmt);
}

static void put_text(struct line *l, const char *key, const char *text, bool is_quoted)
{
    struct value v = {.is_quoted = is_quoted};
    add(&v, text, strlen(text));
    if (l->len > 0)
        put(l, " ", 1);
    put(l, key, strlen(key));
    put(l, "=", 1);
    put_value(l, &v);
}

/* The pairs of the format: key=value, with a blank between them. */
static void put_pairs(struct line *l, const char *fmt, va_list *ap)
{
    while (*fmt) {
        size_t blanks = strspn(fmt, " "), key = strcspn(fmt + blanks, "= ");
        struct value v = {0};
        put(l, " ", 1);
        if (fmt[blanks] == '%') { /* whole pairs, formatted before */
            fmt = read_value(fmt + blanks, &v, ap);
            put(l, v.s, v.len);
            continue;
        }
        put(l, fmt + blanks, key);
        fmt += blanks + key;
        if (*fmt != '=')
            continue;
        fmt = read_value(fmt + 1, &v, ap);
        put(l, "=", 1);
        put_value(l, &v);
    }
}

void log_write(log_level level, const char *msg, const char *fmt, ...)
{
    struct line l = {.len = 0};
    char ts[32];
    if (level < log_lowest)
        return;
    put_text(&l, "ts", clock_format_utc(clock_wall_ms(), ts), false);
    put_text(&l, "level", level_names[level], false);
    put_text(&l, "program", log_program, false);
    put_text(&l, "msg", msg, true);
    va_list ap;
    va_start(ap, fmt);
    put_pairs(&l, fmt, &ap);
    va_end(ap);
    l.s[l.len++] = '\n';
    ssize_t written = write(STDERR_FILENO, l.s, l.len);
    (void)written; /* an error of the log cannot be logged */
}
