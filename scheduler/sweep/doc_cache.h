/* Documents of sweeps as they are stored, each read once by a process. A document is found by its
 * text, so whoever changes a sweep (its limits) needs to tell nobody. At most DOC_CACHE_MAX
 * documents of DOC_CACHE_BYTES of text together are kept, the most recently used ones. What is in
 * use lives on until the last reader releases it. Any thread may call these functions. */
#ifndef ASSAY_SCHEDULER_SWEEP_DOC_CACHE_H
#define ASSAY_SCHEDULER_SWEEP_DOC_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"

#define DOC_CACHE_MAX 256
#define DOC_CACHE_BYTES (8 << 20)

struct doc_cache;

/* A document that is shared: nobody changes it. Views until doc_ref_done(). */
struct doc_ref {
    const json_t *tree;
    const char *trial;           /* the JSON text of its section `trial`; NULL: it has none */
    const struct sweep_doc *doc; /* NULL: it was not wanted */
    struct doc_entry *entry;     /* private to doc_cache.c */
};

/* AS_E_NOMEM. */
AS_MUST_CHECK as_status doc_cache_create(struct doc_cache **ret, struct as_err *err);
/* Nothing of it is in use. */
void doc_cache_free(struct doc_cache *c);

/* Read a stored document, or find it.
 *   text      borrowed
 *   with_doc  ret->doc is wanted too: the document is checked, and its space and method prepared
 *   ret       owned by the caller, doc_ref_done()
 * Errors are those of stored_doc_read(). The lock is never held while a document is read. */
AS_MUST_CHECK as_status doc_cache_read(struct doc_cache *c, const char *text, bool with_doc,
                                       struct doc_ref *ret, struct as_err *err);
void doc_ref_done(struct doc_ref *ref); /* zeroes it; a zeroed one is allowed */

#endif
