/* What is said of a table before anything is learned: each case is a file with one defect. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/csv_table.h"
#include "data/remarks.h"
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

/* A table of `rows` rows below `header`; row(i) appends the cells of one. */
static as_status look_at(const char *header, size_t rows, void (*row)(size_t i, struct str *b),
                         struct table_look *ret)
{
    AS_AUTO(str_done) struct str b = {0};
    const struct dataset_options o = {0};
    str_printf(&b, "%s\n", header);
    for (size_t i = 0; i < rows; i++) {
        row(i, &b);
        str_putc(&b, '\n');
    }
    ck_ok(file_replace(path, str_cstr(&b), b.len, 0644, &err), err);
    return table_look(path, "y", DATASET_TASK_AUTO, &o, ret, &err);
}

/* All remarks, a line each. */
static char *remarks_on(const struct table_look *t)
{
    AS_AUTO(as_freep) struct remark *list = NULL;
    struct str b = {0};
    size_t n = 0;
    ck_ok(remarks_of(t, &list, &n, &err), err);
    for (size_t i = 0; i < n; i++) {
        remark_format(t, &list[i], &b);
        str_putc(&b, '\n');
    }
    char *text = str_take(&b);
    return text ? text : as_strdup("");
}

static void says(const char *header, size_t rows, void (*row)(size_t i, struct str *b),
                 const char *expected)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at(header, rows, row, &t), err);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_str_eq(found, expected);
}

/* Pseudo-random, so that no column follows from another. */
static size_t mixed(size_t i, size_t n)
{
    return (size_t)(i * UINT64_C(2654435761) % 4294967291U >> 7) % n;
}

static void put_stray(size_t i, struct str *b)
{
    if (i == 15)
        str_printf(b, "heavy,%zu", mixed(i, 2));
    else
        str_printf(b, "%zu.5,%zu", 20 + mixed(i, 61), mixed(i + 77, 2));
}

START_TEST(stray_text)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("age,y", 5404, put_stray, &t), err);
    ck_assert_int_eq(t.columns[0].kind, LOOK_CATEGORY);
    ck_assert(t.columns[0].stray);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(strstr(found,
                                 "`age`: 1 of 5,404 values is no number ('heavy', line 17); "
                                 "treated as 62 categories; --numeric age makes it missing"));
}
END_TEST

static void put_unlabelled(size_t i, struct str *b)
{
    str_printf(b, "%zu.5,%s", mixed(i, 61), i % 50 == 7 ? (i == 7 ? "" : "NA") : i % 2 ? "1" : "0");
}

START_TEST(rows_without_a_target)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("age,y", 200, put_unlabelled, &t), err);
    ck_assert(t.n_rows == 196 && t.n_unlabelled == 4 && t.n_classes == 2 && t.rarest == 96);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(strstr(found,
                                 "4 of 200 rows lack `y` (the first: line 9), and nothing can "
                                 "be learned from them; --drop-unlabelled leaves them out"));
    t.drop_unlabelled = true;
    AS_AUTO(as_freep) char *left_out = remarks_on(&t);
    ck_assert_ptr_nonnull(
        strstr(left_out, "4 of 200 rows lack `y` (the first: line 9) and are left out"));
}
END_TEST

static void put_words(size_t i, struct str *b)
{
    static const char *const words[] = {"1", "2", "3+"};
    str_printf(b, "%s,%zu", words[mixed(i, 3)], mixed(i + 9, 2));
}

START_TEST(numbers_among_categories_are_no_strays)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("size,y", 300, put_words, &t), err);
    ck_assert(!t.columns[0].stray);
}
END_TEST

/* A tenth and more of the cells are words for a missing value, or texts of many kinds. */
static void put_blanks(size_t i, struct str *b)
{
    static const char *const words[] = {"None", "-", "#N/A", "missing"};
    if (i % 7 == 3)
        str_printf(b, "%s,%s,12 to 14,%s", words[i % 4], words[i % 4], words[i % 4]);
    else
        str_printf(b, "%zu.%03zu,%zu,%zu.%03zu,%s", mixed(i, 61), i, mixed(i, 9), mixed(i, 61), i,
                   i % 2 ? "left" : "right");
    str_printf(b, ",%zu", mixed(i + 77, 2));
}

