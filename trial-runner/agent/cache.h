/* Content of data sets by digest, on disk, shared by all runners of one host and user.
 *
 * DIR/ab/abcdef… holds the blob whose SHA-256 is abcdef…. A file appears whole, by rename, after
 * its digest was checked. Past the size limit the files used longest ago go first; the time of last
 * use is the file's mtime. A trial gets a hard link, so that eviction cannot take a file away from
 * it. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_CACHE_H
#define ASSAY_TRIAL_RUNNER_AGENT_CACHE_H

#include "api/client/client.h"
#include "base/str.h"

/* Make the blob available at `dest` (a hard link where the file system allows, a copy elsewhere),
 * fetching it when the cache lacks it. Then shrink the cache to max_bytes (0: no limit).
 * Errors as client_download_blob. */
AS_MUST_CHECK as_status cache_get(const char *cache_dir, int64_t max_bytes, struct client *c,
                                  const char *sha256, int64_t size, const char *dest,
                                  const struct client_opts *opts, struct as_err *err);

/* Where the trainer keeps the decoded copy of a data set (data/dataset.h), whose digest is
 * `sha256`: a file of the cache like the others, which may not be there yet; its folder is made.
 * AS_E_INVAL: no digest; AS_E_IO, AS_E_NOMEM. `ret` is appended to. */
AS_MUST_CHECK as_status cache_decoded_path(const char *cache_dir, const char *sha256,
                                           struct str *ret, struct as_err *err);

/* Remove what was used longest ago until at most max_bytes are left. Unknown files are left alone;
 * temporaries older than a day go. */
void cache_shrink(const char *cache_dir, int64_t max_bytes);

#endif
