/* Predicting files: columns by name, blocks in order, faults with their place, arrays, memory. The
 * models are trained by assay-train. */
#include <math.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "cli/predict/predict_file.h"
#include "cli/predict/row_time.h"
#include "data/dataset_read.h"
#include "data/formats/csv_blocks.h"
#include "data/formats/npy.h"
#include "model/predict/predictor.h"
#include "tests/support/check_main.h"
#include "tests/support/trained.h"

static struct as_err err;
static struct child child;
static struct model_file *model;
static char ignored[200];

static void setup(void)
{
    child_setup(&child);
    ignored[0] = '\0';
}

static void teardown(void)
{
    model_file_free(model);
    model = NULL;
    child_teardown(&child);
}

static void read_model(void)
{
    AS_AUTO(as_freep) char *path = child_path(&child, "artifacts/model.safetensors");
    ck_ok(model_file_read(path, 1 << 26, &model, &err), err);
}

/* A model of size (sometimes missing), weight and colour (blue, green, red). */
static void train_table(int classes)
{
    char report[512];
    trained_write_table(&child, 211, classes);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model(&child, &paths, DATASET_CSV, "y",
                  classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
                  "\"epochs\":3,\"model\":{\"layers\":[8]}", report, sizeof report);
    read_model();
}

static void keep_ignored(const char *columns)
{
    (void)snprintf(ignored, sizeof ignored, "%s", columns);
}

/* Predict DIR/data to DIR/output. */
static as_status predict(const char *data, const char *output, struct predict_opts opts,
                         struct predict_summary *ret)
{
    AS_AUTO(as_freep) char *from = child_path(&child, data);
    AS_AUTO(as_freep) char *to = child_path(&child, output);
    opts.data = from;
    opts.output = to;
    opts.threads = opts.threads ? opts.threads : 2;
    predict_summary_done(ret);
    return predict_file(model, &opts, keep_ignored, ret, &err);
}

static void write_text(const char *name, const char *text)
{
    child_write(&child, name, text, strlen(text));
}

static void same_files(const char *a, const char *b)
{
    AS_AUTO(as_freep) char *x = child_read(&child, a, NULL);
    AS_AUTO(as_freep) char *y = child_read(&child, b, NULL);
    ck_assert_str_eq(x, y);
}

#define ROWS "0.5,40,red\n,80,blue\n0.25,20,green\n"

START_TEST(columns_by_name)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_table(3);
    write_text("plain.csv", "size,weight,colour\n" ROWS);
    write_text("other.csv", "id,colour,y,size,note,weight\r\n1,red,?,0.5,\"a\nb\",40\r\n\r\n"
                            "2, blue ,high,NA,\"say \"\"hi\"\"\",8e1\r\n3,green,,.25,,20");
    write_text("mark.csv", "\xef\xbb\xbfsize,weight,colour\n" ROWS);
    ck_ok(predict("plain.csv", "plain.out", (struct predict_opts){.proba = true}, &s), err);
    ck_assert(s.rows == 3 && s.unknown == 0 && !s.ignored);
    ck_assert_str_eq(ignored, "");
    ck_ok(predict("other.csv", "other.out", (struct predict_opts){.proba = true}, &s), err);
    ck_assert_str_eq(ignored, "id, note");
    ck_assert_str_eq(s.ignored, "id, note");
    same_files("plain.out", "other.out");
    ck_ok(predict("mark.csv", "mark.out", (struct predict_opts){.proba = true}, &s), err);
    same_files("plain.out", "mark.out");
    AS_AUTO(as_freep) char *text = child_read(&child, "plain.out", NULL);
    ck_assert(
        as_starts_with(text, "prediction,probability_high,probability_low,probability_middle\n"));
}
END_TEST

