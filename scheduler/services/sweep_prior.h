/* Names of earlier sweeps in a document become snapshots of their trials, as warm_start_keeps()
 * says (search/prior/warm_start.h). */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_PRIOR_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_PRIOR_H

#include <jansson.h>

#include "scheduler/store/tx.h"

/* Replace each name or id in /search/prior by the snapshot as it is now; a snapshot stays as it is.
 * Trials that have no value or break a bound of their sweep are passed over.
 *   doc  borrowed; any JSON: what is no list of names is left to the parser of documents
 *   ret  new reference; doc itself if no name is in it
 * AS_E_INVAL with the pointer: no such sweep, one that no trial has completed in, or one of several
 * metrics. AS_E_TOO_LARGE: too many sweeps. AS_E_NOMEM; errors of the store. */
AS_MUST_CHECK as_status sweep_prior_take(struct store *db, const json_t *doc, json_t **ret,
                                         struct as_err *err);

#endif
