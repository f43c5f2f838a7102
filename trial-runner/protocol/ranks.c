/* Reads and writes the lines between the runner and a rank. As in control.c, unknown fields are
 * refused, and a parsed message keeps its JSON tree and points into it. */
#include "trial-runner/protocol/ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "trial-runner/protocol/line.h"

/* ---- runner to rank ---- */

static const char *const op_words[] = {"world", "stop", NULL};

static as_status read_attempt(const char *text, uint64_t *ret, struct as_err *err)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || end == text || text[strspn(text, "0123456789")])
        return as_fail_at(err, AS_E_INVAL, "/attempt",
                          "/attempt: found '%.40s', expected a whole number from 0 to 2^64 - 1",
                          text);
    *ret = v;
    return AS_OK;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static as_status read_secret(const char *text, uint8_t ret[RANKS_SECRET_BYTES], struct as_err *err)
{
    bool ok = strlen(text) == 2 * RANKS_SECRET_BYTES;
    for (size_t i = 0; ok && i < RANKS_SECRET_BYTES; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        ok = high >= 0 && low >= 0;
        ret[i] = (uint8_t)(16 * high + low);
    }
    if (!ok) /* the text may be a secret, so the message does not show it */
        return as_fail_at(err, AS_E_INVAL, "/secret", "/secret: expected %d hexadecimal digits",
                          2 * RANKS_SECRET_BYTES);
    return AS_OK;
}

static as_status read_peers(struct rank_request *r, json_t *peers, struct as_err *err)
{
    r->n = json_array_size(peers);
    r->peers = peers;
    if (r->n < 1 || r->n > RANKS_MAX)
        return as_fail_at(err, AS_E_INVAL, "/peers", "/peers: found %zu, expected 1 to %d", r->n,
                          RANKS_MAX);
    for (size_t i = 0; i < r->n; i++) {
        const json_t *peer = json_array_get(peers, i);
        if (!json_is_string(peer) || json_string_length(peer) > RANKS_MAX_ENDPOINT ||
            strlen(json_string_value(peer)) != json_string_length(peer))
            return as_fail_at(err, AS_E_INVAL, "/peers",
                              "/peers/%zu: expected a text of at most %d bytes", i,
                              RANKS_MAX_ENDPOINT);
    }
    if ((uint64_t)r->rank >= r->n)
        return as_fail_at(err, AS_E_INVAL, "/rank", "/rank: found %" PRId64 ", expected 0 to %zu",
                          r->rank, r->n - 1);
    return AS_OK;
}

static as_status read_world(struct json_fields *f, struct rank_request *r, struct as_err *err)
{
    const char *attempt = NULL, *secret = NULL;
    json_t *peers = NULL;
    as_status st;
    if ((st = json_fields_str(f, "attempt", JSON_REQUIRED, &attempt, err)) < 0 ||
        (st = json_fields_i64(f, "epoch", JSON_REQUIRED, 1, INT32_MAX, &r->epoch, err)) < 0 ||
        (st = json_fields_i64(f, "rank", JSON_REQUIRED, 0, RANKS_MAX - 1, &r->rank, err)) < 0 ||
        (st = json_fields_str(f, "secret", JSON_REQUIRED, &secret, err)) < 0 ||
        (st = json_fields_array(f, "peers", JSON_REQUIRED, &peers, err)) < 0 ||
        (st = read_attempt(attempt, &r->attempt, err)) < 0 ||
        (st = read_secret(secret, r->secret, err)) < 0)
        return st;
    return read_peers(r, peers, err);
}

void rank_request_done(struct rank_request *r)
{
    json_decref(r->doc);
    *r = (struct rank_request){0};
}

const char *rank_request_peer(const struct rank_request *r, size_t rank)
{
    return json_string_value(json_array_get(r->peers, rank));
}

as_status rank_request_parse(const char *line, size_t len, struct rank_request *ret,
                             struct as_err *err)
{
    JSON_AUTO doc = NULL;
    struct json_fields f;
    struct rank_request r = {0};
    int op = 0;
    as_status st = line_parse(line, len, "op", op_words, &doc, &f, &op, err);
    if (st < 0)
        return st;
    r.op = (rank_op)op;
    if (r.op == RANK_WORLD && (st = read_world(&f, &r, err)) < 0)
        return st;
    if ((st = json_fields_end(&f, err)) < 0)
        return st;
    r.doc = as_steal(doc);
    *ret = r;
    return AS_OK;
}

