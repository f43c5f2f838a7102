/* Checks JSON values against api/openapi.yaml, for the tests of the API.
 *
 * It implements the part of JSON Schema that the document uses, and nothing more: a keyword that it
 * does not know would otherwise pass unchecked, so the document must not use one without a check
 * here. Objects of an allOf are joined before they are checked, because additionalProperties: false
 * in one would refuse the properties of the other. */
#include "tests/support/schema_check.h"

#include <ctype.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/yaml_reader.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"

static json_t *document;
static struct as_err document_err;

static void load_document(void)
{
    AS_AUTO(as_freep) char *path = file_join(source_root(), "api/openapi.yaml");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = file_read(path, 4 << 20, &text, &len, &document_err);
    if (st == AS_OK)
        st = yaml_parse(text, len, &document, &document_err);
    if (st != AS_OK)
        document = NULL;
}

const json_t *openapi_document(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* several threads check answers */
    (void)pthread_once(&once, load_document);
    ck_assert_msg(document != NULL, "%s", document_err.msg);
    return document;
}

const json_t *openapi_ref(const char *ref)
{
    const json_t *at = openapi_document();
    if (strncmp(ref, "#/", 2) != 0)
        return NULL;
    for (const char *s = ref + 2; at && *s;) {
        size_t n = strcspn(s, "/");
        at = json_object_getn(at, s, n);
        s += n + (s[n] == '/');
    }
    return at;
}

static bool misfit(char *msg, const char *path, const char *what, const char *more)
{
    (void)snprintf(msg, SCHEMA_MSG_MAX, "%s: %s %s", *path ? path : "/", what, more ? more : "");
    return false;
}

static bool is_type(const json_t *value, const char *type)
{
    if (strcmp(type, "object") == 0)
        return json_is_object(value);
    if (strcmp(type, "array") == 0)
        return json_is_array(value);
    if (strcmp(type, "string") == 0)
        return json_is_string(value);
    if (strcmp(type, "integer") == 0)
        return json_is_integer(value);
    if (strcmp(type, "number") == 0)
        return json_is_number(value);
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value);
    return strcmp(type, "null") == 0 && json_is_null(value);
}

static bool check_type(const json_t *type, const json_t *value, const char *path, char *msg)
{
    if (json_is_string(type))
        return is_type(value, json_string_value(type)) ||
               misfit(msg, path, "is not of type", json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++)
        if (is_type(value, json_string_value(json_array_get(type, i))))
            return true;
    return misfit(msg, path, "is of none of the types", NULL);
}

static bool check(const json_t *schema, const json_t *value, const char *path, char *msg);

static bool check_object(const json_t *schema, const json_t *value, const char *path, char *msg)
{
    const json_t *props = json_object_get(schema, "properties");
    const json_t *extra = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i))))
            return misfit(msg, path, "lacks", json_string_value(json_array_get(required, i)));
    for (void *it = json_object_iter((json_t *)value); it;
         it = json_object_iter_next((json_t *)value, it)) {
        char child[200];
        const char *key = json_object_iter_key(it);
        const json_t *sub = json_object_get(props, key);
        (void)snprintf(child, sizeof child, "%s/%s", path, key);
        if (!sub && json_is_false(extra))
            return misfit(msg, child, "is not in the schema", NULL);
        if (!sub && props && !extra)
            return misfit(msg, child, "is not among the properties", NULL);
        sub = sub ? sub : json_is_object(extra) ? extra : NULL;
        if (sub && !check(sub, json_object_iter_value(it), child, msg))
            return false;
    }
    return true;
}

static bool check_one_of(const json_t *list, const json_t *value, const char *path, char *msg)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (check(json_array_get(list, i), value, path, msg))
            return true;
    return false;
}

static bool check_enum(const json_t *list, const json_t *value, const char *path, char *msg)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return misfit(msg, path, "is none of the enum's values", json_string_value(value));
}

/* allOf of objects: check their joined properties, so that none refuses the properties of
 * another. */
static bool check_all_of(const json_t *list, const json_t *value, const char *path, char *msg)
{
    JSON_AUTO merged = json_pack("{s:s, s:{}, s:[]}", "type", "object", "properties", "required");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *part = json_array_get(list, i);
        const char *ref = json_string_value(json_object_get(part, "$ref"));
        part = ref ? openapi_ref(ref) : part;
        (void)json_object_update(json_object_get(merged, "properties"),
                                 json_object_get(part, "properties"));
        (void)json_array_extend(json_object_get(merged, "required"),
                                json_object_get(part, "required"));
    }
    return check(merged, value, path, msg);
}

