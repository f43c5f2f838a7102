/* The input columns of CSV tables: other dialects, columns that are dropped or selected, dates,
 * texts. Each case is a real file that is inspected, whose record goes through JSON, and which is
 * loaded with the record. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "data/dataset_cells.h"
#include "data/dataset_csv.h"
#include "data/dataset_json.h"
#include "data/dataset_profile.h"
#include "data/dataset_read.h"
#include "data/dataset_view.h"
#include "data/text_hash.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char path[64];

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/t.csv", dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

/* Inspect `text` with options as JSON. *ret is read back from the record. */
static as_status inspect(const char *text, const char *target, const char *options,
                         struct dataset_info *ret)
{
    AS_AUTO(dataset_options_done) struct dataset_options o = {0};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    JSON_AUTO j = NULL;
    JSON_AUTO record = NULL;
    ck_ok(file_replace(path, text, strlen(text), 0644, &err), err);
    ck_ok(json_parse(options, strlen(options), &j, &err), err);
    as_status st = dataset_options_from_json(j, "/options", &o, &err);
    if (st == AS_OK)
        st = dataset_inspect(&(struct dataset_paths){.table = path}, DATASET_CSV, target,
                             DATASET_TASK_AUTO, &o, &info, &err);
    if (st != AS_OK)
        return st;
    record = dataset_info_to_json(&info);
    ck_assert_ptr_nonnull(record);
    ck_ok(dataset_info_from_json(record, "/dataset", ret, &err), err);
    JSON_AUTO again = dataset_info_to_json(ret);
    ck_assert(json_equal(record, again));
    return AS_OK;
}

static as_status refused(const char *text, const char *target, const char *options)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    return inspect(text, target, options, &info);
}

static struct dataset load(const struct dataset_info *info)
{
    struct dataset d = {0};
    ck_ok(dataset_load(&(struct dataset_paths){.table = path}, info, &d, &err), err);
    return d;
}

