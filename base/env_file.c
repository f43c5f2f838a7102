/* Reads files of environment variables, line by line. */
#include "base/env_file.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct reader {
    const char *at, *end;
    size_t line;
};

bool env_name_valid(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    while (isalnum((unsigned char)*s) || *s == '_')
        s++;
    return *s == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

static bool at_line_end(const struct reader *r)
{
    return r->at == r->end || *r->at == '\n';
}

static void skip_line(struct reader *r)
{
    while (!at_line_end(r))
        r->at++;
    if (r->at < r->end)
        r->at++;
    r->line++;
}

static bool takes_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) <= n || memcmp(r->at, word, n) != 0 || !is_blank(r->at[n]))
        return false;
    r->at += n;
    skip_blanks(r);
    return true;
}

static as_status read_name(struct reader *r, struct str *name, struct as_err *err)
{
    const char *from = r->at;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_'))
        r->at++;
    str_clear(name);
    str_add(name, from, (size_t)(r->at - from));
    skip_blanks(r);
    if (name->failed)
        return as_fail_nomem(err);
    if (at_line_end(r) || *r->at != '=' || !env_name_valid(str_cstr(name)))
        return as_fail(err, AS_E_INVAL,
                       "line %zu: expected NAME=VALUE; a name has letters, digits and _", r->line);
    r->at++;
    skip_blanks(r);
    return str_check(name, err);
}

/* A plain value: to the end of the line, or to a # after a blank. */
static void read_plain(struct reader *r, struct str *value)
{
    const char *from = r->at, *last = from;
    for (; !at_line_end(r); r->at++) {
        if (*r->at == '#' && (r->at == from || is_blank(r->at[-1])))
            break;
        if (!is_blank(*r->at))
            last = r->at + 1;
    }
    str_add(value, from, (size_t)(last - from));
}

static void add_escaped(struct str *value, char c)
{
    static const char from[] = "ntr\"\\$", to[] = "\n\t\r\"\\$";
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        str_putc(value, '\\');
    str_putc(value, found ? to[found - from] : c);
}

static as_status read_quoted(struct reader *r, struct str *value, struct as_err *err)
{
    char quote = *r->at++;
    size_t first = r->line;
    for (; r->at < r->end && *r->at != quote; r->at++) {
        if (*r->at == '\\' && quote == '"' && r->at + 1 < r->end)
            add_escaped(value, *++r->at);
        else
            str_putc(value, *r->at);
        r->line += *r->at == '\n';
    }
    if (r->at == r->end)
        return as_fail(err, AS_E_INVAL, "line %zu: the %c of the value is not closed", first,
                       quote);
    r->at++;
    skip_blanks(r);
    if (!at_line_end(r) && *r->at != '#')
        return as_fail(err, AS_E_INVAL, "line %zu: expected the end of the line after the %c",
                       r->line, quote);
    return AS_OK;
}

static as_status read_variable(struct reader *r, struct str *name, struct str *value,
                               struct as_err *err)
{
    (void)takes_word(r, "export");
    as_status st = read_name(r, name, err);
    if (st < 0)
        return st;
    str_clear(value);
    if (!at_line_end(r) && (*r->at == '\'' || *r->at == '"'))
        st = read_quoted(r, value, err);
    else
        read_plain(r, value);
    return st < 0 ? st : str_check(value, err);
}

as_status env_file_parse(const char *text, size_t len, env_file_fn *fn, void *arg,
                         struct as_err *err)
{
    AS_AUTO(str_done) struct str name = {0}, value = {0};
    struct reader r = {.at = text, .end = text + len, .line = 1};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        r.at += 3; /* the mark with which some editors begin UTF-8 */
    const char *zero = len ? memchr(text, 0, len) : NULL;
    for (; r.at < r.end; skip_line(&r)) {
        skip_blanks(&r);
        if (at_line_end(&r) || *r.at == '#')
            continue;
        size_t line = r.line;
        as_status st = read_variable(&r, &name, &value, err);
        if (st < 0)
            return st;
        if (zero && zero < r.at)
            return as_fail(err, AS_E_INVAL, "line %zu: found a byte that is 0", line);
        st = fn(arg, str_cstr(&name), str_cstr(&value), err);
        if (st < 0)
            return as_err_prefix(err, st, "line %zu", line);
    }
    return AS_OK;
}