START_TEST(words_for_missing_values_are_strays)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("x,few,range,side,y", 400, put_blanks, &t), err);
    ck_assert(t.columns[0].stray && t.columns[1].stray && t.columns[2].stray);
    ck_assert(t.columns[3].kind == LOOK_CATEGORY && !t.columns[3].stray);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(strstr(found,
                                 "`few`: 57 of 400 values are no number ('missing', line 5); "
                                 "treated as 13 categories; --numeric few makes them missing"));
    ck_assert_ptr_nonnull(strstr(found, "`range`: 57 of 400 values are no number ('12 to 14', line "
                                        "5); treated as free text; --numeric range makes them"));
}
END_TEST

/* income: thousands; share: of percent; mixed: plain numbers beside percent; two: of two
 * currencies; code: no numbers; size: two different ones; y: dollars. */
static void put_written(size_t i, struct str *b)
{
    size_t n = 1000 + mixed(i, 4001);
    str_printf(b, "\"%zu,%03zu\",%zu%%,%zu%s,%s%zu,A%zu,\"%s,000\",\"$%zu,%03zu.50\"", n / 1000,
               n % 1000, mixed(i, 97), mixed(i, 61), i % 2 ? "%" : "", i % 2 ? "$" : "€", n, n % 7,
               i % 2 ? "1" : "2", n / 1000, i % 1000);
}

START_TEST(numbers_that_are_written_with_signs)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("income,share,mixed,two,code,size,y", 400, put_written, &t), err);
    static const bool written[] = {true, true, false, false, false, true};
    for (size_t i = 0; i < AS_ARRAY_LEN(written); i++)
        ck_assert_msg(t.columns[i].written == written[i], "%s", t.columns[i].name);
    ck_assert(!t.columns[0].identifier);
    ck_assert_str_eq(t.written, "$1,000.50");
    ck_assert_int_eq(t.task, DATASET_REGRESSION);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(
        strstr(found, "`share`: numbers that are written with signs ('0%', line 2); treated as 97 "
                      "categories; --numeric share reads them as numbers"));
    ck_assert_ptr_nonnull(
        strstr(found, "`y`: numbers that are written with signs ('$1,000.50'); treated as "
                      "classes; --numeric y reads them as numbers"));
}
END_TEST

/* a: -999; b: 9999, and words for a missing value; age: 99 is near the others; few: twice. */
static void put_nines(size_t i, struct str *b)
{
    str_printf(b, "%s%zu.%zu,", i % 9 == 4 ? "-99" : "", i % 9 == 4 ? 9 : mixed(i, 7),
               i % 9 == 4 ? 0 : i % 10);
    str_printf(b, "%s,%zu,%s,%zu",
               i % 11 == 5 ? "9999"
               : i % 7     ? "0.5"
               : i % 2     ? "0.25"
                           : "-",
               mixed(i, 100),
               i == 7 || i == 9 ? "-99"
               : i % 2          ? "1"
                                : "3",
               mixed(i + 77, 2));
}

START_TEST(numbers_that_mean_missing)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("a,b,age,few,y", 900, put_nines, &t), err);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(strstr(
        found, "`a`: -999 stands in 100 of 900 values, far from all others (0 to 6.9): if it "
               "means that the value is missing, --missing -999 says so"));
    ck_assert_ptr_null(strstr(found, "`age`"));
    ck_assert_ptr_null(strstr(found, "`few`"));
}
END_TEST

static void put_alike(size_t i, struct str *b)
{
    static const char *const names[] = {"Yes", "no", "yes"};
    str_printf(b, "%zu.5%zu,%s", mixed(i, 61), i, names[i % 3]);
}

START_TEST(classes_that_differ_by_case)
{
    says("x,y", 183, put_alike,
         "`y`: 'Yes' and 'yes' differ by the case of letters alone, and are two of 3 classes\n");
}
END_TEST

static void put_slashed(size_t i, struct str *b)
{
    str_printf(b, "%zu/%zu/20%zu,%zu/%zu,%zu", 1 + i % 12, 1 + i % 28, 10 + i % 7, i % 5, i % 7,
               mixed(i, 2));
}

START_TEST(days_in_no_certain_order)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("since,part,y", 300, put_slashed, &t), err);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(strstr(
        found, "`since`: days whose order is not certain ('1/1/2010', line 2), so they are no "
               "dates: write them as 2021-12-31 or 31.12.2021"));
    ck_assert_ptr_null(strstr(found, "`part`"));
}
END_TEST