START_TEST(dialects)
{
    static const struct {
        const char *text, *options;
    } cases[] = {
        {"a;k;y\n1,5;x;0\n2,25;y;1\n-3,125;x;0\n4;y;1\n", "{}"},
        {"a\tk\ty\n1.5\tx\t0\n2.25\ty\t1\n-3.125\tx\t0\n4\ty\t1\n", "{}"},
        {"% by hand\na:k:y\n1,5:x:0\n2,25:y:1\n%\n-3,125:x:0\n4:y:1\n",
         "{\"separator\":\":\",\"decimal\":\",\",\"comment\":\"%\"}"},
        {"a|k|y\r\n1.5|x|0\r\n2.25|\"y\"|1\r\n-3.125|x|0\r\n4|y|1\r\n", "{\"separator\":\"|\"}"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        ck_ok(inspect(cases[i].text, "y", cases[i].options, &info), err);
        AS_AUTO(dataset_done) struct dataset d = load(&info);
        ck_assert_uint_eq(d.n_rows, 4);
        ck_assert_mem_eq(d.x, ((float[]){1.5f, 0, 2.25f, 1, -3.125f, 0, 4, 1}), 8 * sizeof *d.x);
        ck_assert_mem_eq(d.labels, ((int32_t[]){0, 1, 0, 1}), 4 * sizeof *d.labels);
    }
}
END_TEST

/* A record from before the options existed says nothing of the dialect: it means commas. */
START_TEST(old_records_mean_commas)
{
    static const char record[] =
        "{\"format\":\"csv\",\"task\":\"classification\",\"rows\":2,\"features\":1,\"outputs\":2,"
        "\"target\":\"y\",\"classes\":[\"0\",\"1\"],\"input\":\"table\",\"columns\":[{\"name\":"
        "\"a\","
        "\"kind\":\"numeric\",\"missing\":0}]}";
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    struct dataset d = {0};
    JSON_AUTO j = NULL;
    ck_ok(json_parse(record, strlen(record), &j, &err), err);
    ck_ok(dataset_info_from_json(j, "/dataset", &info, &err), err);
    ck_ok(file_replace(path, "a,y\n1,0\n2,1\n", 12, 0644, &err), err);
    ck_ok(dataset_load(&(struct dataset_paths){.table = path}, &info, &d, &err), err);
    dataset_done(&d);
    ck_ok(file_replace(path, "a;y\n1;0\n2;1\n", 12, 0644, &err), err);
    ck_fails(dataset_load(&(struct dataset_paths){.table = path}, &info, &d, &err), AS_E_INVAL, err,
             "found ';', expected ','");
}
END_TEST

START_TEST(drop_and_select)
{
    static const char text[] = "ID,a,b1,b2,name,y\n7,1,2,3,u,0\n8,4,5,6,v,1\n9,7,8,9,w,0\n";
    static const struct {
        const char *options;
        size_t n;
        float row[4];
    } cases[] = {
        {"{\"drop\":[\"ID\",\"name\"]}", 3, {1, 2, 3}},
        {"{\"select\":[\"b*\"]}", 2, {2, 3}},
        {"{\"select\":[\"b?\",\"a\"],\"drop\":[\"b1\"]}", 2, {1, 3}},
        {"{\"select\":[\"ID\",\"y\"]}", 1, {7}},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        ck_ok(inspect(text, "y", cases[i].options, &info), err);
        ck_assert_uint_eq(info.n_features, cases[i].n);
        AS_AUTO(dataset_done) struct dataset d = load(&info);
        ck_assert_mem_eq(d.x, cases[i].row, cases[i].n * sizeof *d.x);
    }
    ck_fails(refused(text, "y", "{}"), AS_E_INVAL, err, "every row has another text");
    ck_fails(refused(text, "y", "{\"drop\":[\"id\"]}"), AS_E_INVAL, err,
             "drop: there is no column 'id'; the columns are: ID, a, b1, b2, name, y");
    ck_fails(refused(text, "y", "{\"select\":[\"c*\"]}"), AS_E_INVAL, err, "select: there is no");
    ck_fails(refused(text, "y", "{\"drop\":[\"name\",\"*y\"]}"), AS_E_INVAL, err,
             "drop: it names the target 'y'");
    ck_fails(refused(text, "y", "{\"select\":[\"a\"],\"drop\":[\"a\"]}"), AS_E_INVAL, err,
             "leave no column");
    ck_fails(refused(text, "y", "{\"drop\":[]}"), AS_E_INVAL, err, "/options/drop: found 0 names");
    ck_fails(refused(text, "y", "{\"drop\":[3]}"), AS_E_INVAL, err, "/options/drop/0");
}
END_TEST

START_TEST(bad_options)
{
    static const char text[] = "a,y\n1,0\n2,1\n";
    ck_fails(refused(text, "y", "{\"separator\":\"x\"}"), AS_E_INVAL, err, "/options/separator");
    ck_fails(refused(text, "y", "{\"separator\":\"\"}"), AS_E_INVAL, err, "/options/separator");
    ck_fails(refused(text, "y", "{\"separator\":\",\",\"decimal\":\",\"}"), AS_E_INVAL, err,
             "/options/decimal: found ',', which separates");
    ck_fails(refused(text, "y", "{\"separator\":\";\",\"comment\":\";\"}"), AS_E_INVAL, err,
             "/options/comment: found ';'");
    ck_fails(refused(text, "y", "{\"comment\":\"a\"}"), AS_E_INVAL, err, "/options/comment");
    ck_fails(refused(text, "y", "{\"buckets\":4}"), AS_E_INVAL, err, "/options/buckets");
    struct dataset_info info = {0};
    struct dataset_options o = {.comment = '#'};
    ck_fails(dataset_inspect(&(struct dataset_paths){.table = path}, DATASET_TEXT, NULL,
                             DATASET_TASK_AUTO, &o, &info, &err),
             AS_E_INVAL, err, "separator, decimal or comment is not for the format text");
}
END_TEST

/* ---- dates ---- */

START_TEST(dates)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("when,a,y\n2024-03-09,1,0\n?,2,1\n2024-03-04,3,0\n9.4.2024,4,1\n", "y", "{}",
                  &info),
          err);
    ck_assert_uint_eq(info.n_features, 6); /* days, week, month; a */
    ck_assert_int_eq(info.columns[0].part, DATASET_DAYS);
    ck_assert_int_eq(info.columns[4].part, DATASET_MONTH_COS);
    ck_assert_str_eq(info.columns[4].name, "when");
    ck_assert_uint_eq(info.columns[0].n_missing, 1);
    ck_assert_uint_eq(info.columns[1].n_missing, 0);
    ck_assert_uint_eq(dataset_inputs(&info), 7); /* and the indicator */
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_float_eq(d.x[0], 5);
    ck_assert_float_eq(d.x[1], (float)sin(2 * M_PI * 5 / 7));
    ck_assert_float_eq(d.x[5], 1);
    ck_assert(isnan(d.x[6]) && d.x[7] == 0 && d.x[8] == 0 && d.x[9] == 0 && d.x[10] == 0);
    ck_assert_float_eq(d.x[12], 0);
    ck_assert_float_eq(d.x[18], 36);
    static const char other_rows[] = "when,a,y\n2024-03-09,1,0\n?,2,1\nsoon,3,0\n2024-04-09,4,1\n";
    ck_ok(file_replace(path, other_rows, strlen(other_rows), 0644, &err), err);
    struct dataset other = {0};
    ck_fails(dataset_load(&(struct dataset_paths){.table = path}, &info, &other, &err), AS_E_INVAL,
             err, "column 'when', line 4: found 'soon', expected a date");
}
END_TEST

