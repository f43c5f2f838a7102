/* Finds PostgreSQL's server programs. */
#ifndef ASSAY_CLI_UP_POSTGRES_H
#define ASSAY_CLI_UP_POSTGRES_H

#include "base/status.h"

/* Find the folder with initdb and postgres: of the version in the cluster's PG_VERSION when the
 * cluster exists, else of the newest version from 14 on. Searches /usr/lib/postgresql/VERSION/bin
 * (Debian), /usr/pgsql-VERSION/bin (Red Hat) and the folder that pg_config prints. *ret is owned by
 * the caller. AS_E_NOT_FOUND: the message names the package to install. */
AS_MUST_CHECK as_status postgres_find(const char *cluster, char **ret, struct as_err *err);

#endif
