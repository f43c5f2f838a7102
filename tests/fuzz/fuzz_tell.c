/* What clients ask and tell, and what runners and the ranks of gangs say. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/codec/wire.h"
#include "base/json.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A refusal says why; what was accepted is within the bounds that the document gives. */
static void hold(bool ok)
{
    if (!ok)
        abort();
}

static void hold_client(const char *client)
{
    hold(client && strlen(client) >= 1 && strlen(client) <= CLIENT_NAME_MAX);
    hold(!strpbrk(client, " \t\n/\\\"'%<>"));
}

static void try_ask(const json_t *doc)
{
    struct ask_request r;
    struct as_err err = {0};
    int64_t wait_ms = 0;
    if (ask_decode(doc, &r, &wait_ms, &err) < 0) {
        hold(err.msg[0]);
        return;
    }
    hold_client(r.client);
    hold(r.count >= 1 && r.count <= ASK_MAX_COUNT && wait_ms >= 0 && wait_ms <= 60000);
    hold(r.lease_ms >= ASK_LEASE_MIN_MS && r.lease_ms <= ASK_LEASE_MAX_MS);
}

static void try_tells(const json_t *doc, struct arena *a)
{
    struct ask_ref ref = {0};
    struct measurement_list list = {0};
    struct completion c = {0};
    struct as_err err = {0};
    int64_t lease_ms = 0;
    if (tell_measurements_decode(doc, a, &ref, &list, &err) == AS_OK)
        hold_client(ref.client);
    else
        hold(err.msg[0]);
    for (size_t i = 0; i < list.n; i++)
        hold(list.rows[i].step >= 0 && list.rows[i].metric);
    if (tell_complete_decode(doc, a, &ref, &c, &err) == AS_OK)
        hold(c.outcome != OUTCOME_RETRY && c.outcome != OUTCOME_TIMEOUT && c.n_metrics <= 100);
    else
        hold(err.msg[0]);
    if (tell_heartbeat_decode(doc, &ref, &lease_ms, &err) < 0)
        hold(err.msg[0]);
}

/* The requests of runners. */
static void try_runner(const json_t *doc, struct arena *a)
{
    struct heartbeat beat = {0};
    struct runner_register reg = {0};
    struct completion c = {0};
    struct as_err err = {0};
    if (heartbeat_decode(doc, a, &beat, &err) < 0)
        hold(err.msg[0]);
    hold(beat.n_said <= beat.n && beat.n <= RUNNER_HELD_MAX);
    for (size_t i = 0; i < beat.n_said; i++)
        hold(beat.said[i].phase <= RUN_ENDED && beat.said[i].ran_ms >= 0 &&
             beat.said[i].ran_ms <= RUN_MAX_MS && beat.said[i].ref.sweep);
    if (runner_register_decode(doc, a, &reg, &err) < 0)
        hold(err.msg[0]);
    hold(reg.n_said <= reg.n_resume);
    if (completion_decode(doc, a, &c, &err) < 0)
        hold(err.msg[0]);
    hold(!c.has_ran || (c.ran_ms >= 0 && c.ran_ms <= RUN_MAX_MS));
}

/* The requests of ranks, and the seats that runners list. */
static void try_ranks(const json_t *doc, struct arena *a)
{
    struct seat_address at = {0};
    struct seat_joined joined = {0};
    struct seat_end end = {0};
    struct world_change change = {0};
    struct heartbeat beat = {0};
    struct claim_request claim = {0};
    struct as_err err = {0};
    int64_t wait_ms = 0;
    if (seat_listening_decode(doc, &at, &err) == AS_OK)
        hold(strlen(at.address) <= GANG_ADDRESS_MAX && at.port >= 1 && at.port <= 65535 &&
             at.endpoint[0]);
    else
        hold(err.msg[0]);
    if (seat_joined_decode(doc, &joined, &err) == AS_OK)
        hold(joined.epoch >= 1 && joined.step >= 0);
    if (seat_end_decode(doc, &end, &err) == AS_OK)
        hold((!end.has_ran || end.ran_ms >= 0) && (!end.has_step || end.step >= 0));
    if (world_change_decode(doc, a, &change, &err) == AS_OK)
        hold(change.epoch >= 1 && change.n_lost <= GANG_RANKS_MAX &&
             change.n_left <= GANG_RANKS_MAX);
    for (size_t i = 0; i < change.n_lost; i++)
        hold(change.lost[i] >= 0);
    if (heartbeat_decode(doc, a, &beat, &err) == AS_OK)
        hold(beat.n + beat.n_seats <= RUNNER_HELD_MAX);
    for (size_t i = 0; i < beat.n_seats; i++)
        hold(beat.seats[i].ref.seat >= 0 && beat.seats[i].ref.attempt.sweep);
    if (claim_decode(doc, a, &claim, &wait_ms, &err) == AS_OK)
        hold(claim.seats >= 0 && claim.seats <= claim.max_trials);
}

static void hold_part(const struct batched_part *p, const char *list)
{
    if (p->fault) {
        hold(p->fault->code < 0 && p->fault->msg[0] && as_starts_with(p->fault->pointer, list));
        return;
    }
    hold(p->ref.sweep && p->ref.number >= 0 && p->ref.attempt >= 1);
    hold(!p->has_seat || (p->seat >= 0 && p->epoch >= 1));
}

/* Many parts of a runner: one that is malformed has its fault, the others are within bounds. */
static void try_batch(const json_t *doc, struct arena *a)
{
    struct batch_request r = {0};
    struct as_err err = {0};
    if (batch_decode(doc, a, &r, &err) < 0) {
        hold(err.msg[0]);
        return;
    }
    hold(r.n_ends + r.n_reports <= BATCH_PARTS_MAX);
    for (size_t i = 0; i < r.n_ends; i++) {
        const struct completion *c = &r.ends[i].end;
        hold_part(&r.ends[i].part, "/ends/");
        hold(r.ends[i].part.fault || (c->outcome <= OUTCOME_PRUNED && c->n_metrics <= 100 &&
                                      (!c->has_ran || c->ran_ms <= RUN_MAX_MS)));
    }
    for (size_t i = 0; i < r.n_reports; i++) {
        const struct measurement_list *list = &r.reports[i].report.points;
        hold_part(&r.reports[i].part, "/measurements/");
        for (size_t k = 0; !r.reports[i].part.fault && k < list->n; k++)
            hold(list->rows[k].step >= 0 && list->rows[k].metric);
    }
    hold(!r.claim.is_asked || r.claim.fault || r.claim.claim.claim_id);
}

/* The digests of an upload's parts. */
static void try_parts(const json_t *doc, struct arena *a)
{
    struct parts_request r = {0};
    struct as_err err = {0};
    if (parts_decode(doc, a, &r, &err) < 0) {
        hold(err.msg[0]);
        return;
    }
    hold(r.size >= 1 && r.n <= PARTS_MAX);
    for (size_t i = 0; i < r.n; i++)
        hold(r.sha256[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO doc = NULL;
    struct arena a = {0};
    if (json_parse((const char *)data, size, &doc, NULL) != AS_OK)
        return 0;
    try_ask(doc);
    try_tells(doc, &a);
    try_runner(doc, &a);
    try_ranks(doc, &a);
    try_parts(doc, &a);
    try_batch(doc, &a);
    arena_done(&a);
    return 0;
}
