/* Data sets from arrays: NPY, NPZ, safetensors, IDX and CIFAR; tables, pairs of files, images,
 * files that are damaged or cut, and memory that runs out. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "data/formats/safetensors.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char x_path[64], y_path[64];
static struct dataset_paths pair, one;

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(x_path, sizeof x_path, "%s/x", dir);
    (void)snprintf(y_path, sizeof y_path, "%s/y", dir);
    pair = (struct dataset_paths){.features = x_path, .targets = y_path};
    one = (struct dataset_paths){.table = x_path};
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

static void put(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb"); /* not synced: hundreds of times in a test */
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

static void put_gzip(const char *path, const void *bytes, size_t len)
{
    gzFile f = gzopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, bytes, (unsigned)len), (int)len);
    ck_assert_int_eq(gzclose(f), Z_OK);
}

static as_status inspect(const struct dataset_paths *paths, dataset_format format,
                         const char *target, const struct dataset_options *o,
                         struct dataset_info *ret)
{
    return dataset_inspect(paths, format, target, DATASET_TASK_AUTO, o, ret, &err);
}

static as_status refused(const struct dataset_paths *paths, dataset_format format)
{
    struct dataset_info info = {0};
    as_status st = inspect(paths, format, NULL, NULL, &info);
    dataset_info_done(&info);
    return st;
}

static struct dataset load(const struct dataset_paths *paths, const struct dataset_info *info)
{
    struct dataset d = {0};
    ck_ok(dataset_load(paths, info, &d, &err), err);
    return d;
}

/* ---- NPY ---- */

START_TEST(npy_table)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0}, no = {0};
    double table[] = {1, 2, 7, 3, 4, 5, 5, 6, 7};
    ck_ok(npy_write(x_path, NPY_F8, (size_t[]){3, 3}, 2, table, &err), err);
    ck_ok(inspect(&one, DATASET_NPY, "-1", NULL, &info), err);
    ck_assert_int_eq(info.task, DATASET_CLASSIFICATION);
    ck_assert_str_eq(info.target, "2");
    ck_assert_str_eq(info.classes[1], "7");
    ck_assert_ptr_null(info.columns);
    AS_AUTO(dataset_done) struct dataset d = load(&one, &info);
    ck_assert_mem_eq(d.x, ((float[]){1, 2, 3, 4, 5, 6}), 6 * sizeof(float));
    ck_assert_mem_eq(d.labels, ((int32_t[]){1, 0, 1}), 3 * sizeof(int32_t));
    ck_fails(inspect(&one, DATASET_NPY, "3", NULL, &no), AS_E_INVAL, err, "0 to 2, or -1");
    ck_fails(inspect(&one, DATASET_NPY, NULL, NULL, &no), AS_E_INVAL, err, "no target column");
    ck_ok(inspect(&one, DATASET_NPY, "2,0", NULL, &no), err);
    ck_assert_uint_eq(no.n_outputs, 2);
    AS_AUTO(dataset_done) struct dataset two = load(&one, &no);
    ck_assert_mem_eq(two.targets, ((float[]){7, 1, 5, 3, 7, 5}), 6 * sizeof(float));
    ck_assert_mem_eq(two.x, ((float[]){2, 4, 6}), 3 * sizeof(float));
    ck_ok(npy_write(x_path, NPY_F8, (size_t[]){9}, 1, table, &err), err);
    ck_fails(inspect(&one, DATASET_NPY, "2", NULL, &no), AS_E_INVAL, err,
             "1 dimension, expected 2");
}
END_TEST

