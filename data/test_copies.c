/* The table is read through into hashes of its rows, then the test file against them: memory is a
 * hash for each row, and neither file is kept. Cells are compared as texts, because a copy is
 * written as the original is; numbers that are written in two ways differ. */
#include "data/test_copies.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/csv_table.h"
#include "data/value_counts.h"

/* Two files, and the columns of each that are compared, in the same order. */
struct pair {
    struct csv_table of[2];
    size_t *columns[2]; /* [n] */
    size_t n;
    struct value_counts rows; /* of the table */
};

static void pair_done(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        csv_table_done(&p->of[i]);
        free(p->columns[i]);
    }
    value_counts_done(&p->rows);
}

static as_status check_regular(const char *path, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    return file_open_regular(path, &fd, err); /* a pipe would wait for its writer */
}

/* A test file may lack columns that are no inputs, so its lists do not count. It is written as the
 * table is. */
static as_status open_test(struct pair *p, const char *path, const char *target,
                           const struct dataset_options *o, struct as_err *err)
{
    const struct csv_dialect dialect = csv_dialect_of(p->of[0].csv);
    bool named = csv_has_header(p->of[0].csv);
    struct dataset_options form = {.missing = o->missing};
    struct dataset_options like = *o;
    struct dataset_options *used = named ? &form : &like;
    used->separator = dialect.separator;
    used->decimal = dialect.decimal;
    used->comment = dialect.comment;
    return csv_table_open_as(path, target, used, named ? CSV_HEADER_YES : CSV_HEADER_NO, &p->of[1],
                             err);
}

/* The column of the test file for one of the table. */
static as_status find_column(const struct pair *p, size_t column, size_t *ret, struct as_err *err)
{
    const char *name = p->of[0].name[column];
    for (size_t i = 0; i < p->of[1].n_columns; i++)
        if (as_streq(p->of[1].name[i], name)) {
            *ret = i;
            return AS_OK;
        }
    AS_AUTO(str_done) struct str list = {0};
    csv_table_list(&p->of[1], 80, &list);
    return as_fail(err, AS_E_INVAL,
                   "line 1: there is no column '%.60s', which the training part has; the columns "
                   "are: %s",
                   name, str_cstr(&list));
}

static as_status pair_columns(struct pair *p, struct as_err *err)
{
    struct csv_table *a = &p->of[0], *b = &p->of[1];
    for (int i = 0; i < 2; i++)
        if (!(p->columns[i] = as_calloc(a->n_columns, sizeof **p->columns)))
            return as_fail_nomem(err);
    for (size_t i = 0; i < a->n_columns; i++) {
        bool is_target = false;
        for (size_t k = 0; k < a->n_targets; k++)
            is_target |= a->targets[k] == i;
        if (!is_target && a->input[i] == SIZE_MAX)
            continue;
        p->columns[0][p->n] = i;
        as_status st = find_column(p, i, &p->columns[1][p->n], err);
        if (st != AS_OK)
            return st;
        b->numeric[p->columns[1][p->n++]] = a->numeric[i];
    }
    return AS_OK;
}

static uint64_t hash_of(const struct pair *p, int file, const struct csv_row *row)
{
    uint64_t whole = 1;
    for (size_t i = 0; i < p->n; i++) {
        struct column_cell cell = csv_table_cell(&p->of[file], row, p->columns[file][i]);
        whole = rng_mix(whole, value_hash(cell.s, cell.len));
    }
    return whole ? whole : 1;
}

static as_status read_table(struct pair *p, struct as_err *err)
{
    struct csv_row row;
    struct value_count *place = NULL;
    as_status st;
    while ((st = csv_table_next(&p->of[0], &row, err)) == AS_OK)
        if ((st = value_counts_add(&p->rows, hash_of(p, 0, &row), &place, err)) != AS_OK)
            return st;
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

/* A row that is no copy is counted as one of the table from then on, with n 0. */
static as_status read_test(struct pair *p, size_t *ret_rows, size_t *ret_copies, struct as_err *err)
{
    struct csv_row row;
    struct value_count *place = NULL;
    as_status st;
    *ret_rows = *ret_copies = 0;
    while ((st = csv_table_next(&p->of[1], &row, err)) == AS_OK) {
        if ((st = value_counts_add(&p->rows, hash_of(p, 1, &row), &place, err)) != AS_OK)
            return st;
        *ret_copies += --place->n > 0;
        ++*ret_rows;
    }
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

as_status test_copies_count(const char *table, const char *test, const char *target,
                            const struct dataset_options *o, size_t *ret_rows, size_t *ret_copies,
                            struct as_err *err)
{
    AS_AUTO(pair_done) struct pair p = {0};
    size_t rows = 0, copies = 0;
    as_status st = check_regular(table, err);
    if (st == AS_OK)
        st = check_regular(test, err);
    if (st != AS_OK)
        return st; /* it names the file */
    if ((st = csv_table_find(table, target, o, &p.of[0], err)) != AS_OK)
        return as_err_prefix(err, st, "%.160s", table);
    st = open_test(&p, test, target, o, err);
    if (st == AS_OK)
        st = pair_columns(&p, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%.160s", test);
    p.of[0].drop_unlabelled = p.of[1].drop_unlabelled = true;
    if ((st = read_table(&p, err)) != AS_OK)
        return as_err_prefix(err, st, "%.160s", table);
    if ((st = read_test(&p, &rows, &copies, err)) != AS_OK)
        return as_err_prefix(err, st, "%.160s", test);
    *ret_rows = rows;
    *ret_copies = copies;
    return AS_OK;
}
