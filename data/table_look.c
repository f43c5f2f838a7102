/* One pass over the rows.
 *
 * An identifier has another value in each row: whole numbers that are all of a range (1 to n in any
 * order) or whose column has the name of one, or texts that are neither dates nor prose. Other
 * numbers may all differ and say much. Texts that all differ where they are not missing are refused
 * as categories, so they are identifiers in a table of any size. A row that is a copy of an earlier
 * one has its identifier, too.
 *
 * Texts are numbers if people write numbers so ("88,139", "$5"): all cells of the column but one
 * of twenty, words for a missing value apart, with one sign of a currency at most, and percent
 * signs in nearly all cells or none.
 *
 * Texts among numbers are strays if they are few; if they are all words for a missing value; or if
 * the numbers are most of the cells and would be categories that nearly each row has alone.
 *
 * A column says what the target is if each of its values stands beside one value of the target
 * alone, with ten rows or more for a value on average: by chance that hardly happens. Columns with
 * more values than TABLE_LOOK_VALUES are not looked at in this way. In a regression a column of
 * numbers says it, too, if it correlates with the target but for rounding: a copy in another
 * unit. */
#include "data/table_look.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/column.h"
#include "data/csv_table.h"
#include "data/target.h"
#include "data/value_counts.h"

#define FEW_ROWS ((size_t)20)      /* below it all values may differ by chance */
#define ROWS_OF_VALUE ((size_t)10) /* of a column that says what the target is */
#define STRAY_SHARE ((size_t)20)   /* one cell in so many may be a text among numbers */
#define SAME 1e-12                 /* 1 - r^2 of a copy */
#define MOST_ALIKE ((size_t)100)   /* classes that are compared with each other */
#define LOST 0.01                  /* of a standard deviation, by rounding */

/* Words that people and programs write where a value is missing, beside those that data sets take
 * as missing everywhere: among categories they may mean more than that. */
static const char *const blank_words[] = {"none",    "nil",     "-",     "--",      ".",
                                          "n.a.",    "#n/a",    "<na>",  "missing", "n.d.",
                                          "unknown", "no data", "#num!", "#value!", "#div/0!"};

/* What is known of one column while rows come. */
struct look_scan {
    struct column_scan cells;   /* its first pass */
    struct value_counts values; /* while `open` */
    bool open;
    bool fraction;
    size_t n_values; /* when it was closed */
    size_t n_blank;  /* texts that are blank_words */
    size_t n_slashed;
    struct written {
        size_t n, n_signed;
        uint32_t sign;   /* of the first that has one */
        bool other_sign; /* there are several */
    } written;
    size_t longest; /* bytes of a text */
    double least, most;
    struct look_rounding rounding;
    struct missing_code ends;
    struct pairs {
        double n, x, y, xx, yy, xy; /* sums of differences from the first pair */
        double x0, y0;
    } pairs;
};

struct look {
    struct csv_table t;
    dataset_task task;
    struct look_scan *columns;   /* [t.n_inputs] */
    struct target_scan target;   /* of one target */
    struct value_counts classes; /* the values of the target */
    struct value_counts rows;
    struct skewness skewness; /* of one target */
    struct look_rounding rounding;
    struct written written; /* of one target … */
    size_t n_text;          /* … that is no number */
    char *text;             /* the first; owned */
    size_t n_rows, n_copies, n_unlabelled, unlabelled_line;
};

void table_look_done(struct table_look *t)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        free(t->columns[i].name);
        free(t->columns[i].text);
        free(t->columns[i].bad);
    }
    free(t->columns);
    free(t->target);
    free(t->rarest_name);
    free(t->written);
    free(t->alike[0]);
    free(t->alike[1]);
    *t = (struct table_look){0};
}

