/* As test_cut.c: csv.h finds where records begin, and lines are copied as they are. */
#include "cli/files/row_sample.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/temp_file.h"
#include "cli/files/line_copy.h"
#include "data/formats/csv.h"

#define SEED 1

struct sample {
    struct line_copy lines;
    FILE *out;
};

static void sample_done(struct sample *s)
{
    if (s->out)
        (void)fclose(s->out);
    line_copy_done(&s->lines);
}

static as_status open_files(struct sample *s, const char *path, int fd, struct as_err *err)
{
    as_status st = line_copy_open(&s->lines, path, err);
    if (st != AS_OK)
        return st;
    s->out = line_copy_stream(fd);
    return s->out ? AS_OK : temp_file_fail(err);
}

as_status row_sample_file(const char *path, const struct csv_dialect *dialect, double share, int fd,
                          size_t *ret, struct as_err *err)
{
    AS_AUTO(sample_done) struct sample s = {0};
    AS_AUTO(csv_freep) struct csv *csv = NULL;
    struct csv_row row;
    struct rng draws;
    size_t kept = 0;
    bool taken = true; /* are lines copied? So is what stands before the first row */
    rng_init(&draws, SEED, 0);
    as_status st = open_files(&s, path, fd, err);
    if (st == AS_OK)
        st = csv_open_as(path, dialect, CSV_HEADER_AUTO, &csv, err);
    if (st != AS_OK)
        return st;
    while ((st = csv_next(csv, &row, err)) == AS_OK) {
        st = line_copy_until(&s.lines, row.line, &s.out, taken, err);
        if (st != AS_OK)
            return st;
        taken = rng_uniform(&draws) < share;
        kept += taken;
    }
    if (st != AS_E_EXHAUSTED)
        return as_err_prefix(err, st, "%.120s", path);
    st = line_copy_until(&s.lines, 0, &s.out, taken, err);
    if (st == AS_OK && fflush(s.out) != 0)
        st = temp_file_fail(err);
    if (st == AS_OK)
        *ret = kept;
    return st;
}
