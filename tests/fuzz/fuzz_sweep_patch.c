/* Changes of a sweep. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "scheduler/services/sweep_change.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO doc = NULL;
    struct sweep_patch p = {0};
    struct as_err err = {0};
    if (json_parse((const char *)data, size, &doc, NULL) != AS_OK)
        return 0;
    as_status st = sweep_patch_parse(doc, &p, &err);
    bool is_empty =
        !p.state && json_object_size(p.limits) == 0 && !p.has_priority && !p.tags && !p.has_remarks;
    if (st == AS_OK && is_empty)
        abort();
    if (st != AS_OK && err.msg[0] == '\0')
        abort(); /* a refusal says why */
    return 0;
}
