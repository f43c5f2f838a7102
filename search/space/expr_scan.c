/* The tokens of the expression language. Each text becomes a number when it is read, and equal
 * texts of one expression become equal numbers, so that evaluation compares only numbers. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/param_name.h"
#include "base/str.h"
#include "search/space/expr_priv.h"

static const struct {
    const char *word;
    expr_op op;
} functions[] = {{"min", OP_MIN},   {"max", OP_MAX},     {"abs", OP_ABS},
                 {"log", OP_LOG},   {"log2", OP_LOG2},   {"exp", OP_EXP},
                 {"sqrt", OP_SQRT}, {"floor", OP_FLOOR}, {"ceil", OP_CEIL}};

static const struct {
    const char *word;
    token token;
    double v;
} keywords[] = {{"and", T_AND, 0},      {"or", T_OR, 0},        {"not", T_NOT, 0},
                {"in", T_IN, 0},        {"true", T_BOOLEAN, 1}, {"false", T_BOOLEAN, 0},
                {"True", T_BOOLEAN, 1}, {"False", T_BOOLEAN, 0}};

/* A sign comes before any sign that is its prefix. */
static const char *const signs[] = {"<=", ">=", "==", "!=", "**", "<", ">", "+", "-",
                                    "*",  "/",  "%",  "(",  ")",  "[", "]", ","};

/* The column in characters (not bytes), from 1. */
static size_t column_of(const struct parser *p, size_t byte)
{
    size_t n = 1;
    for (size_t i = 0; i < byte; i++)
        n += ((unsigned char)p->e->text[i] & 0xc0) != 0x80;
    return n;
}

bool expr_refuse(struct parser *p, as_status code, size_t byte, const char *fmt, ...)
{
    char what[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    p->st = as_fail_at(p->err, code, p->pointer, "%s: column %zu: %s", p->pointer,
                       column_of(p, byte), what);
    return false;
}

bool expr_no_memory(struct parser *p)
{
    p->st = as_fail(p->err, AS_E_NOMEM, "out of memory for a constraint");
    return false;
}

/* Letters of other alphabets are letters of names alone. */
static bool is_beyond_ascii(char c)
{
    return (unsigned char)c >= 0x80;
}

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || is_beyond_ascii(c);
}

static bool scan_number(struct parser *p)
{
    const char *s = p->e->text + p->start;
    size_t n = strspn(s, "0123456789");
    char buf[64];
    if (s[n] == '.' && isdigit((unsigned char)s[n + 1]))
        n += 1 + strspn(s + n + 1, "0123456789");
    if (s[n] == 'e' || s[n] == 'E') {
        size_t sign = s[n + 1] == '+' || s[n + 1] == '-';
        if (isdigit((unsigned char)s[n + 1 + sign]))
            n += 1 + sign + strspn(s + n + 1 + sign, "0123456789");
    }
    if (n >= sizeof buf)
        return expr_refuse(p, AS_E_INVAL, p->start, "the number is too long");
    memcpy(buf, s, n);
    buf[n] = 0;
    p->v = strtod(buf, NULL);
    if (!isfinite(p->v))
        return expr_refuse(p, AS_E_INVAL, p->start, "the number is too large");
    p->token = T_NUMBER;
    p->next = p->start + n;
    return true;
}

/* The number that stands for a text. */
bool expr_intern(struct parser *p, const char *s, double *ret)
{
    json_t *id = json_object_get(p->texts, s);
    if (!id) {
        id = json_integer((json_int_t)json_object_size(p->texts));
        if (json_object_set_new_nocheck(p->texts, s, id) < 0)
            return expr_no_memory(p);
    }
    *ret = (double)json_integer_value(id);
    return true;
}

static bool scan_text(struct parser *p)
{
    const char *s = p->e->text + p->start + 1;
    const char *end = strchr(s, s[-1]);
    if (!end)
        return expr_refuse(p, AS_E_INVAL, p->start, "the text has no closing %c", s[-1]);
    char buf[EXPR_MAX_TEXT + 1];
    memcpy(buf, s, (size_t)(end - s));
    buf[end - s] = 0;
    p->token = T_TEXT;
    p->next = (size_t)(end + 1 - p->e->text);
    return expr_intern(p, buf, &p->v);
}

/* The longest parameter name at s that would have to stand between backquotes. */
static const char *unquoted_at(const struct space *space, const char *s)
{
    const char *longest = NULL;
    for (size_t i = 0; i < space->n; i++) {
        const char *name = space->params[i].name;
        if (!param_name_is_bare(name) && as_starts_with(s, name) &&
            (!longest || strlen(name) > strlen(longest)))
            longest = name;
    }
    return longest;
}

