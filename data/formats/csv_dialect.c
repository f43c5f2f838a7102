/* Finding the separator and the decimal sign of a CSV table.
 *
 * The first records are cut with each candidate, as csv.c would do it. A separator cuts every
 * record of a table into equally many cells, and a character of the cells' text seldom does. Where
 * two do (cells such as "3,14;2,5" without a header), the right one leaves numbers and the wrong
 * one text.
 *
 * A comma between digits may separate thousands, so a decimal comma is assumed only where cells are
 * separated by ';', and only from cells in which it cannot: "3,14", "0,896", "1234,567". So may a
 * point beside such commas. */
#include "data/formats/csv_dialect.h"

#include <string.h>

#include "base/mem.h"
#include "data/formats/csv_cell.h"
#include "data/formats/written_number.h"

#define MAX_RECORDS 64
#define N_CANDIDATES 4

static const char candidates[N_CANDIDATES] = {',', '\t', ';', '|'};

/* What cutting the records with one candidate gives. */
struct tally {
    size_t first; /* cells of the first record */
    bool even;    /* all records have as many */
    size_t cells, text;
    size_t commas; /* "3,14" and "0,141", not "3,141" */
    size_t points; /* "3.14", not "3.141" */
};

static size_t digits_of(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

/* Is the cell a number with the given sign between its digits? *ret_at is the index of the sign;
 * *ret_grouped: it may be one between thousands, as in "3,141". */
static bool is_decimal(const char *s, size_t len, char sign, size_t *ret_at, bool *ret_grouped)
{
    size_t at = 0, behind;
    while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
        len--;
    while (at < len && (s[at] == ' ' || s[at] == '\t'))
        at++;
    at += at < len && (s[at] == '-' || s[at] == '+');
    size_t before = digits_of(s + at, len - at);
    at += before;
    if (at == len || s[at] != sign)
        return false;
    *ret_at = at++;
    behind = digits_of(s + at, len - at);
    if (before + behind == 0)
        return false;
    at += behind;
    *ret_grouped =
        behind == 3 && at == len && before >= 1 && before <= 3 && s[*ret_at - before] != '0';
    if (at < len && (s[at] == 'e' || s[at] == 'E')) {
        at++;
        at += at < len && (s[at] == '-' || s[at] == '+');
        size_t power = digits_of(s + at, len - at);
        at += power ? power : len + 1;
    }
    return at == len;
}

size_t csv_dialect_point(char *cell, size_t len)
{
    char plain[WRITTEN_NUMBER_MAX];
    size_t at, n;
    uint32_t sign = 0;
    bool grouped;
    if (is_decimal(cell, len, ',', &at, &grouped)) {
        cell[at] = '.';
        return len;
    }
    if (len == 0 || !strchr(" \t+-0123456789", *cell))
        return len;
    n = written_number(cell, len, ',', plain, &sign);
    if (n == 0 || sign != 0)
        return len;
    memcpy(cell, plain, n + 1); /* it is never longer */
    return n;
}

static void tally_cell(struct tally *t, const char *s, size_t len)
{
    size_t at;
    bool grouped = false;
    double number;
    bool quoted = len >= 2 && s[0] == '"' && s[len - 1] == '"';
    const struct csv_cell cell = {s + quoted, len - 2 * (size_t)quoted};
    bool comma = is_decimal(cell.s, cell.len, ',', &at, &grouped);
    t->commas += comma && !grouped;
    bool point = is_decimal(cell.s, cell.len, '.', &at, &grouped);
    t->points += point && !grouped;
    t->text += !comma && csv_cell_kind(&cell, &number) == CSV_TEXT;
    t->cells++;
}

static void tally_record(struct tally *t, const char *s, size_t len, char separator)
{
    size_t n = 0, start = 0;
    bool quoted = false;
    for (size_t i = 0; i <= len; i++) {
        quoted = quoted != (i < len && s[i] == '"');
        if (i < len && (quoted || s[i] != separator))
            continue;
        tally_cell(t, s + start, i - start);
        start = i + 1;
        n++;
    }
    if (t->first == 0)
        t->first = n;
    t->even = t->even && n == t->first;
}

/* The length of the record at s with its line end; 0: it is cut off. */
static size_t record_length(const char *s, size_t len, bool whole, bool comment)
{
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"' && !comment)
            quoted = !quoted;
        else if (s[i] == '\n' && !quoted)
            return i + 1;
    }
    return whole ? len : 0;
}

static void tally_records(const char *s, size_t len, bool whole, char comment,
                          struct tally t[N_CANDIDATES])
{
    size_t records = 0, n;
    for (; len && records < MAX_RECORDS; s += n, len -= n) {
        bool skip = comment && *s == comment;
        n = record_length(s, len, whole, skip);
        size_t end = n;
        while (end && (s[end - 1] == '\n' || s[end - 1] == '\r'))
            end--;
        if (n == 0)
            return;
        if (skip || end == 0)
            continue;
        for (size_t k = 0; k < N_CANDIDATES; k++)
            tally_record(&t[k], s, end, candidates[k]);
        records++;
    }
}

static size_t choose(const struct tally t[N_CANDIDATES])
{
    size_t best = N_CANDIDATES;
    for (size_t k = 0; k < N_CANDIDATES; k++)
        if (t[k].even && t[k].first > 1 &&
            (best == N_CANDIDATES || t[k].text * t[best].cells < t[best].text * t[k].cells))
            best = k;
    if (best < N_CANDIDATES)
        return best;
    best = 0;
    for (size_t k = 1; t[0].first <= 1 && k < N_CANDIDATES; k++)
        if (t[k].first > t[best].first)
            best = k;
    return best;
}

static size_t index_of(char separator)
{
    for (size_t k = 0; k < N_CANDIDATES; k++)
        if (candidates[k] == separator)
            return k;
    return N_CANDIDATES;
}

void csv_dialect_find(const char *bytes, size_t len, bool whole, struct csv_dialect *d)
{
    struct tally t[N_CANDIDATES] = {0};
    if (d->separator && d->decimal)
        return;
    for (size_t k = 0; k < N_CANDIDATES; k++)
        t[k].even = true;
    tally_records(bytes, len, whole, d->comment, t);
    size_t k = d->separator ? index_of(d->separator) : choose(t);
    if (!d->separator)
        d->separator = candidates[k];
    if (!d->decimal)
        d->decimal = d->separator == ';' && t[k].commas && !t[k].points ? ',' : '.';
}

const char *csv_separator_name(char separator)
{
    static const struct {
        char separator;
        const char *name;
    } names[] = {{',', "','"}, {'\t', "a tab"}, {';', "';'"}, {'|', "'|'"},
                 {':', "':'"}, {'^', "'^'"},    {'~', "'~'"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if (names[i].separator == separator)
            return names[i].name;
    return "another separator";
}
