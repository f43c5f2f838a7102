/* Keeps a list on disk, so that it can be read several times without being in memory: the columns
 * of a table depend on all its rows. The file is in $TMPDIR and has no name. */
#ifndef ASSAY_CLI_SESSION_DISK_LIST_H
#define ASSAY_CLI_SESSION_DISK_LIST_H

#include <jansson.h>
#include <stdio.h>

#include "base/status.h"
#include "cli/session/request.h"

struct disk_list {
    FILE *f;
    size_t n; /* items */
};

/* AS_E_IO. Release it in every case; zeroed: nothing to release. */
AS_MUST_CHECK as_status disk_list_open(struct disk_list *s, struct as_err *err);
void disk_list_done(struct disk_list *s);

/* Append items; borrowed. AS_E_IO (disk full), AS_E_NOMEM. */
AS_MUST_CHECK as_status disk_list_add(struct disk_list *s, const json_t *items, struct as_err *err);

/* Call page() with a few items at a time, from the first. AS_E_IO, AS_E_NOMEM, and what page()
 * returns. */
AS_MUST_CHECK as_status disk_list_pages(struct disk_list *s, request_page_fn page, void *arg,
                                        struct as_err *err);

#endif