static bool refuse_name(struct parser *p, const char *s, size_t n)
{
    char name[PARAM_NAME_BYTES + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)n, s);
    const char *unquoted = unquoted_at(p->space, s);
    if (unquoted)
        return expr_refuse(p, AS_E_INVAL, p->start,
                           "unknown name '%s'; the name '%s' stands between backquotes: `%s`", name,
                           unquoted, unquoted);
    struct as_nearest near = {.given = name};
    for (size_t i = 0; i < p->space->n; i++)
        as_nearest_offer(&near, p->space->params[i].name);
    if (!near.name && is_beyond_ascii(*s)) /* a sign of mathematics, perhaps */
        return expr_refuse(p, AS_E_INVAL, p->start, "found a character that has no meaning here");
    return expr_refuse(p, AS_E_INVAL, p->start, "unknown name '%s'%s%s%s", name,
                       near.name ? "; did you mean '" : "", near.name ? near.name : "",
                       near.name ? "'?" : "");
}

/* The length of the longest parameter name at s that needs no backquotes and ends at the end of a
 * word; 0: none. */
static size_t longest_param(const struct space *space, const char *s, size_t *ret)
{
    size_t longest = 0;
    for (size_t i = 0; i < space->n; i++) {
        const char *name = space->params[i].name;
        size_t n = strlen(name);
        if (n > longest && strncmp(s, name, n) == 0 && !is_word_byte(s[n]) &&
            param_name_is_bare(name)) {
            longest = n;
            *ret = i;
        }
    }
    return longest;
}

static bool scan_word(struct parser *p)
{
    const char *s = p->e->text + p->start;
    size_t word = 0, name = longest_param(p->space, s, &p->param);
    while (is_word_byte(s[word]))
        word++;
    p->next = p->start + (name > word ? name : word);
    p->token = T_PARAM;
    if (name > word)
        return true;
    for (size_t i = 0; i < AS_ARRAY_LEN(keywords); i++) {
        if (strlen(keywords[i].word) == word && strncmp(s, keywords[i].word, word) == 0) {
            p->token = keywords[i].token;
            p->v = keywords[i].v;
            return true;
        }
    }
    size_t after = word + strspn(s + word, " \t\n\r");
    for (size_t i = 0; i < AS_ARRAY_LEN(functions); i++) {
        if (s[after] == '(' && strlen(functions[i].word) == word &&
            strncmp(s, functions[i].word, word) == 0) {
            p->token = T_FUNCTION;
            p->function = functions[i].op;
            return true;
        }
    }
    return name || refuse_name(p, s, word);
}

static bool scan_quoted_name(struct parser *p)
{
    const char *s = p->e->text + p->start + 1;
    const char *end = strchr(s, '`');
    if (!end)
        return expr_refuse(p, AS_E_INVAL, p->start, "the name has no closing `");
    size_t n = (size_t)(end - s);
    p->token = T_PARAM;
    p->next = (size_t)(end + 1 - p->e->text);
    for (p->param = 0; p->param < p->space->n; p->param++) {
        const char *name = p->space->params[p->param].name;
        if (strlen(name) == n && memcmp(name, s, n) == 0)
            return true;
    }
    return refuse_name(p, s, n);
}

/* Read the next token. False: there is no valid token. */
bool expr_scan_next(struct parser *p)
{
    const char *text = p->e->text;
    p->start = p->next + strspn(text + p->next, " \t\n\r");
    char c = text[p->start];
    p->sign = "";
    p->token = T_END;
    p->next = p->start;
    if (c == 0)
        return true;
    if (isdigit((unsigned char)c))
        return scan_number(p);
    if (c == '\'' || c == '"')
        return scan_text(p);
    if (c == '`')
        return scan_quoted_name(p);
    if (is_word_byte(c))
        return scan_word(p);
    for (size_t i = 0; i < AS_ARRAY_LEN(signs); i++) {
        if (as_starts_with(text + p->start, signs[i])) {
            p->token = T_SIGN;
            p->sign = signs[i];
            p->next = p->start + strlen(signs[i]);
            return true;
        }
    }
    if (c == '=')
        return expr_refuse(p, AS_E_INVAL, p->start, "found =, to compare write ==");
    if (c == '.')
        return expr_refuse(p, AS_E_INVAL, p->start,
                           "found a character that has no meaning here: a dot stands "
                           "between two digits, as in 0.5");
    return expr_refuse(p, AS_E_INVAL, p->start, "found a character that has no meaning here");
}
