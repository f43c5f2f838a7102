/* A sweep's document as it is stored in the database. It was checked before it was stored. */
#ifndef ASSAY_SCHEDULER_SWEEP_STORED_DOC_H
#define ASSAY_SCHEDULER_SWEEP_STORED_DOC_H

#include <jansson.h>

#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"

/* Read a stored document.
 *   text      borrowed
 *   ret_tree  the JSON, a new reference; NULL: not wanted
 *   ret       owned by the caller; NULL: not wanted
 * AS_E_INTERNAL: it cannot be read. AS_E_NOMEM. */
AS_MUST_CHECK as_status stored_doc_read(const char *text, json_t **ret_tree, struct sweep_doc **ret,
                                        struct as_err *err);

/* Report that a value from a stored document is wrong, for the reason in *err. AS_E_NOMEM stays.
 * Any other st becomes AS_E_INTERNAL, because the request did not cause it. */
as_status stored_doc_failed(as_status st, struct as_err *err);

#endif