/* Only cycles that vary are inputs; one cell that is no date makes categories. */
START_TEST(cycles_that_vary)
{
    static const struct {
        const char *cells[3];
        size_t features;
    } cases[] = {
        {{"2024-03-09", "2024-03-16", "2024-03-23"}, 1},
        {{"2024-03-09 10:00", "2024-03-16 11:00", "2024-03-23 10:00"}, 3},
        {{"2024-03-09", "2024-03-10", "2024-03-09"}, 3},
        {{"2024-03-09", "2024-04-13", "2024-03-09"}, 3},
        {{"2024-03-09 10:00", "2024-04-10", "2024-03-09"}, 7},
        {{"2024-03-09", "2024-03-09", "05"}, 1},
        {{"2024-03-09", "2024-03-09", "x"}, 1},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char text[160];
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        (void)snprintf(text, sizeof text, "d,y\n%s,0\n%s,1\n%s,0\n", cases[i].cells[0],
                       cases[i].cells[1], cases[i].cells[2]);
        ck_ok(inspect(text, "y", "{}", &info), err);
        ck_assert_msg(info.n_features == cases[i].features, "case %zu: %zu", i, info.n_features);
        ck_assert_int_eq(info.columns[0].categorical, i >= 5);
    }
}
END_TEST

/* ---- texts ---- */

static void check_text(const struct dataset *d, size_t row, size_t at, size_t n, const char *text)
{
    float expected[DATASET_MAX_BUCKETS];
    text_hash(text, strlen(text), n, expected);
    ck_assert_mem_eq(d->x + row * d->n_features + at, expected, n * sizeof *expected);
}

START_TEST(texts)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("review,a,y\nit was very good,1,0\n,2,1\nnot so good at all,3,0\nbad,4,1\n", "y",
                  "{\"buckets\":32}", &info),
          err);
    ck_assert_uint_eq(info.n_features, 33);
    ck_assert_uint_eq(dataset_inputs(&info), 33);
    ck_assert_int_eq(info.columns[31].part, DATASET_HASHED);
    ck_assert_uint_eq(info.columns[0].n_empty, 1);
    ck_assert_str_eq(info.columns[32].name, "a");
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    check_text(&d, 0, 0, 32, "it was very good");
    check_text(&d, 1, 0, 32, "");
    check_text(&d, 3, 0, 32, "bad");
    ck_assert_float_eq(d.x[2 * 33 + 32], 3);
}
END_TEST

START_TEST(texts_by_option)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("k,a,y\nred,1,0\nred,2,1\nblue,3,0\nblue,4,1\n", "y",
                  "{\"text\":[\"k\",\"a\"],\"buckets\":8}", &info),
          err);
    ck_assert_uint_eq(info.n_features, 16);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    check_text(&d, 2, 0, 8, "blue");
    check_text(&d, 2, 8, 8, "3");
    ck_fails(refused("k,y\na,0\nb,1\n", "y", "{\"text\":[\"t\"]}"), AS_E_INVAL, err,
             "text: there is no column 't'");
}
END_TEST

/* More values than categories may have, and one that is too long for a category; a column of two
 * words stays refused. */
