/* The document of a new sweep: what is rewritten before it is stored, and all checks that a stored
 * document does not need. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_READING_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_READING_H

#include <jansson.h>

#include "base/arena.h"
#include "base/faults.h"
#include "base/status.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/sweep_doc.h"

/* Rewrite (earlier sweeps, buckets, the rule of the split), parse and check. It reads the earlier
 * sweeps that the document names, and writes nothing.
 *   doc     borrowed, any JSON
 *   seed    for a document that has none
 *   faults  every fault is noted there, and the first is returned; NULL: it is returned alone
 *   ret     owned by the caller
 * Errors as those of sweep_create() in sweeps.h, but those of data sets. */
AS_MUST_CHECK as_status sweep_read_new(struct store *db, const json_t *doc, uint64_t seed,
                                       struct faults *faults, struct sweep_doc **ret,
                                       struct as_err *err);

/* Do the data sets exist that its trials may name, and do they fit? AS_E_INVAL with the pointer;
 * errors of train_spec_check(). `faults` as above. */
AS_MUST_CHECK as_status sweep_check_datasets(struct tx *t, struct arena *a,
                                             const struct sweep_doc *doc, struct faults *faults,
                                             struct as_err *err);

#endif
