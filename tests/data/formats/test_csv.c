/* CSV: quotes and the byte order mark, headers, numbers, limits, long files, malformed text with
 * line and column, and memory that runs out. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "data/formats/csv.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;

static struct csv *open_text(const char *text, csv_header header)
{
    struct csv *c = NULL;
    ck_ok(csv_open_bytes(text, strlen(text), header, &c, &err), err);
    return c;
}

START_TEST(plain_table)
{
    AS_AUTO(csv_freep) struct csv *c = open_text("a,b\n1,2\r\n\n-3.5e2,+.25", CSV_HEADER_AUTO);
    struct csv_row row;
    double v;
    ck_assert(csv_has_header(c));
    ck_assert_uint_eq(csv_columns(c), 2);
    ck_assert_str_eq(csv_column_name(c, 1), "b");
    ck_ok(csv_next(c, &row, &err), err);
    ck_assert_uint_eq(row.line, 2);
    ck_ok(csv_number(c, &row, 1, &v, &err), err);
    ck_assert_double_eq(v, 2);
    ck_ok(csv_next(c, &row, &err), err);
    ck_assert_uint_eq(row.line, 4); /* an empty line does not count as a row, but as a line */
    ck_ok(csv_number(c, &row, 0, &v, &err), err);
    ck_assert_double_eq(v, -350);
    ck_ok(csv_number(c, &row, 1, &v, &err), err);
    ck_assert_double_eq(v, 0.25);
    ck_assert_int_eq(csv_next(c, &row, &err), AS_E_EXHAUSTED);
    ck_assert_int_eq(csv_next(c, &row, &err), AS_E_EXHAUSTED);
}
END_TEST

START_TEST(quotes_and_mark)
{
    AS_AUTO(csv_freep)
    struct csv *c = open_text("\xef\xbb\xbf\"a,\"\"x\"\"\",b\r\n\"1\",\"two\nlines\"\r\n2,\"\"\r\n",
                              CSV_HEADER_AUTO);
    struct csv_row row;
    ck_assert_str_eq(csv_column_name(c, 0), "a,\"x\"");
    ck_ok(csv_next(c, &row, &err), err);
    ck_assert_str_eq(row.cells[0].s, "1");
    ck_assert_str_eq(row.cells[1].s, "two\nlines");
    ck_ok(csv_next(c, &row, &err), err);
    ck_assert_uint_eq(row.line, 4);
    ck_assert_str_eq(row.cells[1].s, "");
    ck_assert_uint_eq(row.cells[1].len, 0);
}
END_TEST

START_TEST(header_detection)
{
    static const struct {
        const char *text;
        csv_header asked;
        bool header;
    } cases[] = {
        {"1,2\n3,4\n", CSV_HEADER_AUTO, false},
        {"x,y\n3,4\n", CSV_HEADER_AUTO, true},
        {"1,cat\n3,dog\n", CSV_HEADER_AUTO, false},
        {"len,kind\n3,dog\n", CSV_HEADER_AUTO, true},
        {"x,y\n", CSV_HEADER_AUTO, true},
        {"nan,1\n2,3\n", CSV_HEADER_AUTO, false},
        {",1\n2,3\n", CSV_HEADER_AUTO, false},
        {"1,2\n3,4\n", CSV_HEADER_YES, true},
        {"x,y\n3,4\n", CSV_HEADER_NO, false},
        {"k,1,2,3,4\na,5,2,2,2\n", CSV_HEADER_AUTO, true},
        {"0,1,2,3\n.1,.2,.3,.4\n", CSV_HEADER_AUTO, true},
        {"1,2,3,4\n1,2,3,4\n", CSV_HEADER_AUTO, false},
        {"1,2,3\n.5,2,2\n", CSV_HEADER_AUTO, false},
        {"2,3,4,5\n.5,2,2,2\n", CSV_HEADER_AUTO, false},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(csv_freep) struct csv *c = open_text(cases[i].text, cases[i].asked);
        ck_assert_msg(csv_has_header(c) == cases[i].header, "case %zu", i);
        if (!cases[i].header)
            ck_assert_str_eq(csv_column_name(c, 1), "1");
    }
}
END_TEST

/* Read to the end; the first failure. */
static as_status read_all(const char *text)
{
    AS_AUTO(csv_freep) struct csv *c = NULL;
    struct csv_row row;
    as_status st = csv_open_bytes(text, strlen(text), CSV_HEADER_AUTO, &c, &err);
    while (st == AS_OK)
        st = csv_next(c, &row, &err);
    return st;
}

