/* The data folder of `assay up`: its place, its lock, its files. */
#ifndef ASSAY_CLI_UP_DATA_FOLDER_H
#define ASSAY_CLI_UP_DATA_FOLDER_H

#include "base/status.h"

struct data_folder {
    char *path; /* absolute; all owned */
    char *admin_token;
    char *runner_token;
    char *address; /* where assayd writes its URL */
    char *notes;   /* leftover.h */
    char *logs;
    int lock_fd;
};

/* Make (or find) the folder and lock it for this process. `path` NULL: $XDG_DATA_HOME/assay;
 * without the variable ~/.local/share/assay, for root /var/lib/assay. AS_E_CONFLICT: another assay
 * up holds the lock; the message has its pid and URL. AS_E_IO. */
AS_MUST_CHECK as_status data_folder_open(struct data_folder *f, const char *path,
                                         struct as_err *err);
void data_folder_close(struct data_folder *f);

/* Write pid and URL into the lock file, for the message of AS_E_CONFLICT. */
void data_folder_publish(const struct data_folder *f, const char *url);

/* Rename older logs to NAME.log.1 … NAME.log.3 and return the path LOGS/NAME.log. Owned by the
 * caller, NULL when memory is out. */
char *data_folder_new_log(const struct data_folder *f, const char *name);

#endif