static bool check_text(const json_t *pattern, const json_t *value, const char *path, char *msg)
{
    regex_t re;
    const char *text = json_string_value(pattern);
    ck_assert_msg(regcomp(&re, text, REG_EXTENDED | REG_NOSUB) == 0, "the pattern %s", text);
    bool fits = regexec(&re, json_string_value(value), 0, NULL, 0) == 0;
    regfree(&re);
    return fits || misfit(msg, path, "does not match", text);
}

/* The bounds of numbers, texts and lists. */
static bool check_bounds(const json_t *schema, const json_t *value, const char *path, char *msg)
{
    const json_t *min = json_object_get(schema, "minimum");
    const json_t *above = json_object_get(schema, "exclusiveMinimum");
    const json_t *max = json_object_get(schema, "maximum");
    const json_t *least = json_object_get(schema, "minItems");
    const json_t *pattern = json_object_get(schema, "pattern");
    double v = json_number_value(value);
    if (json_is_number(value) &&
        ((min && v < json_number_value(min)) || (above && v <= json_number_value(above)) ||
         (max && v > json_number_value(max))))
        return misfit(msg, path, "is out of bounds", NULL);
    if (least && json_is_array(value) &&
        (json_int_t)json_array_size(value) < json_integer_value(least))
        return misfit(msg, path, "has too few items", NULL);
    return !pattern || !json_is_string(value) || check_text(pattern, value, path, msg);
}

static bool check(const json_t *schema, const json_t *value, const char *path, char *msg)
{
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    if (ref)
        return check(openapi_ref(ref), value, path, msg);
    const json_t *one_of = json_object_get(schema, "oneOf");
    const json_t *all_of = json_object_get(schema, "allOf");
    const json_t *type = json_object_get(schema, "type");
    const json_t *list = json_object_get(schema, "enum");
    const json_t *constant = json_object_get(schema, "const");
    const json_t *items = json_object_get(schema, "items");
    if (one_of && !check_one_of(one_of, value, path, msg))
        return false;
    if (all_of && !check_all_of(all_of, value, path, msg))
        return false;
    if (type && !check_type(type, value, path, msg))
        return false;
    if (list && !check_enum(list, value, path, msg))
        return false;
    if (constant && !json_equal(constant, value))
        return misfit(msg, path, "is not the constant", json_string_value(constant));
    if (!check_bounds(schema, value, path, msg))
        return false;
    for (size_t i = 0; items && i < json_array_size(value); i++) {
        char child[200];
        (void)snprintf(child, sizeof child, "%s/%zu", path, i);
        if (!check(items, json_array_get(value, i), child, msg))
            return false;
    }
    return !json_is_object(value) || all_of || check_object(schema, value, path, msg);
}

bool schema_check(const json_t *schema, const json_t *value, char msg[SCHEMA_MSG_MAX])
{
    return check(schema, value, "", msg);
}

json_t *ck_schema(const char *schema, json_t *j)
{
    char ref[80], msg[SCHEMA_MSG_MAX];
    struct as_err err;
    JSON_AUTO back = NULL;
    ck_assert_ptr_nonnull(j);
    (void)snprintf(ref, sizeof ref, "#/components/schemas/%s", schema);
    AS_AUTO(as_freep) char *text = json_format_ordered(j);
    ck_assert_msg(schema_check(openapi_ref(ref), j, msg), "%s: %s in %s", schema, msg, text);
    ck_assert_msg(json_parse(text, strlen(text), &back, &err) == AS_OK, "%s", err.msg);
    ck_assert_msg(json_equal(j, back), "%s changed on its way: %s", schema, text);
    return j;
}

const json_t *openapi_answer(const char *path, const char *method, int status, const char *type,
                             bool *ret_listed)
{
    char lower[16], code[16];
    size_t n = 0;
    for (; method[n] && n < sizeof lower - 1; n++)
        lower[n] = (char)tolower((unsigned char)method[n]);
    lower[n] = '\0';
    (void)snprintf(code, sizeof code, "%d", status);
    const json_t *op =
        json_object_get(json_object_get(json_object_get(openapi_document(), "paths"), path), lower);
    const json_t *answer = json_object_get(json_object_get(op, "responses"), code);
    const char *ref = json_string_value(json_object_get(answer, "$ref"));
    answer = ref ? openapi_ref(ref) : answer;
    *ret_listed = answer != NULL;
    return json_object_get(json_object_get(json_object_get(answer, "content"), type), "schema");
}
