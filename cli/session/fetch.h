/* Fetches stored content to a place that the command line names. */
#ifndef ASSAY_CLI_SESSION_FETCH_H
#define ASSAY_CLI_SESSION_FETCH_H

#include <stdint.h>

#include "base/status.h"
#include "cli/session/session.h"

struct fetch {
    const char *sha256;
    int64_t size;
    const char *name; /* for people: of the file, the model */
    const char *dest; /* a path, or "-" for standard output */
};

/* The content is written to a draft beside its destination, which takes its name when the digest is
 * right: a cut, Ctrl-C or damaged content leaves what was there before. A connection that is lost
 * is made again for half a minute, and the content goes on where it stopped. Standard output and
 * devices get the bytes as they come; a wrong digest is an error at the end. Shows the progress on
 * stderr. Errors: those of client_download_blob(), with the name before them. */
AS_MUST_CHECK as_status fetch_content(const struct session *s, const struct fetch *f,
                                      struct as_err *err);

/* The content in memory; f->dest is not used. *ret is from malloc and owned by the caller. Errors
 * as above; AS_E_NOMEM. */
AS_MUST_CHECK as_status fetch_bytes(const struct session *s, const struct fetch *f, char **ret,
                                    struct as_err *err);

#endif
