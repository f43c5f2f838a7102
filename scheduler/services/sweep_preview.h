/* What would become of a sweep document: its faults, or what its sweep would begin with. Creates
 * nothing. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_PREVIEW_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_PREVIEW_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/faults.h"
#include "base/status.h"
#include "scheduler/store/store.h"

#define PREVIEW_MAX_SUGGESTIONS 32
#define PREVIEW_MAX_MS 2000 /* no further suggestion is begun after that time */

struct preview_suggestion {
    const char *params; /* JSON */
    const char *why;    /* in words; "": no reason */
};

struct preview_row {
    bool is_valid; /* false: only `faults` of the caller say something */
    const char *name, *method;
    int64_t seed;    /* of the document, or the one that these suggestions were drawn with */
    int64_t planned; /* limits.max_trials */
    int64_t n_cells; /* of a grid; 0: the method has no list of configurations */
    struct preview_suggestion *suggestions;
    size_t n;
};

/* Check the document as sweep_create() does, and suggest up to n first trials, each of which knows
 * that those before it are under way; fewer if the method has no more, or for PREVIEW_MAX_MS.
 *   doc     any JSON; borrowed
 *   n       at most PREVIEW_MAX_SUGGESTIONS
 *   faults  zeroed; every fault of the document is noted there
 *   ret     in the arena
 * A document with faults is no error. AS_E_INVAL: `doc` is no object. AS_E_UNAVAILABLE,
 * AS_E_NOMEM. Call it where slow operations may run. */
AS_MUST_CHECK as_status sweep_preview(struct store *db, struct arena *a, const json_t *doc,
                                      size_t n, struct faults *faults, struct preview_row *ret,
                                      struct as_err *err);

#endif
