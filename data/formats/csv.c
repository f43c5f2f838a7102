/* CSV records, split in place.
 *
 * The buffer holds the record that is read and the bytes behind it. Splitting changes the buffer:
 * it removes quotes, and a NUL replaces the separator after each cell. So no cell is copied. A
 * record that the end of the buffer cuts is searched again after more was read; nothing is changed
 * before the end of the record is known.
 *
 * The header is detected from the first two records. Splitting has then changed the buffer, so
 * open_table() opens the file a second time for the actual reading.
 */
#include "data/formats/csv.h"

#include <stdio.h>
#include <string.h>

#include "data/formats/foreign_format.h"
#include "data/formats/source.h"
#include "base/str.h"

#define FIRST_BUFFER ((size_t)1 << 18)
#define SAMPLE ((size_t)1 << 16) /* bytes from which the dialect is found */
#define FOUND_MAX 60             /* bytes of a cell shown in a message */

struct csv {
    struct source *in; /* NULL: all bytes are in the buffer */
    struct csv_dialect dialect;
    char *buf;
    size_t cap, len, at; /* buf[at..len) is unread */
    bool eof;
    size_t line; /* of buf[at] */
    struct csv_cell *cells;
    size_t cells_cap;
    size_t n_columns;
    bool has_header;
    char **names;  /* n_columns, owned; NULL for a block */
    bool borrowed; /* buf is the caller's */
};

void csv_free(struct csv *c)
{
    if (!c)
        return;
    source_free(c->in);
    for (size_t i = 0; c->names && i < c->n_columns; i++)
        free(c->names[i]);
    free(c->names);
    free(c->cells);
    if (!c->borrowed)
        free(c->buf);
    free(c);
}

/* Read more bytes to buf + len; grow the buffer if it is full. One byte stays free for a NUL. */
static as_status fill_buffer(struct csv *c, struct as_err *err)
{
    if (c->len + 1 >= c->cap) {
        size_t cap = c->cap * 2;
        if (cap > 2 * CSV_MAX_RECORD)
            return as_fail(err, AS_E_TOO_LARGE, "line %zu: a record is longer than %zu bytes",
                           c->line, CSV_MAX_RECORD);
        as_status st = as_grow(&c->buf, cap, 1, err);
        if (st < 0)
            return st;
        c->cap = cap;
    }
    size_t n = 0;
    as_status st = source_read(c->in, c->buf + c->len, c->cap - c->len - 1, &n, err);
    if (st < 0)
        return as_err_prefix(err, st, "line %zu", c->line);
    c->len += n;
    c->eof = n == 0;
    return AS_OK;
}

/* Move the unread bytes to the front, and read more behind them. */
static as_status read_more(struct csv *c, struct as_err *err)
{
    memmove(c->buf, c->buf + c->at, c->len - c->at);
    c->len -= c->at;
    c->at = 0;
    return fill_buffer(c, err);
}

/* The length of the record at buf[at] with its line end; 0 when the record is not yet complete. */
static size_t record_length(const struct csv *c, bool *open_quote)
{
    bool quoted = false;
    const char *p = c->buf + c->at, *end = c->buf + c->len;
    const char *line_end = memchr(p, '\n', (size_t)(end - p));
    if (line_end && !memchr(p, '"', (size_t)(line_end - p))) /* most records */
        return (size_t)(line_end - p) + 1;
    for (; p < end; p++) {
        if (*p == '"')
            quoted = !quoted; /* a doubled quote closes and opens again */
        else if (*p == '\n' && !quoted)
            return (size_t)(p - (c->buf + c->at)) + 1;
    }
    *open_quote = quoted;
    return 0;
}

/* Bring one whole record into the buffer; *ret_len 0 at the end of the file. */
static as_status find_record(struct csv *c, size_t *ret_len, struct as_err *err)
{
    for (;;) {
        bool open_quote = false;
        size_t n = record_length(c, &open_quote);
        size_t left = c->len - c->at;
        if (n == 0 && c->eof && open_quote)
            return as_fail(err, AS_E_INVAL, "line %zu: a quoted cell is not closed", c->line);
        if (n == 0 && c->eof)
            n = left;
        if (n > CSV_MAX_RECORD || (n == 0 && left > CSV_MAX_RECORD))
            return as_fail(err, AS_E_TOO_LARGE, "line %zu: a record is longer than %zu bytes",
                           c->line, CSV_MAX_RECORD);
        if (n || c->eof) {
            *ret_len = n;
            return AS_OK;
        }
        as_status st = read_more(c, err);
        if (st < 0)
            return st;
    }
}