static void look_done(struct look *l)
{
    for (size_t i = 0; l->columns && i < l->t.n_inputs; i++) {
        column_scan_done(&l->columns[i].cells);
        value_counts_done(&l->columns[i].values);
    }
    free(l->columns);
    free(l->text);
    target_scan_done(&l->target);
    value_counts_done(&l->classes);
    value_counts_done(&l->rows);
    csv_table_done(&l->t);
}

/* ---- rows ---- */

/* Numbers that float32 does not hold are refused, or missing. */
static void add_rounding(struct look_rounding *r, double v)
{
    float kept = fabs(v) <= (double)FLT_MAX ? (float)v : 0;
    double by = fabs(v - (double)kept), d = v - r->mean;
    if (!(fabs(v) <= (double)FLT_MAX))
        return;
    r->least = r->n == 0 || kept < r->least ? kept : r->least;
    r->greatest = r->n == 0 || kept > r->greatest ? kept : r->greatest;
    r->mean += d / ++r->n;
    r->m2 += d * (v - r->mean);
    r->lost += by * by;
    r->most = by > r->most ? by : r->most;
}

bool look_rounding_matters(const struct look_rounding *r)
{
    return r->m2 > 0 && r->lost > LOST * LOST * r->m2;
}

/* 1 and 1.0 are one class, as for target.h. */
static uint64_t target_hash(const struct target_value *v)
{
    char text[32];
    if (!v->is_number || v->number != floor(v->number) || fabs(v->number) > 9e15)
        return value_hash(v->text, v->len);
    int n = snprintf(text, sizeof text, "%.0f", v->number);
    return value_hash(text, (size_t)n);
}

static void add_pair(struct pairs *p, double x, double y)
{
    if (p->n++ == 0) {
        p->x0 = x;
        p->y0 = y;
    }
    x -= p->x0;
    y -= p->y0;
    p->x += x;
    p->y += y;
    p->xx += x * x;
    p->yy += y * y;
    p->xy += x * y;
}

static void add_number(struct look_scan *s, const struct column_cell *cell, size_t n_before)
{
    s->fraction = s->fraction || cell->number != floor(cell->number);
    add_rounding(&s->rounding, cell->number);
    missing_code_add(&s->ends, cell->number);
    s->least = n_before && s->least < cell->number ? s->least : cell->number;
    s->most = n_before && s->most > cell->number ? s->most : cell->number;
}

static bool is_blank_word(const struct column_cell *cell)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(blank_words); i++)
        if (cell->len == strlen(blank_words[i]) &&
            strncasecmp(cell->s, blank_words[i], cell->len) == 0)
            return true;
    return false;
}

static void add_written(struct written *w, const char *s, size_t len, char decimal)
{
    uint32_t sign;
    double number;
    if (!column_written_number(s, len, decimal, &number, &sign))
        return;
    w->n++;
    w->n_signed += sign != 0;
    w->other_sign = w->other_sign || (w->sign && sign && sign != w->sign);
    w->sign = w->sign ? w->sign : sign;
}

/* 3/2/2021 may be in February or in March, so it is no date (date.h). */
static bool is_slashed(const struct column_cell *cell)
{
    int day = 0, month = 0, year = 0, n = 0;
    return cell->len <= 10 && cell->len >= 6 &&
           sscanf(cell->s, "%2d/%2d/%4d%n", &day, &month, &year, &n) == 3 &&
           (size_t)n == cell->len && day > 0 && day <= 31 && month > 0 && month <= 31 && year >= 0;
}

static void add_text(struct look_scan *s, const struct column_cell *cell, char decimal)
{
    s->longest = cell->len > s->longest ? cell->len : s->longest;
    s->n_blank += is_blank_word(cell);
    s->n_slashed += is_slashed(cell);
    add_written(&s->written, cell->s, cell->len, decimal);
}

/* Count the value, as long as the column may be an identifier or has few values. n_before: of the
 * rows before this one that are no copies. */
