/* CSV in pieces of any size.
 *
 * A row is collected until a newline that stands outside of quotes, then it is cut into cells. A
 * row that is too long is skipped up to its end; its quotes are followed, so that the next row
 * begins where it should. A quote that is never closed would make one row of the rest of the file:
 * such a row is given up at CSV_MAX_ROW, and reading goes on at the next newline. */
#include "trial-runner/reports/csv_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/fnv.h"
#include "base/json.h"

#define NO_COLUMN CSV_MAX_COLUMNS

void csv_reader_done(struct csv_reader *r)
{
    str_done(&r->row);
    json_decref(r->columns);
    free(r->known);
}

void csv_reader_restart(struct csv_reader *r)
{
    str_clear(&r->row);
    json_decref(r->columns);
    r->columns = NULL;
    r->in_quotes = r->skipping = false;
    r->line = r->at_known = 0;
    r->next_step = 0;
}

/* ---- cells ---- */

/* Cut the next cell off *row, whose end is `end`. Returns false after the last one. */
static bool next_cell(const char **row, const char *end, char separator, bool *more,
                      struct str *cell)
{
    const char *p = *row;
    if (!*more)
        return false;
    str_clear(cell);
    while (p < end && (*p == ' ' || (*p == '\t' && separator != '\t')))
        p++;
    if (p < end && *p == '"') {
        for (p++; p < end; p++) {
            if (*p == '"' && p + 1 < end && p[1] == '"')
                p++;
            else if (*p == '"')
                break;
            str_putc(cell, *p);
        }
        while (p < end && *p != separator)
            p++;
    } else {
        const char *to = memchr(p, separator, (size_t)(end - p));
        to = to ? to : end;
        size_t n = (size_t)(to - p);
        while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
            n--;
        str_add(cell, p, n);
        p = to;
    }
    *more = p < end;
    *row = *more ? p + 1 : p;
    return true;
}

static char separator_of(const char *header)
{
    return strchr(header, ',')    ? ','
           : strchr(header, ';')  ? ';'
           : strchr(header, '\t') ? '\t'
                                  : ',';
}

static as_status take_header(struct csv_reader *r, const char *row, size_t len,
                             const struct report_fns *fns, struct as_err *err)
{
    AS_AUTO(str_done) struct str cell = {0};
    JSON_AUTO columns = json_array();
    const char *end = row + len;
    bool more = true;
    size_t step_at = NO_COLUMN;
    r->separator = separator_of(row);
    while (columns && json_array_size(columns) < CSV_MAX_COLUMNS &&
           next_cell(&row, end, r->separator, &more, &cell)) {
        char name[METRIC_NAME_MAX + 1];
        if (as_streq(str_cstr(&cell), r->step_column ? r->step_column : "step"))
            step_at = json_array_size(columns);
        metric_name_from(str_cstr(&cell), name);
        if (cell.failed || json_array_append_new(columns, json_string(cell.len ? name : "")) < 0)
            return as_fail_nomem(err);
    }
    if (!columns)
        return as_fail_nomem(err);
    if (r->step_column && step_at == NO_COLUMN) {
        char why[400];
        (void)snprintf(why, sizeof why, "the header has no column '%.255s', steps are counted",
                       r->step_column);
        fns->on_bad(fns->arg, r->line, why);
    }
    r->step_at = step_at;
    r->columns = as_steal(columns);
    return AS_OK;
}

/* ---- rows ---- */

struct row {
    int64_t step;
    json_t *metrics; /* owned by the caller */
};

static void note_bad_step(const struct csv_reader *r, const char *found,
                          const struct report_fns *fns)
{
    char why[160];
    (void)snprintf(why, sizeof why, "the step must be a whole number >= 0, found '%.80s'", found);
    fns->on_bad(fns->arg, r->line, why);
}

static as_status take_cell(const struct csv_reader *r, size_t column, const struct str *cell,
                           struct row *row, const struct report_fns *fns, struct as_err *err)
{
    const char *name = json_string_value(json_array_get(r->columns, column));
    const char *text = str_cstr(cell);
    double v;
    if (cell->failed)
        return as_fail_nomem(err);
    if (cell->len == 0 || !name)
        return AS_OK;
    if (column == r->step_at) {
        if (!report_step(text, cell->len, &row->step))
            note_bad_step(r, text, fns);
        return AS_OK;
    }
    if (!*name) /* pandas writes its index under an empty name */
        return AS_OK;
    if (report_number(text, cell->len, &v))
        return json_object_size(row->metrics) < REPORT_MAX_METRICS
                   ? report_put(row->metrics, name, v, err)
                   : AS_OK;
    if (!fns->on_note)
        return AS_OK;
    char note[REPORT_MAX_NOTE + 1];
    report_note_text(text, cell->len, note);
    return fns->on_note(fns->arg, name, note, err);
}

