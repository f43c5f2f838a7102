/* Exports for replay: whatever history is taken, its suggestions can be made again, or there is a
 * reason why not; and so can its bounds of what was left to gain. */
#include <stdlib.h>

#include "base/json.h"
#include "search/regret_replay.h"
#include "search/replay.h"

#define MAX_STEPS 12 /* a suggestion of gp costs milliseconds */
#define MAX_TRIALS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err = {0};
    struct replay_step step;
    JSON_AUTO tree = NULL;
    AS_AUTO(replay_freep) struct replay *r = NULL;
    if (json_parse((const char *)data, size, &tree, &err) < 0)
        return 0;
    const json_t *items = json_object_get(tree, "items");
    if (json_array_size(items) > MAX_TRIALS ||
        replay_create(json_object_get(tree, "sweep"), items, &r, &err) < 0)
        return 0;
    for (int i = 0; i < MAX_STEPS && replay_next(r, &step, &err) == AS_OK; i++)
        if (!step.again && !step.why)
            abort();
    const json_t *checks = json_object_get(json_object_get(tree, "sweep"), "regret_checks");
    for (size_t i = 0; i < json_array_size(checks) && i < MAX_STEPS; i++) {
        struct regret_step bound;
        if (regret_replay_step(r, checks, i, &bound, &err) == AS_OK &&
            bound.is_same != (bound.why[0] == '\0'))
            abort();
    }
    return 0;
}
