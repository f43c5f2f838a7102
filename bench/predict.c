/* Helper of predict.py.
 *   predict make FILE ROWS COLUMNS   write a table of random numbers and a target of two classes
 *   predict read FILE                read it with data/formats/csv.h and nothing else: the seconds
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/formats/csv.h"

static int make(const char *path, size_t rows, size_t columns)
{
    struct rng r;
    FILE *f = fopen(path, "w");
    rng_init(&r, 1, 12);
    if (!f)
        return 1;
    for (size_t c = 0; c < columns; c++)
        (void)fprintf(f, "x%zu,", c);
    (void)fputs("y\n", f);
    for (size_t i = 0; i < rows; i++) {
        double sum = 0, x[2];
        for (size_t c = 0; c < columns; c++) {
            if (c % 2 == 0)
                rng_normals(&r, x, 2);
            sum += c < 5 ? x[c % 2] : 0;
            (void)fprintf(f, "%.5f,", x[c % 2]);
        }
        (void)fputs(sum > 0 ? "yes\n" : "no\n", f);
    }
    return fclose(f) != 0;
}

static int read_table(const char *path)
{
    AS_AUTO(csv_freep) struct csv *csv = NULL;
    struct as_err err = {0};
    struct csv_row row;
    size_t rows = 0;
    int64_t start = clock_mono_ns();
    as_status st = csv_open(path, CSV_HEADER_YES, &csv, &err);
    while (st == AS_OK && (st = csv_next(csv, &row, &err)) == AS_OK)
        rows++;
    if (st != AS_E_EXHAUSTED)
        return fprintf(stderr, "%s\n", err.msg), 1;
    printf("{\"rows\": %zu, \"seconds\": %.6f}\n", rows,
           (double)(clock_mono_ns() - start) / (double)NS_PER_S);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t rows = 0, columns = 0;
    if (argc == 3 && as_streq(argv[1], "read"))
        return read_table(argv[2]);
    if (argc == 5 && as_streq(argv[1], "make") && as_parse_i64(argv[3], &rows, NULL) == AS_OK &&
        as_parse_i64(argv[4], &columns, NULL) == AS_OK && rows > 0 && columns > 0)
        return make(argv[2], (size_t)rows, (size_t)columns);
    return fprintf(stderr, "usage: predict make FILE ROWS COLUMNS | predict read FILE\n"), 2;
}
