/* Opening a CSV file as a table.
 *
 * csv.h decides from two records whether there is a header. If the first record does not look like
 * one but names the target, it is one (open_with_header).
 *
 * A pattern of `select`, `drop` or `text` that fits no column is an error: it is a typing error,
 * and a column that was to be dropped would otherwise become an input without a word. */
#include "data/csv_table.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset_alloc.h"
#include "data/target.h"
#include "base/str.h"

void csv_table_done(struct csv_table *t)
{
    csv_free(t->csv);
    free(t->targets);
    free(t->input);
    free(t->name);
    free(t->numeric);
    free(t->feature);
    *t = (struct csv_table){0};
}

static bool pattern_fits(const char *pattern, const char *name)
{
    return strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0;
}

void dataset_name_pattern(const char *name, struct str *b)
{
    str_puts(b, *name ? "" : "\"\"");
    for (const char *c = name; *c; c++)
        str_printf(b, "%s%c", strchr("*?[\"\\,", *c) ? "\\" : "", *c);
}

struct csv_dialect dataset_dialect(const struct dataset_options *o)
{
    return (struct csv_dialect){o->separator ? o->separator : ',', o->comment,
                                o->decimal ? o->decimal : '.'};
}

bool dataset_names_match(const struct dataset_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (pattern_fits(names->name[i], name))
            return true;
    return false;
}

void csv_table_list(const struct csv_table *t, size_t most, struct str *ret)
{
    for (size_t i = 0; i < t->n_columns && ret->len < most; i++)
        str_printf(ret, "%s%.40s", i ? ", " : "", t->name[i]);
    if (ret->len >= most)
        str_puts(ret, ", …");
}

/* Each pattern must stand for a column. */
static as_status check_patterns(const struct csv_table *t, const char *option,
                                const struct dataset_names *names, struct as_err *err)
{
    for (size_t i = 0; i < names->n; i++) {
        size_t c = 0;
        while (c < t->n_columns && !pattern_fits(names->name[i], t->name[c]))
            c++;
        if (c < t->n_columns)
            continue;
        AS_AUTO(str_done) struct str list = {0};
        csv_table_list(t, 120, &list);
        return as_fail(err, AS_E_INVAL, "%s: there is no column '%.60s'; the columns are: %s",
                       option, names->name[i], str_cstr(&list));
    }
    return AS_OK;
}

static as_status check_options(const struct csv_table *t, const struct dataset_options *o,
                               struct as_err *err)
{
    as_status st = check_patterns(t, "select", &o->select, err);
    if (st == AS_OK)
        st = check_patterns(t, "drop", &o->drop, err);
    if (st == AS_OK)
        st = check_patterns(t, "text", &o->text, err);
    if (st == AS_OK)
        st = check_patterns(t, "numeric", &o->numeric, err);
    for (size_t i = 0; st == AS_OK && i < t->n_columns; i++)
        if (dataset_names_match(&o->text, t->name[i]) &&
            dataset_names_match(&o->numeric, t->name[i]))
            st = as_fail(err, AS_E_INVAL, "numeric: column '%.80s' is one of texts, too (text)",
                         t->name[i]);
    for (size_t i = 0; st == AS_OK && i < t->n_targets; i++)
        if (dataset_names_match(&o->drop, t->name[t->targets[i]]))
            st = as_fail(err, AS_E_INVAL, "drop: it names the target '%.80s'",
                         t->name[t->targets[i]]);
    return st;
}

bool csv_table_lacks_target(const struct csv_table *t, const struct csv_row *row)
{
    for (size_t i = 0; i < t->n_targets; i++)
        if (column_cell_of(&row->cells[t->targets[i]]).missing)
            return true;
    return false;
}

as_status csv_table_next(const struct csv_table *t, struct csv_row *ret, struct as_err *err)
{
    as_status st;
    do
        st = csv_next(t->csv, ret, err);
    while (st == AS_OK && t->drop_unlabelled && csv_table_lacks_target(t, ret));
    return st;
}

struct column_cell csv_table_cell(const struct csv_table *t, const struct csv_row *row,
                                  size_t column)
{
    struct column_cell cell = column_cell_of(&row->cells[column]);
    if (t->numeric[column])
        column_cell_as_number(&cell, csv_dialect_of(t->csv).decimal);
    if (t->input[column] != SIZE_MAX)
        column_cell_code(&cell, &t->missing);
    return cell;
}

