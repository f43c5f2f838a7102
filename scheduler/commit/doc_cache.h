/* The documents of sweeps, parsed once: what claims need of them. The parts that are kept never
 * change while the sweep exists (its limits and its priority may). One thread. */
#ifndef ASSAY_SCHEDULER_COMMIT_DOC_CACHE_H
#define ASSAY_SCHEDULER_COMMIT_DOC_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"

#define DOC_CACHE_MAX 256                      /* sweeps; the least recently used go first */
#define DOC_CACHE_TEXT_MAX ((size_t)128 << 10) /* bytes of a document that is kept */

struct cached_doc {
    int64_t key;
    struct sweep_doc *doc;
    json_t *tree;
    char *trial;     /* the section `trial`, JSON */
    bool is_command; /* it runs a command, and not the built-in trainer */
    int64_t used;
};

struct doc_cache {
    struct cached_doc rows[DOC_CACHE_MAX];
    size_t n;
    int64_t now; /* counts uses */
};

void doc_cache_done(struct doc_cache *c);

/* A view until DOC_CACHE_MAX others were added; NULL: it is not there. */
const struct cached_doc *doc_cache_find(struct doc_cache *c, int64_t key);

/* Parse and keep it. AS_E_TOO_LARGE: it is not kept. AS_E_INTERNAL: it cannot be read. */
AS_MUST_CHECK as_status doc_cache_add(struct doc_cache *c, int64_t key, const char *text,
                                      struct as_err *err);

#endif
