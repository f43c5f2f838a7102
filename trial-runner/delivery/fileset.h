/* The files below a folder, as the API describes them: relative path, size, digest.
 *
 * Only regular files count, and links are not followed. Names that match *.tmp* are skipped, so
 * that a trial may write to a temporary name and rename it. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_FILESET_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_FILESET_H

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
    char sha256[SHA256_HEX_SIZE]; /* "": not known yet */
};

struct fileset {
    struct fileset_file *files; /* sorted by path */
    size_t n, cap;
};

void fileset_done(struct fileset *s);

/* Called for each file that is skipped, with the reason, for the trial's log. */
typedef void (*fileset_skip_fn)(void *arg, const char *path, const char *why);

/* List the files below a folder. s must be zeroed. A folder that does not exist is empty. Files
 * beyond the limits are left out and passed to skip, which may be NULL. AS_E_INVAL: `dir` is not a
 * folder that this process may read; AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status fileset_scan(const char *dir, struct fileset *s, fileset_skip_fn skip,
                                     void *arg, struct as_err *err);

/* Make the files durable. AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status fileset_sync(const struct fileset *s, const char *dir, struct as_err *err);

/* Do both sets have the same paths, sizes, times and inodes? */
bool fileset_same(const struct fileset *a, const struct fileset *b);

/* Copy digests from `known` to s for the files that have not changed. */
void fileset_copy_digests(struct fileset *s, const struct fileset *known);

/* Returns the body of putFiles, {"kind": kind, "files": […]}, with the files whose digest is known:
 * a new reference, or NULL if memory is out. */
json_t *fileset_to_json(const struct fileset *s, const char *kind);

#endif
