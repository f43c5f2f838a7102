/* Accept-Encoding, If-None-Match and Range, as clients write them. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "api/http/http_content.h"
#include "tests/support/check_main.h"

START_TEST(test_accept_encoding)
{
    static const struct {
        const char *text;
        bool accepts;
    } cases[] = {{NULL, false},
                 {"", false},
                 {"gzip", true},
                 {"gzip, deflate, br", true},
                 {"deflate, GZIP;q=0.5", true},
                 {"x-gzip", true},
                 {"*", true},
                 {"gzip;q=0", false},
                 {"gzip;q=0.000, *", false},
                 {"*;q=0", false},
                 {"identity", false},
                 {"identity;q=0.5, gzip;q=0.4", false},
                 {"identity;q=0.5, gzip;q=0.6", true},
                 {"gzip ; q=1", true},
                 {"gzip;q=2", false},
                 {"gzip;x", false},
                 {"gzipped", false},
                 {"br", false}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        ck_assert_msg(http_accepts_gzip(cases[i].text) == cases[i].accepts, "case %zu: %s", i,
                      cases[i].text);
}
END_TEST

START_TEST(test_etags)
{
    ck_assert(!http_etag_listed(NULL, "\"a\""));
    ck_assert(!http_etag_listed("", "\"a\""));
    ck_assert(http_etag_listed("\"a\"", "\"a\""));
    ck_assert(http_etag_listed("W/\"a\"", "\"a\""));
    ck_assert(http_etag_listed("\"a\"", "W/\"a\""));
    ck_assert(http_etag_listed("\"b\", W/\"c,d\" ,\"a\"", "\"a\""));
    ck_assert(http_etag_listed("*", "\"a\""));
    ck_assert(!http_etag_listed("\"aa\", \"b\"", "\"a\""));
    ck_assert(!http_etag_listed("a", "\"a\""));
    ck_assert(!http_etag_listed("\"a", "\"a\""));
    ck_assert(!http_etag_listed("\"b\" \"", "\"a\""));
}
END_TEST

START_TEST(test_ranges)
{
    static const struct {
        const char *text;
        http_range want;
        int64_t first, last;
    } cases[] = {{NULL, HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=0-0", HTTP_RANGE_PART, 0, 0},
                 {"bytes=2-5", HTTP_RANGE_PART, 2, 5},
                 {"Bytes=2-", HTTP_RANGE_PART, 2, 9},
                 {"bytes=2-500", HTTP_RANGE_PART, 2, 9},
                 {"bytes=-3", HTTP_RANGE_PART, 7, 9},
                 {"bytes=-300", HTTP_RANGE_PART, 0, 9},
                 {"bytes=9-9", HTTP_RANGE_PART, 9, 9},
                 {"bytes=10-", HTTP_RANGE_UNSATISFIABLE, 0, 0},
                 {"bytes=10-11", HTTP_RANGE_UNSATISFIABLE, 0, 0},
                 {"bytes=-0", HTTP_RANGE_UNSATISFIABLE, 0, 0},
                 {"bytes=5-2", HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=0-1,3-4", HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=", HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=-", HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=a-b", HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=1-2x", HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=+1-2", HTTP_RANGE_WHOLE, 0, 0},
                 {"bytes=9999999999999999999-", HTTP_RANGE_WHOLE, 0, 0},
                 {"rows=1-2", HTTP_RANGE_WHOLE, 0, 0}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        int64_t first = 0, last = 0;
        ck_assert_msg(http_range_read(cases[i].text, 10, &first, &last) == cases[i].want,
                      "case %zu: %s", i, cases[i].text);
        ck_assert_int_eq(first, cases[i].first);
        ck_assert_int_eq(last, cases[i].last);
    }
    int64_t first = 0, last = 0;
    ck_assert_int_eq(http_range_read("bytes=0-", 0, &first, &last), HTTP_RANGE_UNSATISFIABLE);
    ck_assert_int_eq(http_range_read("bytes=-5", 0, &first, &last), HTTP_RANGE_UNSATISFIABLE);
}
END_TEST

typedef as_status gzip_fn(const void *, size_t, int, struct str *, struct as_err *);

static void comes_back(gzip_fn *gzip, const char *text, size_t len, int level, struct str *packed)
{
    struct as_err err;
    char *back = malloc(len + 1);
    ck_ok(gzip(text, len, level, packed, &err), err);
    z_stream z = {.next_in = (Bytef *)packed->s, .avail_in = (uInt)packed->len};
    ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK); /* gzip only */
    z.next_out = (Bytef *)back;
    z.avail_out = (uInt)len + 1;
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(z.total_out, len);
    ck_assert_int_eq(inflateEnd(&z), Z_OK);
    ck_assert_mem_eq(text, back, len);
    free(back);
}

START_TEST(test_gzip_comes_back)
{
    static char text[100000];
    struct str packed = {0};
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * i % 251);
    comes_back(http_gzip, text, sizeof text, 3, &packed);
    ck_assert_uint_lt(packed.len, sizeof text);
    str_done(&packed);
}
END_TEST

/* Noise and blanks in turn, in runs that end at no piece's edge. */
START_TEST(test_gzip_stores_noise)
{
    static char text[1 << 20];
    size_t noise = 0;
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof text; i++) {
        bool is_noise = i / 100000 % 2 == 1;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        text[i] = is_noise ? (char)(seed >> 56) : ' ';
        noise += is_noise;
    }
    for (int level = 1; level <= 9; level += 4) {
        struct str packed = {0};
        comes_back(http_gzip_planes, text, sizeof text, level, &packed);
        ck_assert_uint_ge(packed.len, noise);
        ck_assert_uint_lt(packed.len, noise + noise / 8);
        str_done(&packed);
    }
    for (size_t len = 0; len < 40000; len += 1023) { /* from the middle of noise */
        struct str packed = {0};
        comes_back(http_gzip_planes, text + 150000, len, 1, &packed);
        ck_assert_uint_le(packed.len, len + 64);
        str_done(&packed);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("http_content");
    TCase *t = tcase_create("content");
    tcase_add_test(t, test_accept_encoding);
    tcase_add_test(t, test_etags);
    tcase_add_test(t, test_ranges);
    tcase_add_test(t, test_gzip_comes_back);
    tcase_add_test(t, test_gzip_stores_noise);
    suite_add_tcase(s, t);
    return s;
}
