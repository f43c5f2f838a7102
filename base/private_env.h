/* Which variables of the environment are the service's own, and how they are kept from others.
 *
 * One rule decides it, for every program: names that begin with ASSAY_, AWS_, S3_ or PG are the
 * service's (credentials, or where the service and its database are), but for a list of settings of
 * the trainer. So a variable that a later version adds is the service's without a word. */
#ifndef ASSAY_BASE_PRIVATE_ENV_H
#define ASSAY_BASE_PRIVATE_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* "NAME=value" or "NAME". No trial sees these variables, unless its document sets them. */
bool private_env_is(const char *pair);

/* The first thing in main(), before there are threads: move the private variables out of the block
 * that /proc/PID/environ shows, and overwrite them there. getenv() and children find them as
 * before. AS_E_NOMEM. */
AS_MUST_CHECK as_status private_env_hide(struct as_err *err);

/* Remove the private variables that `keeps` does not want from this process's environment. */
void private_env_drop(bool (*keeps)(const char *pair));

/* Has the pair one of the names? */
bool private_env_has_name(const char *pair, const char *const *names, size_t n_names);

#endif
