/* Handlers of the operations that ranks call: each reads the attempt (and seat) of the path with
 * the runner's secret, decodes, makes one call of scheduler/lifecycle/gangs.h, and answers with
 * the world, so that a rank never needs a second request to know it. h_world_get() is the
 * long-poll: it waits under a key of gang and epoch, so that one query serves all waiting ranks
 * (decision 5011). */
#include "api/server/handlers.h"

#include "api/server/call.h"
#include "api/codec/wire.h"
#include "scheduler/lifecycle/gangs.h"

#define WORLD_WAIT_MAX_MS 20000

/* The attempt that the path names, and who asks. */
static as_status read_attempt(const struct call *c, struct attempt_ref *ret,
                              struct gang_caller *ret_by, struct as_err *err)
{
    struct attempt_ref ref = {.sweep = call_param(c, "sweep")};
    *ret_by = (struct gang_caller){.is_admin = c->who.role == ROLE_ADMIN,
                                   .is_runner = c->who.role == ROLE_RUNNER};
    as_status st = call_param_i64(c, "number", 0, &ref.number, err);
    if (st < 0)
        return st;
    st = call_param_i64(c, "attempt", 1, &ref.attempt, err);
    if (st < 0)
        return st;
    *ret = ref;
    return call_runner_secret(c, &ret_by->secret, err);
}

static as_status read_seat(const struct call *c, struct seat_ref *ret, struct gang_caller *ret_by,
                           struct as_err *err)
{
    as_status st = read_attempt(c, &ret->attempt, ret_by, err);
    return st < 0 ? st : call_param_i64(c, "seat", 0, &ret->seat, err);
}

as_status h_seat_put(struct call *c, struct as_err *err)
{
    struct seat_ref ref;
    struct gang_caller by;
    struct seat_address at;
    struct gang_detail world;
    as_status st = read_seat(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = seat_listening_decode(c->body, &at, err);
    if (st < 0)
        return st;
    st = gang_listen(c->db, c->arena, &ref, &by, &at, &world, err);
    return st < 0 ? st : call_ok(c, world_encode(&world), err);
}

as_status h_seat_join(struct call *c, struct as_err *err)
{
    struct seat_ref ref;
    struct gang_caller by;
    struct seat_joined joined;
    struct gang_detail world;
    as_status st = read_seat(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = seat_joined_decode(c->body, &joined, err);
    if (st < 0)
        return st;
    st = gang_join(c->db, c->arena, &ref, &by, &joined, &world, err);
    return st < 0 ? st : call_ok(c, world_encode(&world), err);
}

as_status h_seat_end(struct call *c, struct as_err *err)
{
    struct seat_ref ref;
    struct gang_caller by;
    struct seat_end end;
    struct gang_detail world;
    as_status st = read_seat(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = seat_end_decode(c->body, &end, err);
    if (st < 0)
        return st;
    st = gang_end(c->db, c->arena, &ref, &by, &end, &world, err);
    return st < 0 ? st : call_ok(c, world_encode(&world), err);
}

as_status h_world_get(struct call *c, struct as_err *err)
{
    struct attempt_ref ref;
    struct gang_caller by;
    struct gang_detail world;
    int64_t after = 0, wait_ms = 0;
    as_status st = read_attempt(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = call_query_i64(c, "after", 0, INT32_MAX, &after, err);
    if (st < 0)
        return st;
    st = call_query_i64(c, "wait_ms", 0, WORLD_WAIT_MAX_MS, &wait_ms, err);
    if (st < 0)
        return st;
    bool may_wait = call_may_wait(c, wait_ms);
    st = gang_world_get(c->db, c->arena, &ref, &by, &world, err);
    if (st < 0)
        return st;
    if (may_wait && world.gang.epoch <= after && world.gang.state != GANG_OVER) {
        call_wait(c, gang_wait_key(world.gang.id, after));
        return AS_OK;
    }
    return call_ok(c, world_encode(&world), err);
}

as_status h_world_change(struct call *c, struct as_err *err)
{
    struct attempt_ref ref;
    struct gang_caller by;
    struct world_change change;
    struct gang_detail world;
    as_status st = read_attempt(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = world_change_decode(c->body, c->arena, &change, err);
    if (st < 0)
        return st;
    st = gang_change(c->db, c->arena, &ref, &by, &change, &world, err);
    return st < 0 ? st : call_ok(c, world_encode(&world), err);
}

as_status h_gang_get(struct call *c, struct as_err *err)
{
    struct attempt_ref ref;
    struct gang_caller by;
    struct gang_detail gang;
    as_status st = read_attempt(c, &ref, &by, err);
    if (st < 0)
        return st;
    st = gang_get(c->db, c->arena, &ref, &by, &gang, err);
    return st < 0 ? st : call_ok(c, gang_encode(&gang), err);
}
