/* The state of one `assay up`: its options and the processes that it has started. */
#ifndef ASSAY_CLI_UP_UP_H
#define ASSAY_CLI_UP_UP_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/up/cluster.h"
#include "cli/up/data_folder.h"
#include "cli/up/supervisor.h"
#include "cli/up/trial_user.h"

#define UP_MAX_RUNNERS 64

struct up {
    /* options; views of argv */
    const char *data, *listen, *database, *ready_file, *lease, *heartbeat, *public_host,
        *trial_user;
    int64_t port, runners, slots;
    bool insecure_http, help;
    /* the running processes */
    struct data_folder folder;
    struct cluster cluster;
    struct trial_user trials;
    struct supervisor *supervisor;
    char *assayd, *runner; /* programs; owned */
    char *ready_path;      /* owned, absolute */
    char url[300];         /* of assayd, for this machine; "": unknown */
    int database_index, assayd_index, first_runner, last_runner; /* in the supervisor; -1: none */
};

#endif