START_TEST(npy_missing)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0}, no = {0};
    double table[] = {1, 2, 7, 3, NAN, 5, 5, 6, 7};
    ck_ok(npy_write(x_path, NPY_F8, (size_t[]){3, 3}, 2, table, &err), err);
    ck_ok(inspect(&one, DATASET_NPY, "0", NULL, &info), err);
    ck_assert_str_eq(info.columns[0].name, "1");
    ck_assert_uint_eq(info.columns[0].n_missing, 1);
    ck_assert_uint_eq(dataset_inputs(&info), 3);
    AS_AUTO(dataset_done) struct dataset d = load(&one, &info);
    ck_assert(isnan(d.x[2]));
    ck_fails(inspect(&one, DATASET_NPY, "1", NULL, &no), AS_E_INVAL, err, "row 1, column 1");
    table[4] = 9;
    ck_ok(npy_write(x_path, NPY_F8, (size_t[]){3, 3}, 2, table, &err), err);
    ck_fails(dataset_load(&one, &info, &d, &err), AS_E_INVAL, err,
             "feature 0 has 0 missing values, the data set says 1");
    table[4] = INFINITY;
    ck_ok(npy_write(x_path, NPY_F8, (size_t[]){3, 3}, 2, table, &err), err);
    ck_fails(inspect(&one, DATASET_NPY, "0", NULL, &no), AS_E_INVAL, err,
             "row 1, column 1: found inf");
}
END_TEST

START_TEST(npy_pair)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0}, two = {0}, no = {0};
    float x[] = {1, 2, 3, 4}, y[] = {0.5f, 1, 0, 2};
    ck_ok(npy_write(x_path, NPY_F4, (size_t[]){2, 2}, 2, x, &err), err);
    ck_ok(npy_write(y_path, NPY_F4, (size_t[]){2}, 1, y, &err), err);
    ck_ok(inspect(&pair, DATASET_NPY, NULL, NULL, &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    ck_assert_ptr_null(info.target);
    AS_AUTO(dataset_done) struct dataset d = load(&pair, &info);
    ck_assert_float_eq(d.targets[1], 1);
    ck_fails(dataset_inspect(&pair, DATASET_NPY, NULL, DATASET_CLASSIFICATION, NULL, &no, &err),
             AS_E_INVAL, err, "target of row 0: found 0.5, expected a class");
    ck_fails(inspect(&pair, DATASET_NPY, "0", NULL, &no), AS_E_INVAL, err,
             "not a column of a table");
    ck_fails(refused(&pair, DATASET_CSV), AS_E_INVAL, err, "csv data set: expected one, the table");
    ck_ok(npy_write(y_path, NPY_F4, (size_t[]){1}, 1, y, &err), err);
    ck_fails(refused(&pair, DATASET_NPY), AS_E_INVAL, err, "have 1 rows, the features 2");
    ck_ok(npy_write(y_path, NPY_F4, (size_t[]){2, 2}, 2, y, &err), err);
    ck_ok(inspect(&pair, DATASET_NPY, NULL, NULL, &two), err);
    ck_assert_uint_eq(two.n_outputs, 2);
    ck_fails(dataset_load(&pair, &info, &d, &err), AS_E_INVAL, err,
             "2 targets, the data set says 1");
}
END_TEST

/* More rows than are read at once, with three columns, so that no block ends with the array. */
#define LONG ((size_t)4000)

static double long_value(size_t i)
{
    return (double)(i % 1000) / 8 - 50;
}

static void write_long(size_t at, double special)
{
    AS_AUTO(as_freep) double *x = as_calloc(LONG * 3, sizeof *x);
    AS_AUTO(as_freep) double *y = as_calloc(LONG, sizeof *y);
    ck_assert_ptr_nonnull(x);
    ck_assert_ptr_nonnull(y);
    for (size_t i = 0; i < LONG * 3; i++)
        x[i] = i == at ? special : long_value(i);
    for (size_t r = 0; r < LONG; r++) /* 300 classes: more than labels are remembered of */
        y[r] = (double)(r % 300);
    ck_ok(npy_write(x_path, NPY_F8, (size_t[]){LONG, 3}, 2, x, &err), err);
    ck_ok(npy_write(y_path, NPY_F8, (size_t[]){LONG}, 1, y, &err), err);
}

START_TEST(rows_of_many_blocks)
{
    static const double largest = 3.4028234663852886e38; /* FLT_MAX */
    const size_t at = 2999 * 3 + 1;
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_done) struct dataset d = {0};
    write_long(at, NAN);
    ck_ok(dataset_inspect(&pair, DATASET_NPY, NULL, DATASET_CLASSIFICATION, NULL, &info, &err),
          err);
    ck_assert_uint_eq(info.columns[1].n_missing, 1);
    ck_assert_uint_eq(info.columns[0].n_missing + info.columns[2].n_missing, 0);
    ck_ok(dataset_load(&pair, &info, &d, &err), err);
    for (size_t i = 0; i < LONG * 3; i++)
        if (i == at)
            ck_assert(isnan(d.x[i]));
        else
            ck_assert_float_eq(d.x[i], (float)long_value(i));
    for (size_t r = 0; r < LONG; r++)
        ck_assert_int_eq(d.labels[r], (int)(r % 300));
    write_long(at, largest * 1.0000001);
    ck_assert_int_eq(dataset_load(&pair, &info, &d, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "row 2999, column 1: found 3.40282e+38, which is too large"));
}
END_TEST

