/* The text of the file is kept beside its tree. The server's checks are the only ones; when one of
 * them fails, document_explain() finds the line of the error's JSON pointer in the text
 * (yaml_locate) and puts it before the message. `--set` changes the tree and not the text. */
#include "cli/files/document.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/yaml_reader.h"

void document_done(struct document *d)
{
    free(d->name);
    free(d->text);
    json_decref(d->tree);
    *d = (struct document){0};
}

as_status document_read(const char *path, struct document *ret, struct as_err *err)
{
    AS_AUTO(document_done) struct document d = {0};
    bool is_stdin = as_streq(path, "-");
    as_status st = file_read_input(path, DOCUMENT_MAX_BYTES, &d.text, &d.len, err);
    if (st < 0)
        return st;
    d.name = as_strdup(is_stdin ? "standard input" : path);
    if (!d.name || !d.text)
        return as_fail_nomem(err);
    st = as_ends_with(path, ".json") ? json_parse(d.text, d.len, &d.tree, err)
                                     : yaml_parse(d.text, d.len, &d.tree, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s", d.name);
    if (!json_is_object(d.tree))
        return as_fail(err, AS_E_INVAL, "%s: expected a document with fields, found %s", d.name,
                       json_type_name(d.tree));
    *ret = d;
    d = (struct document){0};
    return AS_OK;
}

/* Find the object that holds the last part of a dotted path; *ret_last is that part. Missing
 * objects are created. */
static as_status descend(json_t *tree, char *path, json_t **ret, char **ret_last,
                         struct as_err *err)
{
    json_t *at = tree;
    char *part = path;
    for (char *dot; (dot = strchr(part, '.')); part = dot + 1) {
        *dot = 0;
        json_t *next = json_object_get(at, part);
        if (!next) {
            next = json_object();
            if (json_object_set_new(at, part, next) != 0)
                return as_fail_nomem(err);
        }
        if (!json_is_object(next))
            return as_fail(err, AS_E_USAGE, "--set: %.60s is %s and has no fields", part,
                           json_type_name(next));
        at = next;
    }
    if (!*part)
        return as_fail(err, AS_E_USAGE, "--set: the name of a field is empty");
    *ret = at;
    *ret_last = part;
    return AS_OK;
}

as_status document_set(struct document *d, const char *assignment, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = as_strdup(assignment);
    if (!path)
        return as_fail_nomem(err);
    char *equals = strchr(path, '='), *last = NULL;
    json_t *holder = NULL, *value = NULL;
    if (!equals || equals == path)
        return as_fail(err, AS_E_USAGE, "--set: expected FIELD=VALUE, found '%.80s'", assignment);
    *equals = 0;
    as_status st = yaml_parse(equals + 1, strlen(equals + 1), &value, err);
    if (st < 0)
        return as_err_prefix(err, st == AS_E_INVAL ? AS_E_USAGE : st, "--set %s", path);
    st = descend(d->tree, path, &holder, &last, err);
    if (st < 0) {
        json_decref(value);
        return st;
    }
    if (json_object_set_new(holder, last, value) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}

as_status document_explain(const struct document *d, as_status st, struct as_err *err)
{
    size_t line, column;
    if (!err || !err->pointer[0])
        return st;
    char pointer[AS_ERR_POINTER_MAX], place[AS_ERR_MSG_MAX];
    (void)snprintf(pointer, sizeof pointer, "%s", err->pointer);
    err->pointer[0] = 0;
    /* The server's message may begin with the pointer itself. */
    bool named = as_starts_with(err->msg, pointer);
    if (yaml_locate(d->text, d->len, pointer, &line, &column, NULL) == AS_OK)
        (void)snprintf(place, sizeof place, "%s:%zu:%zu%s%s", d->name, line, column,
                       named ? "" : ": ", named ? "" : pointer);
    else
        (void)snprintf(place, sizeof place, "%s%s%s", d->name, named ? "" : ": ",
                       named ? "" : pointer);
    return as_err_prefix(err, st, "%s", place);
}