as_status csv_table_prefix(const struct csv_table *t, const struct csv_row *row, size_t column,
                           as_status st, struct as_err *err)
{
    return as_err_prefix(err, st, "column '%.80s', line %zu", t->name[column], row->line);
}

/* A target such as "$418,665" is that number where the options say that its column has numbers. */
static csv_kind kind_of_target(const struct csv_table *t, const struct csv_cell *cell,
                               size_t column, double *ret)
{
    uint32_t sign;
    csv_kind kind = csv_cell_kind(cell, ret);
    bool written =
        kind == CSV_TEXT && t->numeric[column] &&
        column_written_number(cell->s, cell->len, csv_dialect_of(t->csv).decimal, ret, &sign);
    return written ? CSV_NUMBER : kind;
}

/* It is no number. */
static as_status fail_target(const struct csv_table *t, const struct csv_row *row, size_t column,
                             struct as_err *err)
{
    const struct csv_cell *cell = &row->cells[column];
    uint32_t sign;
    double number;
    as_status st = csv_number(t->csv, row, column, &number, err);
    if (!column_written_number(cell->s, cell->len, csv_dialect_of(t->csv).decimal, &number, &sign))
        return st;
    return as_fail(
        err, AS_E_INVAL,
        "column '%.80s', line %zu: found '%.40s', expected a number; with this column in "
        "`numeric` such cells are numbers",
        t->name[column], row->line, cell->s);
}

as_status csv_table_target(const struct csv_table *t, const struct csv_row *row, size_t column,
                           dataset_task task, struct target_value *ret, struct as_err *err)
{
    const struct csv_cell *cell = &row->cells[column];
    struct target_value v = {.text = cell->s, .len = cell->len};
    csv_kind kind = kind_of_target(t, cell, column, &v.number);
    v.is_number = kind == CSV_NUMBER;
    if (kind == CSV_EMPTY)
        return csv_table_prefix(
            t, row, column,
            as_fail(err, AS_E_INVAL,
                    "the cell is empty, expected a target; drop_unlabelled leaves such rows out"),
            err);
    if (!v.is_number && (task == DATASET_REGRESSION || kind == CSV_NOT_FINITE))
        return fail_target(t, row, column, err);
    if (v.is_number && task != DATASET_CLASSIFICATION) {
        as_status st = target_check_float(v.number, err);
        if (st < 0)
            return csv_table_prefix(t, row, column, st, err);
    }
    for (; *v.text == ' ' || *v.text == '\t'; v.text++)
        v.len--;
    while (v.len && (v.text[v.len - 1] == ' ' || v.text[v.len - 1] == '\t'))
        v.len--;
    *ret = v;
    return AS_OK;
}

/* Is the column an input or a target? */
static bool is_used(const struct csv_table *t, size_t column)
{
    for (size_t i = 0; i < t->n_targets; i++)
        if (t->targets[i] == column)
            return true;
    return t->input[column] != SIZE_MAX;
}

/* A model knows its columns by their names. Sorting finds equal names among 65,537 columns. */
struct named_column {
    const char *name;
    size_t column;
};

static int compare_names(const void *a, const void *b)
{
    const struct named_column *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->column > y->column) - (x->column < y->column);
}

static as_status check_names(const struct csv_table *t, struct as_err *err)
{
    size_t n = 0;
    AS_AUTO(as_freep) struct named_column *used = as_calloc(t->n_columns, sizeof *used);
    if (!used)
        return as_fail_nomem(err);
    for (size_t i = 0; i < t->n_columns; i++)
        if (is_used(t, i))
            used[n++] = (struct named_column){t->name[i], i};
    qsort(used, n, sizeof *used, compare_names);
    for (size_t i = 1; i < n; i++)
        if (as_streq(used[i - 1].name, used[i].name))
            return as_fail(err, AS_E_INVAL,
                           "line 1: columns %zu and %zu have one name, '%.80s', by which a model "
                           "knows a column: rename one, or leave both out (drop)",
                           used[i - 1].column + 1, used[i].column + 1, used[i].name);
    return AS_OK;
}