START_TEST(npy_images)
{
    AS_AUTO(dataset_info_done) struct dataset_info last = {0}, first = {0}, grey = {0}, no = {0};
    uint8_t x[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; /* 2 images of 1 x 2 x 3 */
    int64_t y[2] = {4, 9};
    ck_ok(npy_write(y_path, NPY_I8, (size_t[]){2, 1}, 2, y, &err), err);
    ck_ok(npy_write(x_path, NPY_U1, (size_t[]){2, 1, 2, 3}, 4, x, &err), err);
    ck_ok(inspect(&pair, DATASET_NPY, NULL, NULL, &last), err);
    ck_assert_int_eq(last.input, DATASET_IMAGE);
    ck_assert_uint_eq(last.height * 100 + last.width * 10 + last.channels, 123);
    ck_assert_uint_eq(last.n_features, 6);
    ck_assert_uint_eq(dataset_inputs(&last), 6);
    AS_AUTO(dataset_done) struct dataset d = load(&pair, &last);
    for (size_t i = 0; i < 12; i++)
        ck_assert_float_eq(d.x[i], (float)i);
    ck_ok(npy_write(x_path, NPY_U1, (size_t[]){2, 3, 1, 2}, 4, x, &err), err);
    ck_ok(inspect(&pair, DATASET_NPY, NULL, &(struct dataset_options){.channels_first = true},
                  &first),
          err);
    ck_assert_uint_eq(first.height * 100 + first.width * 10 + first.channels, 123);
    AS_AUTO(dataset_done) struct dataset e = load(&pair, &first);
    ck_assert_mem_eq(e.x, ((float[]){0, 2, 4, 1, 3, 5}), 6 * sizeof(float));
    ck_fails(dataset_load(&pair, &last, &e, &err), AS_E_INVAL, err,
             "images of 3 x 1 x 2, the data set says 1 x 2 x 3");
    ck_ok(npy_write(x_path, NPY_U1, (size_t[]){2, 3, 2}, 3, x, &err), err);
    ck_ok(inspect(&pair, DATASET_NPY, NULL, NULL, &grey), err);
    ck_assert_uint_eq(grey.height * 100 + grey.width * 10 + grey.channels, 321);
    ck_fails(inspect(&one, DATASET_NPY, "0", NULL, &no), AS_E_INVAL, err, "a file of their own");
}
END_TEST

/* ---- NPZ: ZIP archives made by hand ---- */

static void le(struct str *b, unsigned long v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        str_putc(b, (char)(i < 8 ? v >> 8 * i & 0xff : 0));
}

struct member {
    const char *name;
    const char *bytes;
    size_t len;
};

/* With `deflate`, as numpy.savez_compressed; `flip`: damage one byte of what is packed. */
static void put_zip(const struct member *m, size_t n, bool deflated, bool flip)
{
    AS_AUTO(str_done) struct str b = {0}, d = {0};
    for (size_t i = 0; i < n; i++) {
        char packed[4096];
        z_stream z = {.next_in = (Bytef *)m[i].bytes,
                      .avail_in = (uInt)m[i].len,
                      .next_out = (Bytef *)packed,
                      .avail_out = sizeof packed};
        ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
        size_t size = deflated ? z.total_out : m[i].len;
        (void)deflateEnd(&z);
        unsigned long crc = crc32_z(0, (const Bytef *)m[i].bytes, m[i].len), at = b.len;
        size_t name = strlen(m[i].name);
        le(&b, 0x04034b50, 4);
        le(&b, 20, 2);
        le(&b, 8, 2); /* sizes follow the data: they are empty here */
        le(&b, deflated ? 8 : 0, 2);
        le(&b, 0, 4 + 4 + 4 + 4);
        le(&b, name, 2);
        le(&b, 4, 2); /* an extra field, which only the local header has */
        str_puts(&b, m[i].name);
        le(&b, 0, 4);
        str_add(&b, deflated ? packed : m[i].bytes, size);
        if (flip)
            b.s[b.len - 3] ^= 1;
        le(&d, 0x02014b50, 4);
        le(&d, 20 | 20 << 16, 4);
        le(&d, 8, 2);
        le(&d, deflated ? 8 : 0, 2);
        le(&d, 0, 4);
        le(&d, crc, 4);
        le(&d, size, 4);
        le(&d, m[i].len, 4);
        le(&d, name, 2);
        le(&d, 0, 2 + 2 + 2 + 2 + 4);
        le(&d, at, 4);
        str_puts(&d, m[i].name);
    }
    size_t at = b.len;
    str_add(&b, d.s, d.len);
    le(&b, 0x06054b50, 4);
    le(&b, 0, 4);
    le(&b, n | n << 16, 4);
    le(&b, d.len, 4);
    le(&b, at, 4);
    le(&b, 0, 2);
    put(x_path, b.s, b.len);
}

#define NPY_HEAD(shape)                                                                            \
    "\x93NUMPY\x01\x00\x3c\x00{'descr': '|u1', 'fortran_order': False, 'shape': " shape "}\n"

START_TEST(npz)
{
    /* the header is padded so that its length is 0x3c */
    static const char x[] = NPY_HEAD("(2, 2)  ") "\1\2\3\4", y[] = NPY_HEAD("(2,)    ") "\5\6";
    const struct member m[] = {{"x.npy", x, sizeof x - 1}, {"y.npy", y, sizeof y - 1}};
    const struct member other[] = {{"x_train.npy", x, sizeof x - 1}, {"t.npy", y, sizeof y - 1}};
    for (int deflated = 0; deflated < 2; deflated++) {
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        put_zip(m, 2, deflated, false);
        ck_ok(inspect(&one, DATASET_NPZ, NULL, NULL, &info), err);
        ck_assert_str_eq(info.classes[1], "6");
        AS_AUTO(dataset_done) struct dataset d = load(&one, &info);
        ck_assert_mem_eq(d.x, ((float[]){1, 2, 3, 4}), 4 * sizeof(float));
        put_zip(m, 2, deflated, true);
        ck_fails(refused(&one, DATASET_NPZ), AS_E_INVAL, err, dir);
    }
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    struct dataset_options o = {.x = (char *)"x_train", .y = (char *)"t"};
    put_zip(other, 2, true, false);
    ck_ok(inspect(&one, DATASET_NPZ, NULL, &o, &info), err);
    ck_assert_str_eq(info.options.x, "x_train");
    ck_fails(refused(&one, DATASET_NPZ), AS_E_INVAL, err,
             "no member 'x.npy'; it has: x_train.npy, t.npy");
    ck_fails(inspect(&pair, DATASET_IDX, NULL, &o, &info), AS_E_INVAL, err,
             "the option x or y is not for the format idx");
}
END_TEST

START_TEST(zip_cut_anywhere)
{
    static const char x[] = NPY_HEAD("(2, 2)  ") "\1\2\3\4", y[] = NPY_HEAD("(2,)    ") "\5\6";
    const struct member m[] = {{"x.npy", x, sizeof x - 1}, {"y.npy", y, sizeof y - 1}};
    AS_AUTO(as_freep) char *whole = NULL;
    size_t len = 0;
    put_zip(m, 2, true, false);
    ck_ok(file_read(x_path, 4096, &whole, &len, &err), err);
    for (size_t n = 0; n < len; n++) {
        put(x_path, whole, n);
        ck_assert_int_eq(refused(&one, DATASET_NPZ), AS_E_INVAL);
    }
}
END_TEST

/* ---- safetensors ---- */

START_TEST(safetensors)
{
    float x[] = {1, 2, 3, 4, 5, 6};
    int64_t y[] = {0, 1, 0};
    const struct safetensors_tensor t[] = {
        {.name = "x", .type = SAFETENSORS_F32, .n_dims = 2, .shape = {3, 2}, .data = x},
        {.name = "y", .type = SAFETENSORS_I64, .n_dims = 1, .shape = {3}, .data = y}};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0}, no = {0};
    ck_ok(safetensors_write(x_path, NULL, t, 2, &err), err);
    ck_ok(inspect(&one, DATASET_SAFETENSORS, NULL, NULL, &info), err);
    ck_assert_int_eq(info.task, DATASET_CLASSIFICATION);
    AS_AUTO(dataset_done) struct dataset d = load(&one, &info);
    ck_assert_mem_eq(d.x, x, sizeof x);
    ck_assert_mem_eq(d.labels, ((int32_t[]){0, 1, 0}), 3 * sizeof(int32_t));
    ck_fails(
        inspect(&one, DATASET_SAFETENSORS, NULL, &(struct dataset_options){.x = (char *)"z"}, &no),
        AS_E_INVAL, err, "no tensor 'z'; it has: x, y");
}
END_TEST