START_TEST(malformed)
{
    ck_fails(read_all(""), AS_E_INVAL, err, "empty");
    ck_fails(read_all("\n\r\n"), AS_E_INVAL, err, "empty");
    ck_fails(read_all("a,b\n1,2\n3\n"), AS_E_INVAL, err, "line 3 has 1 cell, expected 2");
    ck_fails(read_all("a,b\n1,2\n3,4,5\n"), AS_E_INVAL, err, "line 3 has 3 cells, expected 2");
    ck_fails(read_all("a,b\n1,\"2\n"), AS_E_INVAL, err, "line 2: a quoted cell is not closed");
    ck_fails(read_all("a,b\n1,\"2\"x\n"), AS_E_INVAL, err, "line 2, cell 2: text follows");
    ck_fails(read_all("a,b\n1,2\"\"\n"), AS_E_INVAL, err, "line 2, cell 2: a quote inside");
    ck_fails(read_all("a;b\n1;2\n"), AS_E_INVAL, err,
             "line 1: found ';', expected ',' between cells");
    ck_fails(read_all("a\tb\n1\t2\n"), AS_E_INVAL, err,
             "line 1: found a tab, expected ',' between cells");
    ck_fails(read_all("a,b\r1,2\r"), AS_E_INVAL, err, "line 1: found a carriage return");
    ck_fails(
        read_all("a,b\n1,\xff\n"), AS_E_INVAL, err,
        "line 2 is not valid UTF-8 text; if the file is in Windows-1252 or Latin-1, convert it: "
        "iconv -f WINDOWS-1252 -t UTF-8");
    struct csv *c = NULL;
    ck_fails(csv_open_bytes("a\0b", 3, CSV_HEADER_AUTO, &c, &err), AS_E_INVAL, err,
             "line 1 has a NUL byte, expected text");
    ck_fails(csv_open("/nonexistent/x.csv", CSV_HEADER_AUTO, &c, &err), AS_E_NOT_FOUND, err,
             "/nonexistent/x.csv");
    ck_assert_ptr_null(c);
}
END_TEST

static as_status first_number(const char *cell)
{
    AS_AUTO(str_done) struct str b = {0};
    str_printf(&b, "price,x\n%s,1\n", cell);
    AS_AUTO(csv_freep) struct csv *c = open_text(str_cstr(&b), CSV_HEADER_YES);
    struct csv_row row;
    double v;
    ck_ok(csv_next(c, &row, &err), err);
    return csv_number(c, &row, 0, &v, &err);
}

START_TEST(not_numbers)
{
    ck_fails(first_number("NEAR BAY"), AS_E_INVAL, err,
             "column 'price', line 2: found 'NEAR BAY', expected a number");
    ck_fails(first_number(""), AS_E_INVAL, err, "column 'price', line 2: the cell is empty");
    ck_fails(first_number("  "), AS_E_INVAL, err, "empty");
    ck_fails(first_number("NaN"), AS_E_INVAL, err, "found 'NaN', expected a finite number");
    ck_fails(first_number("-inf"), AS_E_INVAL, err, "finite");
    ck_fails(first_number("1e999"), AS_E_INVAL, err, "finite");
    ck_fails(first_number("0x10"), AS_E_INVAL, err, "expected a number");
    ck_fails(first_number("1.2.3"), AS_E_INVAL, err, "expected a number");
    ck_fails(first_number("1e"), AS_E_INVAL, err, "expected a number");
    ck_fails(first_number("-"), AS_E_INVAL, err, "expected a number");
    ck_fails(first_number("1 2"), AS_E_INVAL, err, "expected a number");
    ck_assert_int_eq(first_number(" 12 "), AS_OK);
}
END_TEST

START_TEST(numbers_are_exact)
{
    static const char *const texts[] = {"0.1",
                                        "123456789012345",
                                        "1e-5",
                                        "-0.000123",
                                        "3.141592653589793238462",
                                        "1e308",
                                        "5e-324",
                                        "00012.50",
                                        "9007199254740993",
                                        "0.0000000000000000000000000001234"};
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
        double v = 0;
        struct csv_cell cell = {texts[i], strlen(texts[i])};
        ck_assert_int_eq(csv_cell_kind(&cell, &v), CSV_NUMBER);
        ck_assert_msg(v == strtod(texts[i], NULL), "%s", texts[i]);
    }
}
END_TEST

