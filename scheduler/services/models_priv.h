/* What models.c and model_add.c share. */
#ifndef ASSAY_SCHEDULER_SERVICES_MODELS_PRIV_H
#define ASSAY_SCHEDULER_SERVICES_MODELS_PRIV_H

#include "scheduler/store/tx.h"

/* [A-Za-z0-9][A-Za-z0-9._-]{0,63}. AS_E_INVAL: no model can have that name. */
AS_MUST_CHECK as_status model_name_check(const char *name, struct as_err *err);

/* Record in its transaction that the model changed, with an event. `version`: the number of one that
 * was added; 0: something else changed. */
AS_MUST_CHECK as_status model_note_change(struct tx *t, const char *name, int64_t version,
                                          struct as_err *err);

#endif