/* ---- IDX ---- */

static const unsigned char idx_x[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0,
                                      1, 0, 0, 0, 2, 9, 8, 7, 6, 5, 4};
static const unsigned char idx_y[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 0, 1};

START_TEST(idx)
{
    for (int packed = 0; packed < 2; packed++) {
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        (packed ? put_gzip : put)(x_path, idx_x, sizeof idx_x);
        put(y_path, idx_y, sizeof idx_y);
        ck_ok(inspect(&pair, DATASET_IDX, NULL, NULL, &info), err);
        ck_assert_int_eq(info.input, DATASET_IMAGE);
        ck_assert_uint_eq(info.height * 100 + info.width * 10 + info.channels, 121);
        AS_AUTO(dataset_done) struct dataset d = load(&pair, &info);
        ck_assert_mem_eq(d.x, ((float[]){9, 8, 7, 6, 5, 4}), 6 * sizeof(float));
        ck_assert_mem_eq(d.labels, ((int32_t[]){1, 0, 1}), 3 * sizeof(int32_t));
    }
}
END_TEST

/* The pair of IDX files, inspected, with a place for its decoded copy: a path within `copy`. */
static struct dataset_paths put_images(char copy[80], struct dataset_info *info)
{
    struct dataset_paths with = pair;
    (void)snprintf(copy, 80, "%s/copy", dir);
    put(x_path, idx_x, sizeof idx_x);
    put(y_path, idx_y, sizeof idx_y);
    ck_ok(inspect(&pair, DATASET_IDX, NULL, NULL, info), err);
    with.decoded = copy;
    return with;
}

