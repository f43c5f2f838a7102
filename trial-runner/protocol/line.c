#include "trial-runner/protocol/line.h"

#include <string.h>

as_status line_parse(const char *line, size_t len, const char *field, const char *const *words,
                     json_t **ret_doc, struct json_fields *ret, int *ret_kind, struct as_err *err)
{
    if (len > LINE_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE, "a line of %zu bytes, expected at most %zu", len,
                       LINE_MAX_BYTES);
    as_status st = json_parse(line, len, ret_doc, err);
    if (st == AS_OK)
        st = json_fields_init(ret, *ret_doc, "", err);
    return st < 0 ? st : json_fields_word(ret, field, JSON_REQUIRED, words, ret_kind, err);
}

as_status line_append(json_t *tree, struct str *out, struct as_err *err)
{
    JSON_AUTO owned = tree;
    AS_AUTO(as_freep) char *text = owned ? json_format_ordered(owned) : NULL;
    if (!text)
        return as_fail_nomem(err);
    size_t len = strlen(text);
    if (len > LINE_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE, "a line of %zu bytes, expected at most %zu", len,
                       LINE_MAX_BYTES);
    str_add(out, text, len);
    str_putc(out, '\n');
    return str_check(out, err);
}
