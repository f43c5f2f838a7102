/* YAML to JSON trees, through the document tree of libyaml.
 *
 * libyaml parses and leaves every scalar as text; this file gives plain scalars their types, by the
 * core schema of YAML 1.2. An alias is expanded: convert_node() visits an anchored node once for
 * each alias. It counts its visits, so that a small text of nested aliases ends at JSON_MAX_NODES,
 * and an alias inside its own anchor at JSON_MAX_DEPTH.
 *
 * A JSON tree has no line numbers, and errors name a JSON pointer. yaml_locate() parses the text a
 * second time to find the line of a pointer; it is called only when an error is shown. */
#include "base/yaml_reader.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/json.h"
#include "base/str.h"

struct walk {
    yaml_document_t *doc; /* borrowed */
    size_t nodes;
    struct as_err *err;
};

static as_status fail_node(struct walk *w, const yaml_node_t *node, const char *what,
                           const char *detail)
{
    return as_fail(w->err, AS_E_INVAL, "line %zu, column %zu: %s%.80s", node->start_mark.line + 1,
                   node->start_mark.column + 1, what, detail);
}

static bool is_word(const char *s, const char *a, const char *b, const char *c)
{
    return !strcmp(s, a) || !strcmp(s, b) || !strcmp(s, c);
}

/* A plain (unquoted) scalar by the core schema. */
static as_status type_scalar(struct walk *w, const yaml_node_t *node, const char *s, json_t **ret)
{
    if (!*s || !strcmp(s, "~") || is_word(s, "null", "Null", "NULL")) {
        *ret = json_null();
    } else if (is_word(s, "true", "True", "TRUE")) {
        *ret = json_true();
    } else if (is_word(s, "false", "False", "FALSE")) {
        *ret = json_false();
    } else if (is_word(s, ".nan", ".NaN", ".NAN") || is_word(s, ".inf", "-.inf", "+.inf")) {
        return fail_node(w, node, "found a number that is not finite: ", s);
    } else if (strspn(s, "0123456789+-.eE") == strlen(s) && strpbrk(s, "0123456789")) {
        int64_t i;
        char *end;
        double d = strtod(s, &end);
        if (as_parse_i64(s, &i, NULL) == AS_OK)
            *ret = json_integer(i);
        else if (*end)
            *ret = json_string(s); /* such as "1-2" or "1.2.3" */
        else if (!isfinite(d))
            return fail_node(w, node, "the number is too large: ", s);
        else
            *ret = json_real(d);
    } else {
        *ret = json_string(s);
    }
    return *ret ? AS_OK : as_fail_nomem(w->err);
}

static as_status convert_node(struct walk *w, int index, int depth, json_t **ret);

static as_status convert_sequence(struct walk *w, const yaml_node_t *node, int depth, json_t **ret)
{
    JSON_AUTO list = json_array();
    for (yaml_node_item_t *it = node->data.sequence.items.start; it < node->data.sequence.items.top;
         it++) {
        json_t *v = NULL;
        as_status st = convert_node(w, *it, depth + 1, &v);
        if (st < 0)
            return st;
        if (json_array_append_new(list, v) != 0)
            return as_fail_nomem(w->err);
    }
    *ret = as_steal(list);
    return AS_OK;
}

static as_status convert_mapping(struct walk *w, const yaml_node_t *node, int depth, json_t **ret)
{
    JSON_AUTO obj = json_object();
    for (yaml_node_pair_t *it = node->data.mapping.pairs.start; it < node->data.mapping.pairs.top;
         it++) {
        const yaml_node_t *key = yaml_document_get_node(w->doc, it->key);
        if (key->type != YAML_SCALAR_NODE)
            return fail_node(w, key, "a key must be a plain word", "");
        const char *name = (const char *)key->data.scalar.value;
        if (!as_utf8_valid(name, key->data.scalar.length))
            return fail_node(w, key, "a key is not valid UTF-8", "");
        if (json_object_get(obj, name))
            return fail_node(w, key, "the key is given twice: ", name);
        json_t *v = NULL;
        as_status st = convert_node(w, it->value, depth + 1, &v);
        if (st < 0)
            return st;
        if (json_object_set_new(obj, name, v) != 0)
            return as_fail_nomem(w->err);
    }
    *ret = as_steal(obj);
    return AS_OK;
}

