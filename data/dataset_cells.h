/* The text of one column of a table. */
#ifndef ASSAY_DATA_DATASET_CELLS_H
#define ASSAY_DATA_DATASET_CELLS_H

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

/* The cells of one column as they are in the file, without the blanks around them; numbers that are
 * written with signs, where the options say so (`numeric`), in their plain form. A zeroed struct
 * is empty; dataset_cells_done() frees. */
struct dataset_cells {
    size_t n;     /* rows */
    size_t *at;   /* [n]: where the text of a row begins in `text` */
    char *text;   /* the texts, each with its NUL; a missing cell is "" */
    size_t bytes; /* of `text` */
};

void dataset_cells_done(struct dataset_cells *c);

static inline const char *dataset_cell(const struct dataset_cells *c, size_t row)
{
    return c->text + c->at[row];
}

/* Append the cell of the next row. AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_cells_add(struct dataset_cells *c, const char *s, size_t len,
                                          struct as_err *err);

#endif
