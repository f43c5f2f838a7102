/* One pass over the rows of a data set.
 *
 * Each family of formats gives its rows in its own way: cells of text (dataset_csv), numbers
 * (dataset_arrays), tokens. They meet in add_number() and in the counts of categories, of which the
 * record has all names, so that a category is an index. */
#include "data/dataset_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "data/column.h"
#include "data/csv_table.h"
#include "data/dataset_arrays.h"
#include "data/dataset_tokens.h"
#include "data/date.h"
#include "data/target.h"

#define SECONDS_OF_DAY 86400.0

/* What a described column is while rows come. */
struct look {
    const struct dataset_column *c; /* an input that the record describes; else NULL */
    size_t at;                      /* CSV: its column of the file; arrays: its feature or target */
    char *const *names;             /* of categories, borrowed */
    size_t n_names;
    size_t *rows; /* [n_names + 1]: the last is of all other values; owned. NULL: no categories */
};

struct reading {
    const struct dataset_info *info;
    struct dataset_profile *p;
    struct look *looks; /* [p->n_columns]; owned */
    size_t n_most;      /* rows that are read */
    bool whole;         /* target_classes_whole() */
};

void dataset_profile_done(struct dataset_profile *p)
{
    for (size_t i = 0; i < p->n_columns; i++) {
        free(p->columns[i].name);
        for (size_t k = 0; k < p->columns[i].n_top; k++)
            free(p->columns[i].top[k].name);
        free(p->columns[i].top);
    }
    for (size_t i = 0; p->cells && i < p->n_first * p->n_columns; i++)
        free(p->cells[i]);
    free(p->columns);
    free(p->cells);
    *p = (struct dataset_profile){0};
}

static void reading_done(struct reading *r)
{
    for (size_t i = 0; r->looks && i < r->p->n_columns; i++)
        free(r->looks[i].rows);
    free(r->looks);
}

/* ---- columns ---- */

static as_status begin(struct reading *r, size_t n_all, bool has_rows, struct as_err *err)
{
    struct dataset_profile *p = r->p;
    const size_t n = n_all < PROFILE_COLUMNS ? n_all : PROFILE_COLUMNS;
    p->columns = as_calloc(n, sizeof *p->columns);
    r->looks = as_calloc(n, sizeof *r->looks);
    p->cells = has_rows ? as_calloc(PROFILE_ROWS * n, sizeof *p->cells) : NULL;
    if (!p->columns || !r->looks || (has_rows && !p->cells))
        return as_fail_nomem(err);
    p->n_all = n_all;
    r->n_most = PROFILE_VALUES / (r->info->n_features ? r->info->n_features : 1);
    r->whole = target_classes_whole(r->info);
    return AS_OK;
}

