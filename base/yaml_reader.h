/* YAML (libyaml) to a JSON tree: the sweep document as people write it, and the OpenAPI document.
 *
 * The core schema of YAML 1.2: null, true/false, integers, floats (.nan and .inf are refused), else
 * strings. Quoted scalars are strings. Anchors and aliases are allowed within JSON_MAX_NODES;
 * duplicate keys, several documents and tags are refused. */
#ifndef ASSAY_BASE_YAML_READER_H
#define ASSAY_BASE_YAML_READER_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

/* Owned by the caller. AS_E_INVAL with line and column; AS_E_TOO_LARGE; AS_E_NOMEM. */
AS_MUST_CHECK as_status yaml_parse(const char *text, size_t len, json_t **ret, struct as_err *err);

/* Where the field that a JSON pointer names stands in a text that yaml_parse accepts (JSON too):
 * line and column from 1, of its key, or of the item in a list. When its last parts are not there,
 * the deepest part that is. AS_E_NOT_FOUND when not even the first part is; AS_E_INVAL; AS_E_NOMEM.
 */
AS_MUST_CHECK as_status yaml_locate(const char *text, size_t len, const char *pointer,
                                    size_t *ret_line, size_t *ret_column, struct as_err *err);

#endif
