/* Scans of the input columns of a CSV table.
 *
 * The first pass finds the kind of a column. A number that cannot be used (infinite, too large for
 * float32) is an error only if the column turns out to be numeric, so the scan keeps the error
 * until column_scan_end(). The scan also keeps the first cell of text and its line: if the column
 * is refused, that cell is most often the typing error that made it categorical.
 *
 * The second pass counts values in a sorted array, found by bisection. There are at most
 * DATASET_MAX_CATEGORIES, so inserting by memmove is cheap, and the result is already in byte
 * order, as dataset_column needs it. */
#include "data/column.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "data/date.h"
#include "data/formats/written_number.h"
#include "data/target.h"
#include "data/text_hash.h"
#include "base/mem.h"

const char *const column_missing_words[] = {"NA", "N/A", "NaN", "null", "?", NULL};

static bool is_missing(const char *s, size_t len)
{
    for (size_t i = 0; column_missing_words[i]; i++) {
        const char *word = column_missing_words[i];
        if (len == strlen(word) && strncasecmp(s, word, len) == 0)
            return true;
    }
    return len == 0;
}

struct column_cell column_cell_of(const struct csv_cell *cell)
{
    struct column_cell c = {.s = cell->s, .len = cell->len};
    for (; *c.s == ' ' || *c.s == '\t'; c.s++)
        c.len--;
    while (c.len && (c.s[c.len - 1] == ' ' || c.s[c.len - 1] == '\t'))
        c.len--;
    c.missing = is_missing(c.s, c.len);
    c.kind = c.missing ? CSV_EMPTY : csv_cell_kind(cell, &c.number);
    return c;
}

struct column_cell column_cell_of_text(const char *text, size_t len)
{
    const struct csv_cell bare = {.s = text, .len = len};
    return column_cell_of(&bare);
}

bool column_written_number(const char *s, size_t len, char decimal, double *ret, uint32_t *ret_sign)
{
    char plain[WRITTEN_NUMBER_MAX];
    struct csv_cell cell = {.s = plain};
    cell.len = written_number(s, len, decimal ? decimal : '.', plain, ret_sign);
    return cell.len > 0 && csv_cell_kind(&cell, ret) == CSV_NUMBER;
}

void column_cell_as_number(struct column_cell *cell, char decimal)
{
    uint32_t sign;
    if (cell->kind == CSV_TEXT &&
        column_written_number(cell->s, cell->len, decimal, &cell->number, &sign))
        cell->kind = CSV_NUMBER;
    bool usable = cell->kind == CSV_NUMBER && target_check_float(cell->number, NULL) == AS_OK;
    cell->missing = cell->missing || !usable;
    if (cell->missing)
        cell->kind = CSV_EMPTY;
}

void column_cell_code(struct column_cell *cell, const struct dataset_codes *codes)
{
    if (cell->kind != CSV_NUMBER || !dataset_codes_have(codes, cell->number))
        return;
    cell->missing = true;
    cell->kind = CSV_EMPTY;
}

static void forget_values(struct column_scan *s)
{
    for (size_t i = 0; i < s->n_values; i++)
        free(s->values[i].text);
    s->n_values = 0;
}

void column_scan_done(struct column_scan *s)
{
    forget_values(s);
    free(s->values);
    free(s->text);
    *s = (struct column_scan){0};
}

static char *copy_of(const struct column_cell *cell, size_t max)
{
    size_t n = cell->len < max ? cell->len : max;
    char *copy = as_calloc(n + 1, 1);
    if (copy)
        memcpy(copy, cell->s, n);
    return copy;
}

static as_status check_number(const struct column_cell *cell, struct as_err *err)
{
    if (cell->kind == CSV_NUMBER)
        return target_check_float(cell->number, err);
    return as_fail(err, AS_E_INVAL, "found '%.*s', expected a %s",
                   cell->len < 60 ? (int)cell->len : 60, cell->s,
                   cell->kind == CSV_NOT_FINITE ? "finite number" : "number");
}

static void add_date(struct column_dates *dates, const struct date *d)
{
    if (dates->n++ == 0)
        *dates = (struct column_dates){1, d->day, 0, 0, d->seconds, d->seconds};
    dates->first = d->day < dates->first ? d->day : dates->first;
    dates->weekdays |= 1u << date_weekday(d->day);
    dates->months |= 1u << date_month(d->day);
    dates->least = d->seconds < dates->least ? d->seconds : dates->least;
    dates->most = d->seconds > dates->most ? d->seconds : dates->most;
}

/* Three words or more: two gaps between them. */
static bool is_wordy(const struct column_cell *cell)
{
    size_t gaps = 0;
    for (size_t i = 1; i < cell->len && gaps < 2; i++) {
        bool blank = cell->s[i] == ' ' || cell->s[i] == '\t' || cell->s[i] == '\n';
        bool before = cell->s[i - 1] == ' ' || cell->s[i - 1] == '\t' || cell->s[i - 1] == '\n';
        gaps += blank && !before;
    }
    return gaps == 2;
}