static struct missing_code ends_of(const double *v, size_t n)
{
    struct missing_code m = {0};
    for (size_t i = 0; i < n; i++)
        missing_code_add(&m, v[i]);
    return m;
}

START_TEST(ends_of_numbers)
{
    struct found_code code = {0};
    const double low[] = {1, -999, 2, -999, 999, -999}, high[] = {9999, 3, 9999, 1, 2, 9999};
    const double one[] = {-99, -99, -99, 5}, none[] = {-99, -99, -99};
    struct missing_code m = ends_of(low, AS_ARRAY_LEN(low));
    ck_assert(missing_code_find(&m, &code));
    ck_assert(code.value == -999 && code.n == 3 && code.least == 1 && code.most == 2);
    m = ends_of(high, AS_ARRAY_LEN(high));
    ck_assert(missing_code_find(&m, &code));
    ck_assert(code.value == 9999 && code.n == 3 && code.least == 1 && code.most == 3);
    m = ends_of(one, AS_ARRAY_LEN(one)); /* beside one other value it may be a class */
    ck_assert(!missing_code_find(&m, &code));
    m = ends_of(none, AS_ARRAY_LEN(none));
    ck_assert(!missing_code_find(&m, &code));
    m = (struct missing_code){0};
    ck_assert(!missing_code_find(&m, &code));
}
END_TEST

static void put_unusable(size_t i, struct str *b)
{
    str_printf(b, "%s,%s,", i == 4 ? "1e308" : "2.5", i == 9 ? "-inf" : "3");
    for (int k = 0; k < (i == 6 ? 90 : 1); k++)
        str_printf(b, "t%zu/", i % 40);
    str_printf(b, ",%zu", mixed(i, 2));
}

START_TEST(values_that_are_refused)
{
    says(
        "big,inf,path,y", 200, put_unusable,
        "`big`: line 6: found 1e+308, which is too large for float32, which is refused; --numeric "
        "big makes it missing\n"
        "`inf`: line 11: found '-inf', expected a finite number, which is refused; --numeric inf "
        "makes it missing\n"
        "`path`: a text of more than 256 bytes, which is refused as a category; --text path hashes "
        "the words\n"
        "117 of 200 rows are a copy of an earlier one: where both sides of a split have them, "
        "figures are too good\n");
}
END_TEST

static void put_codes(size_t i, struct str *b)
{
    if (i % 3)
        str_printf(b, "A-%zu", i);
    str_printf(b, ",%zu", mixed(i, 2));
}

/* Inspection refuses a category in which all texts differ, whatever is missing. */
START_TEST(texts_that_differ_where_they_are)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("code,y", 12, put_codes, &t), err);
    ck_assert(t.columns[0].identifier && t.columns[0].n_missing == 4);
}
END_TEST

static void put_identifiers(size_t i, struct str *b)
{
    str_printf(b, "%zu,A-%zu,%zu,%.6f,%zu", 300 - i, i, 7 * i + i * i, (double)mixed(i, 99999) / 7,
               mixed(i + 5, 2));
}

START_TEST(identifiers)
{
    says("number,code,grows,x,y", 300, put_identifiers,
         "`number`: another value in each row, an identifier, which says nothing about new rows; "
         "--drop number leaves it out\n"
         "`code`: another value in each row, an identifier, which says nothing about new rows; "
         "--drop code leaves it out\n");
    says("number,code,customerId,x,y", 19, put_identifiers, /* of numbers too few to tell */
         "`code`: another value in each row, an identifier, which says nothing about new rows; "
         "--drop code leaves it out\n");
}
END_TEST

static void put_empty(size_t i, struct str *b)
{
    str_printf(b, "NA,same,%zu,%zu", mixed(i, 9), mixed(i + 5, 2));
}

START_TEST(empty_and_constant)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("a,b,c,y", 40, put_empty, &t), err);
    ck_assert_int_eq(t.columns[0].kind, LOOK_EMPTY);
    ck_assert(t.columns[1].constant && !t.columns[2].constant);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(strstr(found, "`a`: every value is missing; --drop a leaves it out"));
    ck_assert_ptr_nonnull(
        strstr(found, "`b`: one value in all rows, which says nothing; --drop b"));
}
END_TEST

static void put_leak(size_t i, struct str *b)
{
    size_t y = mixed(i, 2);
    str_printf(b, "%s,%zu,%zu,%s", y ? "paid" : "due", mixed(i + 3, 2), mixed(i, 40),
               y ? "yes" : "no");
}

