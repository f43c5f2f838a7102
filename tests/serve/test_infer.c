/* The codec of the inference protocol: what is read from a body, and what is refused with which
 * words; numbers of answers read back as the same floats. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "serve/infer_answer.h"
#include "serve/infer_request.h"
#include "tests/support/check_main.h"

static struct as_err err;
static struct arena arena;
static struct infer_request q;

static void setup(void)
{
    arena = (struct arena){0};
}

static void teardown(void)
{
    arena_done(&arena);
}

static as_status parse(const char *json)
{
    return infer_request_parse(json, strlen(json), strlen(json), &arena, &q, &err);
}

static void refuses(const char *json, as_status st, const char *part)
{
    as_status got = parse(json);
    ck_assert_msg(got == st && strstr(err.msg, part), "%s\ngot %s: %s\nexpected %s: …%s…", json,
                  as_status_name(got), got < 0 ? err.msg : "", as_status_name(st), part);
}

#define TENSOR(shape, type, data)                                                                  \
    "{\"inputs\":[{\"name\":\"a\",\"shape\":" shape ",\"datatype\":\"" type "\",\"data\":" data    \
    "}]}"

START_TEST(test_reads_the_examples_of_the_specification)
{
    ck_ok(parse("{ \"id\" : \"42\", \"inputs\" : [ { \"name\" : \"input0\", \"shape\" : [ 2, 2 ], "
                "\"datatype\" : \"UINT32\", \"data\" : [ 1, 2, 3, 4 ] }, { \"name\" : \"input1\", "
                "\"shape\" : [ 3 ], \"datatype\" : \"BOOL\", \"data\" : [ true, false, true ] } ], "
                "\"outputs\" : [ { \"name\" : \"output0\" } ] }"),
          err);
    ck_assert(q.has_id && q.id.len == 2 && memcmp(q.id.s, "42", 2) == 0);
    ck_assert_uint_eq(q.n_inputs, 2);
    ck_assert_float_eq(q.inputs[0].numbers[3], 4);
    ck_assert_float_eq(q.inputs[1].numbers[1], 0);
    ck_assert_uint_eq(q.n_wishes, 1);
    ck_assert(!q.wishes[0].is_binary);
    /* its second tensor as it stands there has one value for a shape of three */
    refuses(
        "{\"inputs\":[{\"name\":\"input1\",\"shape\":[3],\"datatype\":\"BOOL\",\"data\":[true]}]}",
        AS_E_INVAL, "expected 3 for its shape [3]");
}
END_TEST

START_TEST(test_values_may_be_nested_or_flat_and_keys_in_any_order)
{
    ck_ok(parse("{\"inputs\":[{\"data\":[[1,2],[3,4],[5.5,-6e-1]],\"datatype\":\"FP32\","
                "\"shape\":[3,2],\"name\":\"a\"}]}"),
          err);
    ck_assert_uint_eq(q.inputs[0].n, 6);
    ck_assert_float_eq(q.inputs[0].numbers[4], 5.5F);
    ck_assert_float_eq(q.inputs[0].numbers[5], -0.6F);
    ck_ok(parse(TENSOR("[2,1]", "BYTES", "[[\"r\\u00e9d\"],[\"\\ud83d\\ude00\"]]")), err);
    ck_assert_uint_eq(q.inputs[0].texts[0].len, 4);
    ck_assert(memcmp(q.inputs[0].texts[1].s, "\xf0\x9f\x98\x80", 4) == 0);
    ck_ok(parse(TENSOR("[2]", "FP64", "[null, 0.1]")), err);
    ck_assert(isnan(q.inputs[0].numbers[0]));
    ck_assert_float_eq(q.inputs[0].numbers[1], 0.1F);
    refuses(TENSOR("[2,2]", "FP32", "[[1,2],[3]]"), AS_E_INVAL, "expected 2 for its shape [2, 2]");
    refuses(TENSOR("[2,2]", "FP32", "[[1,2],3]"), AS_E_INVAL, "the data of a tensor is a number");
    refuses(TENSOR("[2,2]", "FP32", "[1,2,3]"), AS_E_INVAL, "has 3 values, expected 4");
    refuses(TENSOR("[2]", "FP32", "[1,2,3]"), AS_E_INVAL, "more than 2 values");
    refuses(TENSOR("[1]", "FP32", "[[1]]"), AS_E_INVAL, "is an array, expected a number");
}
END_TEST

/* The first number past each end of each datatype, and the last one before it, as digits, as
 * fractions and with exponents. */