static as_status count_value(struct look_scan *s, const struct column_cell *cell, size_t n_before,
                             uint64_t target, struct as_err *err)
{
    struct value_count *place = NULL;
    as_status st = value_counts_add(&s->values, value_hash(cell->s, cell->len), &place, err);
    if (st != AS_OK)
        return st;
    if (place->n == 1)
        place->with = target;
    place->mixed = place->mixed || place->with != target;
    s->n_values = s->values.n;
    bool all_differ = s->values.n >= n_before && !s->fraction; /* this row may be a copy */
    if (s->values.n > TABLE_LOOK_VALUES && !all_differ) {
        s->open = false;
        value_counts_done(&s->values);
    }
    return AS_OK;
}

static as_status look_at_cell(struct look *l, struct look_scan *s, const struct column_cell *cell,
                              size_t line, const struct target_value *y, uint64_t target,
                              struct as_err *err)
{
    size_t before = l->n_rows - s->cells.n_missing;
    as_status st = column_scan_add(&s->cells, cell, line, err);
    if (st != AS_OK || cell->missing)
        return st;
    if (cell->kind == CSV_NUMBER) {
        add_number(s, cell, before);
        if (y && y->is_number)
            add_pair(&s->pairs, cell->number, y->number);
    }
    if (cell->kind == CSV_TEXT)
        add_text(s, cell, csv_dialect_of(l->t.csv).decimal);
    size_t unlike = before > l->n_copies ? before - l->n_copies : 0;
    return s->open ? count_value(s, cell, unlike, target, err) : AS_OK;
}

/* `y` of one target; with several `target` is a hash of all. */
static as_status look_at_target(struct look *l, const struct csv_row *row, struct target_value *y,
                                uint64_t *target, struct as_err *err)
{
    struct value_count *place = NULL;
    dataset_task read_as = l->t.n_targets > 1 ? DATASET_REGRESSION : l->task;
    for (size_t i = 0; i < l->t.n_targets; i++) {
        as_status st = csv_table_target(&l->t, row, l->t.targets[i], read_as, y, err);
        if (st != AS_OK)
            return st;
        *target = rng_mix(*target, target_hash(y));
    }
    if (l->t.n_targets > 1)
        return AS_OK;
    *target = target_hash(y);
    if (y->is_number) {
        skewness_add(&l->skewness, y->number);
        add_rounding(&l->rounding, y->number);
    } else {
        add_written(&l->written, y->text, y->len, csv_dialect_of(l->t.csv).decimal);
        if (l->n_text++ == 0 && !(l->text = strndup(y->text, y->len)))
            return as_fail_nomem(err);
    }
    as_status st = target_scan_add(&l->target, y, err);
    if (st < 0)
        return csv_table_prefix(&l->t, row, l->t.targets[0], st, err);
    return l->classes.n <= DATASET_MAX_CLASSES ? value_counts_add(&l->classes, *target, &place, err)
                                               : AS_OK;
}

static as_status look_at_row(struct look *l, const struct csv_row *row, struct as_err *err)
{
    struct target_value y = {0};
    struct value_count *place = NULL;
    uint64_t target = 0;
    as_status st = look_at_target(l, row, &y, &target, err);
    uint64_t whole = target;
    for (size_t i = 0; st == AS_OK && i < l->t.n_columns; i++) {
        size_t k = l->t.input[i];
        if (k == SIZE_MAX)
            continue;
        struct column_cell cell = csv_table_cell(&l->t, row, i);
        whole = rng_mix(whole, value_hash(cell.s, cell.len));
        st = look_at_cell(l, &l->columns[k], &cell, row->line, l->t.n_targets == 1 ? &y : NULL,
                          target, err);
    }
    if (st == AS_OK)
        st = value_counts_add(&l->rows, whole ? whole : 1, &place, err);
    if (st != AS_OK)
        return st;
    l->n_copies += place->n > 1;
    l->n_rows++;
    return AS_OK;
}

/* ---- what the columns are ---- */

