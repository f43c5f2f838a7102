/* Two readers go over the file side by side: csv.h finds where records begin and what the column
 * says, and lines are copied as they are, so both parts keep the dialect of the table, its
 * quotes too. */
#include "cli/files/test_cut.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/temp_file.h"
#include "cli/files/line_copy.h"
#include "data/formats/csv.h"

enum part { TRAIN, TEST, BOTH };

struct cut {
    struct line_copy lines;
    FILE *out[2];
    size_t column;
};

static void cut_done(struct cut *c)
{
    for (int k = 0; k < 2; k++)
        if (c->out[k])
            (void)fclose(c->out[k]);
    line_copy_done(&c->lines);
}

static as_status open_files(struct cut *c, const char *path, int train_fd, int test_fd,
                            struct as_err *err)
{
    as_status st = line_copy_open(&c->lines, path, err);
    if (st != AS_OK)
        return st;
    c->out[TRAIN] = line_copy_stream(train_fd);
    c->out[TEST] = line_copy_stream(test_fd);
    return c->out[TRAIN] && c->out[TEST] ? AS_OK : temp_file_fail(err);
}

/* Copy the lines before line `end` (0: all) to a part. */
static as_status copy_lines(struct cut *c, size_t end, enum part part, struct as_err *err)
{
    return part == BOTH ? line_copy_until(&c->lines, end, c->out, 2, err)
                        : line_copy_until(&c->lines, end, &c->out[part], 1, err);
}

static bool is_one_of(const char *const *words, const char *s, size_t len)
{
    for (; *words; words++)
        if (strlen(*words) == len && strncasecmp(*words, s, len) == 0)
            return true;
    return false;
}

static as_status part_of(const struct cut *c, const struct csv_row *row, const char *column,
                         enum part *ret, struct as_err *err)
{
    static const char *const test[] = {"1", "true", "t", "yes", "y", "test", "testing", NULL};
    static const char *const train[] = {"0",     "false",    "f",        "no",      "n",
                                        "train", "training", "val",      "valid",   "validation",
                                        "dev",   "held-out", "held_out", "holdout", NULL};
    const char *s = row->cells[c->column].s;
    size_t len = row->cells[c->column].len;
    for (; len && (*s == ' ' || *s == '\t'); s++)
        len--;
    while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
        len--;
    *ret = is_one_of(test, s, len) ? TEST : TRAIN;
    if (*ret == TEST || is_one_of(train, s, len))
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "%.120s: column '%.60s', line %zu: found '%.*s', expected test or train",
                   source_path(c->lines.in), column, row->line, len < 40 ? (int)len : 40, s);
}

static as_status find_column(struct cut *c, const struct csv *csv, const char *column,
                             struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    for (size_t i = 0; i < csv_columns(csv); i++) {
        if (as_streq(csv_column_name(csv, i), column)) {
            c->column = i;
            return AS_OK;
        }
        if (names.len < 100)
            str_printf(&names, "%s%.40s", i ? ", " : "", csv_column_name(csv, i));
    }
    return as_fail(err, AS_E_INVAL, "%.120s: there is no column '%.60s'; the columns are: %s%s",
                   source_path(c->lines.in), column, str_cstr(&names),
                   names.len >= 100 ? ", …" : "");
}

static as_status cut_rows(struct cut *c, struct csv *csv, const char *column, struct test_cut *ret,
                          struct as_err *err)
{
    struct csv_row row;
    enum part part = BOTH; /* of the lines before the row */
    as_status st;
    while ((st = csv_next(csv, &row, err)) == AS_OK) {
        st = copy_lines(c, row.line, part, err);
        if (st == AS_OK)
            st = part_of(c, &row, column, &part, err);
        if (st != AS_OK)
            return st;
        *(part == TEST ? &ret->n_test : &ret->n_train) += 1;
    }
    if (st != AS_E_EXHAUSTED)
        return as_err_prefix(err, st, "%.120s", source_path(c->lines.in));
    st = copy_lines(c, 0, part, err);
    if (st == AS_OK && (ret->n_test == 0 || ret->n_train == 0))
        return as_fail(err, AS_E_INVAL, "%.120s: column '%.60s' makes %zu test rows of %zu",
                       source_path(c->lines.in), column, ret->n_test, ret->n_test + ret->n_train);
    return st;
}

as_status test_cut_file(const char *path, const struct csv_dialect *dialect, const char *column,
                        int train_fd, int test_fd, struct test_cut *ret, struct as_err *err)
{
    AS_AUTO(cut_done) struct cut c = {0};
    AS_AUTO(csv_freep) struct csv *csv = NULL;
    struct test_cut rows = {0};
    as_status st = open_files(&c, path, train_fd, test_fd, err);
    if (st == AS_OK)
        st = csv_open_as(path, dialect, CSV_HEADER_AUTO, &csv, err);
    if (st == AS_OK)
        st = find_column(&c, csv, column, err);
    if (st == AS_OK)
        st = cut_rows(&c, csv, column, &rows, err);
    if (st != AS_OK)
        return st;
    if (fflush(c.out[TRAIN]) != 0 || fflush(c.out[TEST]) != 0)
        return temp_file_fail(err);
    *ret = rows;
    return AS_OK;
}