START_TEST(decoded_bytes)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    char copy[80];
    struct dataset_paths with = put_images(copy, &info);
    AS_AUTO(dataset_done) struct dataset first = load(&with, &info);
    ck_assert_int_eq(unlink(x_path), 0);
    AS_AUTO(dataset_done) struct dataset d = load(&with, &info);
    ck_assert_mem_eq(d.x, ((float[]){9, 8, 7, 6, 5, 4}), 6 * sizeof(float));
    ck_assert_mem_eq(d.labels, ((int32_t[]){1, 0, 1}), 3 * sizeof(int32_t));
}
END_TEST

/* From the files and from the decoded copy; what is not all bytes, or no image, stays float. */
START_TEST(images_as_bytes)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    char copy[80];
    struct dataset_paths with = put_images(copy, &info);
    for (int from_copy = 0; from_copy < 2; from_copy++) {
        AS_AUTO(dataset_done) struct dataset d = {0};
        ck_ok(dataset_load_bytes(&with, &info, &d, &err), err);
        ck_assert_ptr_null(d.x);
        ck_assert_mem_eq(d.bytes, ((unsigned char[]){9, 8, 7, 6, 5, 4}), 6);
        ck_assert_mem_eq(d.labels, ((int32_t[]){1, 0, 1}), 3 * sizeof(int32_t));
        if (from_copy == 0)
            ck_assert_int_eq(unlink(x_path), 0);
    }
    for (int image = 0; image < 2; image++) {
        AS_AUTO(dataset_info_done) struct dataset_info other = {0};
        AS_AUTO(dataset_done) struct dataset d = {0};
        float x[6] = {0, 1, 2, 3, 4, image ? 4.5f : 255};
        int64_t y[3] = {0, 1, 0};
        ck_ok(npy_write(x_path, NPY_F4, (size_t[]){3, 2, 1}, image ? 3 : 2, x, &err), err);
        ck_ok(npy_write(y_path, NPY_I8, (size_t[]){3}, 1, y, &err), err);
        ck_ok(inspect(&pair, DATASET_NPY, NULL, NULL, &other), err);
        ck_ok(dataset_load_bytes(&pair, &other, &d, &err), err);
        ck_assert_ptr_null(d.bytes);
        ck_assert_mem_eq(d.x, x, sizeof x);
    }
}
END_TEST

