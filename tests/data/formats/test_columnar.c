/* Columns: what is written is read, words of both widths, and files that are refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/formats/columnar.h"
#include "tests/support/check_main.h"

static struct as_err err;
static struct arena arena;

static void teardown(void)
{
    arena_done(&arena);
}

static const uint32_t numbers[3] = {0, 1, 4294967295u};
static const uint8_t flags[3] = {0, 1, 1};
static const double values[3] = {-0.0, NAN, -INFINITY};
static const float halves[3] = {0.5f, INFINITY, -1e-30f};
static const uint32_t states[3] = {1, COLUMNAR_NO_WORD, 0};
static const char *const words[2] = {"", "a \"quoted\" \xc3\xa4"};
static const struct columnar_column five[5] = {
    {.name = "number", .type = COLUMNAR_U32, .values = numbers},
    {.name = "flag", .type = COLUMNAR_U8, .values = flags},
    {.name = "metric:val/acc", .type = COLUMNAR_F64, .values = values},
    {.name = "half", .type = COLUMNAR_F32, .values = halves},
    {.name = "state", .type = COLUMNAR_DICT, .values = states, .words = words, .n_words = 2}};

static void write_five(struct str *ret)
{
    const struct columnar f = {
        .n_rows = 3, .version = "4711", .is_whole = true, .columns = five, .n_columns = 5};
    ck_ok(columnar_write(&f, ret, &err), err);
}

START_TEST(round_trip)
{
    AS_AUTO(str_done) struct str b = {0};
    struct columnar f;
    write_five(&b);
    ck_assert_uint_eq(b.len % 8, 0);
    ck_ok(columnar_parse(b.s, b.len, &arena, &f, &err), err);
    ck_assert_uint_eq(f.n_rows, 3);
    ck_assert_str_eq(f.version, "4711");
    ck_assert(f.is_whole);
    ck_assert_uint_eq(f.n_columns, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct columnar_column *c = columnar_find(&f, five[i].name);
        ck_assert_ptr_nonnull(c);
        ck_assert_int_eq((int)c->type, (int)five[i].type);
        ck_assert_mem_eq(c->values, five[i].values, 3 * columnar_type_size(c->type));
        ck_assert_uint_eq(c->n_words, five[i].n_words);
        for (size_t k = 0; k < c->n_words; k++)
            ck_assert_str_eq(c->words[k], words[k]);
    }
    ck_assert_ptr_null(columnar_find(&f, "loss"));
}
END_TEST

/* What another program needs to know: magic, header, and a column at its offset. */
START_TEST(layout)
{
    AS_AUTO(str_done) struct str b = {0};
    uint32_t room = 0;
    write_five(&b);
    ck_assert_mem_eq(b.s, "ASYCOLS1", 8);
    memcpy(&room, b.s + 8, 4);
    ck_assert_uint_eq(room % 8, 0);
    ck_assert_mem_eq(b.s + 12, "\0\0\0\0", 4);
    ck_assert_mem_eq(b.s + 16 + room, numbers, sizeof numbers);   /* the first column */
    ck_assert_mem_eq(b.s + b.len - 8, "\1\0\xff\xff\0\0\0\0", 8); /* the last one, and its pad */
}
END_TEST

