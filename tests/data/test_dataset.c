/* Data sets from CSV tables: what dataset_inspect() finds (task, classes, kinds of columns, gaps),
 * what dataset_load() returns, the JSON of both, and errors that name the column and the row. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/support/temp_folder.h"

static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];
static char csv_path[64];

static void setup(void)
{
    temp_folder_make(dir);
    (void)snprintf(csv_path, sizeof csv_path, "%s/t.csv", dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

static as_status inspect(const char *text, const char *target, dataset_task task,
                         struct dataset_info *ret)
{
    ck_ok(file_replace(csv_path, text, strlen(text), 0644, &err), err);
    return dataset_inspect(&(struct dataset_paths){.table = csv_path}, DATASET_CSV, target, task,
                           NULL, ret, &err);
}

static as_status refused(const char *text, const char *target, dataset_task task)
{
    struct dataset_info info = {0};
    as_status st = inspect(text, target, task, &info);
    dataset_info_done(&info);
    return st;
}

static struct dataset load(const struct dataset_info *info)
{
    struct dataset d = {0};
    ck_ok(dataset_load(&(struct dataset_paths){.table = csv_path}, info, &d, &err), err);
    return d;
}

START_TEST(text_classes)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("len,kind,width\n1,dog,2\n3, cat,4\n5,ant ,6\n7,dog,8\n", "kind",
                  DATASET_TASK_AUTO, &info),
          err);
    ck_assert_int_eq(info.task, DATASET_CLASSIFICATION);
    ck_assert_uint_eq(info.n_rows, 4);
    ck_assert_uint_eq(info.n_features, 2);
    ck_assert_uint_eq(info.n_outputs, 3);
    ck_assert_str_eq(info.target, "kind");
    ck_assert_str_eq(info.columns[1].name, "width");
    ck_assert_str_eq(info.classes[0], "ant");
    ck_assert_str_eq(info.classes[2], "dog");
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_mem_eq(d.x, ((float[]){1, 2, 3, 4, 5, 6, 7, 8}), 8 * sizeof(float));
    ck_assert_mem_eq(d.labels, ((int32_t[]){2, 1, 0, 2}), 4 * sizeof(int32_t));
    ck_assert_ptr_null(d.targets);
}
END_TEST

/* All columns are inputs; with a target one of them is left out, whatever it holds. */
START_TEST(no_target)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    AS_AUTO(dataset_info_done) struct dataset_info back = {0};
    AS_AUTO(dataset_info_done) struct dataset_info less = {0};
    static const char text[] = "len,kind,width\n1,dog,2\n3,cat,4\n5,dog,\n7,cat,8\n";
    ck_ok(inspect(text, NULL, DATASET_CLUSTERING, &info), err);
    ck_assert_int_eq(info.task, DATASET_CLUSTERING);
    ck_assert_uint_eq(info.n_features, 3);
    ck_assert_uint_eq(info.n_outputs, DATASET_CLUSTER_OUTPUTS);
    ck_assert_ptr_null(info.target);
    ck_assert_str_eq(info.columns[0].name, "len");
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert(d.x && !d.labels && !d.targets && d.x[7] == 1 && isnan(d.x[8]));
    JSON_AUTO j = dataset_info_to_json(&info);
    ck_ok(dataset_info_from_json(j, "", &back, &err), err);
    ck_assert(back.task == DATASET_CLUSTERING && !back.target);
    ck_assert_int_eq(json_object_set_new(j, "outputs", json_integer(3)), 0);
    ck_fails(dataset_info_from_json(j, "", &back, &err), AS_E_INVAL, err, "/outputs: found 3");
    ck_ok(inspect(text, "kind", DATASET_CLUSTERING, &less), err);
    ck_assert(less.n_features == 2 && !less.classes);
    ck_assert_str_eq(less.target, "kind");
    AS_AUTO(dataset_done) struct dataset two = load(&less);
    ck_assert(two.n_features == 2 && two.x[1] == 2 && !two.labels);
    ck_fails(refused(text, NULL, DATASET_TASK_AUTO), AS_E_INVAL, err, "the columns are");
    ck_fails(refused(text, "", DATASET_CLUSTERING), AS_E_INVAL, err, "target: found ''");
    ck_fails(dataset_inspect(&(struct dataset_paths){.table = csv_path}, DATASET_NPY, NULL,
                             DATASET_CLUSTERING, NULL, &info, &err),
             AS_E_INVAL, err, "expected csv");
}
END_TEST

