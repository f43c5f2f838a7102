/* safetensors: round trips, the reference layout, checksums, damage, and heads that give wrong
 * offsets or are malformed. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/formats/safetensors.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;

/* Parse a file with this header and this many zero bytes of data. */
static as_status parse(const char *header, size_t data_len)
{
    struct str b = {0};
    uint64_t n = strlen(header);
    static const char zeros[256];
    str_add(&b, (const char *)&n, sizeof n);
    str_puts(&b, header);
    str_add(&b, zeros, data_len);
    size_t len = b.len;
    struct safetensors *s = NULL;
    as_status st = safetensors_parse(str_take(&b), len, &s, &err);
    safetensors_free(s);
    return st;
}

START_TEST(round_trip)
{
    char dir[TEMP_FOLDER_SIZE];
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *path = file_join(dir, "a.safetensors");
    float w[6] = {1, 2, 3, 4, 5, 6}, back[6];
    int64_t step = 42, step_back;
    unsigned char odd[3] = {7, 8, 9};
    struct safetensors_tensor tensors[] = {
        {.name = "odd", .type = SAFETENSORS_U8, .n_dims = 1, .shape = {3}, .data = odd},
        {.name = "w", .type = SAFETENSORS_F32, .n_dims = 2, .shape = {2, 3}, .data = w},
        {.name = "step", .type = SAFETENSORS_I64, .n_dims = 0, .data = &step},
        {.name = "none", .type = SAFETENSORS_F64, .n_dims = 1, .shape = {0}, .data = NULL},
    };
    JSON_AUTO meta = json_pack("{s:s}", "format", "assay \xc3\xa9");
    ck_ok(safetensors_write(path, meta, tensors, 4, &err), err);
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    ck_ok(safetensors_read(path, 1 << 20, &s, &err), err);
    ck_assert_uint_eq(safetensors_count(s), 4);
    ck_assert_str_eq(safetensors_metadata(s, "format"), "assay \xc3\xa9");
    ck_assert_ptr_null(safetensors_metadata(s, "other"));
    ck_ok(safetensors_copy(s, "w", SAFETENSORS_F32, 6, back, &err), err);
    ck_assert_mem_eq(w, back, sizeof w);
    ck_ok(safetensors_copy(s, "step", SAFETENSORS_I64, 1, &step_back, &err), err);
    ck_assert_int_eq(step_back, 42);
    ck_assert_uint_eq(safetensors_get(s, "w")->shape[0], 2);
    ck_fails(safetensors_copy(s, "w", SAFETENSORS_F32, 5, back, &err), AS_E_INVAL, err,
             "holds 6 of F32, expected 5 of F32");
    ck_fails(safetensors_copy(s, "w", SAFETENSORS_I32, 6, back, &err), AS_E_INVAL, err, "I32");
    ck_fails(safetensors_copy(s, "v", SAFETENSORS_F32, 6, back, &err), AS_E_INVAL, err,
             "no tensor 'v'");
    struct safetensors *other = NULL;
    ck_fails(safetensors_read(path, 10, &other, &err), AS_E_TOO_LARGE, err, "larger");
    tensors[1].name = "odd";
    ck_fails(safetensors_write(path, meta, tensors, 4, &err), AS_E_INVAL, err, "two tensors");
    temp_folder_remove(dir);
}
END_TEST

/* A file of ours with any one bit turned over is refused, or has no checksum any more (a flip in
 * that word), which whoever asks for one sees. */
START_TEST(damage_is_seen)
{
    char dir[TEMP_FOLDER_SIZE];
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *path = file_join(dir, "a.safetensors");
    AS_AUTO(as_freep) char *bytes = NULL;
    float w[6] = {1, 2, 3, 4, 5, 6};
    size_t len = 0, refused = 0;
    const struct safetensors_tensor tensor = {
        .name = "w", .type = SAFETENSORS_F32, .n_dims = 2, .shape = {2, 3}, .data = w};
    JSON_AUTO meta = json_pack("{s:s}", "report", "{\"" SAFETENSORS_CHECKSUM "\":\"00000000\"}");
    ck_ok(safetensors_write(path, meta, &tensor, 1, &err), err);
    ck_ok(file_read(path, 4096, &bytes, &len, &err), err);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        struct safetensors *s = NULL;
        char *copy = as_calloc(len, 1);
        memcpy(copy, bytes, len);
        copy[bit / 8] ^= (char)(1 << bit % 8);
        as_status st = safetensors_parse(copy, len, &s, &err);
        ck_assert_msg(st != AS_OK || !safetensors_metadata(s, SAFETENSORS_CHECKSUM), "bit %zu",
                      bit);
        refused += st != AS_OK;
        safetensors_free(s);
    }
    ck_assert_uint_ge(refused, 8 * (len - strlen(SAFETENSORS_CHECKSUM)));
    bytes[len - 1] ^= 4;
    ck_ok(file_replace(path, bytes, len, 0644, &err), err);
    struct safetensors *s = NULL;
    ck_fails(safetensors_read(path, 4096, &s, &err), AS_E_INVAL, err,
             "a.safetensors: the file is damaged: its content has the CRC-32C ");
    temp_folder_remove(dir);
}
END_TEST

