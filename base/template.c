/* ${name} in documents and arguments.
 *
 * next_piece() is the only scanner: it splits a string into literal text and references. Checking,
 * collecting names and replacing all use it, so they agree on what a reference is. template_visit()
 * calls a function for each reference of a tree; apply_tree() copies a tree with its references
 * replaced.
 *
 * The YAML reader reads a default, because documents are written in YAML: `${lr:-1e-3}` must become
 * the number that `lr: 1e-3` is. A reference without a value makes apply_tree() return NULL in
 * *ret, and the list or object around it leaves the item out. */
#include "base/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/param_name.h"
#include "base/str.h"
#include "base/yaml_reader.h"

#define FILE_PREFIX "file:"
#define ARGS_PREFIX "args:"
#define MOST_NESTED 8 /* references in one another's defaults */

/* A piece of a string: literal text, or one reference. */
struct piece {
    const char *text; /* literal text; NULL for a reference */
    size_t len;
    template_form form;
    char name[sizeof FILE_PREFIX + TEMPLATE_PATH_MAX];
    const char *rest; /* the default, the text or the style; a view of the string */
    size_t rest_len;
};

const char *template_file_path(const char *name)
{
    return as_starts_with(name, FILE_PREFIX) ? name + strlen(FILE_PREFIX) : NULL;
}

as_status template_name_file(json_t *names, const char *path, const char *text, struct as_err *err)
{
    AS_AUTO(str_done) struct str name = {0};
    str_printf(&name, FILE_PREFIX "%s", path);
    as_status st = str_check(&name, err);
    if (st < 0)
        return st;
    return json_object_set_new(names, name.s, json_string(text)) < 0 ? as_fail_nomem(err) : AS_OK;
}

/* ${file:path} or ${args:style}: what stands before the colon is no parameter. */
static bool read_special(const char *s, size_t len, struct piece *ret)
{
    if (len > strlen(FILE_PREFIX) && len < sizeof ret->name && as_starts_with(s, FILE_PREFIX) &&
        s[strlen(FILE_PREFIX)] != '-') {
        ret->form = TEMPLATE_FILE;
        memcpy(ret->name, s, len);
        return true;
    }
    if (len > strlen(ARGS_PREFIX) && as_starts_with(s, ARGS_PREFIX) &&
        s[strlen(ARGS_PREFIX)] != '-') {
        ret->form = TEMPLATE_ARGS;
        memcpy(ret->name, "args", strlen("args"));
        ret->rest = s + strlen(ARGS_PREFIX);
        ret->rest_len = len - strlen(ARGS_PREFIX);
        return true;
    }
    return false;
}

/* Is a default a reference of its own? */
static bool is_reference(const char *s, size_t len)
{
    return len > 2 && s[0] == '$' && s[1] == '{';
}

/* The } of the reference whose inside begins at s, behind those of the references in its default;
 * NULL: there is none, or too many references are in one another. */
static const char *find_end(const char *s)
{
    size_t nested = 0, name;
    while (name = param_name_span(s), strncmp(s + name, ":-${", 4) == 0) {
        s += name + 4;
        if (nested++ == MOST_NESTED)
            return NULL;
    }
    const char *end = strchr(s, '}');
    for (; end && nested > 0; nested--)
        end = strchr(end + 1, '}');
    return end;
}

/* ${name}, ${name:-default} or ${name?text}; s is what stands between the braces. */
static bool read_named(const char *s, size_t len, struct piece *ret)
{
    size_t name = param_name_span(s), skip = 0;
    if (name > PARAM_NAME_BYTES)
        return false;
    memcpy(ret->name, s, name);
    ret->name[name] = '\0';
    if (!param_name_valid(ret->name))
        return false;
    if (name == len) {
        ret->form = TEMPLATE_VALUE;
    } else if (strncmp(s + name, ":-", 2) == 0) {
        ret->form = TEMPLATE_DEFAULT;
        skip = 2;
    } else if (s[name] == '?') {
        ret->form = TEMPLATE_WHEN;
        skip = 1;
    } else {
        return false;
    }
    ret->rest = s + name + skip;
    ret->rest_len = len - name - skip;
    return true;
}