START_TEST(numbers_that_training_never_lacked)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    AS_AUTO(str_done) struct str b = {0};
    train_table(0);
    write_text("gaps.csv", "size,weight,colour\n0.5,,red\n,80,blue\n0.25,NA,green\n");
    ck_ok(predict("gaps.csv", "gaps.out", (struct predict_opts){0}, &s), err);
    ck_assert_uint_eq(s.n_columns, 3);
    ck_assert(s.imputed[0] == 0 && s.imputed[1] == 2 && s.imputed[2] == 0);
    str_printf(&b, "size,weight,colour\n0.5,%.9g,red\n,80,blue\n0.25,%.9g,green\n",
               (double)s.medians[1], (double)s.medians[1]);
    write_text("filled.csv", str_cstr(&b));
    ck_ok(predict("filled.csv", "filled.out", (struct predict_opts){0}, &s), err);
    ck_assert_uint_eq(s.imputed[1], 0);
    same_files("gaps.out", "filled.out");
    ck_fails(predict("gaps.csv", "o", (struct predict_opts){.strict = true}, &s), AS_E_INVAL, err,
             "line 2: column 'weight': the value is missing");
}
END_TEST

START_TEST(other_dialects)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_table(0);
    write_text("plain.csv", "size,weight,colour\n" ROWS);
    write_text("other.csv", "size;weight;colour\n0,5;40;red\n;80;blue\n0,25;20;green\n");
    write_text("points.csv", "size|weight|colour\n0.5|40|red\n|80|blue\n0.25|20|green\n");
    ck_ok(predict("plain.csv", "plain.out", (struct predict_opts){0}, &s), err);
    ck_ok(predict("other.csv", "other.out", (struct predict_opts){.written.separator = ';'}, &s),
          err);
    same_files("plain.out", "other.out");
    ck_ok(predict("points.csv", "points.out",
                  (struct predict_opts){.written = {.separator = '|', .decimal = '.'}}, &s),
          err);
    same_files("plain.out", "points.out");
    ck_assert_int_eq(predict("other.csv", "other.out", (struct predict_opts){0}, &s), AS_E_INVAL);
}
END_TEST

START_TEST(packed_tables)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_table(2);
    write_text("plain.csv", "size,weight,colour\n" ROWS);
    AS_AUTO(as_freep) char *path = child_path(&child, "packed.csv.gz");
    gzFile gz = gzopen(path, "wb");
    ck_assert(gz && gzputs(gz, "size,weight,colour\n" ROWS) > 0 && gzclose(gz) == Z_OK);
    ck_ok(predict("plain.csv", "plain.out", (struct predict_opts){0}, &s), err);
    ck_ok(predict("packed.csv.gz", "packed.out", (struct predict_opts){0}, &s), err);
    same_files("plain.out", "packed.out");
    write_text("none.csv", "weight,size,colour\n");
    ck_ok(predict("none.csv", "none.out", (struct predict_opts){0}, &s), err);
    AS_AUTO(as_freep) char *none = child_read(&child, "none.out", NULL);
    ck_assert_str_eq(none, "prediction\n");
}
END_TEST

/* The files give the numbers of the predictor. */
START_TEST(numbers_and_arrays)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    const float raw[] = {0.5f, 40, 2, NAN, 80, 0, 0.25f, 20, 1};
    float expected[3];
    double array[3];
    train_table(0);
    write_text("d.csv", "size,weight,colour\n" ROWS);
    ck_ok(predictor_create(model, 0, &p, &err), err);
    ck_ok(predictor_run(p, raw, 3, expected, &err), err);
    ck_ok(predict("d.csv", "o.csv", (struct predict_opts){0}, &s), err);
    ck_ok(predict("d.csv", "o.npy", (struct predict_opts){0}, &s), err);
    AS_AUTO(as_freep) char *text = child_read(&child, "o.csv", NULL);
    char *at = text;
    ck_assert(as_starts_with(text, "prediction\n"));
    AS_AUTO(as_freep) char *path = child_path(&child, "o.npy");
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    ck_ok(npy_open(path, &npy, &err), err);
    const struct npy_header *h = npy_header_of(npy);
    ck_assert(h->type == NPY_F4 && h->n_dims == 2 && h->shape[0] == 3 && h->shape[1] == 1);
    ck_ok(npy_read(npy, 3, array, &err), err);
    for (size_t i = 0; i < 3; i++) {
        at = strchr(at, '\n') + 1;
        ck_assert(strtof(at, NULL) == expected[i]);
        ck_assert((float)array[i] == expected[i]);
    }
}
END_TEST