/* Describe the next column, unless there are enough. `names` NULL: no categories. */
static as_status add_column(struct reading *r, const char *name, profile_kind kind, bool is_target,
                            const struct look *look, struct as_err *err)
{
    struct dataset_profile *p = r->p;
    if (p->n_columns == PROFILE_COLUMNS || p->n_columns == p->n_all)
        return AS_OK;
    struct profile_column *c = &p->columns[p->n_columns];
    r->looks[p->n_columns] = *look;
    p->n_columns++;
    *c = (struct profile_column){.name = as_strdup(name), .kind = kind, .is_target = is_target};
    if (kind == PROFILE_CATEGORICAL)
        r->looks[p->n_columns - 1].rows = as_calloc(look->n_names + 1, sizeof *look->rows);
    if (!c->name || (kind == PROFILE_CATEGORICAL && !r->looks[p->n_columns - 1].rows))
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status add_target(struct reading *r, const char *name, size_t at, struct as_err *err)
{
    const bool is_class = r->info->task == DATASET_CLASSIFICATION;
    const struct look look = {.at = at, .names = r->info->classes, .n_names = r->info->n_classes};
    return add_column(r, name, is_class ? PROFILE_CATEGORICAL : PROFILE_NUMERIC, true, &look, err);
}

static as_status add_input(struct reading *r, const char *name, size_t at,
                           const struct dataset_column *c, struct as_err *err)
{
    const struct look look = {
        .c = c, .at = at, .names = c ? c->values : NULL, .n_names = c ? c->n_values : 0};
    profile_kind kind = PROFILE_NUMERIC;
    if (c && c->part == DATASET_HASHED)
        kind = PROFILE_TEXT;
    else if (c && c->part != DATASET_CELL)
        kind = PROFILE_DATE;
    else if (c && c->categorical)
        kind = PROFILE_CATEGORICAL;
    return add_column(r, name, kind, false, &look, err);
}

static void add_number(struct profile_column *c, double v)
{
    if (isfinite(v))
        number_bins_add(&c->numbers, v);
    else
        c->n_missing++;
}

static as_status keep_cell(struct reading *r, size_t row, size_t column, const char *s, size_t len,
                           struct as_err *err)
{
    char cell[PROFILE_CELL + sizeof "…"];
    const bool is_cut = len > PROFILE_CELL;
    if (row >= PROFILE_ROWS)
        return AS_OK;
    size_t n = is_cut ? PROFILE_CELL : len;
    while (is_cut && n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    (void)snprintf(cell, sizeof cell, "%.*s%s", (int)n, s, is_cut ? "…" : "");
    char **place = &r->p->cells[row * r->p->n_columns + column];
    *place = as_strdup(cell);
    r->p->n_first = row + 1;
    return *place ? AS_OK : as_fail_nomem(err);
}

/* ---- cells of text ---- */

static as_status find_csv_columns(struct reading *r, const struct csv_table *t, struct as_err *err)
{
    size_t at = 0;
    size_t n_targets = r->info->task == DATASET_CLUSTERING ? 0 : t->n_targets;
    as_status st = begin(r, n_targets + t->n_inputs, true, err);
    for (size_t i = 0; st == AS_OK && i < n_targets; i++)
        st = add_target(r, t->name[t->targets[i]], t->targets[i], err);
    for (size_t i = 0; st == AS_OK && i < t->n_columns; i++) {
        if (t->input[i] == SIZE_MAX)
            continue;
        const struct dataset_column *c =
            r->info->columns && at < r->info->n_features ? &r->info->columns[at] : NULL;
        st = add_input(r, t->name[i], i, c, err);
        at += c ? dataset_column_width(c) : 1;
    }
    return st;
}

static as_status look_at_target(struct reading *r, const struct csv_table *t,
                                const struct csv_row *row, size_t k, struct as_err *err)
{
    struct target_value v;
    int32_t label = 0;
    as_status st = csv_table_target(t, row, r->looks[k].at, r->info->task, &v, err);
    if (st != AS_OK)
        return st;
    if (!r->looks[k].rows) {
        add_number(&r->p->columns[k], v.number);
        return AS_OK;
    }
    st = target_class_of(r->info, r->whole, &v, &label, err);
    if (st == AS_OK)
        r->looks[k].rows[label]++;
    return st;
}

static as_status look_at_input(struct profile_column *p, const struct look *l,
                               const struct column_cell *cell, struct as_err *err)
{
    struct date d;
    float v = 0;
    if (cell->missing) {
        p->n_missing++;
        return AS_OK;
    }
    if (p->kind == PROFILE_TEXT) {
        add_number(p, (double)cell->len);
    } else if (p->kind == PROFILE_DATE) {
        add_number(p, date_parse(cell->s, cell->len, &d)
                          ? (double)d.day + d.seconds / SECONDS_OF_DAY
                          : (double)NAN);
    } else {
        as_status st = column_value_of(l->c, cell, &v, err);
        if (st != AS_OK)
            return st;
        if (l->rows)
            l->rows[(size_t)v]++;
        else
            add_number(p, cell->number);
    }
    return AS_OK;
}

static as_status look_at_csv_row(struct reading *r, const struct csv_table *t,
                                 const struct csv_row *row, struct as_err *err)
{
    struct dataset_profile *p = r->p;
    as_status st = AS_OK;
    for (size_t k = 0; st == AS_OK && k < p->n_columns; k++) {
        const size_t at = r->looks[k].at;
        struct column_cell cell = csv_table_cell(t, row, at);
        st = p->columns[k].is_target ? look_at_target(r, t, row, k, err)
                                     : look_at_input(&p->columns[k], &r->looks[k], &cell, err);
        if (st == AS_OK)
            st = keep_cell(r, p->n_looked, k, row->cells[at].s, row->cells[at].len, err);
        if (st != AS_OK)
            return csv_table_prefix(t, row, at, st, err);
    }
    p->n_looked++;
    return st;
}

static as_status look_at_csv(struct reading *r, const struct dataset_paths *paths,
                             struct as_err *err)
{
    AS_AUTO(csv_table_done) struct csv_table t = {0};
    struct csv_row row;
    as_status st =
        csv_table_open(paths->table, csv_table_target_of(r->info), &r->info->options, &t, err);
    if (st == AS_OK)
        st = find_csv_columns(r, &t, err);
    while (st == AS_OK && r->p->n_looked < r->n_most &&
           (st = csv_table_next(&t, &row, err)) == AS_OK)
        st = look_at_csv_row(r, &t, &row, err);
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

/* ---- rows of numbers ---- */

static as_status find_array_columns(struct reading *r, struct as_err *err)
{
    const struct dataset_info *info = r->info;
    const bool is_table = info->input == DATASET_TABLE;
    const size_t n_targets = info->task == DATASET_CLASSIFICATION ? 1 : info->n_outputs;
    char name[32];
    as_status st = begin(r, n_targets + (is_table ? info->n_features : 1), is_table, err);
    for (size_t i = 0; st == AS_OK && i < n_targets; i++) {
        (void)snprintf(name, sizeof name, n_targets > 1 ? "target %zu" : "target", i);
        st = add_target(r, n_targets == 1 && info->target ? info->target : name, i, err);
    }
    for (size_t i = 0; st == AS_OK && is_table && i < info->n_features; i++) {
        (void)snprintf(name, sizeof name, "%zu", i);
        st = add_input(r, info->columns ? info->columns[i].name : name, i,
                       info->columns ? &info->columns[i] : NULL, err);
    }
    return st == AS_OK && !is_table ? add_input(r, "values", 0, NULL, err) : st;
}

static as_status keep_number(struct reading *r, size_t k, double v, struct as_err *err)
{
    char text[32];
    if (!r->p->cells)
        return AS_OK;
    if (isnan(v))
        text[0] = '\0';
    else
        (void)snprintf(text, sizeof text, "%.7g", v);
    return keep_cell(r, r->p->n_looked, k, text, strlen(text), err);
}

static as_status look_at_row(void *ctx, const struct dataset_row_view *row, struct as_err *err)
{
    struct reading *r = ctx;
    struct dataset_profile *p = r->p;
    as_status st = AS_OK;
    for (size_t k = 0; st == AS_OK && k < p->n_columns; k++) {
        struct profile_column *c = &p->columns[k];
        const struct look *l = &r->looks[k];
        if (l->rows) {
            l->rows[row->label]++;
            const char *name = l->names[row->label];
            st = p->cells ? keep_cell(r, p->n_looked, k, name, strlen(name), err) : AS_OK;
        } else if (!c->is_target && r->info->input == DATASET_IMAGE) {
            for (size_t i = 0; i < r->info->n_features; i++)
                add_number(c, (double)row->x[i]);
        } else {
            const double v = (double)(c->is_target ? row->targets[l->at] : row->x[l->at]);
            add_number(c, v);
            st = keep_number(r, k, v, err);
        }
    }
    return ++p->n_looked == r->n_most && st == AS_OK ? AS_E_EXHAUSTED : st;
}

static as_status look_at_arrays(struct reading *r, const struct dataset_paths *paths,
                                struct as_err *err)
{
    as_status st = find_array_columns(r, err);
    if (st == AS_OK)
        st = dataset_arrays_rows(paths, r->info, look_at_row, r, err);
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

/* ---- tokens ---- */

static void name_token(const struct dataset_info *info, size_t token, char ret[16])
{
    const bool is_shown = info->format == DATASET_TEXT && token > ' ' && token < 0x7f;
    if (is_shown)
        (void)snprintf(ret, 16, "%c", (char)token);
    else
        (void)snprintf(ret, 16, info->format == DATASET_TEXT ? "0x%02zx" : "%zu", token);
}

static as_status look_at_tokens(struct reading *r, const struct dataset_paths *paths,
                                struct as_err *err)
{
    const struct look look = {.n_names = r->info->n_outputs};
    as_status st = begin(r, 1, false, err);
    if (st == AS_OK)
        st = add_column(r, "tokens", PROFILE_CATEGORICAL, true, &look, err);
    return st == AS_OK ? dataset_tokens_count(paths, r->info, r->n_most, r->looks[0].rows,
                                              &r->p->n_looked, err)
                       : st;
}

/* ---- the most frequent values ---- */

struct ranked {
    size_t index, rows;
};

static int more_rows_first(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->rows != b->rows)
        return a->rows < b->rows ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

static as_status keep_top(const struct reading *r, const struct look *l, struct profile_column *c,
                          struct ranked *ranked, struct as_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_names; i++)
        if (l->rows[i] > 0)
            ranked[n++] = (struct ranked){i, l->rows[i]};
    qsort(ranked, n, sizeof *ranked, more_rows_first);
    c->n_other = l->rows[l->n_names];
    c->n_values = n + c->n_other; /* a value is rare if no other row has it */
    for (size_t i = 0; i < n; i++) {
        char token[16];
        if (i >= PROFILE_TOP) {
            c->n_other += ranked[i].rows;
            continue;
        }
        if (!l->names)
            name_token(r->info, ranked[i].index, token);
        const char *name = l->names ? l->names[ranked[i].index] : token;
        c->top[i] = (struct profile_value){as_strdup(name), ranked[i].rows};
        if (!c->top[i].name)
            return as_fail_nomem(err);
        c->n_top = i + 1;
    }
    return AS_OK;
}

static as_status end_columns(const struct reading *r, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t k = 0; st == AS_OK && k < r->p->n_columns; k++) {
        const struct look *l = &r->looks[k];
        struct profile_column *c = &r->p->columns[k];
        number_bins_end(&c->numbers);
        if (!l->rows)
            continue;
        AS_AUTO(as_freep) struct ranked *ranked = as_calloc(l->n_names + 1, sizeof *ranked);
        c->top = as_calloc(PROFILE_TOP, sizeof *c->top);
        st = ranked && c->top ? keep_top(r, l, c, ranked, err) : as_fail_nomem(err);
    }
    return st;
}

as_status dataset_profile_read(const struct dataset_paths *paths, const struct dataset_info *info,
                               struct dataset_profile *ret, struct as_err *err)
{
    AS_AUTO(dataset_profile_done) struct dataset_profile p = {0};
    AS_AUTO(reading_done) struct reading r = {.info = info, .p = &p};
    as_status st = info->format == DATASET_CSV         ? look_at_csv(&r, paths, err)
                   : info->input == DATASET_TOKEN_TEXT ? look_at_tokens(&r, paths, err)
                                                       : look_at_arrays(&r, paths, err);
    if (st == AS_OK)
        st = end_columns(&r, err);
    if (st != AS_OK)
        return st;
    reading_done(&r); /* while p has its columns */
    r.looks = NULL;
    *ret = p;
    p = (struct dataset_profile){0};
    return AS_OK;
}

/* ---- as JSON ---- */

static json_t *numbers_json(const struct number_bins *b)
{
    JSON_AUTO counts = json_array();
    int bad = !counts;
    for (int64_t p = b->first; p <= b->last; p++)
        bad |= json_array_append_new(counts, json_integer((json_int_t)b->counts[p - b->first]));
    const double width = number_bins_width(b);
    return bad ? NULL
               : json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:O}", "least", b->least, "most",
                           b->most, "mean", b->mean, "deviation", number_bins_deviation(b), "from",
                           (double)b->first * width, "width", width, "counts", counts);
}

