/* A data set whose rows stay in a file, for who holds only some of them in memory: its decoded copy
 * (dataset_decoded.h), mapped. Pages that were read are the kernel's to drop.
 *
 * A copy that is not there is made row by row, so that no process ever has all rows in memory: the
 * files are read twice for that, once to see how values are stored. Without a path for it, or where
 * it cannot be written, the copy is a nameless file in $TMPDIR (else /tmp). */
#ifndef ASSAY_DATA_DATASET_MAP_H
#define ASSAY_DATA_DATASET_MAP_H

#include "data/dataset.h"
#include "base/mem.h"
#include "base/status.h"

struct dataset_map {
    /* All rows. x, or bytes where every value is a whole number from 0 to 255 (in tables too):
     * views of the file, not to be written. labels, targets: copies, until dataset_map_forget(). */
    struct dataset set;
    const unsigned char *pages; /* the file */
    size_t size;
    size_t labels_at, targets_at; /* offsets in it */
};

/* info is that of the files. ret: dataset_map_close(); untouched on failure. AS_E_UNSUPPORTED: text
 * and tokens; AS_E_IO: no room for the copy; else as dataset_load(). */
AS_MUST_CHECK as_status dataset_map_open(const struct dataset_paths *paths,
                                         const struct dataset_info *info, struct dataset_map *ret,
                                         struct as_err *err);
void dataset_map_close(struct dataset_map *m); /* a zeroed one is fine */

/* Free the copies, and the memory of pages that were read. */
void dataset_map_forget(struct dataset_map *m);

/* Copy n >= 1 rows, in this order, as dataset_load_bytes() would have them.
 *   rows  [n] row numbers; borrowed
 *   ret   owned by the caller; untouched on failure
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_map_rows(const struct dataset_map *m,
                                         const struct dataset_info *info, const int32_t *rows,
                                         size_t n, struct dataset *ret, struct as_err *err);

#endif
