/* NAME=VALUE arguments of the command line: parameters and metrics. */
#ifndef ASSAY_CLI_FILES_PARAM_ARGS_H
#define ASSAY_CLI_FILES_PARAM_ARGS_H

#include <jansson.h>

#include "base/opt.h"
#include "base/status.h"

/* Add one metric, "val_error=0.031" (also NaN, Infinity, inf), to an object of metrics. AS_E_USAGE
 * for a wrong value or a name that is already in the object; AS_E_NOMEM. */
AS_MUST_CHECK as_status param_args_add_metric(json_t *metrics, const char *text,
                                              struct as_err *err);

/* Add one parameter. The value is read as YAML: 0.1, 64, true, adamw, "64" for the text. A list or
 * an object is refused. */
AS_MUST_CHECK as_status param_args_add_param(json_t *params, const char *text, struct as_err *err);

/* Add one limit of a sweep, "max_trials=200", "wall_time=6h", "max_failed_trials=none" (JSON null:
 * remove it). "limits.max_trials=200" is the same. AS_E_USAGE: no such limit, or it is given
 * twice. The server checks the value. */
AS_MUST_CHECK as_status param_args_add_limit(json_t *limits, const char *text, struct as_err *err);

/* Read all values of an option, or n arguments, with `add`. `name` ("--param") is put before
 * errors. *ret is a new object, owned by the caller. */
typedef as_status (*param_args_fn)(json_t *object, const char *text, struct as_err *err);
AS_MUST_CHECK as_status param_args_read(const char *name, const char *const *texts, size_t n,
                                        param_args_fn add, json_t **ret, struct as_err *err);

/* Parse a number, also NaN and infinities. Returns false if `text` is not a number. */
bool param_args_number(const char *text, double *ret);

#endif
