/* CSV tables: whatever is read keeps its promises: the same number of cells in each row, cells that
 * end in NUL, numbers that are finite, written numbers whose plain form is a number. Read under
 * both meanings of the first record, and as whatever dialect its first records show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/csv.h"
#include "data/formats/written_number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct csv_cell *cell, char decimal)
{
    char plain[WRITTEN_NUMBER_MAX];
    uint32_t sign;
    double v;
    struct csv_cell number = {.s = plain};
    number.len = written_number(cell->s, cell->len, decimal, plain, &sign);
    if (number.len == 0)
        return;
    if (number.len > cell->len || strlen(plain) != number.len ||
        csv_cell_kind(&number, &v) != CSV_NUMBER)
        abort();
}

static void read_table(const char *bytes, size_t size, const struct csv_dialect *dialect,
                       csv_header header)
{
    struct as_err err;
    struct csv_row row;
    AS_AUTO(csv_freep) struct csv *c = NULL;
    if (csv_open_bytes_as(bytes, size, dialect, header, &c, &err) < 0)
        return;
    size_t last_line = 0;
    while (csv_next(c, &row, &err) == AS_OK) {
        if (row.n_cells != csv_columns(c) || row.line <= last_line)
            abort();
        last_line = row.line;
        for (size_t i = 0; i < row.n_cells; i++) {
            double v;
            if (strlen(row.cells[i].s) != row.cells[i].len)
                abort();
            check_written(&row.cells[i], '.');
            check_written(&row.cells[i], ',');
            if (csv_number(c, &row, i, &v, &err) == AS_OK && !isfinite(v))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct csv_dialect commas = {',', 0, '.'}, found = {0, '#', 0};
    read_table((const char *)data, size, &commas, CSV_HEADER_AUTO);
    read_table((const char *)data, size, &commas, CSV_HEADER_NO);
    read_table((const char *)data, size, &found, CSV_HEADER_AUTO);
    return 0;
}