static void put_copy(size_t i, struct str *b)
{
    double y = (double)mixed(i, 99991) / 8;
    str_printf(b, "%.6f,%.3f,%.3f", 3 * y - 7, y + (double)mixed(i + 1, 100), y);
}

START_TEST(columns_that_say_the_target)
{
    AS_AUTO(table_look_done) struct table_look classes = {0}, numbers = {0};
    ck_ok(look_at("state,other,x,y", 400, put_leak, &classes), err);
    ck_assert(classes.columns[0].is_target && !classes.columns[1].is_target);
    ck_ok(look_at("metres,noisy,y", 200, put_copy, &numbers), err);
    ck_assert_int_eq(numbers.task, DATASET_REGRESSION);
    ck_assert(numbers.columns[0].is_target && !numbers.columns[1].is_target);
    AS_AUTO(as_freep) char *found = remarks_on(&classes);
    ck_assert_ptr_nonnull(strstr(found, "`state`: its values say what `y` is"));
}
END_TEST

static void put_copies(size_t i, struct str *b)
{
    str_printf(b, "%zu.25,%s", i % 50, i % 50 == 0 ? "rare" : i % 2 ? "a" : "b");
}

static void put_rare(size_t i, struct str *b)
{
    str_printf(b, "%zu.25,%s", i, i == 7 ? "once" : i % 2 ? "a" : "b");
}

static void put_several_rare(size_t i, struct str *b)
{
    str_printf(b, "%zu.25,%s", i, i == 7 ? "once" : i == 9 ? "only" : i % 2 ? "a" : "b");
}

START_TEST(rows_and_classes)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("x,y", 120, put_copies, &t), err);
    ck_assert_uint_eq(t.n_copies, 70);
    ck_assert_uint_eq(t.n_classes, 3);
    ck_assert_uint_eq(t.rarest, 3);
    ck_assert_str_eq(t.rarest_name, "rare");
    says("x,y", 60, put_rare,
         "`y`: the class 'once' has one row, and cannot be both learned and tested\n");
    says("x,y", 60, put_several_rare,
         "`y`: 2 of 4 classes have one row each (the first: 'once'), and cannot be both learned "
         "and tested\n");
}
END_TEST

static void put_many(size_t i, struct str *b)
{
    str_printf(b, "town %zu,%zu,2024-03-%02zu,one of %zu long words,%zu", i / 2, mixed(i, 50),
               1 + i % 28, i, mixed(i + 8, 2));
}

START_TEST(kinds_and_too_many_categories)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("town,n,day,words,y", 3000, put_many, &t), err);
    static const look_kind kinds[] = {LOOK_CATEGORY, LOOK_NUMBER, LOOK_DATE, LOOK_TEXT};
    for (size_t i = 0; i < AS_ARRAY_LEN(kinds); i++)
        ck_assert_int_eq(t.columns[i].kind, kinds[i]);
    ck_assert_uint_eq(t.columns[0].n_values, 1500);
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_ptr_nonnull(strstr(found, "`town`: more than 1024 different texts, such as 'town 0' "
                                        "(line 2), which are refused as categories; --text town"));
}
END_TEST

/* The last 40 rows are copies. */
static void put_copied(size_t i, struct str *b)
{
    size_t k = i % 5000;
    str_printf(b, "%zu,u%zu,%zu,%zu", 7000 + k, k, mixed(k, 61), mixed(k + 77, 2));
}

START_TEST(identifiers_of_copied_rows)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_ok(look_at("order_id,code,x,y", 5040, put_copied, &t), err);
    ck_assert(t.n_copies == 40 && t.columns[0].identifier && t.columns[1].identifier);
    ck_assert(!t.columns[2].identifier);
}
END_TEST

static void put_constant(size_t i, struct str *b)
{
    str_printf(b, "1,1,1,1,1,%zu.5,%zu", i, mixed(i + 77, 2));
}

