/* Reads and writes the lines between runner and trainer.
 *
 * Both sides use this one file, so a field cannot have two spellings. A message is one JSON object;
 * unknown fields are refused, because both programs come from one build and an unknown field can
 * only be an error.
 *
 * A parsed message keeps its JSON tree (`doc`) and points into it, so parsing copies no text. Lines
 * are limited (CONTROL_MAX_LINE) on both sides: the writer refuses a line that the reader would
 * refuse, instead of sending it and losing the stream. */
#include "trial-runner/protocol/control.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "trial-runner/protocol/line.h"

/* ---- a member ---- */

static as_status parse_seed(const char *text, const char *pointer, uint64_t *ret,
                            struct as_err *err)
{
    char *end = NULL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[strspn(text, "0123456789")])
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found '%.40s', expected a whole number from 0 to 2^64 - 1", pointer,
                          text);
    *ret = v;
    return AS_OK;
}

as_status control_forks_parse(const json_t *obj, const char *pointer, struct control_forks *ret,
                              struct as_err *err)
{
    struct json_fields f;
    struct control_forks k = {0};
    json_t *list = NULL;
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "every", JSON_REQUIRED, 1, INT64_MAX, &k.every, err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "until", JSON_REQUIRED, 1, INT64_MAX, &k.until, err);
    if (st == AS_OK)
        st = json_fields_array(&f, "may_differ", JSON_REQUIRED, &list, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    k.may_differ = list;
    if (st == AS_OK)
        *ret = k;
    return st;
}

static as_status read_forks(struct json_fields *f, const char *pointer, struct control_forks *ret,
                            struct as_err *err)
{
    json_t *obj = NULL;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_object(f, "forks", JSON_OPTIONAL, &obj, err);
    if (st != AS_OK || !obj)
        return st;
    json_pointer_child(pointer, "forks", at);
    return control_forks_parse(obj, at, ret, err);
}