static bool is_prose(const struct column_scan *s)
{
    return 2 * s->n_wordy > s->n_text;
}

static look_kind kind_of(const struct look_scan *s, size_t present)
{
    const struct column_scan *c = &s->cells;
    bool all_differ = s->n_values == present && present > 1;
    bool many = s->n_values > DATASET_AUTO_CLASSES && s->n_values * 2 > present;
    if (present == 0)
        return LOOK_EMPTY;
    if (c->is_text)
        return LOOK_TEXT;
    if (c->n_text == 0)
        return LOOK_NUMBER;
    if (c->dates.n == present)
        return LOOK_DATE;
    return is_prose(c) && (all_differ || many || s->n_values > DATASET_MAX_CATEGORIES)
               ? LOOK_TEXT
               : LOOK_CATEGORY;
}

static bool is_name_of_identifier(const char *name)
{
    static const char *const names[] = {"", "id", "index", "uuid", "guid", "rownames", "row"};
    size_t n = strlen(name);
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    if (n < 3)
        return false;
    const char *end = name + n - 2;
    bool word = strchr("_- .", end[-1]) && strcasecmp(end, "id") == 0;
    return word ||
           (islower((unsigned char)end[-1]) && (as_streq(end, "Id") || as_streq(end, "ID")));
}

/* As many values as rows that are no copies: each of these has its own. */
static bool is_identifier(const struct look_scan *s, const struct look_column *c, size_t rows,
                          size_t copies)
{
    size_t present = rows - c->n_missing, unlike = rows - copies;
    bool all_differ = s->open && c->n_missing == 0 && s->n_values == unlike;
    if (c->kind == LOOK_CATEGORY)
        return s->open && present > 1 && (s->n_values == present || (all_differ && unlike > 1));
    if (!all_differ || unlike < FEW_ROWS || s->fraction)
        return false;
    bool range = s->most - s->least + 1 == (double)unlike;
    return c->kind == LOOK_NUMBER && (range || is_name_of_identifier(c->name));
}

static bool has_strays(const struct look_scan *s, const struct look_column *c, size_t present)
{
    bool texts = c->kind == LOOK_CATEGORY || (c->kind == LOOK_TEXT && !s->cells.is_text);
    if (!texts || c->n_numbers == 0)
        return false;
    bool few = c->n_text * STRAY_SHARE <= present && c->n_values - 1 > c->n_text;
    bool most = c->n_numbers > c->n_text && c->n_numbers >= FEW_ROWS;
    bool alone = c->n_values > DATASET_MAX_CATEGORIES || 2 * c->n_values > present;
    return few || (most && (alone || s->n_blank == c->n_text));
}

/* Of `present` cells, n_text are texts. */
static bool are_written(const struct written *w, size_t n_text, size_t n_blank, size_t present)
{
    size_t numbers = present - n_text, others = n_text - w->n - n_blank;
    bool percent = w->sign == '%';
    if (w->n == 0 || w->other_sign || others * STRAY_SHARE > present || w->n < others + n_blank)
        return false;
    return !percent || (numbers + w->n - w->n_signed) * STRAY_SHARE <= present;
}

static bool is_copy(const struct pairs *p)
{
    double xx = p->xx - p->x * p->x / p->n, yy = p->yy - p->y * p->y / p->n;
    double xy = p->xy - p->x * p->y / p->n;
    return p->n >= (double)FEW_ROWS && xx > 0 && yy > 0 && 1 - xy / xx * (xy / yy) < SAME;
}

static bool says_target(const struct look_scan *s, const struct look_column *c, size_t rows,
                        bool regression)
{
    size_t present = rows - c->n_missing;
    if (regression && c->kind == LOOK_NUMBER && c->n_missing == 0 && is_copy(&s->pairs))
        return true;
    if (!s->open || s->n_values < 2 || s->n_values * ROWS_OF_VALUE > present || 2 * present < rows)
        return false;
    for (size_t i = 0; i < s->values.cap; i++)
        if (s->values.places[i].hash && s->values.places[i].mixed)
            return false;
    return true;
}

