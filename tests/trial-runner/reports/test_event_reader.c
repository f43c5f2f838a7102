/* Event files, written here byte by byte from the public formats: as PyTorch writes scalars, as
 * TensorFlow 2 does, and everything that is to be skipped. */
#include "tests/support/check_main.h"

#include <string.h>

#include "tests/trial-runner/reports/seen.h"
#include "trial-runner/reports/event_reader.h"

/* ---- writing ---- */

static void put_le(struct str *b, uint64_t v, size_t n)
{
    while (n--) {
        str_putc(b, (char)(v & 0xff));
        v >>= 8;
    }
}

static void put_varint(struct str *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        str_putc(b, (char)(v | 0x80));
    str_putc(b, (char)v);
}

static void put_key(struct str *b, unsigned field, unsigned wire)
{
    put_varint(b, (uint64_t)field << 3 | wire);
}

static void put_bytes(struct str *b, unsigned field, const char *bytes, size_t len)
{
    put_key(b, field, 2);
    put_varint(b, len);
    str_add(b, bytes, len);
}

static void put_record(struct str *file, const struct str *data)
{
    AS_AUTO(str_done) struct str head = {0};
    put_le(&head, data->len, 8);
    str_add(file, head.s, 8);
    put_le(file, event_checksum(head.s, 8), 4);
    str_add(file, str_cstr(data), data->len);
    put_le(file, event_checksum(str_cstr(data), data->len), 4);
}

/* An event with one value, whose fields after the tag are `rest`. */
static void put_event(struct str *file, int64_t step, const char *tag, const struct str *rest)
{
    AS_AUTO(str_done) struct str value = {0}, summary = {0}, event = {0};
    put_bytes(&value, 1, tag, strlen(tag));
    str_add(&value, str_cstr(rest), rest->len);
    put_bytes(&summary, 1, value.s, value.len);
    put_key(&event, 1, 1); /* wall_time */
    put_le(&event, UINT64_C(0x41d8000000000000), 8);
    put_key(&event, 2, 0);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, 5, summary.s, summary.len);
    put_record(file, &event);
}

static uint32_t bits_of(float f)
{
    uint32_t v;
    memcpy(&v, &f, sizeof v);
    return v;
}

static void put_simple(struct str *file, int64_t step, const char *tag, float v)
{
    AS_AUTO(str_done) struct str rest = {0};
    put_key(&rest, 2, 5);
    put_le(&rest, bits_of(v), 4);
    put_event(file, step, tag, &rest);
}

typedef enum tensor_way { WAY_CONTENT, WAY_VALUES, WAY_PACKED } tensor_way;

/* TensorFlow 2: dtype, shape with `dims` dimensions, and the number. */
static void put_tensor(struct str *file, int64_t step, const char *tag, unsigned dtype,
                       uint64_t bits, size_t size, tensor_way way, size_t dims)
{
    AS_AUTO(str_done) struct str tensor = {0}, shape = {0}, rest = {0}, number = {0};
    put_key(&tensor, 1, 0);
    put_varint(&tensor, dtype);
    for (size_t i = 0; i < dims; i++)
        put_bytes(&shape, 2, "\x08\x01", 2);
    put_bytes(&tensor, 2, str_cstr(&shape), shape.len);
    put_le(&number, bits, size);
    if (way == WAY_VALUES) {
        put_key(&tensor, dtype == 1 ? 5 : 6, dtype == 1 ? 5 : 1);
        str_add(&tensor, number.s, size);
    } else {
        put_bytes(&tensor, way == WAY_CONTENT ? 4 : dtype == 1 ? 5 : 6, number.s, size);
    }
    put_bytes(&rest, 8, tensor.s, tensor.len);
    put_bytes(&rest, 9, "\x0a\x09\x0a\x07scalars", 11);
    put_event(file, step, tag, &rest);
}

static void put_version(struct str *file)
{
    AS_AUTO(str_done) struct str event = {0};
    put_key(&event, 1, 1);
    put_le(&event, UINT64_C(0x41d8000000000000), 8);
    put_bytes(&event, 3, "brain.Event:2", 13);
    put_record(file, &event);
}

/* ---- reading ---- */

static void read_pieces(const struct str *file, const json_t *tags, size_t piece, struct seen *s)
{
    struct event_reader r = {.tags = tags};
    struct report_fns fns = seen_fns(s);
    struct as_err err = {0};
    for (size_t at = 0; at < file->len; at += piece)
        ck_ok(event_reader_feed(&r, file->s + at, file->len - at < piece ? file->len - at : piece,
                                &fns, &err),
              err);
    event_reader_done(&r);
}

static void expect(const struct str *file, const json_t *tags, const char *want)
{
    for (size_t piece = 1; piece <= file->len; piece = piece * 3 + 1) {
        struct seen s = {0};
        read_pieces(file, tags, piece, &s);
        ck_assert_str_eq(str_cstr(&s.text), want);
        str_done(&s.text);
    }
}

/* The first bytes of every event file of TensorFlow and PyTorch: a length of 24 and its
 * checksum. */
START_TEST(the_checksum_is_theirs)
{
    static const unsigned char head[] = {0x18, 0, 0, 0, 0, 0, 0, 0};
    ck_assert_uint_eq(event_checksum(head, sizeof head), UINT32_C(0x224b7fa3));
}
END_TEST

