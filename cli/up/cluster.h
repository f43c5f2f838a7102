/* The private PostgreSQL cluster of `assay up`: where it lives, as whom it runs, how it is made and
 * started. It listens on a Unix socket in a folder of mode 0700 and nowhere else, so that only its
 * own user (and root) can reach it; that is why it asks for no password.
 *
 * PostgreSQL refuses to run as root. When we are root the cluster belongs to the user `postgres`
 * (or `nobody` where there is none), and lies in DATA/postgres when that user can enter DATA, else
 * in /var/lib/assay/clusters/HASH. */
#ifndef ASSAY_CLI_UP_CLUSTER_H
#define ASSAY_CLI_UP_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/up/spawn.h"
#include "cli/up/supervisor.h"

struct cluster {
    struct system_user user;
    char *home;   /* owned; holds the cluster and its socket; belongs to `user` */
    char *pgdata; /* owned; the folder of the cluster */
    char *socket; /* owned; folder of the socket */
    char *bin;    /* owned; folder of initdb and postgres */
    char *url;    /* owned; connection string for assayd */
    char *log;    /* owned */
    int index;    /* of postgres in the supervisor */
};

void cluster_done(struct cluster *c);

/* Choose user, folders and programs, and make the cluster when there is none. `data` is absolute.
 * AS_E_NOT_FOUND: PostgreSQL (of the version that the cluster needs) is not installed; AS_E_DENIED:
 * no user to run it as; AS_E_IO; AS_E_TIMEOUT; AS_E_UNAVAILABLE: a stop was asked for. */
AS_MUST_CHECK as_status cluster_prepare(struct cluster *c, const char *data, const char *log,
                                        struct supervisor *s, struct as_err *err);

/* Start postgres and wait until it serves. As above. */
AS_MUST_CHECK as_status cluster_start(struct cluster *c, struct supervisor *s, struct as_err *err);

/* Megabytes of shared_buffers for a machine with so much memory: a sixteenth, 32 to 512. */
int64_t cluster_buffers_mb(int64_t memory_mb);

/* Has the file system of the folder less room than PostgreSQL needs to start? One that does not say
 * how large it is has room. */
bool cluster_disk_is_full(const char *folder);

/* The longest socket folder: sun_path holds 108 bytes with "/.s.PGSQL.5432" and a NUL. */
#define CLUSTER_SOCKET_FOLDER_MAX 90

#endif
