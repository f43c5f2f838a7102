/* Rows in partitions: what is learnt from a data set that stays in a file has the bits of one in
 * memory, and so have its rows; which rows a partition has, and in which order an epoch takes
 * them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "data/preprocess/record.h"
#include "data/preprocess/train_data.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

#define ROWS 90

/* Numbers with fractions and gaps, a category, a target that is a class or a number. */
static void write_table(struct str *text, bool whole, bool classes)
{
    str_puts(text, "age,job,pay,y\n");
    for (int i = 0; i < ROWS; i++) {
        if (!whole && i % 5 == 4)
            str_puts(text, ",");
        else
            str_printf(text, "%d%s,", i * 7 % 200, whole ? "" : ".25");
        str_printf(text, "%s,%d,", i % 3 == 0 ? "cook" : "king", i % 90);
        str_printf(text, classes ? "c%d\n" : "%d.5\n", i % 7 % 2);
    }
}

/* Images of 3 x 3 bytes, so that rows do not begin at whole elements of 4 bytes; or of numbers. */
static void write_images(const char *x, const char *y, bool bytes)
{
    static float pixels[ROWS * 9];
    static int64_t labels[ROWS];
    size_t shape[] = {ROWS, 3, 3, 1};
    for (int i = 0; i < ROWS * 9; i++)
        pixels[i] = (float)(i * 37 % 251) + (bytes ? 0 : 0.25F);
    for (int i = 0; i < ROWS; i++)
        labels[i] = i % 3;
    ck_ok(npy_write(x, NPY_F4, shape, 4, pixels, &err), err);
    ck_ok(npy_write(y, NPY_I8, shape, 1, labels, &err), err);
}

static void same_row(const struct train_data *a, size_t i, const struct dataset *b,
                     const int32_t *codes, size_t k)
{
    size_t n = b->n_features;
    ck_assert_uint_eq(a->set.n_features, n);
    ck_assert_int_eq(a->set.bytes != NULL, b->bytes != NULL);
    if (b->bytes)
        ck_assert_mem_eq(a->set.bytes + i * n, b->bytes + k * n, n);
    else
        ck_assert_mem_eq(a->set.x + i * n, b->x + k * n, n * sizeof(float));
    if (b->labels)
        ck_assert_int_eq(a->set.labels[i], b->labels[k]);
    if (b->targets)
        ck_assert_mem_eq(a->set.targets + i, b->targets + k, sizeof(float));
    if (codes)
        ck_assert_mem_eq(a->codes + i * a->n_codes, codes + k * a->n_codes,
                         a->n_codes * sizeof *codes);
}

static void same_record(const struct train_data *a, const struct train_data *b,
                        const struct dataset_info *info)
{
    JSON_AUTO x = preprocess_to_json(&a->fit, info);
    JSON_AUTO y = preprocess_to_json(&b->fit, info);
    ck_assert(json_equal(x, y));
    ck_assert_uint_eq(a->fit.n_scales, b->fit.n_scales);
    ck_assert_mem_eq(a->fit.mean, b->fit.mean, a->fit.n_scales * sizeof(float));
    ck_assert_mem_eq(a->fit.scale, b->fit.scale, a->fit.n_scales * sizeof(float));
}

/* All rows of the partitions, whoever would hold them. */
static void same_rows(const struct train_data *plain, const struct train_data *held,
                      const struct dataset_map *map, const struct dataset_info *info)
{
    AS_AUTO(dataset_done) struct dataset rows = {0};
    AS_AUTO(as_freep) int32_t *codes = NULL;
    bool seen[ROWS] = {0};
    size_t n = held->parts.n_rows;
    ck_assert_uint_eq(n, plain->n_train);
    ck_assert_uint_eq(held->n_val, plain->n_val);
    for (size_t i = 0; i < held->n_val; i++) {
        ck_assert_int_eq(held->held_rows[i], plain->val_rows[i]);
        ck_assert_int_eq(held->val_rows[i], i);
        same_row(plain, (size_t)plain->val_rows[i], &held->set, held->codes, i);
        seen[held->held_rows[i]] = true;
    }
    ck_ok(dataset_map_rows(map, info, held->train_rows, n, &rows, &err), err);
    ck_ok(train_data_encode(held, info, &rows, &codes, &err), err);
    for (size_t i = 0; i < n; i++) {
        ck_assert(!seen[held->train_rows[i]]);
        seen[held->train_rows[i]] = true;
        same_row(plain, (size_t)held->train_rows[i], &rows, codes, i);
    }
}