/* A header need not look like one when the target is named after it. */
START_TEST(target_makes_the_header)
{
    AS_AUTO(dataset_info_done) struct dataset_info named = {0};
    AS_AUTO(dataset_info_done) struct dataset_info counted = {0};
    ck_ok(inspect("kind,2019,2020\ndog,1,2\ncat,3,4\n", "kind", DATASET_TASK_AUTO, &named), err);
    ck_assert_uint_eq(named.n_rows, 2);
    ck_assert_uint_eq(named.n_classes, 2);
    ck_assert_str_eq(named.columns[0].name, "2019");
    ck_ok(inspect("kind,1,2,3,4\ndog,1,2,5,5\ncat,3,4,5,5\n", "0", DATASET_TASK_AUTO, &counted),
          err);
    ck_assert_uint_eq(counted.n_rows, 2);
    ck_assert_str_eq(counted.target, "kind");
    ck_fails(inspect("dog,1\ncat,3\n", "kind", DATASET_TASK_AUTO, &named), AS_E_INVAL, err,
             "no target column 'kind'; the columns are: 0, 1");
    ck_fails(inspect("kind,size\ndog,big\ncat,small\n", "knd", DATASET_TASK_AUTO, &named),
             AS_E_INVAL, err,
             "no target column 'knd'; did you mean 'kind'? The columns are: kind, size");
}
END_TEST

START_TEST(whole_classes_in_numeric_order)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("1,10\n2,9\n3,-1\n4,9.0\n", "-1", DATASET_TASK_AUTO, &info), err);
    ck_assert_uint_eq(info.n_classes, 3);
    ck_assert_str_eq(info.target, "1");
    ck_assert_str_eq(info.columns[0].name, "0");
    ck_assert_str_eq(info.classes[0], "-1");
    ck_assert_str_eq(info.classes[1], "9");
    ck_assert_str_eq(info.classes[2], "10");
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_mem_eq(d.labels, ((int32_t[]){2, 1, 0, 1}), 4 * sizeof(int32_t));
}
END_TEST

/* Identifiers that doubles cannot tell apart are names, and stay distinct. */
START_TEST(whole_classes_past_doubles)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0}, back = {0};
    ck_ok(inspect("a,id\n1,9007199254740993\n2,9007199254740992\n3,10\n4,9\n", "id",
                  DATASET_CLASSIFICATION, &info),
          err);
    ck_assert_uint_eq(info.n_classes, 4);
    ck_assert_str_eq(info.classes[0], "10"); /* byte order */
    JSON_AUTO j = dataset_info_to_json(&info);
    ck_ok(dataset_info_from_json(j, "/dataset", &back, &err), err);
    AS_AUTO(dataset_done) struct dataset d = load(&back);
    ck_assert_mem_eq(d.labels, ((int32_t[]){3, 2, 0, 1}), 4 * sizeof(int32_t));
}
END_TEST

