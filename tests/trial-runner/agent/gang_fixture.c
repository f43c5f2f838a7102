#include "tests/trial-runner/agent/gang_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/api/client/http_server.h"

#define SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct gang_server gang;

static int members(void)
{
    int n = 0;
    for (int i = 0; i < GANG_SEATS; i++)
        n += gang.seats[i].member;
    return n;
}

static int leader(void)
{
    for (int i = 0; i < GANG_SEATS; i++)
        if (gang.seats[i].member)
            return i;
    return -1;
}

static void next_epoch(void)
{
    gang.epoch++;
}

static void answer_world(struct server_answer *a)
{
    json_t *list = json_array();
    const char *state = gang.over                    ? "over"
                        : gang.epoch == 0            ? "gathering"
                        : members() < gang.min_ranks ? "waiting"
                                                     : "running";
    for (int i = 0; i < GANG_SEATS; i++)
        if (gang.seats[i].member)
            json_array_append_new(
                list, json_pack("{s:i,s:s,s:s,s:s,s:s,s:I}", "seat", i, "runner", "r", "host", "h",
                                "endpoint", gang.seats[i].endpoint, "address",
                                gang.seats[i].address, "port", (json_int_t)gang.seats[i].port));
    char *text = json_format(list);
    answer_json(a, 200,
                "{\"epoch\":%lld,\"state\":\"%s\",\"secret\":\"" SECRET
                "\",\"restart\":1,\"max_restarts\":3,\"members\":%s}",
                (long long)gang.epoch, state, text);
    free(text);
    json_decref(list);
}

static void wait_a_little(void)
{
    fx_unlock();
    clock_sleep_ms(2);
    fx_lock();
}

/* Have all told where they listen, but the one that is to be alone? */
static bool others_told(void)
{
    for (int i = 0; i < gang.ranks; i++)
        if (i != gang.alone && !gang.seats[i].told)
            return false;
    return true;
}

static void tell(struct gang_seat *s, const json_t *body, struct server_answer *a)
{
    bool all = true;
    while (gang.alone > 0 && s == &gang.seats[gang.alone] && !others_told())
        wait_a_little(); /* who tells last gets the world with the answer */
    (void)snprintf(s->endpoint, sizeof s->endpoint, "%s",
                   json_string_value(json_object_get(body, "endpoint")));
    (void)snprintf(s->address, sizeof s->address, "%s",
                   json_string_value(json_object_get(body, "address")));
    s->port = json_integer_value(json_object_get(body, "port"));
    bool again = s->told;
    s->told = true;
    for (int i = 0; i < gang.ranks; i++)
        all = all && gang.seats[i].told;
    if (gang.epoch == 0 && all) {
        for (int i = 0; i < gang.ranks; i++)
            gang.seats[i].member = true;
        next_epoch();
    } else if (gang.epoch > 0 && gang.elastic && !again) {
        s->member = true;
        next_epoch();
    }
    answer_world(a);
}

static void leave_out(const json_t *list)
{
    size_t i;
    const json_t *seat;
    json_array_foreach(list, i, seat) gang.seats[json_integer_value(seat)].member = false;
}

static void change(json_t *body, struct server_answer *a)
{
    json_int_t asker = json_integer_value(json_object_get(body, "seat"));
    if (json_integer_value(json_object_get(body, "epoch")) != gang.epoch) {
        answer_problem(a, 409, "stale_attempt", "another epoch");
    } else if (!gang.seats[asker].member) {
        answer_problem(a, 403, "not_member", "no member");
    } else {
        json_decref(gang.change);
        gang.change = json_incref(body);
        leave_out(json_object_get(body, "lost"));
        leave_out(json_object_get(body, "left"));
        next_epoch();
        answer_world(a);
    }
}

static void end(struct gang_seat *s, json_t *body, struct server_answer *a)
{
    const char *outcome = json_string_value(json_object_get(body, "outcome"));
    bool lost = as_streq(outcome, "retry") || as_streq(outcome, "released") ||
                json_object_get(body, "signal");
    json_decref(s->end);
    s->end = json_incref(body);
    if (!as_streq(outcome, "completed") && (!gang.elastic || !lost))
        gang.over = true;
    if (gang.elastic && lost && s->member) {
        s->member = false;
        next_epoch();
    }
    answer_json(a, 200, "{}");
}

