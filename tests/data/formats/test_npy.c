/* NPY: round trips, every kind of element, arrays that are read in pieces, and heads that are
 * refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "data/formats/npy.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char path[64];

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/a.npy", dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* An NPY file with this dict and data, as numpy would lay it out. */
static void write_npy(int version, const char *dict, const void *data, size_t len)
{
    AS_AUTO(str_done) struct str b = {0};
    size_t n = strlen(dict);
    char head[12] = {'\x93',           'N',           'U', 'M', 'P', 'Y', (char)version, 0,
                     (char)(n & 0xff), (char)(n >> 8)};
    str_add(&b, head, version == 1 ? 10 : 12);
    str_puts(&b, dict);
    str_add(&b, data, len);
    ck_ok(file_replace(path, b.s, b.len, 0644, &err), err);
}

static as_status open_with(const char *dict, size_t data_len)
{
    static const char zeros[4096];
    struct npy *n = NULL;
    write_npy(1, dict, zeros, data_len);
    as_status st = npy_open(path, &n, &err);
    npy_free(n);
    return st;
}

START_TEST(round_trip)
{
    const float in[6] = {0, -1.5f, NAN, 3, INFINITY, 5};
    double out[6];
    ck_ok(npy_write(path, NPY_F4, (size_t[]){2, 3}, 2, in, &err), err);
    AS_AUTO(npy_freep) struct npy *n = NULL;
    ck_ok(npy_open(path, &n, &err), err);
    const struct npy_header *h = npy_header_of(n);
    ck_assert_uint_eq(h->n_dims, 2);
    ck_assert_uint_eq(h->shape[1], 3);
    ck_assert_uint_eq(h->data_offset % 64, 0);
    ck_ok(npy_read(n, 2, out, &err), err);
    ck_ok(npy_read(n, 4, out + 2, &err), err);
    for (int i = 0; i < 6; i++)
        ck_assert(out[i] == (double)in[i] || (isnan(out[i]) && isnan(in[i])));
    ck_fails(npy_read(n, 1, out, &err), AS_E_INVAL, err, "6 values");
}
END_TEST

START_TEST(every_type)
{
    static const struct {
        const char *descr;
        size_t size;
        unsigned char bytes[8];
        double want;
    } cases[] = {
        {"|b1", 1, {1}, 1},
        {"|i1", 1, {0xff}, -1},
        {"<i2", 2, {0xfe, 0xff}, -2},
        {"<i4", 4, {0xfd, 0xff, 0xff, 0xff}, -3},
        {"<i8", 8, {0, 0, 0, 0, 0, 1}, 1099511627776.0},
        {"|u1", 1, {0xff}, 255},
        {"<u2", 2, {0xff, 0xff}, 65535},
        {"<u4", 4, {0xff, 0xff, 0xff, 0xff}, 4294967295.0},
        {"<f4", 4, {0, 0, 0x80, 0x3f}, 1},
        {"<f8", 8, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 1},
        {"<u1", 1, {7}, 7},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char dict[128];
        double v = 0;
        (void)snprintf(dict, sizeof dict,
                       "{'shape': (), \"fortran_order\": False, 'descr': '%s'}\n", cases[i].descr);
        write_npy(1 + (int)(i % 3), dict, cases[i].bytes, cases[i].size);
        AS_AUTO(npy_freep) struct npy *n = NULL;
        ck_ok(npy_open(path, &n, &err), err);
        ck_ok(npy_read(n, 1, &v, &err), err);
        ck_assert_double_eq(v, cases[i].want);
    }
}
END_TEST

START_TEST(long_array)
{
    static int64_t in[30000];
    static double out[30000];
    for (int i = 0; i < 30000; i++)
        in[i] = i * 7 - 5;
    ck_ok(npy_write(path, NPY_I8, (size_t[]){30000}, 1, in, &err), err);
    AS_AUTO(npy_freep) struct npy *n = NULL;
    ck_ok(npy_open(path, &n, &err), err);
    for (int i = 0; i < 30000; i += 1000)
        ck_ok(npy_read(n, 1000, out + i, &err), err);
    for (int i = 0; i < 30000; i++)
        ck_assert_double_eq(out[i], (double)in[i]);
}
END_TEST

START_TEST(refused)
{
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", 8),
             AS_E_UNSUPPORTED, err, "Fortran");
    ck_fails(open_with("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 8),
             AS_E_UNSUPPORTED, err, "Python objects");
    ck_fails(open_with("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8),
             AS_E_UNSUPPORTED, err, "big-endian");
    ck_fails(open_with("{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }", 24),
             AS_E_UNSUPPORTED, err, "<U3");
    ck_fails(open_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8),
             AS_E_UNSUPPORTED, err, "named fields");
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8), AS_E_INVAL,
             err, "cut short: 8 bytes of data, its shape needs 12");
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 8), AS_E_INVAL,
             err, "4 bytes after its data");
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 8), AS_E_INVAL,
             err, "whole numbers in 'shape'");
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': False}", 8), AS_E_INVAL, err, "the keys");
    ck_fails(open_with("{'descr': '<f4', 'descr': '<f4', 'shape': ()}", 8), AS_E_INVAL, err,
             "once");
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", 4),
             AS_E_INVAL, err, "nothing after");
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4), AS_E_INVAL, err,
             "True or False");
    ck_fails(open_with("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, "
                       "8)}",
                       8),
             AS_E_TOO_LARGE, err, "too large");
    ck_fails(open_with("{'descr': '<f8', 'fortran_order': False, 'shape': "
                       "(99999999999999999999999,)}",
                       8),
             AS_E_INVAL, err, "shape");
    ck_fails(open_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4),
             AS_E_TOO_LARGE, err, "dimensions");
}
END_TEST

START_TEST(not_npy)
{
    struct npy *n = NULL;
    struct npy_header h;
    ck_fails(npy_open("/nonexistent.npy", &n, &err), AS_E_NOT_FOUND, err, "/nonexistent.npy");
    ck_ok(file_replace(path, "PK\3\4 zip", 8, 0644, &err), err);
    ck_fails(npy_open(path, &n, &err), AS_E_INVAL, err, "not an NPY file");
    ck_fails(npy_parse_header("\x93NUMPY\x09\x00\x00\x00", 10, &h, &err), AS_E_UNSUPPORTED, err,
             "version 9");
    ck_fails(npy_parse_header("\x93NUMPY\x02\x00\x00\x00", 10, &h, &err), AS_E_INVAL, err,
             "cut short");
    ck_fails(npy_parse_header("\x93NUMPY\x01\x00\x40\x00", 10, &h, &err), AS_E_INVAL, err,
             "cut short");
    ck_fails(npy_parse_header("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, &h, &err), AS_E_TOO_LARGE,
             err, "header");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("npy");
    TCase *t = tcase_create("npy");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, round_trip);
    tcase_add_test(t, every_type);
    tcase_add_test(t, long_array);
    tcase_add_test(t, refused);
    tcase_add_test(t, not_npy);
    suite_add_tcase(s, t);
    return s;
}
