/* Lists of names as JSON. */
#ifndef ASSAY_DATA_NAMES_JSON_H
#define ASSAY_DATA_NAMES_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

/* New reference; NULL when memory is out. */
json_t *names_json_new(char *const *names, size_t n);

/* Copy a list of strings. *ret is owned by the caller, also on failure; *ret_n, 0 before, then
 * counts the copies that were made. AS_E_INVAL with the pointer of the item; AS_E_NOMEM. */
AS_MUST_CHECK as_status names_json_read(const json_t *list, const char *pointer, char ***ret,
                                        size_t *ret_n, struct as_err *err);

#endif