START_TEST(test_datatypes_have_exact_bounds)
{
    static const struct {
        const char *type, *good, *bad;
    } cases[] = {
        {"BOOL", "[0,1,-0,1.0,10e-1]", "2 -1 0.5 1.00000000000000000001"},
        {"UINT8", "[0,255,2.55e2,2550E-1,-0]", "256 -1 2.5 255.00000000000000000001 -1e-400"},
        {"UINT16", "[65535]", "65536 -1"},
        {"UINT32", "[4294967295]", "4294967296 -1"},
        {"UINT64",
         "[18446744073709551615,18446744073709551615.000,1.8446744073709551615e19,"
         "1844674407370955161500000e-5,18446744073709551e3,0e999999999999,0.00e7]",
         "18446744073709551616 1.8446744073709551616e19 184467440737095516160 2e19 1e300 -1 "
         "18446744073709551615.5 4503599627370497.25 0.99999999999999999999 1e-1 "
         "1e-999999999999"},
        {"INT8", "[-128,127]", "-129 128"},
        {"INT16", "[-32768,32767]", "-32769 32768"},
        {"INT32", "[-2147483648,2147483647]", "-2147483649 2147483648"},
        {"INT64", "[-9223372036854775808,9223372036854775807,-9223372036854775.808e3]",
         "-9223372036854775809 9223372036854775808 9.223372036854775808e18 1e19 -1e19"},
        {"FP16", "[65519.9,-65519.9,1e-300]", "65520 -65520 1e5"},
        {"FP32", "[3.4028235e38,-3.4028235e38,1e-300]", "3.4028236e38 -3.4028236e38 1e300"},
        {"FP64", "[3.4028235e38,1e-300]", "1e300 -1e39"},
    };
    char text[600], number[64];
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        size_t n = 1, len;
        for (const char *p = cases[i].good; *p; p++)
            n += *p == ',';
        (void)snprintf(text, sizeof text, TENSOR("[%zu]", "%s", "%s"), n, cases[i].type,
                       cases[i].good);
        ck_ok(parse(text), err);
        for (const char *p = cases[i].bad; *p; p += len + (p[len] == ' ')) {
            len = strcspn(p, " ");
            (void)snprintf(number, sizeof number, "%.*s", (int)len, p);
            (void)snprintf(text, sizeof text, TENSOR("[1]", "%s", "[%s]"), cases[i].type, number);
            (void)snprintf(number, sizeof number, "'a' (%s) is %.*s, expected ", cases[i].type,
                           (int)len, p);
            refuses(text, AS_E_INVAL, number);
        }
    }
}
END_TEST

/* Every way to write the dimension 2, and texts that are none. */
START_TEST(test_dimensions_are_json_numbers)
{
    static const char *const good[] = {"[2]", "[ 2]", "[2 ]", "[2.0]", "[2e0]", "[0.2E1]", "[2,1]"};
    static const char *const bad[] = {"[02]", "[2.5]", "[-2]",    "[2x]",
                                      "[2,]", "[+2]",  "[\"2\"]", "[2"};
    char text[200];
    for (size_t i = 0; i < AS_ARRAY_LEN(good); i++) {
        (void)snprintf(text, sizeof text, TENSOR("%s", "FP32", "[1,2]"), good[i]);
        ck_ok(parse(text), err);
        ck_assert_uint_eq(q.inputs[0].shape[0], 2);
        ck_assert_uint_eq(q.inputs[0].n, 2);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        (void)snprintf(text, sizeof text, TENSOR("%s", "FP32", "[1,2]"), bad[i]);
        refuses(text, AS_E_INVAL, "");
    }
    refuses(TENSOR("[2,02]", "FP32", "[1,2]"), AS_E_INVAL,
            "dimension 1 in the shape of tensor 'a' begins with 0");
    refuses(TENSOR("[1000000000,1000000000]", "FP32", "[1,2]"), AS_E_TOO_LARGE, "elements");
    refuses(TENSOR("[123456789,999999999]", "FP32", "[1,2]"), AS_E_TOO_LARGE, "elements");
}
END_TEST

START_TEST(test_refuses_shapes_that_lie)
{
    refuses(TENSOR("[-1]", "FP32", "[1]"), AS_E_INVAL, "is -1, expected a whole number");
    refuses(TENSOR("[1.5]", "FP32", "[1]"), AS_E_INVAL, "is 1.5, expected a whole number");
    refuses(TENSOR("[0]", "FP32", "[]"), AS_E_INVAL, "is 0, expected at least 1");
    refuses(TENSOR("[4294967296,4294967296]", "FP32", "[1]"), AS_E_TOO_LARGE, "more than");
    refuses(TENSOR("[9007199254740992,2048,9]", "FP32", "[1]"), AS_E_TOO_LARGE, "more than");
    refuses(TENSOR("[1e300]", "FP32", "[1]"), AS_E_INVAL, "expected a whole number");
    refuses(TENSOR("[1000000000]", "FP32", "[1]"), AS_E_INVAL, "fewer values");
    refuses(TENSOR("[1,1,1,1,1,1,1,1,1]", "FP32", "[1]"), AS_E_INVAL, "more than 8 dimensions");
    refuses(TENSOR("\"3\"", "FP32", "[1]"), AS_E_INVAL, "is a string, expected an array");
}
END_TEST