/* Write `rows` rows of the table. Most line ends are in quoted cells, so that a block would end in
 * one if that were no rule. */
static void write_many(const char *name, size_t rows)
{
    static const char *const colours[] = {"blue", "green", "red"};
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "note,size,weight,colour\n");
    for (size_t i = 0; i < rows; i++)
        str_printf(&b, "%s,%zu.%04zu,%zu,%s\n", i % 2 ? "\"a,\n\n\"\"b\n\"" : "", i % 3, i % 10000,
                   i % 90, colours[i % 3]);
    child_write(&child, name, b.s, b.len);
}

START_TEST(blocks_stay_in_order)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_table(0);
    write_many("many.csv", 100000); /* about 7 blocks */
    ck_ok(predict("many.csv", "one.out", (struct predict_opts){.threads = 1}, &s), err);
    ck_assert_uint_eq(s.rows, 100000);
    ck_ok(predict("many.csv", "five.out", (struct predict_opts){.threads = 5}, &s), err);
    same_files("one.out", "five.out");
}
END_TEST

/* ---- faults ---- */

static void refuses(const char *text, const char *message)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    write_text("bad.csv", text);
    write_text("kept.out", "as it was");
    ck_fails(predict("bad.csv", "kept.out", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             message);
    ck_assert_msg(strstr(err.msg, "bad.csv") != NULL, "no file in: %s", err.msg);
    AS_AUTO(as_freep) char *kept = child_read(&child, "kept.out", NULL);
    ck_assert_str_eq(kept, "as it was");
}

START_TEST(faults_have_their_place)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_table(2);
    refuses("size,weight,y\n1,2,high\n",
            "line 1: there is no column 'colour', which the model needs; the columns are: size, "
            "weight, y");
    refuses("size,weight,size,colour\n1,2,3,red\n", "2 columns are named 'size'");
    refuses("size,weight,colour\n1,2,red\n1,heavy,red\n",
            "line 3: column 'weight': found 'heavy', expected a number");
    refuses("size,weight,colour\n1,1e39,red\n", "line 2: column 'weight': found 1e+39");
    refuses("size,weight,colour\n\n1,2,red\n1,2\n", "line 4 has 2 cells, expected 3");
    refuses("size,weight,colour\n1,2,\"red\n", "not closed");
    refuses("size,weight,colour\n1,2,r\"e\"d\n", "a quote inside a cell");
    refuses("size,weight,colour\n1,2,\xff\n", "not valid UTF-8");
    refuses("", "empty");
    ck_fails(predict("absent.csv", "o", (struct predict_opts){0}, &s), AS_E_NOT_FOUND, err,
             "absent.csv");
    ck_fails(predict(".", "o", (struct predict_opts){0}, &s), AS_E_INVAL, err, "is a folder");
}
END_TEST

/* The first fault of the file is reported, although a later block has one that is found earlier. */
START_TEST(the_first_fault_is_reported)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_table(0);
    write_many("many.csv", 60000);
    size_t len = 0;
    AS_AUTO(as_freep) char *text = child_read(&child, "many.csv", &len);
    AS_AUTO(str_done) struct str b = {0};
    str_add(&b, text, len);
    str_puts(&b, ",first,1,red\n");
    str_add(&b, text + strcspn(text, "\n") + 1, 300000);
    b.s[b.len - 1] = '\n'; /* cuts a record: the second fault */
    child_write(&child, "bad.csv", b.s, b.len);
    for (size_t i = 0; i < 5; i++)
        ck_fails(predict("bad.csv", "o", (struct predict_opts){.threads = 4}, &s), AS_E_INVAL, err,
                 "column 'size': found 'first'");
}
END_TEST

