/* The private PostgreSQL cluster of `assay up`: its place, its user, its creation and its start. It
 * listens only on a Unix socket in a folder of mode 0700, so that only its own user and root can
 * reach it. Therefore it needs no password.
 *
 * PostgreSQL refuses to run as root. When `assay up` runs as root, the cluster belongs to the user
 * `postgres` (or `nobody` where there is none). The cluster is in DATA/postgres when that user can
 * enter DATA, else in /var/lib/assay/clusters/HASH. */
#ifndef ASSAY_CLI_UP_CLUSTER_H
#define ASSAY_CLI_UP_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/up/spawn.h"
#include "cli/up/supervisor.h"

struct cluster {
    struct system_user user;
    char *home;         /* owned; holds the cluster and its socket; belongs to `user` */
    char *pgdata;       /* owned; the folder of the cluster */
    char *socket;       /* owned; folder of the socket */
    char *bin;          /* owned; folder of initdb and postgres */
    char *url;          /* owned; connection string for assayd */
    char *log;          /* owned */
    int index;          /* of postgres in the supervisor */
    int64_t buffers_mb; /* shared_buffers; 0: by the machine's memory */
};

/* What buffers_mb may be. */
#define CLUSTER_BUFFERS_MIN_MB 1
#define CLUSTER_BUFFERS_MAX_MB 65536

void cluster_done(struct cluster *c);

/* Choose user, folders and programs, and make the cluster when there is none. `data` is absolute.
 * AS_E_NOT_FOUND: PostgreSQL (of the version of the cluster) is not installed; AS_E_DENIED: there
 * is no user to run it; AS_E_IO; AS_E_TIMEOUT; AS_E_UNAVAILABLE: a signal requested a stop. */
AS_MUST_CHECK as_status cluster_prepare(struct cluster *c, const char *data, const char *log,
                                        struct supervisor *s, struct as_err *err);

/* Start postgres and wait until it accepts connections. The errors of cluster_prepare(). */
AS_MUST_CHECK as_status cluster_start(struct cluster *c, struct supervisor *s, struct as_err *err);

/* Megabytes of shared_buffers for a machine with so much memory: a sixteenth, 32 to 512. */
int64_t cluster_buffers_mb(int64_t memory_mb);

/* The longest socket folder: sun_path holds 108 bytes with "/.s.PGSQL.5432" and a NUL. */
#define CLUSTER_SOCKET_FOLDER_MAX 90

#endif
