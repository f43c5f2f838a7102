/* A cache of data sets and checkpoints by digest, on disk. All runners of one host and user share
 * it.
 *
 * DIR/ab/abcdef… holds the blob whose SHA-256 is abcdef…. A file is renamed into its place after
 * its digest was checked, so a file in the cache is always complete. Above the size limit the least
 * recently used files are removed first; the mtime of a file is the time of its last use. A trial
 * gets a hard link to a data set, so that eviction cannot take a file away from it, and a copy of a
 * checkpoint, which it will change. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_CACHE_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_CACHE_H

#include <stdbool.h>

#include "api/client/client.h"
#include "base/str.h"

/* Make the blob available at `dest`: a hard link if the file system allows it, else a copy. Fetch
 * it if it is not in the cache, then shrink the cache to max_bytes (0: no limit). Errors as
 * client_download_blob. */
AS_MUST_CHECK as_status cache_get(const char *cache_dir, int64_t max_bytes, struct client *c,
                                  const char *sha256, int64_t size, const char *dest,
                                  const struct client_opts *opts, struct as_err *err);

/* Keep a checkpoint: the file `path`, which nobody changes any more, and whose digest is `sha256`.
 * It may be kept as a hard link, and is readable by this user alone then. Then shrink the cache.
 * AS_E_INVAL: sha256 is not a digest; AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status cache_keep(const char *cache_dir, int64_t max_bytes, const char *sha256,
                                   const char *path, struct as_err *err);
/* Copy a checkpoint to `dest`, if it is in the cache and has this digest; else it is removed from
 * there, and *ret_found is false. AS_E_INVAL, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status cache_copy(const char *cache_dir, const char *sha256, const char *dest,
                                   bool *ret_found, struct as_err *err);

/* Append to `ret` the path of the decoded copy (data/dataset.h) of the data set with digest
 * `sha256`. The trainer writes the copy, so the file may not exist yet; its folder is created. The
 * cache treats it like its other files. AS_E_INVAL: sha256 is not a digest; AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status cache_decoded_path(const char *cache_dir, const char *sha256,
                                           struct str *ret, struct as_err *err);

/* Remove the least recently used files until at most max_bytes are left. Files with unknown names
 * stay; temporary files older than a day are removed. */
void cache_shrink(const char *cache_dir, int64_t max_bytes);

#endif
