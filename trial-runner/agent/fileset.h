/* The files below a folder, as the API speaks of them: relative path, size, digest.
 *
 * Only regular files; links are not followed; names that match *.tmp* are passed over, so that a
 * trial may write to a temporary name and rename. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_FILESET_H
#define ASSAY_TRIAL_RUNNER_AGENT_FILESET_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"

#define FILESET_MAX_FILES 1000
#define FILESET_MAX_FILE_BYTES (INT64_C(4) << 30)
#define FILESET_MAX_DEPTH 16

struct fileset_file {
    char *path; /* relative; owned */
    int64_t size, mtime_ns;
    ino_t inode;
    char sha256[SHA256_HEX_SIZE]; /* "" until it is known */
};

struct fileset {
    struct fileset_file *files; /* by path */
    size_t n, cap;
};

void fileset_done(struct fileset *s);

/* What is passed over and why, for the trial's log. */
typedef void (*fileset_skip_fn)(void *arg, const char *path, const char *why);

/* List the folder. s must be zeroed. A folder that is not there is empty. Files past the limits are
 * passed over and told to skip (may be NULL). AS_E_INVAL when `dir` is not a folder that may be
 * read; AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status fileset_scan(const char *dir, struct fileset *s, fileset_skip_fn skip,
                                     void *arg, struct as_err *err);

/* Make the files durable. AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status fileset_sync(const struct fileset *s, const char *dir, struct as_err *err);

/* Same paths, sizes, times and inodes? */
bool fileset_same(const struct fileset *a, const struct fileset *b);

/* Fill the digests in s that `known` has for an unchanged file. */
void fileset_copy_digests(struct fileset *s, const struct fileset *known);

/* The body of putFiles: {"kind": kind, "files": […]} of the files whose digest is known. New
 * reference; NULL when memory is out. */
json_t *fileset_to_json(const struct fileset *s, const char *kind);

#endif