/* Bytes in planes come back as they were, and columns of equal values share a place. */
START_TEST(planes)
{
    static const double a[3] = {1.5, -0.0, 1e300}, same[3] = {1.5, -0.0, 1e300};
    const double other[3] = {1.5, 0.0, NAN};
    const struct columnar_column columns[] = {
        {.name = "a", .type = COLUMNAR_F64, .values = a},
        {.name = "other", .type = COLUMNAR_F64, .values = other},
        {.name = "same", .type = COLUMNAR_F64, .values = same},
        {.name = "n", .type = COLUMNAR_U32, .values = "\1\0\0\0\2\0\0\0\3\0\0\0"}};
    const struct columnar f = {.n_rows = 3,
                               .version = "1",
                               .is_planar = true,
                               .columns = columns,
                               .n_columns = AS_ARRAY_LEN(columns)};
    AS_AUTO(str_done) struct str b = {0};
    struct columnar got;
    uint32_t room = 0;
    ck_ok(columnar_write(&f, &b, &err), err);
    memcpy(&room, b.s + 8, 4);
    ck_assert_uint_eq(b.len, 16 + room + 2 * sizeof a + 16);
    for (size_t plane = 0; plane < 8; plane++)
        for (size_t i = 0; i < 3; i++)
            ck_assert_int_eq(b.s[16 + room + plane * 3 + i], ((const char *)a)[i * 8 + plane]);
    ck_ok(columnar_parse(b.s, b.len, &arena, &got, &err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(columns); i++)
        ck_assert_mem_eq(got.columns[i].values, columns[i].values,
                         3 * columnar_type_size(columns[i].type));
    const struct columnar empty = {
        .version = "1", .is_planar = true, .columns = columns, .n_columns = 2};
    str_clear(&b);
    ck_ok(columnar_write(&empty, &b, &err), err);
    ck_ok(columnar_parse(b.s, b.len, &arena, &got, &err), err);
    ck_assert_uint_eq(got.n_rows, 0);
}
END_TEST

START_TEST(no_rows_and_no_columns)
{
    AS_AUTO(str_done) struct str b = {0};
    const struct columnar none = {.version = "0"};
    struct columnar f = {.n_rows = 1, .n_columns = 1};
    ck_ok(columnar_write(&none, &b, &err), err);
    ck_ok(columnar_parse(b.s, b.len, &arena, &f, &err), err);
    ck_assert_uint_eq(f.n_rows, 0);
    ck_assert_uint_eq(f.n_columns, 0);
    ck_assert(!f.is_whole);
}
END_TEST

/* 65,534 words have two bytes, one more has four, and the missing value is kept in both. */
START_TEST(width_of_words)
{
    enum { MOST = 65535 };
    static char text[MOST][8];
    static const char *list[MOST];
    for (size_t i = 0; i < MOST; i++) {
        (void)snprintf(text[i], sizeof text[i], "w%zu", i);
        list[i] = text[i];
    }
    for (size_t n = MOST - 1; n <= MOST; n++) {
        AS_AUTO(str_done) struct str b = {0};
        const uint32_t cells[3] = {(uint32_t)n - 1, COLUMNAR_NO_WORD, 0};
        const struct columnar_column c = {
            .name = "w", .type = COLUMNAR_DICT, .values = cells, .words = list, .n_words = n};
        const struct columnar f = {.n_rows = 3, .version = "1", .columns = &c, .n_columns = 1};
        struct columnar read;
        ck_ok(columnar_write(&f, &b, &err), err);
        ck_assert_ptr_nonnull(strstr(b.s + 16, n == MOST ? "\"width\":4" : "\"width\":2"));
        ck_ok(columnar_parse(b.s, b.len, &arena, &read, &err), err);
        ck_assert_mem_eq(read.columns[0].values, cells, sizeof cells);
        ck_assert_str_eq(read.columns[0].words[n - 1], text[n - 1]);
    }
}
END_TEST

START_TEST(text_that_is_not_utf8_is_refused)
{
    AS_AUTO(str_done) struct str b = {0};
    const char *const bad[1] = {"\xff"};
    const struct columnar_column c = {
        .name = "w", .type = COLUMNAR_DICT, .values = numbers, .words = bad, .n_words = 1};
    const struct columnar f = {.n_rows = 1, .version = "1", .columns = &c, .n_columns = 1};
    ck_assert_int_eq(columnar_write(&f, &b, &err), AS_E_INVAL);
}
END_TEST

/* A file that is cut anywhere is refused. */
START_TEST(cut_files_are_refused)
{
    AS_AUTO(str_done) struct str b = {0};
    struct columnar f;
    write_five(&b);
    for (size_t n = 0; n + 2 < b.len; n += n < 32 ? 1 : 7)
        ck_assert_int_eq(columnar_parse(b.s, n < b.len - 2 ? n : 0, &arena, &f, &err), AS_E_INVAL);
}
END_TEST

static as_status parse_header(const char *header)
{
    AS_AUTO(str_done) struct str b = {0};
    struct columnar f;
    uint32_t lengths[2] = {(uint32_t)strlen(header), 0};
    str_add(&b, "ASYCOLS1", 8);
    str_add(&b, (const char *)lengths, sizeof lengths);
    str_puts(&b, header);
    for (int i = 0; i < 256; i++)
        str_putc(&b, (char)i);
    return columnar_parse(b.s, b.len, &arena, &f, &err);
}

#define ONE(column) "{\"rows\":2,\"version\":\"1\",\"whole\":true,\"columns\":[" column "]}"

START_TEST(damaged_headers_are_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"rows\":-1,\"version\":\"1\",\"whole\":true,\"columns\":[]}",
        ONE("{\"name\":\"a\",\"type\":\"u32\"}"),
        ONE("{\"name\":\"a\",\"type\":\"u64\",\"at\":128}"),
        ONE("{\"name\":\"a\",\"type\":\"u32\",\"at\":129}"),
        ONE("{\"name\":\"a\",\"type\":\"u32\",\"at\":1000000}"),
        ONE("{\"name\":\"a\",\"type\":\"dict\",\"at\":128,\"width\":3,\"words\":[\"a\"]}"),
        ONE("{\"name\":\"a\",\"type\":\"dict\",\"at\":128,\"width\":2,\"words\":[1]}"),
        ONE("{\"name\":\"a\",\"type\":\"dict\",\"at\":128,\"width\":2,\"words\":[\"a\"]}"),
        ONE("{\"name\":\"a\",\"type\":\"u32\",\"at\":128,\"planes\":true}"),
        ONE("{\"name\":\"a\",\"type\":\"f64\",\"at\":1000000,\"planes\":true}"),
        ("{\"rows\":99,\"version\":\"1\",\"whole\":true,\"columns\":[{\"name\":\"a\",\"type\":"
         "\"f64\",\"at\":8}]}")};
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
        ck_assert_msg(parse_header(bad[i]) == AS_E_INVAL, "%s", bad[i]);
    ck_ok(parse_header(ONE("{\"name\":\"a\",\"type\":\"u32\",\"at\":128}")), err);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("columnar");
    TCase *t = tcase_create("columnar");
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_test(t, round_trip);
    tcase_add_test(t, layout);
    tcase_add_test(t, planes);
    tcase_add_test(t, no_rows_and_no_columns);
    tcase_add_test(t, width_of_words);
    tcase_add_test(t, text_that_is_not_utf8_is_refused);
    tcase_add_test(t, cut_files_are_refused);
    tcase_add_test(t, damaged_headers_are_refused);
    suite_add_tcase(s, t);
    return s;
}