START_TEST(numbers_are_regression)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect("a,y\n1,0.5\n2,2\n", "y", DATASET_TASK_AUTO, &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    ck_assert_uint_eq(info.n_outputs, 1);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_float_eq(d.targets[0], 0.5f);
    ck_assert_ptr_null(d.labels);
    dataset_info_done(&info);
    ck_ok(inspect("a,y\n1,0\n2,1\n", "y", DATASET_REGRESSION, &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    dataset_info_done(&info);
    AS_AUTO(str_done) struct str many = {0};
    str_puts(&many, "a,y\n");
    for (size_t i = 0; i <= DATASET_AUTO_CLASSES; i++)
        str_printf(&many, "1,%zu\n", i);
    ck_ok(inspect(many.s, "y", DATASET_TASK_AUTO, &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    dataset_info_done(&info);
    ck_ok(inspect(many.s, "y", DATASET_CLASSIFICATION, &info), err);
    ck_assert_uint_eq(info.n_classes, DATASET_AUTO_CLASSES + 1);
}
END_TEST

START_TEST(bad_tables)
{
    const dataset_task a = DATASET_TASK_AUTO;
    ck_fails(refused("a,b\n1,2\n3,4\n", "c", a), AS_E_INVAL, err,
             "there is no target column 'c'; the columns are: a, b");
    ck_fails(refused("a,b\n1,2\n3,4\n", NULL, a), AS_E_INVAL, err, "no target column is named");
    ck_fails(refused("a,b\n1,2\n3,4\n", "-3", a), AS_E_INVAL, err, "'-3'");
    ck_fails(refused("a,a\n1,2\n3,4\n", "a", a), AS_E_INVAL, err, "2 columns are named 'a'");
    ck_fails(refused("a,ocean_proximity,y\n1,NEAR BAY,2\n1,INLAND,3\n", "y", a), AS_E_INVAL, err,
             "column 'ocean_proximity': line 2: found 'NEAR BAY', and every row has another text");
    ck_fails(refused("a,b\n1,2\n-inf,4\n", "b", a), AS_E_INVAL, err,
             "column 'a': line 3: found '-inf', expected a finite number");
    ck_fails(refused("a,b\n1,2\n3\n", "b", a), AS_E_INVAL, err, "line 3 has 1 cell, expected 2");
    ck_fails(refused("a,b\n1,2\n1e39,4\n", "b", a), AS_E_INVAL, err, "too large for float32");
    ck_fails(refused("a,b\n1,2\n2,\n", "b", a), AS_E_INVAL, err,
             "column 'b', line 3: the cell is empty");
    ck_fails(refused("a,b\n1,2\n2,inf\n", "b", a), AS_E_INVAL, err,
             "column 'b', line 3: found 'inf'");
    ck_fails(refused("a,b\n1,2\n2,x\n", "b", a), AS_E_INVAL, err, "column 'b', line 3: found 'x'");
    ck_fails(refused("a,b\n1,x\n2,y\n", "b", DATASET_REGRESSION), AS_E_INVAL, err,
             "column 'b', line 2: found 'x', expected a number");
    ck_fails(refused("a,b\n1,5\n2,5\n", "b", a), AS_E_INVAL, err, "one class only, '5'");
    ck_fails(refused("a,b\n1,5\n", "b", a), AS_E_INVAL, err, "1 row of data");
    ck_fails(refused("a,b\n", "b", a), AS_E_INVAL, err, "0 rows of data");
    ck_fails(refused("b\n1\n2\n", "b", a), AS_E_INVAL, err, "no feature");
    ck_fails(refused("", "b", a), AS_E_INVAL, err, "empty");
}
END_TEST

START_TEST(class_limits)
{
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "a,y\n");
    for (size_t i = 0; i <= DATASET_MAX_CLASSES; i++)
        str_printf(&b, "1,c%zu\n", i);
    ck_fails(refused(b.s, "y", DATASET_TASK_AUTO), AS_E_TOO_LARGE, err, "more than 4096 classes");
    str_clear(&b);
    str_puts(&b, "a,y\n1,");
    for (size_t i = 0; i <= DATASET_MAX_CLASS_NAME; i++)
        str_putc(&b, 'x');
    str_puts(&b, "\n1,y\n");
    ck_fails(refused(b.s, "y", DATASET_TASK_AUTO), AS_E_INVAL, err, "line 2: a class name of 257");
    str_clear(&b);
    str_puts(&b, "a,y\n1,0.");
    for (size_t i = 0; i <= DATASET_MAX_CLASS_NAME; i++)
        str_putc(&b, '3');
    str_puts(&b, "\n1,2\n"); /* no name, but a number with many digits */
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect(b.s, "y", DATASET_TASK_AUTO, &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    dataset_info_done(&info);
    ck_ok(inspect(b.s, "y", DATASET_REGRESSION, &info), err);
}
END_TEST

START_TEST(file_must_match)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    struct dataset d = {0};
    struct dataset_paths paths = {.table = csv_path};
    ck_ok(inspect("a,y\n1,x\n2,y\n3,x\n", "y", DATASET_TASK_AUTO, &info), err);
    ck_ok(file_replace(csv_path, "a,y\n1,x\n2,y\n", 12, 0644, &err), err);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err, "2 rows, the data set says 3");
    ck_ok(file_replace(csv_path, "a,y\n1,x\n2,y\n2,y\n2,y\n", 20, 0644, &err), err);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err, "more than the 3 rows");
    ck_ok(file_replace(csv_path, "a,y\n1,x\n2,z\n3,x\n", 16, 0644, &err), err);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err,
             "column 'y', line 3: found 'z', which is none of the 2 classes");
    ck_ok(file_replace(csv_path, "a,b,y\n1,1,x\n", 12, 0644, &err), err);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err, "2 features");
    ck_assert_int_eq(unlink(csv_path), 0);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_NOT_FOUND, err, "t.csv");
    paths.features = "x";
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err, "expected one, the table");
    ck_assert_ptr_null(d.x);
}
END_TEST

