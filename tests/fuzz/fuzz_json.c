/* Strict JSON: whatever parses must format and parse again to an equal tree. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err;
    JSON_AUTO a = NULL;
    JSON_AUTO b = NULL;
    if (json_parse((const char *)data, size, &a, &err) < 0)
        return 0;
    AS_AUTO(as_freep) char *text = json_format(a);
    if (!text || json_parse(text, strlen(text), &b, &err) < 0 || !json_equal(a, b))
        abort();
    return 0;
}
