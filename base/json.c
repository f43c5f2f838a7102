/* JSON on jansson: reading with limits, writing, fields of objects.
 *
 * jansson returns only after it has built the whole tree. Depth and number of values are therefore
 * counted on the text first, so that a small hostile text cannot cost a large tree.
 *
 * jansson refuses a whole text for an integer past 64 bits. Such a text is read a second time, with
 * these integers as reals: whether a number fits is for the getter of its field to say.
 *
 * The writer here replaces jansson's for two reasons: it writes the shortest text of a number that
 * reads back the same, and it can sort keys, so that equal values give equal bytes. Digests and
 * comparisons rely on that.
 *
 * struct json_fields remembers each name that a getter asks for. json_fields_end() can then refuse
 * every other name and propose the nearest one, without a second list of the names. */
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

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

static as_status parse_text(const char *text, size_t len, size_t max_nodes, size_t flags,
                            json_t **ret, struct as_err *err)
{
    if (!as_utf8_valid(text, len))
        return as_fail(err, AS_E_INVAL, "the JSON text is not valid UTF-8");
    as_status st = check_shape(text, len, max_nodes, err);
    if (st < 0)
        return st;
    json_error_t je;
    flags |= JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
    json_t *j = json_loadb(text, len, flags, &je);
    if (!j && json_error_code(&je) == json_error_numeric_overflow) {
        AS_AUTO(str_done) struct str wide = {0};
        widen_numbers(&wide, text, len);
        if ((st = str_check(&wide, err)) < 0)
            return st;
        j = json_loadb(wide.s, wide.len, flags, &je);
    }
    if (!j)
        return fail_not_json(text, len, &je, err);
    *ret = j;
    return AS_OK;
}

as_status json_parse(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    return parse_text(text, len, JSON_MAX_NODES, 0, ret, err);
}

as_status json_parse_file(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    return parse_text(text, len, JSON_MAX_FILE_NODES, 0, ret, err);
}

as_status json_parse_reals(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    return parse_text(text, len, JSON_MAX_NODES, JSON_DECODE_INT_AS_REAL, ret, err);
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

void json_pointer_index(const char *parent, size_t index, char ret[AS_ERR_POINTER_MAX])
{
    char name[24];
    (void)snprintf(name, sizeof name, "%zu", index);
    json_pointer_child(parent, name, ret);
}

as_status json_fields_init(struct json_fields *f, const json_t *obj, const char *pointer,
                           struct as_err *err)
{
    *f = (struct json_fields){.obj = obj};
    (void)snprintf(f->pointer, sizeof f->pointer, "%s", pointer);
    if (!json_is_object(obj))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %s, expected an object",
                          *pointer ? pointer : "the document", json_type_name(obj));
    return AS_OK;
}

as_status json_fields_under(struct json_fields *f, const struct json_fields *parent,
                            const json_t *obj, const char *pointer, struct as_err *err)
{
    as_status st = json_fields_init(f, obj, pointer, err);
    f->faults = parent->faults;
    return st;
}

bool json_fields_lack(const struct json_fields *f, const char *name)
{
    const json_t *j = json_object_get(f->obj, name);
    return !j || json_is_null(j);
}

as_status json_fields_note(struct json_fields *f, as_status st, struct as_err *err)
{
    if (st == AS_OK)
        return AS_OK;
    as_status noted = faults_note(f->faults, st, err);
    if (noted == AS_OK && !f->is_faulty) {
        f->is_faulty = true;
        f->first = faults_find(f->faults, err->pointer);
    }
    return noted;
}

/* *ret is the field or NULL; its name counts as known from now on. AS_E_INVAL if it is required and
 * absent. */
static as_status take_field(struct json_fields *f, const char *name, json_need need, json_t **ret,
                            struct as_err *err)
{
    if (f->n_seen < AS_ARRAY_LEN(f->seen))
        f->seen[f->n_seen++] = name;
    json_t *j = json_object_get(f->obj, name);
    *ret = json_is_null(j) ? NULL : j;
    if (!*ret && need == JSON_REQUIRED) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, name, at);
        return json_fields_note(f, as_fail_at(err, AS_E_INVAL, at, "%s is missing", at), err);
    }
    return AS_OK;
}

static as_status fail_field(struct json_fields *f, const char *name, const json_t *found,
                            const char *expected, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, name, at);
    AS_AUTO(as_freep)
    char *text = json_is_object(found) || json_is_array(found) ? NULL : json_format(found);
    as_status st = as_fail_at(err, AS_E_INVAL, at, "%s: found %.80s, expected %s", at,
                              text ? text : json_type_name(found), expected);
    return json_fields_note(f, st, err);
}

as_status json_fields_any(struct json_fields *f, const char *name, json_need need, json_t **ret,
                          struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st != AS_OK)
        return st;
    if (j)
        *ret = j;
    return AS_OK;
}

as_status json_fields_str(struct json_fields *f, const char *name, json_need need, const char **ret,
                          struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_string(j))
        return fail_field(f, name, j, "a string", err);
    *ret = json_string_value(j);
    return AS_OK;
}

