/* Finding PostgreSQL's server programs. */
#ifndef ASSAY_CLI_UP_POSTGRES_H
#define ASSAY_CLI_UP_POSTGRES_H

#include "base/status.h"

/* The folder with initdb and postgres: of the version in the cluster's PG_VERSION when the cluster
 * exists, else the newest from 14 on. Looked for in /usr/lib/postgresql/VERSION/bin (Debian),
 * /usr/pgsql-VERSION/bin (Red Hat) and what pg_config names. Owned by the caller.
 * AS_E_NOT_FOUND says what to install. */
AS_MUST_CHECK as_status postgres_find(const char *cluster, char **ret, struct as_err *err);

#endif
