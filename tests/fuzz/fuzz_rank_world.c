/* The world of a gang as the server answers it: whatever arrives is refused with a message, or its
 * members have an order, and environment and hostfile can be made of it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "trial-runner/rank/rank_env.h"
#include "trial-runner/rank/rank_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_world(const struct rank_world *w)
{
    char *none[] = {NULL};
    struct str hosts = {0};
    rank_env_hostfile(w, &hosts);
    str_done(&hosts);
    for (size_t i = 0; i < w->n && i < 8; i++) {
        struct attempt_id id = {
            .sweep = "s", .number = 1, .attempt = 1, .seat = w->members[i].seat};
        struct child_env e = {0};
        assert(rank_world_rank(w, id.seat) == (int64_t)i);
        (void)rank_meaning(w, id.seat);
        if (child_env_init(&e, none, NULL) == AS_OK)
            (void)!rank_env_set(&e, w, &id, "/hostfile", false, NULL);
        child_env_done(&e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO j = NULL;
    struct rank_world w = {0};
    struct as_err err = {0};
    if (json_parse((const char *)data, size, &j, NULL) < 0)
        return 0;
    as_status st = rank_world_parse(j, &w, &err);
    assert(st == AS_OK || err.msg[0]);
    if (st == AS_OK)
        use_world(&w);
    rank_world_done(&w);
    return 0;
}
