/* The documents of sweeps that claims take trials of, by the key of the sweep: a claim reads no
 * text of a document that was read before. The parts that are used never change while the sweep
 * exists (its limits and its priority may). The documents are those of scheduler/sweep/doc_cache.h.
 * One thread. */
#ifndef ASSAY_SCHEDULER_COMMIT_CLAIM_DOCS_H
#define ASSAY_SCHEDULER_COMMIT_CLAIM_DOCS_H

#include "scheduler/sweep/doc_cache.h"

#define CLAIM_DOCS_MAX 256 /* sweeps; the least recently used go first */

struct claim_doc {
    int64_t key;
    struct doc_ref ref;
    bool is_command; /* it runs a command, and not the built-in trainer */
    int64_t used;
};

struct claim_docs {
    struct doc_cache *shared; /* borrowed */
    struct claim_doc rows[CLAIM_DOCS_MAX];
    size_t n;
    int64_t now; /* counts uses */
};

void claim_docs_done(struct claim_docs *c);

/* A view until CLAIM_DOCS_MAX others were added; NULL: it is not there. */
const struct claim_doc *claim_docs_find(struct claim_docs *c, int64_t key);

/* Read and keep it. Errors are those of doc_cache_read(). */
AS_MUST_CHECK as_status claim_docs_add(struct claim_docs *c, int64_t key, const char *text,
                                       struct as_err *err);

#endif