START_TEST(idx_types)
{
    static const unsigned char ints[] = {0, 0, 0x0b, 2,    0, 0, 0, 2, 0, 0,
                                         0, 2, 0xff, 0xfe, 1, 0, 0, 3, 0, 4};
    static const unsigned char reals[] = {0,    0,    0x0d, 1, 0,    0,    0, 2,
                                          0x3f, 0xc0, 0,    0, 0xbf, 0x80, 0, 0};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    put(x_path, ints, sizeof ints);
    put(y_path, reals, sizeof reals);
    ck_ok(inspect(&pair, DATASET_IDX, NULL, NULL, &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    ck_assert_int_eq(info.input, DATASET_TABLE);
    AS_AUTO(dataset_done) struct dataset d = load(&pair, &info);
    ck_assert_mem_eq(d.x, ((float[]){-2, 256, 3, 4}), 4 * sizeof(float));
    ck_assert_mem_eq(d.targets, ((float[]){1.5f, -1}), 2 * sizeof(float));
}
END_TEST

START_TEST(idx_damaged)
{
    unsigned char longer[sizeof idx_x + 1] = {0}, huge[sizeof idx_x];
    memcpy(longer, idx_x, sizeof idx_x);
    memcpy(huge, idx_x, sizeof idx_x);
    memset(huge + 4, 0xff, 12);
    put(y_path, idx_y, sizeof idx_y);
    for (size_t n = 0; n < sizeof idx_x; n++) {
        put(x_path, idx_x, n);
        ck_assert_int_eq(refused(&pair, DATASET_IDX), AS_E_INVAL);
        put_gzip(x_path, idx_x, n);
        ck_fails(refused(&pair, DATASET_IDX), AS_E_INVAL, err, "is cut short in its");
    }
    put(x_path, longer, sizeof longer);
    ck_fails(refused(&pair, DATASET_IDX), AS_E_INVAL, err, "has 23 bytes, its header says 22");
    put_gzip(x_path, longer, sizeof longer);
    ck_fails(refused(&pair, DATASET_IDX), AS_E_INVAL, err, "more bytes than it says");
    put_gzip(x_path, huge, sizeof huge);
    ck_fails(refused(&pair, DATASET_IDX), AS_E_TOO_LARGE, err, "values");
    put(x_path, "P5 28 28 255 ", 13);
    ck_fails(refused(&pair, DATASET_IDX), AS_E_INVAL, err, "not an IDX file: it starts with 50 35");
    put_gzip(x_path, idx_x, sizeof idx_x);
    ck_assert_int_eq(truncate(x_path, 30), 0);
    ck_fails(refused(&pair, DATASET_IDX), AS_E_INVAL, err, "the compressed data is cut short");
}
END_TEST

/* ---- CIFAR ---- */

static void put_cifar(size_t head, size_t n)
{
    AS_AUTO(str_done) struct str b = {0};
    for (size_t r = 0; r < n; r++) {
        if (head == 2)
            str_putc(&b, 19); /* coarse: passed over */
        str_putc(&b, (char)(r % 2 ? 7 : 3));
        for (size_t i = 0; i < 3072; i++)
            str_putc(&b, (char)(i / 1024 * 80 + i % 32 + r));
    }
    put(x_path, b.s, b.len);
}

START_TEST(cifar)
{
    for (size_t head = 1; head < 3; head++) {
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        put_cifar(head, 3);
        ck_ok(inspect(&one, DATASET_CIFAR, NULL, NULL, &info), err);
        ck_assert_uint_eq(info.n_rows, 3);
        ck_assert_uint_eq(info.height * info.width * info.channels, 3072);
        ck_assert_str_eq(info.classes[1], "7");
        AS_AUTO(dataset_done) struct dataset d = load(&one, &info);
        ck_assert_mem_eq(d.labels, ((int32_t[]){0, 1, 0}), 3 * sizeof(int32_t));
        /* row 2, line 1, column 5: red, green, blue */
        ck_assert_mem_eq(d.x + 2 * 3072 + (32 + 5) * 3, ((float[]){7, 87, 167}), 12);
    }
    ck_assert_int_eq(truncate(x_path, 3073 * 2 + 5), 0);
    ck_fails(refused(&one, DATASET_CIFAR), AS_E_INVAL, err, "6151 bytes are neither records");
}
END_TEST

START_TEST(out_of_memory)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    put_gzip(x_path, idx_x, sizeof idx_x);
    put(y_path, idx_y, sizeof idx_y);
    for (size_t n = 1; n < 40; n++) {
        struct dataset d = {0};
        as_mem_fail_nth(n);
        as_status st = inspect(&pair, DATASET_IDX, NULL, NULL, &info);
        if (st == AS_OK)
            st = dataset_load_bytes(&pair, &info, &d, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        dataset_done(&d);
        dataset_info_done(&info);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("dataset_arrays");
    TCase *t = tcase_create("dataset_arrays");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, npy_table);
    tcase_add_test(t, npy_missing);
    tcase_add_test(t, npy_pair);
    tcase_add_test(t, rows_of_many_blocks);
    tcase_add_test(t, npy_images);
    tcase_add_test(t, npz);
    tcase_add_test(t, zip_cut_anywhere);
    tcase_add_test(t, safetensors);
    tcase_add_test(t, idx);
    tcase_add_test(t, decoded_bytes);
    tcase_add_test(t, images_as_bytes);
    tcase_add_test(t, idx_types);
    tcase_add_test(t, idx_damaged);
    tcase_add_test(t, cifar);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
