/* What one `assay up` is: its options and what it has started so far. */
#ifndef ASSAY_CLI_UP_H
#define ASSAY_CLI_UP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cli/up/cluster.h"
#include "cli/up/data_folder.h"
#include "cli/up/supervisor.h"

#define UP_MAX_RUNNERS 64

struct up {
    /* options; views of argv */
    const char *data, *listen, *database, *ready_file, *lease, *heartbeat, *public_host;
    int64_t port, runners, slots;
    bool insecure_http, help;
    /* what runs */
    struct up_folder folder;
    struct up_cluster cluster;
    struct supervisor *supervisor;
    char *assayd, *runner;                                       /* programs; owned */
    char *ready_path;                                            /* owned, absolute */
    char url[300];                                               /* where we reach it; "" before */
    int database_index, assayd_index, first_runner, last_runner; /* in the supervisor; -1: none */
};

/* Settle u->port: one that was not chosen and is taken gives way to a free one (0). AS_E_CONFLICT:
 * the chosen port is taken. */
AS_MUST_CHECK as_status up_server_choose_port(struct up *u, struct as_err *err);

/* Start assayd and wait until it has its address; u->url is set. AS_E_UNAVAILABLE: the database
 * cannot be reached, or a stop was asked for; AS_E_IO: it does not start (the end of its log is
 * said). */
AS_MUST_CHECK as_status up_server_start(struct up *u, struct as_err *err);

/* Start the runners and wait until the server knows them all as live. As above. */
AS_MUST_CHECK as_status up_runners_start(struct up *u, struct as_err *err);

#endif
