#include "cli/files/model_ref.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define ALLOWED "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static bool is_word(const char *s, size_t len)
{
    return len >= 1 && len <= MODEL_REF_MAX && strspn(s, ALLOWED) >= len && s[0] != '.' &&
           s[0] != '_' && s[0] != '-';
}

as_status model_ref_parse(const char *text, struct model_ref *ret, struct as_err *err)
{
    const char *at = strchr(text, '@');
    size_t len = at ? (size_t)(at - text) : strlen(text);
    const char *version = at ? at + 1 : "default";
    if (!is_word(text, len))
        return as_fail(err, AS_E_USAGE,
                       "expected the name of a model, NAME or NAME@VERSION, found '%.80s'", text);
    if (!is_word(version, strlen(version)))
        return as_fail(err, AS_E_USAGE,
                       "expected the number of a version or an alias after '%.*s@', found '%.80s'",
                       (int)len, text, version);
    *ret = (struct model_ref){.has_version = at != NULL};
    (void)snprintf(ret->name, sizeof ret->name, "%.*s", (int)len, text);
    (void)snprintf(ret->version, sizeof ret->version, "%s", version);
    return AS_OK;
}