START_TEST(long_file)
{
    /* several buffers long, with records that straddle their borders */
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "n,pad\n");
    for (int i = 0; i < 40000; i++)
        str_printf(&b, "%d,\"%.*s\"\n", i, i % 23, "abcdefghijklmnopqrstuvwxyz");
    char path[] = "/tmp/assay-csv-XXXXXX";
    AS_AUTO(file_closep) int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_ok(file_write_all(fd, b.s, b.len, &err), err);
    AS_AUTO(csv_freep) struct csv *c = NULL;
    ck_ok(csv_open(path, CSV_HEADER_AUTO, &c, &err), err);
    struct csv_row row;
    for (int i = 0; i < 40000; i++) {
        double v;
        ck_ok(csv_next(c, &row, &err), err);
        ck_assert_uint_eq(row.line, (size_t)i + 2);
        ck_ok(csv_number(c, &row, 0, &v, &err), err);
        ck_assert_double_eq(v, i);
        ck_assert_uint_eq(row.cells[1].len, (size_t)i % 23);
    }
    ck_assert_int_eq(csv_next(c, &row, &err), AS_E_EXHAUSTED);
    (void)remove(path);
}
END_TEST

START_TEST(limits)
{
    AS_AUTO(str_done) struct str b = {0};
    for (size_t i = 0; i <= CSV_MAX_COLUMNS; i++)
        str_puts(&b, "1,");
    ck_fails(read_all(str_cstr(&b)), AS_E_TOO_LARGE, err, "cells");
    str_clear(&b);
    str_puts(&b, "a\n");
    for (size_t i = 0; i < CSV_MAX_RECORD / 16 + 1; i++)
        str_puts(&b, "0123456789abcdef");
    ck_fails(read_all(str_cstr(&b)), AS_E_TOO_LARGE, err, "line 2: a record is longer");
}
END_TEST

START_TEST(out_of_memory)
{
    for (size_t n = 1; n < 40; n++) {
        as_mem_fail_nth(n);
        as_status st = read_all("a,b\n1,2\n3,4\n");
        as_mem_fail_nth(0);
        ck_assert(st == AS_E_EXHAUSTED || st == AS_E_NOMEM);
    }
}
END_TEST

START_TEST(line_of_excel)
{
    struct csv *c = NULL;
    const struct csv_dialect open = {0};
    const char *text = "\xef\xbb\xbfsep=;\r\na;b\r\n1;2\r\n", *fine = "sep=;x\n1\n";
    ck_assert_int_eq(csv_open_bytes_as(text, strlen(text), &open, CSV_HEADER_AUTO, &c, &err),
                     AS_E_INVAL);
    ck_assert_str_eq(err.msg, "line 1 is 'sep=;', which Excel writes for itself: delete the line "
                              "(tail -n +2)");
    ck_ok(csv_open_bytes_as(fine, strlen(fine), &open, CSV_HEADER_AUTO, &c, &err), err);
    csv_free(c);
}
END_TEST

static struct csv *open_as(const char *text, const struct csv_dialect *d)
{
    struct csv *c = NULL;
    ck_ok(csv_open_bytes_as(text, strlen(text), d, CSV_HEADER_AUTO, &c, &err), err);
    return c;
}