START_TEST(test_refuses_values_of_another_type)
{
    refuses(TENSOR("[1]", "FP99", "[1]"), AS_E_INVAL, "'FP99', expected BOOL");
    refuses(TENSOR("[1]", "FP32", "[\"1\"]"), AS_E_INVAL, "is a string, expected a number");
    refuses(TENSOR("[1]", "FP32", "[NaN]"), AS_E_INVAL, "expected a value");
    refuses(TENSOR("[1]", "FP32", "[1e39]"), AS_E_INVAL,
            "is 1e39, expected a number of at most 3.4028235e38");
    refuses(TENSOR("[1]", "FP64", "[1e999]"), AS_E_INVAL, "past the range of doubles");
    refuses(TENSOR("[1]", "INT8", "[128]"), AS_E_INVAL,
            "'a' (INT8) is 128, expected a whole number from -128 to 127");
    refuses(TENSOR("[1]", "INT64", "[0.5]"), AS_E_INVAL,
            "is 0.5, expected a whole number from -2^63 to 2^63 - 1");
    refuses(TENSOR("[1]", "INT64", "[null]"), AS_E_INVAL, "is null, expected a number");
    refuses(TENSOR("[1]", "BYTES", "[7]"), AS_E_INVAL, "is a number, expected a string");
    refuses(TENSOR("[1]", "BYTES", "[\"\xff\"]"), AS_E_INVAL, "not valid UTF-8");
    refuses(TENSOR("[1]", "BYTES", "[\"\\ud800\"]"), AS_E_INVAL, "bad escape");
    refuses(TENSOR("[1]", "BYTES", "[\"\\udc00\"]"), AS_E_INVAL, "bad escape");
    refuses(TENSOR("[1]", "FP32", "[01]"), AS_E_INVAL, "begins with 0");
}
END_TEST

START_TEST(test_refuses_requests_that_are_not_whole)
{
    refuses("", AS_E_INVAL, "ends too early");
    refuses("[]", AS_E_INVAL, "the request is an array, expected an object");
    refuses("{}", AS_E_INVAL, "has no 'inputs'");
    refuses("{\"inputs\":[]}", AS_E_INVAL, "has no 'inputs'");
    refuses("{\"inputs\":[{}]}", AS_E_INVAL, "has no 'name'");
    refuses("{\"inputs\":[{\"name\":\"a\",\"shape\":[1]}]}", AS_E_INVAL, "has no 'datatype'");
    refuses("{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\"}]}", AS_E_INVAL,
            "has no 'data'");
    refuses("{\"inputs\":[{\"name\":\"a\",\"name\":\"b\"}]}", AS_E_INVAL, "stands twice");
    refuses("{\"inputs\":[{\"name\":\"a\"", AS_E_INVAL, "ends too early");
    refuses(TENSOR("[1]", "FP32", "[1]") "x", AS_E_INVAL, "expected the end");
    refuses("{\"x\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}", AS_E_TOO_LARGE, "levels deep");
    refuses("{\"inputs\":[{\"name\":\"a\",\"parameters\":{\"shared_memory_region\":\"r\"}}]}",
            AS_E_UNSUPPORTED, "shared memory");
}
END_TEST

/* A body of JSON with bytes behind it; `json_len` as the header says it. */
static as_status parse_binary(const char *json, const void *bytes, size_t len, size_t json_len)
{
    size_t n = strlen(json);
    char *body = arena_alloc(&arena, n + len, 1);
    ck_assert_ptr_nonnull(body);
    memcpy(body, json, n);
    memcpy(body + n, bytes, len);
    return infer_request_parse(body, n + len, json_len ? json_len : n, &arena, &q, &err);
}

#define BINARY(shape, type, size)                                                                  \
    "{\"parameters\":{\"binary_data_output\":true},\"outputs\":[{\"name\":\"o\"}],\"inputs\":[{"   \
    "\"name\":\"a\",\"shape\":" shape ",\"datatype\":\"" type                                      \
    "\",\"parameters\":{\"binary_data_size\":" size "}}]}"

