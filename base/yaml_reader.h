/* YAML (libyaml) to a JSON tree: for sweep documents that people write, and the OpenAPI document.
 *
 * Plain scalars have the types of YAML 1.2's core schema: null, true/false, integers, floats (.nan
 * and .inf are refused), else strings. Quoted scalars are strings. Anchors and aliases are allowed
 * up to JSON_MAX_NODES visited nodes; duplicate keys, several documents and tags are refused. */
#ifndef ASSAY_BASE_YAML_READER_H
#define ASSAY_BASE_YAML_READER_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

/* Owned by the caller. AS_E_INVAL with line and column; AS_E_TOO_LARGE; AS_E_NOMEM. */
AS_MUST_CHECK as_status yaml_parse(const char *text, size_t len, json_t **ret, struct as_err *err);

/* The line and column (from 1) of the field that a JSON pointer names, in a text that yaml_parse
 * accepts (JSON too): those of its key, or of the item of a list. If the field is not there, those
 * of the deepest parent that is. AS_E_NOT_FOUND if not even the first part of the pointer is there;
 * AS_E_INVAL; AS_E_NOMEM. */
AS_MUST_CHECK as_status yaml_locate(const char *text, size_t len, const char *pointer,
                                    size_t *ret_line, size_t *ret_column, struct as_err *err);

#endif