as_status control_member_parse(const json_t *obj, const char *pointer, struct control_member *ret,
                               struct as_err *err)
{
    struct json_fields f;
    struct control_member m = {0};
    json_t *train = NULL;
    const char *seed = NULL;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st != AS_OK)
        return st;
    st = json_fields_text(&f, "id", JSON_REQUIRED, 1, CONTROL_MAX_ID, &m.id, err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(&f, "train", JSON_REQUIRED, &train, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(&f, "seed", JSON_REQUIRED, &seed, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(&f, "report", JSON_OPTIONAL, &m.report, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(&f, "checkpoints", JSON_OPTIONAL, &m.checkpoints, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(&f, "artifacts", JSON_OPTIONAL, &m.artifacts, err);
    if (st == AS_OK)
        st = read_forks(&f, pointer, &m.forks, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(pointer, "seed", at);
    st = parse_seed(seed, at, &m.seed, err);
    if (st != AS_OK)
        return st;
    m.train = train;
    *ret = m;
    return AS_OK;
}

json_t *control_member_to_json(const struct control_member *m)
{
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, m->seed);
    JSON_AUTO forks =
        m->forks.every > 0
            ? json_pack("{s:I, s:I, s:O}", "every", (json_int_t)m->forks.every, "until",
                        (json_int_t)m->forks.until, "may_differ", m->forks.may_differ)
            : NULL;
    if (m->forks.every > 0 && !forks)
        return NULL;
    return json_pack("{s:s, s:O, s:s, s:s*, s:s*, s:s*, s:O*}", "id", m->id, "train", m->train,
                     "seed", seed, "report", m->report, "checkpoints", m->checkpoints, "artifacts",
                     m->artifacts, "forks", forks);
}

/* ---- runner to trainer ---- */

static const char *const op_words[] = {"add", "stop", "cancel", "close", NULL};

static as_status read_id(struct json_fields *f, const char **ret, struct as_err *err)
{
    return json_fields_text(f, "id", JSON_REQUIRED, 1, CONTROL_MAX_ID, ret, err);
}

void control_request_done(struct control_request *r)
{
    json_decref(r->doc);
    *r = (struct control_request){0};
}

as_status control_request_parse(const char *line, size_t len, struct control_request *ret,
                                struct as_err *err)
{
    JSON_AUTO doc = NULL;
    struct json_fields f;
    struct control_request r = {0};
    json_t *member = NULL;
    int op = 0;
    as_status st = line_parse(line, len, "op", op_words, &doc, &f, &op, err);
    if (st != AS_OK)
        return st;
    r.op = (control_op)op;
    if (r.op == CONTROL_ADD)
        st = json_fields_object(&f, "member", JSON_REQUIRED, &member, err);
    else if (r.op != CONTROL_CLOSE)
        st = read_id(&f, &r.id, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    if (member)
        st = control_member_parse(member, "/member", &r.member, err);
    if (st != AS_OK)
        return st;
    if (member)
        r.id = r.member.id;
    r.doc = as_steal(doc);
    *ret = r;
    return AS_OK;
}

as_status control_request_format(const struct control_request *r, struct str *out,
                                 struct as_err *err)
{
    const char *op = op_words[r->op];
    if (r->op == CONTROL_ADD)
        return line_append(
            json_pack("{s:s, s:o}", "op", op, "member", control_member_to_json(&r->member)), out,
            err);
    return line_append(
        json_pack("{s:s, s:s*}", "op", op, "id", r->op == CONTROL_CLOSE ? NULL : r->id), out, err);
}

/* ---- trainer to runner ---- */

static const char *const event_words[] = {"ready", "started", "ended", "log", "throughput", NULL};

void control_event_done(struct control_event *e)
{
    json_decref(e->doc);
    *e = (struct control_event){0};
}

static as_status read_ready(struct json_fields *f, struct control_event *e, struct as_err *err)
{
    as_status st = json_fields_i64(f, "bytes_per_member", JSON_REQUIRED, 0, INT64_MAX,
                                   &e->bytes_per_member, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "bytes_shared", JSON_OPTIONAL, 0, INT64_MAX, &e->bytes_shared, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "flops_per_step", JSON_REQUIRED, 0, INT64_MAX, &e->flops_per_step, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "threads", JSON_REQUIRED, 1, 1 << 20, &e->threads, err);
    if (st != AS_OK)
        return st;
    return json_fields_i64(f, "members", JSON_OPTIONAL, 1, CONTROL_MAX_SLOTS, &e->members, err);
}

static as_status read_ended(struct json_fields *f, struct control_event *e, struct as_err *err)
{
    as_status st = read_id(f, &e->id, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "exit", JSON_REQUIRED, 0, 255, &e->exit, err);
    if (st != AS_OK)
        return st;
    return json_fields_str(f, "error", JSON_OPTIONAL, &e->error, err);
}

static as_status read_event(struct json_fields *f, struct control_event *e, struct as_err *err)
{
    as_status st = AS_OK;
    switch (e->kind) {
    case CONTROL_READY:
        return read_ready(f, e, err);
    case CONTROL_STARTED:
        st = read_id(f, &e->id, err);
        if (st != AS_OK)
            return st;
        return json_fields_i64(f, "step", JSON_REQUIRED, 0, INT64_MAX, &e->step, err);
    case CONTROL_ENDED:
        return read_ended(f, e, err);
    case CONTROL_LOG:
        st = read_id(f, &e->id, err);
        if (st != AS_OK)
            return st;
        return json_fields_str(f, "text", JSON_REQUIRED, &e->text, err);
    case CONTROL_THROUGHPUT:
        st = json_fields_i64(f, "members", JSON_REQUIRED, 0, CONTROL_MAX_SLOTS, &e->members, err);
        if (st != AS_OK)
            return st;
        return json_fields_double(f, "rows_per_second", JSON_REQUIRED, 0, INFINITY,
                                  &e->rows_per_second, err);
    }
    return as_fail(err, AS_E_INTERNAL, "event %d", (int)e->kind);
}

as_status control_event_parse(const char *line, size_t len, struct control_event *ret,
                              struct as_err *err)
{
    JSON_AUTO doc = NULL;
    struct json_fields f;
    struct control_event e = {0};
    int kind = 0;
    as_status st = line_parse(line, len, "event", event_words, &doc, &f, &kind, err);
    if (st != AS_OK)
        return st;
    e.kind = (control_event_kind)kind;
    st = read_event(&f, &e, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    e.doc = as_steal(doc);
    *ret = e;
    return AS_OK;
}

static json_t *event_to_json(const struct control_event *e)
{
    const char *word = event_words[e->kind];
    switch (e->kind) {
    case CONTROL_READY:
        return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o*}", "event", word, "bytes_per_member",
                         (json_int_t)e->bytes_per_member, "bytes_shared",
                         (json_int_t)e->bytes_shared, "flops_per_step",
                         (json_int_t)e->flops_per_step, "threads", (json_int_t)e->threads,
                         "members", e->members > 0 ? json_integer(e->members) : NULL);
    case CONTROL_STARTED:
        return json_pack("{s:s, s:s, s:I}", "event", word, "id", e->id, "step",
                         (json_int_t)e->step);
    case CONTROL_ENDED:
        return json_pack("{s:s, s:s, s:I, s:s*}", "event", word, "id", e->id, "exit",
                         (json_int_t)e->exit, "error", e->error);
    case CONTROL_LOG:
        return json_pack("{s:s, s:s, s:s}", "event", word, "id", e->id, "text", e->text);
    case CONTROL_THROUGHPUT:
        return json_pack("{s:s, s:I, s:f}", "event", word, "members", (json_int_t)e->members,
                         "rows_per_second", e->rows_per_second);
    }
    return NULL;
}

as_status control_event_format(const struct control_event *e, struct str *out, struct as_err *err)
{
    return line_append(event_to_json(e), out, err);
}

/* ---- bytes into lines ---- */

void control_lines_done(struct control_lines *l)
{
    str_done(&l->bytes);
    l->taken = 0;
}

as_status control_lines_feed(struct control_lines *l, const char *bytes, size_t n,
                             struct as_err *err)
{
    size_t left = l->bytes.len - l->taken;
    /* Used bytes are dropped here and not in control_lines_next, whose result must stay a view. */
    if (l->taken > 0) {
        memmove(l->bytes.s, l->bytes.s + l->taken, left);
        l->bytes.len = left;
        l->taken = 0;
    }
    str_add(&l->bytes, bytes, n);
    as_status st = str_check(&l->bytes, err);
    if (st != AS_OK || l->bytes.len <= CONTROL_MAX_LINE)
        return st;
    /* More than one line's worth is fine, as long as the first line has an end. */
    if (!memchr(l->bytes.s, '\n', CONTROL_MAX_LINE + 1))
        return as_fail(err, AS_E_TOO_LARGE, "a line of more than %zu bytes", CONTROL_MAX_LINE);
    return AS_OK;
}

const char *control_lines_next(struct control_lines *l, size_t *ret_len)
{
    size_t left = l->bytes.len - l->taken;
    char *start = left > 0 ? l->bytes.s + l->taken : NULL;
    char *end = start ? memchr(start, '\n', left) : NULL;
    if (!end)
        return NULL;
    *end = 0;
    *ret_len = (size_t)(end - start);
    l->taken += *ret_len + 1;
    return start;
}
