/* Models from a server's registry: each name is looked up every `poll_ms`, and when its alias means
 * another version, that one is downloaded and served in the place of the old one. While the server
 * cannot be reached, what was loaded is served on. */
#ifndef ASSAY_SERVE_SOURCE_SERVER_H
#define ASSAY_SERVE_SOURCE_SERVER_H

#include <stdint.h>

#include "base/status.h"
#include "serve/model_cache.h"

struct source_server;

/* `url` and `token` (NULL: none) as for client_create(). The cache is borrowed. AS_E_INVAL,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status source_server_create(struct model_cache *cache, const char *url,
                                             const char *token, struct source_server **ret,
                                             struct as_err *err);

/* Serve what `reference` means, NAME, NAME@ALIAS or NAME@NUMBER, as `name`; NULL: as NAME.
 * AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status source_server_add(struct source_server *s, const char *name,
                                          const char *reference, struct as_err *err);

/* Begin; the models are loaded as soon as the server answers. AS_E_NOMEM. */
AS_MUST_CHECK as_status source_server_start(struct source_server *s, int64_t poll_ms,
                                            struct as_err *err);
/* Ends the thread and the calls that it makes. NULL is fine. */
void source_server_free(struct source_server *s);

#endif