static json_t *values_json(const struct profile_column *c)
{
    JSON_AUTO list = json_array();
    int bad = !list;
    for (size_t i = 0; i < c->n_top; i++)
        bad |= json_array_append_new(list, json_pack("{s:s, s:I}", "value", c->top[i].name, "rows",
                                                     (json_int_t)c->top[i].rows));
    return bad ? NULL
               : json_pack("{s:I, s:O, s:I}", "different", (json_int_t)c->n_values, "top", list,
                           "other", (json_int_t)c->n_other);
}

static json_t *column_json(const struct profile_column *c)
{
    static const char *const kinds[] = {"numeric", "categorical", "date", "text"};
    JSON_AUTO obj = json_pack("{s:s, s:s, s:b, s:I}", "name", c->name, "kind", kinds[c->kind],
                              "target", (int)c->is_target, "missing", (json_int_t)c->n_missing);
    int bad = !obj;
    if (c->kind == PROFILE_CATEGORICAL)
        bad |= json_object_set_new(obj, "values", values_json(c));
    else if (c->numbers.n > 0)
        bad |= json_object_set_new(obj, "numbers", numbers_json(&c->numbers));
    return bad ? NULL : as_steal(obj);
}

static json_t *row_json(const struct dataset_profile *p, size_t row)
{
    JSON_AUTO list = json_array();
    int bad = !list;
    for (size_t k = 0; k < p->n_columns; k++)
        bad |= json_array_append_new(list, json_string(p->cells[row * p->n_columns + k]));
    return bad ? NULL : as_steal(list);
}

json_t *dataset_profile_to_json(const struct dataset_profile *p)
{
    JSON_AUTO columns = json_array();
    JSON_AUTO rows = json_array();
    int bad = !columns || !rows;
    for (size_t k = 0; k < p->n_columns; k++)
        bad |= json_array_append_new(columns, column_json(&p->columns[k]));
    for (size_t i = 0; i < p->n_first; i++)
        bad |= json_array_append_new(rows, row_json(p, i));
    return bad ? NULL
               : json_pack("{s:I, s:I, s:O, s:O}", "rows_looked_at", (json_int_t)p->n_looked,
                           "columns_in_all", (json_int_t)p->n_all, "columns", columns, "first_rows",
                           rows);
}