static void add_text(struct column_scan *s, const struct column_cell *cell)
{
    struct date d;
    bool dates_so_far = s->dates.n == s->n_text - 1; /* n_text counts this cell already */
    if (dates_so_far && date_parse(cell->s, cell->len, &d))
        add_date(&s->dates, &d);
    s->n_wordy += is_wordy(cell);
}

as_status column_scan_add(struct column_scan *s, const struct column_cell *cell, size_t line,
                          struct as_err *err)
{
    s->n_missing += cell->missing;
    if (cell->missing)
        return AS_OK;
    if (cell->kind == CSV_TEXT && s->n_text++ == 0) {
        s->text_line = line;
        s->text = copy_of(cell, 60);
        if (!s->text)
            return as_fail_nomem(err);
    }
    if (cell->kind == CSV_TEXT)
        add_text(s, cell);
    if (cell->kind != CSV_TEXT && !s->any_bad && check_number(cell, &s->bad_number) != AS_OK) {
        s->any_bad = true;
        (void)as_err_prefix(&s->bad_number, AS_E_INVAL, "line %zu", line);
    }
    return AS_OK;
}

static int compare_text(const char *name, const char *text, size_t len)
{
    int c = strncmp(name, text, len);
    return c ? c : name[len] != 0;
}

/* More than half of the cells have three words or more. */
static bool is_prose(const struct column_scan *s)
{
    return s->n_wordy * 2 > s->n_text;
}

static bool is_date(const struct column_scan *s, size_t n_rows)
{
    return !s->is_text && s->n_text > 0 && s->dates.n == n_rows - s->n_missing;
}

bool column_scan_counts(const struct column_scan *s, size_t n_rows)
{
    return s->n_text > 0 && !s->is_text && !is_date(s, n_rows);
}

as_status column_scan_count(struct column_scan *s, const struct column_cell *cell,
                            struct as_err *err)
{
    size_t low = 0, high = s->n_values;
    if (cell->missing)
        return AS_OK;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare_text(s->values[mid].text, cell->s, cell->len);
        if (c == 0) {
            s->values[mid].n_rows++;
            return AS_OK;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (is_prose(s) &&
        (s->n_values == DATASET_MAX_CATEGORIES || cell->len > DATASET_MAX_CLASS_NAME)) {
        s->is_text = true;
        forget_values(s);
        return AS_OK;
    }
    if (s->n_values == DATASET_MAX_CATEGORIES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "its cells are text, such as '%s' in line %zu, and there are more than %zu "
                       "different ones: an identifier, a free text, or a typing error among "
                       "numbers? Drop the column (drop), hash its words (text), or correct it",
                       s->text, s->text_line, DATASET_MAX_CATEGORIES);
    if (cell->len > DATASET_MAX_CLASS_NAME)
        return as_fail(err, AS_E_TOO_LARGE, "a category of %zu bytes, at most %zu", cell->len,
                       DATASET_MAX_CLASS_NAME);
    as_status st = as_reserve_one(&s->values, s->n_values, &s->cap, sizeof *s->values, err);
    if (st != AS_OK)
        return st;
    char *copy = copy_of(cell, cell->len);
    if (!copy)
        return as_fail_nomem(err);
    memmove(s->values + low + 1, s->values + low, (s->n_values - low) * sizeof *s->values);
    s->values[low] = (struct column_value){copy, 1};
    s->n_values++;
    return AS_OK;
}

/* Move the values that have enough rows to the column, and count the rows of the others. */
static as_status keep_values(struct column_scan *s, struct dataset_column *c, struct as_err *err)
{
    c->values = as_calloc(s->n_values, sizeof *c->values);
    if (!c->values)
        return as_fail(err, AS_E_NOMEM, "out of memory for categories");
    for (size_t i = 0; i < s->n_values; i++) {
        if (s->values[i].n_rows < DATASET_MIN_CATEGORY_ROWS)
            c->n_other += s->values[i].n_rows;
        else
            c->values[c->n_values++] = as_steal(s->values[i].text);
    }
    return AS_OK;
}

size_t column_scan_decide(struct column_scan *s, size_t n_rows, size_t buckets)
{
    size_t present = n_rows - s->n_missing;
    bool all_differ = s->n_values == present && present > 1;
    bool many = s->n_values > DATASET_AUTO_CLASSES && s->n_values * 2 > present;
    s->is_date = is_date(s, n_rows);
    s->is_text = s->is_text || (s->n_text > 0 && is_prose(s) && (all_differ || many));
    s->width = s->is_text ? buckets : 1;
    if (s->is_date) {
        const struct column_dates *d = &s->dates;
        bool week = d->weekdays & (d->weekdays - 1), month = d->months & (d->months - 1);
        s->width += 2 * ((size_t)week + (size_t)month + (size_t)(d->most > d->least));
    }
    return s->width;
}

/* The parts of dates: the days, and each cycle that varies. */
static void set_date_parts(const struct column_scan *s, struct dataset_column *c)
{
    const struct column_dates *d = &s->dates;
    const bool varies[] = {(d->weekdays & (d->weekdays - 1)) != 0,
                           (d->months & (d->months - 1)) != 0, d->most > d->least};
    size_t at = 0;
    c[at++].part = DATASET_DAYS;
    for (size_t i = 0; i < AS_ARRAY_LEN(varies); i++)
        if (varies[i]) {
            c[at++].part = DATASET_WEEK_SIN + 2 * (unsigned)i;
            c[at++].part = DATASET_WEEK_COS + 2 * (unsigned)i;
        }
}

/* Set what the features of a column share. */
static as_status set_parts(const struct column_scan *s, const char *name, struct dataset_column *c,
                           struct as_err *err)
{
    for (size_t i = 0; name && i < s->width; i++) {
        c[i].index = i;
        c[i].n_parts = s->width;
        c[i].part = s->is_text ? DATASET_HASHED : DATASET_CELL;
        c[i].since = s->is_date ? s->dates.first : 0;
        if (!(c[i].name = as_strdup(name)))
            return as_fail(err, AS_E_NOMEM, "out of memory for columns");
    }
    if (name && s->is_date)
        set_date_parts(s, c);
    return AS_OK;
}

as_status column_scan_end(struct column_scan *s, const char *name, size_t n_rows,
                          struct dataset_column *ret, struct as_err *err)
{
    size_t present = n_rows - s->n_missing;
    bool whole = s->is_text || s->is_date; /* neither a number nor a category */
    ret->n_missing = s->is_text ? 0 : s->n_missing;
    ret->n_empty = s->is_text ? s->n_missing : 0;
    ret->categorical = s->n_text > 0 && !whole;
    if (!whole && s->n_text == 0 && s->any_bad)
        return as_fail(err, AS_E_INVAL, "%s", s->bad_number.msg);
    if (ret->categorical && s->n_values == present && present > 1)
        return as_fail(err, AS_E_INVAL,
                       "line %zu: found '%s', and every row has another text: an identifier, or a "
                       "typing error among numbers? Drop the column (drop), or correct it",
                       s->text_line, s->text);
    as_status st = set_parts(s, name, ret, err);
    if (st != AS_OK || !ret->categorical)
        return st;
    return keep_values(s, ret, err);
}

static size_t category_of(const struct dataset_column *c, const struct column_cell *cell)
{
    size_t low = 0, high = c->n_values;
    if (cell->missing)
        return c->n_values + 1;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = compare_text(c->values[mid], cell->s, cell->len);
        if (order == 0)
            return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return c->n_values;
}

static as_status date_of(const struct column_cell *cell, struct date *ret, struct as_err *err)
{
    if (date_parse(cell->s, cell->len, ret))
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "found '%.*s', expected a date, such as 2024-03-09 or 2024-03-09 15:04:05",
                   cell->len < 60 ? (int)cell->len : 60, cell->s);
}