START_TEST(unknown_categories)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_table(2);
    write_text("d.csv", "colour,size,weight\nred,1,2\npink,1,2\n,1,2\nmauve,1,2\n");
    ck_ok(predict("d.csv", "o.csv", (struct predict_opts){0}, &s), err);
    ck_assert_uint_eq(s.rows, 4);
    ck_assert_uint_eq(s.unknown, 3);
    ck_assert_str_eq(s.first, "line 3, column 'colour': 'pink'");
    ck_fails(predict("d.csv", "o.csv", (struct predict_opts){.strict = true}, &s), AS_E_INVAL, err,
             "d.csv: line 3: column 'colour': found 'pink', expected a category that training saw: "
             "blue, green, red");
}
END_TEST

static size_t stops_after;

static bool stop(void)
{
    return stops_after-- == 0;
}

START_TEST(it_can_be_stopped)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    AS_AUTO(as_freep) char *path = child_path(&child, "o.csv");
    train_table(0);
    write_many("many.csv", 100000);
    stops_after = 3;
    ck_fails(predict("many.csv", "o.csv", (struct predict_opts){.stop = stop}, &s), AS_E_CONFLICT,
             err, "interrupted");
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* ---- arrays ---- */

START_TEST(images)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    AS_AUTO(as_freep) char *x = child_path(&child, "x.npy");
    AS_AUTO(as_freep) char *y = child_path(&child, "y.npy");
    const struct dataset_paths paths = {.features = x, .targets = y};
    char report[512];
    trained_write_images(x, y, 120, 1);
    trained_model(&child, &paths, DATASET_NPY, NULL, DATASET_CLASSIFICATION,
                  "\"epochs\":2,\"model\":{\"kind\":\"cnn\",\"layers\":[{\"conv\":4},{\"pool\":"
                  "\"global\"}]}",
                  report, sizeof report);
    read_model();
    ck_ok(predict("x.npy", "o.npy", (struct predict_opts){0}, &s), err);
    ck_assert_uint_eq(s.rows, 120);
    AS_AUTO(npy_freep) struct npy *in = NULL, *out = NULL;
    AS_AUTO(as_freep) char *o = child_path(&child, "o.npy");
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    ck_ok(npy_open(x, &in, &err), err);
    ck_ok(npy_open(o, &out, &err), err);
    ck_ok(predictor_create(model, 0, &p, &err), err);
    for (size_t r = 0; r < 120; r++) {
        double pixels[48], got[2];
        float raw[48], expected[2];
        ck_ok(npy_read(in, 48, pixels, &err), err);
        ck_ok(npy_read(out, 2, got, &err), err);
        for (size_t i = 0; i < 48; i++)
            raw[i] = (float)pixels[i];
        ck_ok(predictor_run(p, raw, 1, expected, &err), err);
        ck_assert((float)got[0] == expected[0] && (float)got[1] == expected[1]);
    }
    const size_t wrong[] = {2, 6, 8, 1};
    const float zeros[96] = {0};
    ck_ok(npy_write(x, NPY_F4, wrong, 4, zeros, &err), err);
    ck_fails(predict("x.npy", "o.npy", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "found images of 6 x 8 with 1 channels, expected 8 x 6 with 1");
    const size_t flat[] = {2, 48};
    ck_ok(npy_write(x, NPY_F4, flat, 2, zeros, &err), err);
    ck_ok(predict("x.npy", "o.npy", (struct predict_opts){0}, &s), err);
    const float bad[96] = {[50] = INFINITY};
    ck_ok(npy_write(x, NPY_F4, flat, 2, bad, &err), err);
    ck_fails(predict("x.npy", "o.npy", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "row 1, column 2");
}
END_TEST

/* A model of dates and texts, of a table with semicolons, decimal commas and comments. */
static void train_mixed(const char *drop, size_t rows)
{
    char report[512];
    char *names[] = {(char *)drop};
    struct dataset_options options = {.comment = '#', .drop = {names, drop ? 1 : 0}};
    trained_write_mixed(&child, rows, 0);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model_with(&child, &paths, DATASET_CSV, &options, "y", DATASET_REGRESSION,
                       "\"epochs\":1,\"model\":{\"layers\":[3]}", report, sizeof report);
    read_model();
}

/* Several blocks of a table whose cells and comments have quotes give the numbers of the
 * predictor. */
START_TEST(dates_and_texts)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    AS_AUTO(predictor_freep) struct predictor *p = NULL;
    AS_AUTO(dataset_done) struct dataset d = {0};
    enum { MANY = 12000 };
    train_mixed(NULL, MANY);
    AS_AUTO(as_freep) char *table = child_path(&child, "t.csv");
    AS_AUTO(as_freep) char *output = child_path(&child, "o.npy");
    struct stat sb;
    ck_assert(stat(table, &sb) == 0 && sb.st_size > 2 * (off_t)CSV_BLOCK);
    ck_ok(predict("t.csv", "o.npy", (struct predict_opts){0}, &s), err);
    ck_assert_uint_eq(s.rows, MANY);
    AS_AUTO(as_freep) float *expected = as_calloc(MANY, sizeof *expected);
    AS_AUTO(as_freep) double *got = as_calloc(MANY, sizeof *got);
    ck_ok(dataset_load(&(struct dataset_paths){.table = table}, model_file_data(model), &d, &err),
          err);
    ck_ok(predictor_create(model, 0, &p, &err), err);
    ck_ok(predictor_run(p, d.x, MANY, expected, &err), err);
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    ck_ok(npy_open(output, &npy, &err), err);
    ck_ok(npy_read(npy, MANY, got, &err), err);
    for (size_t i = 0; i < MANY; i++)
        ck_assert_msg((float)got[i] == expected[i], "row %zu", i);
}
END_TEST

