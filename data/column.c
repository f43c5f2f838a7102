/* Scans of the feature columns of a CSV table.
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

#include "data/target.h"
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

void column_scan_done(struct column_scan *s)
{
    for (size_t i = 0; i < s->n_values; i++)
        free(s->values[i].text);
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
    if (s->n_values == DATASET_MAX_CATEGORIES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "its cells are text, such as '%s' in line %zu, and there are more than %zu "
                       "different ones: an identifier, a free text, or a typing error among "
                       "numbers? Remove the column, or correct it",
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

as_status column_scan_end(struct column_scan *s, size_t n_rows, struct dataset_column *ret,
                          struct as_err *err)
{
    size_t present = n_rows - s->n_missing;
    ret->n_missing = s->n_missing;
    ret->categorical = s->n_text > 0;
    if (!ret->categorical)
        return s->any_bad ? as_fail(err, AS_E_INVAL, "%s", s->bad_number.msg) : AS_OK;
    if (s->n_values == present && present > 1)
        return as_fail(err, AS_E_INVAL,
                       "line %zu: found '%s', and every row has another text: an identifier, or a "
                       "typing error among numbers? Remove the column, or correct it",
                       s->text_line, s->text);
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

as_status column_value_of(const struct dataset_column *c, const struct column_cell *cell,
                          float *ret, struct as_err *err)
{
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