START_TEST(texts_are_found)
{
    AS_AUTO(str_done) struct str many = {0};
    AS_AUTO(str_done) struct str few = {0};
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_info_done) struct dataset_info longer = {0};
    str_puts(&many, "t,y\n");
    for (size_t i = 0; i < 3000; i++)
        str_printf(&many, "word%zu and more,%zu\n", i / 2, i % 2);
    ck_ok(inspect(many.s, "y", "{}", &info), err);
    ck_assert_uint_eq(info.n_features, DATASET_BUCKETS);
    str_puts(&few, "t,y\n");
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 90; k++)
            str_puts(&few, "long ");
        str_printf(&few, "text,%zu\n", i % 2);
    }
    ck_ok(inspect(few.s, "y", "{}", &longer), err);
    ck_assert_int_eq(longer.columns[0].part, DATASET_HASHED);
    str_clear(&many);
    str_puts(&many, "t,y\n");
    for (size_t i = 0; i < 3000; i++)
        str_printf(&many, "word%zu more,%zu\n", i / 2, i % 2);
    ck_fails(refused(many.s, "y", "{}"), AS_E_TOO_LARGE, err, "hash its words (text)");
}
END_TEST

START_TEST(bad_records)
{
#define RECORD(features, columns)                                                                  \
    "{\"format\":\"csv\",\"task\":\"regression\",\"rows\":9,\"outputs\":1,\"features\":" features  \
    ",\"columns\":[" columns "]}"
    static const struct {
        const char *record, *expected;
    } cases[] = {
        {RECORD("1", "{\"name\":\"d\",\"kind\":\"date\"}"), "/d/columns/0/since"},
        {RECORD("1", "{\"name\":\"d\",\"kind\":\"date\",\"since\":9999999,\"cycles\":[]}"),
         "/d/columns/0/since"},
        {RECORD("1", "{\"name\":\"d\",\"kind\":\"date\",\"since\":1}"), "/d/columns/0/cycles"},
        {RECORD("5",
                "{\"name\":\"d\",\"kind\":\"date\",\"since\":1,\"cycles\":[\"hour\",\"week\"]}"),
         "/d/columns/0/cycles/1"},
        {RECORD("5", "{\"name\":\"d\",\"kind\":\"date\",\"since\":1,\"cycles\":[3]}"),
         "/d/columns/0/cycles/0"},
        {RECORD("1", "{\"name\":\"d\",\"kind\":\"date\",\"since\":1,\"cycles\":[\"week\"]}"),
         "/d/columns: found more than the 1 features"},
        {RECORD("9", "{\"name\":\"t\",\"kind\":\"text\",\"buckets\":8}"),
         "/d/columns: found 1 columns of 8 features, expected 9"},
        {RECORD("9", "{\"name\":\"t\",\"kind\":\"text\",\"buckets\":9999}"),
         "/d/columns/0/buckets"},
        {RECORD("8", "{\"name\":\"t\",\"kind\":\"text\",\"buckets\":8,\"values\":[]}"),
         "/d/columns/0/values: a text column has none"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct dataset_info info = {0};
        JSON_AUTO j = NULL;
        ck_ok(json_parse(cases[i].record, strlen(cases[i].record), &j, &err), err);
        ck_fails(dataset_info_from_json(j, "/d", &info, &err), AS_E_INVAL, err, cases[i].expected);
    }
}
END_TEST

/* Columns that say which rows are held out leave with all their features. */
START_TEST(columns_leave_whole)
{
    static const char text[] = "a,when,note,b,y\n1,2024-03-09,one two three,5,0.5\n"
                               "2,2024-05-09,two three four,6,1.5\n3,2025-01-01,x y z,7,2\n";
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_info_done) struct dataset_info left = {0};
    ck_ok(inspect(text, "y", "{\"buckets\":8}", &info), err);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    size_t columns[] = {dataset_find_column(&info, "note"), dataset_find_column(&info, "when")};
    ck_assert_uint_eq(dataset_file_columns(&info), 4);
    ck_assert_uint_eq(columns[1], 1);
    ck_ok(dataset_info_without(&info, columns, 2, &left, &err), err);
    dataset_without(&d, &info, columns, 2);
    ck_assert(left.n_features == 2 && d.n_features == 2);
    ck_assert_str_eq(left.columns[1].name, "b");
    static const float rest[] = {1, 5, 2, 6, 3, 7};
    ck_assert_mem_eq(d.x, rest, sizeof rest);
}
END_TEST

