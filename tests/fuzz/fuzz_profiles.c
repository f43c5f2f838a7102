/* The configuration of the command line: a profile that is found has a URL. */
#include <stdlib.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "cli/files/profiles.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err = {0};
    struct profile p = {0};
    JSON_AUTO config = NULL;
    if (yaml_parse((const char *)data, size, &config, NULL) < 0)
        return 0;
    as_status st = profiles_find(config, "lab", "/config", "/home", &p, &err);
    if (st == AS_OK ? !p.url : !err.msg[0])
        abort();
    profile_done(&p);
    return 0;
}