static as_status add_cell(struct csv *c, size_t n, char *s, size_t len, struct as_err *err)
{
    if (n >= CSV_MAX_COLUMNS)
        return as_fail(err, AS_E_TOO_LARGE, "line %zu has more than %zu cells", c->line,
                       CSV_MAX_COLUMNS);
    if (n >= c->cells_cap) { /* once for a table, so the call is not made for each cell */
        as_status st = as_reserve_one(&c->cells, n, &c->cells_cap, sizeof *c->cells, err);
        if (st != AS_OK)
            return st;
    }
    c->cells[n] = (struct csv_cell){s, len};
    return AS_OK;
}

/* Remove the quotes of the quoted cell at s (its opening quote), in place. Returns the length of
 * the cell; *ret_next is behind its closing quote. */
static size_t unquote_cell(char *s, const char *end, char **ret_next)
{
    char *out = s, *p = s + 1;
    while (p < end) {
        if (*p == '"' && !(p + 1 < end && p[1] == '"'))
            break;
        p += *p == '"';
        *out++ = *p++;
    }
    *ret_next = p < end ? p + 1 : p;
    return (size_t)(out - s);
}

static as_status fail_text(const struct csv *c, const char *p, size_t len, struct as_err *err)
{
    if (memchr(p, '\0', len))
        return as_fail(err, AS_E_INVAL,
                       "line %zu has a NUL byte, expected text: the file is damaged, or no table "
                       "(tr -d '\\0' removes such bytes)",
                       c->line);
    return as_fail(err, AS_E_INVAL,
                   "line %zu is not valid UTF-8 text; if the file is in Windows-1252 or Latin-1, "
                   "convert it: iconv -f WINDOWS-1252 -t UTF-8",
                   c->line);
}

/* Split buf[at .. at+len) into cells and step over it. */
static as_status split_record(struct csv *c, size_t len, struct csv_row *ret, struct as_err *err)
{
    char *p = c->buf + c->at, *end = p + len;
    const char separator = c->dialect.separator;
    size_t lines = 0, n = 0;
    for (const char *q = p; q < end; q++)
        lines += *q == '\n';
    if (!as_utf8_valid(p, len))
        return fail_text(c, p, len, err);
    if (end > p && end[-1] == '\n')
        end--;
    if (end > p && end[-1] == '\r')
        end--;
    for (bool more = true; more; n++) {
        char *cell = p;
        size_t cell_len;
        if (p < end && *p == '"') {
            cell_len = unquote_cell(p, end, &p);
            if (p < end && *p != separator)
                return as_fail(err, AS_E_INVAL,
                               "line %zu, cell %zu: text follows the closing quote", c->line,
                               n + 1);
        } else {
            while (p < end && *p != separator && *p != '"')
                p++;
            if (p < end && *p == '"')
                return as_fail(err, AS_E_INVAL,
                               "line %zu, cell %zu: a quote inside a cell that is not quoted",
                               c->line, n + 1);
            cell_len = (size_t)(p - cell);
        }
        more = p < end;
        cell[cell_len] = 0; /* overwrites the separator, a quote, the line end or the spare byte */
        if (c->dialect.decimal == ',')
            cell_len = csv_dialect_point(cell, cell_len);
        as_status st = add_cell(c, n, cell, cell_len, err);
        if (st < 0)
            return st;
        p++;
    }
    *ret = (struct csv_row){.line = c->line, .n_cells = n, .cells = c->cells};
    c->line += lines;
    c->at += len;
    return AS_OK;
}

static bool is_blank(const char *s, size_t len)
{
    return len == 0 || (len == 1 && (s[0] == '\n' || s[0] == '\r')) ||
           (len == 2 && s[0] == '\r' && s[1] == '\n');
}