as_status rank_request_format(const struct rank_request *r, struct str *out, struct as_err *err)
{
    char attempt[24], secret[2 * RANKS_SECRET_BYTES + 1];
    if (r->op == RANK_STOP)
        return line_append(json_pack("{s:s}", "op", op_words[r->op]), out, err);
    (void)snprintf(attempt, sizeof attempt, "%" PRIu64, r->attempt);
    hex_format(r->secret, RANKS_SECRET_BYTES, secret);
    return line_append(json_pack("{s:s, s:s, s:I, s:I, s:s, s:O}", "op", op_words[r->op], "attempt",
                                 attempt, "epoch", (json_int_t)r->epoch, "rank",
                                 (json_int_t)r->rank, "secret", secret, "peers", r->peers),
                       out, err);
}

/* ---- rank to runner ---- */

static const char *const event_words[] = {"listening", "joined", "lost", "progress", NULL};

void rank_event_done(struct rank_event *e)
{
    json_decref(e->doc);
    *e = (struct rank_event){0};
}

static as_status read_others(struct json_fields *f, struct rank_event *e, struct as_err *err)
{
    json_t *others = NULL;
    as_status st = json_fields_array(f, "others", JSON_OPTIONAL, &others, err);
    if (st < 0 || !others)
        return st;
    size_t n = json_array_size(others);
    if (e->rank < 0 || n >= RANKS_MAX)
        return as_fail_at(err, AS_E_INVAL, "/others", "/others: %s",
                          e->rank < 0 ? "expected none beside rank -1" : "too many");
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(others, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= RANKS_MAX)
            return as_fail_at(err, AS_E_INVAL, "/others",
                              "/others/%zu: expected a whole number from 0 to %d", i,
                              RANKS_MAX - 1);
    }
    e->others = others;
    return AS_OK;
}

static as_status read_event(struct json_fields *f, struct rank_event *e, struct as_err *err)
{
    as_status st;
    if (e->kind == RANK_LISTENING)
        return json_fields_text(f, "endpoint", JSON_REQUIRED, 1, RANKS_MAX_ENDPOINT, &e->endpoint,
                                err);
    if (e->kind == RANK_PROGRESS) {
        st = json_fields_i64(f, "step", JSON_REQUIRED, 0, INT64_MAX, &e->step, err);
        if (st == AS_OK)
            st = json_fields_i64(f, "sent_bytes", JSON_REQUIRED, 0, INT64_MAX, &e->sent_bytes, err);
        if (st == AS_OK)
            st = json_fields_i64(f, "step_ns", JSON_OPTIONAL, 0, INT64_MAX, &e->step_ns, err);
        return st;
    }
    if ((st = json_fields_i64(f, "epoch", JSON_REQUIRED, 1, INT32_MAX, &e->epoch, err)) < 0)
        return st;
    if (e->kind == RANK_JOINED)
        return json_fields_i64(f, "step", JSON_REQUIRED, 0, INT64_MAX, &e->step, err);
    if ((st = json_fields_i64(f, "rank", JSON_REQUIRED, -1, RANKS_MAX - 1, &e->rank, err)) < 0)
        return st;
    return read_others(f, e, err);
}

as_status rank_event_parse(const char *line, size_t len, struct rank_event *ret, struct as_err *err)
{
    JSON_AUTO doc = NULL;
    struct json_fields f;
    struct rank_event e = {0};
    int kind = 0;
    as_status st = line_parse(line, len, "event", event_words, &doc, &f, &kind, err);
    if (st < 0)
        return st;
    e.kind = (rank_event_kind)kind;
    if ((st = read_event(&f, &e, err)) < 0 || (st = json_fields_end(&f, err)) < 0)
        return st;
    e.doc = as_steal(doc);
    *ret = e;
    return AS_OK;
}

as_status rank_event_format(const struct rank_event *e, struct str *out, struct as_err *err)
{
    const char *word = event_words[e->kind];
    if (e->kind == RANK_LISTENING)
        return line_append(json_pack("{s:s, s:s}", "event", word, "endpoint", e->endpoint), out,
                           err);
    if (e->kind == RANK_JOINED)
        return line_append(json_pack("{s:s, s:I, s:I}", "event", word, "epoch",
                                     (json_int_t)e->epoch, "step", (json_int_t)e->step),
                           out, err);
    if (e->kind == RANK_PROGRESS)
        return line_append(json_pack("{s:s, s:I, s:I, s:I}", "event", word, "step",
                                     (json_int_t)e->step, "sent_bytes", (json_int_t)e->sent_bytes,
                                     "step_ns", (json_int_t)e->step_ns),
                           out, err);
    return line_append(json_pack("{s:s, s:I, s:I, s:O*}", "event", word, "epoch",
                                 (json_int_t)e->epoch, "rank", (json_int_t)e->rank, "others",
                                 e->others),
                       out, err);
}