static as_status describe(const struct look *l, struct look_scan *s, const char *name,
                          bool regression, struct look_column *ret, struct as_err *err)
{
    const struct column_scan *c = &s->cells;
    size_t present = l->n_rows - c->n_missing;
    *ret = (struct look_column){.name = as_strdup(name),
                                .kind = kind_of(s, present),
                                .n_missing = c->n_missing,
                                .n_numbers = present - c->n_text,
                                .n_text = c->n_text,
                                .text = as_steal(s->cells.text),
                                .text_line = c->text_line,
                                .n_values = s->n_values,
                                .many = !s->open};
    if (!ret->name)
        return as_fail_nomem(err);
    ret->constant = s->open && s->n_values == 1 && c->n_missing == 0;
    ret->written = !c->is_text && ret->kind != LOOK_DATE &&
                   are_written(&s->written, c->n_text, s->n_blank, present);
    ret->slashed = ret->kind == LOOK_CATEGORY && s->n_slashed > 1 &&
                   (present - s->n_slashed) * STRAY_SHARE <= present;
    ret->stray = !ret->written && has_strays(s, ret, present);
    ret->too_long =
        !ret->written && ret->kind == LOOK_CATEGORY && s->longest > DATASET_MAX_CLASS_NAME;
    if (ret->kind == LOOK_NUMBER && c->any_bad && !(ret->bad = as_strdup(c->bad_number.msg)))
        return as_fail_nomem(err);
    if (ret->kind == LOOK_NUMBER)
        ret->rounding = s->rounding;
    if (ret->kind == LOOK_NUMBER || ret->stray)
        ret->has_code = missing_code_find(&s->ends, &ret->code);
    ret->identifier = !ret->stray && !ret->written && is_identifier(s, ret, l->n_rows, l->n_copies);
    ret->is_target = says_target(s, ret, l->n_rows, regression);
    return AS_OK;
}

