/* Parses and checks; everything is bounded before memory is taken. Members arrive in the order of
 * their seats, which is checked, because a rank is a place in that order and all ranks must agree
 * on it. The attempt's secret is never part of a message. */
#include "trial-runner/rank/rank_world.h"

#include <string.h>

#include "base/json.h"

#define MAX_MEMBERS 4096
#define MAX_SEAT INT64_C(2147483647)
#define MAX_ENDPOINT 200
#define MAX_NAME 255

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The message does not show the text: it may be a secret. */
static as_status read_secret(const char *text, struct rank_world *w, struct as_err *err)
{
    bool ok = strlen(text) == sizeof w->secret * 2;
    for (size_t i = 0; ok && i < sizeof w->secret; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        ok = high >= 0 && low >= 0;
        w->secret[i] = (uint8_t)(16 * high + low);
    }
    if (!ok)
        return as_fail_at(err, AS_E_INVAL, "/secret", "/secret: expected %d hexadecimal digits",
                          2 * GANG_SECRET_BYTES);
    w->has_secret = true;
    return AS_OK;
}

static as_status read_member(const json_t *j, size_t i, struct gang_member *ret, struct as_err *err)
{
    struct json_fields f;
    char pointer[40];
    as_status st;
    (void)snprintf(pointer, sizeof pointer, "/members/%zu", i);
    *ret = (struct gang_member){.runner = "", .host = "", .endpoint = "", .address = ""};
    if ((st = json_fields_init(&f, j, pointer, err)) < 0 ||
        (st = json_fields_i64(&f, "seat", JSON_REQUIRED, 0, MAX_SEAT, &ret->seat, err)) < 0 ||
        (st = json_fields_text(&f, "runner", JSON_OPTIONAL, 0, MAX_NAME, &ret->runner, err)) < 0 ||
        (st = json_fields_text(&f, "host", JSON_OPTIONAL, 0, MAX_NAME, &ret->host, err)) < 0 ||
        (st = json_fields_text(&f, "endpoint", JSON_OPTIONAL, 0, MAX_ENDPOINT, &ret->endpoint,
                               err)) < 0 ||
        (st = json_fields_text(&f, "address", JSON_OPTIONAL, 0, MAX_NAME, &ret->address, err)) < 0)
        return st;
    return json_fields_i64(&f, "port", JSON_OPTIONAL, 0, UINT16_MAX, &ret->port, err);
}

static as_status read_members(const json_t *list, struct rank_world *w, struct as_err *err)
{
    w->n = json_array_size(list);
    if (w->n > MAX_MEMBERS)
        return as_fail_at(err, AS_E_INVAL, "/members", "/members: found %zu, expected at most %d",
                          w->n, MAX_MEMBERS);
    if (w->n == 0)
        return AS_OK;
    if (!(w->members = as_calloc(w->n, sizeof *w->members)))
        return as_fail_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        as_status st = read_member(json_array_get(list, i), i, &w->members[i], err);
        if (st < 0)
            return st;
        if (i > 0 && w->members[i].seat <= w->members[i - 1].seat)
            return as_fail_at(err, AS_E_INVAL, "/members",
                              "/members/%zu/seat: expected the order of the seats", i);
    }
    return AS_OK;
}

static as_status read_world(json_t *j, struct rank_world *w, struct as_err *err)
{
    static const char *const states[] = {"gathering", "running", "waiting", "over", NULL};
    struct json_fields f;
    json_t *members = NULL;
    const char *secret = NULL;
    int state = 0;
    as_status st;
    if ((st = json_fields_init(&f, j, "", err)) < 0 ||
        (st = json_fields_word(&f, "state", JSON_REQUIRED, states, &state, err)) < 0 ||
        (st = json_fields_i64(&f, "epoch", JSON_REQUIRED, 0, INT32_MAX, &w->epoch, err)) < 0 ||
        (st = json_fields_i64(&f, "restart", JSON_OPTIONAL, 0, INT32_MAX, &w->restarts, err)) < 0 ||
        (st = json_fields_i64(&f, "max_restarts", JSON_OPTIONAL, 0, INT32_MAX, &w->max_restarts,
                              err)) < 0 ||
        (st = json_fields_str(&f, "secret", JSON_OPTIONAL, &secret, err)) < 0 ||
        (st = json_fields_array(&f, "members", JSON_REQUIRED, &members, err)) < 0 ||
        (secret && (st = read_secret(secret, w, err)) < 0))
        return st;
    w->state = (gang_state)state;
    return read_members(members, w, err);
}

as_status rank_world_parse(json_t *j, struct rank_world *ret, struct as_err *err)
{
    struct rank_world w = {0};
    as_status st = read_world(j, &w, err);
    if (st < 0) {
        rank_world_done(&w);
        return st;
    }
    w.json = json_incref(j);
    *ret = w;
    return AS_OK;
}

void rank_world_done(struct rank_world *w)
{
    json_decref(w->json);
    free(w->members);
    *w = (struct rank_world){0};
}

int64_t rank_world_rank(const struct rank_world *w, int64_t seat)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->members[i].seat == seat)
            return (int64_t)i;
    return -1;
}