/* Numbers, one missing; categories, one rare and one missing. */
#define MIXED "age,job,y\n1,cook,a\n?,cook,b\n3, clerk ,a\nna,clerk,b\n5,king,a\n6,,b\n7,null,a\n"

START_TEST(missing_and_categories)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    ck_ok(inspect(MIXED, "y", DATASET_TASK_AUTO, &info), err);
    ck_assert_int_eq(info.input, DATASET_TABLE);
    const struct dataset_column *age = &info.columns[0], *job = &info.columns[1];
    ck_assert(!age->categorical);
    ck_assert_uint_eq(age->n_missing, 2);
    ck_assert(job->categorical);
    ck_assert_uint_eq(job->n_missing, 2);
    ck_assert_uint_eq(job->n_other, 1); /* king */
    ck_assert_uint_eq(job->n_values, 2);
    ck_assert_str_eq(job->values[0], "clerk");
    ck_assert_str_eq(job->values[1], "cook");
    ck_assert_uint_eq(dataset_numeric_inputs(&info), 2);
    ck_assert_uint_eq(dataset_category_slots(&info), 4);
    ck_assert_uint_eq(dataset_categorical_columns(&info), 1);
    ck_assert_uint_eq(dataset_inputs(&info), 6);
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    static const float want[] = {1, 1, NAN, 1, 3, 0, NAN, 0, 5, 2, 6, 3, 7, 3};
    for (size_t i = 0; i < 14; i++)
        ck_assert(isnan(want[i]) ? isnan(d.x[i]) : d.x[i] == want[i]);
}
END_TEST

START_TEST(columns_must_match)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    struct dataset d = {0};
    struct dataset_paths paths = {.table = csv_path};
    const char *changed = "a,b,y\n1,x,p\n,x,q\n3,z,p\n4,z,q\n";
    ck_ok(inspect("a,b,y\n1,x,p\n2,x,q\n3,z,p\n4,z,q\n", "y", DATASET_TASK_AUTO, &info), err);
    ck_ok(file_replace(csv_path, changed, strlen(changed), 0644, &err), err);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err,
             "column 'a' has 1 missing values, the data set says 0");
    changed = "a,b,y\n1,x,p\nu,x,q\n3,z,p\n4,z,q\n";
    ck_ok(file_replace(csv_path, changed, strlen(changed), 0644, &err), err);
    ck_fails(dataset_load(&paths, &info, &d, &err), AS_E_INVAL, err,
             "column 'a', line 3: found 'u', expected a number");
}
END_TEST

