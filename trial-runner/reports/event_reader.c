/* Event files of TensorBoard: the record format, then just as much of Protocol Buffers as scalars
 * need.
 *
 * The record format is in tensorflow/core/lib/io/record_writer.h, the messages are in
 * tensorboard/compat/proto/{event,summary,tensor}.proto. A field of a known number with another
 * wire type is skipped like an unknown field.
 *
 * A record whose data do not match their checksum is skipped; the next one begins after it. When a
 * length does not match its checksum, nothing behind it can be found. */
#include "trial-runner/reports/event_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/json.h"

#define HEAD_BYTES 12 /* the length and its checksum */
#define FOOT_BYTES 4
#define MAX_TAG 255

typedef enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 } wire;

typedef enum tensor_type {
    DT_FLOAT = 1,
    DT_DOUBLE = 2,
    DT_INT32 = 3,
    DT_INT64 = 9
} tensor_type; /* tensorflow/core/framework/types.proto */

void event_reader_done(struct event_reader *r)
{
    str_done(&r->record);
}

uint32_t event_checksum(const void *bytes, size_t len)
{
    uint32_t crc = crc32c(0, bytes, len);
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static uint64_t little_endian(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    uint64_t v = 0;
    while (n--)
        v = v << 8 | b[n];
    return v;
}

static double float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* ---- Protocol Buffers ---- */

/* A message, and in turn each of its fields. */
struct message {
    const char *at, *end;
    uint32_t number;
    wire type;
    uint64_t value; /* varint, 32 and 64 bits */
    const char *bytes;
    size_t len; /* WIRE_BYTES */
};

static bool read_varint(struct message *m, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char b = (unsigned char)*m->at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

/* False: the message has ended, or is not well formed. */
static bool next_field(struct message *m)
{
    uint64_t key, n = 0;
    if (m->at == m->end || !read_varint(m, &key))
        return false;
    m->number = (uint32_t)(key >> 3);
    m->type = (wire)(key & 7);
    if (m->type == WIRE_VARINT)
        return read_varint(m, &m->value);
    if (m->type == WIRE_BYTES) {
        if (!read_varint(m, &n))
            return false;
        m->bytes = m->at;
    } else if (m->type == WIRE_32 || m->type == WIRE_64) {
        n = m->type == WIRE_32 ? 4 : 8;
    } else {
        return false; /* groups are not used by these messages */
    }
    if (n > (uint64_t)(m->end - m->at))
        return false;
    if (m->type != WIRE_BYTES)
        m->value = little_endian(m->at, (size_t)n);
    m->len = (size_t)n;
    m->at += n;
    return true;
}

static struct message inner(const struct message *m)
{
    return (struct message){.at = m->bytes, .end = m->bytes + m->len};
}

/* ---- scalars ---- */

struct scalar {
    const char *tag;
    size_t tag_len;
    double value;
    bool has_value;
};

/* What is known of a tensor. */
struct tensor {
    uint64_t dtype;
    size_t dims, n; /* n: the numbers found */
    double value;   /* the last of them */
    const char *content;
    size_t content_len;
};

static double number_of(uint64_t dtype, uint64_t bits)
{
    return dtype == DT_FLOAT    ? float_of((uint32_t)bits)
           : dtype == DT_DOUBLE ? double_of(bits)
           : dtype == DT_INT32  ? (double)(int32_t)bits
                                : (double)(int64_t)bits;
}

/* A repeated field of numbers, packed or not. */
static void read_numbers(const struct message *m, uint64_t dtype, struct tensor *t)
{
    size_t size = dtype == DT_FLOAT ? 4 : dtype == DT_DOUBLE ? 8 : 0;
    uint64_t v;
    if (m->type != WIRE_BYTES) {
        t->value = number_of(dtype, m->value);
        t->n++;
        return;
    }
    struct message packed = inner(m);
    while (packed.at < packed.end) {
        if (size && (size_t)(packed.end - packed.at) >= size) {
            v = little_endian(packed.at, size);
            packed.at += size;
        } else if (size || !read_varint(&packed, &v)) {
            return;
        }
        t->value = number_of(dtype, v);
        t->n++;
    }
}

static size_t count_dims(struct message shape)
{
    size_t n = 0;
    while (next_field(&shape))
        n += shape.number == 2;
    return n;
}

static bool read_tensor(struct message m, double *ret)
{
    static const struct {
        uint32_t field;
        tensor_type type;
    } numbers[] = {{5, DT_FLOAT}, {6, DT_DOUBLE}, {7, DT_INT32}, {10, DT_INT64}};
    struct tensor t = {0};
    while (next_field(&m)) {
        if (m.number == 1 && m.type == WIRE_VARINT)
            t.dtype = m.value;
        if (m.number == 2 && m.type == WIRE_BYTES)
            t.dims = count_dims(inner(&m));
        if (m.number == 4 && m.type == WIRE_BYTES) {
            t.content = m.bytes;
            t.content_len = m.len;
        }
        for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++)
            if (m.number == numbers[i].field)
                read_numbers(&m, numbers[i].type, &t);
    }
    bool known =
        t.dtype == DT_FLOAT || t.dtype == DT_DOUBLE || t.dtype == DT_INT32 || t.dtype == DT_INT64;
    size_t size = t.dtype == DT_FLOAT || t.dtype == DT_INT32 ? 4 : 8;
    if (!known || t.dims > 0)
        return false;
    if (t.content_len == size)
        t.value = number_of(t.dtype, little_endian(t.content, size));
    else if (t.content_len || t.n != 1)
        return false;
    *ret = t.value;
    return true;
}

static struct scalar read_value(struct message m)
{
    struct scalar s = {0};
    while (next_field(&m)) {
        if (m.number == 1 && m.type == WIRE_BYTES) {
            s.tag = m.bytes;
            s.tag_len = m.len;
        } else if (m.number == 2 && m.type == WIRE_32) {
            s.value = float_of((uint32_t)m.value);
            s.has_value = true;
        } else if (m.number == 8 && m.type == WIRE_BYTES) {
            s.has_value = read_tensor(inner(&m), &s.value);
        }
    }
    return s;
}

/* The metric of a tag; NULL: it is not asked for. `buf` may hold the answer. */
static const char *metric_of(const json_t *tags, const struct scalar *s,
                             char buf[METRIC_NAME_MAX + 1])
{
    char tag[MAX_TAG + 1];
    if (!s->has_value || !s->tag || s->tag_len == 0 || s->tag_len > MAX_TAG ||
        memchr(s->tag, '\0', s->tag_len))
        return NULL;
    memcpy(tag, s->tag, s->tag_len);
    tag[s->tag_len] = '\0';
    if (json_object_size(tags))
        return json_string_value(json_object_get(tags, tag));
    metric_name_from(tag, buf);
    return buf;
}

static as_status read_summary(const struct event_reader *r, struct message m, json_t *metrics,
                              struct as_err *err)
{
    while (next_field(&m)) {
        char buf[METRIC_NAME_MAX + 1];
        if (m.number != 1 || m.type != WIRE_BYTES)
            continue;
        struct scalar s = read_value(inner(&m));
        const char *metric = metric_of(r->tags, &s, buf);
        if (!metric || json_object_size(metrics) == REPORT_MAX_METRICS)
            continue;
        as_status st = report_put(metrics, metric, s.value, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status read_event(const struct event_reader *r, struct message m,
                            const struct report_fns *fns, struct as_err *err)
{
    JSON_AUTO metrics = json_object();
    int64_t step = 0;
    if (!metrics)
        return as_fail_nomem(err);
    while (next_field(&m)) {
        if (m.number == 2 && m.type == WIRE_VARINT)
            step = (int64_t)m.value;
        if (m.number != 5 || m.type != WIRE_BYTES)
            continue;
        as_status st = read_summary(r, inner(&m), metrics, err);
        if (st < 0)
            return st;
    }
    if (json_object_size(metrics) == 0)
        return AS_OK;
    if (step < 0 || step > REPORT_MAX_STEP) {
        fns->on_bad(fns->arg, r->line, "the step is not in 0 to 2^53 - 1");
        return AS_OK;
    }
    return fns->on_item(fns->arg, step, as_steal(metrics), err);
}

/* ---- records ---- */

static void note_damage(struct event_reader *r, const char *what, const struct report_fns *fns)
{
    char why[160];
    (void)snprintf(why, sizeof why, "the checksum of a record's %s is wrong: %s", what,
                   r->broken ? "the rest of the file is not read" : "such records are skipped");
    if (!r->noted)
        fns->on_bad(fns->arg, r->line, why);
    r->noted = true;
}

/* Take the records that are whole off r->record, beginning at *at. */
static as_status take_record(struct event_reader *r, size_t *at, bool *more,
                             const struct report_fns *fns, struct as_err *err)
{
    const char *b = r->record.s + *at;
    size_t left = r->record.len - *at;
    *more = false;
    if (left < HEAD_BYTES)
        return AS_OK;
    uint64_t len = little_endian(b, 8);
    if (little_endian(b + 8, 4) != event_checksum(b, 8)) {
        r->broken = true;
        r->line++;
        note_damage(r, "length", fns);
        return AS_OK;
    }
    if (len > EVENT_MAX_RECORD) {
        r->line++;
        *more = true;
        *at += HEAD_BYTES;
        r->skip = len > UINT64_MAX - FOOT_BYTES ? UINT64_MAX : len + FOOT_BYTES;
        uint64_t here = r->record.len - *at;
        size_t take = (size_t)(here < r->skip ? here : r->skip);
        *at += take;
        r->skip -= take;
        return AS_OK;
    }
    if (left < HEAD_BYTES + len + FOOT_BYTES)
        return AS_OK;
    const char *data = b + HEAD_BYTES;
    *at += HEAD_BYTES + (size_t)len + FOOT_BYTES;
    *more = true;
    r->line++;
    if (little_endian(data + len, FOOT_BYTES) != event_checksum(data, (size_t)len)) {
        note_damage(r, "data", fns);
        return AS_OK;
    }
    return read_event(r, (struct message){.at = data, .end = data + len}, fns, err);
}

as_status event_reader_feed(struct event_reader *r, const char *bytes, size_t len,
                            const struct report_fns *fns, struct as_err *err)
{
    size_t take = (size_t)(len < r->skip ? len : r->skip), at = 0;
    if (r->broken)
        return AS_OK;
    r->skip -= take;
    str_add(&r->record, bytes + take, len - take);
    as_status st = str_check(&r->record, err);
    for (bool more = true; st == AS_OK && more && !r->broken;)
        st = take_record(r, &at, &more, fns, err);
    if (at) {
        memmove(r->record.s, r->record.s + at, r->record.len - at);
        r->record.len -= at;
        r->record.s[r->record.len] = '\0';
    }
    return st;
}
