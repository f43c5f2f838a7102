/* Models from files: those that are named, and those of a folder. Files are looked at every
 * `poll_ms`, and one that has changed and lies still since the last look is loaded in the place of
 * its old version. A damaged one changes nothing: the old version is served on, and the log says
 * why. Looking works on every file system, where notifications would miss changes of other
 * machines. */
#ifndef ASSAY_SERVE_SOURCE_FILES_H
#define ASSAY_SERVE_SOURCE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "serve/model_cache.h"

struct source_files;

/* AS_E_NOMEM. The cache is borrowed until source_files_free(). */
AS_MUST_CHECK as_status source_files_create(struct model_cache *cache, struct source_files **ret,
                                            struct as_err *err);

/* Serve the file at `path` as `name`. Loads it now: errors as model_cache_load(), and
 * AS_E_NOT_FOUND, AS_E_IO. */
AS_MUST_CHECK as_status source_files_add(struct source_files *s, const char *name, const char *path,
                                         struct as_err *err);

/* Serve the files NAME.safetensors of a folder, also those that come later; one that goes is served
 * no longer. Loads what is there now; a damaged file is logged. AS_E_IO: the folder cannot be read;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status source_files_add_folder(struct source_files *s, const char *path,
                                                struct as_err *err);

/* Begin to look. AS_E_NOMEM. */
AS_MUST_CHECK as_status source_files_start(struct source_files *s, int64_t poll_ms,
                                           struct as_err *err);
/* Ends the thread. NULL is fine. */
void source_files_free(struct source_files *s);

#endif
