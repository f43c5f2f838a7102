/* A file that another program writes, read as it grows. No descriptor is kept between reads. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_FOLLOW_H
#define ASSAY_TRIAL_RUNNER_COLLECT_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/status.h"

#define FOLLOW_HEAD 256
#define FOLLOW_LAST 64

struct follow {
    bool seen;        /* it was there once */
    struct stat held; /* when it was read last */
    int64_t offset;   /* read so far */
    int64_t old;      /* bytes that were there before the program started */
    char head[FOLLOW_HEAD], last[FOLLOW_LAST]; /* its first bytes, and those before offset */
    size_t n_head, n_last;
};

struct follow_fns {
    /* The next bytes. `is_old`: they were there before the program started. */
    as_status (*feed)(void *arg, const char *bytes, size_t len, bool is_old, struct as_err *err);
    /* It was cut, replaced or written again: the next bytes are its beginning. */
    void (*restart)(void *arg);
    void *arg;
};

/* Open `path` below the folder `dir` for reading, never through a link that leads out of it. Owned
 * by the caller; -1: errno says why, and EXDEV or ELOOP that it leads out. */
int follow_open(int dir, const char *path);

/* What is at `path` below the folder `dir` now was there before the program started. */
void follow_mark_old(struct follow *f, int dir, const char *path);

/* Read what is new. A file that is not there yet is no error. A link that leads out of the folder
 * `dir` is not followed. AS_E_INVAL: it is no regular file, or leads out of the folder. AS_E_IO,
 * AS_E_NOMEM, or the status of feed. */
AS_MUST_CHECK as_status follow_read(struct follow *f, int dir, const char *path,
                                    const struct follow_fns *fns, struct as_err *err);

#endif