START_TEST(checksums_of_others)
{
    static const char *const values[] = {"", "0000000", "000000000", "zzzzzzzz", "00000000"};
    char header[200];
    for (size_t i = 0; i < AS_ARRAY_LEN(values); i++) {
        (void)snprintf(header, sizeof header, "{\"__metadata__\":{\"%s\":\"%s\"}}",
                       SAFETENSORS_CHECKSUM, values[i]);
        ck_fails(parse(header, 0), AS_E_INVAL, err, "damaged");
    }
    ck_fails(parse("{\"__metadata__\":{\"" SAFETENSORS_CHECKSUM "\" : \"00000000\"}}", 0),
             AS_E_INVAL, err, "damaged"); /* not as it is written here */
    JSON_AUTO meta = json_pack("{s:s}", SAFETENSORS_CHECKSUM, "00000000");
    ck_fails(safetensors_write("/nonexistent/a", meta, NULL, 0, &err), AS_E_INVAL, err,
             SAFETENSORS_CHECKSUM);
}
END_TEST

#define T(dtype, shape, from, to)                                                                  \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"

START_TEST(reference_layout)
{
    /* as the reference library writes it: padded with spaces, metadata first */
    ck_ok(parse("{\"__metadata__\":{\"format\":\"pt\"},\"a\":" T(
                    "F32", "[2]", "0", "8") ",\"b\":" T("I64", "[1,1]", "8", "16") "}   ",
                16),
          err);
    ck_ok(parse("{}", 0), err);
}
END_TEST

START_TEST(bad_offsets)
{
    ck_fails(parse("{\"a\":" T("F32", "[2]", "0", "8") "}", 7), AS_E_INVAL, err, "7 bytes of data");
    ck_fails(parse("{\"a\":" T("F32", "[2]", "0", "8") "}", 9), AS_E_INVAL, err,
             "1 bytes follow the last tensor");
    ck_fails(
        parse("{\"a\":" T("F32", "[2]", "0", "8") ",\"b\":" T("F32", "[2]", "4", "12") "}", 12),
        AS_E_INVAL, err, "overlap");
    ck_fails(
        parse("{\"a\":" T("F32", "[1]", "0", "4") ",\"b\":" T("F32", "[1]", "8", "12") "}", 12),
        AS_E_INVAL, err, "hole of 4 bytes before tensor 'b'");
    ck_fails(parse("{\"a\":" T("F32", "[2]", "8", "0") "}", 8), AS_E_INVAL, err, "is at 8 to 0");
    ck_fails(parse("{\"a\":" T("F32", "[2]", "-8", "0") "}", 8), AS_E_INVAL, err, "is at -8");
    ck_fails(parse("{\"a\":" T("F32", "[3]", "0", "8") "}", 8), AS_E_INVAL, err, "do not fit");
    ck_fails(parse("{\"a\":" T("F32", "[-2]", "0", "8") "}", 8), AS_E_INVAL, err, "shape");
    ck_fails(parse("{\"a\":" T("F32", "[4611686018427387904,4]", "0", "0") "}", 0), AS_E_INVAL, err,
             "do not fit");
    ck_fails(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0]}}", 4), AS_E_INVAL,
             err, "two whole numbers");
}
END_TEST

START_TEST(bad_headers)
{
    struct safetensors *s = NULL;
    ck_fails(safetensors_parse(as_calloc(4, 1), 4, &s, &err), AS_E_INVAL, err, "4 bytes");
    char *cut = as_calloc(16, 1);
    cut[0] = 9;
    ck_fails(safetensors_parse(cut, 16, &s, &err), AS_E_INVAL, err, "cut short");
    char *huge = as_calloc(16, 1);
    memset(huge, 0xff, 8);
    ck_fails(safetensors_parse(huge, 16, &s, &err), AS_E_TOO_LARGE, err, "larger");
    ck_fails(parse("[1]", 0), AS_E_INVAL, err, "expected an object");
    ck_fails(parse("{", 0), AS_E_INVAL, err, "not JSON");
    ck_fails(parse("{\"a\":" T("BF16", "[2]", "0", "4") "}", 4), AS_E_UNSUPPORTED, err, "BF16");
    ck_fails(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4), AS_E_INVAL, err,
             "/a/data_offsets is missing");
    ck_fails(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4),
             AS_E_INVAL, err, "/a/x");
    ck_fails(parse("{\"__metadata__\":{\"a\":1}}", 0), AS_E_INVAL, err, "expected a string");
    ck_fails(parse("{\"__metadata__\":[]}", 0), AS_E_INVAL, err, "object of strings");
    ck_fails(safetensors_read("/nonexistent", 10, &s, &err), AS_E_NOT_FOUND, err, "/nonexistent");
    ck_assert_ptr_null(s);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("safetensors");
    TCase *t = tcase_create("safetensors");
    tcase_add_test(t, round_trip);
    tcase_add_test(t, damage_is_seen);
    tcase_add_test(t, checksums_of_others);
    tcase_add_test(t, reference_layout);
    tcase_add_test(t, bad_offsets);
    tcase_add_test(t, bad_headers);
    suite_add_tcase(s, t);
    return s;
}