as_status json_fields_text(struct json_fields *f, const char *name, json_need need, size_t min,
                           size_t max, const char **ret, struct as_err *err)
{
    const char *s = NULL;
    as_status st = json_fields_str(f, name, need, &s, err);
    if (st < 0 || !s)
        return st;
    size_t n = as_utf8_length(s);
    if (n < min || n > max) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, name, at);
        st = as_fail_at(err, AS_E_INVAL, at, "%s: found %zu characters, expected %zu to %zu", at, n,
                        min, max);
        return json_fields_note(f, st, err);
    }
    *ret = s;
    return AS_OK;
}

as_status json_fields_i64(struct json_fields *f, const char *name, json_need need, int64_t min,
                          int64_t max, int64_t *ret, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_integer(j) || json_integer_value(j) < min || json_integer_value(j) > max) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64,
                       min, max);
        return fail_field(f, name, j, expected, err);
    }
    *ret = json_integer_value(j);
    return AS_OK;
}

as_status json_fields_double(struct json_fields *f, const char *name, json_need need, double min,
                             double max, double *ret, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    double v = json_is_number(j) ? json_number_value(j) : NAN;
    if (!(v >= min && v <= max)) {
        char expected[96], low[32], high[32];
        (void)snprintf(expected, sizeof expected, "a number from %s to %s",
                       as_format_double(min, low, sizeof low),
                       as_format_double(max, high, sizeof high));
        return fail_field(f, name, j, expected, err);
    }
    *ret = v;
    return AS_OK;
}

as_status json_fields_bool(struct json_fields *f, const char *name, json_need need, bool *ret,
                           struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_boolean(j))
        return fail_field(f, name, j, "true or false", err);
    *ret = json_is_true(j);
    return AS_OK;
}

as_status json_fields_object(struct json_fields *f, const char *name, json_need need, json_t **ret,
                             struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_object(j))
        return fail_field(f, name, j, "an object", err);
    *ret = j;
    return AS_OK;
}

as_status json_fields_array(struct json_fields *f, const char *name, json_need need, json_t **ret,
                            struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    if (!json_is_array(j))
        return fail_field(f, name, j, "a list", err);
    *ret = j;
    return AS_OK;
}

as_status json_fields_word(struct json_fields *f, const char *name, json_need need,
                           const char *const *words, int *ret, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    const char *s = json_string_value(j);
    AS_AUTO(str_done) struct str expected = {0};
    str_puts(&expected, "one of");
    for (int i = 0; words[i]; i++) {
        if (as_streq(s, words[i])) {
            *ret = i;
            return AS_OK;
        }
        str_printf(&expected, "%s %s", i ? "," : "", words[i]);
    }
    return fail_field(f, name, j, str_cstr(&expected), err);
}

as_status json_fields_duration(struct json_fields *f, const char *name, json_need need,
                               int64_t *ret_ms, struct as_err *err)
{
    json_t *j;
    as_status st = take_field(f, name, need, &j, err);
    if (st < 0 || !j)
        return st;
    double v = json_number_value(j);
    if (json_is_number(j) && v > 0 && v < 1e12) {
        *ret_ms = (int64_t)llround(v * 1000.0);
        return AS_OK;
    }
    int64_t ms = 0;
    if (!json_is_string(j) || as_parse_duration_ms(json_string_value(j), &ms, NULL) < 0 || ms <= 0)
        return fail_field(f, name, j, "a duration such as 30s, 5m, 4h, or seconds above 0", err);
    *ret_ms = ms;
    return AS_OK;
}

/* Is `key` a field that a getter asked for? If not, *ret is the nearest of them, or NULL. */
static bool is_known(const struct json_fields *f, const char *key, const char **ret)
{
    size_t best = 3; /* more than two edits away is no typing error */
    *ret = NULL;
    for (size_t i = 0; i < f->n_seen; i++) {
        size_t d = as_edit_distance(key, f->seen[i]);
        if (d == 0)
            return true;
        if (d < best) {
            best = d;
            *ret = f->seen[i];
        }
    }
    return false;
}

static as_status refuse_unknown(const struct json_fields *f, const char *key, const char *nearest,
                                struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(f->pointer, key, at);
    if (nearest)
        return as_fail_at(err, AS_E_INVAL, at, "%s is not a known field; did you mean '%s'?", at,
                          nearest);
    AS_AUTO(str_done) struct str known = {0};
    for (size_t i = 0; i < f->n_seen; i++)
        str_printf(&known, "%s%s", i ? ", " : "", f->seen[i]);
    return as_fail_at(err, AS_E_INVAL, at, "%s is not a known field; expected one of: %s", at,
                      str_cstr(&known));
}

as_status json_fields_end(struct json_fields *f, struct as_err *err)
{
    for (void *it = json_object_iter((json_t *)f->obj); it;
         it = json_object_iter_next((json_t *)f->obj, it)) {
        const char *key = json_object_iter_key(it), *nearest;
        if (is_known(f, key, &nearest))
            continue;
        as_status st = json_fields_note(f, refuse_unknown(f, key, nearest, err), err);
        if (st != AS_OK)
            return st;
    }
    if (!f->is_faulty)
        return AS_OK;
    const struct as_err *first = &f->faults->list[f->first];
    if (err)
        *err = *first;
    return first->code;
}
