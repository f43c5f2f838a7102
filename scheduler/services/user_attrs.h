/* Values that people keep with a sweep or a trial, by name: Optuna's user attributes. They are
 * JSON, bounded, and may change at any time; nothing of the search depends on them. */
#ifndef ASSAY_SCHEDULER_SERVICES_USER_ATTRS_H
#define ASSAY_SCHEDULER_SERVICES_USER_ATTRS_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/store.h"

#define USER_ATTRS_MAX 64               /* of one trial or sweep */
#define USER_ATTR_NAME_MAX 128          /* characters */
#define USER_ATTR_VALUE_MAX (16 << 10)  /* bytes as JSON */
#define USER_ATTRS_BYTES_MAX (64 << 10) /* names and values */

/* Merge the patch into those of a trial, or of the sweep (number -1): null removes a name. *ret:
 * the JSON object that they are now. A repeat changes nothing. AS_E_INVAL: a name; AS_E_TOO_LARGE:
 * a value, or all of them: with the pointer of the field. AS_E_NOT_FOUND, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status user_attrs_change(struct store *db, struct arena *a, const char *sweep,
                                          int64_t number, const json_t *patch, const char **ret,
                                          struct as_err *err);

/* Those of one trial, or of the sweep (number -1). Errors as above. */
AS_MUST_CHECK as_status user_attrs_get(struct store *db, struct arena *a, const char *sweep,
                                       int64_t number, const char **ret, struct as_err *err);

/* Those of each trial of a page, into its `user_attrs`. */
AS_MUST_CHECK as_status user_attrs_of_page(struct store *db, struct arena *a, const char *sweep,
                                           struct trial_page *page, struct as_err *err);

#endif