/* What the first records show, and the number of columns that follows. */
START_TEST(dialect_is_found)
{
    static const struct {
        const char *text;
        char separator, decimal;
        size_t columns;
    } cases[] = {
        {"a,b\n1,2\n", ',', '.', 2},
        {"a\tb\tc\n1\t2\t3\n", '\t', '.', 3},
        {"a;b\n1;2\n", ';', '.', 2},
        {"a|b\n1|2\n", '|', '.', 2},
        {"a;b\n1,5;2,25\n", ';', ',', 2},
        {"1,5;2,25\n3,5;4,25\n", ';', ',', 2}, /* a comma cuts evenly, too, but into text */
        {"a;b\n1,500;2,250\n", ';', '.', 2},   /* thousands */
        {"a;b\n1,500;-0,250\n", ';', ',', 2},  /* no thousands begin with 0 */
        {"a;b\n1,500;1234,250\n", ';', ',', 2},
        {"a;b\n1,500;2,250e1\n", ';', ',', 2},
        {"a;b\n1,5;2.5\n", ';', '.', 2},   /* both signs */
        {"a;b\n1,5;2.500\n", ';', ',', 2}, /* a point between thousands */
        {"a;b\n1,5;1.234,25\n", ';', ',', 2},
        {"a;b\n1,500;2.500\n", ';', '.', 2},  /* nothing tells */
        {"a,b\nx;y,2\nu;v,3\n", ',', '.', 2}, /* ';' is in every row, but not in the header */
        {"a,b\n1;2,3;4\n5;6,7;8\n", ',', '.', 2},
        {"a;b\n\"x;y\";2\n\"u,v\";3\n", ';', '.', 2},
        {"a,b\n\"x\ny,z\",2\n", ',', '.', 2},
        {"\xef\xbb\xbf"
         "a\tb\r\n1,5\t2\r\n",
         '\t', '.', 2}, /* a comma means thousands or not */
        {"alone\n1\n2\n", ',', '.', 1},
        {"a;b\n1;2\n3\n", ';', '.', 2}, /* ragged: still ';' */
        {"a b,c\n1\n", ',', '.', 2},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        const struct csv_dialect open = {0};
        AS_AUTO(csv_freep) struct csv *c = open_as(cases[i].text, &open);
        struct csv_dialect d = csv_dialect_of(c);
        ck_assert_msg(d.separator == cases[i].separator && d.decimal == cases[i].decimal &&
                          csv_columns(c) == cases[i].columns,
                      "case %zu: '%c' '%c' %zu", i, d.separator, d.decimal, csv_columns(c));
    }
}
END_TEST

START_TEST(decimal_commas)
{
    static const char *const cells[][2] = {
        {"1,5", "1.5"},        {"-,5", "-.5"},       {"+3,", "+3."},
        {"2,5e-3", "2.5e-3"},  {" 1,5 ", " 1.5 "},   {"1,2,3", "1,2,3"},
        {"1.234,5", "1234.5"}, {"a,b", "a,b"},       {",", ","},
        {"1,5e", "1,5e"},      {"1,5 kg", "1,5 kg"}, {"", ""},
        {"-1.234", "-1234"},   {"1.23", "1.23"},     {"0.234", "0.234"},
        {"1 234", "1234"},     {"5 %", "5 %"},       {"04.06.2015", "04.06.2015"},
    };
    const struct csv_dialect d = {.separator = ';', .decimal = ','};
    for (size_t i = 0; i < AS_ARRAY_LEN(cells); i++) {
        char text[64];
        struct csv_row row;
        (void)snprintf(text, sizeof text, "x;y\n%s;1\n", cells[i][0]);
        AS_AUTO(csv_freep) struct csv *c = open_as(text, &d);
        ck_ok(csv_next(c, &row, &err), err);
        ck_assert_str_eq(row.cells[0].s, cells[i][1]);
        ck_assert_uint_eq(row.cells[0].len, strlen(cells[i][1]));
    }
}
END_TEST

/* Comments are skipped wherever a record could begin; line numbers are those of the file. */
START_TEST(comments)
{
    AS_AUTO(str_done) struct str b = {0};
    const struct csv_dialect d = {.comment = '#'};
    struct csv_row row;
    str_puts(&b, "# made by \"hand\n#\na;b\n#x\n1;\"#2\n3\"\n#");
    for (size_t i = 0; i < 300000; i++) /* longer than the buffer */
        str_puts(&b, "ab,\"");
    str_puts(&b, "\n4;#5\n# the end");
    AS_AUTO(csv_freep) struct csv *c = open_as(b.s, &d);
    ck_assert_uint_eq(csv_columns(c), 2);
    ck_ok(csv_next(c, &row, &err), err);
    ck_assert_uint_eq(row.line, 5);
    ck_assert_str_eq(row.cells[1].s, "#2\n3");
    ck_ok(csv_next(c, &row, &err), err);
    ck_assert_uint_eq(row.line, 8);
    ck_assert_str_eq(row.cells[1].s, "#5");
    ck_assert_int_eq(csv_next(c, &row, &err), AS_E_EXHAUSTED);
    AS_AUTO(csv_freep) struct csv *none = open_as("a,b\n#1,2\n", &(struct csv_dialect){0});
    ck_ok(csv_next(none, &row, &err), err);
    ck_assert_str_eq(row.cells[0].s, "#1");
}
END_TEST