/* The positive class is the last one, whatever the order of the names is. */
START_TEST(positive_class)
{
    static const char *const tables[] = {"x,y\n1,no\n2,yes\n3,no\n", "x,y\n1,0\n2,1\n3,0\n"};
    static const char *const names[][2] = {{"no", "yes"}, {"0", "1"}};
    for (size_t i = 0; i < 6; i++) {
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        const char *const *name = names[i % 2];
        size_t last = i >= 4 ? 1 : i / 2; /* the last two: none is named */
        char options[64] = "{}";
        if (i < 4)
            (void)snprintf(options, sizeof options, "{\"positive\":\"%s\"}", name[last]);
        ck_ok(inspect(tables[i % 2], "y", options, &info), err);
        ck_assert_str_eq(info.classes[1], name[last]);
        ck_assert_str_eq(info.classes[0], name[!last]);
        AS_AUTO(dataset_done) struct dataset d = load(&info);
        for (size_t r = 0; r < 3; r++)
            ck_assert_int_eq(d.labels[r], (r == 1) == (last == 1));
    }
    ck_fails(refused(tables[0], "y", "{\"positive\":\"maybe\"}"), AS_E_INVAL, err,
             "positive: found 'maybe', expected 'no' or 'yes'");
    ck_fails(refused("x,y\n1,a\n2,b\n3,c\n", "y", "{\"positive\":\"a\"}"), AS_E_INVAL, err,
             "3 outputs: expected two classes");
    ck_fails(refused("x,y\n1,0.5\n2,1\n3,2\n", "y", "{\"positive\":\"1\"}"), AS_E_INVAL, err,
             "the data set is for regression");
}
END_TEST

/* Equal numbers have one text; all else stays as it is. */
START_TEST(texts_of_values)
{
    static const struct dataset_column number = {.part = DATASET_CELL},
                                       category = {.categorical = true},
                                       date = {.part = DATASET_DAYS};
    static const char *const cells[][2] = {{"1.0", "1"},
                                           {"01", "1"},
                                           {"-0", "0"},
                                           {"0.10", "0.1"},
                                           {"1e3", "1000"},
                                           {"1000", "1000"},
                                           {"16777217", "16777216"},
                                           {"2.5e-7", "2.5e-07"},
                                           {"x", "x"},
                                           {"", ""}};
    char buf[DATASET_VALUE_TEXT];
    for (size_t i = 0; i < AS_ARRAY_LEN(cells); i++) {
        ck_assert_str_eq(dataset_value_text(&number, cells[i][0], buf), cells[i][1]);
        ck_assert_ptr_eq(dataset_value_text(&category, cells[i][0], buf), cells[i][0]);
        ck_assert_ptr_eq(dataset_value_text(&date, cells[i][0], buf), cells[i][0]);
        ck_assert_ptr_eq(dataset_value_text(NULL, cells[i][0], buf), cells[i][0]);
    }
}
END_TEST

START_TEST(out_of_memory)
{
    static const char text[] =
        "when;t;k;y\n2024-03-09;one two three;u;0\n2024-05-09;two three four;u;1\n;;v;0\n";
    for (size_t n = 1; n < 120; n++) {
        AS_AUTO(dataset_info_done) struct dataset_info info = {0};
        struct dataset_options o = {.buckets = 8};
        ck_ok(file_replace(path, text, strlen(text), 0644, &err), err);
        as_mem_fail_nth(n);
        as_status st = dataset_inspect(&(struct dataset_paths){.table = path}, DATASET_CSV, "y",
                                       DATASET_TASK_AUTO, &o, &info, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        ck_assert(st != AS_OK || info.n_features == 14); /* 5, 8 and 1 */
    }
}
END_TEST

START_TEST(numbers_by_option)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    const char *text = "age,size,y\n31,1,0\nheavy,2,1\ninf,3,0\n45.5,4,1\n,5,0\n1e308,6,1\n";
    ck_ok(inspect(text, "y", "{\"numeric\": [\"a*\"]}", &info), err);
    ck_assert(!info.columns[0].categorical);
    ck_assert_uint_eq(info.columns[0].n_missing, 4);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_float_eq(d.x[0], 31);
    ck_assert_float_eq(d.x[6], 45.5F);
    ck_assert(isnan(d.x[2]) && isnan(d.x[4]) && isnan(d.x[8]) && isnan(d.x[10]));
    ck_assert_int_eq(refused(text, "y", "{}"), AS_E_INVAL); /* 'heavy' among four texts */
    ck_assert_int_eq(refused(text, "y", "{\"numeric\": [\"b*\"]}"), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "numeric: there is no column 'b*'"));
    ck_assert_int_eq(refused(text, "y", "{\"numeric\": [\"age\"], \"text\": [\"age\"]}"),
                     AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "numeric: column 'age' is one of texts, too"));
}
END_TEST

