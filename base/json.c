/* JSON on jansson: reading with limits, and writing. Fields of objects: json_fields.c.
 *
 * jansson returns only after it has built the whole tree. Depth and number of values are therefore
 * counted on the text first, so that a small hostile text cannot cost a large tree.
 *
 * jansson refuses a whole text for an integer past 64 bits. Such a text is read a second time, with
 * these integers as reals: whether a number fits is for the getter of its field to say.
 *
 * The writer here replaces jansson's for two reasons: it writes the shortest text of a number that
 * reads back the same, and it can sort keys, so that equal values give equal bytes. Digests and
 * comparisons rely on that. */
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Without memory jansson calls a text wrong, or drops a character of it and goes on. So its
 * allocations are watched. */
static _Thread_local bool has_run_out;
static bool fails_with_mem; /* set before other threads begin */

static void *allocate(size_t size)
{
    void *p = NULL;
    if (!fails_with_mem)
        p = malloc(size);
    else if (as_grow(&p, size, 1, NULL) != AS_OK)
        p = NULL;
    has_run_out |= !p;
    return p;
}

__attribute__((constructor)) static void watch_allocations(void)
{
    json_set_alloc_funcs(allocate, free);
}

void json_fail_with_mem(void)
{
    fails_with_mem = true;
}

/* Check depth and number of values on the text, before jansson builds a tree of it. */
static as_status check_shape(const char *text, size_t len, size_t max_nodes, struct as_err *err)
{
    size_t depth = 0, nodes = 1;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        if (c == '"')
            in_string = true;
        else if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth)
            depth--;
        /* each value but the first follows one of these, so this is an upper bound */
        nodes += c == ',' || c == ':' || c == '[';
        if (depth > JSON_MAX_DEPTH)
            return as_fail(err, AS_E_TOO_LARGE, "the JSON is nested deeper than %d levels",
                           JSON_MAX_DEPTH);
        if (nodes > max_nodes)
            return as_fail(err, AS_E_TOO_LARGE, "the JSON has more than %zu values", max_nodes);
    }
    return AS_OK;
}

/* Returns the length of the JSON number at s, or 0 if there is none. */
static size_t number_length(const char *s, size_t n)
{
    size_t i = n > 0 && s[0] == '-', digits = i;
    while (i < n && isdigit((unsigned char)s[i]))
        i++;
    if (i == digits || (s[digits] == '0' && i > digits + 1))
        return 0;
    if (i + 1 < n && s[i] == '.' && isdigit((unsigned char)s[i + 1]))
        for (i++; i < n && isdigit((unsigned char)s[i]);)
            i++;
    size_t e = i;
    if (e < n && (s[e] == 'e' || s[e] == 'E')) {
        e++;
        e += e < n && (s[e] == '+' || s[e] == '-');
        for (; e < n && isdigit((unsigned char)s[e]); e++)
            i = e + 1;
    }
    return i;
}

/* Append a number; an integer past 64 bits as a real. */
static void add_number(struct str *out, const char *s, size_t len)
{
    AS_AUTO(str_done) struct str number = {0};
    str_add(&number, s, len);
    str_add(out, s, len);
    out->failed |= number.failed;
    if (number.failed || strcspn(number.s, ".eE") < len)
        return;
    errno = 0;
    (void)strtoll(number.s, NULL, 10);
    if (errno == ERANGE)
        str_puts(out, ".0");
}

/* The same text with integers past 64 bits as reals. */
static void widen_numbers(struct str *out, const char *text, size_t len)
{
    bool in_string = false;
    for (size_t i = 0; i < len;) {
        size_t n = in_string ? 0 : number_length(text + i, len - i);
        if (n > 0) {
            add_number(out, text + i, n);
            i += n;
            continue;
        }
        if (text[i] == '"')
            in_string = !in_string;
        else if (in_string && text[i] == '\\' && i + 1 < len)
            str_putc(out, text[i++]);
        str_putc(out, text[i++]);
    }
}

static as_status fail_not_json(const char *text, size_t len, const json_error_t *e,
                               struct as_err *err)
{
    static const char minus[] = "-Infinity";
    bool bare = strstr(e->text, "near 'NaN'") || strstr(e->text, "near 'Infinity'") ||
                (strstr(e->text, "near '-'") && memmem(text, len, minus, sizeof minus - 1));
    if (json_error_code(e) == json_error_null_byte_in_key)
        return as_fail(err, AS_E_INVAL,
                       "line %d, column %d: the name of a field has a NUL (\\u0000), expected none",
                       e->line, e->column);
    if (json_error_code(e) == json_error_numeric_overflow)
        return as_fail(
            err, AS_E_INVAL,
            "line %d, column %d: a number is too large, expected at most 1.8e308 in size", e->line,
            e->column);
    return as_fail(err, AS_E_INVAL, "not JSON: line %d, column %d: %s%s", e->line, e->column,
                   e->text,
                   bare ? "; JSON has no such number: send it as text, \"NaN\", \"Infinity\" or "
                          "\"-Infinity\""
                        : "");
}