START_TEST(test_reads_binary_tensors)
{
    const float two[] = {1.5F, NAN};
    const uint16_t halves[] = {0x3c00, 0xc500, 0x0001};
    ck_ok(parse_binary(BINARY("[2]", "FP32", "8"), two, sizeof two, 0), err);
    ck_assert_float_eq(q.inputs[0].numbers[0], 1.5F);
    ck_assert(isnan(q.inputs[0].numbers[1]));
    ck_assert(q.wishes[0].is_binary);
    ck_ok(parse_binary(BINARY("[3]", "FP16", "6"), halves, sizeof halves, 0), err);
    ck_assert_float_eq(q.inputs[0].numbers[0], 1);
    ck_assert_float_eq(q.inputs[0].numbers[1], -5);
    ck_assert_float_eq(q.inputs[0].numbers[2], 0x1p-24F);
    ck_ok(parse_binary(BINARY("[2]", "BYTES", "11"), "\3\0\0\0red\0\0\0\0", 11, 0), err);
    ck_assert_uint_eq(q.inputs[0].texts[0].len, 3);
    ck_assert_uint_eq(q.inputs[0].texts[1].len, 0);
}
END_TEST

START_TEST(test_refuses_binary_tensors_that_are_cut)
{
    const float infinite[] = {INFINITY, 0};
    const struct {
        const char *json, *part;
        size_t len, json_len;
    } cases[] = {
        {BINARY("[2]", "FP32", "8"), "but 7 bytes are left", 7, 0},
        {BINARY("[2]", "FP32", "8"), "belong to no tensor", 9, 0},
        {BINARY("[2]", "FP32", "7"), "expected 8 for FP32 [2]", 7, 0},
        {BINARY("[2]", "FP32", "8"), "but the body has", 8, 100000},
        {BINARY("[2]", "FP32", "8"), "ends too early", 8, 20},
        {BINARY("[2]", "FP32", "18446744073709551615"), "expected a whole number", 8, 0},
        {BINARY("[2000000000]", "FP64", "8"), "expected 16000000000", 8, 0},
        {BINARY("[2000000000]", "BYTES", "8"), "are not 2000000000 texts", 8, 0},
        {BINARY("[1]", "BYTES", "8"), "says it has 2139095040 bytes", 8, 0},
        {BINARY("[2]", "FP32", "8"), "is infinite", 8, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char bytes[16] = {0};
        if (strstr(cases[i].part, "infinite") || strstr(cases[i].part, "2139095040"))
            memcpy(bytes, infinite, sizeof infinite);
        as_status st = parse_binary(cases[i].json, bytes, cases[i].len, cases[i].json_len);
        ck_assert_msg(st == AS_E_INVAL && strstr(err.msg, cases[i].part), "case %zu: %s", i,
                      err.msg);
    }
}
END_TEST

START_TEST(test_written_floats_read_back)
{
    AS_AUTO(str_done) struct str b = {0};
    const float some[] = {0,           -0.0F,         1,        -1,          0.1F,
                          1e-4F,       9.9999997e-5F, FLT_MAX,  FLT_MIN,     1e8F,
                          99999992.0F, 1e-45F,        0.5F,     123456.789F, 9.9999e7F,
                          0.99999994F, 1.0000001F,    16777216, 3.4e-5F,     2e-4F};
    struct rng r;
    rng_init(&r, 1, 2);
    for (size_t i = 0; i < 200000; i++) {
        union {
            uint32_t bits;
            float v;
        } u = {.bits = (uint32_t)rng_below(&r, UINT32_MAX)};
        float v = i < AS_ARRAY_LEN(some) ? some[i] : i % 2 ? (float)(rng_uniform(&r) * 2 - 1) : u.v;
        if (!isfinite(v))
            continue;
        str_clear(&b);
        infer_float_write(&b, v);
        ck_assert_msg(strtof(b.s, NULL) == v, "%.9g is written as %s", (double)v, b.s);
        ck_assert_msg(as_decimal_len(b.s) == b.len, "%s", b.s);
    }
    str_clear(&b);
    infer_float_write(&b, NAN);
    ck_assert_str_eq(b.s, "null");
    str_clear(&b);
    infer_text_write(&b, "a\"\\\n\xc3\xa9", 6);
    ck_assert_str_eq(b.s, "\"a\\\"\\\\\\u000a\xc3\xa9\"");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("serve/infer");
    TCase *t = tcase_create("codec");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_reads_the_examples_of_the_specification);
    tcase_add_test(t, test_values_may_be_nested_or_flat_and_keys_in_any_order);
    tcase_add_test(t, test_datatypes_have_exact_bounds);
    tcase_add_test(t, test_dimensions_are_json_numbers);
    tcase_add_test(t, test_refuses_shapes_that_lie);
    tcase_add_test(t, test_refuses_values_of_another_type);
    tcase_add_test(t, test_refuses_requests_that_are_not_whole);
    tcase_add_test(t, test_reads_binary_tensors);
    tcase_add_test(t, test_refuses_binary_tensors_that_are_cut);
    tcase_add_test(t, test_written_floats_read_back);
    suite_add_tcase(s, t);
    return s;
}