START_TEST(category_limits)
{
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "a,y\n");
    for (size_t i = 0; i <= 2 * DATASET_MAX_CATEGORIES; i++)
        str_printf(&b, "c%zu,%zu\n", i / 2 * 2, i % 2);
    ck_fails(refused(b.s, "y", DATASET_TASK_AUTO), AS_E_TOO_LARGE, err,
             "column 'a': its cells are text, such as 'c0' in line 2, and there are more "
             "than 1024 different ones");
    str_clear(&b);
    for (size_t i = 0; i <= DATASET_MAX_COLUMNS; i++)
        str_printf(&b, "f%zu,", i);
    str_puts(&b, "y\n");
    for (size_t row = 0; row < 2; row++) {
        for (size_t i = 0; i <= DATASET_MAX_COLUMNS; i++)
            str_puts(&b, i == 7 && row ? "NA," : "1,");
        str_printf(&b, "%zu\n", row);
    }
    ck_fails(refused(b.s, "y", DATASET_TASK_AUTO), AS_E_TOO_LARGE, err,
             "column 'f7' has missing values, and the table has 4098 columns");
}
END_TEST

START_TEST(several_targets)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    const char *table = "a,u,v\n1,10,0\n2,20,1\n3,30,0\n";
    ck_ok(inspect(table, "v,u", DATASET_TASK_AUTO, &info), err);
    ck_assert_int_eq(info.task, DATASET_REGRESSION);
    ck_assert_uint_eq(info.n_outputs, 2);
    ck_assert_uint_eq(info.n_features, 1);
    ck_assert_str_eq(info.target, "v,u");
    AS_AUTO(dataset_done) struct dataset d = load(&info);
    ck_assert_mem_eq(d.targets, ((float[]){0, 10, 1, 20, 0, 30}), 6 * sizeof(float));
    ck_fails(refused(table, "v,u", DATASET_CLASSIFICATION), AS_E_INVAL, err, "2 targets");
    ck_fails(refused(table, "v,v", DATASET_TASK_AUTO), AS_E_INVAL, err, "twice");
    ck_fails(refused(table, "v,w", DATASET_TASK_AUTO), AS_E_INVAL, err, "'w'");
    dataset_info_done(&info);
    ck_fails(refused("a,b,a\n1,2,x\n2,3,y\n", "-1", DATASET_TASK_AUTO), AS_E_INVAL, err,
             "columns 1 and 3 have one name, 'a'"); /* a model could not tell them apart */
    ck_ok(inspect("a,\"u,v\"\n1,1.5\n2,2.5\n", "u,v", DATASET_TASK_AUTO, &info), err);
    ck_assert_uint_eq(info.n_outputs, 1); /* one column of that name */
}
END_TEST

START_TEST(json_round_trip)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0}, back = {0};
    ck_ok(inspect(MIXED, "y", DATASET_TASK_AUTO, &info), err);
    JSON_AUTO j = dataset_info_to_json(&info);
    ck_assert_int_eq(json_object_set_new(j, "sha256", json_string("more of the API")), 0);
    ck_ok(dataset_info_from_json(j, "/dataset", &back, &err), err);
    ck_assert_uint_eq(back.n_rows, 7);
    ck_assert_str_eq(back.target, "y");
    ck_assert_str_eq(back.classes[1], "b");
    JSON_AUTO again = dataset_info_to_json(&back);
    json_object_del(j, "sha256");
    ck_assert(json_equal(j, again));
    AS_AUTO(dataset_done) struct dataset d = load(&back);
    ck_assert_int_eq(d.labels[1], 1);
    ck_assert_float_eq(d.x[1], 1);
}
END_TEST

static as_status decode(const char *text)
{
    JSON_AUTO j = NULL;
    struct dataset_info info = {0};
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    as_status st = dataset_info_from_json(j, "/dataset", &info, &err);
    dataset_info_done(&info);
    return st;
}