/* The values of the n features from c on, which belong to one column of dates. */
static as_status date_values(const struct dataset_column *c, size_t n,
                             const struct column_cell *cell, float *ret, struct as_err *err)
{
    struct date d;
    as_status st = cell->missing ? AS_OK : date_of(cell, &d, err);
    for (size_t i = 0; st == AS_OK && i < n; i++) {
        float absent = c[i].part == DATASET_DAYS ? NAN : 0; /* 0: the middle of the cycle */
        ret[i] = cell->missing ? absent : date_number(&d, c[i].part, c[i].since);
    }
    return st;
}

static void text_values(size_t n, const struct column_cell *cell, float *ret)
{
    text_hash(cell->s, cell->missing ? 0 : cell->len, n, ret);
}

as_status column_value_of(const struct dataset_column *c, const struct column_cell *cell,
                          float *ret, struct as_err *err)
{
    if (c && c->part == DATASET_HASHED) {
        float all[DATASET_MAX_BUCKETS];
        text_values(c->n_parts, cell, all);
        *ret = all[c->index];
        return AS_OK;
    }
    if (c && c->part != DATASET_CELL)
        return date_values(c, 1, cell, ret, err);
    if (c && c->categorical) {
        *ret = (float)category_of(c, cell);
        return AS_OK;
    }
    if (cell->missing) {
        *ret = NAN;
        return AS_OK;
    }
    as_status st = check_number(cell, err);
    if (st != AS_OK)
        return st;
    *ret = (float)cell->number;
    return AS_OK;
}

as_status column_values_of(const struct dataset_column *c, const struct column_cell *cell,
                           float *ret, struct as_err *err)
{
    if (c && c->part == DATASET_HASHED) {
        text_values(c->n_parts, cell, ret);
        return AS_OK;
    }
    if (c && c->part != DATASET_CELL)
        return date_values(c, c->n_parts, cell, ret, err);
    return column_value_of(c, cell, ret, err);
}