/* Step over the lines from here on that are comments. A quote in them means nothing, so they end at
 * the first line end. They may be longer than the buffer. */
static as_status skip_comments(struct csv *c, struct as_err *err)
{
    bool inside = false;
    while (c->dialect.comment) {
        char *end = memchr(c->buf + c->at, '\n', c->len - c->at);
        if (!inside && c->at < c->len && c->buf[c->at] != c->dialect.comment)
            return AS_OK;
        inside = inside || c->at < c->len;
        if (end) {
            c->at = (size_t)(end - c->buf) + 1;
            c->line++;
            inside = false;
            continue;
        }
        c->at = inside ? c->len : c->at;
        if (c->eof)
            return AS_OK;
        as_status st = read_more(c, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status next_record(struct csv *c, struct csv_row *ret, struct as_err *err)
{
    for (;;) {
        size_t len = 0;
        as_status st = skip_comments(c, err);
        if (st < 0)
            return st;
        st = find_record(c, &len, err);
        if (st < 0)
            return st;
        if (len == 0)
            return AS_E_EXHAUSTED;
        if (!is_blank(c->buf + c->at, len))
            return split_record(c, len, ret, err);
        c->at += len;
        c->line++;
    }
}

as_status csv_next(struct csv *c, struct csv_row *ret, struct as_err *err)
{
    as_status st = next_record(c, ret, err);
    if (st != AS_OK)
        return st;
    if (ret->n_cells != c->n_columns)
        return as_fail(err, AS_E_INVAL, "line %zu has %zu cell%s, expected %zu", ret->line,
                       ret->n_cells, ret->n_cells == 1 ? "" : "s", c->n_columns);
    return AS_OK;
}

/* Are the numbers of a record 0, 1, 2 … or 1, 2, 3 …? Then a program generated them as names. Fewer
 * than four may be data. */
static bool counts_columns(const struct csv_row *row)
{
    double v, base = 0;
    size_t n = 0;
    for (size_t i = 0; i < row->n_cells; i++) {
        if (csv_cell_kind(&row->cells[i], &v) != CSV_NUMBER)
            continue;
        if (n == 0)
            base = v;
        if (v != base + (double)n++)
            return false;
    }
    return n >= 4 && (base == 0 || base == 1);
}

static bool looks_like_header(const csv_kind *first, size_t n, const struct csv_row *second)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        double v;
        bool text = first[i] == CSV_TEXT;
        any = any || text;
        if (second && text && i < second->n_cells &&
            csv_cell_kind(&second->cells[i], &v) == CSV_NUMBER)
            return true;
    }
    return !second && any;
}

static as_status take_names(struct csv *c, const struct csv_row *row, struct as_err *err)
{
    c->n_columns = row->n_cells;
    c->names = as_calloc(c->n_columns, sizeof *c->names);
    for (size_t i = 0; c->names && i < c->n_columns; i++)
        if (!(c->names[i] = as_strdup(row->cells[i].s)))
            return as_fail(err, AS_E_NOMEM, "out of memory for column names");
    return c->names ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory for column names");
}

static as_status number_names(struct csv *c, struct as_err *err)
{
    for (size_t i = 0; i < c->n_columns; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%zu", i);
        free(c->names[i]);
        if (!(c->names[i] = as_strdup(name)))
            return as_fail(err, AS_E_NOMEM, "out of memory for column names");
    }
    return AS_OK;
}

/* Where a table is. */
struct place {
    const char *path;  /* a file, or NULL: */
    const char *bytes; /* len bytes in memory */
    size_t len;
    struct csv_dialect dialect;
};

/* Step over a byte order mark. Files of other formats are refused by their first bytes. */
static as_status check_mark(struct csv *c, struct as_err *err)
{
    const char *p = c->buf, *advice;
    const char *foreign = foreign_format(p, c->len, &advice);
    if (foreign)
        return as_fail(err, AS_E_UNSUPPORTED, "found %s, expected a CSV table: %s", foreign,
                       advice);
    if (c->len >= 2 && (memcmp(p, "\xff\xfe", 2) == 0 || memcmp(p, "\xfe\xff", 2) == 0))
        return as_fail(err, AS_E_UNSUPPORTED,
                       "the table is text in UTF-16 (its first bytes say so), expected UTF-8; "
                       "convert it: iconv -f UTF-16 -t UTF-8");
    if (c->len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        c->at = 3;
    return AS_OK;
}

/* "sep=;" in the first line is for Excel alone: it would be the name of the only column. */
static as_status check_excel(const struct csv *c, struct as_err *err)
{
    const char *p = c->buf + c->at;
    size_t len = c->len - c->at;
    if (len < 6 || memcmp(p, "sep=", 4) != 0 || !strchr("\r\n", p[5]))
        return AS_OK;
    return as_fail(
        err, AS_E_INVAL,
        "line 1 is 'sep=%c', which Excel writes for itself: delete the line (tail -n +2)", p[4]);
}

/* A reader at the first record (behind a byte order mark) that does not know its columns yet. */
static as_status open_place(const struct place *src, struct csv **ret, struct as_err *err)
{
    AS_AUTO(csv_freep) struct csv *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    *c = (struct csv){.line = 1, .cap = src->path ? FIRST_BUFFER : src->len + 1};
    c->dialect = src->dialect;
    c->buf = as_calloc(c->cap, 1);
    if (!c->buf)
        return as_fail_nomem(err);
    as_status st = src->path ? source_open(src->path, true, &c->in, err) : AS_OK;
    if (src->path) {
        while (st == AS_OK && c->len < SAMPLE && !c->eof)
            st = fill_buffer(c, err);
    } else {
        if (src->len)
            memcpy(c->buf, src->bytes, src->len);
        c->len = src->len;
        c->eof = true;
    }
    if (st == AS_OK)
        st = check_mark(c, err);
    if (st == AS_OK)
        st = check_excel(c, err);
    if (st < 0)
        return st;
    csv_dialect_find(c->buf + c->at, c->len - c->at, c->eof, &c->dialect);
    *ret = as_steal(c);
    return AS_OK;
}

/* A table with another separator would be read as one column, or as one long record. Report the
 * obvious cases. */
static as_status check_dialect(const struct csv *c, const struct csv_row *row, struct as_err *err)
{
    const struct csv_cell *first = &row->cells[0];
    const char *other = ",;\t";
    for (; row->n_cells == 1 && *other; other++)
        if (memchr(first->s, *other, first->len))
            return as_fail(
                err, AS_E_INVAL, "line %zu: found %s, expected %s between cells (--separator %s)",
                row->line, csv_separator_name(*other), csv_separator_name(c->dialect.separator),
                *other == '\t'  ? "tab"
                : *other == ';' ? "';'"
                                : ",");
    for (size_t i = 0; i < row->n_cells; i++) {
        const char *cr = memchr(row->cells[i].s, '\r', row->cells[i].len);
        if (cr && cr[1] != '\n')
            return as_fail(err, AS_E_INVAL,
                           "line %zu: found a carriage return in a cell, expected "
                           "lines that end with LF or CRLF",
                           row->line);
    }
    return AS_OK;
}

/* Decide from the first two records whether there is a header; c->names are those of the first. */
static as_status detect_header(struct csv *c, csv_header header, struct as_err *err)
{
    struct csv_row row;
    as_status st = next_record(c, &row, err);
    if (st < 0)
        return st == AS_E_EXHAUSTED ? as_fail(err, AS_E_INVAL, "the table is empty") : st;
    st = check_dialect(c, &row, err);
    if (st != AS_OK)
        return st;
    st = take_names(c, &row, err);
    if (st != AS_OK)
        return st;
    bool counts = counts_columns(&row);
    AS_AUTO(as_freep) csv_kind *kinds = as_calloc(row.n_cells, sizeof *kinds);
    if (!kinds)
        return as_fail_nomem(err);
    for (size_t i = 0; i < row.n_cells; i++) {
        double v;
        kinds[i] = csv_cell_kind(&row.cells[i], &v);
    }
    st = next_record(c, &row, err);
    if (st < 0 && st != AS_E_EXHAUSTED)
        return st;
    const struct csv_row *second = st == AS_OK ? &row : NULL;
    c->has_header = header == CSV_HEADER_AUTO ? looks_like_header(kinds, c->n_columns, second) ||
                                                    (counts && second && !counts_columns(second))
                                              : header == CSV_HEADER_YES;
    return c->has_header ? AS_OK : number_names(c, err);
}

/* Splitting changes the buffer, so a separate reader reads the two records for the header. */
static as_status open_table(const struct place *src, csv_header header, struct csv **ret,
                            struct as_err *err)
{
    AS_AUTO(csv_freep) struct csv *first = NULL;
    AS_AUTO(csv_freep) struct csv *c = NULL;
    as_status st = open_place(src, &first, err);
    if (st != AS_OK)
        return st;
    st = detect_header(first, header, err);
    if (st != AS_OK)
        return st;
    st = open_place(src, &c, err);
    if (st != AS_OK)
        return st;
    c->n_columns = first->n_columns;
    c->has_header = first->has_header;
    c->names = as_steal(first->names);
    if (c->has_header) {
        struct csv_row row;
        st = csv_next(c, &row, err);
        if (st < 0)
            return st == AS_E_EXHAUSTED ? as_fail(err, AS_E_IO, "the table changed while read")
                                        : st;
    }
    *ret = as_steal(c);
    return AS_OK;
}

static const struct csv_dialect commas = {.separator = ',', .decimal = '.'};

as_status csv_open(const char *path, csv_header header, struct csv **ret, struct as_err *err)
{
    return csv_open_as(path, &commas, header, ret, err);
}

as_status csv_open_bytes(const char *bytes, size_t len, csv_header header, struct csv **ret,
                         struct as_err *err)
{
    return csv_open_bytes_as(bytes, len, &commas, header, ret, err);
}

as_status csv_open_as(const char *path, const struct csv_dialect *dialect, csv_header header,
                      struct csv **ret, struct as_err *err)
{
    return open_table(&(struct place){.path = path, .dialect = *dialect}, header, ret, err);
}

as_status csv_open_bytes_as(const char *bytes, size_t len, const struct csv_dialect *dialect,
                            csv_header header, struct csv **ret, struct as_err *err)
{
    return open_table(&(struct place){.bytes = bytes, .len = len, .dialect = *dialect}, header, ret,
                      err);
}

struct csv_dialect csv_dialect_of(const struct csv *c)
{
    return c->dialect;
}

as_status csv_open_block(const struct csv *like, char *bytes, size_t len, size_t line,
                         struct csv **ret, struct as_err *err)
{
    struct csv *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    *c = (struct csv){.buf = bytes,
                      .cap = len + 1,
                      .len = len,
                      .eof = true,
                      .line = line,
                      .n_columns = like->n_columns,
                      .dialect = like->dialect,
                      .borrowed = true};
    *ret = c;
    return AS_OK;
}

bool csv_has_header(const struct csv *c)
{
    return c->has_header;
}

size_t csv_columns(const struct csv *c)
{
    return c->n_columns;
}

const char *csv_column_name(const struct csv *c, size_t column)
{
    return c->names[column];
}

as_status csv_number(const struct csv *c, const struct csv_row *row, size_t column, double *ret,
                     struct as_err *err)
{
    const struct csv_cell *cell = &row->cells[column];
    switch (csv_cell_kind(cell, ret)) {
    case CSV_NUMBER:
        return AS_OK;
    case CSV_EMPTY:
        return as_fail(err, AS_E_INVAL,
                       "column '%.80s', line %zu: the cell is empty, expected a number",
                       c->names[column], row->line);
    case CSV_NOT_FINITE:
        return as_fail(err, AS_E_INVAL,
                       "column '%.80s', line %zu: found '%.*s', expected a finite number",
                       c->names[column], row->line, FOUND_MAX, cell->s);
    case CSV_TEXT:
        break;
    }
    return as_fail(err, AS_E_INVAL, "column '%.80s', line %zu: found '%.*s', expected a number",
                   c->names[column], row->line, FOUND_MAX, cell->s);
}