START_TEST(bad_json)
{
#define HEAD "{\"format\":\"csv\",\"task\":\"classification\",\"rows\":9,\"features\":3,"
    ck_fails(decode("[]"), AS_E_INVAL, err, "/dataset");
    ck_fails(decode("{\"format\":\"xml\"}"), AS_E_INVAL, err, "/dataset/format: found \"xml\"");
    ck_fails(decode("{\"format\":\"csv\",\"task\":\"auto\"}"), AS_E_INVAL, err, "/dataset/task");
    ck_fails(decode(HEAD "\"outputs\":2}"), AS_E_INVAL, err, "/dataset/classes: found 0");
    ck_fails(decode(HEAD "\"outputs\":2,\"classes\":[\"a\",1]}"), AS_E_INVAL, err,
             "/dataset/classes/1: found a whole number");
    ck_fails(decode(HEAD "\"outputs\":2,\"classes\":[\"b\",\"a\"]}"), AS_E_INVAL, err, "ascending");
    ck_fails(decode(HEAD "\"outputs\":2,\"classes\":[\"10\",\"9\"]}"), AS_E_INVAL, err,
             "ascending");
    ck_fails(decode(HEAD "\"outputs\":2,\"classes\":[\"a\",\"b\"],\"target\":[]}"), AS_E_INVAL, err,
             "/dataset/target");
    ck_ok(decode(HEAD "\"outputs\":2,\"classes\":[\"a\",\"b\"],\"target\":-1}"), err);
    ck_fails(decode("{\"format\":\"csv\",\"task\":\"regression\",\"rows\":9,\"features\":3,"
                    "\"outputs\":257}"),
             AS_E_INVAL, err, "at most 256 for regression");
#define NUMBERS "{\"format\":\"npy\",\"task\":\"regression\",\"rows\":9,\"outputs\":1,"
    ck_ok(decode(NUMBERS "\"features\":6,\"input\":\"image\",\"image\":{\"height\":1,"
                         "\"width\":2,\"channels\":3}}"),
          err);
    ck_fails(decode(NUMBERS "\"features\":6,\"input\":\"image\",\"image\":{\"height\":1,"
                            "\"width\":2,\"channels\":2}}"),
             AS_E_INVAL, err, "/dataset/image: found 1 x 2 x 2, expected the product 6");
    ck_fails(decode(NUMBERS "\"features\":6,\"input\":\"image\"}"), AS_E_INVAL, err,
             "/dataset/image");
    ck_fails(decode(NUMBERS "\"features\":1,\"input\":\"tokens\"}"), AS_E_INVAL, err,
             "/dataset/input: found tokens, which does not go with regression");
    ck_fails(decode(NUMBERS "\"features\":2,\"columns\":[]}"), AS_E_INVAL, err,
             "/dataset/columns: found 0");
    ck_fails(decode(NUMBERS "\"features\":1,\"columns\":[{\"name\":\"a\",\"kind\":\"x\"}]}"),
             AS_E_INVAL, err, "/dataset/columns/0/kind");
    ck_fails(decode(NUMBERS "\"features\":1,\"columns\":[{\"name\":\"a\",\"kind\":"
                            "\"categorical\",\"values\":[\"b\",\"a\"]}]}"),
             AS_E_INVAL, err, "/dataset/columns/0/values: expected distinct names in ascending");
#define EXPECTED "\"expected\":{\"sha256\":\"aa\",\"rows\":8,\"features\":3}}"
    ck_ok(decode(NUMBERS "\"features\":1,\"sha256\":\"aa\"," EXPECTED), err);
    ck_fails(decode(NUMBERS "\"features\":1,\"sha256\":\"bb\"," EXPECTED), AS_E_INVAL, err,
             "the data set changed under its name: the sweep was made with 8 rows of 3 features "
             "(digest aa), it now has 9 rows of 1 features (digest bb)");
    ck_fails(decode(NUMBERS "\"features\":1,\"options\":{\"rows\":1}}"), AS_E_INVAL, err,
             "/dataset/options/rows");
}
END_TEST