/* Number the inputs. */
static as_status find_inputs(const struct dataset_options *o, struct csv_table *t,
                             struct as_err *err)
{
    as_status st = check_options(t, o, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < t->n_targets; i++)
        t->input[t->targets[i]] = SIZE_MAX;
    t->n_inputs = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        bool out = t->input[i] == SIZE_MAX || dataset_names_match(&o->drop, t->name[i]) ||
                   (o->select.n && !dataset_names_match(&o->select, t->name[i]));
        t->input[i] = out ? SIZE_MAX : t->n_inputs++;
        t->numeric[i] = dataset_names_match(&o->numeric, t->name[i]);
    }
    t->drop_unlabelled = o->drop_unlabelled;
    t->missing = o->missing;
    if (t->n_inputs == 0 && (o->select.n || o->drop.n))
        return as_fail(err, AS_E_INVAL, "select and drop leave no column that is an input");
    return dataset_check_size(0, t->n_inputs, err);
}

const char *csv_table_target_of(const struct dataset_info *info)
{
    return info->target || info->task != DATASET_CLUSTERING ? info->target : CSV_NO_TARGET;
}

static as_status find_columns(const char *target, const struct dataset_options *o,
                              struct csv_table *t, struct as_err *err)
{
    t->n_columns = csv_columns(t->csv);
    t->name = as_calloc(t->n_columns, sizeof *t->name);
    t->input = as_calloc(t->n_columns, sizeof *t->input);
    t->numeric = as_calloc(t->n_columns, sizeof *t->numeric);
    if (!t->name || !t->input || !t->numeric)
        return as_fail_nomem(err);
    for (size_t i = 0; i < t->n_columns; i++)
        t->name[i] = csv_column_name(t->csv, i);
    as_status st = AS_OK;
    if (!as_streq(target, CSV_NO_TARGET))
        st = target_find_columns(target, t->n_columns, t->name, &t->targets, &t->n_targets, err);
    return st < 0 ? st : find_inputs(o, t, err);
}

static bool names_are_text(const struct csv_table *t)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct csv_cell cell = {t->name[i], strlen(t->name[i])};
        double number;
        if (csv_cell_kind(&cell, &number) != CSV_TEXT)
            return false;
    }
    return true;
}

/* Open the table with its first record as the header, if that record names the target. If it does
 * not, but is made of texts, it is what the columns are called all the same: *err names them. */
static as_status open_with_header(const char *path, const char *target,
                                  const struct dataset_options *o, const struct csv_dialect *d,
                                  struct csv_table *t, struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table with = {0};
    struct as_err said = {0};
    as_status st = csv_open_as(path, d, CSV_HEADER_YES, &with.csv, NULL);
    if (st != AS_OK)
        return st;
    st = find_columns(target, o, &with, &said);
    if (st != AS_OK) {
        if (err && st == AS_E_INVAL && names_are_text(&with))
            *err = said;
        return st;
    }
    struct csv_table without = *t;
    *t = with;
    with = without; /* freed here */
    return AS_OK;
}

static as_status open_table(const char *path, const char *target, const struct dataset_options *o,
                            const struct csv_dialect *d, struct csv_table *ret, struct as_err *err)
{
    as_status st = csv_open_as(path, d, CSV_HEADER_AUTO, &ret->csv, err);
    if (st < 0)
        return st;
    st = find_columns(target, o, ret, err);
    if (st == AS_E_INVAL && !csv_has_header(ret->csv) &&
        open_with_header(path, target, o, d, ret, err) == AS_OK)
        st = AS_OK;
    return st;
}

as_status csv_table_find(const char *path, const char *target, const struct dataset_options *o,
                         struct csv_table *ret, struct as_err *err)
{
    const struct csv_dialect d = {o->separator, o->comment, o->decimal};
    as_status st = open_table(path, target, o, &d, ret, err);
    return st == AS_OK ? check_names(ret, err) : st;
}

as_status csv_table_open_as(const char *path, const char *target, const struct dataset_options *o,
                            csv_header header, struct csv_table *ret, struct as_err *err)
{
    const struct csv_dialect d = dataset_dialect(o);
    as_status st = csv_open_as(path, &d, header, &ret->csv, err);
    return st == AS_OK ? find_columns(target, o, ret, err) : st;
}

as_status csv_table_open(const char *path, const char *target, const struct dataset_options *o,
                         struct csv_table *ret, struct as_err *err)
{
    const struct csv_dialect d = dataset_dialect(o);
    return open_table(path, target, o, &d, ret, err);
}