/* The texts of a column, with blanks between them. */
static char *cells_of(const struct dataset_info *info, const char *name)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    struct str b = {0};
    ck_ok(dataset_read_cells(&(struct dataset_paths){.table = path}, info, name, &cells, &err),
          err);
    for (size_t i = 0; i < cells.n; i++)
        str_printf(&b, "%s%s", i ? " " : "", dataset_cell(&cells, i));
    return str_take(&b);
}

/* A code is a number, however it is written, and of inputs alone. */
START_TEST(codes_by_option)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    const char *text = "age,part,pay,y\n31,a,\"$99,999\",1.5\n-999,b,5,-999\n-999.0,99999,7,2.5\n"
                       "45.5,a,8,3.5\n-99,b,9,4.5\n";
    ck_ok(inspect(text, "y", "{\"missing\": [-999, 99999], \"numeric\": [\"pay\"]}", &info), err);
    ck_assert_uint_eq(info.columns[0].n_missing, 2);
    ck_assert_uint_eq(info.columns[1].n_missing, 1);
    ck_assert_uint_eq(info.columns[1].n_values, 2);
    ck_assert_uint_eq(info.columns[2].n_missing, 1);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert(isnan(d.x[3]) && isnan(d.x[6]) && isnan(d.x[2]));
    ck_assert_float_eq(d.x[12], -99);
    ck_assert_float_eq(d.targets[1], -999);
    AS_AUTO(as_freep) char *age = cells_of(&info, "age");
    AS_AUTO(as_freep) char *y = cells_of(&info, "y");
    ck_assert_str_eq(age, "31   45.5 -99");
    ck_assert_str_eq(y, "1.5 -999 2.5 3.5 4.5");
    ck_assert_int_eq(refused(text, "y", "{\"missing\": []}"), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "/missing: found 0 numbers, expected 1 to 16"));
    ck_assert_int_eq(refused(text, "y", "{\"missing\": [\"-999\"]}"), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "/missing/0: found a string, expected a number"));
}
END_TEST

/* Of the target, too; what is no number there stays what it is. */
START_TEST(written_numbers_by_option)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    const char *text = "pay,y\n\"1,250\",$10\n\"$2,500.50\",\"$1,300\"\n1'000,7.5\n\"1,25\",-$2\n";
    ck_ok(inspect(text, "y", "{\"numeric\": [\"*\"]}", &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    ck_assert(!info.columns[0].categorical);
    ck_assert_uint_eq(info.columns[0].n_missing, 1);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_float_eq(d.x[0], 1250);
    ck_assert_float_eq(d.x[1], 2500.5F);
    ck_assert_float_eq(d.x[2], 1000);
    ck_assert(isnan(d.x[3]));
    ck_assert_float_eq(d.targets[1], 1300);
    ck_assert_float_eq(d.targets[3], -2);
    AS_AUTO(as_freep) char *pay = cells_of(&info, "pay");
    AS_AUTO(as_freep) char *y = cells_of(&info, "y");
    ck_assert_str_eq(pay, "1250 2500.50 1000 ");
    ck_assert_str_eq(y, "10 1300 7.5 -2");
    AS_AUTO(dataset_info_done) struct dataset_info classes = {0};
    ck_ok(
        inspect("pay,y\n\"1,250\",a\n\"3,000\",b\n9,a\n", "y", "{\"numeric\": [\"*\"]}", &classes),
        err);
    ck_assert_int_eq(classes.task, DATASET_CLASSIFICATION);
    ck_assert_uint_eq(classes.n_rows, 3);
    AS_AUTO(as_freep) char *names = cells_of(&classes, "y");
    ck_assert_str_eq(names, "a b a");
}
END_TEST

/* The decimal comma of a table gives its points a meaning, without any option. */
START_TEST(thousands_of_decimal_commas)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("pay;part;y\n1.250;0,5;418.665,72\n900;0,25;1.000,50\n2.000;0,75;900,25\n", "y",
                  "{}", &info),
          err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_float_eq(d.x[0], 1250);
    ck_assert_float_eq(d.x[2], 900);
    ck_assert_float_eq(d.targets[0], 418665.72F);
    ck_assert_float_eq(d.targets[1], 1000.5F);
}
END_TEST

