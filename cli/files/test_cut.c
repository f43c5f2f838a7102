/* Two readers go over the file side by side: csv.h finds where records begin and what the column
 * says, and lines are copied as they are, so both parts keep the dialect of the table, its
 * quotes too. */
#include "cli/files/test_cut.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/formats/csv.h"

enum part { TRAIN, TEST, BOTH };

struct cut {
    const char *path;
    FILE *in, *out[2];
    char *line; /* of getline() */
    size_t cap, line_no;
    size_t column;
};

static void cut_done(struct cut *c)
{
    for (int k = 0; k < 2; k++)
        if (c->out[k])
            (void)fclose(c->out[k]);
    if (c->in)
        (void)fclose(c->in);
    free(c->line);
}

static FILE *open_copy(int fd)
{
    int own = dup(fd);
    FILE *f = own < 0 ? NULL : fdopen(own, "w");
    if (!f && own >= 0)
        (void)close(own);
    return f;
}

static as_status open_files(struct cut *c, int train_fd, int test_fd, struct as_err *err)
{
    unsigned char magic[2] = {0};
    c->in = fopen(c->path, "re");
    if (!c->in)
        return as_fail(err, AS_E_IO, "%.200s cannot be read", c->path);
    if (fread(magic, 1, 2, c->in) == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "%.200s is packed with gzip: unpack it, so that it can be cut", c->path);
    rewind(c->in);
    c->out[TRAIN] = open_copy(train_fd);
    c->out[TEST] = open_copy(test_fd);
    return c->out[TRAIN] && c->out[TEST]
               ? AS_OK
               : as_fail(err, AS_E_IO, "a temporary file cannot be written");
}

/* Copy the lines before line `end` (0: all) to a part. */
static as_status copy_lines(struct cut *c, size_t end, enum part part, struct as_err *err)
{
    while (end == 0 || c->line_no + 1 < end) {
        ssize_t n = getline(&c->line, &c->cap, c->in);
        if (n < 0)
            break;
        c->line_no++;
        for (int k = 0; k < 2; k++)
            if ((part == BOTH || (int)part == k) &&
                fwrite(c->line, 1, (size_t)n, c->out[k]) != (size_t)n)
                return as_fail(err, AS_E_IO, "a temporary file cannot be written");
    }
    return ferror(c->in) ? as_fail(err, AS_E_IO, "%.200s cannot be read", c->path) : AS_OK;
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
                   c->path, column, row->line, len < 40 ? (int)len : 40, s);
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
                   c->path, column, str_cstr(&names), names.len >= 100 ? ", …" : "");
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
        return as_err_prefix(err, st, "%.120s", c->path);
    st = copy_lines(c, 0, part, err);
    if (st == AS_OK && (ret->n_test == 0 || ret->n_train == 0))
        return as_fail(err, AS_E_INVAL, "%.120s: column '%.60s' makes %zu test rows of %zu",
                       c->path, column, ret->n_test, ret->n_test + ret->n_train);
    return st;
}

as_status test_cut_file(const char *path, const struct csv_dialect *dialect, const char *column,
                        int train_fd, int test_fd, struct test_cut *ret, struct as_err *err)
{
    AS_AUTO(cut_done) struct cut c = {.path = path};
    AS_AUTO(csv_freep) struct csv *csv = NULL;
    struct test_cut rows = {0};
    as_status st = open_files(&c, train_fd, test_fd, err);
    if (st == AS_OK)
        st = csv_open_as(path, dialect, CSV_HEADER_AUTO, &csv, err);
    if (st == AS_OK)
        st = find_column(&c, csv, column, err);
    if (st == AS_OK)
        st = cut_rows(&c, csv, column, &rows, err);
    if (st != AS_OK)
        return st;
    if (fflush(c.out[TRAIN]) != 0 || fflush(c.out[TEST]) != 0)
        return as_fail(err, AS_E_IO, "a temporary file cannot be written");
    *ret = rows;
    return AS_OK;
}
