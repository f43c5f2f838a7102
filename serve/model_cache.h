/* The models that are served, by name: sources put versions here, requests take them.
 *
 * A new version is put in the place of the old one in one step. Requests that took the old one keep
 * it until they end, so none is lost, and each is answered by one version. */
#ifndef ASSAY_SERVE_MODEL_CACHE_H
#define ASSAY_SERVE_MODEL_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"
#include "serve/served.h"
#include "serve/stats.h"

struct model_cache;

/* AS_E_NOMEM. `opts` is for served_load(). */
AS_MUST_CHECK as_status model_cache_create(const struct served_options *opts,
                                           struct model_cache **ret, struct as_err *err);
void model_cache_free(struct model_cache *s);
AS_DEFINE_FREEP(struct model_cache, model_cache_free)

/* A name that must have a version before the program is ready. AS_E_INVAL: the name is taken, or is
 * none ([A-Za-z0-9][A-Za-z0-9._-]{0,63}); AS_E_NOMEM. */
AS_MUST_CHECK as_status model_cache_expect(struct model_cache *s, const char *name,
                                           struct as_err *err);

/* Load a model file and serve it under the name from now on, in the place of the version that is
 * there. Takes what *image holds. Logs what it does; a failure is counted and changes nothing.
 * Errors as served_load(). */
AS_MUST_CHECK as_status model_cache_load(struct model_cache *s, const char *name,
                                         const char *version, struct file_image *image,
                                         struct as_err *err);
/* Count and log that a version of `name` could not be had. */
void model_cache_failed(struct model_cache *s, const char *name, const char *what,
                        const struct as_err *err);
/* Serve the name no longer. */
void model_cache_remove(struct model_cache *s, const char *name);

/* The version that is served under the name; a reference for the caller, or NULL. *ret_known: the
 * name is expected or was served. */
struct served *model_cache_take(struct model_cache *s, const char *name, bool *ret_known);

/* Does every expected name have a version? */
bool model_cache_is_ready(struct model_cache *s);

/* The figures of all names, for /metrics. */
void model_cache_write_stats(struct model_cache *s, struct str *out);

#endif
