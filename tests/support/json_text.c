#include "tests/support/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"

json_t *json_plain(const char *text)
{
    struct as_err err = {0};
    json_t *j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return j;
}

json_t *json_of(const char *text)
{
    char *copy = strdup(text);
    ck_assert_ptr_nonnull(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_t *j = json_plain(copy);
    free(copy);
    return j;
}
