/* Files of known results, read as CSV and as JSON: whatever is taken is a body of parameters that
 * the space allows, and a result or a failure or neither. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/files/known_results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char sweep_text[] =
    "{\"metrics\":[{\"name\":\"loss\",\"goal\":\"minimize\"}],\"constraints\":[{\"metric\":\"ms\","
    "\"max\":20}],\"document\":{\"parameters\":{\"lr\":{\"type\":\"float\",\"min\":0.0001,\"max\":"
    "1,"
    "\"scale\":\"log\"},\"width\":{\"type\":\"int\",\"min\":16,\"max\":512},\"opt\":{\"type\":"
    "\"categorical\",\"values\":[\"sgd\",\"adamw\",2]},\"mom\":{\"type\":\"float\",\"min\":0,"
    "\"max\":"
    "1,\"when\":{\"opt\":\"sgd\"}}},\"parameter_constraints\":[\"width * lr <= 400\"]}}";

static void read_as(const char *name, const char *bytes, size_t size, const json_t *sweep)
{
    struct as_err err = {0};
    struct known_results f = {0};
    if (known_results_parse(name, bytes, size, sweep, &f, &err) < 0) {
        if (!err.msg[0])
            abort();
        return;
    }
    for (size_t i = 0; i < f.n; i++) {
        const json_t *body = f.trials[i].body;
        bool is_known = json_is_object(json_object_get(body, "metrics"));
        bool is_failed = as_streq(json_string_value(json_object_get(body, "state")), "failed");
        if (json_object_size(json_object_get(body, "params")) < 3 || (is_known && is_failed))
            abort();
    }
    known_results_done(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO sweep = NULL;
    struct as_err err;
    if (json_parse(sweep_text, strlen(sweep_text), &sweep, &err) < 0)
        abort();
    read_as("f.csv", (const char *)data, size, sweep);
    read_as("f.json", (const char *)data, size, sweep);
    return 0;
}