static as_status count_row(void *ctx, const struct dataset_row_view *row, struct as_err *e)
{
    (void)row;
    (void)e;
    ++*(size_t *)ctx;
    return AS_OK;
}

/* Rows that lack a target are none of the rows, wherever rows are read. */
START_TEST(rows_without_a_target)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_cells_done) struct dataset_cells cells = {0};
    const char *text = "a,y\n1,0\n2,\n,1\n4, NA \n5,1\n6,?\n";
    const struct dataset_paths paths = {.table = path};
    ck_assert_int_eq(refused(text, "y", "{}"), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "column 'y', line 3: the cell is empty, expected a "
                                          "target; drop_unlabelled leaves such rows out"));
    ck_ok(inspect(text, "y", "{\"drop_unlabelled\": true}", &info), err);
    ck_assert(info.options.drop_unlabelled);
    ck_assert_uint_eq(info.n_rows, 3);
    ck_assert_uint_eq(info.n_classes, 2);
    ck_assert_uint_eq(info.columns[0].n_missing, 1);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert(d.x[0] == 1 && isnan(d.x[1]) && d.x[2] == 5);
    ck_assert(d.labels[0] == 0 && d.labels[1] == 1 && d.labels[2] == 1);
    ck_ok(dataset_csv_cells(&paths, &info, "a", &cells, &err), err);
    ck_assert_uint_eq(cells.n, 3);
    AS_AUTO(dataset_profile_done) struct dataset_profile looked = {0};
    ck_ok(dataset_profile_read(&paths, &info, &looked, &err), err);
    ck_assert_uint_eq(looked.n_looked, 3);
    size_t visited = 0;
    ck_ok(dataset_csv_rows(&paths, &info, count_row, &visited, &err), err);
    ck_assert_uint_eq(visited, 3);
    size_t rows = 0;
    AS_AUTO(dataset_done) struct dataset test = {0};
    ck_ok(dataset_test_inspect(&paths, &info, &rows, &err), err);
    ck_assert_uint_eq(rows, 3);
}
END_TEST

/* Of several targets each is needed; without one, nothing is left out. */
START_TEST(rows_without_one_of_two_targets)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("a,y,z\n1,0.5,1\n2,,2\n3,1.5,null\n4,2.5,4\n", "y,z",
                  "{\"drop_unlabelled\": true}", &info),
          err);
    ck_assert_uint_eq(info.n_rows, 2);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert(d.targets[2] == 2.5F && d.targets[3] == 4);
    ck_assert_int_eq(refused("a,y\n1,\n2,\n3,0\n", "y", "{\"drop_unlabelled\": true}"), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "has 1 row of data"));
}
END_TEST

START_TEST(two_columns_of_one_name)
{
    const char *text = "a,b,a,y\n1,2,3,0\n4,5,6,1\n7,8,9,0\n";
    ck_assert_int_eq(refused(text, "y", "{}"), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "columns 1 and 3 have one name, 'a'"));
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect(text, "y", "{\"drop\": [\"a\"]}", &info), err);
    ck_assert_uint_eq(info.n_features, 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("dataset_columns");
    TCase *t = tcase_create("dataset_columns");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, dialects);
    tcase_add_test(t, old_records_mean_commas);
    tcase_add_test(t, drop_and_select);
    tcase_add_test(t, bad_options);
    tcase_add_test(t, dates);
    tcase_add_test(t, cycles_that_vary);
    tcase_add_test(t, texts);
    tcase_add_test(t, texts_by_option);
    tcase_add_test(t, texts_are_found);
    tcase_add_test(t, bad_records);
    tcase_add_test(t, columns_leave_whole);
    tcase_add_test(t, positive_class);
    tcase_add_test(t, texts_of_values);
    tcase_add_test(t, numbers_by_option);
    tcase_add_test(t, codes_by_option);
    tcase_add_test(t, written_numbers_by_option);
    tcase_add_test(t, thousands_of_decimal_commas);
    tcase_add_test(t, rows_without_a_target);
    tcase_add_test(t, rows_without_one_of_two_targets);
    tcase_add_test(t, two_columns_of_one_name);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
