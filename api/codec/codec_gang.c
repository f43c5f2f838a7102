/* Gangs: what ranks send, the world that they get, and the gang that people see. A rank is a place
 * in the order of the members' seats; it is computed here and stored nowhere. The world has the
 * attempt's secret and goes to ranks alone; what people see has none. */
#include "api/codec/wire.h"

#include <arpa/inet.h>
#include <string.h>

#include "api/codec/wire_priv.h"
#include "base/json.h"

/* The list of members, in the order of their ranks. */
static json_t *members_encode(const struct gang_detail *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->n_seats; i++) {
        const struct gang_seat_row *s = &d->seats[i];
        if (!s->is_member)
            continue;
        struct out o = out_begin();
        out_i64(&o, "seat", s->seat);
        out_str(&o, "runner", s->runner);
        out_str(&o, "host", s->host);
        out_str(&o, "endpoint", s->at.endpoint);
        out_str(&o, "address", s->at.address);
        out_i64(&o, "port", s->at.port);
        out_bool(&o, "ended", s->state == SEAT_ENDED);
        list = list_add(list, out_end(&o));
    }
    return list;
}

json_t *world_encode(const struct gang_detail *d)
{
    struct out o = out_begin();
    out_i64(&o, "epoch", d->gang.epoch);
    out_str(&o, "state", gang_state_format(d->gang.state));
    if (d->shows_secret)
        out_str(&o, "secret", d->gang.secret);
    out_i64(&o, "restart", d->gang.restarts);
    out_i64(&o, "max_restarts", d->gang.max_restarts);
    out_child(&o, "members", members_encode(d));
    return out_end(&o);
}

static json_t *seat_encode(const struct gang_seat_row *s, int64_t rank)
{
    struct out o = out_begin();
    out_i64(&o, "seat", s->seat);
    out_i64_or_null(&o, "rank", s->is_member, rank);
    out_str(&o, "runner", s->runner);
    out_str(&o, "host", s->host);
    out_str(&o, "state", seat_state_format(s->state));
    out_i64_or_null(&o, "joined_epoch", s->joined_epoch > 0, s->joined_epoch);
    out_i64_or_null(&o, "step", s->has_step, s->step);
    out_i64(&o, "sent_bytes", s->sent_bytes);
    out_time(&o, "since", s->since_ms);
    out_time(&o, "ended_at", s->ended_ms);
    out_str(&o, "reason", s->reason);
    return out_end(&o);
}

json_t *gang_encode(const struct gang_detail *d)
{
    const struct gang_row *g = &d->gang;
    struct out o = out_begin();
    json_t *seats = json_array();
    int64_t rank = 0, sent = 0;
    for (size_t i = 0; i < d->n_seats; i++) {
        seats = list_add(seats, seat_encode(&d->seats[i], rank));
        rank += d->seats[i].is_member;
        sent += d->seats[i].sent_bytes;
    }
    out_i64(&o, "ranks", g->ranks);
    out_i64(&o, "min_ranks", g->min_ranks);
    out_bool(&o, "elastic", g->elastic);
    out_str(&o, "state", gang_state_format(g->state));
    out_i64(&o, "epoch", g->epoch);
    out_i64_or_null(&o, "step", g->has_step, g->step);
    out_i64(&o, "deaths", g->deaths);
    out_i64(&o, "sent_bytes", sent);
    out_time(&o, "started_at", g->begun_ms);
    out_child(&o, "seats", seats);
    return out_end(&o);
}

json_t *gang_summary_encode(const struct gang_summary *g)
{
    if (g->ranks == 0)
        return json_null();
    struct out o = out_begin();
    out_i64(&o, "ranks", g->ranks);
    out_str(&o, "state", g->state);
    out_i64(&o, "epoch", g->epoch);
    out_i64(&o, "deaths", g->deaths);
    out_i64(&o, "live", g->live);
    return out_end(&o);
}

/* ---- requests ---- */

static as_status check_address(const char *address, struct as_err *err)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/address",
                      "/address: '%.60s' is no numeric address; expected one such as 10.0.0.1 or "
                      "fd00::1",
                      address);
}

as_status seat_listening_decode(const json_t *doc, struct seat_address *ret, struct as_err *err)
{
    struct json_fields f;
    struct seat_address r = {0};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_text(&f, "endpoint", JSON_REQUIRED, 1, GANG_ENDPOINT_MAX, &r.endpoint,
                               err)) < 0 ||
        (st = json_fields_text(&f, "address", JSON_REQUIRED, 2, GANG_ADDRESS_MAX, &r.address,
                               err)) < 0 ||
        (st = json_fields_i64(&f, "port", JSON_REQUIRED, 1, 65535, &r.port, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0 || (st = check_address(r.address, err)) < 0)
        return st;
    *ret = r;
    return AS_OK;
}

