/* Which variables of the environment are the service's own, and how they are kept from others.
 *
 * One rule decides it, for every program: names that begin with ASSAY_, AWS_, S3_ or PG are the
 * service's (credentials, or where the service and its database are), but for a list of settings of
 * the trainer. So a variable that a later version adds is the service's without a word. */
#ifndef ASSAY_BASE_ENVIRONMENT_H
#define ASSAY_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* "NAME=value" or "NAME". No trial sees these variables, unless its document sets them. */
bool environment_is_private(const char *pair);

/* The first thing in main(), before there are threads: move the private variables out of the block
 * that /proc/PID/environ shows, and overwrite them there. getenv() and children find them as
 * before. AS_E_NOMEM. */
AS_MUST_CHECK as_status environment_hide(struct as_err *err);

/* Remove the private variables that `keeps` does not want from this process's environment. */
void environment_drop_private(bool (*keeps)(const char *pair));

/* Has the pair one of the names? */
bool environment_has_name(const char *pair, const char *const *names, size_t n_names);

#endif
