/* Reads measurements from a CSV file as it grows: a header, then a row for each measurement.
 *
 *   epoch,val_loss,note
 *   0,0.52,
 *   1,0.48,"best, so far"
 *
 * The column `step` has the step, or the one that the reader is given; a row without it has the
 * step after that of the row before, and the first has 0. A cell with a number is a metric of the
 * column's name (metric_name_from), an empty cell is absent, another text is a note. Cells may be
 * quoted as in RFC 4180. The separator is a comma, or, if the header has none, a semicolon or a
 * tab. A row that repeats the header is skipped. Pure: bytes in, measurements out. */
#ifndef ASSAY_TRIAL_RUNNER_REPORTS_CSV_READER_H
#define ASSAY_TRIAL_RUNNER_REPORTS_CSV_READER_H

#include "base/str.h"
#include "trial-runner/reports/measured.h"

#define CSV_MAX_ROW (64 << 10) /* bytes */
#define CSV_MAX_COLUMNS 4096
#define CSV_MAX_KNOWN 200000 /* rows that are recognised after a restart */

struct csv_reader {
    const char *step_column; /* borrowed; NULL: "step", if the file has it */
    struct str row;          /* the row being read */
    bool in_quotes, skipping;
    json_t *columns; /* names as in the header; NULL: it was not read yet */
    char separator;
    size_t step_at; /* column of the step; CSV_MAX_COLUMNS: none */
    size_t line;    /* rows ended so far, with the header */
    int64_t next_step;
    uint64_t *known; /* what the rows since the beginning were, as digests with their header */
    size_t n_known, at_known, cap_known;
    uint64_t header;
};

void csv_reader_done(struct csv_reader *r);

/* Read more bytes. A last row without a newline is kept until the rest comes. AS_E_NOMEM, or the
 * status of on_item and on_note. */
AS_MUST_CHECK as_status csv_reader_feed(struct csv_reader *r, const char *bytes, size_t len,
                                        const struct report_fns *fns, struct as_err *err);

/* The file has ended: a last row without a newline counts. */
AS_MUST_CHECK as_status csv_reader_end(struct csv_reader *r, const struct report_fns *fns,
                                       struct as_err *err);

/* The file was truncated or replaced: the next bytes are its beginning. Rows that are the same as
 * before under the same header are passed on no more, because some programs write the whole file
 * again for each row. */
void csv_reader_restart(struct csv_reader *r);

#endif