static void compare(const struct dataset_paths *paths, dataset_format format, const char *target,
                    struct preprocess_opts opts)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_map_close) struct dataset_map map = {0};
    AS_AUTO(train_data_done) struct train_data plain = {0};
    AS_AUTO(train_data_done) struct train_data held = {0};
    struct dataset set = {0};
    const struct dataset_paths files = {paths->table, paths->features, paths->targets, NULL};
    ck_ok(dataset_inspect(&files, format, target, DATASET_TASK_AUTO, NULL, &info, &err), err);
    ck_ok(dataset_load_bytes(&files, &info, &set, &err), err);
    ck_ok(train_data_prepare(&set, &info, &opts, &plain, &err), err);
    if (paths->decoded)
        (void)unlink(paths->decoded);
    for (int time = 0; time < 2; time++) { /* the second one finds the copy, if it has a name */
        ck_ok(dataset_map_open(paths, &info, &map, &err), err);
        ck_ok(train_data_prepare_held(&map, &info, &opts, (struct row_parts){.n = 4, .micro = 5},
                                      &held, &err),
              err);
        dataset_map_forget(&map);
        same_record(&plain, &held, &info);
        same_rows(&plain, &held, &map, &info);
        for (size_t c = 0; c < info.n_classes; c++)
            ck_assert_int_eq(plain.class_rows[c], held.class_rows[c]);
        train_data_done(&held);
        dataset_map_close(&map);
    }
    if (!paths->decoded)
        return;
    ck_ok(dataset_load_bytes(paths, &info, &set, &err), err); /* others read it, too */
    dataset_done(&set);
    ck_assert_int_eq(access(paths->decoded, R_OK), 0);
}

START_TEST(tables_have_the_bits_of_memory)
{
    char csv[128], copy[128];
    (void)snprintf(csv, sizeof csv, "%s/t.csv", dir);
    (void)snprintf(copy, sizeof copy, "%s/copy", dir);
    for (int i = 0; i < 16; i++) {
        AS_AUTO(str_done) struct str text = {0};
        write_table(&text, i & 1, i & 2);
        ck_ok(file_replace(csv, text.s, text.len, 0644, &err), err);
        compare(&(struct dataset_paths){.table = csv, .decoded = i & 4 ? copy : NULL}, DATASET_CSV,
                "y",
                (struct preprocess_opts){.split_seed = 7,
                                         .n_validation = 20,
                                         .stratify = true,
                                         .standardize = true,
                                         .embed_categories = i & 8,
                                         .targets_as_shares = (i & 2) && (i & 4)});
    }
}
END_TEST

START_TEST(images_have_the_bits_of_memory)
{
    char x[128], y[128], copy[128];
    (void)snprintf(x, sizeof x, "%s/x.npy", dir);
    (void)snprintf(y, sizeof y, "%s/y.npy", dir);
    (void)snprintf(copy, sizeof copy, "%s/copy", dir);
    for (int i = 0; i < 2; i++) {
        write_images(x, y, i);
        compare(&(struct dataset_paths){.features = x, .targets = y, .decoded = copy}, DATASET_NPY,
                NULL,
                (struct preprocess_opts){.split_seed = 7, .n_validation = 20, .standardize = true});
    }
}
END_TEST