static as_status describe_columns(struct look *l, struct table_look *ret, struct as_err *err)
{
    ret->columns = as_calloc(l->t.n_inputs, sizeof *ret->columns);
    if (!ret->columns)
        return as_fail_nomem(err);
    ret->n_columns = l->t.n_inputs;
    for (size_t i = 0; i < l->t.n_columns; i++) {
        size_t k = l->t.input[i];
        if (k == SIZE_MAX)
            continue;
        as_status st =
            describe(l, &l->columns[k], l->t.name[i], ret->n_classes == 0, &ret->columns[k], err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- the target ---- */

static size_t rows_of_class(const struct look *l, const char *name)
{
    uint64_t hash = value_hash(name, strlen(name));
    for (size_t i = 0; i < l->classes.cap; i++)
        if (l->classes.places[i].hash == hash)
            return l->classes.places[i].n;
    return 0;
}

/* "Yes" and "yes" are two classes, which is seldom meant. */
static as_status find_alike(const struct dataset_info *info, struct table_look *ret,
                            struct as_err *err)
{
    for (size_t i = 0; i < info->n_classes && i < MOST_ALIKE; i++)
        for (size_t k = i + 1; k < info->n_classes && k < MOST_ALIKE; k++) {
            if (strcasecmp(info->classes[i], info->classes[k]) != 0)
                continue;
            ret->alike[0] = as_strdup(info->classes[i]);
            ret->alike[1] = as_strdup(info->classes[k]);
            return ret->alike[0] && ret->alike[1] ? AS_OK : as_fail_nomem(err);
        }
    return AS_OK;
}

static as_status describe_target(struct look *l, struct table_look *ret, struct as_err *err)
{
    AS_AUTO(dataset_info_done) struct dataset_info info = {.task = DATASET_REGRESSION};
    as_status st =
        target_name(l->t.targets, l->t.n_targets, l->t.n_columns, l->t.name, &ret->target, err);
    ret->n_targets = l->t.n_targets;
    if (st == AS_OK && l->task != DATASET_CLASSIFICATION &&
        are_written(&l->written, l->n_text, 0, l->n_rows)) {
        ret->written = as_steal(l->text);
        ret->task = DATASET_REGRESSION;
        return AS_OK;
    }
    if (st == AS_OK)
        st = l->t.n_targets > 1 ? target_several(l->task, l->t.n_targets, &info, err)
                                : target_scan_end(&l->target, &info, err);
    ret->task = info.task;
    ret->n_classes = info.n_classes;
    if (info.task == DATASET_REGRESSION) {
        ret->skewness = l->skewness;
        ret->rounding = l->rounding;
        ret->one_value = l->rounding.n > 0 && l->rounding.least == l->rounding.greatest;
    }
    for (size_t i = 0; st == AS_OK && i < info.n_classes; i++) {
        size_t rows = rows_of_class(l, info.classes[i]);
        ret->n_single += rows == 1;
        if (rows == 0 || (ret->rarest_name && rows >= ret->rarest))
            continue; /* 0: a class that is written in two ways, such as 1 and 01 */
        free(ret->rarest_name);
        ret->rarest = rows;
        if (!(ret->rarest_name = as_strdup(info.classes[i])))
            return as_fail_nomem(err);
    }
    return st == AS_OK ? find_alike(&info, ret, err) : st;
}

static as_status look_at_rows(struct look *l, struct as_err *err)
{
    struct csv_row row;
    as_status st;
    while ((st = csv_next(l->t.csv, &row, err)) == AS_OK) {
        if (csv_table_lacks_target(&l->t, &row)) {
            l->unlabelled_line = l->n_unlabelled++ ? l->unlabelled_line : row.line;
            continue;
        }
        if ((st = look_at_row(l, &row, err)) != AS_OK)
            return st;
    }
    if (st != AS_E_EXHAUSTED)
        return st;
    if (l->n_rows < 2)
        return as_fail(err, AS_E_INVAL, "the table has %zu row%s of data%s, expected 2 or more",
                       l->n_rows, l->n_rows == 1 ? "" : "s",
                       l->n_unlabelled ? " that have a target" : "");
    return AS_OK;
}

as_status table_look(const char *path, const char *target, dataset_task task,
                     const struct dataset_options *options, struct table_look *ret,
                     struct as_err *err)
{
    AS_AUTO(look_done) struct look l = {.task = task, .target = {.task = task}};
    AS_AUTO(table_look_done) struct table_look found = {0};
    AS_AUTO(file_closep) int fd = -1;
    as_status st = file_open_regular(path, &fd, err); /* a pipe would wait for its writer */
    if (st == AS_OK)
        st = csv_table_find(path, target, options, &l.t, err);
    if (st != AS_OK)
        return st;
    l.columns = as_calloc(l.t.n_inputs, sizeof *l.columns);
    if (!l.columns)
        return as_fail_nomem(err);
    for (size_t i = 0; i < l.t.n_columns; i++)
        if (l.t.input[i] != SIZE_MAX)
            l.columns[l.t.input[i]] = (struct look_scan){
                .open = true, .cells.is_text = dataset_names_match(&options->text, l.t.name[i])};
    st = look_at_rows(&l, err);
    if (st == AS_OK)
        st = describe_target(&l, &found, err);
    if (st == AS_OK)
        st = describe_columns(&l, &found, err);
    if (st != AS_OK)
        return st;
    found.dialect = csv_dialect_of(l.t.csv);
    found.n_rows = l.n_rows;
    found.n_copies = l.n_copies;
    found.n_unlabelled = l.n_unlabelled;
    found.drop_unlabelled = l.t.drop_unlabelled;
    found.unlabelled_line = l.unlabelled_line;
    *ret = found;
    found = (struct table_look){0};
    return AS_OK;
}