static as_status read_reference(const char **at, const char *whole, struct piece *ret,
                                struct as_err *err)
{
    const char *s = *at + 2, *end = find_end(s);
    if (!end)
        return as_fail(err, AS_E_INVAL,
                       "'%.80s' has a ${ without its }, or more than %d in one another; write $${ "
                       "for the characters themselves",
                       whole, MOST_NESTED);
    size_t len = (size_t)(end - s);
    *ret = (struct piece){0};
    if (!read_special(s, len, ret) && !read_named(s, len, ret))
        return as_fail(err, AS_E_INVAL,
                       "'%.*s' is not a reference; expected ${name}, ${name:-default} or "
                       "${name?text}, or $${ for the characters ${",
                       (int)(end - *at < 80 ? end + 1 - *at : 80), *at);
    *at = end + 1;
    if (ret->form != TEMPLATE_DEFAULT || !is_reference(ret->rest, ret->rest_len))
        return AS_OK;
    struct piece inner;
    const char *from = ret->rest;
    as_status st = read_reference(&from, whole, &inner, err);
    if (st == AS_OK && from != end)
        return as_fail(err, AS_E_INVAL, "'%.*s': expected nothing behind the reference '%.*s'",
                       (int)(end - s < 80 ? end - s : 80), s, (int)(from - ret->rest), ret->rest);
    return st;
}

/* The next piece of a string that is not at its end; *at moves past it. */
static as_status next_piece(const char **at, const char *whole, struct piece *ret,
                            struct as_err *err)
{
    const char *s = *at;
    if (strncmp(s, "$${", 3) == 0) {
        *ret = (struct piece){.text = s + 1, .len = 2};
        *at = s + 3;
        return AS_OK;
    }
    if (strncmp(s, "${", 2) == 0)
        return read_reference(at, whole, ret, err);
    size_t len = 1;
    while (s[len] && strncmp(s + len, "$${", 3) != 0 && strncmp(s + len, "${", 2) != 0)
        len++;
    *ret = (struct piece){.text = s, .len = len};
    *at = s + len;
    return AS_OK;
}

/* ---- visiting ---- */

struct visitor {
    template_visit_fn *fn;
    void *arg;
};

/* A reference, then those in its default. */
static as_status visit_piece(struct piece *p, bool is_alone, const struct visitor *v,
                             struct as_err *err)
{
    as_status st;
    for (;;) {
        const char *inner = p->rest;
        bool nests = p->form == TEMPLATE_DEFAULT && is_reference(p->rest, p->rest_len);
        st = v->fn(v->arg,
                   &(struct template_ref){.form = p->form,
                                          .name = p->name,
                                          .text = p->rest,
                                          .text_len = p->rest_len,
                                          .is_alone = is_alone},
                   err);
        if (st == AS_OK && nests)
            st = read_reference(&inner, inner, p, err);
        if (st != AS_OK || !nests)
            return st;
    }
}

static as_status visit_string(const char *s, const char *pointer, const struct visitor *v,
                              struct as_err *err)
{
    struct as_err local = {0};
    as_status st = AS_OK;
    for (const char *at = s; *at && st == AS_OK;) {
        struct piece p;
        const char *from = at;
        st = next_piece(&at, s, &p, &local);
        if (st == AS_OK && !p.text)
            st = visit_piece(&p, from == s && !*at, v, &local);
    }
    if (st < 0 && st != AS_E_NOMEM)
        return as_fail_at(err, st, pointer, "%s: %s", pointer, local.msg);
    return st < 0 ? as_fail(err, st, "%s", local.msg) : AS_OK;
}

