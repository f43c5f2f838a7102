/* YAML: whatever parses must be expressible as JSON, and can be searched by pointer. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err;
    size_t line, column;
    (void)!yaml_locate((const char *)data, size, "/limits/max_trials/0", &line, &column, &err);
    JSON_AUTO a = NULL;
    if (yaml_parse((const char *)data, size, &a, &err) < 0)
        return 0;
    AS_AUTO(as_freep) char *text = json_format(a);
    if (!text)
        abort();
    return 0;
}