static bool has_nul(const json_t *j)
{
    const char *text = json_string_value(j);
    if (text)
        return strlen(text) < json_string_length(j);
    for (void *i = json_object_iter((json_t *)j); i; i = json_object_iter_next((json_t *)j, i))
        if (has_nul(json_object_iter_value(i)))
            return true;
    for (size_t i = 0; i < json_array_size(j); i++)
        if (has_nul(json_array_get(j, i)))
            return true;
    return false;
}

/* Here and not in jansson, which would not name the field. Pointers are written only on the way to
 * a NUL: each part of a batch comes through here. */
as_status json_check_nul(const json_t *j, const char *at, struct as_err *err)
{
    char child[AS_ERR_POINTER_MAX];
    as_status st = AS_OK;
    if (!has_nul(j))
        return AS_OK;
    if (json_is_string(j) && strlen(json_string_value(j)) < json_string_length(j))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found a text with a NUL (\\u0000), expected none",
                          *at ? at : "the document");
    if (json_is_object(j)) {
        for (void *i = json_object_iter((json_t *)j); i && st == AS_OK;
             i = json_object_iter_next((json_t *)j, i)) {
            json_pointer_child(at, json_object_iter_key(i), child);
            st = json_check_nul(json_object_iter_value(i), child, err);
        }
    }
    for (size_t i = 0; i < json_array_size(j) && st == AS_OK; i++) {
        json_pointer_index(at, i, child);
        st = json_check_nul(json_array_get(j, i), child, err);
    }
    return st;
}

static as_status parse_unchecked(const char *text, size_t len, size_t max_nodes, size_t flags,
                                 json_t **ret, struct as_err *err)
{
    if (!as_utf8_valid(text, len))
        return as_fail(err, AS_E_INVAL, "the JSON text is not valid UTF-8");
    as_status st = check_shape(text, len, max_nodes, err);
    if (st < 0)
        return st;
    json_error_t je;
    flags |= JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    has_run_out = false;
    json_t *j = json_loadb(text, len, flags, &je);
    if (!j && json_error_code(&je) == json_error_numeric_overflow) {
        AS_AUTO(str_done) struct str wide = {0};
        widen_numbers(&wide, text, len);
        if ((st = str_check(&wide, err)) < 0)
            return st;
        j = json_loadb(wide.s, wide.len, flags, &je);
    }
    if (has_run_out) {
        json_decref(j);
        return as_fail_nomem(err);
    }
    if (!j)
        return fail_not_json(text, len, &je, err);
    *ret = j;
    return AS_OK;
}

static as_status parse_text(const char *text, size_t len, size_t max_nodes, size_t flags,
                            json_t **ret, struct as_err *err)
{
    JSON_AUTO j = NULL;
    as_status st = parse_unchecked(text, len, max_nodes, flags, &j, err);
    if (st == AS_OK && memmem(text, len, "\\u0000", 6))
        st = json_check_nul(j, "", err);
    if (st == AS_OK)
        *ret = as_steal(j);
    return st;
}

as_status json_parse(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    return parse_text(text, len, JSON_MAX_NODES, 0, ret, err);
}

as_status json_parse_parts(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    return parse_unchecked(text, len, JSON_MAX_NODES, 0, ret, err);
}

as_status json_parse_file(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    return parse_text(text, len, JSON_MAX_FILE_NODES, 0, ret, err);
}

as_status json_parse_reals(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    return parse_text(text, len, JSON_MAX_NODES, JSON_DECODE_INT_AS_REAL, ret, err);
}

json_t *json_clone(const json_t *j)
{
    json_t *copy = json_deep_copy(j);
    if (!copy || json_equal(copy, j))
        return copy;
    json_decref(copy);
    return NULL;
}

json_t *json_clone_flat(const json_t *j)
{
    json_t *copy = json_copy((json_t *)j);
    if (json_object_size(copy) == json_object_size(j) &&
        json_array_size(copy) == json_array_size(j))
        return copy;
    json_decref(copy);
    return NULL;
}

static void format_string(struct str *b, const char *s, size_t len)
{
    str_putc(b, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            str_printf(b, "\\%c", c);
        else if (c == '\n')
            str_puts(b, "\\n");
        else if (c == '\t')
            str_puts(b, "\\t");
        else if (c == '\r')
            str_puts(b, "\\r");
        else if (c < 0x20 || c == 0x7f)
            str_printf(b, "\\u%04x", c);
        else
            str_putc(b, (char)c);
    }
    str_putc(b, '"');
}

struct format_opts {
    bool pretty, keep_order;
};