static as_status convert_node(struct walk *w, int index, int depth, json_t **ret)
{
    const yaml_node_t *node = yaml_document_get_node(w->doc, index);
    if (depth > JSON_MAX_DEPTH)
        return as_fail(w->err, AS_E_TOO_LARGE, "the document is nested deeper than %d levels",
                       JSON_MAX_DEPTH);
    if (++w->nodes > JSON_MAX_NODES)
        return as_fail(w->err, AS_E_TOO_LARGE, "the document has more than %d values",
                       JSON_MAX_NODES);
    const char *tag = (const char *)node->tag;
    /* libyaml gives these three to nodes without a tag; any other is an explicit tag. */
    if (tag && !is_word(tag, YAML_STR_TAG, YAML_SEQ_TAG, YAML_MAP_TAG))
        return fail_node(w, node, "tags are not supported: ", tag);
    if (node->type == YAML_SEQUENCE_NODE)
        return convert_sequence(w, node, depth, ret);
    if (node->type == YAML_MAPPING_NODE)
        return convert_mapping(w, node, depth, ret);
    const char *s = (const char *)node->data.scalar.value;
    if (!as_utf8_valid(s, node->data.scalar.length))
        return fail_node(w, node, "a text is not valid UTF-8 or holds a NUL", "");
    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return type_scalar(w, node, s, ret);
    *ret = json_string(s);
    return *ret ? AS_OK : as_fail_nomem(w->err);
}

static as_status load_one(yaml_parser_t *parser, json_t **ret, struct as_err *err)
{
    yaml_document_t doc, next;
    if (!yaml_parser_load(parser, &doc))
        return as_fail(err, AS_E_INVAL, "not YAML: line %zu, column %zu: %s",
                       parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                       parser->problem ? parser->problem : "unreadable");
    struct walk w = {.doc = &doc, .err = err};
    as_status st = yaml_document_get_root_node(&doc)
                       ? AS_OK
                       : as_fail(err, AS_E_INVAL, "the document is empty");
    json_t *j = NULL;
    if (st == AS_OK)
        st = convert_node(&w, 1, 0, &j);
    yaml_document_delete(&doc);
    if (st == AS_OK && yaml_parser_load(parser, &next)) {
        if (yaml_document_get_root_node(&next))
            st = as_fail(err, AS_E_INVAL, "there is more than one document in the file");
        yaml_document_delete(&next);
    } else if (st == AS_OK) {
        st = as_fail(err, AS_E_INVAL, "not YAML: line %zu: %s", parser->problem_mark.line + 1,
                     parser->problem ? parser->problem : "unreadable");
    }
    if (st < 0) {
        json_decref(j);
        return st;
    }
    *ret = j;
    return AS_OK;
}

as_status yaml_parse(const char *text, size_t len, json_t **ret, struct as_err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return as_fail_nomem(err);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    as_status st = load_one(&parser, ret, err);
    yaml_parser_delete(&parser);
    return st;
}

/* The child of `node` named `part`; *mark is its place in the text. NULL when there is none. */
static const yaml_node_t *find_child(yaml_document_t *doc, const yaml_node_t *node,
                                     const char *part, yaml_mark_t *mark)
{
    if (node->type == YAML_MAPPING_NODE) {
        for (const yaml_node_pair_t *it = node->data.mapping.pairs.start;
             it < node->data.mapping.pairs.top; it++) {
            const yaml_node_t *key = yaml_document_get_node(doc, it->key);
            if (key->type != YAML_SCALAR_NODE ||
                strcmp((const char *)key->data.scalar.value, part) != 0)
                continue;
            *mark = key->start_mark;
            return yaml_document_get_node(doc, it->value);
        }
    }
    int64_t i;
    if (node->type == YAML_SEQUENCE_NODE && as_parse_i64(part, &i, NULL) == AS_OK && i >= 0 &&
        i < node->data.sequence.items.top - node->data.sequence.items.start) {
        const yaml_node_t *item = yaml_document_get_node(doc, node->data.sequence.items.start[i]);
        *mark = item->start_mark;
        return item;
    }
    return NULL;
}

static bool locate_node(yaml_document_t *doc, const char *pointer, yaml_mark_t *mark)
{
    char part[AS_ERR_POINTER_MAX];
    bool found = false;
    const yaml_node_t *node = yaml_document_get_root_node(doc);
    while (node && json_pointer_next(&pointer, part, sizeof part)) {
        node = find_child(doc, node, part, mark);
        found = found || node;
    }
    return found;
}

as_status yaml_locate(const char *text, size_t len, const char *pointer, size_t *ret_line,
                      size_t *ret_column, struct as_err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return as_fail_nomem(err);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    yaml_document_t doc;
    as_status st = AS_OK;
    if (yaml_parser_load(&parser, &doc)) {
        yaml_mark_t mark = {0};
        if (locate_node(&doc, pointer, &mark)) {
            *ret_line = mark.line + 1;
            *ret_column = mark.column + 1;
        } else {
            st = as_fail(err, AS_E_NOT_FOUND, "nothing at %s", pointer);
        }
        yaml_document_delete(&doc);
    } else {
        st = as_fail(err, AS_E_INVAL, "not YAML");
    }
    yaml_parser_delete(&parser);
    return st;
}