START_TEST(a_damaged_copy_is_made_again)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_map_close) struct dataset_map map = {0};
    AS_AUTO(str_done) struct str text = {0};
    AS_AUTO(as_freep) char *bytes = NULL;
    char csv[128], copy[128];
    size_t len = 0;
    (void)snprintf(csv, sizeof csv, "%s/t.csv", dir);
    (void)snprintf(copy, sizeof copy, "%s/copy", dir);
    const struct dataset_paths paths = {.table = csv, .decoded = copy};
    write_table(&text, false, true);
    ck_ok(file_replace(csv, text.s, text.len, 0644, &err), err);
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "y", DATASET_TASK_AUTO, NULL, &info, &err), err);
    ck_ok(dataset_map_open(&paths, &info, &map, &err), err);
    float right = map.set.x[2];
    dataset_map_close(&map);
    ck_ok(file_read(copy, 1 << 20, &bytes, &len, &err), err);
    bytes[112] ^= 0x40; /* of the third number */
    ck_ok(file_replace(copy, bytes, len, 0644, &err), err);
    ck_ok(dataset_map_open(&paths, &info, &map, &err), err);
    ck_assert(map.set.x[2] == right);
    dataset_map_close(&map);
    ck_ok(file_replace(csv, text.s, text.len - 10, 0644, &err), err); /* not the rows of `info` */
    ck_assert_int_eq(unlink(copy), 0);
    ck_assert_int_eq(dataset_map_open(&paths, &info, &map, &err), AS_E_INVAL);
    ck_assert_int_ne(access(copy, F_OK), 0);
}
END_TEST

/* ---- orders ---- */

#define PARTS 3
#define MICRO 4

START_TEST(a_micro_step_has_rows_of_its_partition)
{
    enum { N = 32, EACH = 10, PLACES = 3 * PARTS * MICRO }; /* 10 rows: micro-steps of 4, 4, 2 */
    int64_t base[PARTS] = {100, 200, 300};
    int32_t work[EACH + 1], order[PLACES], other[PLACES];
    const struct row_parts p = {PARTS, N, MICRO, base, work};
    bool any = false;
    ck_assert_uint_eq(row_parts_each(&p), EACH);
    ck_assert_uint_eq(row_parts_batches(&p) * PARTS * MICRO, PLACES);
    row_parts_order(&p, 5, 1, order);
    for (size_t part = 0; part < PARTS; part++) {
        size_t rows = row_parts_first(&p, part + 1) - row_parts_first(&p, part);
        bool seen[EACH + 1] = {0};
        for (size_t i = 0; i < EACH; i++) {
            size_t at = (i / MICRO * PARTS + part) * MICRO + i % MICRO;
            int32_t row = order[at] - (int32_t)base[part];
            ck_assert(row >= 0 && (size_t)row < rows && !seen[row]);
            seen[row] = true;
        }
    }
    row_parts_order(&p, 5, 2, other);
    ck_assert_mem_ne(order, other, sizeof order);
    base[1] = -1; /* who does not hold it has the same order of the others */
    row_parts_order(&p, 5, 1, other);
    for (size_t at = 0; at < PLACES; at++) {
        ck_assert_int_eq(other[at], at / MICRO % PARTS == 1 ? 0 : order[at]);
        any = any || other[at];
    }
    ck_assert(any);
}
END_TEST

/* A file in the order of its classes makes no partition of one class. */
START_TEST(rows_are_dealt_at_random)
{
    int32_t rows[60];
    size_t low = 0;
    for (int32_t i = 0; i < 60; i++)
        rows[i] = i;
    row_parts_deal(rows, 60, 3);
    for (size_t i = 0; i < 20; i++)
        low += rows[i] < 20;
    ck_assert(low > 2 && low < 14);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("row_parts");
    TCase *t = tcase_create("row_parts");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, tables_have_the_bits_of_memory);
    tcase_add_test(t, images_have_the_bits_of_memory);
    tcase_add_test(t, a_damaged_copy_is_made_again);
    tcase_add_test(t, a_micro_step_has_rows_of_its_partition);
    tcase_add_test(t, rows_are_dealt_at_random);
    suite_add_tcase(s, t);
    return s;
}