static void add_newline(struct str *b, const struct format_opts *o, int depth)
{
    if (o->pretty)
        str_printf(b, "\n%*s", depth * 2, "");
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void format_value(struct str *b, const json_t *j, const struct format_opts *o, int depth);

static void format_object(struct str *b, const json_t *j, const struct format_opts *o, int depth)
{
    size_t n = json_object_size(j), i = 0;
    AS_AUTO(as_freep) const char **keys = as_calloc(n, sizeof *keys);
    if (!keys) {
        b->failed = true;
        return;
    }
    for (void *it = json_object_iter((json_t *)j); it; it = json_object_iter_next((json_t *)j, it))
        keys[i++] = json_object_iter_key(it);
    if (!o->keep_order)
        qsort(keys, n, sizeof *keys, compare_keys);
    str_putc(b, '{');
    for (i = 0; i < n; i++) {
        if (i)
            str_putc(b, ',');
        add_newline(b, o, depth + 1);
        format_string(b, keys[i], strlen(keys[i]));
        str_puts(b, o->pretty ? ": " : ":");
        format_value(b, json_object_get(j, keys[i]), o, depth + 1);
    }
    if (n)
        add_newline(b, o, depth);
    str_putc(b, '}');
}

static void format_array(struct str *b, const json_t *j, const struct format_opts *o, int depth)
{
    size_t n = json_array_size(j);
    str_putc(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_putc(b, ',');
        add_newline(b, o, depth + 1);
        format_value(b, json_array_get(j, i), o, depth + 1);
    }
    if (n)
        add_newline(b, o, depth);
    str_putc(b, ']');
}

static void format_value(struct str *b, const json_t *j, const struct format_opts *o, int depth)
{
    char buf[32];
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_OBJECT:
        format_object(b, j, o, depth);
        break;
    case JSON_ARRAY:
        format_array(b, j, o, depth);
        break;
    case JSON_STRING:
        format_string(b, json_string_value(j), json_string_length(j));
        break;
    case JSON_INTEGER:
        str_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
        break;
    case JSON_REAL:
        str_puts(b, as_format_double(json_real_value(j), buf, sizeof buf));
        if (strcspn(buf, ".e") == strlen(buf))
            str_puts(b, ".0"); /* so that it is read back as a real */
        break;
    case JSON_TRUE:
        str_puts(b, "true");
        break;
    case JSON_FALSE:
        str_puts(b, "false");
        break;
    case JSON_NULL:
        str_puts(b, "null");
        break;
    }
}

void json_format_to(struct str *b, const json_t *j)
{
    format_value(b, j, &(struct format_opts){.pretty = false}, 0);
}

char *json_format(const json_t *j)
{
    struct str b = {0};
    json_format_to(&b, j);
    return str_take(&b);
}

char *json_format_ordered(const json_t *j)
{
    struct str b = {0};
    format_value(&b, j, &(struct format_opts){.keep_order = true}, 0);
    return str_take(&b);
}

char *json_format_pretty(const json_t *j)
{
    struct str b = {0};
    format_value(&b, j, &(struct format_opts){.pretty = true, .keep_order = true}, 0);
    return str_take(&b);
}

json_t *json_number_new(double v)
{
    char buf[32];
    return isfinite(v) ? json_real(v) : json_string(as_format_double(v, buf, sizeof buf));
}

bool json_number_get(const json_t *j, double *ret)
{
    if (json_is_number(j)) {
        *ret = json_number_value(j);
        return true;
    }
    const char *s = json_string_value(j);
    if (as_streq(s, "NaN"))
        *ret = NAN;
    else if (as_streq(s, "Infinity"))
        *ret = INFINITY;
    else if (as_streq(s, "-Infinity"))
        *ret = -INFINITY;
    else
        return false;
    return true;
}

const char *json_type_name(const json_t *j)
{
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

void json_pointer_child(const char *parent, const char *name, char ret[AS_ERR_POINTER_MAX])
{
    char out[AS_ERR_POINTER_MAX];
    int n = snprintf(out, sizeof out, "%s/", parent);
    size_t len = n < 0 ? 0 : (size_t)n;
    for (; *name && len + 3 < sizeof out; name++) {
        if (*name == '~' || *name == '/') {
            out[len++] = '~';
            out[len++] = *name == '~' ? '0' : '1';
        } else {
            out[len++] = *name;
        }
    }
    out[len < sizeof out ? len : sizeof out - 1] = 0;
    memcpy(ret, out, sizeof out);
}

bool json_pointer_next(const char **p, char *buf, size_t size)
{
    if (**p != '/')
        return false;
    size_t n = 0;
    for ((*p)++; **p && **p != '/'; (*p)++) {
        char c = **p;
        if (c == '~' && ((*p)[1] == '0' || (*p)[1] == '1'))
            c = *++*p == '0' ? '~' : '/';
        if (n + 1 < size)
            buf[n++] = c;
    }
    buf[n] = 0;
    return true;
}

void json_pointer_index(const char *parent, size_t index, char ret[AS_ERR_POINTER_MAX])
{
    char name[24];
    (void)snprintf(name, sizeof name, "%zu", index);
    json_pointer_child(parent, name, ret);
}
