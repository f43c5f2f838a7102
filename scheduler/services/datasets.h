/* Data sets: names for uploaded content that was read and checked completely. */
#ifndef ASSAY_SCHEDULER_SERVICES_DATASETS_H
#define ASSAY_SCHEDULER_SERVICES_DATASETS_H

#include <jansson.h>

#include "base/arena.h"
#include "data/dataset.h"
#include "base/status.h"
#include "scheduler/rows/dataset_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/store/store.h"

/* Register a data set. `doc` is the API's DatasetCreate; borrowed. The content is copied from the
 * database into a temporary file and inspected. *ret_created is false if the same content is
 * already registered under this name. AS_E_INVAL with pointer: a field, or a fault of the content
 * (column and line). AS_E_UNSUPPORTED with pointer /files/…: that digest is not stored (the API
 * answers 422). AS_E_CONFLICT: the name holds other content. AS_E_TOO_LARGE, AS_E_IO,
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status dataset_create(struct store *db, struct arena *a, const json_t *doc,
                                       struct dataset_row *ret, bool *ret_created,
                                       struct as_err *err);

/* AS_E_NOT_FOUND, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status dataset_get(struct store *db, struct arena *a, const char *name,
                                    struct dataset_row *ret, struct as_err *err);

/* How its values are distributed, and its first rows: the DatasetPreview of the API as JSON in the
 * arena. The first request reads the content, which may take seconds; what it found is kept with
 * the data set. AS_E_NOT_FOUND, AS_E_IO, AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_preview(struct store *db, struct arena *a, const char *name,
                                        const char **ret, struct as_err *err);

/* In the order of names. AS_E_INVAL: the cursor. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status dataset_list(struct store *db, struct arena *a, const struct page_req *page,
                                     struct dataset_page *ret, struct as_err *err);

/* AS_E_NOT_FOUND. AS_E_CONFLICT: a sweep that has not ended uses it. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status dataset_delete(struct store *db, const char *name, struct as_err *err);

#endif