START_TEST(scalars)
{
    AS_AUTO(str_done) struct str file = {0};
    JSON_AUTO tags = json_pack("{s:s}", "val/loss", "loss");
    double half = 0.5;
    uint64_t bits;
    memcpy(&bits, &half, sizeof bits);
    put_version(&file);
    put_simple(&file, 0, "val/loss", 0.5F);
    put_simple(&file, 1, "train/acc", 0.25F);
    put_tensor(&file, 2, "val/loss", 1, bits_of(0.125F), 4, WAY_CONTENT, 0);
    put_tensor(&file, 3, "val/loss", 1, bits_of(0.125F), 4, WAY_VALUES, 0);
    put_tensor(&file, 4, "val/loss", 1, bits_of(0.125F), 4, WAY_PACKED, 0);
    put_tensor(&file, 5, "val/loss", 2, bits, 8, WAY_CONTENT, 0);
    put_tensor(&file, 6, "val/loss", 2, bits, 8, WAY_VALUES, 0);
    put_simple(&file, 7, "val/loss", __builtin_nanf(""));
    expect(&file, tags,
           "0{\"loss\":0.5} 2{\"loss\":0.125} 3{\"loss\":0.125} 4{\"loss\":0.125} 5{\"loss\":0.5} "
           "6{\"loss\":0.5} 7{\"loss\":\"NaN\"} ");
    file.len = 0;
    put_simple(&file, 9, "train/acc top-1", 0.25F);
    expect(&file, NULL, "9{\"train/acc_top-1\":0.25} ");
}
END_TEST

START_TEST(what_is_no_scalar_is_skipped)
{
    AS_AUTO(str_done) struct str file = {0}, image = {0}, histogram = {0};
    put_bytes(&image, 4, "\x08\x01\x10\x01", 4);
    put_bytes(&histogram, 5, "\x09\0\0\0\0\0\0\0\0", 9);
    put_event(&file, 1, "image", &image);
    put_event(&file, 1, "histogram", &histogram);
    put_tensor(&file, 1, "vector", 1, bits_of(1), 4, WAY_CONTENT,
               1); /* one element, but a vector */
    put_tensor(&file, 1, "text", 7, 0, 4, WAY_CONTENT, 0);
    put_tensor(&file, 1, "short", 2, 0, 4, WAY_CONTENT, 0);
    put_simple(&file, -1, "before", 1);
    put_simple(&file, 2, "loss", 1);
    expect(&file, NULL, "bad6(the step is not in 0 to 2^53 -) 2{\"loss\":1.0} ");
}
END_TEST

START_TEST(a_half_record_is_awaited)
{
    AS_AUTO(str_done) struct str file = {0};
    struct event_reader r = {0};
    struct seen s = {0};
    struct report_fns fns = seen_fns(&s);
    struct as_err err = {0};
    put_simple(&file, 1, "loss", 1);
    ck_ok(event_reader_feed(&r, file.s, file.len - 1, &fns, &err), err);
    ck_assert_uint_eq(s.items + s.bad, 0);
    ck_ok(event_reader_feed(&r, file.s + file.len - 1, 1, &fns, &err), err);
    ck_assert_str_eq(str_cstr(&s.text), "1{\"loss\":1.0} ");
    event_reader_done(&r);
    str_done(&s.text);
}
END_TEST

START_TEST(damage_is_said_once)
{
    AS_AUTO(str_done) struct str file = {0};
    put_simple(&file, 1, "loss", 1);
    size_t second = file.len;
    put_simple(&file, 2, "loss", 2);
    put_simple(&file, 3, "loss", 3);
    put_simple(&file, 4, "loss", 4);
    file.s[second + 20] ^= 1;     /* the data of the second */
    file.s[2 * second + 20] ^= 1; /* and of the third: records have one length here */
    expect(&file, NULL, "1{\"loss\":1.0} bad2(the checksum of a record's dat) 4{\"loss\":4.0} ");
    file.s[second] ^= 1; /* its length: nothing behind it can be found */
    expect(&file, NULL, "1{\"loss\":1.0} bad2(the checksum of a record's len) ");
}
END_TEST

START_TEST(a_large_record_takes_no_memory)
{
    AS_AUTO(str_done) struct str file = {0}, image = {0};
    struct event_reader r = {0};
    struct seen s = {0};
    struct report_fns fns = seen_fns(&s);
    struct as_err err = {0};
    for (size_t i = 0; i < 3 * (size_t)EVENT_MAX_RECORD; i++)
        str_putc(&image, 'x');
    put_record(&file, &image);
    put_simple(&file, 2, "loss", 1);
    for (size_t at = 0; at < file.len; at += 5000)
        ck_ok(event_reader_feed(&r, file.s + at, file.len - at < 5000 ? file.len - at : 5000, &fns,
                                &err),
              err);
    ck_assert_str_eq(str_cstr(&s.text), "2{\"loss\":1.0} ");
    ck_assert_uint_lt(r.record.cap, 100000);
    event_reader_done(&r);
    str_done(&s.text);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("event_reader");
    TCase *t = tcase_create("event_reader");
    tcase_add_test(t, the_checksum_is_theirs);
    tcase_add_test(t, scalars);
    tcase_add_test(t, what_is_no_scalar_is_skipped);
    tcase_add_test(t, a_half_record_is_awaited);
    tcase_add_test(t, damage_is_said_once);
    tcase_add_test(t, a_large_record_takes_no_memory);
    suite_add_tcase(s, t);
    return s;
}