static void put(const char *path, const char *bytes, size_t len)
{
    FILE *f = fopen(path, "wb"); /* not synced: hundreds of times in a test */
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

/* What is loaded from the copy is what was loaded from the file; a copy that is not whole, or of
 * another data set, is made again. */
START_TEST(decoded_copy)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {0}, other = {0};
    AS_AUTO(dataset_done) struct dataset first = {0};
    AS_AUTO(as_freep) char *whole = NULL;
    char copy[80];
    size_t len = 0;
    (void)snprintf(copy, sizeof copy, "%s/copy", dir);
    struct dataset_paths paths = {.table = csv_path, .decoded = copy};
    ck_ok(inspect("a,b,y\n1.5,x,p\n300,x,q\n3,z,p\n4,z,q\n", "y", DATASET_TASK_AUTO, &info), err);
    ck_ok(dataset_load(&paths, &info, &first, &err), err);
    ck_ok(file_read(copy, 4096, &whole, &len, &err), err);
    ck_ok(file_replace(csv_path, "gone", 4, 0644, &err), err);
    AS_AUTO(dataset_done) struct dataset again = {0};
    ck_ok(dataset_load(&paths, &info, &again, &err), err);
    ck_assert_mem_eq(again.x, first.x, 8 * sizeof(float));
    ck_assert_mem_eq(again.labels, first.labels, 4 * sizeof(int32_t));
    struct dataset no = {0};
    for (size_t i = 0; i < len; i++) { /* cut, and each byte damaged */
        put(copy, whole, i);
        ck_assert_int_eq(dataset_load(&paths, &info, &no, &err), AS_E_INVAL);
        bool unused = i >= 82 && i < 88; /* of the header */
        whole[i] ^= 64;
        put(copy, whole, len);
        if (!unused)
            ck_assert_int_eq(dataset_load(&paths, &info, &no, &err), AS_E_INVAL);
        whole[i] ^= 64;
    }
    put(copy, whole, len);
    ck_ok(inspect("a,b,y\n1,x,p\n300,x,q\n3,u,p\n4,u,q\n", "y", DATASET_TASK_AUTO, &other), err);
    AS_AUTO(dataset_done) struct dataset third = {0};
    ck_ok(dataset_load(&paths, &other, &third, &err), err);
    ck_assert_float_eq(third.x[0], 1);
    paths.decoded = "/nowhere/copy"; /* it cannot be written: no matter */
    AS_AUTO(dataset_done) struct dataset fourth = {0};
    ck_ok(dataset_load(&paths, &other, &fourth, &err), err);
}
END_TEST

START_TEST(out_of_memory)
{
    for (size_t n = 1; n < 60; n++) {
        struct dataset_info info = {0};
        struct dataset d = {0};
        struct dataset_paths paths = {.table = csv_path};
        ck_ok(file_replace(csv_path, "a,y\n1,x\n2,y\n3,x\n", 16, 0644, &err), err);
        as_mem_fail_nth(n);
        as_status st =
            dataset_inspect(&paths, DATASET_CSV, "y", DATASET_TASK_AUTO, NULL, &info, &err);
        if (st == AS_OK)
            st = dataset_load(&paths, &info, &d, &err);
        as_mem_fail_nth(0);
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        dataset_done(&d);
        dataset_info_done(&info);
    }
}
END_TEST

START_TEST(digits)
{
    AS_AUTO(str_done) struct str path = {0};
    str_printf(&path, "%s/examples/digits.csv", source_root());
    AS_AUTO(dataset_info_done) struct dataset_info info = {0};
    struct dataset_paths paths = {.table = str_cstr(&path)};
    ck_ok(dataset_inspect(&paths, DATASET_CSV, "-1", DATASET_TASK_AUTO, NULL, &info, &err), err);
    ck_assert_uint_eq(info.n_rows, 1797);
    ck_assert_uint_eq(info.n_features, 64);
    ck_assert_uint_eq(info.n_classes, 10);
    AS_AUTO(dataset_done) struct dataset d = {0};
    ck_ok(dataset_load(&paths, &info, &d, &err), err);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("dataset");
    TCase *t = tcase_create("dataset");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, text_classes);
    tcase_add_test(t, target_makes_the_header);
    tcase_add_test(t, no_target);
    tcase_add_test(t, whole_classes_in_numeric_order);
    tcase_add_test(t, whole_classes_past_doubles);
    tcase_add_test(t, numbers_are_regression);
    tcase_add_test(t, bad_tables);
    tcase_add_test(t, class_limits);
    tcase_add_test(t, file_must_match);
    tcase_add_test(t, missing_and_categories);
    tcase_add_test(t, columns_must_match);
    tcase_add_test(t, category_limits);
    tcase_add_test(t, several_targets);
    tcase_add_test(t, json_round_trip);
    tcase_add_test(t, bad_json);
    tcase_add_test(t, decoded_copy);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, digits);
    suite_add_tcase(s, t);
    return s;
}