as_status seat_joined_decode(const json_t *doc, struct seat_joined *ret, struct as_err *err)
{
    struct json_fields f;
    struct seat_joined r = {0};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "epoch", JSON_REQUIRED, 1, INT32_MAX, &r.epoch, err)) < 0 ||
        (st = json_fields_i64(&f, "step", JSON_REQUIRED, 0, INT64_MAX, &r.step, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret = r;
    return AS_OK;
}

as_status seat_end_decode(const json_t *doc, struct seat_end *ret, struct as_err *err)
{
    struct json_fields f;
    struct seat_end r = {.has_exit_code = json_is_integer(json_object_get(doc, "exit_code")),
                         .ran_ms = -1,
                         .step = -1};
    int outcome = 0;
    int64_t signal = 0;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_word(&f, "outcome", JSON_REQUIRED, attempt_outcome_words, &outcome,
                               err)) < 0 ||
        (st = json_fields_i64(&f, "exit_code", JSON_OPTIONAL, INT32_MIN, INT32_MAX, &r.exit_code,
                              err)) < 0 ||
        (st = json_fields_i64(&f, "signal", JSON_OPTIONAL, 1, 255, &signal, err)) < 0 ||
        (st = json_fields_i64(&f, "ran_ms", JSON_OPTIONAL, 0, RUN_MAX_MS, &r.ran_ms, err)) < 0 ||
        (st = json_fields_i64(&f, "step", JSON_OPTIONAL, 0, INT64_MAX, &r.step, err)) < 0 ||
        (st = json_fields_i64(&f, "sent_bytes", JSON_OPTIONAL, 0, INT64_MAX, &r.sent_bytes, err)) <
            0 ||
        (st = json_fields_i64(&f, "epoch", JSON_OPTIONAL, 0, INT32_MAX, &r.epoch, err)) < 0 ||
        (st = json_fields_str(&f, "reason", JSON_OPTIONAL, &r.reason, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (r.reason && strlen(r.reason) > 4 * REASON_MAX)
        return as_fail_at(err, AS_E_INVAL, "/reason", "is longer than %d characters", REASON_MAX);
    if (signal > 0) {
        r.has_exit_code = true;
        r.exit_code = -signal;
    }
    r.outcome = (attempt_outcome)outcome;
    r.has_ran = r.ran_ms >= 0;
    r.has_step = r.step >= 0;
    *ret = r;
    return AS_OK;
}

static as_status seats_decode(struct json_fields *f, const char *name, struct arena *a,
                              const int64_t **ret, size_t *ret_n, struct as_err *err)
{
    json_t *list = NULL;
    char at[AS_ERR_POINTER_MAX], item[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(f, name, JSON_OPTIONAL, &list, err);
    size_t n = json_array_size(list);
    if (st < 0)
        return st;
    json_pointer_child(f->pointer, name, at);
    if (n > GANG_RANKS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "%zu seats, at most %d", n, GANG_RANKS_MAX);
    int64_t *seats = arena_alloc(a, n + 1, sizeof *seats);
    if (!seats)
        return as_fail(err, AS_E_NOMEM, "out of memory for the seats");
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, i);
        json_pointer_index(at, i, item);
        if (!json_is_integer(j) || json_integer_value(j) < 0 || json_integer_value(j) > INT32_MAX)
            return as_fail_at(err, AS_E_INVAL, item, "%s: expected the number of a seat", item);
        seats[i] = json_integer_value(j);
    }
    *ret = seats;
    *ret_n = n;
    return AS_OK;
}

as_status world_change_decode(const json_t *doc, struct arena *a, struct world_change *ret,
                              struct as_err *err)
{
    struct json_fields f;
    struct world_change r = {.step = -1};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "epoch", JSON_REQUIRED, 1, INT32_MAX, &r.epoch, err)) < 0 ||
        (st = json_fields_i64(&f, "seat", JSON_REQUIRED, 0, INT32_MAX, &r.seat, err)) < 0 ||
        (st = seats_decode(&f, "lost", a, &r.lost, &r.n_lost, err)) < 0 ||
        (st = seats_decode(&f, "left", a, &r.left, &r.n_left, err)) < 0 ||
        (st = json_fields_i64(&f, "step", JSON_OPTIONAL, 0, INT64_MAX, &r.step, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    r.has_step = r.step >= 0;
    *ret = r;
    return AS_OK;
}