static as_status visit_tree(const json_t *j, const char *pointer, const struct visitor *v,
                            struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    if (json_is_string(j))
        return visit_string(json_string_value(j), pointer, v, err);
    for (size_t i = 0; i < json_array_size(j); i++) {
        json_pointer_index(pointer, i, at);
        as_status st = visit_tree(json_array_get(j, i), at, v, err);
        if (st != AS_OK)
            return st;
    }
    for (void *it = json_object_iter((json_t *)j); it;
         it = json_object_iter_next((json_t *)j, it)) {
        json_pointer_child(pointer, json_object_iter_key(it), at);
        as_status st = visit_tree(json_object_iter_value(it), at, v, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status template_visit(const json_t *tree, const char *pointer, template_visit_fn *fn, void *arg,
                         struct as_err *err)
{
    return visit_tree(tree, pointer, &(struct visitor){.fn = fn, .arg = arg}, err);
}

struct known {
    template_known_fn *fn;
    const void *arg;
};

static as_status check_known(void *arg, const struct template_ref *ref, struct as_err *err)
{
    const struct known *k = arg;
    const char *name = ref->name;
    if (ref->form == TEMPLATE_ARGS)
        return as_fail(err, AS_E_INVAL,
                       "${args:%.*s} stands for the arguments of a command; expected it in "
                       "trial.command, as an element of its own",
                       (int)(ref->text_len < 40 ? ref->text_len : 40), ref->text);
    if (k->fn(k->arg, name))
        return AS_OK;
    if (ref->form == TEMPLATE_FILE)
        return as_fail(err, AS_E_INVAL, "trial.files has no '%s'", template_file_path(name));
    return as_fail(err, AS_E_INVAL,
                   "there is no parameter '%s'; write $${%s} for the characters ${%s}", name, name,
                   name);
}

as_status template_check(const json_t *tree, const char *pointer, template_known_fn *known,
                         const void *arg, struct as_err *err)
{
    struct known k = {.fn = known, .arg = arg};
    return template_visit(tree, pointer, check_known, &k, err);
}

struct names {
    json_t *list; /* in order */
    json_t *seen; /* the same, as keys */
};

static as_status collect_name(void *arg, const struct template_ref *ref, struct as_err *err)
{
    struct names *n = arg;
    if (ref->form > TEMPLATE_WHEN || json_object_get(n->seen, ref->name))
        return AS_OK;
    if (json_object_set_new(n->seen, ref->name, json_true()) < 0 ||
        json_array_append_new(n->list, json_string(ref->name)) < 0)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template's names");
    return AS_OK;
}

as_status template_names(const json_t *tree, json_t **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    JSON_AUTO seen = json_object();
    if (!list || !seen)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template's names");
    struct names n = {.list = list, .seen = seen};
    as_status st = template_visit(tree, "", collect_name, &n, err);
    if (st < 0)
        return st;
    *ret = as_steal(list);
    return AS_OK;
}

/* ---- applying ---- */

static void add_value(struct str *b, const json_t *v)
{
    char buf[32];
    if (json_is_string(v))
        str_add(b, json_string_value(v), json_string_length(v));
    else if (json_is_real(v))
        str_puts(b, as_format_double(json_real_value(v), buf, sizeof buf));
    else if (json_is_integer(v))
        str_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_boolean(v))
        str_puts(b, json_is_true(v) ? "true" : "false");
    else
        json_format_to(b, v);
}

/* A default takes the place of null, too. */
static bool lacks_value(const json_t *v)
{
    return !v || json_is_null(v);
}

/* Step into the default as long as the reference lacks a value and the default is another one. */
static as_status resolve(struct piece *p, const json_t *params, struct as_err *err)
{
    as_status st = AS_OK;
    while (st == AS_OK && !p->text && p->form == TEMPLATE_DEFAULT &&
           is_reference(p->rest, p->rest_len) && lacks_value(json_object_get(params, p->name))) {
        const char *inner = p->rest;
        st = read_reference(&inner, inner, p, err);
    }
    return st;
}

as_status template_apply_text(const char *text, const json_t *params, char **ret,
                              struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    for (const char *at = text; *at;) {
        struct piece p;
        as_status st = next_piece(&at, text, &p, err);
        if (st == AS_OK)
            st = resolve(&p, params, err);
        if (st < 0)
            return st;
        const json_t *v = p.text ? NULL : json_object_get(params, p.name);
        if (p.text)
            str_add(&b, p.text, p.len);
        else if (p.form == TEMPLATE_WHEN ? json_is_true(v)
                                         : lacks_value(v) && p.form == TEMPLATE_DEFAULT)
            str_add(&b, p.rest, p.rest_len);
        else if (v && p.form != TEMPLATE_WHEN)
            add_value(&b, v);
    }
    str_add(&b, "", 0); /* so that an empty text is "" and not NULL */
    char *out = b.failed ? NULL : str_take(&b);
    if (!out)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    *ret = out;
    return AS_OK;
}

/* Read a default: "0.5" is a number, "true" a boolean; text that is no YAML scalar stays text. */
static as_status read_scalar(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    JSON_AUTO j = NULL;
    as_status st = len ? yaml_parse(text, len, &j, NULL) : AS_E_INVAL;
    if (st == AS_OK && !json_is_object(j) && !json_is_array(j)) {
        *ret = as_steal(j);
        return AS_OK;
    }
    json_t *s = st == AS_E_NOMEM ? NULL : json_stringn(text, len);
    if (!s)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    *ret = s;
    return AS_OK;
}

/* The value of a string that is one reference. *ret is NULL when it has none. */
static as_status apply_alone(const struct piece *p, const json_t *params, json_t **ret,
                             struct as_err *err)
{
    const json_t *v = json_object_get(params, p->name);
    json_t *out = NULL;
    if (lacks_value(v) && p->form == TEMPLATE_DEFAULT)
        return read_scalar(p->rest, p->rest_len, ret, err);
    bool has_value = p->form == TEMPLATE_WHEN ? json_is_true(v) : v != NULL;
    if (has_value)
        out = p->form == TEMPLATE_WHEN ? json_stringn(p->rest, p->rest_len) : json_clone(v);
    if (has_value && !out)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    *ret = out;
    return AS_OK;
}

/* Sets *ret to NULL when the string is one reference without a value. */
static as_status apply_string(const char *s, const json_t *params, json_t **ret, struct as_err *err)
{
    struct piece p = {.text = ""};
    const char *at = s;
    as_status st = *s ? next_piece(&at, s, &p, err) : AS_OK;
    if (st == AS_OK)
        st = resolve(&p, params, err);
    if (st < 0)
        return st;
    if (!p.text && !*at)
        return apply_alone(&p, params, ret, err);
    AS_AUTO(as_freep) char *text = NULL;
    st = template_apply_text(s, params, &text, err);
    if (st < 0)
        return st;
    json_t *out = json_string(text);
    if (!out)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    *ret = out;
    return AS_OK;
}

static as_status apply_tree(const json_t *j, const json_t *params, json_t **ret,
                            struct as_err *err);

static as_status apply_array(const json_t *j, const json_t *params, json_t **ret,
                             struct as_err *err)
{
    JSON_AUTO out = json_array();
    if (!out)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    for (size_t i = 0; i < json_array_size(j); i++) {
        json_t *v = NULL;
        as_status st = apply_tree(json_array_get(j, i), params, &v, err);
        if (st < 0)
            return st;
        if (v && json_array_append_new(out, v) < 0)
            return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    }
    *ret = as_steal(out);
    return AS_OK;
}

static as_status apply_object(const json_t *j, const json_t *params, json_t **ret,
                              struct as_err *err)
{
    JSON_AUTO out = json_object();
    if (!out)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    for (void *it = json_object_iter((json_t *)j); it;
         it = json_object_iter_next((json_t *)j, it)) {
        json_t *v = NULL;
        as_status st = apply_tree(json_object_iter_value(it), params, &v, err);
        if (st < 0)
            return st;
        if (v && json_object_set_new(out, json_object_iter_key(it), v) < 0)
            return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    }
    *ret = as_steal(out);
    return AS_OK;
}

/* *ret is NULL when the value is to be left out. */
static as_status apply_tree(const json_t *j, const json_t *params, json_t **ret, struct as_err *err)
{
    if (json_is_string(j))
        return apply_string(json_string_value(j), params, ret, err);
    if (json_is_array(j))
        return apply_array(j, params, ret, err);
    if (json_is_object(j))
        return apply_object(j, params, ret, err);
    json_t *copy = json_clone(j);
    if (!copy)
        return as_fail(err, AS_E_NOMEM, "out of memory for a template");
    *ret = copy;
    return AS_OK;
}

as_status template_apply(const json_t *tree, const json_t *params, json_t **ret, struct as_err *err)
{
    json_t *out = NULL;
    as_status st = apply_tree(tree, params, &out, err);
    if (st < 0)
        return st;
    *ret = out ? out : json_null();
    return AS_OK;
}
