/* A CSV table as blocks of whole records: one thread cuts the stream, others split and convert
 * (csv_open_block). The table is read once, so it may be a pipe, and it may be packed by gzip. The
 * memory is that of a block, which grows for a record that is longer (CSV_MAX_RECORD). */
#ifndef ASSAY_DATA_FORMATS_CSV_BLOCKS_H
#define ASSAY_DATA_FORMATS_CSV_BLOCKS_H

#include "data/formats/csv.h"
#include "data/formats/source.h"

#define CSV_BLOCK ((size_t)1 << 18) /* bytes of a block, when its records are shorter */

/* A zeroed struct is an empty block. It keeps its memory from one csv_blocks_next() to the next. */
struct csv_block {
    char *bytes; /* [len + 1] */
    size_t len, cap;
    size_t line; /* the number of its first line */
};

void csv_block_done(struct csv_block *b);

struct csv_blocks;

/* Takes `source`, even on failure. `comment` is that of the table's dialect (csv_dialect.h): quotes
 * in such lines do not count. AS_E_NOMEM. */
AS_MUST_CHECK as_status csv_blocks_open(struct source *source, char comment,
                                        struct csv_blocks **ret, struct as_err *err);
void csv_blocks_free(struct csv_blocks *b);
AS_DEFINE_FREEP(struct csv_blocks, csv_blocks_free)

/* The next records, at least one; the last record may lack its line end. A byte order mark at the
 * start of the table is left out. AS_E_EXHAUSTED at the end (err untouched); AS_E_TOO_LARGE: a
 * record past CSV_MAX_RECORD; AS_E_INVAL: the stream is damaged; AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status csv_blocks_next(struct csv_blocks *b, struct csv_block *ret,
                                        struct as_err *err);

#endif