/* A packed table reads as the plain one, from files; damage is named with its line. */
START_TEST(gzip)
{
    char dir[TEMP_FOLDER_SIZE], path[128];
    struct csv *c = NULL;
    struct csv_row row;
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/t.csv.gz", dir);
    gzFile z = gzopen(path, "wb");
    ck_assert_ptr_nonnull(z);
    ck_assert_int_gt(gzputs(z, "\xef\xbb\xbf"
                               "a\tb\n"),
                     0);
    for (int i = 0; i < 200000; i++)
        ck_assert_int_gt(gzprintf(z, "%d\t%d\n", i, i * 7919 % 100003), 0);
    ck_assert_int_eq(gzclose(z), Z_OK);
    ck_ok(csv_open_as(path, &(struct csv_dialect){0}, CSV_HEADER_AUTO, &c, &err), err);
    ck_assert_str_eq(csv_column_name(c, 0), "a");
    size_t n = 0;
    for (; csv_next(c, &row, &err) == AS_OK; n++)
        ck_assert_uint_eq(row.line, n + 2);
    ck_assert_uint_eq(n, 200000);
    csv_free(c);
    ck_assert_int_eq(truncate(path, 400000), 0);
    ck_ok(csv_open_as(path, &(struct csv_dialect){0}, CSV_HEADER_AUTO, &c, &err), err);
    as_status st;
    while ((st = csv_next(c, &row, &err)) == AS_OK) {
    }
    ck_fails(st, AS_E_INVAL, err, "the compressed data is cut short");
    ck_assert_ptr_nonnull(strstr(err.msg, "line "));
    csv_free(c);
    temp_folder_remove(dir);
}
END_TEST

START_TEST(other_dialects_are_refused)
{
    struct csv *c = NULL;
    const struct csv_dialect tabs = {.separator = '\t'}, open = {0};
    ck_fails(csv_open_bytes_as("\xff\xfe"
                               "a\0,\0",
                               6, &open, CSV_HEADER_AUTO, &c, &err),
             AS_E_UNSUPPORTED, err, "UTF-16");
    ck_fails(csv_open_bytes_as("\xfe\xff\0a", 4, &open, CSV_HEADER_AUTO, &c, &err),
             AS_E_UNSUPPORTED, err, "iconv -f UTF-16 -t UTF-8");
    ck_fails(csv_open_bytes_as("a,b\n1,2\n", 8, &tabs, CSV_HEADER_AUTO, &c, &err), AS_E_INVAL, err,
             "line 1: found ',', expected a tab between cells (--separator ,)");
    ck_assert_ptr_null(c);
}
END_TEST

/* People give what they have: the message says what that is. A header may begin with the same
 * letters. */
START_TEST(other_formats_are_named)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *says;
    } cases[] = {
        {"PAR1\x15\x04\n\0\x15", 9, "found a Parquet file, expected a CSV table: with pandas, "},
        {"PK\x03\x04\x14\0\x06\n", 8, "found an Excel workbook or a ZIP archive"},
        {"SQLite format 3\0", 16, "found an SQLite database"},
        {"\x28\xb5\x2f\xfd$", 5,
         "found a file packed with Zstandard, expected a CSV table: unzstd"},
        {"BZh91AY&SY\n", 11, "found a file packed with bzip2"},
        {"<!doctype HTML>\n", 16, "expected a CSV table: was a page downloaded"},
        {"<HTML>\n<body>\n", 14, "found a page of HTML"}};
    struct csv *c = NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        ck_fails(csv_open_bytes(cases[i].bytes, cases[i].len, CSV_HEADER_AUTO, &c, &err),
                 AS_E_UNSUPPORTED, err, cases[i].says);
    ck_assert_int_eq(read_all("PAR1,PAR2\n1,2\n3,4\n"), AS_E_EXHAUSTED); /* to its end */
    ck_assert_int_eq(read_all("ORCHID,PK\nx,2\ny,4\n"), AS_E_EXHAUSTED);
    ck_assert_ptr_null(c);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("csv");
    TCase *t = tcase_create("csv");
    tcase_add_test(t, plain_table);
    tcase_add_test(t, quotes_and_mark);
    tcase_add_test(t, header_detection);
    tcase_add_test(t, malformed);
    tcase_add_test(t, not_numbers);
    tcase_add_test(t, numbers_are_exact);
    tcase_add_test(t, long_file);
    tcase_add_test(t, limits);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, line_of_excel);
    tcase_add_test(t, dialect_is_found);
    tcase_add_test(t, decimal_commas);
    tcase_add_test(t, comments);
    tcase_add_test(t, gzip);
    tcase_add_test(t, other_dialects_are_refused);
    tcase_add_test(t, other_formats_are_named);
    suite_add_tcase(s, t);
    return s;
}
