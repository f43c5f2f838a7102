/* Trials that people add, one body or a list of them. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "scheduler/services/addition_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char document[] =
    "{\"name\":\"s\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},\"constraints\":[{"
    "\"metric\":\"ms\",\"max\":20}],\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}}"
    ","
    "\"search\":{\"method\":\"random\",\"seed\":1},\"limits\":{\"max_trials\":5}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(arena_done) struct arena a = {0};
    JSON_AUTO body = NULL;
    struct addition_list list;
    struct as_err err = {0};
    const struct addition_target to = {.id = "s", .document = document};
    if (json_parse((const char *)data, size, &body, NULL) != AS_OK ||
        (!json_is_object(body) && !json_is_array(body)))
        return 0;
    as_status st = additions_read(&a, body, &to, &list, &err);
    if (st != AS_OK && err.msg[0] == '\0')
        abort(); /* a refusal says why */
    for (size_t i = 0; st == AS_OK && i < list.n; i++) {
        const struct added_trial *row = &list.rows[i];
        if (!row->params || (row->state == TRIAL_COMPLETED && !row->has_value))
            abort(); /* a completed trial has a value */
    }
    return 0;
}