/* The options of the remarks are words of a shell, and name these columns alone. */
START_TEST(names_that_are_no_plain_words)
{
    static const char *const names[] = {"a?", "b, [c]", "d*", "it's \\", "", "\"\""};
    says("a?,\"b, [c]\",d*,it's \\,,x,y", 99, put_constant,
         "`a?`: one value in all rows, which says nothing; --drop 'a\\?' leaves it out\n"
         "`b, [c]`: one value in all rows, which says nothing; --drop 'b\\, \\[c]' leaves it out\n"
         "`d*`: one value in all rows, which says nothing; --drop 'd\\*' leaves it out\n"
         "`it's \\`: one value in all rows, which says nothing; --drop 'it'\\''s \\\\' leaves it "
         "out\n"
         "the column without a name: one value in all rows, which says nothing; --drop '\"\"' "
         "leaves "
         "it out\n");
    for (size_t i = 1; i < AS_ARRAY_LEN(names); i++) {
        AS_AUTO(str_done) struct str pattern = {0};
        dataset_name_pattern(names[i], &pattern);
        char *list[] = {*names[i] ? pattern.s : (char *)""};
        const struct dataset_names one = {.name = list, .n = 1};
        for (size_t k = 0; k < AS_ARRAY_LEN(names); k++)
            ck_assert_msg(dataset_names_match(&one, names[k]) == (i == k), "%s and %s", pattern.s,
                          names[k]);
    }
}
END_TEST

static void put_near(size_t i, struct str *b)
{
    str_printf(b, "%zu,%zu,%zu", 1700000000 + mixed(i, 997), 1700000000 + 997 * mixed(i, 997),
               1000000000 + mixed(i + 77, 20000));
}

static void put_one_target(size_t i, struct str *b)
{
    str_printf(b, "%zu,100000000%zu.5", i, i % 7);
}

START_TEST(numbers_that_float32_does_not_tell_apart)
{
    AS_AUTO(table_look_done) struct table_look t = {0}, one = {0};
    ck_ok(look_at("near,far,y", 400, put_near, &t), err);
    ck_assert(look_rounding_matters(&t.columns[0].rounding) && !t.one_value);
    ck_assert(!look_rounding_matters(&t.columns[1].rounding));
    ck_assert(!look_rounding_matters(&t.rounding));
    AS_AUTO(as_freep) char *found = remarks_on(&t);
    ck_assert_msg(strstr(found, "`near`: tables are kept as float32, which rounds its values by up "
                                "to 63, and their standard deviation is 290") == found &&
                      strstr(found, ": subtract a number such as 1700000") != NULL,
                  "%s", found);
    ck_ok(look_at("x,y", 400, put_one_target, &one), err);
    ck_assert(one.one_value && look_rounding_matters(&one.rounding));
}
END_TEST

static void put_two(size_t i, struct str *b)
{
    str_printf(b, "%zu,%zu,%zu", i, i, i % 2);
}

static void put_gap(size_t i, struct str *b)
{
    str_printf(b, "%zu,%s", i, i == 3 ? "" : "a");
}

START_TEST(refused)
{
    AS_AUTO(table_look_done) struct table_look t = {0};
    ck_assert_int_eq(look_at("a,a,y", 5, put_two, &t), AS_E_INVAL);
    ck_assert_str_eq(err.msg,
                     "line 1: columns 1 and 2 have one name, 'a', by which a model knows a "
                     "column: rename one, or leave both out (drop)");
    ck_assert_int_eq(look_at("a,z", 9, put_gap, &t), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "there is no target column 'y'"));
    ck_assert_int_eq(look_at("a,y", 1, put_gap, &t), AS_E_INVAL);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("table_look");
    TCase *t = tcase_create("table_look");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, stray_text);
    tcase_add_test(t, rows_without_a_target);
    tcase_add_test(t, numbers_among_categories_are_no_strays);
    tcase_add_test(t, words_for_missing_values_are_strays);
    tcase_add_test(t, numbers_that_are_written_with_signs);
    tcase_add_test(t, numbers_that_mean_missing);
    tcase_add_test(t, ends_of_numbers);
    tcase_add_test(t, days_in_no_certain_order);
    tcase_add_test(t, classes_that_differ_by_case);
    tcase_add_test(t, values_that_are_refused);
    tcase_add_test(t, texts_that_differ_where_they_are);
    tcase_add_test(t, identifiers);
    tcase_add_test(t, empty_and_constant);
    tcase_add_test(t, columns_that_say_the_target);
    tcase_add_test(t, rows_and_classes);
    tcase_add_test(t, kinds_and_too_many_categories);
    tcase_add_test(t, identifiers_of_copied_rows);
    tcase_add_test(t, names_that_are_no_plain_words);
    tcase_add_test(t, numbers_that_float32_does_not_tell_apart);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    return s;
}