static bool handle_gang(const char *verb, const char *seat_verb, int seat, json_t *body,
                        const struct server_request *q, struct server_answer *a)
{
    struct gang_seat *s = &gang.seats[seat >= 0 && seat < GANG_SEATS ? seat : 0];
    if (strcmp(verb, "world") == 0 && strcmp(q->method, "GET") == 0) {
        const char *after = strstr(q->query, "after=");
        int64_t than = after ? strtoll(after + strlen("after="), NULL, 10) : 0;
        int64_t until = clock_mono_ns() + 300 * NS_PER_MS; /* the long poll, made short */
        while (gang.epoch <= than && !gang.over && clock_mono_ns() < until)
            wait_a_little();
        while (gang.alone > 0 && gang.epoch > 0 && !gang.seats[gang.alone].end)
            wait_a_little();
        answer_world(a);
    } else if (strcmp(verb, "world") == 0) {
        change(body, a);
    } else if (strcmp(verb, "seats") == 0 && !*seat_verb) {
        tell(s, body, a);
    } else if (strcmp(verb, "seats") == 0 && strcmp(seat_verb, "joined") == 0) {
        s->joined_epoch = json_integer_value(json_object_get(body, "epoch"));
        answer_json(a, 200, "{}");
    } else if (strcmp(verb, "seats") == 0) {
        end(s, body, a);
    } else {
        return false;
    }
    return true;
}

/* A write of the attempt: only the leader's counts. Returns whether it was refused. */
static bool refuse_write(const char *verb, const struct server_request *q, struct server_answer *a)
{
    if (gang.over || (int)strtol(q->seat, NULL, 10) != leader() || !*q->seat ||
        strtoll(q->world_epoch, NULL, 10) != gang.epoch) {
        gang.refused++;
        answer_problem(a, 409, "stale_attempt", "not the leader");
        return true;
    }
    gang.writes[(int)strtol(q->seat, NULL, 10)]++;
    if (strcmp(verb, "complete") != 0)
        return false;
    gang.over = true;
    return false;
}

static bool handle(const struct server_request *q, struct server_answer *a)
{
    char verb[32] = "", seat_verb[32] = "";
    int seat = -1, number = -1;
    int n = sscanf(q->path, "/v1/sweeps/s/trials/%d/attempts/1/%31[a-z]/%d/%31[a-z]", &number, verb,
                   &seat, seat_verb);
    if (n < 2 || number != 0)
        return false;
    JSON_AUTO body = json_loadb(q->body, q->body_len, 0, NULL);
    return handle_gang(verb, seat_verb, seat, body, q, a) || refuse_write(verb, q, a);
}

void offer_seat(int seat, const char *trial)
{
    /* Longer than any test: what ends, ends without SIGKILL. */
    int place = MAX_TRIALS - 1 - seat;
    fx_lock(); /* a runner that runs would claim what is not whole yet */
    struct trial *t = gang.elastic ? offer_member(place, trial, "g")
                                   : offer(place, trial, PATIENCE_MS, 0, seat < 2);
    json_object_del(t->claim, "group");
    json_object_set_new(t->claim, "gpus", json_integer(seat < 2));
    json_object_set_new(t->claim, "number", json_integer(0));
    json_object_set_new(t->claim, "gang",
                        json_pack("{s:i,s:i,s:i,s:b,s:s}", "seat", seat, "ranks", gang.ranks,
                                  "min_ranks", gang.min_ranks, "elastic", gang.elastic, "launch",
                                  gang.first ? "first" : "all"));
    fx_unlock();
}

void offer_gang(int ranks, int min_ranks, bool elastic, const char *launch, const char *trial)
{
    fx_lock();
    gang = (struct gang_server){.ranks = ranks, .min_ranks = min_ranks, .elastic = elastic};
    gang.first = strcmp(launch, "first") == 0;
    fx.more = handle;
    fx_unlock();
    for (int i = 0; i < ranks; i++)
        offer_seat(i, trial);
}

/* Runs before fx_teardown(): requests may still come. */
void gang_teardown(void)
{
    fx_lock();
    for (int i = 0; i < GANG_SEATS; i++)
        json_decref(gang.seats[i].end);
    json_decref(gang.change);
    gang = (struct gang_server){0};
    fx_unlock();
}

void add_stranger(int seat)
{
    fx_lock();
    struct gang_seat *s = &gang.seats[seat];
    *s = (struct gang_seat){.told = true, .member = true, .port = 1};
    (void)snprintf(s->address, sizeof s->address, "10.0.0.9");
    (void)snprintf(s->endpoint, sizeof s->endpoint, "10.0.0.9:1 of another machine");
    next_epoch();
    fx_unlock();
}

void drop_member(int seat)
{
    fx_lock();
    gang.seats[seat].member = false;
    next_epoch();
    fx_unlock();
}