START_TEST(columns_of_dates_and_texts)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_mixed(NULL, 150);
    write_text("a.csv",
               "when;note;colour;amount\n9.3.2024 10:30;very good tea;red;1,5\n;;blue;2\n");
    write_text("b.csv", "# \" \namount;id;colour;note;when\n1,5;1;red;\"very\ngood tea\";"
                        "2024-03-09T10:30\n2,0;2;blue;NA;?\n");
    ck_ok(predict("a.csv", "a.out", (struct predict_opts){0}, &s), err);
    ck_ok(predict("b.csv", "b.out", (struct predict_opts){0}, &s), err);
    ck_assert_str_eq(ignored, "id");
    same_files("a.out", "b.out");
    write_text("c.csv", "when;note;colour;amount\nsoon;x;red;1\n");
    ck_fails(predict("c.csv", "c.out", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "line 2: column 'when': found 'soon', expected a date");
    write_text("c.csv", "when;note;colour;amount\n20240309;x;red;1\n");
    ck_fails(predict("c.csv", "c.out", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "found '20240309', expected a date");
    write_text("c.csv", "note;colour;amount\nx;red;1\n");
    ck_fails(predict("c.csv", "c.out", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "no column 'when'");
    AS_AUTO(as_freep) char *x = child_path(&child, "x.npy");
    const float row[4] = {1, 2, 0, 3};
    ck_ok(npy_write(x, NPY_F4, (size_t[]){1, 4}, 2, row, &err), err);
    ck_fails(predict("x.npy", "o.npy", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "dates or texts, which an array of numbers does not hold");
}
END_TEST

/* Columns that the data set left out may be there, and are not worth a note. */
START_TEST(columns_that_were_left_out)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    train_mixed("note", 60);
    write_text("a.csv", "when;colour;amount\n9.3.2024;red;1,5\n");
    write_text("b.csv", "when;note;colour;amount;y\n9.3.2024;x;red;1,5;7\n");
    ck_ok(predict("a.csv", "a.out", (struct predict_opts){0}, &s), err);
    ck_ok(predict("b.csv", "b.out", (struct predict_opts){0}, &s), err);
    ck_assert_str_eq(ignored, "");
    same_files("a.out", "b.out");
}
END_TEST

/* Without a header: by place, or by the indices that the data set had. */
START_TEST(places_beside_columns_that_were_left_out)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    char report[512], text[1200] = "";
    char *names[] = {(char *)"0"};
    const struct dataset_options options = {.drop = {names, 1}};
    for (size_t i = 0; i < 40; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%zu,%zu,%zu.5,%zu\n", i,
                       i * 7 % 11, i % 5, i % 3);
    write_text("t.csv", text);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model_with(&child, &paths, DATASET_CSV, &options, "-1", DATASET_REGRESSION,
                       "\"epochs\":1,\"model\":{\"layers\":[3]}", report, sizeof report);
    read_model();
    write_text("a.csv", "3,1.5\n8,2\n");
    write_text("b.csv", "77,3,1.5,0\n78,8,2,0\n");
    ck_ok(predict("a.csv", "a.out", (struct predict_opts){0}, &s), err);
    ck_ok(predict("b.csv", "b.out", (struct predict_opts){0}, &s), err);
    same_files("a.out", "b.out");
    write_text("c.csv", "3\n8\n");
    ck_fails(predict("c.csv", "c.out", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "found 1 columns, expected 2");
}
END_TEST

/* Years are names, too, although a header of them alone looks like a row. */
START_TEST(columns_whose_names_are_numbers)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    char report[512], text[1200] = "2019,2020,y\n";
    for (size_t i = 0; i < 40; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%zu.5,%zu,%s\n",
                       i * 7 % 11, i % 5, i % 3 ? "up" : "down");
    write_text("t.csv", text);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model(&child, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION,
                  "\"epochs\":2,\"model\":{\"layers\":[3]}", report, sizeof report);
    read_model();
    write_text("a.csv", "2019,2020\n3.5,1\n8,2\n");
    write_text("b.csv", "2020,y,2019,x\n1,up,3.5,0\n2,up,8,0\n");
    write_text("c.csv", "3.5,1\n8,2\n");
    ck_ok(predict("a.csv", "a.out", (struct predict_opts){.proba = true}, &s), err);
    ck_assert_uint_eq(s.rows, 2);
    ck_ok(predict("b.csv", "b.out", (struct predict_opts){.proba = true}, &s), err);
    ck_assert_str_eq(ignored, "x");
    same_files("a.out", "b.out");
    ck_fails(predict("c.csv", "c.out", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "there is no column '2019'");
}
END_TEST

START_TEST(arrays_have_no_categories)
{
    AS_AUTO(predict_summary_done) struct predict_summary s = {0};
    AS_AUTO(as_freep) char *x = child_path(&child, "x.npy");
    const float row[3] = {1, 2, 0};
    train_table(2);
    ck_ok(npy_write(x, NPY_F4, (size_t[]){1, 3}, 2, row, &err), err);
    ck_fails(predict("x.npy", "o.npy", (struct predict_opts){0}, &s), AS_E_INVAL, err,
             "which an array of numbers does not hold");
}
END_TEST

/* ---- memory ---- */

/* The peak memory of a process that predicts the file, in KiB. */
static long peak_of(const char *name)
{
    int p[2];
    long peak = 0;
    ck_assert_int_eq(pipe(p), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct predict_summary s = {0};
        struct rusage use;
        as_status st = predict(name, "memory.out", (struct predict_opts){0}, &s);
        (void)getrusage(RUSAGE_SELF, &use);
        peak = st == AS_OK ? use.ru_maxrss : -1;
        _exit(write(p[1], &peak, sizeof peak) == sizeof peak ? 0 : 1);
    }
    ck_assert_int_eq(read(p[0], &peak, sizeof peak), sizeof peak);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    (void)close(p[0]);
    (void)close(p[1]);
    ck_assert_int_gt(peak, 0);
    return peak;
}

START_TEST(memory_does_not_grow_with_the_file)
{
    AS_AUTO(str_done) struct str b = {0};
    train_table(0);
    str_puts(&b, "size,weight,colour\n");
    for (size_t i = 0; i < 100000; i++)
        str_puts(&b, "0.5,40,red\n");
    child_write(&child, "small.csv", b.s, b.len); /* 1.1 MB: more than all blocks */
    for (size_t i = 0; i < 900000; i++)
        str_puts(&b, "0.5,40,red\n");
    child_write(&child, "large.csv", b.s, b.len); /* a million rows, 11 MB */
    str_done(&b);
    long small = peak_of("small.csv"), large = peak_of("large.csv");
    if (!IS_SANITIZED) /* the sanitizer keeps what was freed for a while */
        ck_assert_msg(large - small < 4096, "%ld KiB for 0.1 M rows, %ld for 1 M", small, large);
}
END_TEST

/* Nothing is computed for 2 ms after each tenth of a millisecond, as beside busy programs. */
static void pause_in_between(int signal)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    const struct itimerval next = {.it_value = {.tv_usec = 100}};
    (void)signal;
    (void)nanosleep(&pause, NULL);
    (void)setitimer(ITIMER_REAL, &next, NULL);
}

static double processor_ms(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* At least half of the eleven rows or more take the median or longer. A row is short, so that
 * eleven are timed within the second that they have, also beside busy programs. */
START_TEST(the_time_of_a_row_is_that_of_the_processor)
{
    char report[512];
    const struct sigaction pausing = {.sa_handler = pause_in_between, .sa_flags = SA_RESTART};
    const struct itimerval never = {{0}};
    double ms = 0;
    trained_write_table(&child, 211, 3);
    AS_AUTO(as_freep) char *path = child_path(&child, "t.csv");
    const struct dataset_paths paths = {.table = path};
    trained_model(&child, &paths, DATASET_CSV, "y", DATASET_CLASSIFICATION,
                  "\"epochs\":1,\"model\":{\"layers\":[900,900]}", report, sizeof report);
    read_model();
    ck_assert_int_eq(sigaction(SIGALRM, &pausing, NULL), 0);
    double before = processor_ms();
    raise(SIGALRM);
    as_status st = predict_row_time(model, &ms, &err);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    (void)signal(SIGALRM, SIG_IGN);
    ck_ok(st, err);
    ck_assert_double_gt(ms, 0);
    ck_assert_double_le(6 * ms, processor_ms() - before);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("predict_file");
    TCase *t = tcase_create("predict_file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, columns_by_name);
    tcase_add_test(t, numbers_that_training_never_lacked);
    tcase_add_test(t, other_dialects);
    tcase_add_test(t, packed_tables);
    tcase_add_test(t, numbers_and_arrays);
    tcase_add_test(t, blocks_stay_in_order);
    tcase_add_test(t, faults_have_their_place);
    tcase_add_test(t, the_first_fault_is_reported);
    tcase_add_test(t, unknown_categories);
    tcase_add_test(t, the_time_of_a_row_is_that_of_the_processor);
    tcase_add_test(t, it_can_be_stopped);
    tcase_add_test(t, images);
    tcase_add_test(t, columns_whose_names_are_numbers);
    tcase_add_test(t, arrays_have_no_categories);
    tcase_add_test(t, dates_and_texts);
    tcase_add_test(t, columns_of_dates_and_texts);
    tcase_add_test(t, columns_that_were_left_out);
    tcase_add_test(t, places_beside_columns_that_were_left_out);
    tcase_add_test(t, memory_does_not_grow_with_the_file);
    suite_add_tcase(s, t);
    return s;
}
