/* As test_cut.c: csv.h finds where records begin, and lines are copied as they are. */
#include "cli/files/row_sample.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/formats/csv.h"

#define SEED 1

struct sample {
    FILE *in, *out;
    char *line; /* of getline() */
    size_t cap, line_no;
};

static void sample_done(struct sample *s)
{
    if (s->out)
        (void)fclose(s->out);
    if (s->in)
        (void)fclose(s->in);
    free(s->line);
}

static as_status open_files(struct sample *s, const char *path, int fd, struct as_err *err)
{
    unsigned char magic[2] = {0};
    s->in = fopen(path, "re");
    if (!s->in)
        return as_fail(err, AS_E_IO, "%.200s cannot be read", path);
    if (fread(magic, 1, 2, s->in) == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "%.200s is packed with gzip: unpack it, so that a part of it can be taken",
                       path);
    rewind(s->in);
    int own = dup(fd);
    s->out = own < 0 ? NULL : fdopen(own, "w");
    if (!s->out && own >= 0)
        (void)close(own);
    return s->out ? AS_OK : as_fail(err, AS_E_IO, "a temporary file cannot be written");
}

/* Read the lines before line `end` (0: all), and copy them if they are taken. */
static as_status pass_lines(struct sample *s, size_t end, bool taken, struct as_err *err)
{
    while (end == 0 || s->line_no + 1 < end) {
        ssize_t n = getline(&s->line, &s->cap, s->in);
        if (n < 0)
            break;
        s->line_no++;
        if (taken && fwrite(s->line, 1, (size_t)n, s->out) != (size_t)n)
            return as_fail(err, AS_E_IO, "a temporary file cannot be written");
    }
    return ferror(s->in) ? as_fail(err, AS_E_IO, "the table cannot be read") : AS_OK;
}

as_status row_sample_file(const char *path, const struct csv_dialect *dialect, double share, int fd,
                          size_t *ret, struct as_err *err)
{
    AS_AUTO(sample_done) struct sample s = {0};
    AS_AUTO(csv_freep) struct csv *csv = NULL;
    struct csv_row row;
    struct rng draws;
    size_t kept = 0;
    bool taken = true; /* what stands before the first row */
    rng_init(&draws, SEED, 0);
    as_status st = open_files(&s, path, fd, err);
    if (st == AS_OK)
        st = csv_open_as(path, dialect, CSV_HEADER_AUTO, &csv, err);
    if (st != AS_OK)
        return st;
    while ((st = csv_next(csv, &row, err)) == AS_OK) {
        st = pass_lines(&s, row.line, taken, err);
        if (st != AS_OK)
            return st;
        taken = rng_uniform(&draws) < share;
        kept += taken;
    }
    if (st != AS_E_EXHAUSTED)
        return as_err_prefix(err, st, "%.120s", path);
    st = pass_lines(&s, 0, taken, err);
    if (st == AS_OK && fflush(s.out) != 0)
        st = as_fail(err, AS_E_IO, "a temporary file cannot be written");
    if (st == AS_OK)
        *ret = kept;
    return st;
}