/* Was this row, at its place under its header, passed on before the file began again? Remembers
 * it. */
static bool is_known(struct csv_reader *r, const char *row, size_t len)
{
    uint64_t h = fnv64(r->header, row, len);
    if (r->at_known < r->n_known && r->known[r->at_known] == h) {
        r->at_known++;
        return true;
    }
    r->n_known = r->at_known;
    if (r->n_known == CSV_MAX_KNOWN)
        return false;
    if (r->n_known == r->cap_known) {
        size_t cap = r->cap_known ? 2 * r->cap_known : 64;
        if (as_grow(&r->known, cap, sizeof *r->known, NULL) < 0)
            return false;
        r->cap_known = cap;
    }
    r->known[r->n_known++] = h;
    r->at_known = r->n_known;
    return false;
}

static as_status take_row(struct csv_reader *r, const char *row, size_t len,
                          const struct report_fns *fns, struct as_err *err)
{
    AS_AUTO(str_done) struct str cell = {0};
    JSON_AUTO metrics = json_object();
    struct row taken = {.step = r->next_step, .metrics = metrics};
    const char *at = row, *end = row + len;
    bool more = true;
    if (!metrics)
        return as_fail_nomem(err);
    for (size_t i = 0; next_cell(&at, end, r->separator, &more, &cell); i++) {
        as_status st = take_cell(r, i, &cell, &taken, fns, err);
        if (st < 0)
            return st;
    }
    r->next_step = taken.step < REPORT_MAX_STEP ? taken.step + 1 : taken.step;
    if (is_known(r, row, len) || json_object_size(metrics) == 0)
        return AS_OK;
    return fns->on_item(fns->arg, taken.step, as_steal(metrics), err);
}

/* Handle the row in r->row, which has ended. */
static as_status take_ended(struct csv_reader *r, const struct report_fns *fns, struct as_err *err)
{
    const char *row = str_cstr(&r->row);
    size_t len = r->row.len;
    as_status st = AS_OK;
    r->line++;
    r->in_quotes = false;
    if (r->skipping) {
        r->skipping = false;
        fns->on_bad(fns->arg, r->line, "the row is too long");
        str_clear(&r->row);
        return AS_OK;
    }
    if (r->line == 1 && len >= 3 && memcmp(row, "\xEF\xBB\xBF", 3) == 0) {
        row += 3;
        len -= 3;
    }
    while (len && (row[len - 1] == '\r' || row[len - 1] == ' '))
        len--;
    uint64_t h = fnv64(FNV64_BASIS, row, len);
    if (len == 0) {
        /* an empty line */
    } else if (memchr(row, '\0', len)) {
        fns->on_bad(fns->arg, r->line, "the row has a NUL byte");
    } else if (!r->columns) {
        r->header = h;
        st = take_header(r, row, len, fns, err);
    } else if (h != r->header) {
        st = take_row(r, row, len, fns, err);
    }
    str_clear(&r->row);
    return st;
}

/* May a quote stand here? Inside a text (5" disks) it is a character like others; after another
 * quote it is the second of a doubled one. */
static bool may_open(const struct str *row)
{
    return row->len == 0 || strchr(",;\t \"", row->s[row->len - 1]);
}

as_status csv_reader_feed(struct csv_reader *r, const char *bytes, size_t len,
                          const struct report_fns *fns, struct as_err *err)
{
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (c == '"')
            r->in_quotes = !r->in_quotes && !r->skipping && may_open(&r->row);
        if (c == '\n' && !r->in_quotes) {
            as_status st = take_ended(r, fns, err);
            if (st < 0)
                return st;
            continue;
        }
        if (r->row.len >= CSV_MAX_ROW) {
            r->skipping = true;
            r->in_quotes = false;
            str_clear(&r->row);
        }
        if (!r->skipping)
            str_putc(&r->row, c);
    }
    return str_check(&r->row, err);
}

as_status csv_reader_end(struct csv_reader *r, const struct report_fns *fns, struct as_err *err)
{
    if (r->row.len == 0 && !r->skipping)
        return AS_OK;
    return take_ended(r, fns, err);
}
